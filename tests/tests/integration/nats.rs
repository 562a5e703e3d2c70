//! The roles over a real NATS server.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use casebook_evidence::rules::RuleSet;
use casebook_evidence::{Catalog, Declared};
use casebook_hub::archive;
use casebook_hub::service::{OpenAnswer, Service, Settings};
use casebook_hub::verify::verify as verified;
use casebook_protocol::subject::{self, Queue};
use casebook_protocol::{Domain, Event, InvestigationId, Join, Member, Recorded, Report, Role, Timeline};
use casebook_runtime::nats::permit::User;
use casebook_runtime::nats::{self, Connection};
use casebook_runtime::process;
use casebook_runtime::wire::WIRE_VERSION;
use casebook_tests::nats::Nats;
use casebook_tests::reply::{allowed, concrete};
use casebook_tests::run::{self, demo};
use casebook_tests::wait::{self, PATIENCE};

mod api;
mod cluster;
mod follow;
mod forged;
mod full;
mod reference;
mod reply;
mod rotate;
mod schema;
mod service;
mod verify;

fn join(role: Role, member: Option<&Member>) -> Join {
    Join {
        protocol: WIRE_VERSION,
        version: env!("CARGO_PKG_VERSION").into(),
        role,
        domain: member.map(|m| m.domain.clone()),
        instance: "one".into(),
        member: member.cloned(),
        at_once: 4,
        leaves: false,
    }
}

async fn enter(nats: &Nats, join: &Join) -> Connection {
    let connection = nats::connect(&nats.options(&join.queue().name())).await.unwrap();
    connection.join(join).await.unwrap();
    let (stays, join) = (connection.clone(), join.clone());
    tokio::spawn(async move { stays.stay(&join).await });
    connection
}

/// Sends an alert to the server of `connection`, which has no users.
async fn open(connection: &Connection, alert: &[u8]) -> InvestigationId {
    let (url, user) = (connection.url().to_owned(), "publisher".to_owned());
    let publisher = nats::connect(&nats::Options { url, user, ..nats::Options::default() }).await.unwrap();
    publish(&publisher, alert).await
}

async fn publish(publisher: &Connection, alert: &[u8]) -> InvestigationId {
    let answer = publisher.request(subject::OPEN, alert.to_vec(), Duration::from_secs(10)).await.unwrap();
    schema::holds("alert", alert);
    schema::holds("opened", &answer);
    match serde_json::from_slice(&answer).unwrap() {
        OpenAnswer::Accepted { investigation, .. } => InvestigationId::new(investigation).unwrap(),
        OpenAnswer::Refused { error } => panic!("{error}"),
    }
}

async fn concluded(connection: &Connection, id: &InvestigationId) -> Report {
    let store = connection.env().store;
    let closed = async || archive::state(store.as_ref(), id).await.ok()?.closed;
    wait::soon(PATIENCE, closed).await.unwrap_or_else(|| panic!("{id} does not end"));
    archive::report(store.as_ref(), id).await.unwrap()
}

/// Evidence stands at its place on this machine in one home, and with the Experts in the other.
fn comparable(report: &Report) -> String {
    serde_json::to_string_pretty(&casebook_report::compare::stable(report)).unwrap()
}

/// Every role on a server of its own, each with its own connection and user.
struct Team {
    nats: Nats,
    hub: Connection,
    service: Service,
    experts: Vec<(Member, Connection)>,
}

impl Team {
    async fn start(nats: Nats, evidence: &Path, settings: Settings) -> Self {
        let hub = nats::connect(&nats.options("hub")).await.unwrap();
        let service = Service::start(hub.clone(), settings).await.unwrap();
        Self::enter(nats, hub, service, evidence).await
    }

