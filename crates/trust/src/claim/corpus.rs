use std::collections::BTreeSet;
use std::net::IpAddr;

use serde_json::Value;

use casebook_protocol::Timestamp;

/// The text of everything that a finding cites. Searches ignore case.
#[derive(Debug, Clone, Default)]
pub struct Corpus {
    exact: Vec<String>,
    lower: Vec<String>,
    numbers: BTreeSet<u64>,
    /// Texts of the query, in lower case. A claim may name them, but they count nothing.
    queried: Vec<String>,
    /// The last parts of the fields in the conditions of the query, in lower case.
    fields: BTreeSet<String>,
    /// Other numbers of the query, such as its limit.
    asked: BTreeSet<u64>,
    /// Numbers, each with the last part of its key in lower case.
    amounts: Vec<(String, f64)>,
}

impl Corpus {
    pub fn add_text(&mut self, text: &str) {
        self.lower.push(squeeze(&text.to_lowercase()));
        self.exact.push(text.to_owned());
    }

    /// Adds every text and number in a JSON value, as written and with escapes undone. Text that is JSON is read
    /// as well, because log collectors wrap records in records.
    pub fn add_value(&mut self, value: &Value) {
        self.add_nested(value, "", 3);
    }

    /// Adds the arguments of a query. A claim may name its texts and the numbers of its conditions, because they were
    /// searched for. They are not results.
    pub fn add_query(&mut self, arguments: &Value) {
        match arguments {
            Value::Number(number) => self.asked.extend(number.as_u64()),
            Value::Array(items) => items.iter().for_each(|item| self.add_query(item)),
            Value::Object(map) => map.iter().for_each(|(key, item)| match item {
                Value::Number(number) if key == "value" => self.queried.push(number.to_string()),
                Value::String(field) if key == "field" => {
                    self.fields.extend(field.rsplit('.').next().map(str::to_lowercase));
                    self.add_query(&Value::from([field.as_str()].as_slice()));
                }
                item => self.add_query(item),
            }),
            Value::String(text) => {
                self.queried.push(squeeze(&text.to_lowercase()));
                self.exact.push(text.clone());
            }
            Value::Bool(_) | Value::Null => {}
        }
    }

    /// True for the last part of a field in a condition of the query, in lower case.
    pub(super) fn has_field(&self, name: &str) -> bool {
        self.fields.contains(name)
    }

    /// The texts of the evidence and of the query, in lower case.
    fn texts(&self) -> impl Iterator<Item = &String> {
        self.lower.iter().chain(&self.queried)
    }

    fn add_nested(&mut self, value: &Value, key: &str, depth: u8) {
        match value {
            Value::String(text) => {
                self.add_text(text);
                self.add_amount(key, text.parse().ok());
                if depth > 0
                    && text.starts_with(['{', '['])
                    && let Ok(inner) = serde_json::from_str(text)
                {
                    self.add_nested(&inner, "", depth - 1);
                }
            }
            Value::Number(number) => {
                self.numbers.extend(number.as_u64());
                self.add_amount(key, number.as_f64());
                self.add_text(&number.to_string());
            }
            Value::Array(items) => items.iter().for_each(|item| self.add_nested(item, key, depth)),
            Value::Object(map) => {
                for (key, item) in map {
                    self.add_text(key);
                    self.add_nested(item, key, depth);
                }
            }
            Value::Bool(_) | Value::Null => {}
        }
    }

    fn add_amount(&mut self, key: &str, number: Option<f64>) {
        let last = key.rsplit('.').next().unwrap_or(key).to_lowercase();
        self.amounts.extend(number.filter(|n| n.is_finite()).map(|n| (last, n)));
    }

    pub fn add_number(&mut self, number: u64) {
        self.numbers.insert(number);
    }

    pub fn join(&mut self, other: Self) {
        self.exact.extend(other.exact);
        self.lower.extend(other.lower);
        self.numbers.extend(other.numbers);
        self.queried.extend(other.queried);
        self.fields.extend(other.fields);
        self.asked.extend(other.asked);
        self.amounts.extend(other.amounts);
    }

    /// True if the exact text occurs, ignoring white space. The pieces of a quotation with `…` or `...` must
    /// occur in order.
    pub fn has_quote(&self, quote: &str) -> bool {
        if self.exact.iter().any(|text| text.contains(quote)) {
            return true;
        }
        // The quoted text may contain dots itself.
        let inner = quote.trim_matches(|c: char| c == '…' || c.is_whitespace());
        let inner = inner.strip_prefix("...").unwrap_or(inner);
        let inner = inner.strip_suffix("...").unwrap_or(inner);
        if inner.chars().count() >= 3
            && inner.contains(char::is_alphanumeric)
            && self.exact.iter().any(|text| text.contains(inner))
        {
            return true;
        }
        let marked = quote.replace("...", "…");
        // Skip a piece that is only punctuation, such as a full stop before three dots.
        let says = |piece: &String| piece.contains(char::is_alphanumeric);
        let pieces: Vec<String> = marked.split('…').map(squeeze).filter(says).collect();
        let enough = pieces.iter().all(|p| p.chars().count() >= 3) && !pieces.is_empty();
        enough && self.exact.iter().any(|text| in_order(&squeeze(text), &pieces))
    }

