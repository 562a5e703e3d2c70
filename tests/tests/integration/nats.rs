//! The roles over a real NATS server.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use casebook_agent::nats::{self, Connection};
use casebook_agent::process;
use casebook_agent::wire::WIRE_VERSION;
use casebook_expert::evidence::Catalog;
use casebook_hub::service::{OpenAnswer, Service, Settings};
use casebook_hub::{archive, report};
use casebook_protocol::{Domain, InvestigationId, Join, Member, Report, Role, subject};
use casebook_tests::nats::Nats;
use casebook_tests::run;

fn demo() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("cases/package-hook-kmod")
}

fn join(role: Role, member: Option<&Member>) -> Join {
    Join {
        protocol: WIRE_VERSION,
        version: env!("CARGO_PKG_VERSION").into(),
        role,
        domain: member.map(|m| m.domain.clone()),
        instance: "one".into(),
        member: member.cloned(),
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

async fn open(connection: &Connection, alert: &[u8]) -> InvestigationId {
    let answer = connection.request(subject::OPEN, alert.to_vec(), Duration::from_secs(10)).await.unwrap();
    match serde_json::from_slice(&answer).unwrap() {
        OpenAnswer::Accepted { investigation, .. } => InvestigationId::new(investigation).unwrap(),
        OpenAnswer::Refused { error } => panic!("{error}"),
    }
}

async fn concluded(connection: &Connection, id: &InvestigationId) -> Report {
    let store = connection.env().store;
    for _ in 0..600 {
        if archive::state(store.as_ref(), id).await.is_ok_and(|state| state.closed.is_some()) {
            return archive::report(store.as_ref(), id).await.unwrap();
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("{id} does not end");
}

/// Evidence stands at its place on this machine in one home, and with the Experts in the other.
fn comparable(report: &Report) -> String {
    serde_json::to_string_pretty(&report::stable(report)).unwrap()
}

#[test]
fn over_nats_an_investigation_ends_in_the_same_report_as_embedded() {
    let alert = std::fs::read(demo().join("alert.json")).unwrap();
    let embedded = run::investigate(&demo().join("alert.json"), &demo().join("evidence")).unwrap();
    let distributed = process::run(async {
        let nats = Nats::start().unwrap();
        let hub = nats::connect(&nats.options("hub")).await.unwrap();
        let _service = Service::start(hub.clone(), Settings::default()).await.unwrap();
        let director = enter(&nats, &join(Role::Director, None)).await;
        casebook_director::actor::start(director.env());
        let critic = enter(&nats, &join(Role::Critic, None)).await;
        casebook_critic::actor::start(critic.env());
        let index = nats.folder().join("index.sqlite");
        let catalog = Arc::new(Catalog::open(&demo().join("evidence"), &index, &mut |_| {}).unwrap());
        for seat in casebook_expert::roster::seats(&catalog) {
            let expert = enter(&nats, &join(Role::Expert, Some(&seat.member))).await;
            casebook_expert::actor::start(expert.env(), &seat.member.domain, seat.tools);
        }
        let id = open(&hub, &alert).await;
        assert_eq!(open(&hub, &alert).await, id, "the same alert is the same investigation");
        concluded(&hub, &id).await
    })
    .unwrap();
    assert_eq!(comparable(&distributed), comparable(&embedded));
    let _ = Domain::new("x");
}
