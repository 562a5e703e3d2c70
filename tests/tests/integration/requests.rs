//! The requests to models, kept with the investigation.

use std::collections::BTreeMap;
use std::path::Path;

use casebook_agent::model::kept::{self, KeptError};
use casebook_agent::model::{Ask, Message};
use casebook_hub::{SqliteStore, archive, verify};
use casebook_protocol::{Budget, Event, InvestigationId, ModelCall, TaskId};
use casebook_runtime::store::Store;
use casebook_tests::lab::{FORMS, Lab};
use casebook_tests::model::brain::Brain;
use casebook_tests::model::server::Options;
use casebook_tests::run::demo;

/// What the requests of five rounds may take, packed.
const MOST: u64 = 300_000;

fn lab(keep: bool) -> (Lab, InvestigationId) {
    let mut lab = Lab::start_with(Brain { rounds: 5, ..Brain::default() }, FORMS[0], "", Options::default()).unwrap();
    if !keep {
        lab.file = format!("keep_requests = false\n{}", lab.file);
    }
    let report = lab.investigate(&demo(), Budget::default()).unwrap();
    (lab, report.investigation)
}

/// The model calls of each task, in order.
async fn calls(store: &dyn Store, id: &InvestigationId) -> BTreeMap<TaskId, Vec<ModelCall>> {
    let mut calls: BTreeMap<TaskId, Vec<ModelCall>> = BTreeMap::new();
    for entry in archive::log(store, id).await.unwrap() {
        if let Event::ModelCalled { task, call } = entry.event {
            calls.entry(task).or_default().push(call);
        }
    }
    calls
}

async fn requests(store: &dyn Store, id: &InvestigationId) -> Vec<Ask> {
    let mut all = Vec::new();
    for calls in calls(store, id).await.into_values() {
        let calls: Vec<&ModelCall> = calls.iter().collect();
        for last in 1..=calls.len() {
            let ask = kept::request(store, &calls[..last]).await.unwrap();
            assert_eq!(ask.fingerprint(), calls[last - 1].request);
            assert_eq!(ask.canonical().len() as u64, calls[last - 1].request_bytes);
            all.push(ask);
        }
    }
    all
}

/// The packed bytes of all artifacts, with what SQLite needs for a row and its index.
fn artifacts(data: &Path) -> u64 {
    let db = rusqlite::Connection::open(data.join("casebook.db")).unwrap();
    let text = "SELECT sum(length(bytes) + 2 * length(id) + 20) FROM artifacts";
    u64::try_from(db.query_row(text, [], |row| row.get::<_, i64>(0)).unwrap()).unwrap()
}

/// The texts that a request says to the model.
fn texts(ask: &Ask) -> Vec<&str> {
    let said = ask.messages.iter().flat_map(|message| match message {
        Message::User(parts) => parts.iter().map(|part| part.text.as_str()).collect::<Vec<_>>(),
        Message::Assistant(reply) => vec![reply.text.as_str()],
        Message::Results(all) => all.iter().map(|one| one.text.as_str()).collect(),
    });
    ask.system.iter().map(|part| part.text.as_str()).chain(said).collect()
}

#[test]
fn each_request_is_kept_as_it_was_sent_in_little_room() {
    let (with, id) = lab(true);
    let (without, bare) = lab(false);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let store = SqliteStore::read(with.data()).unwrap();
        let requests = requests(&store, &id).await;
        let captured: Vec<serde_json::Value> =
            with.server.log().captured().iter().map(|c| serde_json::from_slice(&c.request.bytes).unwrap()).collect();
        assert!(requests.len() > 20 && requests.len() == captured.len(), "{} of {}", requests.len(), captured.len());
        let wire: Vec<String> = captured.iter().map(ToString::to_string).collect();
        for ask in &requests {
            let texts: Vec<String> = texts(ask).into_iter().map(|text| serde_json::json!(text).to_string()).collect();
            let sent = wire.iter().any(|body| texts.iter().all(|text| body.contains(text.trim_matches('"'))));
            assert!(sent, "{} was not sent like this", ask.id);
        }
        let verified = verify::verify(&store, &id).await.unwrap();
        assert_eq!(verified.problems, []);
        let store = SqliteStore::read(without.data()).unwrap();
        for calls in calls(&store, &bare).await.values() {
            assert!(calls.iter().all(|call| call.kept.is_none()));
            let not_kept = kept::request(&store, &[&calls[0]]).await.unwrap_err();
            assert_eq!(not_kept, KeptError::NotKept(calls[0].id.clone()));
        }
    });
    let (kept, bare) = (artifacts(&with.data()), artifacts(&without.data()));
    let raw: u64 = with.server.log().captured().iter().map(|c| c.request.bytes.len() as u64).sum();
    eprintln!("requests of five rounds: {raw} bytes sent, {} kept", kept - bare);
    assert!(kept - bare < MOST, "{} bytes", kept - bare);
}

#[test]
fn a_kept_request_that_is_missing_or_changed_is_found() {
    let (lab, id) = lab(true);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let first = runtime.block_on(async {
        let store = SqliteStore::read(lab.data()).unwrap();
        calls(&store, &id).await.into_values().next().unwrap().remove(0)
    });
    let added = first.kept.clone().unwrap().added;
    let db = rusqlite::Connection::open(lab.data().join("casebook.db")).unwrap();
    let gone = db.execute(&format!("DELETE FROM artifacts WHERE id = x'{added}'"), []).unwrap();
    assert_eq!(gone, 1);
    runtime.block_on(async {
        let store = SqliteStore::read(lab.data()).unwrap();
        let error = kept::request(&store, &[&first]).await.unwrap_err();
        assert!(matches!(&error, KeptError::Corrupt { call, .. } if *call == first.id), "{error}");
        let problems = verify::verify(&store, &id).await.unwrap().problems;
        assert!(problems.len() == 1 && problems[0].what.contains(added.as_str()), "{problems:?}");
        // A text that is there, and is not the one that was sent.
        let mut other = first.clone();
        other.kept.as_mut().unwrap().added =
            calls(&store, &id).await.into_values().nth(1).unwrap()[0].kept.clone().unwrap().added;
        let error = kept::request(&store, &[&other]).await.unwrap_err();
        assert!(matches!(error, KeptError::Corrupt { .. }), "{error}");
    });
}
