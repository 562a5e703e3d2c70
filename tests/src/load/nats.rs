//! Many investigations at once by a team of processes over a real NATS server that syncs each append.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use casebook_cli::cluster::process::{self, Process};
use casebook_evidence::Catalog;
use casebook_expert::roster;
use casebook_protocol::{Report, subject};
use casebook_runtime::bus::Subscription;
use casebook_runtime::nats::{self, Connection};
use futures_util::TryStreamExt;

use super::embedded::failed;
use super::floor::micros;
use super::{Setting, Taken, evidence, measure, models_file};
use crate::nats::Nats;
use crate::run;

/// How long a team may take until all of it is ready.
const READY: Duration = Duration::from_secs(60);
/// How long one report may be waited for.
const REPORT: Duration = Duration::from_secs(900);

/// Has a team investigate so many alerts at once.
///
/// # Errors
/// What went wrong, in words.
pub fn run(setting: &Setting) -> Result<Taken, String> {
    let nats = Nats::start()?;
    let team = Team::start(&nats, setting)?;
    let runtime = tokio::runtime::Runtime::new().map_err(|e| e.to_string())?;
    let mut taken = runtime.block_on(investigate(setting, &nats, &team))?;
    taken.stored = setting.share(measure::bytes_under(&nats.folder().join("nats/store")));
    Ok(taken)
}

async fn investigate(setting: &Setting, nats: &Nats, team: &Team) -> Result<Taken, String> {
    let say = |e: &dyn std::fmt::Display| e.to_string();
    let connection = nats::connect(&nats.options("hub")).await.map_err(|e| say(&e))?;
    let mut reports = connection.env().bus.subscribe(subject::REPORTS).await.map_err(|e| say(&e))?;
    // One before what is measured, as in the other modes: the Hub knows by then who is there.
    ask(&connection, setting.all()).await?;
    next(&mut *reports).await?;
    let broker = nats.broker.pid();
    let before: Vec<u64> = team.0.iter().map(|process| measure::cpu_of(process.id())).collect();
    let mut taken = Taken { before_kib: team.peak_kib(), ..Taken::default() };
    let (broker_before, stored, begun) = (measure::cpu_of(broker), messages(&connection).await?, Instant::now());
    let mut seen = BTreeSet::new();
    for wave in 1..=setting.waves {
        for n in (wave - 1) * setting.at..wave * setting.at {
            ask(&connection, n).await?;
        }
        while seen.len() < wave * setting.at {
            let report = next(&mut *reports).await?;
            // A report is published at least once.
            if seen.insert(report.investigation.clone()) {
                taken.model_calls += report.usage.total.model_calls;
                taken.tool_calls += report.usage.total.tool_calls;
                taken.failed += u64::from(failed(&report.investigation, &report, setting.rounds));
            }
        }
    }
    taken.wall_micros = micros(begun.elapsed());
    for (process, before) in team.0.iter().zip(before) {
        let cpu = measure::cpu_of(process.id()).saturating_sub(before);
        taken.cpu_micros += cpu;
        let name = &process.name;
        eprintln!("  {name:<22} {:>9.1} ms CPU an investigation", cpu as f64 / 1e3 / setting.all().max(1) as f64);
    }
    taken.broker_cpu_micros = measure::cpu_of(broker).saturating_sub(broker_before);
    taken.peak_kib = team.peak_kib();
    taken.messages = messages(&connection).await?.saturating_sub(stored);
    Ok(taken)
}

async fn ask(connection: &Connection, n: usize) -> Result<(), String> {
    let alert = evidence::alert_text(n).into_bytes();
    connection.request(subject::OPEN, alert, Duration::from_secs(60)).await.map(drop).map_err(|e| e.to_string())
}

async fn next(reports: &mut dyn Subscription) -> Result<Report, String> {
    let message = tokio::time::timeout(REPORT, reports.next()).await.map_err(|_| "no report comes".to_owned())?;
    serde_json::from_slice(&message.ok_or("the connection is closed")?.bytes).map_err(|e| e.to_string())
}

/// Messages that were stored so far, in all streams.
async fn messages(connection: &Connection) -> Result<u64, String> {
    let context = async_nats::jetstream::new(connection.client().clone());
    let all: Vec<_> = context.streams().try_collect().await.map_err(|e| e.to_string())?;
    Ok(all.iter().map(|stream| stream.state.last_sequence).sum())
}

/// The processes of a team, ended when they are dropped.
struct Team(Vec<Process>);

impl Team {
    fn start(nats: &Nats, setting: &Setting) -> Result<Self, String> {
        let say = |e: &dyn std::fmt::Display| e.to_string();
        let catalog = Catalog::open(&setting.evidence, &setting.index, &mut |_| {}).map_err(|e| say(&e))?;
        let folder = nats.folder().to_path_buf();
        let write = |name: &str, text: &str| -> Result<PathBuf, String> {
            let path = folder.join(name);
            std::fs::write(&path, text).map_err(|e| e.to_string())?;
            Ok(path)
        };
        let key = write("key", "none")?;
        let models = write("models.toml", &models_file(&setting.url, &key))?.display().to_string();
        let mut team = Self(Vec::new());
        let (at_once, rounds) = (setting.at.max(64).to_string(), (setting.rounds + 2).to_string());
        team.run(nats, "hub", "hub", &["--at-once", &at_once, "--budget-rounds", &rounds])?;
        for role in ["director", "critic"] {
            team.run(nats, role, role, &["--models", &models, "--at-once", "1024"])?;
        }
        for seat in roster::seats(&Arc::new(catalog)) {
            let domain = &seat.member.domain;
            let text = format!(
                "evidence = {:?}\nindex = {:?}\ndomains = [\"{domain}\"]\n",
                setting.evidence.display().to_string(),
                folder.join("index").display().to_string()
            );
            let profile = write(&format!("{domain}.toml"), &text)?.display().to_string();
            let name = format!("expert-{domain}");
            team.run(nats, "expert", &name, &["--profile", &profile, "--models", &models, "--at-once", "1024"])?;
        }
        let end = Instant::now() + READY;
        let ready = |process: &Process| process.ready().is_some_and(|answer| answer.ready);
        while !team.0.iter().all(ready) {
            if Instant::now() > end {
                return Err("the team does not become ready".into());
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(team)
    }

    fn run(&mut self, nats: &Nats, role: &str, name: &str, more: &[&str]) -> Result<(), String> {
        let mut command = process::serving(&run::program(&format!("casebook-{role}")));
        command.args(["--nats", &nats.broker.url()]).args(more);
        let log = nats.folder().join(format!("{name}.log"));
        self.0.push(Process::start(name, &mut command, &log).map_err(|e| e.to_string())?);
        Ok(())
    }

    fn peak_kib(&self) -> u64 {
        self.0.iter().map(|process| measure::peak_kib_of(process.id())).sum()
    }
}
