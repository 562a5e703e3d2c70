//! Searches terms in all readings of a record.
//!
//! A person searches for `C:\Windows` or `"cmd" /c`, but the file may hold `C:\\Windows` (JSON),
//! `&quot;cmd&quot;` (XML) or `""cmd""` (CSV). A term matches if any reading contains it.

use std::borrow::Cow;

use aho_corasick::AhoCorasick;
use memchr::memmem::Finder;

use super::fields::{Shape, json, parse, xml};
use super::source::Format;

/// Lower case.
#[derive(Debug, Clone)]
pub(crate) struct Term {
    finder: Finder<'static>,
    grams: Vec<u32>,
}

impl Term {
    pub(crate) fn new(text: &str) -> Self {
        let lower = text.to_ascii_lowercase();
        let mut grams = Vec::new();
        each_gram(lower.as_bytes(), &mut |gram| grams.push(gram));
        Self { finder: Finder::new(lower.as_bytes()).into_owned(), grams }
    }

    /// `lower` must be in lower case.
    fn is_in(&self, lower: &[u8]) -> bool {
        self.finder.find(lower).is_some()
    }
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Terms {
    each: Vec<Term>,
    any: bool,
    many: Option<AhoCorasick>,
}

const ONE_BY_ONE: usize = 8;

impl Terms {
    pub(crate) fn new(texts: &[&str], any: bool) -> Self {
        let lower = texts.iter().map(|text| text.to_ascii_lowercase());
        let many = if any && texts.len() > ONE_BY_ONE { AhoCorasick::new(lower).ok() } else { None };
        Self { each: texts.iter().map(|text| Term::new(text)).collect(), any, many }
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.each.is_empty()
    }

    pub(crate) const fn len(&self) -> usize {
        self.each.len()
    }

    pub(crate) const fn is_choice(&self) -> bool {
        self.any && self.each.len() > 1
    }

    pub(crate) fn held(&self, shape: &Shape, raw: &[u8]) -> bool {
        let Some(many) = &self.many else { return holds(shape, raw, &self.each, self.any) };
        let mut found = false;
        each(shape, raw, &mut |lower| {
            found = many.is_match(lower);
            found
        });
        found
    }

    pub(crate) fn mark(&self, shape: &Shape, raw: &[u8], held: &mut [bool]) {
        each(shape, raw, &mut |lower| {
            match &self.many {
                Some(many) => many.find_overlapping_iter(lower).for_each(|found| {
                    if let Some(held) = held.get_mut(found.pattern().as_usize()) {
                        *held = true;
                    }
                }),
                None => {
                    self.each.iter().zip(held.iter_mut()).for_each(|(term, held)| *held = *held || term.is_in(lower));
                }
            }
            !held.contains(&false)
        });
    }

    pub(crate) fn may_be_in(&self, filter: &[u8]) -> bool {
        match (self.each.is_empty(), self.any) {
            (true, _) => true,
            (false, true) => self.each.iter().any(|t| may_hold(filter, t)),
            (false, false) => self.each.iter().all(|t| may_hold(filter, t)),
        }
    }

