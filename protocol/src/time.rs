//! When something happened, how precisely that is known, and what the knowledge rests on.

use serde::{Deserialize, Serialize};

pub use jiff::Timestamp;

/// What the time of an event rests on, weakest first: on conflict the stronger basis wins
/// (design, section 3.4: a record's own time beats an ingestion or aggregation time beats an
/// inferred one).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimeBasis {
    /// Concluded from something else, or incomplete as written (a syslog time without a year).
    Inferred,
    /// The start or end of a period that the record sums up.
    Aggregation,
    /// When a collector received the record.
    Ingestion,
    /// The record's own time on a clock shown to be off, with the offset taken out.
    ClockCorrected,
    /// The record's own time.
    Record,
}

impl TimeBasis {
    /// The basis in words for a reader.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Inferred => "inferred",
            Self::Aggregation => "time of an aggregate",
            Self::Ingestion => "time of ingestion",
            Self::ClockCorrected => "record's own time, clock offset taken out",
            Self::Record => "record's own time",
        }
    }
}

/// The smallest unit in which a time is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Precision {
    Nanosecond,
    Microsecond,
    Millisecond,
    Second,
    Minute,
    Day,
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
