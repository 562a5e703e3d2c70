use casebook_protocol::Precision;
use jiff::civil::DateTime;
use jiff::tz::Offset;

use super::epoch::{epoch, fraction_ns, of_digits};

mod brief;

use brief::{compact, yearless};

const NANOS: i64 = 1_000_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Moment {
    /// Nanoseconds since 1970 UTC. Without a zone, read as UTC.
    pub(crate) ns: i64,
    pub(crate) precision: Precision,
    /// It has a zone or counts from an epoch.
    pub(crate) zoned: bool,
    /// It has a year. Without one, `ns` is in 2000, a leap year in which every day exists.
    pub(crate) dated: bool,
}

/// How to read ambiguous numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Reading {
    /// `05/09/2023` is 5 September.
    pub(crate) day_first: bool,
    /// A number may count from an epoch.
    pub(crate) numbers: bool,
}

/// The whole text must be a time.
pub(crate) fn parse(text: &str, reading: Reading) -> Option<Moment> {
    let text = text.trim().trim_matches(|c| matches!(c, '[' | ']' | '"'));
    if !(8..=48).contains(&text.len()) {
        return None;
    }
    if let Some(inner) = text.strip_prefix("/Date(").and_then(|t| t.strip_suffix(")/")) {
        return epoch(inner);
    }
    if let Some((moment, used)) = prefix(text, reading)
        && used == text.len()
    {
        return Some(moment);
    }
    if reading.numbers { epoch(text) } else { None }
}

/// The time at the start of `text`, and its length in bytes.
pub(crate) fn prefix(text: &str, reading: Reading) -> Option<(Moment, usize)> {
    let first = *text.as_bytes().first()?;
    if !first.is_ascii_alphanumeric() {
        return None;
    }
    iso(text)
        .or_else(|| slashed(text, reading.day_first))
        .or_else(|| yearless(text, reading.day_first))
        .or_else(|| named(text))
}

struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    const fn new(text: &'a str) -> Self {
        Self { bytes: text.as_bytes(), at: 0 }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn eat(&mut self, wanted: impl Fn(u8) -> bool) -> bool {
        let hit = self.peek().is_some_and(wanted);
        self.at += usize::from(hit);
        hit
    }

    fn number(&mut self, min: usize, max: usize) -> Option<i16> {
        let start = self.at;
        let mut value: i16 = 0;
        while self.at - start < max
            && let Some(b) = self.peek().filter(u8::is_ascii_digit)
        {
            value = value.checked_mul(10)?.checked_add(i16::from(b - b'0'))?;
            self.at += 1;
        }
        let more = self.peek().is_some_and(|b| b.is_ascii_digit());
        (self.at - start >= min && !more).then_some(value)
    }

    fn word(&mut self) -> &'a str {
        let start = self.at;
        while self.eat(|b| b.is_ascii_alphabetic()) {}
        self.bytes.get(start..self.at).and_then(|b| std::str::from_utf8(b).ok()).unwrap_or_default()
    }

    /// `HH:MM[:SS[.fraction]][ AM]`; some programs write a colon before milliseconds.
    fn clock(&mut self) -> Option<Clock> {
        let mut hour = self.number(1, 2)?;
        if !self.eat(|b| b == b':') {
            return None;
        }
        let minute = self.number(2, 2)?;
        let mut clock = Clock { hour: 0, minute, second: 0, nanos: 0, precision: Precision::Minute };
        if self.eat(|b| b == b':') {
            clock.second = self.number(2, 2)?;
            clock.precision = Precision::Second;
            let mark = self.at;
            let colon = self.peek() == Some(b':') && self.milliseconds();
            if colon || self.eat(|b| b == b'.' || b == b',') {
                let start = self.at;
                while self.eat(|b| b.is_ascii_digit()) {}
                let digits = self.bytes.get(start..self.at).unwrap_or_default();
                if digits.is_empty() {
                    self.at = mark;
                } else {
                    let digits = std::str::from_utf8(digits).ok()?;
                    clock.nanos = i32::try_from(fraction_ns(digits)).ok()?;
                    clock.precision = of_digits(digits.len());
                }
            }
        }
        let mark = self.at;
        let _ = self.eat(|b| b == b' ');
        match self.word() {
            half if half.eq_ignore_ascii_case("AM") => hour = if hour == 12 { 0 } else { hour },
            half if half.eq_ignore_ascii_case("PM") => hour = if hour < 12 { hour + 12 } else { hour },
            _ => self.at = mark,
        }
        clock.hour = hour;
        Some(clock)
    }

    /// Accepts a colon if exactly three digits follow.
    fn milliseconds(&mut self) -> bool {
        let digits =
            self.bytes.get(self.at + 1..).unwrap_or_default().iter().take_while(|b| b.is_ascii_digit()).count();
        self.at += usize::from(digits == 3);
        digits == 3
    }

    /// `Z`, `UTC`, `+02:00`, `-0700`, maybe after a blank. Seconds east of UTC.
    fn zone(&mut self) -> Option<i64> {
        let mark = self.at;
        let blank = self.eat(|b| b == b' ');
        let found = match self.peek() {
            Some(b'+' | b'-') => self.offset(),
            Some(b'Z' | b'z' | b'U' | b'G') => {
                let word = self.word();
                let utc = (matches!(word, "Z" | "z") && !blank) || matches!(word, "UTC" | "GMT");
                utc.then_some(0)
            }
            _ => None,
        };
        if found.is_none() {
            self.at = mark;
        }
        found
    }

    fn offset(&mut self) -> Option<i64> {
        let sign = if self.peek()? == b'-' { -1 } else { 1 };
        self.at += 1;
        let start = self.at;
        while self.eat(|b| b.is_ascii_digit()) {}
        let digits = std::str::from_utf8(self.bytes.get(start..self.at)?).ok()?;
        let (hours, minutes) = match digits.len() {
            2 => (digits, if self.eat(|b| b == b':') { self.number(2, 2)? } else { 0 }),
            4 => (digits.get(..2)?, digits.get(2..)?.parse().ok()?),
            _ => return None,
        };
        let hours: i64 = hours.parse().ok()?;
        (hours <= 15 && minutes < 60).then(|| sign * (hours * 3600 + i64::from(minutes) * 60))
    }

    /// A time must end at a word boundary: `2024-01-01abc` is not a time.
    fn done(&self) -> bool {
        !self.peek().is_some_and(|b| b.is_ascii_alphanumeric())
    }
}

