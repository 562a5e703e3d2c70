//! Tries every subject that a user may not publish to as the address of an answer: NATS does not check where an
//! answer goes, and the server and the Hub may publish more than the user who asks.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_nats::HeaderMap;
use casebook_cli::cluster::users;
use casebook_evidence::DOMAINS;
use casebook_hub::service::OpenAnswer;
use casebook_hub::{archive, verify};
use casebook_protocol::subject::{self, Queue};
use casebook_protocol::{Domain, InvestigationId};
use casebook_runtime::nats::permit::User;
use casebook_runtime::nats::{self, Connection};
use casebook_runtime::process;
use futures_util::StreamExt;
use serde_json::Value;

use crate::nats::Nats;
use crate::team::{Part, Processes};
use crate::wait;
use crate::{Result, generate};

const ANSWER: Duration = Duration::from_secs(5);
/// Maximum wait for an investigation.
const PATIENCE: Duration = Duration::from_secs(90);
/// How long the counts of all streams must stay equal before they are compared.
const SETTLED: Duration = Duration::from_millis(400);
/// How often an investigation under way is attacked.
const ROUNDS: usize = 3;
/// The lease of jobs, in seconds.
const LEASE: &str = "2";
/// The contents of answers: nothing, an API request without and with a body, and a stream.
const BODIES: [&[u8]; 4] = [b"", b"{}", br#"{"seq":1}"#, br#"{"name":"FORGED","subjects":["forged.>"]}"#];

#[derive(Debug, Default)]
pub struct Tried {
    /// Messages sent: each request to each forbidden address.
    pub messages: usize,
    /// What was written, deleted or received that should not have been.
    pub faults: Vec<String>,
}

/// Counts of each stream: consumers, last sequence, and messages of each subject.
type Counts = BTreeMap<String, (u64, u64, BTreeMap<String, u64>)>;

/// Starts a team on this server, and tries every user. Blocks.
pub fn run(server: &Path) -> Result<Tried> {
    let domains = DOMAINS.iter().map(|name| Domain::new(*name)).collect::<Result<Vec<_>, _>>()?;
    let users = users::users(&domains);
    let nats = Nats::guarded_on(server, &users)?;
    generate::write(&nats.folder().join("evidence"), 60_000, 3)?;
    let profile = nats.write("profile.toml", "evidence = \"evidence\"\nindex = \"index\"\n")?;
    let (credentials, key) = (nats.credentials().display().to_string(), nats.mac_key().display().to_string());
    let mut team = Processes::of(nats);
    for part in Part::ALL {
        let mut arguments = vec!["--credentials", &credentials];
        match part {
            Part::Hub => arguments.extend(["--lease", LEASE, "--mac-key-file", &key]),
            Part::Expert => arguments.extend(["--profile", &profile]),
            Part::Director | Part::Critic => {}
        }
        team.add(part, part.name(), &arguments, &[]);
    }
    team.begin()?;
    process::run(tried(&team.nats, &users))?
}

async fn tried(nats: &Nats, users: &[User]) -> Result<Tried> {
    let hub = nats::connect(&nats.options("hub")).await?;
    let queues: Vec<Queue> = users.iter().filter_map(queue).collect();
    let known = alert("known");
    let finished = open(nats, &known).await?;
    closed(&hub, &finished).await?;
    // A job that no consumer takes shows whether the queue is emptied.
    hub.store("casebook.task.parked.x", b"parked".to_vec()).await?;
    let heard = listen(&hub).await?;
    let mut tried = Tried::default();
    for user in users.iter().filter(|user| **user != User::Hub) {
        let attack = Attack::new(nats, user, &queues, &known).await?;
        let before = settled(&hub).await?;
        locked(&heard).clear();
        let targets = targets(&before, &finished);
        tried.messages += attack.send(&targets).await?;
        let after = settled(&hub).await?;
        let name = user.name();
        let wrong = attack.differences(&before, &after).into_iter().chain(attack.foreign(&locked(&heard), &targets));
        tried.faults.extend(wrong.map(|what| format!("{name}: {what}")));
        if before.keys().ne(after.keys()) {
            // Nothing works any more.
            return Ok(tried);
        }
    }
    during(nats, &hub, users, &queues, &mut tried).await?;
    Ok(tried)
}

fn queue(user: &User) -> Option<Queue> {
    if let User::Worker(queue) = user { Some(queue.clone()) } else { None }
}

/// Attacks an investigation that is under way, which must end as any other.
async fn during(nats: &Nats, hub: &Connection, users: &[User], queues: &[Queue], tried: &mut Tried) -> Result<()> {
    let mut attacks = Vec::new();
    for user in users.iter().filter(|user| **user != User::Hub) {
        attacks.push(Attack::new(nats, user, queues, &alert("known")).await?);
    }
    let running = open(nats, &alert("running")).await?;
    let targets = vec![subject::log(&running), subject::result(&running, archive::REPORT_KEY)];
    for _ in 0..ROUNDS {
        for attack in &attacks {
            tried.messages += attack.send(&targets).await?;
        }
    }
    // A worker may take jobs of its queue and drop them: they come again after a lease.
    let store = hub.env().store;
    if let Err(error) = closed(hub, &running).await {
        tried.faults.push(error.to_string());
        return Ok(());
    }
    let problems = verify::verify(store.as_ref(), &running).await?.problems;
    tried.faults.extend(problems.into_iter().map(|problem| format!("the investigation under way: {}", problem.what)));
    Ok(())
}

/// The subjects to which no user but the Hub should get anything written.
fn targets(streams: &Counts, finished: &InvestigationId) -> Vec<String> {
    let mut all: Vec<String> = [
        "casebook.reports",
        "casebook.alerts",
        "casebook.open",
        "casebook.timeline.x",
        "casebook.events.x",
        "casebook.log.x",
        "casebook.task.director.x",
        "casebook.task.critic.x",
        "casebook.task.expert.network.x",
        "casebook.hub.case.critical.x",
        "casebook.hub.waiting",
        "casebook.hub.join.critic",
        "casebook.hub.presence.director",
        "casebook.hub.outcomes.critic",
        "casebook.hub.steps.expert.endpoint",
        "casebook.result.director.x.outcome.r1.plan",
        "casebook.result.critic.x.outcome.r1.review",
        "casebook.result.expert.cloud.x.outcome.r1.investigate.cloud",
        "casebook.result.hub.x.report",
        "casebook.artifact.forged.0",
        "casebook.dead.critic",
        "_INBOX_hub.x",
        "$JS.API.STREAM.CREATE.FORGED",
        "$JS.API.CONSUMER.DELETE.CASEBOOK_TASKS.critic",
        "$JS.API.CONSUMER.DELETE.CASEBOOK_ALERTS.hub",
    ]
    .map(String::from)
    .to_vec();
    all.extend([subject::log(finished), subject::timeline(finished), subject::events(finished)]);
    for stream in streams.keys() {
        all.extend(["MSG.DELETE", "PURGE", "DELETE"].map(|verb| format!("$JS.API.STREAM.{verb}.{stream}")));
    }
    all
}

struct Attack {
    connection: Connection,
    may: Vec<String>,
    /// What the user may send, and with which contents.
    requests: Vec<(String, Vec<u8>)>,
}

impl Attack {
    async fn new(nats: &Nats, user: &User, queues: &[Queue], known: &[u8]) -> Result<Self> {
        let connection = nats::connect(&nats.options(&user.name())).await?;
        let may = user.permissions(queues).publish;
        let mut artifacts = Vec::new();
        if matches!(user, User::Worker(_)) {
            let store = connection.env().store;
            for body in BODIES {
                artifacts.push(subject::artifact(&store.put(body).await?, 0));
            }
        }
        let mut requests = Vec::new();
        for pattern in &may {
            let alone = concrete(pattern);
            if let Some(api) = pattern.strip_suffix("casebook.artifact.>").filter(|api| !api.is_empty()) {
                requests.extend(artifacts.iter().map(|artifact| (format!("{api}{artifact}"), Vec::new())));
            }
            let bodies = if alone == subject::OPEN {
                // An alert that is known already opens nothing.
                vec![known.to_vec(), Vec::new()]
            } else if alone.contains(".MSG.NEXT.") {
                // Any other request waits for a job, and so keeps it from the worker.
                vec![br#"{"batch":1,"no_wait":true}"#.to_vec()]
            } else {
                vec![b"forged".to_vec(), Vec::new()]
            };
            requests.extend(bodies.into_iter().map(|body| (alone.clone(), body)));
        }
        Ok(Self { connection, may, requests })
    }

    /// Sends each request with each target as the address of the answer, and as that of a trace. Returns the number
    /// of messages.
    async fn send(&self, targets: &[String]) -> Result<usize> {
        let client = self.connection.client();
        let mut sent = 0;
        for target in targets.iter().filter(|target| !allowed(&self.may, target)) {
            for (request, body) in &self.requests {
                let body = bytes::Bytes::copy_from_slice(body);
                client.publish_with_reply(request.clone(), target.clone(), body.clone()).await?;
                let mut headers = HeaderMap::new();
                headers.insert("Nats-Trace-Dest", target.as_str());
                client.publish_with_headers(request.clone(), headers, body).await?;
                sent += 2;
            }
        }
        client.flush().await?;
        Ok(sent)
    }

    /// What changed in the streams beyond what the user may publish.
    fn differences(&self, before: &Counts, after: &Counts) -> Vec<String> {
        let mut faults = Vec::new();
        let streams: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
        let alerts = allowed(&self.may, subject::ALERTS);
        for stream in streams {
            let (Some(old), Some(new)) = (before.get(stream), after.get(stream)) else {
                faults.push(format!("stream {stream} was created or deleted"));
                continue;
            };
            if old.0 != new.0 {
                faults.push(format!("stream {stream} had {} consumers, has {}", old.0, new.0));
            }
            let subjects: BTreeSet<&String> = old.2.keys().chain(new.2.keys()).collect();
            let mut written = 0;
            for subject in subjects {
                let count = |of: &(u64, u64, BTreeMap<String, u64>)| of.2.get(subject).copied().unwrap_or(0);
                let (old, new) = (count(old), count(new));
                // A Hub moves what is not an alert to the dead letters.
                let buried = alerts && (subject == subject::DEAD_HUB || subject.starts_with("casebook.artifact."));
                if new < old || (new > old && !allowed(&self.may, subject) && !buried) {
                    faults.push(format!("{subject} had {old} messages, has {new}"));
                }
                written += new.saturating_sub(old);
            }
            // Jobs may be gone before they are counted.
            if new.1 - old.1.min(new.1) != written && !(alerts && stream == nats::streams::ALERTS) {
                faults.push(format!("stream {stream} ended at {}, ends at {}", old.1, new.1));
            }
        }
        faults
    }

    /// The targets on which a message was heard.
    fn foreign(&self, heard: &BTreeSet<String>, targets: &[String]) -> Vec<String> {
        let forbidden = |subject: &&String| targets.contains(subject) && !allowed(&self.may, subject);
        let present = |subject: &&String| subject.starts_with("casebook.hub.presence.");
        heard.iter().filter(forbidden).filter(|s| !present(s)).map(|s| format!("a message came on {s}")).collect()
    }
}

/// A subject that the pattern matches.
pub fn concrete(pattern: &str) -> String {
    pattern.split('.').map(|token| if matches!(token, "*" | ">") { "x" } else { token }).collect::<Vec<_>>().join(".")
}

/// True if one of the patterns matches the whole of `subject`, which may be a pattern itself.
pub fn allowed(patterns: &[String], subject: &str) -> bool {
    patterns.iter().any(|pattern| {
        let (mut wanted, mut found) = (pattern.split('.'), subject.split('.'));
        loop {
            match (wanted.next(), found.next()) {
                (Some(">"), Some(_)) => return true,
                (Some(a), Some(b)) if a == b || (a == "*" && b != ">") => {}
                (None, None) => return true,
                _ => return false,
            }
        }
    })
}

fn alert(id: &str) -> Vec<u8> {
    let mut alert: Value = serde_json::from_str(generate::ALERT).unwrap_or_default();
    if let Some(field) = alert.get_mut("id") {
        *field = id.into();
    }
    alert.to_string().into_bytes()
}

async fn open(nats: &Nats, alert: &[u8]) -> Result<InvestigationId> {
    let publisher = nats::connect(&nats.options("publisher")).await?;
    let answer = publisher.request(subject::OPEN, alert.to_vec(), ANSWER * 2).await?;
    match serde_json::from_slice(&answer)? {
        OpenAnswer::Accepted { investigation, .. } => Ok(InvestigationId::new(investigation)?),
        OpenAnswer::Refused { error } => Err(error.into()),
    }
}

async fn closed(hub: &Connection, id: &InvestigationId) -> Result<()> {
    let store = hub.env().store;
    let closed = wait::soon(PATIENCE, async || archive::state(store.as_ref(), id).await.ok()?.closed).await;
    closed.map(drop).ok_or_else(|| format!("{id} does not end").into())
}

type Heard = Arc<Mutex<BTreeSet<String>>>;

fn locked(heard: &Heard) -> std::sync::MutexGuard<'_, BTreeSet<String>> {
    heard.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Collects the subjects of all messages that a Hub may receive.
async fn listen(hub: &Connection) -> Result<Heard> {
    let mut all = hub.client().subscribe("casebook.>").await?;
    let heard = Heard::default();
    let filled = Arc::clone(&heard);
    tokio::spawn(async move {
        while let Some(message) = all.next().await {
            locked(&filled).insert(message.subject.to_string());
        }
    });
    Ok(heard)
}

async fn api<T: serde::de::DeserializeOwned>(hub: &Connection, request: &str, body: &[u8]) -> Result<T> {
    Ok(serde_json::from_slice(&hub.request(&format!("$JS.API.{request}"), body.to_vec(), ANSWER).await?)?)
}

#[derive(serde::Deserialize)]
struct Names {
    streams: Vec<String>,
}

#[derive(serde::Deserialize)]
struct Info {
    state: State,
}

#[derive(serde::Deserialize)]
struct State {
    consumer_count: u64,
    last_seq: u64,
    #[serde(default)]
    subjects: BTreeMap<String, u64>,
}

async fn counts(hub: &Connection) -> Result<Counts> {
    let names: Names = api(hub, "STREAM.NAMES", b"{}").await?;
    let mut all = Counts::new();
    for name in names.streams {
        let info: Info = api(hub, &format!("STREAM.INFO.{name}"), br#"{"subjects_filter":">"}"#).await?;
        all.insert(name, (info.state.consumer_count, info.state.last_seq, info.state.subjects));
    }
    Ok(all)
}

/// The counts, once nothing changes any more.
async fn settled(hub: &Connection) -> Result<Counts> {
    let end = Instant::now() + PATIENCE;
    let mut before = counts(hub).await?;
    loop {
        tokio::time::sleep(SETTLED).await;
        let now = counts(hub).await?;
        let waiting = now.get(nats::streams::ALERTS).is_some_and(|(_, _, subjects)| !subjects.is_empty());
        if (now == before && !waiting) || Instant::now() > end {
            return Ok(now);
        }
        before = now;
    }
}