    /// True if the name occurs in any case. A name that ends in `…` matches as a prefix, and an IP address in
    /// any notation.
    pub fn has_name(&self, name: &str) -> bool {
        if let Some(beginning) = name.strip_suffix('…') {
            let beginning = squeeze(&beginning.to_lowercase());
            return beginning.len() >= 3 && self.texts().any(|text| text.contains(&beginning));
        }
        if let Ok(address) = name.parse::<IpAddr>() {
            return self.has_address(address);
        }
        let name = squeeze(&name.to_lowercase());
        !name.is_empty() && self.texts().any(|text| holds_token(text, &name, false))
    }

    pub(super) fn has_token(&self, token: &str) -> bool {
        let token = token.to_lowercase();
        self.texts().any(|text| holds_token(text, &token, true))
    }

    /// True if the address occurs in any notation, with or without a port.
    pub(super) fn has_address(&self, address: IpAddr) -> bool {
        let wanted = address.to_canonical();
        self.addresses().any(|a| a == wanted)
    }

    /// Every address that is not part of something longer.
    pub(super) fn addresses(&self) -> impl Iterator<Item = IpAddr> {
        let part = |c: char| c.is_alphanumeric() || matches!(c, '.' | ':' | '_' | '-');
        let words = self.texts().flat_map(move |text| text.split(move |c: char| !part(c)));
        words.filter(|w| w.len() >= 2 && w.contains(['.', ':'])).filter_map(|word| {
            let word = word.trim_matches(['.', '-']);
            let without_port = || word.rsplit_once(':').and_then(|(host, _)| host.parse().ok());
            let trimmed = || word.trim_end_matches(':').parse().ok();
            word.parse::<IpAddr>().ok().or_else(trimmed).or_else(without_port).map(|a: IpAddr| a.to_canonical())
        })
    }

    /// A hash, or at least its first seven digits.
    pub(super) fn has_hash(&self, hash: &str) -> bool {
        let hash = hash.to_lowercase();
        self.texts().any(|text| {
            text.match_indices(&hash).any(|(at, _)| {
                let before = text.get(..at).and_then(|t| t.chars().next_back());
                let after = text.get(at + hash.len()..).and_then(|t| t.chars().next());
                let goes_on = after.is_some_and(char::is_alphanumeric);
                !before.is_some_and(char::is_alphanumeric) && (!goes_on || hash.len() < 32)
            })
        })
    }

    /// True if the number occurs alone. A part of a date, a time, an address or a longer number does not count.
    pub(super) fn has_number(&self, number: u64) -> bool {
        let digits = number.to_string();
        self.numbers.contains(&number) || self.lower.iter().any(|text| super::amount::occurs_alone(text, &digits))
    }

    /// True if the number occurs as a count: with what it counts, alone in a field, or with a word such as
    /// `total`.
    pub(super) fn has_count(&self, number: u64, noun: &str) -> bool {
        let digits = number.to_string();
        self.numbers.contains(&number)
            || self.lower.iter().any(|text| text == &digits || super::count::says(text, &digits, noun))
    }

    /// True if a text or a condition of the query has the number.
    pub(super) fn was_sought(&self, number: u64) -> bool {
        let digits = number.to_string();
        self.queried.iter().any(|text| super::amount::occurs_alone(text, &digits))
    }

    pub(super) fn was_asked(&self, number: u64) -> bool {
        self.asked.contains(&number)
    }

    /// Numbers whose key contains one of `words`.
    pub(super) fn amounts(&self, words: &'static [&'static str]) -> impl Iterator<Item = f64> {
        self.amounts.iter().filter(move |(key, _)| words.iter().any(|w| key.contains(w))).map(|(_, n)| *n)
    }

    /// True if the clock time occurs as written. The text may be more exact.
    pub(super) fn has_clock(&self, clock: &str) -> bool {
        let clock = clock.to_lowercase();
        self.texts().any(|text| {
            text.match_indices(&clock).any(|(at, _)| {
                let head = text.get(..at).unwrap_or_default();
                let before = head.chars().next_back();
                let next = text.get(at + clock.len()..).and_then(|t| t.chars().next());
                let begins = before.is_none_or(|c| c == 't' || !(c.is_alphanumeric() || matches!(c, ':' | '.')));
                begins && next.is_none_or(|c| !c.is_ascii_digit())
            })
        })
    }

    pub(super) fn moments(&self) -> Vec<Timestamp> {
        let part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | ':' | '+' | '-');
        let words = self.exact.iter().flat_map(move |text| text.split(move |c: char| !part(c)));
        words.filter(|w| w.len() >= 17 && w.contains(':')).filter_map(|w| w.trim_matches('.').parse().ok()).collect()
    }
}

/// Replaces each run of white space by one blank.
pub(super) fn squeeze(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn in_order(text: &str, pieces: &[String]) -> bool {
    let mut rest = text;
    pieces.iter().all(|piece| match rest.find(piece.as_str()) {
        Some(at) => {
            rest = rest.get(at + piece.len()..).unwrap_or_default();
            true
        }
        None => false,
    })
}

/// True if `token` occurs in `text` as a whole. A name may be part of a path; an address may not be part of a
/// longer one.
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
