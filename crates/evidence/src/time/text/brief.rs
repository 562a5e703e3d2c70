//! Dates without separators or without a year.

use casebook_protocol::Precision;

use super::{Clock, Cursor, Moment, moment};

/// `20230905T095838Z`, `20230905095838`, or the date followed by a usual clock time.
pub(super) fn compact(text: &str) -> Option<(Moment, usize)> {
    let digits = |from: usize, to: usize| text.get(from..to)?.parse::<i16>().ok();
    let date = (digits(0, 4)?, digits(4, 6)?, digits(6, 8)?);
    if matches!(text.as_bytes().get(8)?, b'-' | b'_' | b' ') {
        return compact_date(text, date);
    }
    let t = usize::from(text.as_bytes().get(8)? == &b'T');
    let (hour, minute, second) = (digits(8 + t, 10 + t)?, digits(10 + t, 12 + t)?, digits(12 + t, 14 + t)?);
    if !(1990..=2100).contains(&date.0) {
        return None;
    }
    let clock = Clock { hour, minute, second, nanos: 0, precision: Precision::Second };
    let mut c = Cursor::new(text);
    c.at = 14 + t;
    let zone = c.zone();
    c.done().then(|| moment(date, Some(&clock), zone, true)).flatten().map(|m| (m, c.at))
}

/// `20171223-22:15:29:606`
fn compact_date(text: &str, date: (i16, i16, i16)) -> Option<(Moment, usize)> {
    let mut c = Cursor::new(text);
    c.at = 9;
    let clock = c.clock().filter(|clock| (1990..=2100).contains(&date.0) && clock.precision != Precision::Minute)?;
    let zone = c.zone();
    c.done().then(|| moment(date, Some(&clock), zone, true)).flatten().map(|m| (m, c.at))
}

/// Month and day before a clock time: `12/28-12:55:38.765402` (Snort), `01-02 01:02:04.156` (Android), `I1231
/// 23:59:59.000001` (Google, Kubernetes), `10.30 16:49:06` (Proxifier).
pub(super) fn yearless(text: &str, day_first: bool) -> Option<(Moment, usize)> {
    let mut c = Cursor::new(text);
    let letter = c.eat(|b| matches!(b, b'I' | b'W' | b'E' | b'F'));
    let mut whole = false;
    let (month, day) = if letter {
        let digits = c.number(4, 4)?;
        (digits / 100, digits % 100)
    } else {
        let first = c.number(2, 2)?;
        let mark = c.peek().filter(|b| matches!(b, b'/' | b'-' | b'.'))?;
        whole = mark == b'.';
        c.at += 1;
        let second = c.number(2, 2)?;
        if c.peek() != Some(if mark == b'/' { b'-' } else { b' ' }) {
            return None;
        }
        if whole && (day_first || first > 12) { (second, first) } else { (first, second) }
    };
    if !c.eat(|b| b == b' ' || b == b'-') {
        return None;
    }
    // Require a fraction, because it may be a range of numbers.
    let clock = c
        .clock()
        .filter(|clock| clock.precision < Precision::Second || whole && clock.precision == Precision::Second)?;
    c.done().then(|| moment((2000, month, day), Some(&clock), None, false)).flatten().map(|m| (m, c.at))
}
