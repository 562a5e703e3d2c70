//! Flattens JSON while reading. Unlike a parser into a tree, it keeps the exact text of numbers, repeated keys,
//! and the fields before a syntax error.

use std::borrow::Cow;

use memchr::memchr2;

const DEPTH_MAX: usize = 48;
/// In bytes.
const PATH_MAX: usize = 400;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Whole,
    /// Not JSON from some byte on. The sink got the fields before it.
    Broken,
}

/// Gives path and value of every leaf to `sink`. Nulls, empty arrays and empty objects have no leaf. Control
/// characters inside strings are accepted.
pub(crate) fn flatten(text: &str, prefix: &str, sink: &mut dyn FnMut(&str, Cow<'_, str>)) -> Outcome {
    let mut walk = Walk { text, at: 0, path: prefix.to_owned(), sink };
    let whole = walk.value(0).is_some() && {
        walk.blanks();
        walk.at == text.len()
    };
    if whole { Outcome::Whole } else { Outcome::Broken }
}

pub(crate) fn is_object(text: &str) -> bool {
    text.trim_start().starts_with('{') && flatten(text, "", &mut |_, _| {}) == Outcome::Whole
}

struct Walk<'t, 's> {
    text: &'t str,
    at: usize,
    path: String,
    sink: &'s mut dyn FnMut(&str, Cow<'_, str>),
}

impl<'t> Walk<'t, '_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    fn eat(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.at += 1)
    }

    fn emit(&mut self, value: Cow<'_, str>) {
        (self.sink)(&self.path, value);
    }

    fn value(&mut self, depth: usize) -> Option<()> {
        self.blanks();
        match self.peek()? {
            b'{' | b'[' if depth >= DEPTH_MAX => {
                let start = self.at;
                self.skip_deep()?;
                let text = self.text.get(start..self.at)?;
                self.emit(Cow::Borrowed(text));
                Some(())
            }
            b'{' => self.object(depth),
            b'[' => self.array(depth),
            b'"' => {
                let text = self.string()?;
                self.emit(text);
                Some(())
            }
            _ => self.word(),
        }
    }

    fn object(&mut self, depth: usize) -> Option<()> {
        self.eat(b'{')?;
        self.blanks();
        if self.eat(b'}').is_some() {
            return Some(());
        }
        loop {
            self.blanks();
            let key = self.string()?;
            self.blanks();
            self.eat(b':')?;
            let mark = self.push(&key);
            let read = self.value(depth + 1);
            self.path.truncate(mark);
            read?;
            self.blanks();
            if self.eat(b',').is_none() {
                return self.eat(b'}');
            }
        }
    }

    fn array(&mut self, depth: usize) -> Option<()> {
        self.eat(b'[')?;
        self.blanks();
        if self.eat(b']').is_some() {
            return Some(());
        }
        for index in 0usize.. {
            let mark = self.push(&index.to_string());
            let read = self.value(depth + 1);
            self.path.truncate(mark);
            read?;
            self.blanks();
            if self.eat(b',').is_none() {
                return self.eat(b']');
            }
        }
        None
    }

    /// Appends a segment and returns the previous length of the path.
    fn push(&mut self, segment: &str) -> usize {
        let mark = self.path.len();
        if mark > 0 {
            self.path.push('.');
        }
        let room = PATH_MAX.saturating_sub(mark);
        let mut end = segment.len().min(room);
        while !segment.is_char_boundary(end) {
            end -= 1;
        }
        self.path.push_str(segment.get(..end).unwrap_or_default());
        mark
    }

    fn word(&mut self) -> Option<()> {
        let start = self.at;
        while self.peek().is_some_and(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.')) {
            self.at += 1;
        }
        let word = self.text.get(start..self.at)?;
        match word {
            "null" => return Some(()),
            "true" | "false" | "NaN" | "Infinity" | "-Infinity" => {}
            _ if is_number(word) => {}
            _ => {
                self.at = start;
                return None;
            }
        }
        self.emit(Cow::Borrowed(word));
        Some(())
    }

    fn string(&mut self) -> Option<Cow<'t, str>> {
        self.eat(b'"')?;
        let start = self.at;
        let mut owned: Option<String> = None;
        let mut from = start;
        loop {
            let rest = self.text.as_bytes().get(self.at..)?;
            self.at += memchr2(b'"', b'\\', rest)?;
            let text = self.text.get(from..self.at)?;
            if self.peek()? == b'"' {
                self.at += 1;
                return Some(match owned {
                    None => Cow::Borrowed(text),
                    Some(mut all) => {
                        all.push_str(text);
                        Cow::Owned(all)
                    }
                });
            }
            let all = owned.get_or_insert_with(super::spare);
            all.push_str(text);
            self.at += unescape(self.text.get(self.at..)?, all)?;
            from = self.at;
        }
    }

    /// Skips a value without recursion, so that deep nesting cannot exhaust the stack.
    fn skip_deep(&mut self) -> Option<()> {
        let mut open = 0usize;
        loop {
            match self.peek()? {
                b'"' => {
                    self.string()?;
                    continue;
                }
                b'{' | b'[' => open += 1,
                b'}' | b']' => open = open.checked_sub(1)?,
                _ => {}
            }
            self.at += 1;
            if open == 0 {
                return Some(());
            }
        }
    }
}

/// Appends the decoded escape and returns its length. None if it is not a JSON escape.
pub(crate) fn unescape(text: &str, out: &mut String) -> Option<usize> {
    let plain = match text.as_bytes().get(1)? {
        b'"' => '"',
        b'\\' => '\\',
        b'/' => '/',
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'u' => {
            let high = hex4(text.get(2..6)?)?;
            let low = text.get(6..12).and_then(|t| t.strip_prefix("\\u")).and_then(hex4);
            if (0xd800..0xdc00).contains(&high)
                && let Some(low) = low.filter(|low| (0xdc00..0xe000).contains(low))
            {
                let code = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
                out.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
                return Some(12);
            }
            out.push(char::from_u32(high).unwrap_or(char::REPLACEMENT_CHARACTER));
            return Some(6);
        }
        _ => return None,
    };
    out.push(plain);
    Some(2)
}

fn hex4(digits: &str) -> Option<u32> {
    let hex = digits.bytes().all(|b| b.is_ascii_hexdigit());
    if hex { u32::from_str_radix(digits, 16).ok() } else { None }
}

pub(crate) fn is_number(word: &str) -> bool {
    let digits = |t: &str| !t.is_empty() && t.bytes().all(|b| b.is_ascii_digit());
    if digits(word) {
        return true;
    }
    let word = word.strip_prefix('-').unwrap_or(word);
    if !word.starts_with(|first: char| first.is_ascii_digit()) {
        return false;
    }
    let (mantissa, exponent) = match word.split_once(['e', 'E']) {
        Some((m, e)) => (m, Some(e.strip_prefix(['+', '-']).unwrap_or(e))),
        None => (word, None),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((w, f)) => (w, Some(f)),
        None => (mantissa, None),
    };
    digits(whole) && fraction.is_none_or(digits) && exponent.is_none_or(digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nesting_without_end_is_bounded() {
        let deep = format!("{}1{}", "[".repeat(200_000), "]".repeat(200_000));
        let mut values = Vec::new();
        let outcome = flatten(&deep, "", &mut |_, v| values.push(v.len()));
        assert_eq!(outcome, Outcome::Whole);
        assert_eq!(values, [2 * (200_000 - DEPTH_MAX) + 1]);
        assert_eq!(flatten(&"{\"a\":".repeat(200_000), "", &mut |_, _| {}), Outcome::Broken);
    }
}
