//! The Director's Journal: its structured working memory, append-only, which every agent reads.

use std::collections::BTreeSet;
use std::fmt::Write;

use serde::{Deserialize, Serialize};

use crate::{FindingId, Phase, Timestamp, closed, one_line};

closed! {
    pub enum EntryKind {
        Decision = "decision", "a strategic choice";
        Observation = "observation", "a pattern noticed";
        Finding = "finding", "a confirmed fact";
        Question = "question", "an open item";
        Action = "action", "a step taken or planned";
        Hypothesis = "hypothesis", "a working theory";
    }
}

closed! {
    pub enum Priority {
        Low = "low";
        Medium = "medium";
        High = "high";
        Critical = "critical";
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntryDraft {
    pub kind: EntryKind,
    pub text: String,
    pub priority: Option<Priority>,
    #[serde(default)]
    pub follow_ups: Vec<String>,
    #[serde(default)]
    pub citations: Vec<FindingId>,
    /// The sequence numbers of the entries that this one corrects. In JSON, one number stands alone, and none is null,
    /// as in older logs.
    #[serde(default, with = "one_or_more")]
    pub supersedes: Vec<u32>,
}

mod one_or_more {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Written {
        None(()),
        One(u32),
        Several(Vec<u32>),
    }

    pub(super) fn serialize<S: Serializer>(numbers: &[u32], serializer: S) -> Result<S::Ok, S::Error> {
        match numbers {
            [] if serializer.is_human_readable() => serializer.serialize_none(),
            [one] if serializer.is_human_readable() => one.serialize(serializer),
            several => several.serialize(serializer),
        }
    }

    pub(super) fn deserialize<'d, D: Deserializer<'d>>(deserializer: D) -> Result<Vec<u32>, D::Error> {
        if !deserializer.is_human_readable() {
            return Vec::deserialize(deserializer);
        }
        Ok(match Written::deserialize(deserializer)? {
            Written::None(()) => Vec::new(),
            Written::One(number) => vec![number],
            Written::Several(numbers) => numbers,
        })
    }
}

impl EntryDraft {
    #[must_use]
    pub fn new(kind: EntryKind, priority: Priority, text: impl Into<String>) -> Self {
        Self {
            kind,
            text: text.into(),
            priority: Some(priority),
            follow_ups: Vec::new(),
            citations: Vec::new(),
            supersedes: Vec::new(),
        }
    }
}

/// An entry with the place and time of writing, which the Hub adds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalEntry {
    /// From 1, without gaps.
    pub seq: u32,
    pub phase: Phase,
    pub round: u32,
    pub at: Timestamp,
    pub entry: EntryDraft,
}

/// The Journal as agents read it, in order of time. New entries only append, so that prompt caches stay valid. Above
/// `limit` bytes superseded entries are left out first, then the oldest entries of low priority, a quarter of the limit at
/// once, and a line gives their number.
pub fn render(entries: &[JournalEntry], limit: usize) -> String {
    let superseded: BTreeSet<u32> = entries.iter().flat_map(|entry| entry.entry.supersedes.iter().copied()).collect();
    let lines: Vec<((bool, Option<Priority>), String)> =
        entries.iter().map(|entry| ((!superseded.contains(&entry.seq), entry.entry.priority), line(entry))).collect();
    let total: usize = lines.iter().map(|(_, text)| text.len()).sum();
    let mut folded = vec![false; lines.len()];
    if total > limit {
        let step = (limit / 4).max(1);
        let excess = (total - limit).div_ceil(step) * step;
        fold(&lines, &mut folded, excess);
    }
    let mut out = String::new();
    let count = folded.iter().filter(|&&f| f).count();
    if count > 0 {
        let _ = writeln!(out, "({count} entries that are superseded or of lower priority are folded away)");
    }
    for ((_, text), folded) in lines.iter().zip(&folded) {
        if !folded {
            out.push_str(text);
        }
    }
    out
}

fn fold(lines: &[((bool, Option<Priority>), String)], folded: &mut [bool], excess: usize) {
    let priorities =
        [None, Some(Priority::Low), Some(Priority::Medium), Some(Priority::High), Some(Priority::Critical)];
    // Superseded entries first, whatever their priority.
    let ranks = [false, true].into_iter().flat_map(|live| priorities.map(|priority| (live, priority)));
    let mut gone = 0;
    for rank in ranks {
        for ((of, text), folded) in lines.iter().zip(folded.iter_mut()) {
            if gone >= excess {
                return;
            }
            if *of == rank {
                *folded = true;
                gone += text.len();
            }
        }
    }
}

fn line(entry: &JournalEntry) -> String {
    let JournalEntry { seq, phase, round, entry: draft, .. } = entry;
    let mut out = format!("#{seq} [{} {round}] {}", phase.name(), draft.kind.name());
    if let Some(priority) = draft.priority {
        let _ = write!(out, " ({})", priority.name());
    }
    for (n, old) in draft.supersedes.iter().enumerate() {
        let _ = write!(out, "{} #{old}", if n == 0 { " supersedes" } else { "," });
    }
    // A line break in a note must not look like the start of another entry.
    let _ = write!(out, ": {}", one_line(&draft.text, usize::MAX));
    if !draft.citations.is_empty() {
        let ids: Vec<_> = draft.citations.iter().map(FindingId::as_str).collect();
        let _ = write!(out, " [{}]", ids.join(", "));
    }
    out.push('\n');
    for follow in &draft.follow_ups {
        let _ = writeln!(out, "   follow up: {}", one_line(follow, usize::MAX));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(n: u32) -> Vec<JournalEntry> {
        (1..=n)
            .map(|seq| {
                let priority = if seq % 2 == 0 { Priority::High } else { Priority::Low };
                let entry = EntryDraft::new(EntryKind::Observation, priority, format!("note {seq}"));
                JournalEntry { seq, phase: Phase::Trace, round: seq, at: Timestamp::UNIX_EPOCH, entry }
            })
            .collect()
    }

    #[test]
    fn chronology_says_what_kind_when_and_what() {
        assert_eq!(render(&entries(1), 1000), "#1 [trace 1] observation (low): note 1\n");
    }

    #[test]
    fn an_entry_corrects_several_and_older_logs_with_one_or_none_are_read() {
        let entry = |supersedes: &str| -> EntryDraft {
            let json = format!(
                r#"{{"kind":"decision","text":"t","priority":null,"follow_ups":[],"citations":[],"supersedes":{supersedes}}}"#
            );
            let read: EntryDraft = serde_json::from_str(&json).unwrap();
            assert_eq!(serde_json::to_string(&read).unwrap(), json, "it is written as it was");
            read
        };
        assert_eq!(["null", "4", "[4,5]"].map(|json| entry(json).supersedes), [vec![], vec![4], vec![4, 5]]);
        let entry = JournalEntry {
            seq: 7,
            phase: Phase::Trace,
            round: 2,
            at: Timestamp::UNIX_EPOCH,
            entry: EntryDraft { supersedes: vec![4, 5], ..entry("null") },
        };
        assert_eq!(render(&[entry], 1000), "#7 [trace 2] decision supersedes #4, #5: t\n");
    }

    #[test]
    fn past_the_limit_the_oldest_of_low_priority_fold_and_it_says_how_many() {
        let text = render(&entries(20), 600);
        assert!(text.starts_with("("), "{text}");
        assert!(text.contains("note 20") && text.contains("note 2\n") && !text.contains("note 1\n"), "{text}");
        let shown = text.matches("observation").count();
        assert!(text.starts_with(&format!("({} entries", 20 - shown)), "{text}");
    }

    #[test]
    fn superseded_entry_folds_before_one_of_low_priority() {
        let mut all = entries(20);
        // Of high priority, and corrected by a later entry.
        all[18].entry.supersedes = vec![2, 4];
        let text = render(&all, 700);
        assert!(!text.contains("note 2\n") && !text.contains("note 4\n"), "{text}");
        assert!(text.contains("note 6\n") && text.contains("note 20\n"), "{text}");
    }

    #[test]
    fn while_the_fold_stands_a_new_entry_only_appends() {
        let longer = |n| render(&entries(n), 2000);
        let mut kept = 0;
        for n in 60..80 {
            let (before, after) = (longer(n), longer(n + 1));
            kept += u32::from(after.starts_with(&before));
        }
        assert!(kept > 10, "only {kept} of 20 steps kept the prefix");
    }
}
