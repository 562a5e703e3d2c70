//! Whether the record is looked at before a call is made.

use casebook_protocol::{Task, Timestamp};
use jiff::SignedDuration;

/// So long after a step was sent to be recorded it counts as just recorded: longer than a store takes that is
/// not overloaded, shorter than a model takes for a reply.
const JUST: SignedDuration = SignedDuration::from_millis(100);

/// What the worker of a task knows of what is on record of it.
///
/// A step is one call of a model, or the calls of tools that are made at the same time. Whoever performs a task,
/// with the same program, models and tools, records every call of a step before it makes one of the next. Where
/// the worker itself was the first to record a step, nothing of the next one was on record at that moment: that
/// the store took it says the same as a look would have said then, and costs nothing. Such a look may be [`JUST`]
/// old: what another that holds the job, too, has recorded since is made again, one step at the most, since the
/// worker then learns that it is not alone (`docs/decisions/0018-what-recording-costs.md`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ahead {
    /// Nobody else has the task or had it: nothing can be on record.
    Alone,
    /// Nothing of the next step was on record at this time.
    Since(Timestamp),
    /// There may be more on record.
    Unknown,
}

impl Ahead {
    /// At the start of `task`.
    pub(super) const fn of(task: &Task) -> Self {
        if task.again { Self::Unknown } else { Self::Alone }
    }

    /// Whether the next step may be on record at `now`. A clock that went back tells nothing.
    pub(super) fn look(self, now: impl FnOnce() -> Timestamp) -> bool {
        match self {
            Self::Alone => false,
            Self::Since(then) => !(SignedDuration::ZERO..=JUST).contains(&now().duration_since(then)),
            Self::Unknown => true,
        }
    }

    /// After a step: for each of its calls when it was sent to be recorded, where this worker was the first to
    /// record it.
    pub(super) fn after(self, step: impl IntoIterator<Item = Option<Timestamp>>) -> Self {
        let mut latest = None;
        for sent in step {
            let Some(sent) = sent else { return Self::Unknown };
            latest = latest.max(Some(sent));
        }
        match (self, latest) {
            (Self::Alone, _) | (_, None) => self,
            (_, Some(sent)) => Self::Since(sent),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millisecond(1_700_000_000_000 + ms).unwrap()
    }

    #[test]
    fn a_step_that_was_recorded_first_and_just_now_is_as_good_as_a_look() {
        let ahead = Ahead::Unknown.after([Some(at(5)), Some(at(20)), Some(at(1))]);
        assert_eq!(ahead, Ahead::Since(at(20)));
        assert!(!ahead.look(|| at(20)) && !ahead.look(|| at(120)));
        assert!(ahead.look(|| at(121)), "it was paused, or the store was slow");
        assert!(ahead.look(|| at(20) - SignedDuration::from_nanos(1)), "the clock went back");
    }

    #[test]
    fn one_call_that_another_recorded_first_is_enough_to_look() {
        for before in [Ahead::Unknown, Ahead::Since(at(1)), Ahead::Alone] {
            assert_eq!(before.after([Some(at(5)), None]), Ahead::Unknown);
        }
        assert!(Ahead::Unknown.look(|| at(0)));
    }

    #[test]
    fn a_step_without_calls_says_nothing_and_who_is_alone_stays_alone() {
        for before in [Ahead::Unknown, Ahead::Since(at(1)), Ahead::Alone] {
            assert_eq!(before.after([]), before);
        }
        let alone = Ahead::Alone.after([Some(at(5))]);
        assert!(alone == Ahead::Alone && !alone.look(|| unreachable!("no time counts here")));
    }
}
