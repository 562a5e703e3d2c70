//! Killed after each single model call of an investigation: the process that made the call is killed
//! right after the model answered it, and started again.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use casebook_hub::investigation_id;
use casebook_protocol::{InvestigationId, Timestamp, subject};
use casebook_runtime::nats::Connection;
use tokio::runtime::Runtime;

use super::books::{Away, Ms, in_flight};
use super::plan::Blow;
use super::run::{Survived, alert, check};
use super::{Order, closing};
use crate::model::capture::Entry;
use crate::team::{READY, Team};

/// How closely the model is watched.
const WATCH: Duration = Duration::from_millis(1);
/// How long an investigation may take, the wait for the lease included.
const PATIENCE: Duration = Duration::from_secs(60);

/// A kill after one call.
#[derive(Debug, Clone)]
pub struct Killed {
    /// Which call, from 1.
    pub nth: usize,
    /// Who made it and was killed.
    pub who: String,
    /// From the kill to the end of the investigation.
    pub to_the_end: Duration,
}

/// What became of it.
#[derive(Debug, Default)]
pub struct Each {
    /// Model calls of the undisturbed investigation, and how long it took.
    pub whole: (usize, Duration),
    /// The kills.
    pub killed: Vec<Killed>,
    /// The books of all investigations.
    pub survived: Survived,
}

struct Rig {
    team: Team,
    runtime: Runtime,
    connection: Connection,
    seed: u64,
    expected: BTreeSet<InvestigationId>,
    away: Vec<Away>,
}

/// Investigates once undisturbed, and then once for each of `kills` calls spread over all of them.
///
/// # Errors
/// It could not be done, or an investigation did not come to its end. What else is wrong is in the
/// answer.
pub fn each(order: &Order, kills: usize) -> Result<Each, String> {
    let team = Team::start(&order.shape)?;
    let runtime = Runtime::new().map_err(|e| e.to_string())?;
    let connection = runtime.block_on(team.connection())?;
    let (expected, away) = (BTreeSet::new(), Vec::new());
    let mut rig = Rig { team, runtime, connection, seed: order.seed, expected, away };
    let mut each = Each { survived: Survived { seed: order.seed, ..Survived::default() }, ..Each::default() };
    let began = Instant::now();
    rig.open(0)?;
    rig.end()?;
    each.whole = (rig.answered(), began.elapsed());
    let calls = each.whole.0;
    for nth in (1..=calls).step_by(calls.div_ceil(kills.max(1)).max(1)) {
        let before = rig.answered();
        rig.open(nth)?;
        let call = rig.nth(before + nth)?;
        let killed = Instant::now();
        let who = rig.kill(&call)?;
        rig.end()?;
        *each.survived.struck.entry((who.clone(), Blow::Kill)).or_default() += 1;
        each.killed.push(Killed { nth, who, to_the_end: killed.elapsed() });
    }
    rig.balance(order, &mut each.survived)?;
    Ok(each)
}

impl Rig {
    fn answered(&self) -> usize {
        self.team.model.log().ledger().iter().filter(|entry| entry.answered.is_some()).count()
    }

    fn open(&mut self, n: usize) -> Result<(), String> {
        let (alert, bytes) = alert(self.seed, n)?;
        self.expected.insert(investigation_id(&alert.id, 1));
        self.runtime.block_on(self.connection.store(subject::ALERTS, bytes)).map_err(|e| e.to_string())
    }

    /// Waits for the `nth` answer of the model.
    fn nth(&self, nth: usize) -> Result<Entry, String> {
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            if let Some(entry) = self.team.model.log().answered_as(nth) {
                return Ok(entry);
            }
            std::thread::sleep(WATCH);
        }
        Err(format!("the model was not asked for answer {nth}\n{}", self.team.tails()))
    }

    /// Kills whoever made this call, and starts it again.
    fn kill(&mut self, call: &Entry) -> Result<String, String> {
        let who = self.team.owner(&call.key).ok_or_else(|| format!("request {} came from nobody", call.number))?;
        let from = Timestamp::now().as_millisecond();
        self.team.kill(who);
        self.away.push(Away { who: Some(who), from, until: Timestamp::now().as_millisecond() });
        self.team.run(who)?;
        self.team.ready(who, READY)?;
        Ok(self.team.members.get(who).map(|member| member.name.clone()).unwrap_or_default())
    }

    fn end(&self) -> Result<(), String> {
        let end = Instant::now() + PATIENCE;
        let mut open = Vec::new();
        while Instant::now() < end {
            open = self.runtime.block_on(closing::unfinished(&self.connection, &self.expected));
            if open.is_empty() {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Err(format!("not over: {open:?}\n{}", self.team.tails()))
    }

    fn balance(&self, order: &Order, survived: &mut Survived) -> Result<(), String> {
        let lease = Ms::try_from(order.shape.lease * 1_000).unwrap_or(Ms::MAX);
        let checked = check(&self.team, &self.connection, &self.expected, (&self.away, lease), survived);
        self.runtime.block_on(checked)?;
        let entries = self.team.model.log().ledger();
        let closing = closing::closing(&self.connection, &self.expected, &entries);
        let closing = self.runtime.block_on(closing)?;
        survived.faults.extend(in_flight(&closing::asked(&self.team, &entries)?, &closing.models, &self.away));
        survived.faults.extend(in_flight(&closing::ran(&self.team), &closing.tools, &self.away));
        Ok(())
    }
}
