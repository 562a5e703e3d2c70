//! Reads dates and clock times in prose.

use casebook_protocol::Timestamp;
use jiff::civil;
use jiff::fmt::strtime::BrokenDownTime;
use jiff::tz::Offset;

use super::corpus::Corpus;

#[derive(Debug, Clone, PartialEq, Eq)]
struct Clock {
    /// 24-hour clock, such as `18:10:22.138`; seconds may be missing.
    text: String,
    /// Seconds east of UTC.
    offset: Option<i32>,
    date: Option<Date>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Date {
    year: Option<i16>,
    month: i8,
    day: i8,
}

/// Checks the date or time at the start of `words`. Returns what is wrong with it, and how many words it takes.
pub(super) fn fault(words: &[&str], corpus: &Corpus, times: &[Timestamp]) -> Option<(Option<String>, usize)> {
    if let Some((clock, used)) = clock(words) {
        let shown = words.get(..used).unwrap_or_default().join(" ");
        // In another zone, the same digits mean another moment.
        let written = clock.date.is_none() && clock.offset.unwrap_or(0) == 0 && corpus.has_clock(&clock.text);
        let full = || corpus.moments().iter().any(|t| clock.shows(*t));
        let found = times.iter().any(|t| clock.shows(*t)) || written || full();
        return Some(((!found).then(|| format!("the time {shown} does not occur in what is cited")), used));
    }
    let (date, used) = date(words)?;
    let shown = words.get(..used).unwrap_or_default().join(" ");
    // Without a zone beside the date, the day may be the one before or after.
    let offsets: Vec<i32> = words.iter().filter_map(|w| zone(w)).chain([0]).collect();
    let on = |t: &Timestamp| offsets.iter().any(|o| local(*t, *o).is_some_and(|local| date.is_of(local.date())));
    let found = times.iter().any(on) || corpus.has_token(&shown) || corpus.moments().iter().any(on);
    Some(((!found).then(|| format!("the date {shown} does not occur in what is cited")), used))
}

impl Clock {
    fn shows(&self, at: Timestamp) -> bool {
        local(at, self.offset.unwrap_or(0)).is_some_and(|local| {
            format!("{:.9}", local.time()).starts_with(&self.text)
                && self.date.is_none_or(|date| date.is_of(local.date()))
        })
    }
}

impl Date {
    fn is_of(self, date: civil::Date) -> bool {
        (self.month, self.day) == (date.month(), date.day()) && self.year.is_none_or(|year| year == date.year())
    }
}

fn local(at: Timestamp, offset: i32) -> Option<civil::DateTime> {
    Some(Offset::from_seconds(offset).ok()?.to_datetime(at))
}

fn clean(word: &str) -> &str {
    word.trim_end_matches([':', '.', '!', '?', '\'']).trim_start_matches('\'')
}

/// `18:10`, `18:10:22.138Z`, `6:10 pm UTC`, `20:10:22 UTC+2`, `2022-05-11T20:10:22+02:00`
fn clock(words: &[&str]) -> Option<(Clock, usize)> {
    let word = clean(words.first()?).to_lowercase();
    let (date, rest) = match word.split_once('t') {
        Some((day, rest)) => (Some(iso_date(day)?), rest),
        None => (None, word.as_str()),
    };
    let end = rest.find(|c: char| !(c.is_ascii_digit() || c == ':' || c == '.')).unwrap_or(rest.len());
    let (digits, tail) = rest.split_at(end);
    let mut clock = Clock { text: normalized(digits)?, offset: None, date };
    let mut used = 1;
    let next = |place: usize| words.get(place).map_or(String::new(), |w| clean(w).to_lowercase());
    let half = match (tail, next(1).as_str()) {
        ("am" | "pm", _) => Some(tail.to_owned()),
        ("", "am" | "pm" | "a.m" | "p.m") => {
            used += 1;
            Some(next(1).replace('.', ""))
        }
        ("", _) => None,
        _ => {
            clock.offset = Some(zone(tail)?);
            None
        }
    };
    if let Some(half) = half {
        clock.text = on_24_hours(&clock.text, half == "pm")?;
    }
    if clock.offset.is_none()
        && let Some(offset) = zone(&next(used))
    {
        clock.offset = Some(offset);
        used += 1;
    }
    Some((clock, used))
}

fn normalized(digits: &str) -> Option<String> {
    let mut parts = digits.split(':');
    let two = |p: &str| p.len() == 2 && p.bytes().all(|b| b.is_ascii_digit());
    let hour = parts.next().filter(|h| (1..=2).contains(&h.len()) && h.bytes().all(|b| b.is_ascii_digit()))?;
    let minute = parts.next().filter(|m| two(m))?;
    let mut text = format!("{hour:0>2}:{minute}");
    if let Some(second) = parts.next() {
        let (whole, part) = second.split_once('.').unwrap_or((second, ""));
        if !two(whole) || part.len() > 9 || !part.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        text = format!("{text}:{}", second.trim_end_matches('.'));
    }
    (parts.next().is_none() && hour.parse::<u32>().is_ok_and(|h| h < 24)).then_some(text)
}

fn on_24_hours(text: &str, afternoon: bool) -> Option<String> {
    let (hour, rest) = text.split_once(':')?;
    let hour: u32 = hour.parse().ok().filter(|h| (1..=12).contains(h))?;
    Some(format!("{:02}:{rest}", hour % 12 + if afternoon { 12 } else { 0 }))
}

/// Seconds east of UTC for `z`, `utc`, `+02:00`, `-0500`, `utc+2`, `gmt-5:30`.
fn zone(word: &str) -> Option<i32> {
    let word = clean(word).to_lowercase();
    let rest = word.strip_prefix("utc").or_else(|| word.strip_prefix("gmt")).unwrap_or(&word);
    match rest {
        "" | "z" => return (!word.is_empty()).then_some(0),
        _ => {}
    }
    let sign = match rest.chars().next()? {
        '+' => 1,
        '-' | '−' => -1,
        _ => return None,
    };
    let number = rest.get(rest.chars().next()?.len_utf8()..)?;
    let (hours, minutes) = match (number.split_once(':'), number.len()) {
        (Some(parts), _) => parts,
        (None, 4) => number.split_at_checked(2)?,
        (None, _) => (number, "0"),
    };
    let (hours, minutes): (i32, i32) = (hours.parse().ok()?, minutes.parse().ok()?);
    (hours <= 14 && minutes < 60).then_some(sign * (hours * 3600 + minutes * 60))
}

/// `2022-05-11`, `2022/05/11`, `11 May 2022`, `May 11 2022`, `11 May`, `May 11`
fn date(words: &[&str]) -> Option<(Date, usize)> {
    let at = |place: usize| words.get(place).map_or("", |w| clean(w));
    if let Some(date) = iso_date(at(0)) {
        return Some((date, 1));
    }
    let (month, day) = match (month(at(0)), month(at(1))) {
        (Some(month), _) => (month, day(at(1))?),
        (None, Some(month)) => (month, day(at(0))?),
        (None, None) => return None,
    };
    let year = at(2).parse::<i16>().ok().filter(|y| at(2).len() == 4 && (1970..2200).contains(y));
    Some((Date { year, month, day }, if year.is_some() { 3 } else { 2 }))
}

fn iso_date(word: &str) -> Option<Date> {
    let mut parts = word.split(['-', '/']);
    let mut next = |digits: usize| parts.next().filter(|p| p.len() == digits)?.parse::<i16>().ok();
    let (year, month, day) = (next(4)?, next(2)?.try_into().ok()?, next(2)?.try_into().ok()?);
    let sound = (1..=12).contains(&month) && (1..=31).contains(&day) && parts.next().is_none();
    sound.then_some(Date { year: Some(year), month, day })
}

fn month(word: &str) -> Option<i8> {
    ["%B", "%b"].into_iter().find_map(|name| BrokenDownTime::parse(name, word).ok()?.month())
}

fn day(word: &str) -> Option<i8> {
    let digits = ["st", "nd", "rd", "th"].iter().find_map(|end| word.strip_suffix(end)).unwrap_or(word);
    digits.parse().ok().filter(|d| (1..=31).contains(d) && digits.len() <= 2)
}
