//! Starts the team, sends the alerts, kills and pauses processes, waits for the end, and checks it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use casebook_hub::investigation_id;
use casebook_protocol::{Alert, InvestigationId, Timestamp};
use casebook_runtime::nats::Connection;
use tokio::runtime::Runtime;

use super::books::{Away, Balance, Begun, Finished, GRACE, Ms, balance, tasks};
use super::noise::{self, Doubled};
use super::plan::{Blow, Strike, Target, plan};
use super::{Order, closing};
use crate::Result;
use crate::team::Team;

const LOOK: Duration = Duration::from_millis(500);

#[derive(Debug, Default)]
pub struct Survived {
    pub seed: u64,
    pub struck: BTreeMap<(String, Blow), u32>,
    pub investigations: usize,
    pub events: u64,
    pub citations: u64,
    pub models: Balance,
    pub tools: Balance,
    /// Repeated notices, repeated jobs that were accepted or refused, and accepted alerts.
    pub doubled: [u64; 4],
    /// From the first alert to the last kill or pause.
    pub struck_for: Duration,
    /// From the last kill or pause to the end.
    pub settled: Duration,
    pub faults: Vec<String>,
}

impl Survived {
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
                "  {finished} {what} calls, {again} of them repeated: {} in flight, {late} within {GRACE} ms \
                 after they were recorded",
                again.saturating_sub(*late)
            )?;
        }
        write!(
            f,
            "  killed and paused for {:.1} s, finished {:.1} s later",
            self.struck_for.as_secs_f64(),
            self.settled.as_secs_f64()
        )?;
        self.faults.iter().try_for_each(|fault| write!(f, "\n  WRONG: {fault}"))
    }
}

/// A team over NATS, with the expected investigations and the kills and pauses so far.
pub(super) struct Rig {
    pub(super) team: Team,
    pub(super) runtime: Runtime,
    pub(super) connection: Connection,
    pub(super) publisher: Connection,
    pub(super) away: Vec<Away>,
    expected: BTreeSet<InvestigationId>,
    seed: u64,
    lease: Ms,
}

impl Rig {
    pub(super) fn start(order: &Order) -> Result<Self> {
        Self::of(Team::start(&order.shape)?, order)
    }

    pub(super) fn of(team: Team, order: &Order) -> Result<Self> {
        let runtime = Runtime::new()?;
        let connection = runtime.block_on(team.connection())?;
        let publisher = runtime.block_on(team.publisher())?;
        let lease = Ms::try_from(order.shape.lease * 1_000)?;
        let (expected, away) = (BTreeSet::new(), Vec::new());
        Ok(Self { team, runtime, connection, publisher, away, expected, seed: order.seed, lease })
    }

    /// The alert with this number; from now on, its investigation is expected.
    pub(super) fn alert(&mut self, n: usize) -> Result<Vec<u8>> {
        let (alert, bytes) = alert(self.seed, n)?;
        self.expected.insert(investigation_id(&alert.id, 1));
        Ok(bytes)
    }

    /// Waits until everything is finished. Returns what is not.
    pub(super) fn settle(&self, patience: Duration, pause: Duration) -> Vec<String> {
        let end = Instant::now() + patience;
        loop {
            let open = self.runtime.block_on(closing::unfinished(&self.connection, &self.expected));
            if open.is_empty() || Instant::now() > end {
                return open;
            }
            std::thread::sleep(pause);
        }
    }

    pub(super) fn check(&self, survived: &mut Survived) -> Result<Books> {
        let kept = (self.away.as_slice(), self.lease);
        self.runtime.block_on(check(&self.team, &self.connection, &self.expected, kept, survived))
    }
}

/// Performs a run. Faults are part of the answer, not an error.
pub fn run(order: &Order) -> Result<(Team, Survived)> {
    let lease = Duration::from_secs(order.shape.lease);
    run_with(order, plan(order.seed, &order.shape.members(), lease, order.length))
}

/// Like [`run`], with the given strikes.
pub fn run_with(order: &Order, strikes: Vec<Strike>) -> Result<(Team, Survived)> {
    let mut rig = Rig::start(order)?;
    let doubled = Arc::new(Doubled::default());
    alerts(&mut rig, order, &doubled)?;
    let notices = noise::notices(rig.connection.clone(), order.seed ^ 1, Arc::clone(&doubled));
    let jobs = noise::jobs(rig.connection.clone(), order.seed ^ 2, Arc::clone(&doubled));
    let (notices, jobs) = (rig.runtime.spawn(notices), rig.runtime.spawn(jobs));
    let began = Instant::now();
    let mut survived = Survived { seed: order.seed, ..Survived::default() };
    strike(&mut rig, strikes, &mut survived)?;
    survived.struck_for = began.elapsed();
    jobs.abort();
    let last = Instant::now();
    let open = rig.settle(order.patience, LOOK);
    survived.settled = last.elapsed();
    notices.abort();
    survived.faults.extend(open.into_iter().map(|what| format!("not finished after {:?}: {what}", order.patience)));
    survived.faults.extend(rig.team.ended());
    if survived.faults.is_empty() {
        rig.check(&mut survived)?;
    }
    let Doubled { notices, jobs, refused, alerts } = doubled.as_ref();
    survived.doubled = [notices, jobs, refused, alerts].map(|count| count.load(Ordering::Relaxed));
    Ok((rig.team, survived))
}

