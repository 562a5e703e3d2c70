//! Searches recorded investigations: alerts, findings, Journals, Timelines, verdicts.

use casebook_protocol::Report;
use serde_json::{Value, json};

/// Characters to show on each side of a match.
const AROUND: usize = 120;
/// Maximum number of passages to show of one investigation.
const SHOWN: usize = 5;

/// Words that an investigation must contain, ignoring case.
pub struct Wanted(Vec<String>);

impl Wanted {
    /// The words of `text`; `None` if it has none.
    pub fn new(text: &str) -> Option<Self> {
        let words: Vec<String> = text.split_whitespace().map(str::to_lowercase).collect();
        (!words.is_empty()).then_some(Self(words))
    }

    /// The number of passages of `report` that contain any of the words, and the first few. `None` if a word is
    /// missing.
    pub fn hits(&self, report: &Report) -> Option<(usize, Vec<Value>)> {
        let passages: Vec<(String, String, String)> =
            passages(report).into_iter().map(|(place, text)| (place, text.to_lowercase(), text)).collect();
        if !self.0.iter().all(|word| passages.iter().any(|(_, lower, _)| lower.contains(word))) {
            return None;
        }
        // Passages with most of the words come first.
        let words = |lower: &str| self.0.iter().filter(|word| lower.contains(word.as_str())).count();
        let mut hits: Vec<(usize, &str, &str)> = passages
            .iter()
            .map(|(place, lower, text)| (words(lower), place.as_str(), text.as_str()))
            .filter(|(words, ..)| *words > 0)
            .collect();
        hits.sort_by_key(|(words, ..)| std::cmp::Reverse(*words));
        let shown = hits.iter().take(SHOWN).map(|(_, place, text)| json!({"in": place, "text": self.cut(text)}));
        Some((hits.len(), shown.collect()))
    }

    /// The text around the first word that it contains.
    fn cut(&self, text: &str) -> String {
        let chars: Vec<char> = text.chars().collect();
        let lower: Vec<char> = chars.iter().map(|c| c.to_lowercase().next().unwrap_or(*c)).collect();
        let at = |word: &String| {
            let word: Vec<char> = word.chars().collect();
            lower.windows(word.len().max(1)).position(|window| window == word)
        };
        let first = self.0.iter().filter_map(at).min().unwrap_or(0);
        let (start, end) = (first.saturating_sub(AROUND), (first + 2 * AROUND).min(chars.len()));
        let piece: String = chars.get(start..end).unwrap_or_default().iter().collect();
        let (before, after) = (if start > 0 { "…" } else { "" }, if end < chars.len() { "…" } else { "" });
        format!("{before}{piece}{after}")
    }
}

fn passages(report: &Report) -> Vec<(String, String)> {
    let mut all = vec![
        ("alert".to_owned(), report.alert.title.clone()),
        ("alert".to_owned(), report.alert.body.clone()),
        ("verdict".to_owned(), format!("{}: {}", report.verdict.name(), report.summary)),
        ("root cause".to_owned(), report.root_cause.clone()),
        ("timeline".to_owned(), report.timeline.narrative.clone()),
    ];
    all.extend(report.findings.iter().map(|f| (format!("finding {}", f.finding.id), f.finding.draft.claim.clone())));
    all.extend(report.timeline.events.iter().map(|e| (format!("timeline at {}", e.time), e.description.clone())));
    all.extend(report.journal.iter().map(|e| (format!("journal entry {}", e.seq), e.entry.text.clone())));
    all
}