    /// True if no record of `block` can contain the terms. Applies only if the bytes are the only reading.
    pub(crate) fn cannot_be_in(&self, block: &[u8]) -> bool {
        if self.each.is_empty() || !only_reading(block) {
            return false;
        }
        let lower = block.to_ascii_lowercase();
        match (&self.many, self.any) {
            (Some(many), _) => !many.is_match(&lower),
            (None, true) => !self.each.iter().any(|t| t.is_in(&lower)),
            (None, false) => !self.each.iter().all(|t| t.is_in(&lower)),
        }
    }
}

/// Whether no record of these bytes has another reading than its bytes.
fn only_reading(block: &[u8]) -> bool {
    let packed = memchr::memchr2(b'\\', b'&', block).is_some()
        || ["\"\"", "audit("].iter().any(|mark| memchr::memmem::find(block, mark.as_bytes()).is_some());
    !packed && block.is_ascii()
}

pub(crate) fn holds(shape: &Shape, raw: &[u8], terms: &[Term], any: bool) -> bool {
    if terms.is_empty() {
        return true;
    }
    let mut found = vec![false; terms.len()];
    each(shape, raw, &mut |lower| {
        for (term, found) in terms.iter().zip(&mut found) {
            *found = *found || term.is_in(lower);
        }
        if any { found.contains(&true) } else { !found.contains(&false) }
    });
    if any { found.contains(&true) } else { !found.contains(&false) }
}

/// Passes each reading in lower case to `enough`, the bytes first, until it returns true.
pub(crate) fn each(shape: &Shape, raw: &[u8], enough: &mut dyn FnMut(&[u8]) -> bool) {
    if enough(&raw.to_ascii_lowercase()) {
        return;
    }
    // Checking the whole text first is faster, because most records are UTF-8.
    let mut text = match std::str::from_utf8(raw) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => String::from_utf8_lossy(raw),
    };
    if matches!(text, Cow::Owned(_)) && enough(text.to_ascii_lowercase().as_bytes()) {
        return;
    }
    // Logs contain at most two levels of JSON inside strings.
    for _ in 0..2 {
        if !text.contains('\\') {
            break;
        }
        text = Cow::Owned(unescape(&text));
        if enough(text.to_ascii_lowercase().as_bytes()) {
            return;
        }
        if !text.contains("\\\"") && !text.contains("\\u") {
            break;
        }
    }
    if text.contains('&') && text.contains(';') && enough(xml::unescape(&text).to_ascii_lowercase().as_bytes()) {
        return;
    }
    if matches!(shape.format, Format::Csv | Format::Tsv)
        && text.contains("\"\"")
        && enough(text.replace("\"\"", "\"").to_ascii_lowercase().as_bytes())
    {
        return;
    }
    if text.contains("audit(") {
        let values: Vec<String> = parse(shape, raw).fields.into_iter().map(|(_, v)| v).collect();
        enough(values.join("\n").to_ascii_lowercase().as_bytes());
    }
}

fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = memchr::memchr(b'\\', rest.as_bytes()) {
        out.push_str(rest.get(..at).unwrap_or_default());
        rest = rest.get(at..).unwrap_or_default();
        let used = json::unescape(rest, &mut out).unwrap_or_else(|| {
            out.push('\\');
            1
        });
        rest = rest.get(used..).unwrap_or_default();
    }
    out.push_str(rest);
    out
}

/// A Bloom filter with one hash over the four-byte sequences of a block. It skips most blocks without a term and
/// never skips a block that contains one.
#[derive(Debug)]
pub(crate) struct Grams {
    words: Vec<u64>,
}

const BITS: usize = 1 << 18;

impl Grams {
    pub(crate) fn new() -> Self {
        Self { words: vec![0; BITS / 64] }
    }

    pub(crate) fn add(&mut self, lower: &[u8]) {
        let words = &mut self.words;
        each_gram(lower, &mut |gram| {
            let at = gram as usize & (BITS - 1);
            if let Some(word) = words.get_mut(at / 64) {
                *word |= 1 << (at % 64);
            }
        });
    }

    /// Adds all readings of the records in `raw`, each of which ends at one of `ends`.
    pub(crate) fn add_all(&mut self, shape: &Shape, raw: &[u8], ends: impl Iterator<Item = usize>) {
        let plain = only_reading(raw).then(|| raw.to_ascii_lowercase());
        let mut from = 0;
        for end in ends {
            match &plain {
                Some(lower) => self.add(lower.get(from..end).unwrap_or_default()),
                None => each(shape, raw.get(from..end).unwrap_or_default(), &mut |lower| {
                    self.add(lower);
                    false
                }),
            }
            from = end;
        }
    }

    /// Returns the filter, as small as possible while still sparse, and starts an empty one.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        let mut words = std::mem::take(&mut self.words);
        self.words = vec![0; BITS / 64];
        let mut set: usize = words.iter().map(|w| w.count_ones() as usize).sum();
        while words.len() > 16 && set * 8 <= words.len() * 64 {
            let half = words.len() / 2;
            let (low, high) = words.split_at_mut(half);
            low.iter_mut().zip(high).for_each(|(a, b)| *a |= *b);
            words.truncate(half);
            set = words.iter().map(|w| w.count_ones() as usize).sum();
        }
        words.iter().flat_map(|w| w.to_le_bytes()).collect()
    }
}