struct Clock {
    hour: i16,
    minute: i16,
    second: i16,
    nanos: i32,
    precision: Precision,
}

fn moment(date: (i16, i16, i16), clock: Option<&Clock>, zone: Option<i64>, dated: bool) -> Option<Moment> {
    let (year, month, day) = date;
    let midnight = Clock { hour: 0, minute: 0, second: 0, nanos: 0, precision: Precision::Day };
    let clock = clock.unwrap_or(&midnight);
    // Shows a leap second as the second before it.
    let second = clock.second.min(59);
    if !(0..=60).contains(&clock.second) {
        return None;
    }
    let civil = DateTime::new(
        year,
        i8::try_from(month).ok()?,
        i8::try_from(day).ok()?,
        i8::try_from(clock.hour).ok()?,
        i8::try_from(clock.minute).ok()?,
        i8::try_from(second).ok()?,
        clock.nanos,
    )
    .ok()?;
    let ns = Offset::UTC.to_timestamp(civil).ok()?.as_nanosecond();
    let ns = i64::try_from(ns).ok()?.checked_sub(zone.unwrap_or(0).checked_mul(NANOS)?)?;
    Some(Moment { ns, precision: clock.precision, zoned: zone.is_some(), dated })
}

/// `2023-09-05T09:58:38.132Z` and variants: `2023/09/05 09:58`, `20230905T095838Z`.
fn iso(text: &str) -> Option<(Moment, usize)> {
    let mut c = Cursor::new(text);
    if !text.as_bytes().get(..4)?.iter().all(u8::is_ascii_digit) {
        return None;
    }
    if text.as_bytes().get(4)?.is_ascii_digit() {
        return compact(text);
    }
    let year = c.number(4, 4)?;
    if !(1970..=2200).contains(&year) || !c.eat(|b| b == b'-' || b == b'/') {
        return None;
    }
    let month = c.number(1, 2)?;
    if !c.eat(|b| b == b'-' || b == b'/') {
        return None;
    }
    let day = c.number(1, 2)?;
    let date = (year, month, day);
    let mark = c.at;
    let dash = c.peek() == Some(b'-');
    if c.eat(|b| matches!(b, b'T' | b't' | b' ' | b'_' | b',' | b'-'))
        && {
            let _ = c.eat(|b| b == b' ');
            true
        }
        && let Some(clock) = c.clock()
        // A date alone may have a zone: `2024-01-01-05:00`.
        && (!dash || clock.precision != Precision::Minute)
    {
        let zone = c.zone();
        return c.done().then(|| moment(date, Some(&clock), zone, true)).flatten().map(|m| (m, c.at));
    }
    c.at = mark;
    c.done().then(|| moment(date, None, None, true)).flatten().map(|m| (m, c.at))
}

