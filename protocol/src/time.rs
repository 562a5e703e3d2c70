//! When something happened, how precisely that is known, and what the knowledge rests on.

use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use jiff::Timestamp;

use crate::closed;

closed! {
    /// What the time of an event rests on, weakest first: on conflict the stronger basis wins
    /// (design, section 3.4: a record's own time beats an ingestion or aggregation time beats an
    /// inferred one). A syslog time without a year is inferred; an aggregation is the start or end of a period.
    pub enum TimeBasis {
        Inferred = "inferred", "inferred";
        Aggregation = "aggregation", "time of an aggregate";
        Ingestion = "ingestion", "time of ingestion";
        ClockCorrected = "clock_corrected", "record's own time, clock offset taken out";
        Record = "record", "record's own time";
    }
}

closed! {
    /// The smallest unit in which a time is known.
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
    /// Nanoseconds in the unit.
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

    /// `told` is `at`, whole or cut to this unit.
    #[must_use]
    pub fn shows(self, at: Timestamp, told: Timestamp) -> bool {
        let (at, told) = (at.as_nanosecond(), told.as_nanosecond());
        at == told || at - at.rem_euclid(self.nanoseconds()) == told
    }
}

/// The time from one moment to another; none if the clock went back.
pub fn between(from: Timestamp, to: Timestamp) -> Duration {
    Duration::try_from(to.duration_since(from)).unwrap_or_default()
}

/// The time of an event with its precision and basis.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventTime {
    /// The moment, UTC.
    pub at: Timestamp,
    /// The last moment, where the event is a period.
    pub until: Option<Timestamp>,
    /// How exactly `at` is known.
    pub precision: Precision,
    /// What `at` rests on.
    pub basis: TimeBasis,
    /// The field that it was read from, such as `UtcTime`; empty when inferred.
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
