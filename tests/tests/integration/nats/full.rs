//! Real processes over a server whose store or disk is full: they wait and go on, and no task counts an attempt.

use casebook_runtime::nats::streams;
use casebook_tests::disk::Disk;
use casebook_tests::team::{Part, Processes};
use serde_json::{Value, json};

use super::service::{alert, evidence};
use super::*;

/// How long a store stays full. Without waiting, a task would use up several attempts in this time.
const FULL: Duration = Duration::from_secs(12);

/// A Hub, a Director, a Critic and an Expert for all domains, with the built-in analyst.
fn staff(nats: Nats) -> Processes {
    evidence(nats.folder());
    let profile = nats.write("profile.toml", "evidence = \"evidence\"\nindex = \"index\"\n").unwrap();
    let mut staff = Processes::of(nats);
    for part in Part::ALL {
        let arguments = if part == Part::Expert { vec!["--profile", profile.as_str()] } else { Vec::new() };
        staff.add(part, part.name(), &arguments, &[("CASEBOOK_LOG", "info,casebook_agent=warn")]);
    }
    staff.begin().unwrap();
    staff
}

async fn api(hub: &Connection, request: &str, body: &Value) -> Value {
    let subject = format!("$JS.API.{request}");
    let answer = hub.request(&subject, body.to_string().into_bytes(), Duration::from_secs(5)).await.unwrap();
    let answer: Value = serde_json::from_slice(&answer).unwrap();
    assert!(answer.get("error").is_none(), "{request}: {answer}");
    answer
}

/// Waits until `found` is true.
async fn until(what: &str, staff: &Processes, mut found: impl AsyncFnMut() -> bool) {
    let found = wait::soon(PATIENCE, async || found().await.then_some(())).await;
    assert!(found.is_some(), "{what}: not in time\n{}", staff.tails());
}

/// What the reasons of the processes that are not ready say about the store.
fn complaints(staff: &Processes) -> Vec<String> {
    let answers = (0..staff.members.len()).filter_map(|i| staff.health(i)).filter(|answer| !answer.ready);
    let reasons = answers.flat_map(|answer| answer.reasons);
    reasons.filter(|reason| reason.contains("the NATS server does not store writes to casebook.")).collect()
}

/// Each investigation ended as it would have alone, and no task was tried twice or given up.
async fn all_ended_well(staff: &Processes, hub: &Connection, ids: &[InvestigationId]) {
    let path = staff.nats.folder().join("alert.json");
    std::fs::write(&path, alert("a0", "high")).unwrap();
    let folder = staff.nats.folder().join("evidence");
    let alone = tokio::task::spawn_blocking(move || run::investigate(&path, &folder).unwrap()).await.unwrap();
    for (n, id) in ids.iter().enumerate() {
        let report = concluded(hub, id).await;
        let failed: Vec<_> = report.usage.tasks.iter().filter(|task| task.failed.is_some()).collect();
        assert!(failed.is_empty(), "{failed:?}");
        assert_eq!(report.verdict, alone.verdict);
        assert_eq!(verified(hub.env().store.as_ref(), id).await.unwrap().problems, []);
        if n == 0 {
            assert_eq!(comparable(&report), comparable(&alone));
        }
    }
    let dead = api(hub, &format!("STREAM.INFO.{}", streams::DEAD), &json!({})).await;
    assert_eq!(dead["state"]["messages"], 0, "a dead letter");
}

/// Every job was delivered once. `tests` messages in the stream were no jobs.
async fn no_attempt_was_counted(hub: &Connection, tests: u64) {
    let listed = api(hub, &format!("CONSUMER.LIST.{}", streams::TASKS), &json!({})).await;
    let delivered = listed["consumers"].as_array().unwrap().iter().map(|c| c["delivered"]["consumer_seq"].as_u64());
    let delivered: u64 = delivered.map(Option::unwrap).sum();
    let jobs = api(hub, &format!("STREAM.INFO.{}", streams::TASKS), &json!({})).await;
    assert_eq!(Some(delivered + tests), jobs["state"]["last_seq"].as_u64(), "a job was delivered again");
}

fn lines(staff: &Processes, text: &str) -> Vec<usize> {
    let count = |log: &str| log.lines().filter(|line| line.contains(text)).count();
    staff.logs().iter().map(|(_, log)| count(log)).collect()
}

/// Sends alerts until the store is full, makes room after a while, and checks the end. `room` returns how many test
/// messages it stored in the stream of the tasks.
async fn waits_for_room(
    mut staff: Processes,
    hub: Connection,
    words: [&str; 2],
    room: impl AsyncFnOnce(&Connection) -> u64,
) {
    let mut ids = Vec::new();
    for n in 0..10 {
        ids.push(open(&hub, &alert(&format!("a{n}"), "high")).await);
    }
    until("an outage", &staff, async || !complaints(&staff).is_empty()).await;
    let complained = complaints(&staff);
    assert!(complained.iter().all(|reason| words.iter().all(|word| reason.contains(word))), "{complained:?}");
    tokio::time::sleep(FULL).await;
    assert!(!complaints(&staff).is_empty(), "it is not over by itself");
    assert_eq!(staff.ended(), Vec::<String>::new());
    let tests = room(&hub).await;
    until("ready again", &staff, async || {
        (0..staff.members.len()).all(|i| staff.health(i).is_some_and(|answer| answer.ready))
    })
    .await;
    for n in 10..12 {
        ids.push(open(&hub, &alert(&format!("a{n}"), "high")).await);
    }
    all_ended_well(&staff, &hub, &ids).await;
    no_attempt_was_counted(&hub, tests).await;
    let (begun, ended) = (lines(&staff, "has not stored writes for 5 s"), lines(&staff, "stores writes again"));
    assert_eq!(begun, ended, "each outage has its end\n{}", staff.tails());
    // The Expert has a connection for each of its three domains.
    assert!(begun.iter().zip([1, 1, 1, 3]).all(|(count, most)| *count <= most), "one line for each: {begun:?}");
    assert!(begun.iter().sum::<usize>() > 0);
    let listed = hub.env().store.investigations().await.unwrap();
    assert_eq!(listed.len(), ids.len());
}

