//! Does what was ordered: starts the team, lets the alerts in, strikes, waits for the end, and checks it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use casebook_hub::investigation_id;
use casebook_protocol::{Alert, InvestigationId, Timestamp};
use casebook_runtime::nats::Connection;
use rustix::process::{Pid, Signal, kill_process};
use tokio::runtime::Runtime;

use super::books::{Away, Balance, GRACE, Ms, balance, tasks};
use super::noise::{self, Doubled};
use super::plan::{Blow, Strike, Target, plan};
use super::{Order, closing};
use crate::team::Team;

/// Between two looks whether all is over.
const LOOK: Duration = Duration::from_millis(500);

/// What became of it.
#[derive(Debug, Default)]
pub struct Survived {
    /// The seed.
    pub seed: u64,
    /// How often each was killed and paused.
    pub struck: BTreeMap<(String, Blow), u32>,
    /// Investigations that came to their end.
    pub investigations: usize,
    /// Events in their logs.
    pub events: u64,
    /// Citations that verify.
    pub citations: u64,
    /// The calls of the model.
    pub models: Balance,
    /// The calls of tools.
    pub tools: Balance,
    /// What came twice: notices, jobs taken, jobs refused, alerts accepted.
    pub doubled: [u64; 4],
    /// From the first alert to the last strike.
    pub struck_for: Duration,
    /// From the last strike until all was over.
    pub settled: Duration,
    /// What is wrong, in words. Empty: it survived.
    pub faults: Vec<String>,
}

impl Survived {
    /// How often something was killed.
    #[must_use]
    pub fn kills(&self) -> u32 {
        self.struck.iter().filter(|((_, blow), _)| *blow == Blow::Kill).map(|(_, n)| n).sum()
    }
}

impl fmt::Display for Survived {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed {}: {} investigations, {} kills", self.seed, self.investigations, self.kills())?;
        for ((who, blow), n) in &self.struck {
            let how = if *blow == Blow::Kill { "killed" } else { "paused" };
            writeln!(f, "  {who} {how} {n} times")?;
        }
        let [notices, jobs, refused, alerts] = self.doubled;
        writeln!(
            f,
            "  sent again: {notices} notices, {jobs} jobs taken and {refused} refused; {alerts} alerts accepted"
        )?;
        writeln!(f, "  {} events, {} citations", self.events, self.citations)?;
        let (models, tools) = (&self.models, &self.tools);
        for (what, books) in [("model", models), ("tool", tools)] {
            let Balance { finished, again, late, .. } = books;
            writeln!(
                f,
                "  {finished} {what} calls, of which {again} were made again: {} in flight, {late} within {GRACE} ms \
                 after they were recorded",
                again.saturating_sub(*late)
            )?;
        }
        write!(
            f,
            "  struck for {:.1} s, over {:.1} s after",
            self.struck_for.as_secs_f64(),
            self.settled.as_secs_f64()
        )?;
        self.faults.iter().try_for_each(|fault| write!(f, "\n  WRONG: {fault}"))
    }
}

/// Does it all.
///
/// # Errors
/// It could not be done. What is wrong with the end is in the answer, not an error.
pub fn run(order: &Order) -> Result<(Team, Survived), String> {
    let lease = Duration::from_secs(order.shape.lease);
    run_with(order, plan(order.seed, &order.shape.members(), lease, order.length))
}

/// The same with these strikes in place of those that follow from the seed.
///
/// # Errors
/// As [`run`].
pub fn run_with(order: &Order, strikes: Vec<Strike>) -> Result<(Team, Survived), String> {
    let mut team = Team::start(&order.shape)?;
    let runtime = Runtime::new().map_err(|e| e.to_string())?;
    let connection = runtime.block_on(team.connection())?;
    let doubled = Arc::new(Doubled::default());
    let expected = alerts(&runtime, order, &connection, &doubled)?;
    let notices = runtime.spawn(noise::notices(connection.clone(), order.seed ^ 1, Arc::clone(&doubled)));
    let jobs = runtime.spawn(noise::jobs(connection.clone(), order.seed ^ 2, Arc::clone(&doubled)));
    let began = Instant::now();
    let mut survived = Survived { seed: order.seed, ..Survived::default() };
    let away = strike(&mut team, strikes, &mut survived)?;
    survived.struck_for = began.elapsed();
    jobs.abort();
    let last = Instant::now();
    let mut open = vec!["nobody looked".to_owned()];
    while last.elapsed() < order.patience && !open.is_empty() {
        std::thread::sleep(LOOK);
        open = runtime.block_on(closing::unfinished(&connection, &expected));
    }
    survived.settled = last.elapsed();
    notices.abort();
    survived.faults.extend(open.into_iter().map(|what| format!("not over after {:?}: {what}", order.patience)));
    survived.faults.extend(team.ended());
    let lease = Ms::try_from(order.shape.lease * 1_000).unwrap_or(Ms::MAX);
    if survived.faults.is_empty() {
        runtime.block_on(check(&team, &connection, &expected, (&away, lease), &mut survived))?;
    }
    let count = |n: &AtomicU64| n.load(Ordering::Relaxed);
    survived.doubled = [count(&doubled.notices), count(&doubled.jobs), count(&doubled.refused), count(&doubled.alerts)];
    Ok((team, survived))
}

