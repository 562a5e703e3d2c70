//! When a provider is left alone: a pure state machine for all models at one address. After a few failures in a row,
//! one attempt follows each of growing pauses. Other calls wait for it, or fail at once if that takes too long.

use std::time::Duration;

use tokio::time::Instant;

use crate::model::Fault;
use crate::model::retry::{Failed, Pace};

/// Failures in a row before the first pause.
const AFTER: u32 = 3;
/// The longest pause, unless the provider asks for a longer one.
const LONGEST: Duration = Duration::from_secs(300);
/// How often to look for the end of an attempt that decides.
const LOOK: Duration = Duration::from_millis(100);

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Admission {
    Go,
    /// Ask again after this time.
    Wait(Duration),
    /// Why the call fails at once.
    Refuse(String),
}

/// A change that is worth a line in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    Opened { failures: u32, last: String },
    Closed { failures: u32, lasted: Duration },
}

#[derive(Debug, Clone)]
pub struct Circuit {
    pace: Pace,
    /// The provider has answered before, so that its settings are right and a failure is likely to pass.
    known: bool,
    outage: Option<Outage>,
}

#[derive(Debug, Clone)]
struct Outage {
    failures: u32,
    since: Instant,
    latest: Instant,
    pause: Duration,
    /// No attempt before.
    until: Instant,
    /// An attempt is under way. It counts as lost after this time.
    trying: Option<Instant>,
    last: Failed,
}

impl Circuit {
    #[must_use]
    pub const fn new(pace: Pace) -> Self {
        Self { pace, known: false, outage: None }
    }

    /// How attempts follow each other: no number limits them if the provider has answered before, only the time.
    pub const fn pace(&self) -> Pace {
        if self.known { Pace { attempts: u32::MAX, ..self.pace } } else { self.pace }
    }

    /// Whether an attempt of at most `takes` may begin, for a call that has `left`.
    pub fn admit(&mut self, now: Instant, takes: Duration, left: Duration) -> Admission {
        // A task that fails can end an investigation: it waits for a provider that worked, as long as its call may take.
        let patience = if self.known { Duration::MAX } else { self.pace.outage };
        let Some(outage) = self.outage.as_mut().filter(|outage| outage.failures >= AFTER) else { return Admission::Go };
        let wait = match outage.trying {
            _ if now < outage.until => outage.until.duration_since(now),
            Some(lost) if now < lost => LOOK,
            _ => {
                outage.trying = Some(now + takes);
                return Admission::Go;
            }
        };
        if outage.last.fault != Fault::Rejected && now.duration_since(outage.since) < patience && wait < left {
            return Admission::Wait(wait);
        }
        let (failures, last) = (outage.failures, &outage.last.message);
        Admission::Refuse(format!("not asked, after {failures} failures in a row; the last one: {last}"))
    }

    /// An attempt that began at `begun` failed. Attempts that ran at the same time count as one.
    pub fn failed(&mut self, begun: Instant, now: Instant, failed: &Failed) -> Option<Change> {
        let fresh = || Outage {
            failures: 0,
            since: now,
            latest: begun,
            pause: Duration::ZERO,
            until: now,
            trying: None,
            last: failed.clone(),
        };
        let outage = self.outage.get_or_insert_with(fresh);
        if begun < outage.latest {
            return None;
        }
        outage.failures += 1;
        (outage.latest, outage.last, outage.trying) = (now, failed.clone(), None);
        if outage.failures < AFTER {
            return None;
        }
        outage.pause = (outage.pause * 2).clamp(self.pace.first * 2, LONGEST);
        outage.until = now + outage.pause.max(failed.wait.unwrap_or_default());
        let opened = || Change::Opened { failures: AFTER, last: failed.message.clone() };
        (outage.failures == AFTER).then(opened)
    }