/// `9/5/2023, 10:00:50.336 AM` and `05/09/2023 10:00`.
fn slashed(text: &str, day_first: bool) -> Option<(Moment, usize)> {
    let mut c = Cursor::new(text);
    let first = c.number(1, 2)?;
    let mark = c.peek()?;
    if !matches!(mark, b'/' | b'.' | b'-') {
        return None;
    }
    c.at += 1;
    let second = c.number(1, 2)?;
    if !c.eat(|b| b == mark) {
        return None;
    }
    let year = c.number(2, 4)?;
    let year = if year < 100 { 2000 + year } else { year };
    let swap = day_first || mark == b'.' || first > 12;
    let (month, day) = if swap { (second, first) } else { (first, second) };
    let mark = c.at;
    if c.eat(|b| b == b',' || b == b' ' || b == b'-') {
        let _ = c.eat(|b| b == b' ');
        if let Some(clock) = c.clock() {
            let zone = c.zone();
            let found = moment((year, month, day), Some(&clock), zone, true);
            return if c.done() { found.map(|m| (m, c.at)) } else { None };
        }
    }
    c.at = mark;
    // Without a four-digit year, it may be a version or a fraction.
    let plausible = (1990..=2100).contains(&year) && c.done();
    plausible.then(|| moment((year, month, day), None, None, true)).flatten().map(|m| (m, c.at))
}

fn month_of(word: &str) -> Option<i16> {
    const NAMES: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    let short = word.get(..3)?;
    let month = NAMES.iter().position(|name| short.eq_ignore_ascii_case(name))?;
    let full = word.len() == 3
        || [
            "january",
            "february",
            "march",
            "april",
            "june",
            "july",
            "august",
            "september",
            "sept",
            "october",
            "november",
            "december",
        ]
        .iter()
        .any(|name| word.eq_ignore_ascii_case(name));
    full.then(|| i16::try_from(month + 1).ok()).flatten()
}

fn is_weekday(word: &str) -> bool {
    [
        "mon",
        "tue",
        "wed",
        "thu",
        "fri",
        "sat",
        "sun",
        "monday",
        "tuesday",
        "wednesday",
        "thursday",
        "friday",
        "saturday",
        "sunday",
    ]
    .iter()
    .any(|name| word.eq_ignore_ascii_case(name))
}

/// With a month name: `Oct 10 13:55:36`, `10/Oct/2000:13:55:36 -0700`, RFC 2822, ctime.
fn named(text: &str) -> Option<(Moment, usize)> {
    let mut c = Cursor::new(text);
    let (mut month, mut day, mut year, mut clock, mut zone) = (None, None, None, None, None);
    let mut end = 0;
    loop {
        let start = c.at;
        match c.peek() {
            Some(b) if b.is_ascii_alphabetic() => {
                let word = c.word();
                let named = if month.is_none() { month_of(word) } else { None };
                if named.is_some() {
                    month = named;
                } else if !(is_weekday(word) && month.is_none() && clock.is_none()) {
                    break;
                }
            }
            Some(b) if b.is_ascii_digit() => {
                if clock.is_none()
                    && let Some(found) = c.clock()
                {
                    clock = Some(found);
                    zone = c.zone();
                } else {
                    c.at = start;
                    let Some(number) = c.number(1, 4) else { break };
                    let width = c.at - start;
                    if width == 4 && year.is_none() && (1970..=2200).contains(&number) {
                        year = Some(number);
                    } else if width <= 2 && day.is_none() {
                        day = Some(number);
                    } else {
                        break;
                    }
                }
            }
            _ => break,
        }
        if !c.done() {
            break;
        }
        end = c.at;
        if !c.eat(|b| matches!(b, b' ' | b',' | b'/' | b'-' | b':')) {
            break;
        }
        while c.eat(|b| b == b' ') {}
        if month.is_some() && day.is_some() && clock.is_some() && year.is_some() {
            break;
        }
    }
    let clock = clock?;
    let date = (year.unwrap_or(2000), month?, day?);
    moment(date, Some(&clock), zone, year.is_some()).map(|m| (m, end))
}

#[cfg(test)]
mod tests;
