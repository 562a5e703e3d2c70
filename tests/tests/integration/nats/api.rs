//! `casebook-api` as a process: the pages and the API over the logs on a server.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use casebook_api::routes::{ROUTES, Verb};
use casebook_cli::cluster::process::{self as child, Process};
use casebook_hub::{SqliteStore, State};
use casebook_protocol::ArtifactId;
use casebook_runtime::nats::streams::Keeping;
use casebook_runtime::store::Store;
use casebook_tests::lab::{FORMS, Lab};
use casebook_tests::model::brain::Brain;
use casebook_tests::web::Server;
use reqwest::Client;
use reqwest::header::{COOKIE, LOCATION, SET_COOKIE};
use serde_json::Value;

use super::*;

/// How often the process is killed.
const KILLS: usize = 50;
const KEY: &str = "0123456789abcdef0123456789abcdef";

/// An investigation with a scripted model, in the data folder `data`.
fn investigated(folder: &Path) -> SqliteStore {
    let lab = Lab::start(Brain { rounds: 2, ..Brain::default() }, FORMS[0]).unwrap();
    std::fs::write(folder.join("models.toml"), &lab.file).unwrap();
    let mut command = Command::new(run::program("casebook"));
    command.args(["investigate", "--models", "models.toml", "--data", "data"]).arg(run::demo().join("alert.json"));
    run::with_evidence(&mut command, &run::demo());
    let output = command.current_dir(folder).env_remove("CASEBOOK_NATS").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    SqliteStore::read(folder.join("data")).unwrap()
}

/// What `text` names and `store` has, and what that names.
async fn artifacts(store: &dyn Store, text: String) -> Vec<Vec<u8>> {
    let (mut seen, mut open, mut found) = (BTreeSet::new(), vec![text], Vec::new());
    while let Some(text) = open.pop() {
        for word in text.split(|c: char| !c.is_ascii_alphanumeric() && c != ':').filter(|word| word.len() >= 64) {
            let Ok(id) = ArtifactId::new(word) else { continue };
            if seen.insert(word.to_owned())
                && let Some(bytes) = store.get(&id).await.unwrap()
            {
                open.push(String::from_utf8_lossy(&bytes).into_owned());
                found.push(bytes);
            }
        }
    }
    found
}

struct Api {
    process: Process,
    base: String,
}

impl Api {
    fn start(nats: &Nats, port: u16) -> Self {
        let mut command = child::serving(&run::program("casebook-api"));
        command.args(["--nats", &nats.broker.url(), "--port", &port.to_string(), "--data"]);
        command.arg(nats.folder().join("api")).arg("--credentials").arg(nats.credentials());
        command.arg("--mac-key-file").arg(nats.mac_key());
        command.arg("--access-key-file").arg(nats.folder().join("access.key"));
        let process = Process::start("api", &mut command, &nats.folder().join("api.log")).unwrap();
        let ready = || process.ready().filter(|answer| answer.ready).and_then(|_| process.serves("pages"));
        let address = wait::found(PATIENCE, ready);
        let address = address.unwrap_or_else(|| panic!("not ready: {:?}", process.last_lines()));
        Self { base: format!("http://{address}"), process }
    }
}

/// Status, tag and body.
async fn ask(client: &Client, base: &str, key: &str, path: &str) -> (u16, String, Vec<u8>) {
    let answer = client.get(format!("{base}{path}")).bearer_auth(key).send().await.unwrap();
    let tag = answer.headers().get("etag").map(|tag| tag.to_str().unwrap().to_owned()).unwrap_or_default();
    (answer.status().as_u16(), tag, answer.bytes().await.unwrap().to_vec())
}

/// Every address of the API and of the pages that shows this log.
fn addresses(log: &[Recorded]) -> Vec<String> {
    let id = &log[0].investigation;
    let state = State::replay(log);
    let (task, call) = (state.asked.values().next().unwrap().task.clone(), state.calls.keys().next().unwrap().clone());
    let finding = state.findings().next().unwrap().finding.id.clone();
    let ours =
        ["/settings", "/sources", "/investigations/{id}/context", "/events", "/uploads/{upload}", "/backtests/{n}"];
    let mut all = Vec::new();
    for route in ROUTES.iter().filter(|route| route.verb == Verb::Get && !ours.contains(&route.path)) {
        let path = route.path.replace("{id}", id.as_str()).replace("{task}", task.as_str()).replace("{n}", "1");
        let path = path.replace("{call}", call.as_str()).replace("{finding}", finding.as_str()).replace("{seq}", "7");
        let needed = if route.path == "/compare" { format!("?a={id}&b={id}") } else { String::new() };
        all.push(format!("/api/v1{path}{needed}"));
        if route.query.iter().any(|parameter| parameter.name == "at") {
            all.push(format!("/api/v1{path}?at={}", log.len() / 2));
        }
    }
    let tabs = ["timeline", "findings", "journal", "review", "rounds", "tasks", "events"];
    all.extend(tabs.map(|tab| format!("/i/{id}?tab={tab}")));
    all.extend([format!("/i/{id}?at=40"), format!("/i/{id}/t/{task}"), format!("/i/{id}/c/{call}")]);
    all
}

