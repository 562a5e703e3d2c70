//! Commands that read a data folder while another process investigates in it.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime};

use casebook_hub::{SqliteStore, archive};
use casebook_protocol::{InvestigationId, Recorded, Timestamp, between};
use casebook_tests::lab::{FORMS, Lab};
use casebook_tests::model::brain::Brain;
use casebook_tests::model::faults::{Fault, Faulty, When};
use casebook_tests::run;
use serde_json::{Value, json};

/// How old what a reader shows may be.
const OLD: Duration = Duration::from_secs(1);

struct Place {
    lab: Lab,
    folder: tempfile::TempDir,
}

impl Place {
    /// A model answers slowly, so that there is time to read.
    fn new() -> Self {
        let brain = Faulty::new(
            Brain { rounds: 2, ..Brain::default() },
            Fault::Slow(Duration::from_millis(150)),
            When::default(),
        );
        let lab = Lab::start_with(brain, FORMS[0], "", Default::default()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("models.toml"), &lab.file).unwrap();
        Self { lab, folder }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(run::program("casebook"));
        command.args(arguments).args(["--data", "data"]).current_dir(self.folder.path()).stdin(Stdio::null());
        command.env_remove("CASEBOOK_MODELS").env_remove("CASEBOOK_NATS").stderr(Stdio::piped()).stdout(Stdio::piped());
        command
    }

    fn investigate(&self) -> Child {
        let mut command = self.command(&["investigate", "--models", "models.toml"]);
        command.arg(run::demo().join("alert.json"));
        run::with_evidence(&mut command, &run::demo());
        command.stderr(Stdio::null()).stdout(Stdio::null()).spawn().unwrap()
    }

    /// The exit code and what it printed.
    fn run(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let output = self.command(arguments).output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8_lossy(&text).into_owned())
    }
}

fn now() -> Timestamp {
    SystemTime::now().try_into().unwrap()
}

/// When a command began, how many events it showed, and the round.
struct Seen {
    began: Timestamp,
    events: usize,
    round: u32,
}

fn number_before(text: &str, word: &str) -> usize {
    let words: Vec<&str> = text.split_whitespace().collect();
    let at = words.iter().position(|one| one.starts_with(word)).unwrap_or_else(|| panic!("no {word} in {text}"));
    words[at - 1].replace(',', "").parse().unwrap_or_else(|_| panic!("{text}"))
}

/// What an MCP client of this folder gets for each call.
fn mcp(place: &Place, calls: &[(&str, Value)]) -> Vec<String> {
    let mut command = place.command(&["mcp"]);
    command.arg("--evidence").arg(run::demo().join("evidence")).stdin(Stdio::piped());
    let mut server = command.spawn().unwrap();
    let mut input = server.stdin.take().unwrap();
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
    let mut send = |message: Value| writeln!(input, "{message}").unwrap();
    let client =
        json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    send(json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": client}));
    assert!(lines.next().unwrap().unwrap().contains("\"id\":0"));
    send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    let answers = calls.iter().zip(1..).map(|((tool, arguments), id)| {
        let params = json!({"name": tool, "arguments": arguments});
        send(json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}));
        lines.next().unwrap().unwrap()
    });
    let answers = answers.collect();
    drop(input);
    server.wait().unwrap();
    answers
}

