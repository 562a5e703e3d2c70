//! Programs of others, in other languages, that miss no message: the examples in `deploy/examples`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use async_nats::jetstream;
use casebook_protocol::DeadLetter;
use casebook_runtime::nats::streams;
use casebook_tests::chaos::closing::unfinished;
use casebook_tests::chaos::noise::all;
use casebook_tests::chaos::{Order, run::alert};
use casebook_tests::team::Team as Processes;
use casebook_tests::thirdparty;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use super::schema::Complete;
use super::*;

const ALERTS: usize = 6;

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/examples").join(name)
}

/// A program that follows, and the file that it writes.
struct Follower {
    command: Command,
    child: Option<Child>,
    output: PathBuf,
}

impl Follower {
    fn new(mut command: Command, name: &str, team: &Processes) -> Self {
        let output = team.nats.folder().join(format!("{name}.ndjson"));
        command.args(["--nats", &team.nats.broker.url(), "--name", name]);
        command.arg("--credentials").arg(team.nats.credentials().join("integration")).arg("--output").arg(&output);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        Self { command, child: None, output }
    }

    fn start(&mut self) {
        self.child = Some(self.command.spawn().unwrap());
    }

    fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// The messages, by stream and sequence. One that was not acknowledged before a kill comes twice.
    fn received(&self) -> BTreeMap<(String, u64), Value> {
        let text = std::fs::read_to_string(&self.output).unwrap_or_default();
        // The last line may be incomplete after a kill.
        let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        lines
            .map(|line| {
                let place = (line["stream"].as_str().unwrap().to_owned(), line["sequence"].as_u64().unwrap());
                (place, line["body"].clone())
            })
            .collect()
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Python, and Go where it is installed.
fn followers(team: &Processes, folder: &Path) -> Vec<Follower> {
    let mut python = Command::new(thirdparty::python(&[thirdparty::NATS_CLIENT]));
    python.arg(example("follow.py"));
    let mut all = vec![Follower::new(python, "python", team)];
    if run::has("go", "golang-go golang-github-nats-io-go-nats-dev") {
        let go = Command::new(thirdparty::go(&example("follow.go"), folder).unwrap());
        all.push(Follower::new(go, "go", team));
    }
    all
}

/// What the server holds of the followed streams.
async fn stored(connection: &Connection) -> BTreeSet<(String, u64)> {
    let context = jetstream::new(connection.client().clone());
    let mut places = BTreeSet::new();
    for (stream, filter) in streams::FOLLOWED {
        let prefix = filter.trim_end_matches('*');
        let messages = all(&context, stream).await.unwrap();
        let followed = messages.iter().filter(|message| message.subject.starts_with(prefix));
        places.extend(followed.map(|message| (stream.to_owned(), message.sequence)));
    }
    places
}

#[test]
fn followers_in_other_languages_lose_nothing_over_outages() {
    let order = Order::of_one_each(31);
    let mut team = Processes::start(&order.shape).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut followers = followers(&team, folder.path());
    let runtime = Runtime::new().unwrap();
    let (hub, publisher) = (runtime.block_on(team.connection()).unwrap(), runtime.block_on(team.publisher()).unwrap());
    let mut expected = BTreeSet::new();
    let mut send = |numbers: std::ops::Range<usize>| {
        for n in numbers {
            let (alert, mut bytes) = alert(order.seed, n).unwrap();
            if n == 1 {
                // The event that holds it is in an artifact.
                let mut large: Value = serde_json::from_slice(&bytes).unwrap();
                large["padding"] = "x".repeat(400_000).into();
                bytes = large.to_string().into_bytes();
            }
            expected.insert(casebook_hub::investigation_id(&alert.id, 1));
            while runtime.block_on(publisher.store(subject::ALERTS, bytes.clone())).is_err() {}
        }
    };
    let pause = |seconds| std::thread::sleep(Duration::from_secs(seconds));
    followers.iter_mut().for_each(Follower::start);
    send(0..2);
    pause(2);
    followers.iter_mut().for_each(Follower::kill);
    send(2..4);
    pause(1);
    team.nats.broker.kill();
    pause(1);
    team.nats.broker.restart().unwrap();
    followers.iter_mut().for_each(Follower::start);
    send(4..ALERTS);
    pause(1);
    team.nats.broker.restart().unwrap();
    runtime.block_on(hub.store(subject::ALERTS, b"no alert".to_vec())).unwrap();
    let open = || runtime.block_on(unfinished(&hub, &expected));
    assert!(wait::holds(PATIENCE, || open().is_empty()), "{:?}", open());
    let stored = runtime.block_on(stored(&hub));
    for follower in &followers {
        let missing = || {
            let received = follower.received();
            stored.iter().filter(|place| !received.contains_key(place)).cloned().collect::<Vec<_>>()
        };
        let whole_now = wait::holds(PATIENCE, || missing().is_empty());
        assert!(whole_now, "{} misses {:?}", follower.output.display(), missing());
        whole(&follower.received(), &expected);
    }
    let letter = dead(&runtime, &hub);
    Complete::of("dead").holds(&letter);
}

/// Every message has the form of its schema, and the events of each investigation are complete.
fn whole(received: &BTreeMap<(String, u64), Value>, expected: &BTreeSet<InvestigationId>) {
    let [event, timeline, report, opened] = ["event", "timeline", "report", "opened"].map(Complete::of);
    let mut events: BTreeMap<String, BTreeSet<u64>> = BTreeMap::new();
    let (mut reported, mut accepted, mut timelines) = (BTreeSet::new(), BTreeSet::new(), 0);
    let name = |value: &Value| value["investigation"].as_str().unwrap().to_owned();
    for ((stream, _), body) in received {
        match stream.as_str() {
            streams::LOG => {
                for entry in body.as_array().unwrap() {
                    event.holds(entry);
                    events.entry(name(entry)).or_default().insert(entry["seq"].as_u64().unwrap());
                }
            }
            streams::REPORTS => {
                report.holds(body);
                reported.insert(name(body));
            }
            streams::ACCEPTED => {
                opened.holds(body);
                accepted.insert(name(body));
            }
            _ => {
                timeline.holds(body);
                timelines += 1;
            }
        }
    }
    let expected: BTreeSet<String> = expected.iter().map(ToString::to_string).collect();
    assert_eq!((&reported, &accepted, &events.keys().cloned().collect()), (&expected, &expected, &expected));
    assert!(timelines >= expected.len());
    for (investigation, seqs) in events {
        assert!(seqs.iter().copied().eq(1..=seqs.len() as u64), "{investigation} lacks events: {seqs:?}");
    }
}

fn dead(runtime: &Runtime, hub: &Connection) -> Value {
    let letter: Option<DeadLetter> = runtime.block_on(hub.last_letter(subject::DEAD_HUB)).unwrap();
    serde_json::to_value(letter.unwrap()).unwrap()
}

#[test]
fn hub_makes_consumers_only_as_asked() {
    process::run(async {
        let nats = Nats::guarded(&[User::Hub, User::Integration, User::Publisher]).unwrap();
        let hub = nats::connect(&nats.options("hub")).await.unwrap();
        let _service = Service::start(hub.clone(), Settings::default()).await.unwrap();
        let ask = async |user: &str, request: Value| {
            let asker = nats::connect(&nats.options(user)).await.unwrap();
            let (bytes, patience) = (request.to_string().into_bytes(), Duration::from_secs(2));
            let answer = asker.request(subject::FOLLOW, bytes, patience).await.map_err(|e| e.to_string())?;
            schema::holds("followed", &answer);
            serde_json::from_slice::<Value>(&answer).map_err(|e| e.to_string())
        };
        let siem = json!({"name": "siem"});
        schema::holds("follow", siem.to_string().as_bytes());
        let made = ask("integration", siem.clone()).await.unwrap();
        assert_eq!(made["consumers"].as_array().unwrap().len(), streams::FOLLOWED.len(), "{made}");
        assert_eq!(ask("integration", siem).await.unwrap(), made, "the same again");
        for (request, expect) in [
            (json!({"name": "siem", "from": "now"}), "deliver_policy"),
            (json!({"name": "a.b"}), "expected a name of 1 to 32"),
            (json!({"name": ""}), "expected a name of 1 to 32"),
            (json!({"name": "x", "stream": "CASEBOOK_TASKS"}), "unknown field"),
        ] {
            let answer = ask("integration", request).await.unwrap();
            assert!(answer["error"].as_str().unwrap().contains(expect), "{answer}");
        }
        let refused = ask("publisher", json!({"name": "theirs"})).await.unwrap_err();
        assert!(refused.contains("Permissions Violation"), "{refused}");
        let more = (0..100).map(|n| json!({"name": format!("more-{n}")}));
        for request in more {
            let answer = ask("integration", request).await.unwrap();
            if let Some(error) = answer["error"].as_str() {
                assert!(error.contains("64 consumers already"), "{error}");
                return;
            }
        }
        panic!("the limit is missing");
    })
    .unwrap();
}
