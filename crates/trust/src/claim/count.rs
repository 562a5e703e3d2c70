//! Numbers of records, of tries, of times: a claim may not take one from a port, a process id or a status
//! that happens to stand in the text of what it cites.

use super::amount;

/// What is counted, with how records of any make call a number of it. Without the `s` of several.
const NOUNS: &[&str] = &["time", "record", "event", "entrie", "line", "hit", "matche", "attempt", "occurrence", "trie"];
/// What may stand between the number and what it counts.
const BETWEEN: &[&str] = &["failed", "successful", "such", "more", "further", "matching", "cited", "log", "login"];
/// Words beside a number in a record by which it counts, whatever it counts.
const COUNTS: &[&str] = &["count", "total", "repeat", "repeated"];
/// How far from a number, in characters, what it counts may stand.
const BESIDE: usize = 24;

/// What the number before `ahead` counts; none where it counts nothing that this knows.
pub(super) fn counted(ahead: &[&str]) -> Option<&'static str> {
    let bare = |word: &&str| word.trim_end_matches(['.', ':', '!', '?', '\'']).to_ascii_lowercase();
    let word = ahead.iter().map(bare).find(|word| !BETWEEN.contains(&word.as_str()))?;
    let singular = word.strip_suffix('s').unwrap_or(&word);
    NOUNS.iter().copied().find(|noun| *noun == singular)
}

/// `text`, in lower case, has the number, and beside it what it counts or that it counts.
pub(super) fn says(text: &str, digits: &str, noun: &str) -> bool {
    amount::places(text, digits).any(|at| {
        let (before, after) = (text.get(..at).unwrap_or_default(), text.get(at + digits.len()..).unwrap_or_default());
        // What stands beyond another number belongs to that one.
        let near = |c: &char| !c.is_ascii_digit();
        let mut before: Vec<char> = before.chars().rev().take(BESIDE).take_while(near).collect();
        before.reverse();
        // Whole words: an `account` counts nothing, nor does an `eventid` say how many events there were.
        let counts = |near: String| {
            let mut words =
                near.split(|c: char| !c.is_alphanumeric()).map(|word| word.strip_suffix('s').unwrap_or(word));
            words.any(|word| word == noun || COUNTS.contains(&word))
        };
        counts(before.into_iter().collect()) || counts(after.chars().take(BESIDE).take_while(near).collect())
    })
}