#[test]
fn readers_beside_a_writer() {
    let place = Place::new();
    let mut writer = place.investigate();
    let begun = || {
        let (code, text) = place.run(&["list"]);
        let id = text.split_whitespace().find(|w| w.len() == 36 && w.matches('-').count() == 4);
        id.filter(|_| code == Some(0)).map(str::to_owned)
    };
    let id = loop {
        match begun() {
            Some(id) => break id,
            None => assert!(writer.try_wait().unwrap().is_none(), "the investigation ended before it was seen"),
        }
    };
    let mut watching = place.command(&["watch", "--json", &id]).spawn().unwrap();
    let lines = BufReader::new(watching.stdout.take().unwrap()).lines();
    let heard = std::thread::spawn(move || {
        let lines = lines.map(|line| (now(), serde_json::from_str::<Recorded>(&line.unwrap()).unwrap()));
        lines.collect::<Vec<_>>()
    });
    let open = json!({"alert": {"id": "another", "title": "x"}});
    let answers = mcp(&place, &[("list_investigations", json!({})), ("open_investigation", open)]);
    assert!(answers[0].contains(&id), "{}", answers[0]);
    let process = format!("in use by another casebook (process {})", writer.id());
    assert!(answers[1].contains(&process) && answers[1].contains("this server only reads"), "{}", answers[1]);
    let mut seen = Vec::new();
    while writer.try_wait().unwrap().is_none() {
        let began = now();
        let (code, verified) = place.run(&["verify", &id]);
        assert_eq!(code, Some(0), "{verified}");
        let (code, shown) = place.run(&["show", &id]);
        assert_eq!(code, Some(0), "{shown}");
        let round = shown.contains("not finished").then(|| {
            let (_, rest) = shown.split_once(", round ").unwrap();
            rest.split_whitespace().next().unwrap().parse().unwrap()
        });
        let (code, exported) = place.run(&["export", &id]);
        assert!(code == Some(0) || (code == Some(3) && exported.contains("is not finished")), "{exported}");
        let (code, listed) = place.run(&["list"]);
        assert!(code == Some(0) && listed.contains(&id), "{listed}");
        let round = round.unwrap_or(u32::MAX);
        seen.push(Seen { began, events: number_before(&verified, "event"), round });
    }
    assert!(writer.wait().unwrap().success());
    assert!(watching.wait().unwrap().success());
    let heard = heard.join().unwrap();
    let store = SqliteStore::read(place.folder.path().join("data")).unwrap();
    let id = InvestigationId::new(id).unwrap();
    let log = tokio::runtime::Runtime::new().unwrap().block_on(archive::log(&store, &id)).unwrap();
    assert!(seen.len() >= 3 && seen[0].events < log.len(), "too little was seen beside the writer: {}", seen.len());
    for Seen { began, events, round } in seen {
        let old = |entry: &&Recorded| entry.at < began && between(entry.at, began) > OLD;
        let then: Vec<Recorded> = log.iter().filter(old).cloned().collect();
        assert!(events >= then.len(), "verify showed {events} events, {} were older than a second", then.len());
        assert!(round >= casebook_hub::State::replay(&then).round, "show was behind by more than a second");
    }
    assert_eq!(heard.iter().map(|(_, entry)| entry).collect::<Vec<_>>(), log.iter().collect::<Vec<_>>());
    // What was there before the watch began is as old as it is.
    let late = |(at, entry): &(Timestamp, Recorded)| entry.at > heard[0].0 && between(entry.at, *at) > OLD;
    let late: Vec<u64> = heard.iter().filter(|one| late(one)).map(|(_, entry)| entry.seq).collect();
    assert_eq!(late, [0; 0], "shown more than a second late");
    assert_eq!(place.lab.violations(), [""; 0]);
}

/// SQLite needs a file beside the database, which the last writer removes at its end.
#[test]
fn a_user_who_may_not_write_to_the_folder_learns_what_to_do() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use std::os::unix::process::CommandExt;
    const NOBODY: u32 = 65_534;
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    drop(SqliteStore::open(&data).unwrap());
    assert!(!data.join("casebook.db-shm").exists());
    let mode = |path: &std::path::Path, mode: u32| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    let list = || {
        let mut command = Command::new(run::program("casebook"));
        command.args(["list", "--data"]).arg(&data).stdin(Stdio::null()).current_dir("/");
        if std::fs::metadata(&data).unwrap().uid() == 0 {
            command.uid(NOBODY).gid(NOBODY);
        }
        let output = command.output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
    };
    mode(folder.path(), 0o755);
    mode(&data, 0o555);
    let (code, said) = list();
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("which you may not write to") && said.contains("casebook export ID"), "{said}");
    mode(&data, 0o755);
    let writer = SqliteStore::open(&data).unwrap();
    for name in ["casebook.db", "casebook.db-wal", "casebook.db-shm"] {
        mode(&data.join(name), 0o644);
    }
    mode(&data, 0o555);
    let (code, said) = list();
    assert!(code == Some(0) && said.contains("no investigations"), "beside a writer it can be read: {said}");
    mode(&data, 0o755);
    drop(writer);
}