pub(crate) fn may_hold(filter: &[u8], term: &Term) -> bool {
    let bits = filter.len() * 8;
    if !bits.is_power_of_two() {
        return true;
    }
    term.grams.iter().all(|gram| {
        let at = *gram as usize & (bits - 1);
        filter.get(at / 8).is_none_or(|byte| byte >> (at % 8) & 1 == 1)
    })
}

fn each_gram(lower: &[u8], sink: &mut dyn FnMut(u32)) {
    for window in lower.windows(4) {
        if let [a, b, c, d] = window {
            let mut hash = u32::from_le_bytes([*a, *b, *c, *d]).wrapping_mul(0x9e37_79b1);
            hash ^= hash >> 15;
            sink(hash.wrapping_mul(0x85eb_ca77) >> 3);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(format: Format, raw: &str, term: &str, expect: bool) {
        let shape = Shape::of(format);
        let terms = [Term::new(term)];
        assert_eq!(holds(&shape, raw.as_bytes(), &terms, false), expect, "{term} in {raw}");
        if expect {
            let mut grams = Grams::new();
            each(&shape, raw.as_bytes(), &mut |lower| {
                grams.add(lower);
                false
            });
            assert!(may_hold(&grams.take(), &terms[0]), "the filter must not hide {term}");
        }
    }

    #[test]
    fn a_term_is_found_however_it_is_packed() {
        let json = r#"{"Image":"C:\\Windows\\System32\\netsh.exe","m":"{\"a\":\"x \\\"y\\\"\"}","x":"\u003cData\u003ea &quot;b&quot;\u003c/Data\u003e"}"#;
        check(Format::Ndjson, json, r"C:\Windows\System32\NETSH.exe", true);
        check(Format::Ndjson, json, r"C:\\Windows", true);
        check(Format::Ndjson, json, "<Data>", true);
        check(Format::Ndjson, json, r#"a "b""#, true);
        check(Format::Ndjson, json, r#"x "y""#, true);
        check(Format::Ndjson, json, "netsh.ex", true);
        check(Format::Ndjson, json, "netsh-exe", false);
        check(Format::Csv, "a,\"say \"\"hi\"\"\"", "say \"hi\"", true);
        check(
            Format::Auditd,
            "type=PROCTITLE msg=audit(1.5:2): proctitle=636174002F6574632F706173737764",
            "cat /etc/passwd",
            true,
        );
        check(Format::Plain, "${jndi:ldap://192.168.2.6:1389/o=reference}", "${jndi:ldap", true);
        check(Format::Plain, "x", "x", true);
        check(Format::Plain, "", "x", false);
        check(Format::Plain, "Grün", "grün", true);
    }

    #[test]
    fn of_many_terms_each_that_a_record_holds_is_marked() {
        let shape = Shape::of(Format::Ndjson);
        let raw = br#"{"Image":"C:\\Windows\\System32\\netsh.exe","m":"{\"a\":\"net user\"}"}"#;
        let texts = ["netsh.exe", "net", "nothing", "System32\\netsh", "a\":\"net", "x1", "x2", "x3", "x4", "x5"];
        let expect: Vec<bool> = [true, true, false, true, true].into_iter().chain([false; 5]).collect();
        for texts in [&texts[..], &texts[..5]] {
            let terms = Terms::new(texts, true);
            let mut held = vec![false; texts.len()];
            terms.mark(&shape, raw, &mut held);
            assert_eq!(held, expect[..texts.len()]);
            assert!(terms.held(&shape, raw));
        }
        assert!(!Terms::new(&texts[5..], true).held(&shape, raw));
        assert!(!Terms::new(&["x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9"], true).held(&shape, raw));
    }

    #[test]
    fn a_filter_hides_most_of_what_is_not_there() {
        let mut grams = Grams::new();
        for i in 0..500 {
            grams.add(format!("{{\"user\":\"bob{i}\",\"ip\":\"10.0.{i}.1\"}}").as_bytes());
        }
        let filter = grams.take();
        assert!(filter.len() <= 16 << 10);
        let hit = (0..200).filter(|i| may_hold(&filter, &Term::new(&format!("alice-{i}-nowhere")))).count();
        assert!(hit < 4, "{hit}");
    }
}