    /// The provider answered.
    pub fn answered(&mut self, now: Instant) -> Option<Change> {
        self.known = true;
        let outage = self.outage.take().filter(|outage| outage.failures >= AFTER)?;
        Some(Change::Closed { failures: outage.failures, lasted: now.duration_since(outage.since) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn off() -> Failed {
        Failed::passing(Fault::Unavailable, "HTTP 500")
    }

    /// Fails `n` attempts one after the other, each as soon as it is admitted; the seconds between them.
    fn fail(circuit: &mut Circuit, now: &mut Instant, n: u32, failed: &Failed) -> Vec<f64> {
        let fail_once = |_| {
            let begun = *now;
            while let Admission::Wait(wait) = circuit.admit(*now, LONGEST, LONGEST) {
                *now += wait;
            }
            let waited = now.duration_since(begun).as_secs_f64();
            let begun = *now;
            *now += Duration::from_millis(1);
            circuit.failed(begun, *now, failed);
            waited
        };
        (0..n).map(fail_once).collect()
    }

    #[tokio::test]
    async fn pauses_grow_and_end_with_an_answer() {
        let (mut circuit, mut now) = (Circuit::new(Pace::default()), Instant::now());
        let start = now;
        assert_eq!(fail(&mut circuit, &mut now, 6, &off()), [0.0, 0.0, 0.0, 1.0, 2.0, 4.0]);
        assert_eq!(fail(&mut circuit, &mut now, 2, &off()), [8.0, 16.0]);
        let refused = circuit.admit(now, LONGEST, LONGEST);
        assert_eq!(refused, Admission::Refuse("not asked, after 8 failures in a row; the last one: HTTP 500".into()));
        now += Duration::from_secs(32);
        assert_eq!(circuit.admit(now, LONGEST, LONGEST), Admission::Go, "one may try after the pause");
        assert!(matches!(circuit.admit(now, LONGEST, LONGEST), Admission::Refuse(_)), "and no other");
        let closed = Change::Closed { failures: 8, lasted: now.duration_since(start) - Duration::from_millis(1) };
        assert_eq!(circuit.answered(now), Some(closed));
        assert_eq!((circuit.admit(now, LONGEST, LONGEST), circuit.answered(now)), (Admission::Go, None));
    }

    #[tokio::test]
    async fn provider_that_worked_is_waited_for_as_long_as_the_call_may_take() {
        let (mut circuit, mut now) = (Circuit::new(Pace::default()), Instant::now());
        assert_eq!(circuit.pace().attempts, Pace::default().attempts);
        circuit.answered(now);
        assert_eq!(circuit.pace().attempts, u32::MAX);
        let waits = fail(&mut circuit, &mut now, 12, &off());
        assert_eq!(waits[9..], [64.0, 128.0, 256.0]);
        assert_eq!(circuit.admit(now, LONGEST, LONGEST * 2), Admission::Wait(LONGEST));
        assert!(matches!(circuit.admit(now, LONGEST, LONGEST / 2), Admission::Refuse(_)), "not beyond its own time");
        circuit.failed(now + LONGEST, now + LONGEST, &Failed::final_(Fault::Rejected, "HTTP 401"));
        assert!(matches!(circuit.admit(now + LONGEST, LONGEST, LONGEST * 9), Admission::Refuse(_)), "a key is wrong");
    }

    #[tokio::test]
    async fn only_the_third_failure_in_a_row_is_told() {
        let (mut circuit, now) = (Circuit::new(Pace::default()), Instant::now());
        let at = |ms| now + Duration::from_millis(ms);
        assert_eq!(circuit.failed(at(0), at(1), &off()), None);
        assert_eq!(circuit.failed(at(0), at(2), &off()), None);
        assert_eq!(circuit.failed(at(0), at(3), &off()), None);
        assert_eq!(circuit.failed(at(4), at(5), &off()), None, "attempts at the same time count as one");
        assert_eq!(circuit.answered(at(6)), None);
        let told: Vec<_> = (0..9).map(|n| circuit.failed(at(10 + n), at(10 + n), &off()).is_some()).collect();
        assert_eq!(told, [false, false, true, false, false, false, false, false, false]);
    }

    #[tokio::test]
    async fn what_no_wait_can_mend_is_refused_at_once_and_a_lost_attempt_is_replaced() {
        let (mut circuit, mut now) = (Circuit::new(Pace::default()), Instant::now());
        fail(&mut circuit, &mut now, 3, &Failed::final_(Fault::Rejected, "HTTP 401"));
        assert!(matches!(circuit.admit(now, LONGEST, LONGEST), Admission::Refuse(_)));
        now += Duration::from_secs(1);
        assert_eq!(circuit.admit(now, Duration::from_secs(5), LONGEST), Admission::Go);
        assert!(matches!(circuit.admit(now + Duration::from_secs(4), LONGEST, LONGEST), Admission::Refuse(_)));
        assert_eq!(circuit.admit(now + Duration::from_secs(5), LONGEST, LONGEST), Admission::Go);
        let wait = Failed { wait: Some(Duration::from_secs(700)), ..off() };
        circuit.failed(now, now, &wait);
        let later = now + Duration::from_secs(9);
        let left = Duration::from_secs(691);
        assert!(matches!(circuit.admit(later, LONGEST, left), Admission::Refuse(_)), "a wait that does not fit");
        assert_eq!(circuit.admit(later, LONGEST, left * 2), Admission::Wait(left));
    }
}
