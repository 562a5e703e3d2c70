//! Many investigations at once by a team of processes over a NATS server that syncs each append.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use casebook_expert::roster;
use casebook_protocol::{Report, subject};
use casebook_runtime::bus::Subscription;
use casebook_runtime::nats::Connection;
use futures_util::TryStreamExt;

use super::measure::micros;
use super::{Setting, Taken, evidence, measure};
use crate::Result;
use crate::lab::{FORMS, models_file};
use crate::nats::Nats;
use crate::team::{Part, Processes};

const REPORT: Duration = Duration::from_secs(900);

pub fn run(setting: &Setting) -> Result<Taken> {
    let team = team(setting)?;
    let mut taken = tokio::runtime::Runtime::new()?.block_on(investigate(setting, &team))?;
    taken.stored = setting.share(measure::bytes_under(&team.nats.folder().join("nats/store")));
    Ok(taken)
}

async fn investigate(setting: &Setting, team: &Processes) -> Result<Taken> {
    let (connection, publisher) = (team.connection().await?, team.publisher().await?);
    let mut reports = connection.env().bus.subscribe(subject::REPORTS).await?;
    // One unmeasured investigation first, as in the other modes: then the Hub knows all workers.
    ask(&publisher, setting.all()).await?;
    next(&mut *reports).await?;
    let broker = team.nats.broker.pid();
    let processes: Vec<(&str, u32)> =
        team.members.iter().filter_map(|member| Some((member.name.as_str(), member.id()?))).collect();
    let before: Vec<u64> = processes.iter().map(|(_, id)| measure::cpu_of(*id)).collect();
    let peak_kib = || processes.iter().map(|(_, id)| measure::peak_kib(*id)).sum();
    let mut taken = Taken { before_kib: peak_kib(), ..Taken::default() };
    let (broker_before, stored, begun) = (measure::cpu_of(broker), messages(&connection).await?, Instant::now());
    let mut seen = BTreeSet::new();
    for wave in 1..=setting.waves {
        for n in (wave - 1) * setting.at..wave * setting.at {
            ask(&publisher, n).await?;
        }
        while seen.len() < wave * setting.at {
            let report = next(&mut *reports).await?;
            // A report is published at least once.
            if seen.insert(report.investigation.clone()) {
                taken.add(&report, setting.rounds);
            }
        }
    }
    taken.wall_micros = micros(begun.elapsed());
    for ((name, id), before) in processes.iter().zip(before) {
        let cpu = measure::cpu_of(*id).saturating_sub(before);
        taken.cpu_micros += cpu;
        eprintln!("  {name:<22} {:>9.1} ms CPU an investigation", cpu as f64 / 1e3 / setting.all().max(1) as f64);
    }
    taken.broker_cpu_micros = measure::cpu_of(broker).saturating_sub(broker_before);
    taken.peak_kib = peak_kib();
    taken.messages = messages(&connection).await?.saturating_sub(stored);
    Ok(taken)
}

async fn ask(connection: &Connection, n: usize) -> Result<()> {
    let alert = evidence::alert_text(n).into_bytes();
    connection.request(subject::OPEN, alert, Duration::from_secs(60)).await?;
    Ok(())
}

async fn next(reports: &mut dyn Subscription) -> Result<Report> {
    let message = tokio::time::timeout(REPORT, reports.next()).await.map_err(|_| "no report arrived")?;
    Ok(serde_json::from_slice(&message.ok_or("the connection is closed")?.bytes)?)
}

async fn messages(connection: &Connection) -> Result<u64> {
    let context = async_nats::jetstream::new(connection.client().clone());
    let all: Vec<_> = context.streams().try_collect().await?;
    Ok(all.iter().map(|stream| stream.state.last_sequence).sum())
}

fn team(setting: &Setting) -> Result<Processes> {
    let mut team = Processes::of(Nats::start()?);
    let key = team.nats.write("key", "none")?;
    let models = models_file(&setting.url, FORMS[0], key.as_ref(), "concurrency = 1024");
    let models = team.nats.write("models.toml", &models)?;
    let (at_once, rounds) = (setting.at.max(64).to_string(), (setting.rounds + 2).to_string());
    team.add(Part::Hub, "hub", &["--at-once", &at_once, "--budget-rounds", &rounds], &[]);
    let thinks = ["--models", &models, "--at-once", "1024"];
    team.add(Part::Director, "director", &thinks, &[]);
    team.add(Part::Critic, "critic", &thinks, &[]);
    for team_member in roster::members(&Arc::new(setting.catalog()?)) {
        let domain = &team_member.member.domain;
        let (evidence, index) = (setting.evidence(), team.nats.folder().join("index"));
        let profile = format!("evidence = {evidence:?}\nindex = {index:?}\ndomains = [\"{domain}\"]\n");
        let profile = team.nats.write(&format!("{domain}.toml"), &profile)?;
        let arguments = [&["--profile", &profile], &thinks[..]].concat();
        team.add(Part::Expert, &format!("expert-{domain}"), &arguments, &[]);
    }
    team.begin()?;
    Ok(team)
}
