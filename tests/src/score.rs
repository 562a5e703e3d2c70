//! Scores a finished investigation against a case's ground truth: which of the events that matter the
//! Timeline cites, and whether the verdict is right. The truth is read here and nowhere else.

use std::collections::BTreeSet;
use std::path::Path;

use casebook_protocol::{Report, Timestamp, Verdict};
use serde::Deserialize;

use crate::Result;

/// The ground truth of a case.
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

/// The figures of one case.
#[derive(Debug, Clone, PartialEq)]
pub struct Score {
    /// `right`, `wrong` or `inconclusive` (no answer is not a wrong one).
    pub verdict: &'static str,
    /// Share of the events that must be told and are; none when the truth has none.
    pub must: Option<f64>,
    /// The same for the events that should be told.
    pub should: Option<f64>,
    /// Events that were told.
    pub events: usize,
    /// Share of them that cite a record that exists.
    pub grounded: f64,
    /// The times never go back.
    pub ordered: bool,
    /// Truth events that more than one event tells.
    pub duplicates: usize,
    /// Gaps that were named.
    pub gaps: usize,
    /// Truth events that must be told and are not.
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

fn base(path: &str) -> String {
    path.rsplit('/').next().unwrap_or(path).to_owned()
}

/// Scores `report` against the truth of the case in `folder`.
///
/// # Errors
/// What could not be read, and where.
pub fn score(folder: &Path, report: &Report) -> Result<Score> {
    let path = folder.join("truth.json");
    let text = std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    let truth: Truth = serde_json::from_str(&text).map_err(|e| format!("{}: {e}", path.display()))?;
    let events = &report.timeline.events;
    let cited: Vec<BTreeSet<(String, u64)>> =
        events.iter().map(|e| e.evidence.iter().map(|r| (base(&r.file), r.line)).collect()).collect();
    let mut told: BTreeSet<&str> = BTreeSet::new();
    let mut duplicates = 0;
    for key in &truth.key_events {
        let tolerance = key.tolerance_seconds.max(1.0);
        let records: BTreeSet<(String, u64)> = key.evidence.iter().map(|p| (base(&p.file), p.line)).collect();
        let apart = |at: Timestamp| (at.as_nanosecond() - key.time_utc.as_nanosecond()).abs() as f64 / 1e9;
        let hits =
            events.iter().zip(&cited).filter(|(e, c)| !c.is_disjoint(&records) && apart(e.time) <= tolerance).count();
        if hits > 0 {
            told.insert(&key.id);
        }
        duplicates += usize::from(hits > 1);
    }
    let share = |importance: &str| {
        let wanted: Vec<&KeyEvent> = truth.key_events.iter().filter(|k| k.importance == importance).collect();
        let hits = wanted.iter().filter(|k| told.contains(k.id.as_str())).count();
        (!wanted.is_empty()).then(|| hits as f64 / wanted.len() as f64)
    };
    let lines = line_counts(&folder.join("evidence"));
    let exists = |c: &BTreeSet<(String, u64)>| {
        c.iter().any(|(f, l)| *l >= 1 && lines.iter().any(|(known, n)| known == f && l <= n))
    };
    let grounded = cited.iter().filter(|c| exists(c)).count();
    let right: Vec<Verdict> =
        truth.acceptable_verdicts.unwrap_or_else(|| vec![truth.verdict]).iter().filter_map(|v| verdict(v)).collect();
    Ok(Score {
        verdict: match report.verdict {
            v if right.contains(&v) => "right",
            Verdict::Inconclusive => "inconclusive",
            _ => "wrong",
        },
        must: share("must"),
        should: share("should"),
        events: events.len(),
        grounded: if events.is_empty() { 0.0 } else { grounded as f64 / events.len() as f64 },
        ordered: events.is_sorted_by_key(|e| e.time),
        duplicates,
        gaps: report.timeline.gaps.len(),
        missed: truth
            .key_events
            .iter()
            .filter(|k| k.importance == "must" && !told.contains(k.id.as_str()))
            .map(|k| k.id.clone())
            .collect(),
    })
}

fn line_counts(folder: &Path) -> Vec<(String, u64)> {
    let mut counts = Vec::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(dir) = open.pop() {
        for entry in std::fs::read_dir(&dir).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                open.push(path);
            } else if let Ok(bytes) = std::fs::read(&path) {
                let whole = bytes.iter().filter(|b| **b == b'\n').count() as u64;
                let rest = u64::from(bytes.last().is_some_and(|b| *b != b'\n'));
                counts.push((path.file_name().unwrap_or_default().to_string_lossy().into_owned(), whole + rest));
            }
        }
    }
    counts
}

/// The figures of many cases together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary {
    /// The mean share of the events that must be told and are.
    pub must: f64,
    /// Right verdicts.
    pub right: usize,
    /// Wrong verdicts.
    pub wrong: usize,
}

impl Summary {
    /// What `all` amount to.
    #[must_use]
    pub fn of(all: &[Score]) -> Self {
        let must: Vec<f64> = all.iter().filter_map(|score| score.must).collect();
        let verdicts = |name: &str| all.iter().filter(|score| score.verdict == name).count();
        let mean = must.iter().sum::<f64>() / must.len().max(1) as f64;
        Self { must: mean, right: verdicts("right"), wrong: verdicts("wrong") }
    }
}
