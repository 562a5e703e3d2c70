//! When something happened, how precisely that is known, and on what basis.

use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use jiff::Timestamp;

use crate::closed;

closed! {
    /// The basis of an event's time, weakest first. On conflict the stronger basis wins (rule "Timeline membership").
    /// A syslog time without a year is inferred. An aggregation time is the start or end of a period.
    pub enum TimeBasis {
        Inferred = "inferred", "inferred";
        Aggregation = "aggregation", "time of an aggregate";
        Ingestion = "ingestion", "time of ingestion";
        ClockCorrected = "clock_corrected", "record's own time, clock offset taken out";
        Record = "record", "record's own time";
    }
}

closed! {
    pub enum Precision {
        Nanosecond = "nanosecond";
        Microsecond = "microsecond";
        Millisecond = "millisecond";
        Second = "second";
        Minute = "minute";
        Day = "day";
    }
}

impl Precision {
    #[must_use]
    pub const fn nanoseconds(self) -> i128 {
        match self {
            Self::Nanosecond => 1,
            Self::Microsecond => 1_000,
            Self::Millisecond => 1_000_000,
            Self::Second => 1_000_000_000,
            Self::Minute => 60_000_000_000,
            Self::Day => 86_400_000_000_000,
        }
    }

    /// True if `shown` is `at`, whole or cut to this unit.
    #[must_use]
    pub fn shows(self, at: Timestamp, shown: Timestamp) -> bool {
        let (at, shown) = (at.as_nanosecond(), shown.as_nanosecond());
        at == shown || at - at.rem_euclid(self.nanoseconds()) == shown
    }
}

/// The time from one moment to another; zero if the clock went back.
pub fn between(from: Timestamp, to: Timestamp) -> Duration {
    Duration::try_from(to.duration_since(from)).unwrap_or_default()
}

/// The seconds between two moments, whichever is first.
#[must_use]
pub fn apart(one: Timestamp, other: Timestamp) -> f64 {
    one.duration_since(other).abs().as_secs_f64()
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventTime {
    /// The moment, in UTC.
    pub at: Timestamp,
    /// The last moment, if the event is a period.
    pub until: Option<Timestamp>,
    pub precision: Precision,
    pub basis: TimeBasis,
    /// The field that it was read from, such as `UtcTime`; empty if inferred.
    pub field: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_records_own_time_is_the_strongest() {
        assert!(TimeBasis::Record > TimeBasis::ClockCorrected);
        assert!(TimeBasis::ClockCorrected > TimeBasis::Ingestion);
        assert!(TimeBasis::Ingestion > TimeBasis::Inferred);
        assert!(TimeBasis::Aggregation > TimeBasis::Inferred);
    }
}