#[test]
fn a_server_at_its_max_file_store_is_an_outage_and_no_failure_of_a_task() {
    process::run(async {
        let nats = Nats::start_with(Some("jetstream { sync_interval: always, max_file_store: 40MB }\n")).unwrap();
        let staff = staff(nats);
        let hub = nats::connect(&staff.nats.options("hub")).await.unwrap();
        let filler = json!({ "name": "FILLER", "subjects": ["filler.>"], "storage": "file", "retention": "limits" });
        api(&hub, "STREAM.CREATE.FILLER", &filler).await;
        for n in 0..81 {
            hub.store(&format!("filler.{n}"), vec![7; 500_000]).await.unwrap();
        }
        waits_for_room(staff, hub, ["insufficient resources", "raise max_file_store"], async |hub: &Connection| {
            let refused = request(hub).await;
            assert!(
                refused.contains("insufficient resources") && refused.contains("send the alert again"),
                "{refused}"
            );
            let (code, said) = doctor(hub);
            assert!(
                code == Some(6) && said.contains("CASEBOOK_LOG") && said.contains("raise max_file_store"),
                "{said}"
            );
            api(hub, "STREAM.DELETE.FILLER", &json!({})).await;
            let (code, said) = doctor(hub);
            assert!(code == Some(0) && said.contains("it stores messages"), "{said}");
            1
        })
        .await;
    })
    .unwrap();
}

/// The answer to an alert that the Hub cannot store.
async fn request(hub: &Connection) -> String {
    let (url, user) = (hub.url().to_owned(), "publisher".to_owned());
    let publisher = nats::connect(&nats::Options { url, user, ..nats::Options::default() }).await.unwrap();
    let asked = publisher.request(subject::OPEN, alert("late", "high"), Duration::from_secs(20)).await.unwrap();
    String::from_utf8(asked).unwrap()
}

/// The exit code of `casebook doctor` and what it says.
fn doctor(hub: &Connection) -> (Option<i32>, String) {
    let mut command = std::process::Command::new(run::program("casebook"));
    let output = command.args(["doctor", "--nats", hub.url()]).env_remove("CASEBOOK_MODELS").output().unwrap();
    (output.status.code(), String::from_utf8(output.stdout).unwrap())
}

#[test]
fn a_stream_at_its_limit_is_an_outage_and_no_failure_of_a_task() {
    process::run(async {
        let staff = staff(Nats::start().unwrap());
        let hub = nats::connect(&staff.nats.options("hub")).await.unwrap();
        let limit = async |hub: &Connection, bytes: i64| {
            let found = api(hub, &format!("STREAM.INFO.{}", streams::ARTIFACTS), &json!({})).await;
            let mut config = found["config"].clone();
            config["max_bytes"] = bytes.into();
            api(hub, &format!("STREAM.UPDATE.{}", streams::ARTIFACTS), &config).await;
        };
        limit(&hub, 300_000).await;
        let words = ["maximum bytes exceeded", "raise the limit of this stream"];
        waits_for_room(staff, hub, words, async |hub: &Connection| {
            limit(hub, -1).await;
            0
        })
        .await;
    })
    .unwrap();
}

/// A server on a disk that something else fills. Its versions behave differently; all go on after a restart.
#[test]
fn a_full_disk_is_an_outage_until_there_is_room_and_the_server_was_restarted() {
    for program in [casebook_tests::nats::program().unwrap(), casebook_tests::nats::oldest()] {
        let Some(disk) = Disk::new(40_000) else { return };
        let store = disk.path().join("store");
        std::fs::create_dir(&store).unwrap();
        process::run(async {
            let config = "jetstream { sync_interval: always, max_file_store: 1GB }\n";
            let mut staff = staff(Nats::start_in(&program, config, &store).unwrap());
            let hub = nats::connect(&staff.nats.options("hub")).await.unwrap();
            let mut ids = Vec::new();
            for n in 0..6 {
                ids.push(open(&hub, &alert(&format!("a{n}"), "high")).await);
            }
            let first = &ids[0];
            until("work", &staff, async || hub.env().store.log(first, 1).await.unwrap().len() > 4).await;
            let filler = disk.fill().unwrap();
            until("an outage", &staff, async || !complaints(&staff).is_empty()).await;
            tokio::time::sleep(FULL).await;
            let complained = complaints(&staff);
            assert!(complained.iter().any(|reason| reason.contains("restart")), "{complained:?}");
            std::fs::remove_file(filler).unwrap();
            tokio::time::sleep(Duration::from_secs(2)).await;
            staff.nats.broker.restart().unwrap();
            until("ready again", &staff, async || {
                (0..staff.members.len()).all(|i| staff.health(i).is_some_and(|answer| answer.ready))
            })
            .await;
            all_ended_well(&staff, &hub, &ids).await;
        })
        .unwrap();
    }
}
