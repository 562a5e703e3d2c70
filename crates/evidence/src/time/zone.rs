//! The zone of a clock, by name or as an offset.

use std::fmt;

use jiff::Timestamp;
use jiff::tz::{Offset, TimeZone};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Zone {
    name: String,
    zone: TimeZone,
}

impl Zone {
    /// `UTC`, `+02:00`, or a name such as `Europe/Berlin`.
    ///
    /// # Errors
    /// What to write instead.
    pub fn new(name: &str) -> Result<Self, String> {
        let zone = match name {
            "UTC" => Some(TimeZone::UTC),
            _ if name.starts_with(['+', '-']) => offset(name).map(TimeZone::fixed),
            _ => TimeZone::get(name).ok(),
        };
        let name = name.to_owned();
        let zone = zone.ok_or_else(|| {
            let advice = "write UTC, an offset such as +02:00, or a name such as Europe/Berlin";
            match TimeZone::get("Europe/Berlin") {
                Ok(_) => format!("{name:?} is not a time zone; {advice}"),
                Err(_) => format!(
                    "{name:?} is not known, since this system has no time zone database; write an offset such as +02:00"
                ),
            }
        })?;
        Ok(Self { name, zone })
    }

    /// The time of a clock in this zone, read as UTC, in UTC. Of a time that the clock showed twice, the first.
    pub(crate) fn to_utc(&self, ns: i64) -> i64 {
        let shown = Timestamp::from_nanosecond(ns.into()).map(|stamp| TimeZone::UTC.to_datetime(stamp));
        let there = shown.and_then(|shown| self.zone.to_timestamp(shown)).ok();
        there.and_then(|there| i64::try_from(there.as_nanosecond()).ok()).unwrap_or(ns)
    }
}

fn offset(text: &str) -> Option<Offset> {
    let (sign, rest) = text.split_at_checked(1)?;
    let (hours, minutes) = rest.split_once(':')?;
    let two = |digits: &str| (digits.len() == 2).then(|| digits.parse::<i32>().ok()).flatten();
    let (hours, minutes) = (two(hours).filter(|h| *h <= 14)?, two(minutes).filter(|m| *m < 60)?);
    let seconds = hours * 3600 + minutes * 60;
    Offset::from_seconds(if sign == "-" { -seconds } else { seconds }).ok()
}

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clock_of_a_zone_is_read_in_utc() {
        let utc = |zone: &str, text: &str| {
            let local: Timestamp = format!("{text}Z").parse().unwrap();
            let ns = Zone::new(zone).unwrap().to_utc(i64::try_from(local.as_nanosecond()).unwrap());
            Timestamp::from_nanosecond(ns.into()).unwrap().to_string()
        };
        for (zone, local, expected) in [
            ("UTC", "2025-07-01T12:00:00", "2025-07-01T12:00:00Z"),
            ("+05:30", "2025-07-01T12:00:00", "2025-07-01T06:30:00Z"),
            ("-08:00", "2025-07-01T12:00:00", "2025-07-01T20:00:00Z"),
            ("Europe/Berlin", "2025-07-01T12:00:00", "2025-07-01T10:00:00Z"),
            ("Europe/Berlin", "2025-12-01T12:00:00", "2025-12-01T11:00:00Z"),
            ("Europe/Berlin", "2025-10-26T02:30:00", "2025-10-26T00:30:00Z"),
        ] {
            assert_eq!(utc(zone, local), expected, "{zone} {local}");
        }
        for wrong in ["", "Berlin", "+2", "+25:00", "+02:75", "../../etc/passwd"] {
            assert!(Zone::new(wrong).is_err(), "{wrong}");
        }
    }
}
