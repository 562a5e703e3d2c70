//! Kills the process that made a model call right after the answer, for each call of an investigation, and
//! starts it again.

use std::fmt;
use std::time::{Duration, Instant};

use casebook_protocol::subject;

use super::Order;
use super::books::{Away, in_flight};
use super::plan::Blow;
use super::run::{Rig, Survived, now};
use crate::Result;
use crate::model::capture::Entry;
use crate::team::READY;

/// The pause between two checks of the model.
const WATCH: Duration = Duration::from_millis(1);
/// The pause between two checks of the investigation.
const LOOK: Duration = Duration::from_millis(50);
/// Maximum time of an investigation, including the wait for the lease.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Debug, Clone)]
pub struct Killed {
    /// Number of the call, from 1.
    pub nth: usize,
    pub who: String,
    pub to_the_end: Duration,
}

#[derive(Debug, Default)]
pub struct Each {
    /// Model calls and time of the undisturbed investigation.
    pub whole: (usize, Duration),
    pub killed: Vec<Killed>,
    pub survived: Survived,
}

impl fmt::Display for Each {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (calls, took) = self.whole;
        writeln!(f, "{calls} model calls, {:.1} s undisturbed; then killed after:", took.as_secs_f64())?;
        for Killed { nth, who, to_the_end } in &self.killed {
            writeln!(f, "  {nth:>3} {who:<10} finished {:.1} s after the kill", to_the_end.as_secs_f64())?;
        }
        write!(f, "{}", self.survived)
    }
}

/// Investigates once undisturbed, then once for each of `kills` calls spread over all of them. Faults are part
/// of the answer, not an error.
pub fn each(order: &Order, kills: usize) -> Result<Each> {
    let mut rig = Rig::start(order)?;
    let mut each = Each { survived: Survived { seed: order.seed, ..Survived::default() }, ..Each::default() };
    let began = Instant::now();
    open(&mut rig, 0)?;
    end(&rig)?;
    let calls = answered(&rig);
    each.whole = (calls, began.elapsed());
    for nth in (1..=calls).step_by(calls.div_ceil(kills.max(1)).max(1)) {
        let before = answered(&rig);
        open(&mut rig, nth)?;
        let call = answer(&rig, before + nth)?;
        let killed = Instant::now();
        let who = kill(&mut rig, &call)?;
        end(&rig)?;
        *each.survived.struck.entry((who.clone(), Blow::Kill)).or_default() += 1;
        each.killed.push(Killed { nth, who, to_the_end: killed.elapsed() });
    }
    for (begun, finished) in rig.check(&mut each.survived)? {
        each.survived.faults.extend(in_flight(&begun, &finished, &rig.away));
    }
    Ok(each)
}

fn answered(rig: &Rig) -> usize {
    rig.team.model.log().ledger().iter().filter(|entry| entry.answered.is_some()).count()
}

fn open(rig: &mut Rig, n: usize) -> Result<()> {
    let alert = rig.alert(n)?;
    rig.runtime.block_on(rig.connection.store(subject::ALERTS, alert))?;
    Ok(())
}

fn answer(rig: &Rig, nth: usize) -> Result<Entry> {
    let end = Instant::now() + PATIENCE;
    while Instant::now() < end {
        if let Some(entry) = rig.team.model.log().answered_as(nth) {
            return Ok(entry);
        }
        std::thread::sleep(WATCH);
    }
    Err(format!("the model was not asked for answer {nth}\n{}", rig.team.tails()).into())
}

/// Kills the process that made this call, and starts it again.
fn kill(rig: &mut Rig, call: &Entry) -> Result<String> {
    let who = rig.team.owner(&call.key).ok_or_else(|| format!("no process sent request {}", call.number))?;
    let from = now();
    rig.team.kill(who);
    rig.away.push(Away { who: Some(who), from, until: now(), ..Away::default() });
    rig.team.run(who)?;
    rig.team.ready(who, READY)?;
    Ok(rig.team.members.get(who).map(|member| member.name.clone()).unwrap_or_default())
}

fn end(rig: &Rig) -> Result<()> {
    let open = rig.settle(PATIENCE, LOOK);
    if open.is_empty() { Ok(()) } else { Err(format!("not finished: {open:?}\n{}", rig.team.tails()).into()) }
}
