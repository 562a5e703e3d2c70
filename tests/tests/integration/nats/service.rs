//! What a Hub does with what comes in: order, duplicates, forgeries, absences, versions.

use std::time::Duration;

use async_nats::jetstream::stream::{self, Compression};
use casebook_protocol::{Event, TaskId};
use casebook_protocol::{OutcomeNotice, Step, StepNotice};
use casebook_runtime::nats::JoinError;
use casebook_runtime::nats::streams::{self, Keeping};
use casebook_runtime::wire;
use casebook_tests::generate;

use super::*;

/// A small folder of evidence, and its alert under other names.
pub(super) fn evidence(folder: &Path) -> std::path::PathBuf {
    let evidence = folder.join("evidence");
    generate::write(&evidence, 60_000, 3).unwrap();
    evidence
}

pub(super) fn alert(id: &str, severity: &str) -> Vec<u8> {
    let mut alert: serde_json::Value = serde_json::from_str(generate::ALERT).unwrap();
    alert["id"] = id.into();
    alert["severity"] = severity.into();
    alert.to_string().into_bytes()
}

/// A team over small evidence.
async fn team() -> Team {
    let nats = Nats::start().unwrap();
    let evidence = evidence(nats.folder());
    Team::start(nats, &evidence, Settings::default()).await
}

#[test]
fn alerts_wait_in_order_of_severity_and_the_same_alert_twice_is_one_investigation() {
    process::run(async {
        let nats = Nats::start().unwrap();
        let evidence = evidence(nats.folder());
        let hub = nats::connect(&nats.options("hub")).await.unwrap();
        let settings = Settings { at_once: 1, ..Settings::default() };
        let service = Service::start(hub.clone(), settings).await.unwrap();
        let mut opened = hub.env().bus.subscribe("casebook.events.>").await.unwrap();
        let mut ids = Vec::new();
        // No Expert is there yet: they wait.
        for (id, severity) in [("a", "low"), ("b", "medium"), ("c", "critical"), ("d", "high")] {
            ids.push(open(&hub, &alert(id, severity)).await);
        }
        let twice = alert("e", "informational");
        hub.store(subject::ALERTS, b"no alert".to_vec()).await.unwrap();
        let again = [hub.store(subject::ALERTS, twice.clone()), hub.store(subject::ALERTS, twice.clone())];
        let [one, two] = again;
        let (one, two, third) = tokio::join!(one, two, open(&hub, &twice));
        one.unwrap();
        two.unwrap();
        ids.push(third);
        let _team = Team::enter(nats, hub.clone(), service, &evidence).await;
        for id in &ids {
            concluded(&hub, id).await;
        }
        let mut order = Vec::new();
        while order.len() < ids.len() {
            let entry: Recorded = serde_json::from_slice(&opened.next().await.unwrap().bytes).unwrap();
            if let Event::Opened { alert, .. } = entry.event {
                order.push(alert.id.to_string());
            }
        }
        assert_eq!(order, ["c", "d", "b", "a", "e"]);
        let mut all = hub.env().store.investigations().await.unwrap();
        ids.sort();
        all.sort();
        assert_eq!(all, ids, "one investigation for each alert");
        let letter = hub.last_letter(subject::DEAD_HUB).await.unwrap().expect("a dead letter");
        assert!(letter.reason.contains("alert is not JSON"), "{letter:?}");
        let kept = hub.env().store.get(&letter.message.unwrap()).await.unwrap();
        assert_eq!(kept.as_deref(), Some(&b"no alert"[..]), "nothing is dropped in silence");
    })
    .unwrap();
}

