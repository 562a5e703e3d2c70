//! When a case may begin, and how long to wait.
//!
//! All tasks of a domain wait in one queue, in order of arrival. If every waiting alert began at once, the tasks of begun
//! cases would wait behind the first tasks of all others, and so would those of a critical alert. So only a few cases
//! wait for their first Expert. The other alerts wait in order of severity.

use std::sync::Arc;
use std::time::Duration;

use super::Intake;

/// How often to check the queues without a hint: another Hub may have died with a job.
pub(super) const LOOK: Duration = Duration::from_secs(2);
/// The pause before a failed job is tried again.
pub(super) const AGAIN: Duration = Duration::from_secs(10);
/// How often to check whether another case may begin.
pub(super) const SOON: Duration = Duration::from_millis(250);
/// The longest pause before an investigation in which no model answered goes on.
const LONGEST: Duration = Duration::from_secs(30 * 60);

/// How many tasks the Experts of a domain perform at once; `None` if that is not known.
pub type Capacity = Arc<dyn Fn() -> Option<usize> + Send + Sync>;

/// The pause after so many rounds without an answer.
pub(super) fn patience(rounds: usize) -> Duration {
    AGAIN.saturating_mul(1 << rounds.saturating_sub(1).min(10)).min(LONGEST)
}

/// True if another case may begin. In cases that are `examined` an Expert has answered. There are twice as many others as
/// the Experts can work on, so that they have work while the Director plans.
const fn room(under_way: usize, examined: usize, capacity: usize) -> bool {
    under_way.saturating_sub(examined) < capacity.saturating_mul(2)
}

impl Intake {
    /// Limits the cases in which no Expert has answered, by how many tasks the Experts perform at once.
    #[must_use]
    pub fn paced(self, capacity: Capacity) -> Self {
        Self { capacity, ..self }
    }

    pub(super) async fn may_begin(&self) -> bool {
        let Some(capacity) = (self.capacity)() else { return true };
        if room(self.under_way(), 0, capacity) {
            return true;
        }
        let Ok(seen) = self.hub.observe().await else { return true };
        let examined = seen.open.iter().filter(|one| one.examined).count();
        room(self.under_way(), examined, capacity)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_that_wait_for_their_first_expert_are_limited() {
        for (under_way, examined, capacity, expect) in
            [(0, 0, 4, true), (7, 0, 4, true), (8, 0, 4, false), (8, 1, 4, true), (60, 53, 4, true), (60, 52, 4, false)]
        {
            assert_eq!(room(under_way, examined, capacity), expect, "{under_way} {examined} {capacity}");
        }
    }
}