pub type Books = [(Vec<Begun>, Vec<Finished>); 2];

/// Checks the end state, and returns the calls.
pub async fn check(
    team: &Team,
    connection: &Connection,
    expected: &BTreeSet<InvestigationId>,
    (away, lease): (&[Away], Ms),
    survived: &mut Survived,
) -> Result<Books> {
    let entries = team.model.log().ledger();
    let closing = closing::closing(connection, expected, &entries).await?;
    survived.investigations = expected.len();
    survived.events = closing.events;
    survived.citations = closing.citations;
    survived.faults.extend(closing.faults);
    let books = [(closing::asked(team, &entries)?, closing.models), (closing::ran(team), closing.tools)];
    let tasks = tasks(&books);
    let [models, tools] = books.each_ref().map(|(begun, done)| balance(begun, done, away, (&tasks, lease)));
    survived.faults.extend(models.faults.iter().chain(&tools.faults).cloned());
    (survived.models, survived.tools) = (models, tools);
    Ok(books)
}

/// The alert with this number; no two alerts give the same prompt.
pub fn alert(seed: u64, n: usize) -> Result<(Alert, Vec<u8>)> {
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
    Ok((Alert::parse(&bytes)?, bytes))
}

/// Sends the alerts during the first three quarters of the time.
fn alerts(rig: &mut Rig, order: &Order, doubled: &Arc<Doubled>) -> Result<()> {
    let all = u32::try_from(order.investigations)?.max(1);
    for (n, place) in (0..order.investigations).zip(0..) {
        let bytes = rig.alert(n)?;
        let later = order.length * 3 / 4 / all * place;
        let (connection, doubled) = (rig.publisher.clone(), Arc::clone(doubled));
        rig.runtime.spawn(async move {
            tokio::time::sleep(later).await;
            noise::alert(connection, bytes, doubled).await;
        });
    }
    Ok(())
}

/// Performs the strikes, ends each one, and records when the targets were unavailable.
fn strike(rig: &mut Rig, planned: Vec<Strike>, survived: &mut Survived) -> Result<()> {
    let began = Instant::now();
    let mut steps: Vec<(Duration, usize, bool)> = Vec::new();
    for (place, strike) in planned.iter().enumerate() {
        steps.extend([(strike.at, place, true), (strike.at + strike.away, place, false)]);
    }
    // A strike that ends at a moment precedes one that begins then.
    steps.sort_by_key(|(at, place, begins)| (*at, *begins, *place));
    let mut places = BTreeMap::new();
    for (at, place, begins) in steps {
        let Some(strike) = planned.get(place) else { continue };
        std::thread::sleep(at.saturating_sub(began.elapsed()));
        if begins {
            *survived.struck.entry((hit(&mut rig.team, strike), strike.blow)).or_default() += 1;
            places.insert(place, rig.away.len());
            let who = if let Target::Member(i) = strike.target { Some(i) } else { None };
            rig.away.push(Away { who, from: now(), until: Ms::MAX, ..Away::default() });
        } else {
            if let Some(away) = places.get(&place).and_then(|place| rig.away.get_mut(*place)) {
                away.until = now();
            }
            mend(&mut rig.team, strike)?;
        }
    }
    Ok(())
}

pub(super) fn now() -> Ms {
    Timestamp::now().as_millisecond()
}

fn hit(team: &mut Team, strike: &Strike) -> String {
    match (strike.target, strike.blow) {
        (Target::Server, Blow::Kill) => team.nats.broker.kill(),
        (Target::Server, Blow::Pause) => team.pause_server(true),
        (Target::Member(i), Blow::Kill) => team.kill(i),
        (Target::Member(i), Blow::Pause) => team.pause(i, true),
    }
    match strike.target {
        Target::Server => "server".to_owned(),
        Target::Member(i) => team.members.get(i).map(|m| m.part.name().to_owned()).unwrap_or_default(),
    }
}

fn mend(team: &mut Team, strike: &Strike) -> Result<()> {
    match (strike.target, strike.blow) {
        (Target::Server, Blow::Kill) => team.nats.broker.restart()?,
        (Target::Server, Blow::Pause) => team.pause_server(false),
        (Target::Member(i), Blow::Kill) => team.run(i)?,
        (Target::Member(i), Blow::Pause) => team.pause(i, false),
    }
    Ok(())
}
