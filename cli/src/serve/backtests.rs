//! Repeats investigations for the pages, over a branch in memory.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use casebook_api::team::{Backtest, Outcome, Repeat};
use casebook_hub::Branch;
use casebook_protocol::{Event, Recorded, Report};

use crate::commands::backtest::kept_nothing;
use crate::embedded::{self, Observer, Sources};
use crate::failure::Failure;
use crate::home::Home;
use crate::reasoners::Reasoners;
use crate::stop::Stop;

/// Of more, the oldest that ended are forgotten.
const KEPT: usize = 32;
/// Backtests at the same time.
const AT_ONCE: usize = 2;

#[derive(Default)]
pub(super) struct Backtests {
    all: Mutex<VecDeque<Backtest>>,
}

/// Counts what is recorded, for the page.
struct Counting<'a> {
    all: &'a Backtests,
    n: u64,
}

impl Observer for Counting<'_> {
    fn earlier(&mut self, entry: &Recorded) {
        self.recorded(entry);
    }

    fn recorded(&mut self, entry: &Recorded) {
        self.all.change(self.n, |one| {
            one.events += 1;
            if let Event::RoundStarted { round, .. } = entry.event {
                one.round = round;
            }
        });
    }
}

impl Backtests {
    fn held(&self) -> MutexGuard<'_, VecDeque<Backtest>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, n: u64, change: impl FnOnce(&mut Backtest)) {
        if let Some(one) = self.held().iter_mut().find(|one| one.n == n) {
            change(one);
        }
    }

    pub(super) fn all(&self) -> Vec<Backtest> {
        self.held().iter().cloned().collect()
    }

    /// The number of a new backtest; none if too many run.
    pub(super) fn begin(&self, repeat: Repeat) -> Option<u64> {
        let mut all = self.held();
        let running = |one: &Backtest| matches!(one.outcome, Outcome::Running);
        if all.iter().filter(|one| running(one)).count() >= AT_ONCE {
            return None;
        }
        let n = all.back().map_or(1, |last| last.n + 1);
        all.push_back(Backtest { n, round: 0, events: 0, repeat, outcome: Outcome::Running });
        if all.len() > KEPT
            && let Some(oldest) = all.iter().position(|one| !running(one))
        {
            all.remove(oldest);
        }
        Some(n)
    }

    /// Call it on the thread of the actors' system.
    pub(super) async fn run(
        &self,
        n: u64,
        repeat: &Repeat,
        home: &Home,
        sources: &Sources,
        reasoners: &Reasoners,
        mut stop: Stop,
    ) {
        let counting = Counting { all: self, n };
        let outcome = match repeated(repeat, home, sources, reasoners, counting, &mut stop).await {
            Ok(report) => Outcome::Done(Arc::new(report)),
            // The advice of a failure is for the command line.
            Err(failure) => Outcome::Failed(kept_nothing(failure).what),
        };
        self.change(n, |one| one.outcome = outcome);
    }
}

async fn repeated(
    repeat: &Repeat,
    home: &Home,
    sources: &Sources,
    reasoners: &Reasoners,
    mut counting: Counting<'_>,
    stop: &mut Stop,
) -> Result<Report, Failure> {
    let Repeat { investigation, from_round, .. } = repeat;
    let branch = Branch::before_round(Arc::clone(&home.store), investigation, *from_round).await;
    let branch = branch.map_err(|e| Failure::usage(e, "choose another round"))?;
    let again = Home::with(&home.folder, Arc::new(branch));
    embedded::resume(&again, investigation, sources, reasoners, &mut counting, stop).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_run_at_once_and_one_that_runs_is_not_forgotten() {
        let all = Backtests::default();
        let investigation = casebook_protocol::InvestigationId::new("inv-1").unwrap();
        let begin = || all.begin(Repeat { investigation: investigation.clone(), from_round: 1, model: None });
        assert_eq!((begin(), begin(), begin()), (Some(1), Some(2), None));
        for n in 2..100 {
            all.change(n, |one| one.outcome = Outcome::Failed("x".into()));
            assert_eq!(begin(), Some(n + 1));
        }
        let kept: Vec<u64> = all.all().iter().map(|one| one.n).collect();
        assert_eq!((kept.len(), kept.first(), kept.last()), (KEPT, Some(&1), Some(&100)));
    }
}