    /// The workers join a Hub that is there.
    async fn enter(nats: Nats, hub: Connection, service: Service, evidence: &Path) -> Self {
        let director = enter(&nats, &join(Role::Director, None)).await;
        casebook_director::actor::start(director.env());
        let critic = enter(&nats, &join(Role::Critic, None)).await;
        casebook_critic::actor::start(critic.env());
        let index = nats.folder().join("index");
        let declared = run::team(evidence).unwrap().map(|team| team.declared.clone());
        let declared = Declared { rule_set: Some(RuleSet::built_in()), ..declared.unwrap_or_default() };
        let catalog = Arc::new(Catalog::declared_in(evidence, &index, None, &declared, &mut |_| {}).unwrap());
        let mut experts = Vec::new();
        for team_member in casebook_expert::roster::members(&catalog) {
            let expert = enter(&nats, &join(Role::Expert, Some(&team_member.member))).await;
            casebook_expert::actor::start(expert.env(), &team_member.member.domain, team_member.tools);
            experts.push((team_member.member, expert));
        }
        Self { nats, hub, service, experts }
    }
}

fn users(evidence: &Path) -> Vec<User> {
    let folder = tempfile::tempdir().unwrap();
    let catalog = Catalog::open(evidence, &folder.path().join("index.sqlite"), &mut |_| {}).unwrap();
    let domains: BTreeSet<Domain> = catalog.sources().iter().map(|s| s.domain.clone()).collect();
    let experts = domains.iter().map(|d| User::Worker(Queue::new(Role::Expert, Some(d))));
    let others = [Role::Director, Role::Critic].map(|role| User::Worker(Queue::new(role, None)));
    [User::Hub, User::Publisher, User::Reader, User::Integration].into_iter().chain(others).chain(experts).collect()
}

#[test]
fn investigation_over_nats_gives_the_embedded_report() {
    let alert = std::fs::read(demo().join("alert.json")).unwrap();
    let evidence = demo().join("evidence");
    let embedded = run::investigate(&demo().join("alert.json"), &evidence).unwrap();
    let distributed = process::run(async {
        let team = Team::start(Nats::guarded(&users(&evidence)).unwrap(), &evidence, Settings::default()).await;
        let publisher = nats::connect(&team.nats.options("publisher")).await.unwrap();
        let reader = nats::connect(&team.nats.options("reader")).await.unwrap();
        let mut events = reader.env().bus.subscribe("casebook.events.>").await.unwrap();
        let mut timelines = reader.env().bus.subscribe("casebook.timeline.>").await.unwrap();
        let mut reports = reader.env().bus.subscribe(subject::REPORTS).await.unwrap();
        let id = publish(&publisher, &alert).await;
        assert_eq!(publish(&publisher, &alert).await, id, "the same alert is the same investigation");
        let report = concluded(&reader, &id).await;
        let message = reports.next().await.unwrap();
        schema::holds("report", &message.bytes);
        assert_eq!(serde_json::from_slice::<Report>(&message.bytes).unwrap(), report);
        let log = reader.env().store.log(&id, 1).await.unwrap();
        let mut rewritten = 0;
        for entry in log {
            let message = events.next().await.unwrap();
            schema::holds("event", &message.bytes);
            let told: Recorded = serde_json::from_slice(&message.bytes).unwrap();
            assert_eq!(told, entry, "every event is published, in order");
            if let Event::TimelineRewritten { timeline } = entry.event {
                let message = timelines.next().await.unwrap();
                schema::holds("timeline", &message.bytes);
                assert_eq!(serde_json::from_slice::<Timeline>(&message.bytes).unwrap(), timeline);
                rewritten += 1;
            }
        }
        assert!(rewritten > 1);
        assert_eq!(verified(reader.env().store.as_ref(), &id).await.unwrap().problems, []);
        for connection in [&team.hub, &publisher, &reader].into_iter().chain(team.experts.iter().map(|(_, c)| c)) {
            assert_eq!(connection.refusals().count(), 0, "permissions are enough");
        }
        assert_eq!(team.service.workers().len(), 2 + team.experts.len());
        report
    })
    .unwrap();
    assert_eq!(comparable(&distributed), comparable(&embedded));
}

