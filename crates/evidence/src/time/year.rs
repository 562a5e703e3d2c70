//! Chooses the year of a log without years.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

const DAY: i64 = 86_400 * 1_000_000_000;

fn civil(ns: i64) -> Option<DateTime> {
    Some(Timestamp::from_nanosecond(ns.into()).ok()?.to_zoned(TimeZone::UTC).datetime())
}

/// None for 29 February if the year has none.
pub(crate) fn in_year(ns: i64, year: i16) -> Option<i64> {
    let moved = civil(ns)?.with().year(year).build().ok()?;
    i64::try_from(moved.to_zoned(TimeZone::UTC).ok()?.timestamp().as_nanosecond()).ok()
}

pub(crate) fn of(ns: i64) -> Option<i16> {
    civil(ns).map(DateTime::year)
}

fn month(ns: i64) -> Option<i8> {
    civil(ns).map(DateTime::month)
}

/// The year of the first record. `first` and `last` are the first and last time of the file, in the year 2000.
/// The log should be as near as possible to the period `near`.
pub(crate) fn of_first(first: i64, last: i64, near: (i64, i64)) -> Option<i16> {
    let middle = civil(near.0 / 2 + near.1 / 2)?.year();
    let turn = turn_between(month(first)?, month(last)?);
    (middle - 2..=middle + 2).min_by_key(|year| {
        let (from, to) = (in_year(first, *year), in_year(last, *year + turn));
        let (Some(a), Some(b)) = (from, to) else { return i64::MAX };
        let (from, to) = (a.min(b), a.max(b));
        if from > near.1 { from - near.1 } else { (near.0 - to).max(0) }
    })
}

/// The period before the modification of a file: logs are not written after it.
pub(crate) fn before_change(mtime: i64) -> (i64, i64) {
    (mtime - 180 * DAY, mtime + DAY)
}

fn turn_between(from: i8, to: i8) -> i16 {
    match to - from {
        ..=-7 => 1,
        // Newest first. Logs are rarely written this way, so require a larger gap.
        10.. => -1,
        _ => 0,
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Years {
    base: i16,
    year: i16,
    month: Option<i8>,
}

impl Years {
    pub(crate) const fn starting(year: i16) -> Self {
        Self { base: year, year, month: None }
    }

    /// The time with its year. January after December starts a new year.
    pub(crate) fn date(&mut self, ns: i64) -> Option<i64> {
        let now = month(ns)?;
        if let Some(before) = self.month {
            // Limit the change, because lines may be in no order.
            let turned = self.year.saturating_add(turn_between(before, now));
            self.year = turned.clamp(self.base - 10, self.base + 10);
        }
        self.month = Some(now);
        in_year(ns, self.year)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::text::{Reading, parse};

    fn at(text: &str) -> i64 {
        parse(text, Reading::default()).unwrap().ns
    }

    #[test]
    fn the_year_lies_near_what_is_known() {
        let near = (at("2023-12-30T00:00:00Z"), at("2024-01-02T00:00:00Z"));
        assert_eq!(of_first(at("Dec 31 23:00:00"), at("Jan  1 01:00:00"), near), Some(2023));
        assert_eq!(of_first(at("Jan  1 01:00:00"), at("Jan  1 02:00:00"), near), Some(2024));
        assert_eq!(of_first(at("Dec  1 01:00:00"), at("Dec 31 02:00:00"), near), Some(2023));
    }

    #[test]
    fn december_before_january_turns_the_year() {
        let mut years = Years::starting(2023);
        let dates: Vec<_> = ["Dec 31 23:59:59", "Jan  1 00:00:01", "Dec 31 23:59:59"]
            .iter()
            .map(|t| Timestamp::from_nanosecond(years.date(at(t)).unwrap().into()).unwrap().to_string())
            .collect();
        assert_eq!(dates, ["2023-12-31T23:59:59Z", "2024-01-01T00:00:01Z", "2023-12-31T23:59:59Z"]);
    }
}