#[test]
fn answers_are_those_of_a_data_folder_and_a_killed_process_signs_no_one_out() {
    process::run(async {
        let nats = Nats::guarded_for(&[]).unwrap();
        let original = investigated(nats.folder());
        let id = original.investigations().await.unwrap().remove(0);
        let log = original.log(&id, 1).await.unwrap();
        let hub = nats::connect(&nats.options("hub")).await.unwrap();
        hub.prepare(Keeping::default()).await.unwrap();
        let store = hub.env().store;
        let text: Vec<String> = log.iter().map(|entry| serde_json::to_string(entry).unwrap()).collect();
        for bytes in artifacts(&original, text.concat()).await {
            store.put(&bytes).await.unwrap();
        }
        std::fs::write(nats.folder().join("access.key"), KEY).unwrap();
        std::fs::set_permissions(nats.folder().join("access.key"), PermissionsExt::from_mode(0o600)).unwrap();

        // A person signs in once; the log grows while the process is killed again and again.
        let client = Client::builder().redirect(reqwest::redirect::Policy::none()).build().unwrap();
        let mut api = Api::start(&nats, 0);
        let port = api.base.rsplit_once(':').unwrap().1.parse().unwrap();
        let answer = client.get(format!("{}/?k={KEY}", api.base)).send().await.unwrap();
        assert_eq!((answer.status().as_u16(), answer.headers()[LOCATION].to_str().unwrap()), (303, "/"));
        let cookie = answer.headers()[SET_COOKIE].to_str().unwrap().split(';').next().unwrap().to_owned();
        assert!(log.len() > KILLS, "{}", log.len());
        for n in 0..KILLS {
            let (from, to) = (log.len() * n / KILLS, log.len() * (n + 1) / KILLS);
            store.append(&id, from as u64, &log[from..to]).await.unwrap();
            // The kill comes while the process folds what was appended, or just before or after that.
            let list = client.get(format!("{}/api/v1/investigations", api.base)).bearer_auth(KEY).send();
            let asking = tokio::spawn(list);
            tokio::time::sleep(Duration::from_micros(500 * n as u64)).await;
            api.process.kill();
            // It may have been killed before it answered.
            drop(asking.await.unwrap());
            api = Api::start(&nats, port);
            let page = client.get(format!("{}/i/{id}", api.base)).header(COOKIE, &cookie).send().await.unwrap();
            assert_eq!(page.status(), 200, "signed out by kill {n}");
            let (_, _, now) = ask(&client, &api.base, KEY, &format!("/api/v1/investigations/{id}")).await;
            let now: Value = serde_json::from_slice(&now).unwrap();
            assert_eq!(now["seq"].as_u64(), Some(to as u64), "{now}");
        }

        let serve = Server::serve(&nats.folder().join("data"), &[]).unwrap();
        let mut compared = 0;
        for address in addresses(&log) {
            let (ours, theirs) =
                (ask(&client, &api.base, KEY, &address).await, ask(&client, &serve.base, &serve.key, &address).await);
            let is_api = address.starts_with("/api/");
            assert_eq!((ours.0, &ours.1), (theirs.0, &theirs.1), "{address}");
            assert!(ours.0 == 200, "{address}: {}", String::from_utf8_lossy(&ours.2));
            if is_api {
                assert!(
                    ours.2 == theirs.2,
                    "{address}:\n{}\n{}",
                    String::from_utf8_lossy(&ours.2),
                    String::from_utf8_lossy(&theirs.2)
                );
                compared += 1;
            }
        }
        assert!(compared > 30, "{compared}");
        let context = format!("/api/v1/investigations/{id}/context?file=auth.log&line=1");
        for (path, key) in [(context.as_str(), KEY), ("/api/v1/sources", &serve.key)] {
            let (status, _, body) = ask(&client, &api.base, key, path).await;
            let expected = if key == KEY { (409, "no-team") } else { (401, "sign-in") };
            assert!(status == expected.0 && String::from_utf8_lossy(&body).contains(expected.1), "{path}: {status}");
        }
        let refused = client.post(format!("{}/api/v1/investigations", api.base)).bearer_auth(KEY);
        let refused = refused.header("content-type", "application/json").body(r#"{"alert":{"title":"x"}}"#);
        let refused = refused.send().await.unwrap();
        assert_eq!(refused.status(), 409);
        assert!(refused.text().await.unwrap().contains("no-team"));
    })
    .unwrap();
}

#[test]
fn key_file_of_others_and_missing_key_are_handled() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("access.key");
    let made = casebook_api::program::access_key(&file).unwrap();
    assert_eq!((made.len(), casebook_api::program::access_key(&file).unwrap()), (64, made.clone()));
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o644)).unwrap();
    let why = casebook_api::program::access_key(&file).unwrap_err();
    assert!(why.contains("got mode 0644; run `chmod 600`"), "{why}");
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
    std::fs::write(&file, "short").unwrap();
    let why = casebook_api::program::access_key(&file).unwrap_err();
    assert!(why.contains("expected at least 32 letters and digits"), "{why}");
}