#[test]
fn server_refuses_each_forbidden_subject_of_each_role() {
    let domains = ["network", "endpoint"].map(|d| Domain::new(d).unwrap());
    let mut users = vec![User::Hub, User::Publisher, User::Reader, User::Integration];
    users.extend([Role::Director, Role::Critic].map(|role| User::Worker(Queue::new(role, None))));
    users.extend(domains.iter().map(|d| User::Worker(Queue::new(Role::Expert, Some(d)))));
    let queues: Vec<Queue> =
        users.iter().filter_map(|u| if let User::Worker(q) = u { Some(q.clone()) } else { None }).collect();
    let all = users.iter().map(|user| user.permissions(&queues));
    // What anyone may do, what only the Hub does, and what no user should.
    let mut publishes: BTreeSet<String> = all.clone().flat_map(|p| p.publish).map(|p| concrete(&p)).collect();
    publishes.extend(
        [
            "casebook.log.x",
            "casebook.result.hub.x.report",
            "casebook.events.x",
            "casebook.timeline.x",
            "casebook.reports",
            "casebook.task.expert.network.x",
            "casebook.hub.case.low.x",
            "casebook.hub.waiting",
            "$JS.API.STREAM.CREATE.CASEBOOK_X",
            "$JS.API.STREAM.DELETE.CASEBOOK_LOG",
            "$JS.API.STREAM.PURGE.CASEBOOK_LOG",
            "$JS.API.STREAM.MSG.DELETE.CASEBOOK_LOG",
            "$JS.API.STREAM.MSG.GET.CASEBOOK_TASKS",
            "$JS.API.CONSUMER.CREATE.CASEBOOK_TASKS.x",
            "$JS.API.CONSUMER.DELETE.CASEBOOK_TASKS.critic",
            "$JS.API.STREAM.UPDATE.CASEBOOK_TASKS",
            "$JS.ACK.CASEBOOK_CASES.low.x",
            "casebook.accepted",
            "casebook.api.CONSUMER.CREATE.CASEBOOK_LOG.x",
            "casebook.api.CONSUMER.DURABLE.CREATE.CASEBOOK_LOG.x",
            "casebook.api.CONSUMER.MSG.NEXT.CASEBOOK_ALERTS.hub",
            "$SYS.REQ.SERVER.PING",
        ]
        .map(String::from),
    );
    let mut subscribes: BTreeSet<String> = all.flat_map(|p| p.subscribe).collect();
    subscribes.extend(
        [
            ">",
            "casebook.task.>",
            "casebook.task.expert.endpoint.>",
            "casebook.log.*",
            "casebook.hub.>",
            "casebook.result.>",
            "casebook.artifact.>",
            "$JS.>",
            "$JS.ACK.>",
            "_INBOX.>",
            "$SYS.>",
        ]
        .map(String::from),
    );
    process::run(async {
        let nats = Nats::guarded(&users).unwrap();
        for user in &users {
            let connection = nats::connect(&nats.options(&user.name())).await.unwrap();
            let permissions = user.permissions(&queues);
            let forbidden: Vec<&String> = publishes.iter().filter(|s| !allowed(&permissions.publish, s)).collect();
            for subject in &forbidden {
                connection.tell(subject, b"forged".to_vec()).await.unwrap();
            }
            let deaf: Vec<&String> = subscribes.iter().filter(|s| !allowed(&permissions.subscribe, s)).collect();
            let mut held = Vec::new();
            for subject in &deaf {
                held.push(connection.env().bus.subscribe(subject).await.unwrap());
            }
            let tried =
                || forbidden.iter().chain(&deaf).filter(|s| connection.refusals().of(s).is_none()).collect::<Vec<_>>();
            let all = wait::soon(PATIENCE, async || tried().is_empty().then_some(())).await;
            assert!(all.is_some(), "{} was not refused {:?}", user.name(), tried());
            assert!(forbidden.len() + deaf.len() > 10, "{} may do nearly everything", user.name());
        }
    })
    .unwrap();
}
