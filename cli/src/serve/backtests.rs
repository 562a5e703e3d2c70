//! Repeats investigations for the pages, over a branch in memory.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use casebook_api::team::{Backtest, Outcome, Repeat};
use casebook_hub::Branch;
use casebook_protocol::{Event, Recorded, Report};

use crate::embedded::{self, Observer, Sources};
use crate::failure::Failure;
use crate::home::Home;
use crate::reasoners::Reasoners;
use crate::stop::Stop;

/// Older ones are forgotten.
const KEPT: usize = 32;

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

    /// The number of a new backtest.
    pub(super) fn begin(&self, repeat: Repeat) -> u64 {
        let mut all = self.held();
        let n = all.back().map_or(1, |last| last.n + 1);
        all.push_back(Backtest { n, round: 0, events: 0, repeat, outcome: Outcome::Running });
        if all.len() > KEPT {
            all.pop_front();
        }
        n
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
            Err(Failure { what, advice, .. }) => Outcome::Failed(format!("{what}; {advice}")),
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
