//! Checks counts of records, attempts and times. Without this check, a port, a process id or a status in the
//! cited text could confirm a count.

use super::amount;

/// Each noun, without the plural `s`, with the words for it in records of any product.
const NOUNS: &[&str] = &["time", "record", "event", "entrie", "line", "hit", "matche", "attempt", "occurrence", "trie"];
/// Words that may come between the number and the noun.
const BETWEEN: &[&str] =
    &["failed", "successful", "such", "more", "further", "matching", "cited", "log", "login", "id"];
/// If one of these is beside a number in a record, the number is a count.
const COUNTS: &[&str] = &["count", "total", "repeat", "repeated"];
/// Characters between a number and its noun, at most.
const BESIDE: usize = 24;

/// The noun that a number counts, given the words that follow the number.
pub(super) fn counted(ahead: &[&str]) -> Option<&'static str> {
    let bare = |word: &&str| word.trim_end_matches(['.', ':', '!', '?', '\'']).to_ascii_lowercase();
    let word = ahead.iter().map(bare).find(|word| !BETWEEN.contains(&word.as_str()))?;
    let singular = word.strip_suffix('s').unwrap_or(&word);
    NOUNS.iter().copied().find(|noun| *noun == singular)
}

/// True if `text`, in lower case, has the number as a count of `noun`.
pub(super) fn says(text: &str, digits: &str, noun: &str) -> bool {
    amount::places(text, digits).any(|at| {
        let (before, after) = (text.get(..at).unwrap_or_default(), text.get(at + digits.len()..).unwrap_or_default());
        // Text behind another number belongs to that number.
        let near = |c: &char| !c.is_ascii_digit();
        let mut before: Vec<char> = before.chars().rev().take(BESIDE).take_while(near).collect();
        before.reverse();
        // Match whole words: `account` is not a count, and neither is `eventid`.
        let counts = |near: String| {
            let mut words =
                near.split(|c: char| !c.is_alphanumeric()).map(|word| word.strip_suffix('s').unwrap_or(word));
            words.any(|word| word == noun || COUNTS.contains(&word))
        };
        counts(before.into_iter().collect()) || counts(after.chars().take(BESIDE).take_while(near).collect())
    })
}