#[test]
fn what_no_worker_of_the_queue_sent_changes_no_state() {
    process::run(async {
        let team = team().await;
        let hub = team.hub.clone();
        let embedded = {
            let path = team.nats.folder().join("alert.json");
            std::fs::write(&path, alert("f", "high")).unwrap();
            let evidence = team.nats.folder().join("evidence");
            tokio::task::spawn_blocking(move || run::investigate(&path, &evidence).unwrap()).await.unwrap()
        };
        let id = open(&hub, &alert("f", "high")).await;
        let task = |text: &str| TaskId::new(text).unwrap();
        let queue = |role, domain: Option<&str>| Queue::new(role, domain.map(|d| Domain::new(d).unwrap()).as_ref());
        let network = queue(Role::Expert, Some("network"));
        let log = loop {
            let log = hub.env().store.log(&id, 1).await.unwrap();
            if log.iter().any(|e| matches!(e.event, Event::CallRecorded { .. })) {
                break log;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        };
        let Some(Event::CallRecorded { call, .. }) =
            log.into_iter().map(|e| e.event).find(|e| matches!(e, Event::CallRecorded { .. }))
        else {
            panic!()
        };
        for round in 1..4 {
            for (subject, kind) in [
                (subject::steps(&network), format!("r{round}.review")),
                (subject::steps(&queue(Role::Critic, None)), format!("r{round}.plan")),
            ] {
                let step = Step::Tool(casebook_protocol::ToolCall {
                    id: casebook_protocol::CallId::of(&task(&kind), 1, 97),
                    ..call.clone()
                });
                let notice = StepNotice { investigation: id.clone(), task: task(&kind), step };
                hub.tell(&subject, wire::encode(&notice).unwrap()).await.unwrap();
            }
            let notice = OutcomeNotice { investigation: id.clone(), task: task(&format!("r{round}.decide")) };
            hub.tell(&subject::outcomes(&network), wire::encode(&notice).unwrap()).await.unwrap();
        }
        for subject in [
            subject::steps(&network),
            subject::outcomes(&network),
            subject::presence(&network),
            subject::join(&network),
            subject::WAITING.to_owned(),
        ] {
            hub.tell(&subject, vec![0, 3, 255, 255, 255]).await.unwrap();
            hub.tell(&subject, b"{}".to_vec()).await.unwrap();
        }
        let job = format!("{}.forged", subject::tasks(Role::Critic, None));
        hub.store(&job, b"no task".to_vec()).await.unwrap();
        let report = concluded(&hub, &id).await;
        assert_eq!(comparable(&report), comparable(&embedded));
        let log = hub.env().store.log(&id, 1).await.unwrap();
        assert!(
            !log.iter()
                .any(|e| matches!(&e.event, Event::CallRecorded { call, .. } if call.id.as_str().ends_with("t1.97")))
        );
        let letter = hub.last_letter(&subject::dead(&queue(Role::Critic, None))).await.unwrap().expect("a dead letter");
        assert!(letter.reason.contains("message"), "{letter:?}");
    })
    .unwrap();
}

#[test]
fn a_domain_whose_last_instance_is_gone_is_a_fact_and_no_hang() {
    process::run(async {
        let team = team().await;
        let hub = team.hub.clone();
        let (member, _) = &team.experts[0];
        let cloud = Domain::new("cloud").unwrap();
        let ghost =
            Member { domain: cloud.clone(), description: "Is there and does nothing.".into(), ..member.clone() };
        let entering = join(Role::Expert, Some(&ghost));
        let ghost = nats::connect(&team.nats.options("expert-cloud")).await.unwrap();
        ghost.join(&entering).await.unwrap();
        let later = r#"{"protocol":99,"role":"sage","instance":"x"}"#;
        let subject = subject::join(&entering.queue());
        let answer = ghost.request(&subject, later.into(), Duration::from_secs(5)).await.unwrap();
        let answer = String::from_utf8(answer).unwrap();
        assert!(answer.contains(&format!("uses protocol version 99, this Hub uses {WIRE_VERSION}")), "{answer}");
        let other = Join { instance: "two".into(), ..entering.clone() };
        ghost.join(&other).await.unwrap();
        let different = Member { sources: Vec::new(), ..entering.member.clone().unwrap() };
        let refused = ghost.join(&Join { instance: "three".into(), member: Some(different), ..entering.clone() }).await;
        assert!(
            matches!(&refused, Err(JoinError::Later(why)) if why.contains("instance one of expert-cloud")),
            "{refused:?}"
        );
        let refused = ghost.join(&Join { protocol: WIRE_VERSION + 1, ..entering.clone() }).await;
        let both = format!("version {}, this Hub uses {WIRE_VERSION}", WIRE_VERSION + 1);
        assert!(matches!(&refused, Err(JoinError::Refused(why)) if why.contains(&both)), "{refused:?}");
        let id = open(&hub, &alert("g", "high")).await;
        let asked = |e: &Recorded, round: u32| {
            let id = format!("r{round}.investigate.cloud");
            matches!(&e.event, Event::TaskRequested { task, .. } if task.as_str() == id)
        };
        while !hub.env().store.log(&id, 1).await.unwrap().iter().any(|e| asked(e, 1)) {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        ghost.leave(&entering).await;
        ghost.leave(&other).await;
        let report = concluded(&hub, &id).await;
        let failed = report.usage.tasks.iter().find(|t| t.task.as_str() == "r1.investigate.cloud").unwrap();
        assert_eq!(failed.failed.as_deref(), Some("the last Expert for cloud is gone"));
        let log = hub.env().store.log(&id, 1).await.unwrap();
        assert!(
            log.iter().any(|e| matches!(&e.event, Event::Attendance { domain, gone: Some(_) } if *domain == cloud))
        );
        assert!(!log.iter().any(|e| asked(e, 2)), "an absent Expert was asked");
    })
    .unwrap();
}

#[test]
fn the_largest_alert_goes_through_and_its_event_names_where_it_is() {
    process::run(async {
        let nats = Nats::start().unwrap();
        let evidence = evidence(nats.folder());
        let hub = nats::connect(&nats.options("hub")).await.unwrap();
        let service = Service::start(hub.clone(), Settings::default()).await.unwrap();
        let mut events = hub.env().bus.subscribe("casebook.events.>").await.unwrap();
        let _team = Team::enter(nats, hub.clone(), service, &evidence).await;
        let mut large: serde_json::Value = serde_json::from_slice(&alert("large", "high")).unwrap();
        large["padding"] = "\"".repeat(500_000).into();
        let id = open(&hub, large.to_string().as_bytes()).await;
        concluded(&hub, &id).await;
        let told: serde_json::Value = serde_json::from_slice(&events.next().await.unwrap().bytes).unwrap();
        assert_eq!((&told["seq"], &told["investigation"]), (&1.into(), &id.as_str().into()));
        let artifact = casebook_protocol::ArtifactId::new(told["artifact"].as_str().unwrap()).unwrap();
        let whole = hub.env().store.get(&artifact).await.unwrap().unwrap();
        let entry: Recorded = serde_json::from_slice(&whole).unwrap();
        assert_eq!(entry, hub.env().store.log(&id, 1).await.unwrap()[0]);
    })
    .unwrap();
}

#[test]
fn a_stream_of_another_configuration_and_an_old_server_are_refused_with_the_difference() {
    process::run(async {
        let nats = Nats::start().unwrap();
        let hub = nats::connect(&nats.options("hub")).await.unwrap();
        let config = br#"{"name":"CASEBOOK_TASKS","subjects":["casebook.task.>"],"retention":"limits","storage":"memory","max_consumers":-1,"max_msgs":-1,"max_bytes":-1,"max_age":0,"num_replicas":1,"discard":"old"}"#;
        let api = format!("$JS.API.STREAM.CREATE.{}", streams::TASKS);
        hub.request(&api, config.to_vec(), Duration::from_secs(5)).await.unwrap();
        let config = br#"{"name":"CASEBOOK_LOG","subjects":["casebook.log.*"],"retention":"limits","storage":"file","max_consumers":-1,"max_msgs":-1,"max_bytes":-1,"max_age":0,"max_msg_size":1000,"num_replicas":1,"discard":"new"}"#;
        let api = format!("$JS.API.STREAM.CREATE.{}", streams::LOG);
        hub.request(&api, config.to_vec(), Duration::from_secs(5)).await.unwrap();
        let error = hub.prepare(Keeping::default()).await.unwrap_err().to_string();
        let tasks = ["stream CASEBOOK_TASKS", "expected retention \"workqueue\", got \"limits\"", "got \"memory\""];
        for needed in tasks.into_iter().chain(["stream CASEBOOK_LOG", "expected max_msg_size -1, got 1000"]) {
            assert!(error.contains(needed), "{error}");
        }
        let old = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("nats://{}", old.local_addr().unwrap());
        tokio::spawn(async move {
            let (mut stream, _) = old.accept().await.unwrap();
            let info = r#"INFO {"server_id":"x","server_name":"x","version":"2.9.10","go":"go1.19","host":"127.0.0.1","port":4222,"headers":true,"max_payload":1048576,"jetstream":true,"proto":1}"#;
            tokio::io::AsyncWriteExt::write_all(&mut stream, format!("{info}\r\nPONG\r\n").as_bytes()).await.unwrap();
            tokio::time::sleep(Duration::from_secs(60)).await;
        });
        let options = nats::Options { url, user: "hub".into(), ..nats::Options::default() };
        let error = nats::connect(&options).await.map(drop).unwrap_err().to_string();
        assert!(error.contains("expected NATS server 2.10.26 or newer") && error.contains("2.9.10"), "{error}");
    })
    .unwrap();
}

#[test]
fn a_job_of_an_older_version_makes_room_for_one_of_ours_and_a_newer_one_stays() {
    process::run(async {
        let nats = Nats::start().unwrap();
        let hub = nats::connect(&nats.options("hub")).await.unwrap();
        let (keeping, critic) = (Keeping::default(), Queue::new(Role::Critic, None));
        hub.prepare(keeping).await.unwrap();
        hub.prepare_queue(&critic, keeping).await.unwrap();
        let (bus, queue) = (hub.env().bus, subject::tasks(Role::Critic, None));
        let put = async |version: u16, bytes: &'static [u8]| {
            let mut headers = async_nats::HeaderMap::new();
            headers.insert("Casebook-Protocol", version.to_string().as_str());
            hub.client().publish_with_headers(format!("{queue}.i_r1_review"), headers, bytes.into()).await.unwrap();
            hub.flush().await;
            tokio::time::sleep(Duration::from_millis(200)).await;
        };
        put(WIRE_VERSION - 1, b"old").await;
        bus.enqueue(&queue, "i/r1.review", b"new".to_vec()).await.unwrap();
        assert!(bus.try_pull(&queue).await.unwrap().is_none(), "the old one is not delivered");
        // The server takes it away in its own time; a Hub asks again with each sweep.
        let again = async || {
            bus.enqueue(&queue, "i/r1.review", b"new".to_vec()).await.unwrap();
            bus.try_pull(&queue).await.unwrap()
        };
        let job = wait::soon(PATIENCE, again).await.expect("the new one");
        assert_eq!((job.bytes(), job.attempt()), (&b"new"[..], 1));
        job.done().await.unwrap();
        tokio::time::sleep(Duration::from_millis(200)).await;
        put(WIRE_VERSION + 1, b"newer").await;
        let error = bus.try_pull(&queue).await.map(|job| job.is_some()).unwrap_err().to_string();
        assert!(error.contains(&format!("got {}", WIRE_VERSION + 1)), "{error}");
    })
    .unwrap();
}

#[test]
fn a_stream_that_was_made_with_compression_keeps_its_messages_without_it() {
    process::run(async {
        let nats = Nats::start().unwrap();
        let hub = nats::connect(&nats.options("hub")).await.unwrap();
        hub.prepare(Keeping::default()).await.unwrap();
        let streams = async_nats::jetstream::new(hub.client().clone());
        let compression = async || streams.get_stream(streams::LOG).await.unwrap().cached_info().config.clone();
        let made = compression().await;
        assert_eq!(made.compression, Some(Compression::None));
        let compressed = stream::Config { compression: Some(Compression::S2), ..made };
        streams.update_stream(compressed).await.unwrap();
        assert_eq!(compression().await.compression, Some(Compression::S2));
        hub.client().publish("casebook.log.a", "kept".into()).await.unwrap();
        hub.flush().await;
        hub.prepare(Keeping::default()).await.unwrap();
        assert_eq!(compression().await.compression, Some(Compression::None));
        let log = streams.get_stream(streams::LOG).await.unwrap();
        assert_eq!(log.get_last_raw_message_by_subject("casebook.log.a").await.unwrap().payload, "kept");
    })
    .unwrap();
}