/// The end state against the books.
///
/// # Errors
/// The server cannot be read.
pub async fn check(
    team: &Team,
    connection: &Connection,
    expected: &BTreeSet<InvestigationId>,
    (away, lease): (&[Away], Ms),
    survived: &mut Survived,
) -> Result<(), String> {
    let entries = team.model.log().ledger();
    let closing = closing::closing(connection, expected, &entries).await?;
    survived.investigations = expected.len();
    survived.events = closing.events;
    survived.citations = closing.citations;
    let (asked, ran) = (closing::asked(team, &entries)?, closing::ran(team));
    let tasks = tasks(&[(&asked, &closing.models), (&ran, &closing.tools)]);
    survived.models = balance(&asked, &closing.models, away, (&tasks, lease));
    survived.tools = balance(&ran, &closing.tools, away, (&tasks, lease));
    survived.faults.extend(closing.faults);
    survived.faults.extend(survived.models.faults.iter().chain(&survived.tools.faults).cloned());
    Ok(())
}

/// The alert with this number: no two have a prompt in common.
///
/// # Errors
/// It is no alert.
pub fn alert(seed: u64, n: usize) -> Result<(Alert, Vec<u8>), String> {
    let level = ["low", "medium", "high", "critical"].get(n % 4).copied().unwrap_or("high");
    let text = serde_json::json!({
        "id": format!("chaos-{seed}-{n}"),
        "rule": {"title": format!("Shell started by web server, sensor {n}"), "level": level},
        "event_time": "2026-01-15T12:00:00Z",
        "host": "web-017",
        "user": "www-data",
        "source_ip": "203.0.113.77",
        "description": format!("apache2 started /bin/sh on web-017, as sensor {n} saw it"),
    });
    let bytes = text.to_string().into_bytes();
    Ok((Alert::parse(&bytes).map_err(|e| e.to_string())?, bytes))
}

/// Lets the alerts in over the first three quarters of the time; gives the investigations that they are to become.
fn alerts(
    runtime: &Runtime,
    order: &Order,
    connection: &Connection,
    doubled: &Arc<Doubled>,
) -> Result<BTreeSet<InvestigationId>, String> {
    let mut expected = BTreeSet::new();
    let all = u32::try_from(order.investigations).unwrap_or(u32::MAX).max(1);
    for n in 0..order.investigations {
        let (alert, bytes) = alert(order.seed, n)?;
        expected.insert(investigation_id(&alert.id, 1));
        let later = order.length * 3 / 4 / all * u32::try_from(n).unwrap_or(u32::MAX);
        let (connection, doubled) = (connection.clone(), Arc::clone(doubled));
        runtime.spawn(async move {
            tokio::time::sleep(later).await;
            noise::alert(connection, bytes, doubled).await;
        });
    }
    Ok(expected)
}

/// Strikes as planned and mends it; gives when what was away.
fn strike(team: &mut Team, planned: Vec<Strike>, survived: &mut Survived) -> Result<Vec<Away>, String> {
    let began = Instant::now();
    let mut away: Vec<Away> = Vec::new();
    let mut open: Vec<(Duration, usize, Strike)> = Vec::new();
    let mut planned = planned.into_iter().peekable();
    while planned.peek().is_some() || !open.is_empty() {
        let mended = open.iter().enumerate().min_by_key(|(_, (at, ..))| *at).map(|(n, (at, ..))| (n, *at));
        match (planned.peek().map(|s| s.at), mended) {
            (Some(next), Some((n, at))) if at <= next => mend(team, began, open.swap_remove(n), &mut away)?,
            (None, Some((n, _))) => mend(team, began, open.swap_remove(n), &mut away)?,
            _ => {
                let Some(strike) = planned.next() else { break };
                until(began, strike.at);
                let name = hit(team, strike);
                *survived.struck.entry((name, strike.blow)).or_default() += 1;
                open.push((strike.at + strike.away, away.len(), strike));
                let who = if let Target::Member(i) = strike.target { Some(i) } else { None };
                away.push(Away { who, from: now(), until: Ms::MAX });
            }
        }
    }
    Ok(away)
}

fn until(began: Instant, at: Duration) {
    std::thread::sleep(at.saturating_sub(began.elapsed()));
}

fn now() -> Ms {
    Timestamp::now().as_millisecond()
}

fn hit(team: &mut Team, strike: Strike) -> String {
    match (strike.target, strike.blow) {
        (Target::Server, Blow::Kill) => team.nats.broker.kill(),
        (Target::Server, Blow::Pause) => signal(team, Signal::STOP),
        (Target::Member(i), Blow::Kill) => team.kill(i),
        (Target::Member(i), Blow::Pause) => team.pause(i, true),
    }
    match strike.target {
        Target::Server => "server".to_owned(),
        Target::Member(i) => team.members.get(i).map(|m| m.part.name().to_owned()).unwrap_or_default(),
    }
}

fn mend(
    team: &mut Team,
    began: Instant,
    (at, place, strike): (Duration, usize, Strike),
    away: &mut [Away],
) -> Result<(), String> {
    until(began, at);
    if let Some(away) = away.get_mut(place) {
        away.until = now();
    }
    match (strike.target, strike.blow) {
        (Target::Server, Blow::Kill) => team.nats.broker.restart()?,
        (Target::Server, Blow::Pause) => signal(team, Signal::CONT),
        (Target::Member(i), Blow::Kill) => team.run(i)?,
        (Target::Member(i), Blow::Pause) => team.pause(i, false),
    }
    Ok(())
}

fn signal(team: &Team, signal: Signal) {
    if let Some(pid) = i32::try_from(team.nats.broker.pid()).ok().and_then(Pid::from_raw) {
        // An error says that it has ended.
        let _ = kill_process(pid, signal);
    }
}
