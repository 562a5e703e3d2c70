//! Recognises sources whose records summarise a period.

use std::collections::{BTreeMap, BTreeSet};

use super::names;
use super::roles::Candidate;

type Fields = Vec<(String, String)>;

const MINUTE: i64 = 60 * 1_000_000_000;

/// The reason, or none. Such records have fields that only a summary has, and share times or have times at the
/// edges of periods.
pub(crate) fn reason(sample: &[Fields], time: &Candidate) -> Option<String> {
    const STATISTICS: [&str; 7] = ["sum", "min", "max", "avg", "average", "mean", "count"];
    const TOTALS: [&str; 6] = ["total", "established", "terminated", "hits", "occurrences", "responses"];
    let mut stems: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    let mut totals: BTreeSet<String> = BTreeSet::new();
    for key in counted(sample.get(..200).unwrap_or(sample)) {
        for statistic in STATISTICS {
            if let Some(stem) = key.strip_suffix(statistic).filter(|s| s.len() >= 2) {
                stems.entry(stem.to_owned()).or_default().insert(statistic);
                totals.insert(key.clone());
            }
        }
        if TOTALS.iter().any(|t| key.ends_with(t)) {
            totals.insert(key);
        }
    }
    let most = stems.values().map(BTreeSet::len).max().unwrap_or(0);
    let times: Vec<i64> = time.moments.iter().flatten().map(|m| m.ns).collect();
    let distinct = times.iter().collect::<BTreeSet<_>>().len();
    let shared = times.len() >= 3 && distinct * 10 <= times.len() * 7;
    let edges = times.len() >= 5 && times.iter().all(|t| t % MINUTE == 0);
    let named = totals.iter().take(6).cloned().collect::<Vec<_>>().join(", ");
    if most >= 3 {
        return Some(format!("each record covers a period: it has {named}"));
    }
    if totals.len() >= 2 && (shared || edges) {
        let times = if shared { "records share times" } else { "times lie on whole minutes" };
        return Some(format!("each record covers a period: it has {named}, and {times}"));
    }
    None
}

/// Number fields in nearly every record. Collectors of many kinds of events also have totals in some records.
fn counted(sample: &[Fields]) -> Vec<String> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for fields in sample {
        let numbers = fields.iter().filter(|(_, value)| value.parse::<f64>().is_ok());
        for key in numbers.map(|(path, _)| names::key(path)).collect::<BTreeSet<_>>() {
            *seen.entry(key).or_default() += 1;
        }
    }
    seen.into_iter().filter(|(_, records)| records * 10 >= sample.len() * 8).map(|(key, _)| key).collect()
}
