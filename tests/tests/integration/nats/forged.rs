//! Messages that no Hub wrote, on the subjects of the Hubs: they are skipped and reported, and nothing stops.

use async_nats::HeaderMap;
use async_nats::jetstream;
use casebook_protocol::{AlertId, Timestamp};
use casebook_runtime::nats::streams;
use casebook_runtime::store::StoreError;

use super::service::{alert, evidence};
use super::*;

/// A connection with all permissions and without the key.
async fn intruder(nats: &Nats) -> Connection {
    nats::connect(&nats::Options { mac_key: None, ..nats.options("hub") }).await.unwrap()
}

async fn forge(intruder: &Connection, subject: &str, headers: HeaderMap, body: &[u8]) {
    let context = jetstream::new(intruder.client().clone());
    let body = bytes::Bytes::copy_from_slice(body);
    context.publish_with_headers(subject.to_owned(), headers, body).await.unwrap().await.unwrap();
}

/// Junk, an entry without a code, and copies of a signed entry: as it is, and with its place changed.
async fn forge_log(intruder: &Connection, id: &InvestigationId) -> usize {
    let subject = subject::log(id);
    let context = jetstream::new(intruder.client().clone());
    let stream = context.get_stream(streams::LOG).await.unwrap();
    let last = stream.get_last_raw_message_by_subject(&subject).await.unwrap();
    let (headers, body) = (last.headers.clone(), last.payload.to_vec());
    forge(intruder, &subject, HeaderMap::new(), b"junk").await;
    let mut unsigned = HeaderMap::new();
    for name in ["Casebook-Last", "Casebook-Hash"] {
        unsigned.insert(name, headers.get(name).unwrap().as_str());
    }
    forge(intruder, &subject, unsigned, &body).await;
    // The server refuses an entry whose place is taken.
    let refused =
        context.publish_with_headers(subject.clone(), headers.clone(), body.clone().into()).await.unwrap().await;
    assert!(refused.is_err());
    let mut moved = HeaderMap::new();
    for name in ["Casebook-Last", "Casebook-Hash", "Casebook-Mac", "Casebook-Artifact"] {
        if let Some(value) = headers.get(name) {
            moved.insert(name, value.as_str());
        }
    }
    forge(intruder, &subject, moved, &body).await;
    3
}

#[test]
fn forged_messages_are_skipped_and_reported() {
    process::run(async {
        let folder = tempfile::tempdir().unwrap();
        let evidence = evidence(folder.path());
        let team = Team::start(Nats::guarded(&users(&evidence)).unwrap(), &evidence, Settings::default()).await;
        let publisher = nats::connect(&team.nats.options("publisher")).await.unwrap();
        let reader = nats::connect(&team.nats.options("reader")).await.unwrap();
        let intruder = intruder(&team.nats).await;
        let mut reports = reader.env().bus.subscribe(subject::REPORTS).await.unwrap();
        forge(&intruder, subject::REPORTS, HeaderMap::new(), b"forged").await;

        // Entries and a report are there before the investigation begins, and during it.
        let first = casebook_hub::intake::investigation_id(&AlertId::new("early").unwrap(), 1);
        forge(&intruder, &subject::log(&first), HeaderMap::new(), b"early").await;
        forge(&intruder, &subject::result(&first, archive::REPORT_KEY), HeaderMap::new(), b"{}").await;
        let id = publish(&publisher, &alert("early", "high")).await;
        assert_eq!(id, first);
        let mut forged = 1;
        let store = reader.env().store;
        while store.log(&id, 1).await.unwrap().is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        forged += forge_log(&intruder, &id).await;
        let report = concluded(&reader, &id).await;
        let log = store.log(&id, 1).await.unwrap();
        assert_eq!(reports.next().await.unwrap().bytes, serde_json::to_vec(&report).unwrap());

        // And after its end.
        forged += forge_log(&intruder, &id).await;
        forge(&intruder, &subject::result(&id, archive::REPORT_KEY), HeaderMap::new(), b"{}").await;
        assert_eq!(store.log(&id, 1).await.unwrap(), log);
        let found = verified(store.as_ref(), &id).await.unwrap();
        assert_eq!((found.problems, found.report), (vec![], true));
        assert_eq!(found.foreign.len(), forged, "{:#?}", found.foreign);
        assert!(found.foreign[0].ends_with("is not from a Hub: it has no Casebook-Mac"), "{:?}", found.foreign);
        assert_eq!(archive::report(store.as_ref(), &id).await.unwrap(), report);
        assert_eq!(archive::summaries(store.as_ref()).await.unwrap()[0].trouble, None);
        for connection in [&team.hub, &reader] {
            assert_eq!(connection.refusals().count(), 0);
        }
    })
    .unwrap();
}

#[test]
fn log_goes_on_after_a_forged_message() {
    process::run(async {
        let nats = Nats::guarded(&[User::Hub, User::Reader]).unwrap();
        let hub = nats::connect(&nats.options("hub")).await.unwrap();
        hub.prepare(nats::streams::Keeping::default()).await.unwrap();
        let (intruder, id) = (intruder(&nats).await, InvestigationId::new("i-1").unwrap());
        let entry = |last: Option<&Recorded>, reason: &str| {
            let event = Event::Stopping { reason: reason.into() };
            Recorded::next(&id, last, Timestamp::UNIX_EPOCH, event)
        };
        let (one, other) = (hub.env().store, hub.env().store);
        let first = entry(None, "a");
        one.append(&id, 0, std::slice::from_ref(&first)).await.unwrap();
        forge(&intruder, &subject::log(&id), HeaderMap::new(), b"junk").await;
        let second = entry(Some(&first), "b");
        other.append(&id, 1, std::slice::from_ref(&second)).await.unwrap();
        forge(&intruder, &subject::log(&id), HeaderMap::new(), b"junk").await;
        let conflict = one.append(&id, 1, std::slice::from_ref(&entry(Some(&first), "other"))).await;
        assert!(matches!(conflict, Err(StoreError::Conflict { found: 2, .. })), "{conflict:?}");
        one.append(&id, 2, std::slice::from_ref(&entry(Some(&second), "c"))).await.unwrap();
        assert_eq!(one.log(&id, 1).await.unwrap().len(), 3);
        assert_eq!(one.foreign(&id).len(), 2);
        // Without the key, what has no headers of ours is skipped all the same.
        assert_eq!(intruder.env().store.log(&id, 1).await.unwrap().len(), 3);
    })
    .unwrap();
}
