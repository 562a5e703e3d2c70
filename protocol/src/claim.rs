//! What a claim states in so many words (times, addresses, hashes, quoted names, numbers) and
//! whether its evidence states it, too (rule 3.2).

use std::collections::BTreeSet;

use serde_json::Value;

use crate::Timestamp;

/// The text of everything that a finding cites, searched without regard to case.
#[derive(Debug, Clone, Default)]
pub struct Corpus {
    exact: Vec<String>,
    lower: Vec<String>,
    numbers: BTreeSet<u64>,
}

impl Corpus {
    /// Adds a text.
    pub fn add_text(&mut self, text: &str) {
        self.lower.push(squeeze(&text.to_lowercase()));
        self.exact.push(text.to_owned());
    }

    /// Adds every text and number in a JSON value, as written and with its escapes undone. A text
    /// that is itself JSON is read, too: log collectors wrap records in records.
    pub fn add_value(&mut self, value: &Value) {
        self.add_nested(value, 3);
    }

    fn add_nested(&mut self, value: &Value, depth: u8) {
        match value {
            Value::String(text) => {
                self.add_text(text);
                if depth > 0
                    && text.starts_with(['{', '['])
                    && let Ok(inner) = serde_json::from_str(text)
                {
                    self.add_nested(&inner, depth - 1);
                }
            }
            Value::Number(number) => {
                self.numbers.extend(number.as_u64());
                self.add_text(&number.to_string());
            }
            Value::Array(items) => items.iter().for_each(|item| self.add_nested(item, depth)),
            Value::Object(map) => {
                for (key, item) in map {
                    self.add_text(key);
                    self.add_nested(item, depth);
                }
            }
            Value::Bool(_) | Value::Null => {}
        }
    }

    /// Adds a number.
    pub fn add_number(&mut self, number: u64) {
        self.numbers.insert(number);
    }

    /// Takes over another corpus.
    pub fn join(&mut self, other: Self) {
        self.exact.extend(other.exact);
        self.lower.extend(other.lower);
        self.numbers.extend(other.numbers);
    }

    /// The exact text stands somewhere.
    #[must_use]
    pub fn has_quote(&self, quote: &str) -> bool {
        let quote = quote.strip_suffix('…').unwrap_or(quote);
        self.exact.iter().any(|text| text.contains(quote))
    }

    /// The name stands somewhere, in either case; a name cut with `…` stands for its beginning.
    #[must_use]
    pub fn has_name(&self, name: &str) -> bool {
        if let Some(beginning) = name.strip_suffix('…') {
            let beginning = squeeze(&beginning.to_lowercase());
            return beginning.len() >= 3 && self.lower.iter().any(|text| text.contains(&beginning));
        }
        let name = squeeze(&name.to_lowercase());
        !name.is_empty() && self.lower.iter().any(|text| holds_token(text, &name, false))
    }

    /// The token stands somewhere and is not part of a longer one.
    fn has_token(&self, token: &str) -> bool {
        let token = token.to_lowercase();
        self.lower.iter().any(|text| holds_token(text, &token, true))
    }
}

