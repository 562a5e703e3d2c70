//! The time zone in which times are shown. UTC unless a person chose another.

use casebook_protocol::{EventTime, Precision, Timestamp};
use jiff::civil::Date;
use jiff::tz::TimeZone;

#[derive(Debug, Clone)]
pub struct Zone {
    zone: TimeZone,
    /// As in the cookie and in links: `UTC`, or a name of the IANA database.
    pub name: String,
}

impl Default for Zone {
    fn default() -> Self {
        Self { zone: TimeZone::UTC, name: "UTC".to_owned() }
    }
}

impl Zone {
    /// None for a name that the database does not have.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        if name.eq_ignore_ascii_case("utc") {
            return Some(Self::default());
        }
        let zone = TimeZone::get(name).ok()?;
        let name = zone.iana_name()?.to_owned();
        Some(Self { zone, name })
    }

    fn write(&self, at: Timestamp, format: &str) -> String {
        at.to_zoned(self.zone.clone()).strftime(format).to_string()
    }

    /// `Z`, or the offset from UTC at this moment.
    fn suffix(&self, at: Timestamp) -> String {
        if self.name == "UTC" { "Z".to_owned() } else { self.write(at, " %:z") }
    }

    #[must_use]
    pub fn second(&self, at: Timestamp) -> String {
        self.write(at, "%Y-%m-%d %H:%M:%S") + &self.suffix(at)
    }

    #[must_use]
    pub fn clock(&self, at: Timestamp) -> String {
        self.write(at, "%H:%M:%S")
    }

    #[must_use]
    pub fn minute(&self, at: Timestamp) -> String {
        self.write(at, "%b %-d, %H:%M")
    }

    #[must_use]
    pub fn date(&self, at: Timestamp) -> Date {
        self.zone.to_datetime(at).date()
    }

    #[must_use]
    pub fn day(&self, at: Timestamp) -> String {
        self.write(at, "%Y-%m-%d")
    }

    /// A time as exactly as it is known.
    #[must_use]
    pub fn moment(&self, time: &EventTime) -> String {
        let format = match time.precision {
            Precision::Nanosecond => "%Y-%m-%d %H:%M:%S%.9f",
            Precision::Microsecond => "%Y-%m-%d %H:%M:%S%.6f",
            Precision::Millisecond => "%Y-%m-%d %H:%M:%S%.3f",
            Precision::Second => "%Y-%m-%d %H:%M:%S",
            Precision::Minute => "%Y-%m-%d %H:%M",
            Precision::Day => return casebook_report::words::moment(time),
        };
        let one = |at| self.write(at, format) + &self.suffix(at);
        match time.until {
            Some(until) => format!("{} to {}", one(time.at), one(until)),
            None => one(time.at),
        }
    }
}

/// `14 m`, `2 h 5 m`, `3 d`.
#[must_use]
pub fn age(time: std::time::Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0 => format!("{} ms", time.as_millis()),
        1..60 => format!("{seconds} s"),
        60..3600 => format!("{} m", seconds / 60),
        3600..86_400 => format!("{} h {} m", seconds / 3600, seconds % 3600 / 60),
        86_400..31_536_000 => format!("{} d", seconds / 86_400),
        _ => format!("{:.1} y", seconds as f64 / 31_536_000.0),
    }
}

#[must_use]
pub fn bytes(count: u64) -> String {
    match count {
        0..1_000 => format!("{count} B"),
        1_000..1_000_000 => format!("{:.1} kB", count as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", count as f64 / 1e6),
        _ => format!("{:.1} GB", count as f64 / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_names_its_zone_also_across_a_change_of_clocks() {
        let berlin = Zone::named("Europe/Berlin").unwrap();
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        assert_eq!(berlin.second(at("2026-03-29T00:59:59Z")), "2026-03-29 01:59:59 +01:00");
        assert_eq!(berlin.second(at("2026-03-29T01:00:00Z")), "2026-03-29 03:00:00 +02:00");
        assert_eq!(Zone::default().second(at("2026-03-29T01:00:00Z")), "2026-03-29 01:00:00Z");
        assert!(Zone::named("Mars/Base").is_none() && Zone::named("../../etc/passwd").is_none());
    }

    #[test]
    fn lengths_of_time_are_short() {
        let seconds = std::time::Duration::from_secs;
        let check = |time, expected| assert_eq!(age(time), expected);
        check(seconds(59), "59 s");
        check(seconds(7_500), "2 h 5 m");
        check(seconds(200_000), "2 d");
        assert_eq!(bytes(3_118), "3.1 kB");
    }
}
