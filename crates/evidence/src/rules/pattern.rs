//! What Sigma has no word for: even intervals, places that are too far apart, and silence. Pure functions over hits in
//! the order of time.

use casebook_protocol::HostCoverage;
use casebook_protocol::coverage::{OTHER_HOSTS, same_host};

const SECOND: i64 = 1_000_000_000;
/// Records of an even series that are compared, the newest.
pub(super) const SERIES: usize = 64;
/// The middle interval of an even series, in seconds.
const INTERVAL: [i64; 2] = [5, 3 * 3600];
/// Records closer than this are of one event, in nanoseconds.
const TOGETHER: i64 = SECOND / 5;
/// Kilometres an hour of an airliner, and the least distance that a place is exact to.
const SPEED: f64 = 1000.0;
const DISTANCE: f64 = 300.0;
const EARTH: f64 = 6371.0;
/// A restart is over after this time.
const GRACE: i64 = 60 * SECOND;
/// Silence is at least this long, and this many mean intervals of the log.
const SILENCE: i64 = 600 * SECOND;
const INTERVALS: i64 = 20;
/// With fewer records a log has no rhythm.
const RECORDS: u64 = 20;

/// Whether four of five intervals differ from the middle one by at most a tenth.
pub(super) fn even(times: impl Iterator<Item = i64>) -> bool {
    let mut last = None;
    let mut intervals = Vec::new();
    for time in times {
        let interval = last.map(|last: i64| time.saturating_sub(last));
        if interval.is_some_and(|interval| interval < TOGETHER) {
            continue;
        }
        intervals.extend(interval);
        last = Some(time);
    }
    let many = intervals.len();
    if many < 8 {
        return false;
    }
    let (_, middle, _) = intervals.select_nth_unstable(many / 2);
    let middle = *middle;
    let near = |interval: &&i64| (**interval - middle).abs() <= (middle / 10).max(SECOND);
    (INTERVAL[0] * SECOND..=INTERVAL[1] * SECOND).contains(&middle)
        && intervals.iter().filter(near).count() * 5 >= many * 4
}

/// A place as latitude and longitude in degrees, and the time of the sign-in, in nanoseconds.
pub(super) type Stay = (f64, f64, i64);

/// None if the text holds no such place. `0, 0` is what products write if they do not know it.
pub(super) fn stay(values: &str, time: i64) -> Option<Stay> {
    let mut numbers = values.split('\u{1f}').map(|text| text.trim().parse::<f64>());
    let (Some(Ok(latitude)), Some(Ok(longitude))) = (numbers.next(), numbers.next()) else { return None };
    let known = latitude.abs() <= 90.0 && longitude.abs() <= 180.0 && (latitude != 0.0 || longitude != 0.0);
    known.then_some((latitude, longitude, time))
}

/// Whether no traveller gets from one place to the other in the time between.
pub(super) fn too_far(one: Stay, other: Stay) -> bool {
    let [(a, b), (c, d)] = [one, other].map(|(lat, lon, _)| (lat.to_radians(), lon.to_radians()));
    let half = ((c - a) / 2.0).sin().powi(2) + a.cos() * c.cos() * ((d - b) / 2.0).sin().powi(2);
    let distance = 2.0 * EARTH * half.sqrt().min(1.0).asin();
    #[allow(clippy::cast_precision_loss, reason = "hours need no nanoseconds")]
    let hours = one.2.abs_diff(other.2) as f64 / (3600.0 * SECOND as f64);
    distance >= DISTANCE && distance > SPEED * hours
}

/// A log after which a service was stopped.
pub(crate) struct Stopped<'s> {
    /// When the service was stopped, in nanoseconds.
    pub(crate) at: i64,
    /// The host that the record names; may be empty.
    pub(crate) host: &'s str,
    pub(crate) coverage: &'s [HostCoverage],
    /// The latest record of other logs, or of other hosts in this log.
    pub(crate) others: Option<i64>,
}

impl Stopped<'_> {
    fn own(&self) -> Option<&HostCoverage> {
        match self.coverage {
            [only] => Some(only),
            all => {
                all.iter().find(|one| !matches!(one.host.as_str(), "" | OTHER_HOSTS) && same_host(&one.host, self.host))
            }
        }
    }

    /// Whether the log is silent afterwards while others go on. `next` finds the first record of the whole log after a
    /// time.
    pub(crate) fn silent<E>(&self, next: impl FnOnce(i64) -> Result<Option<i64>, E>) -> Result<bool, E> {
        let time = |at: Option<casebook_protocol::Timestamp>| at.and_then(|at| i64::try_from(at.as_nanosecond()).ok());
        let Some(own) = self.own().filter(|own| own.records >= RECORDS) else { return Ok(false) };
        let (Some(first), Some(last)) = (time(own.first), time(own.last)) else { return Ok(false) };
        let records = i64::try_from(own.records).unwrap_or(i64::MAX);
        let mean = last.min(self.at).saturating_sub(first) / records;
        let wanted = mean.saturating_mul(INTERVALS).max(SILENCE);
        if self.others.is_none_or(|others| others.saturating_sub(self.at) < wanted) {
            return Ok(false);
        }
        let after = self.at.saturating_add(GRACE);
        if last <= after {
            return Ok(true);
        }
        // The times of one host among several are not known one by one.
        let alone = self.coverage.len() == 1;
        Ok(alone && next(after)?.is_none_or(|next| next.saturating_sub(self.at) >= wanted))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_even_if_nearly_all_are_alike() {
        let series = |step: fn(i64) -> i64| even((0..40).map(step));
        assert!(series(|n| n * 60 * SECOND));
        assert!(series(|n| (n * 60 + n % 3) * SECOND), "a little jitter");
        assert!(series(|n| (n / 2) * 60 * SECOND), "two records of each");
        assert!(!series(|n| n * n * SECOND), "slower and slower");
        assert!(!series(|n| n * SECOND), "a stream");
        assert!(!series(|n| n * 86_400 * SECOND), "once a day");
        assert!(!even((0..6).map(|n| n * 60 * SECOND)), "too few");
    }

    #[test]
    fn travel_is_impossible_if_no_airliner_could_make_it() {
        let hours = |hours: i64| hours * 3600 * SECOND;
        let (paris, tokyo, lille) = ((48.85, 2.35, 0), (35.68, 139.69), (50.63, 3.06));
        let tokyo = |h| (tokyo.0, tokyo.1, hours(h));
        assert!(too_far(paris, tokyo(2)) && too_far(tokyo(2), paris));
        assert!(!too_far(paris, tokyo(12)));
        assert!(!too_far(paris, (lille.0, lille.1, 0)), "places are not that exact");
        assert_eq!(stay("48.85\u{1f}2.35", 7), Some((48.85, 2.35, 7)));
        for unknown in ["0\u{1f}0", "", "91\u{1f}0", "48.85", "here\u{1f}there"] {
            assert_eq!(stay(unknown, 0), None, "{unknown}");
        }
    }
}