fn squeeze(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// `token` stands in `text` and does not go on where it begins or ends: a name may be part of a path,
/// an address may not be part of a longer address.
fn holds_token(text: &str, token: &str, strict: bool) -> bool {
    let goes_on = |edge: Option<char>, beyond: Option<char>| match (edge, beyond) {
        (Some(a), Some(b)) if a.is_ascii_digit() => b.is_ascii_digit() || (strict && b.is_alphanumeric()),
        (Some(a), Some(b)) if strict => a.is_alphanumeric() && b.is_alphanumeric(),
        (Some(a), Some(b)) => a.is_alphabetic() && b.is_alphabetic(),
        _ => false,
    };
    text.match_indices(token).any(|(at, _)| {
        let before = text.get(..at).and_then(|t| t.chars().next_back());
        let rest = text.get(at + token.len()..).unwrap_or_default();
        let after = rest.chars().next();
        let dotted = strict && after == Some('.') && rest.chars().nth(1).is_some_and(|c| c.is_ascii_digit());
        let dotted_before = strict
            && before == Some('.')
            && text.get(..at.saturating_sub(1)).and_then(|t| t.chars().next_back()).is_some_and(|c| c.is_ascii_digit());
        !goes_on(token.chars().next(), before)
            && !goes_on(token.chars().next_back(), after)
            && !dotted
            && !dotted_before
    })
}

/// What `claim` states and `corpus` does not, one sentence each. `times` are the times of the cited
/// records; a duration has to lie between two of them.
#[must_use]
pub fn faults(claim: &str, corpus: &Corpus, times: &[Timestamp]) -> Vec<String> {
    let (names, rest) = quoted(claim);
    let mut faults: Vec<String> = names
        .iter()
        .filter(|name| !corpus.has_name(name))
        .map(|name| format!("`{name}` does not occur in what is cited"))
        .collect();
    let words: Vec<&str> = rest
        .split(|c: char| c.is_whitespace() || matches!(c, '(' | ')' | ',' | ';' | '"' | '“' | '”'))
        .filter(|w| !w.is_empty())
        .collect();
    for (i, word) in words.iter().enumerate() {
        let word = word.trim_end_matches(['.', ':', '!', '?', '\'']).trim_start_matches('\'');
        let next = words.get(i + 1).map_or("", |w| w.trim_end_matches(['.', ':']));
        if let Some(fault) = word_fault(word, next, corpus, times) {
            faults.push(fault);
        }
    }
    faults
}

fn word_fault(word: &str, next: &str, corpus: &Corpus, times: &[Timestamp]) -> Option<String> {
    let stated = |ok: bool, what: &str| (!ok).then(|| format!("{what} {word} does not occur in what is cited"));
    if !word.contains(|c: char| c.is_ascii_digit()) && !word.contains("::") {
        return None;
    }
    if is_clock(word) {
        return stated(times.iter().any(|t| shows(*t, word)) || corpus.has_token(word), "the time");
    }
    if is_address(word) {
        return stated(corpus.has_token(word), "the address");
    }
    if word.len() >= 32 && word.chars().all(|c| c.is_ascii_hexdigit()) {
        return stated(corpus.has_token(word), "the hash");
    }
    let digits: String = word.chars().filter(|c| *c != ',' && *c != '_').collect();
    if let Ok(number) = digits.parse::<u64>() {
        if let Some(unit) = seconds_in(next) {
            let span = |a: &Timestamp, b: &Timestamp| (a.as_nanosecond() - b.as_nanosecond()).abs() as f64 / 1e9;
            let stands = times.iter().any(|a| times.iter().any(|b| (span(a, b) / unit - number as f64).abs() <= 1.0));
            return stated(stands || corpus.numbers.contains(&number) || corpus.has_token(&digits), "the duration");
        }
        return stated(corpus.numbers.contains(&number) || corpus.has_token(&digits), "the number");
    }
    None
}

/// The names in `backquotes`, and the rest of the text.
fn quoted(claim: &str) -> (Vec<String>, String) {
    let mut names = Vec::new();
    let mut rest = String::new();
    for (i, part) in claim.split('`').enumerate() {
        if i % 2 == 1 {
            names.push(part.to_owned());
            rest.push(' ');
        } else {
            rest.push_str(part);
        }
    }
    (names, rest)
}

fn seconds_in(unit: &str) -> Option<f64> {
    Some(match unit.to_ascii_lowercase().as_str() {
        "ms" | "milliseconds" | "millisecond" => 0.001,
        "s" | "sec" | "seconds" | "second" => 1.0,
        "min" | "minutes" | "minute" => 60.0,
        "h" | "hours" | "hour" => 3600.0,
        "days" | "day" => 86400.0,
        _ => return None,
    })
}

fn is_address(word: &str) -> bool {
    word.parse::<std::net::IpAddr>().is_ok()
}

/// A time of day such as `18:10:22.138Z`, or a date with one.
fn is_clock(word: &str) -> bool {
    let clock = word.split(['T', 't']).next_back().unwrap_or(word).trim_end_matches(['Z', 'z']);
    let mut parts = clock.split(':');
    let two = |p: Option<&str>| p.is_some_and(|p| p.len() == 2 && p.chars().all(|c| c.is_ascii_digit()));
    let (hour, minute, second, end) = (parts.next(), parts.next(), parts.next(), parts.next());
    let seconds_ok = second.is_none_or(|s| s.len() >= 2 && s.chars().all(|c| c.is_ascii_digit() || c == '.'));
    two(hour) && two(minute) && seconds_ok && end.is_none()
}

/// The moment, written out, begins as `word` is written.
fn shows(at: Timestamp, word: &str) -> bool {
    let bare = word.trim_end_matches(['Z', 'z']);
    let full = format!("{at:.9}");
    if bare.contains(['T', 't']) {
        full.starts_with(&bare.to_uppercase())
    } else {
        full.get(11..).is_some_and(|clock| clock.starts_with(bare))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(claim: &str, expect: &[&str]) {
        let mut corpus = Corpus::default();
        corpus.add_value(
            &serde_json::json!({"src": "192.168.2.60", "cmd": "bash  -c 'id'", "path": "C:\\Windows\\System32\\reg.exe",
            "n": 376, "wrapped": "{\"user\":\"Tomcat\"}", "md5": "d41d8cd98f00b204e9800998ecf8427e"}),
        );
        let times: Vec<Timestamp> =
            ["2022-05-11T18:10:22.138Z", "2022-05-11T18:11:21.2Z"].iter().map(|t| t.parse().unwrap()).collect();
        assert_eq!(faults(claim, &corpus, &times), expect);
    }

    #[test]
    fn what_the_evidence_states_may_be_stated() {
        check("at 18:10:22 `tomcat` ran `bash -c 'id'` from 192.168.2.60, 376 times", &[]);
        check("2022-05-11T18:10:22.138Z: `c:\\windows\\system32\\REG.exe` (d41d8cd98f00b204e9800998ecf8427e)", &[]);
        check("59 s later it ran `bash -c…` and `C:\\Windows\\Sys…`", &[]);
        check("T1059.004 by pid-less process", &[]);
    }

    #[test]
    fn what_it_does_not_state_may_not() {
        check("from 192.168.2.6", &["the address 192.168.2.6 does not occur in what is cited"]);
        check("at 18:10:23", &["the time 18:10:23 does not occur in what is cited"]);
        check("by `root`", &["`root` does not occur in what is cited"]);
        check("377 times", &["the number 377 does not occur in what is cited"]);
        check("37 times", &["the number 37 does not occur in what is cited"]);
        check("70 seconds later", &["the duration 70 does not occur in what is cited"]);
        check(
            "hash d41d8cd98f00b204e9800998ecf8427f",
            &["the hash d41d8cd98f00b204e9800998ecf8427f does not occur in what is cited"],
        );
    }
}
