//! Scores a finished investigation against the ground truth of its case: which important events the Timeline
//! cites, and whether the verdict is right. No other code reads the truth.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use casebook_protocol::{Report, Timestamp, Verdict};
use serde::Deserialize;

use crate::Result;

#[derive(Debug, Deserialize)]
pub struct Truth {
    verdict: String,
    acceptable_verdicts: Option<Vec<String>>,
    key_events: Vec<KeyEvent>,
}

#[derive(Debug, Deserialize)]
struct KeyEvent {
    id: String,
    time_utc: Timestamp,
    #[serde(default)]
    tolerance_seconds: f64,
    importance: String,
    evidence: Vec<Place>,
}

#[derive(Debug, Deserialize)]
struct Place {
    file: String,
    line: u64,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Score {
    /// `right`, `wrong` or `inconclusive`, which does not count as wrong.
    pub verdict: &'static str,
    /// Share of the `must` events that the Timeline contains; `None` if there are none.
    pub must: Option<f64>,
    pub should: Option<f64>,
    pub events: usize,
    /// Share of events that cite an existing record.
    pub grounded: f64,
    pub ordered: bool,
    /// Truth events that several Timeline events match.
    pub duplicates: usize,
    pub gaps: usize,
    pub missed: Vec<String>,
}

fn verdict(text: &str) -> Option<Verdict> {
    Some(match text {
        "true_positive" => Verdict::TruePositive,
        "benign" | "benign_positive" => Verdict::BenignPositive,
        "false_positive" => Verdict::FalsePositive,
        "needs_human" | "inconclusive" => Verdict::Inconclusive,
        _ => return None,
    })
}

/// File name without folder, and line.
type Line = (String, u64);

fn name(path: &str) -> String {
    path.rsplit('/').next().unwrap_or(path).to_owned()
}

pub fn score(folder: &Path, report: &Report) -> Result<Score> {
    let path = folder.join("truth.json");
    let text = std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    let truth: Truth = serde_json::from_str(&text).map_err(|e| format!("{}: {e}", path.display()))?;
    let events: Vec<(Timestamp, BTreeSet<Line>)> = report
        .timeline
        .events
        .iter()
        .map(|event| (event.time, event.evidence.iter().map(|record| (name(&record.file), record.line)).collect()))
        .collect();
    let hits = |key: &KeyEvent| {
        let lines: BTreeSet<Line> = key.evidence.iter().map(|place| (name(&place.file), place.line)).collect();
        let apart = |time: Timestamp| time.duration_since(key.time_utc).abs().as_secs_f64();
        let near = |time| apart(time) <= key.tolerance_seconds.max(1.0);
        events.iter().filter(|(time, cited)| near(*time) && !cited.is_disjoint(&lines)).count()
    };
    let keys: Vec<(&KeyEvent, usize)> = truth.key_events.iter().map(|key| (key, hits(key))).collect();
    let of = |importance: &'static str| keys.iter().filter(move |(key, _)| key.importance == importance);
    let share = |importance| {
        let (found, all) = (of(importance).filter(|(_, hits)| *hits > 0).count(), of(importance).count());
        (all > 0).then(|| found as f64 / all as f64)
    };
    let mut lengths = BTreeMap::new();
    count_lines(&folder.join("evidence"), &mut lengths);
    let exists = |(file, line): &Line| *line >= 1 && lengths.get(file).is_some_and(|lines| line <= lines);
    let grounded = events.iter().filter(|(_, cited)| cited.iter().any(exists)).count();
    let right = truth.acceptable_verdicts.unwrap_or_else(|| vec![truth.verdict]);
    Ok(Score {
        verdict: match report.verdict {
            given if right.iter().any(|text| verdict(text) == Some(given)) => "right",
            Verdict::Inconclusive => "inconclusive",
            _ => "wrong",
        },
        must: share("must"),
        should: share("should"),
        events: events.len(),
        grounded: if events.is_empty() { 0.0 } else { grounded as f64 / events.len() as f64 },
        ordered: events.is_sorted_by_key(|(time, _)| *time),
        duplicates: keys.iter().filter(|(_, hits)| *hits > 1).count(),
        gaps: report.timeline.gaps.len(),
        missed: of("must").filter(|(_, hits)| *hits == 0).map(|(key, _)| key.id.clone()).collect(),
    })
}

/// Counts the lines of each file by name; the longer of two files with one name counts.
fn count_lines(folder: &Path, lengths: &mut BTreeMap<String, u64>) {
    for path in std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            count_lines(&path, lengths);
        } else if let (Ok(bytes), Some(name)) = (std::fs::read(&path), path.file_name()) {
            let lines = bytes.split_inclusive(|byte| *byte == b'\n').count() as u64;
            let known = lengths.entry(name.to_string_lossy().into_owned()).or_default();
            *known = lines.max(*known);
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary {
    /// The mean of [`Score::must`].
    pub must: f64,
    pub right: usize,
    pub wrong: usize,
}

impl Summary {
    pub fn of(all: &[Score]) -> Self {
        let must: Vec<f64> = all.iter().filter_map(|score| score.must).collect();
        let verdicts = |name: &str| all.iter().filter(|score| score.verdict == name).count();
        let mean = must.iter().sum::<f64>() / must.len().max(1) as f64;
        Self { must: mean, right: verdicts("right"), wrong: verdicts("wrong") }
    }
}
