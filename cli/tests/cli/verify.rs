//! `casebook verify` after a byte was changed in each place, with the real program.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use casebook_hub::SqliteStore;
use casebook_protocol::{Event, InvestigationId, Recorded};
use casebook_runtime::store::Store;
use rusqlite::{Connection, params};
use serde_json::{Value, json};

use crate::investigate::{ALERT, evidence};

struct Place {
    folder: tempfile::TempDir,
    id: InvestigationId,
}

impl Place {
    /// An investigation with its data in `.casebook`, its evidence in `logs` and a signed report in `kept.json`.
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        evidence(&folder.path().join("logs"));
        std::fs::write(folder.path().join("alert.json"), ALERT).unwrap();
        let mut place = Self { folder, id: InvestigationId::new("none").unwrap() };
        place.casebook(&["investigate", "alert.json", "--evidence", "logs", "--out", "report"], 0);
        let report: Value = serde_json::from_str(&place.read("report/report.json")).unwrap();
        place.id = serde_json::from_value(report["investigation"].clone()).unwrap();
        place.casebook(&["key", "key"], 0);
        place.casebook(&["key", "other"], 0);
        place.casebook(&["export", place.id.as_str(), "--sign", "key", "-o", "kept.json"], 0);
        place
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.at(name)).unwrap()
    }

    fn casebook(&self, arguments: &[&str], code: i32) -> String {
        let output = Command::new(env!("CARGO_BIN_EXE_casebook"))
            .args(arguments)
            .current_dir(self.folder.path())
            .env_remove("CASEBOOK_DATA")
            .env_remove("CASEBOOK_LOG")
            .output()
            .unwrap();
        let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).concat();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {text}");
        text
    }

    fn verify(&self, more: &[&str], code: i32) -> String {
        self.casebook(&[&["verify", self.id.as_str()], more].concat(), code)
    }

    fn log(&self) -> Vec<Recorded> {
        let store = SqliteStore::open(self.at(".casebook")).unwrap();
        tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .unwrap()
            .block_on(store.log(&self.id, 1))
            .unwrap()
    }

    fn database(&self) -> Connection {
        Connection::open(self.at(".casebook/casebook.db")).unwrap()
    }

    /// Replaces the log, as a person with access to the database can.
    fn replace_log(&self, log: &[Recorded]) {
        let brief = |e: &Recorded| json!({"v": e.v, "at": e.at, "hash": e.hash, "event": e.event});
        let row = serde_json::to_vec(&log.iter().map(brief).collect::<Vec<_>>()).unwrap();
        let database = self.database();
        database.execute("DELETE FROM events", []).unwrap();
        let insert = "INSERT INTO events (investigation, seq, form, entry) VALUES (1, ?1, 0, ?2)";
        database.execute(insert, params![i64::try_from(log.len()).unwrap(), row]).unwrap();
    }

    fn remove_report(&self) {
        assert_eq!(self.database().execute("DELETE FROM results WHERE key = 'report'", []).unwrap(), 1);
    }

    fn copied(&self) -> Self {
        let folder = tempfile::tempdir().unwrap();
        copy(self.folder.path(), folder.path());
        Self { folder, id: self.id.clone() }
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// The chain of these events, computed anew.
fn chained(log: &[Recorded]) -> Vec<Recorded> {
    let mut anew: Vec<Recorded> = Vec::new();
    for entry in log {
        anew.push(Recorded::next(&entry.investigation, anew.last(), entry.at, entry.event.clone()));
    }
    anew
}

fn has(text: &str, needed: &[&str]) {
    for needed in needed {
        assert!(text.contains(needed), "{needed:?} is not in\n{text}");
    }
}

const ALL: [&str; 6] = ["--evidence", "logs", "--report", "kept.json", "--public-key", "key.pub"];

#[test]
fn undisturbed_investigation_is_verified_with_counts_and_what_is_not_known() {
    let place = Place::new();
    let events = place.log().len();
    let all = place.verify(&ALL, 0);
    has(
        &all,
        &[
            &format!("{events} events: each follows the one before; the last one closes the investigation"),
            "recorded results: each is what the log says",
            "citations: checked again with the same answers",
            "the recorded report: it is what the log gives",
            "the signature of kept.json: it fits the key key.pub",
            &format!("the log up to event {events}: its last hash is the one in kept.json"),
            "kept.json: it is what the log gives",
            "cited records: the hash is the recorded one",
            "2 of 2 evidence files: the hash is the recorded one",
            "no difference was found",
        ],
    );
    let alone = place.verify(&[], 0);
    has(&alone, &["whether the log was written anew as a whole", "whether the evidence is unchanged"]);
    assert!(!alone.contains("evidence file") && !all.contains("written anew"), "{alone}\n{all}");
    let unsigned = place.verify(&["--report", "report/report.json"], 0);
    has(&unsigned, &["whether report/report.json itself was changed: it has no signature"]);
    has(&place.verify(&["--report", "kept.json"], 0), &["whether the signature of kept.json is valid"]);
    let more = place.read("logs/auth.log") + "2026-03-01T02:20:00.000Z web-03 sshd[9]: later\n";
    std::fs::write(place.at("logs/auth.log"), more).unwrap();
    has(&place.verify(&["--evidence", "logs"], 0), &["1 have grown, but the part that was read is unchanged"]);
}

#[test]
fn change_of_the_log_or_of_its_results_is_named() {
    let original = Place::new();
    let log = original.log();
    let changed = |change: &dyn Fn(&Place), needed: &[&str]| {
        let place = original.copied();
        change(&place);
        let found = place.verify(&[], 4);
        has(&found, needed);
        has(&found, &["do not rely on this investigation"]);
    };

    let at = log.iter().position(|e| matches!(e.event, Event::Journaled { .. })).unwrap();
    let mut edited = log.clone();
    let Event::Journaled { entry } = &mut edited[at].event else { panic!() };
    entry.entry.text.push('x');
    let seq = at + 1;
    changed(&|place| place.replace_log(&edited), &[&format!("event {seq} was changed after it was recorded")]);
    changed(&|place| place.replace_log(&chained(&edited)), &["the recorded report is not what the log gives"]);

    let cut = &log[..log.len() - 2];
    changed(&|place| place.replace_log(cut), &["a report is recorded, but the log is not closed"]);
    changed(&Place::remove_report, &["the investigation is closed and its report is not in the store"]);

    for kind in ["call", "outcome", "report"] {
        let spoil = |place: &Place| {
            let database = place.database();
            let key: String = database
                .query_row("SELECT key FROM results WHERE key LIKE ?1 ORDER BY key", [format!("{kind}%")], |r| r.get(0))
                .unwrap();
            let update = "UPDATE results SET form = 0, bytes = ?1 WHERE key = ?2";
            assert_eq!(database.execute(update, params![&b"{\"v\":1,\"body\":{}}"[..], key]).unwrap(), 1);
        };
        let needed = match kind {
            "report" => "the recorded report cannot be read",
            _ => "is not what was recorded in the log",
        };
        changed(&spoil, &[kind, needed]);
    }
    let removed = |place: &Place| {
        assert!(place.database().execute("DELETE FROM results WHERE key LIKE 'call/r1%'", []).unwrap() > 0);
    };
    changed(&removed, &["is named in the log and not in the store"]);
    let artifact = |place: &Place| {
        assert!(place.database().execute("UPDATE artifacts SET form = 0, bytes = x'7b7d'", []).unwrap() > 0);
    };
    changed(&artifact, &["changed after they were stored"]);
}

#[test]
fn log_that_is_right_in_itself_differs_from_a_kept_report() {
    let original = Place::new();
    let log = original.log();

    // The last events and the report are gone: what is left looks like an investigation under way.
    let place = original.copied();
    place.replace_log(&log[..log.len() - 2]);
    place.remove_report();
    has(&place.verify(&[], 0), &["it is not closed, so its last events may be missing"]);
    let made = format!("kept.json was made from {} events, and the log has {}", log.len(), log.len() - 2);
    has(&place.verify(&["--report", "kept.json"], 4), &[&made, "the last ones were removed"]);

    // The whole log was written anew, and its report with it.
    let place = original.copied();
    let mut edited = log.clone();
    let at = log.iter().position(|e| matches!(e.event, Event::Journaled { .. })).unwrap();
    let Event::Journaled { entry } = &mut edited[at].event else { panic!() };
    entry.entry.text.push('x');
    place.replace_log(&chained(&edited));
    place.remove_report();
    place.casebook(&["resume", place.id.as_str()], 0);
    has(&place.verify(&[], 0), &["no difference was found", "whether the log was written anew as a whole"]);
    let found = place.verify(&["--report", "kept.json"], 4);
    has(&found, &["has another hash than in kept.json", "kept.json is not the report that the log gives"]);

    // The report itself has another head.
    let mut kept: Value = serde_json::from_str(&original.read("kept.json")).unwrap();
    kept["proof"]["head"]["hash"] = "0".repeat(64).into();
    std::fs::write(original.at("head.json"), kept.to_string()).unwrap();
    let found = original.verify(&["--report", "head.json", "--public-key", "key.pub"], 4);
    has(&found, &["the signature of head.json does not fit the key key.pub", "has another hash than in head.json"]);
    kept["investigation"] = "another".into();
    std::fs::write(original.at("head.json"), kept.to_string()).unwrap();
    has(&original.verify(&["--report", "head.json"], 2), &["expected the report of", "got that of another"]);
}

#[test]
fn signature_is_checked_with_the_given_key() {
    let place = Place::new();
    let mode = |name: &str| std::fs::metadata(place.at(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode("key"), 0o600);
    has(&place.casebook(&["key", "key"], 2), &["key already exists", "name a file that does not exist"]);
    let verify = |report: &str, key: &str, code| place.verify(&["--report", report, "--public-key", key], code);
    has(&verify("kept.json", "other.pub", 4), &["does not fit the key other.pub"]);
    has(&verify("report/report.json", "key.pub", 4), &["report/report.json has no signature"]);
    has(&verify("kept.json", "key", 2), &["cannot use key: it is not an Ed25519 public key"]);
    let verdict = place.read("kept.json").replacen("\"summary\": \"", "\"summary\": \"x", 1);
    std::fs::write(place.at("changed.json"), verdict).unwrap();
    let found = verify("changed.json", "key.pub", 4);
    has(&found, &["the signature of changed.json does not fit", "changed.json is not the report that the log gives"]);
    let id = place.id.as_str();
    has(
        &place.casebook(&["export", id, "--sign", "key", "--format", "md"], 2),
        &["expected --format json with --sign"],
    );
    has(&place.casebook(&["export", id, "--sign", "key.pub"], 2), &["it is not an Ed25519 private key"]);
    let signed: Value = serde_json::from_str(&place.casebook(&["export", id, "--sign", "key"], 0)).unwrap();
    assert_eq!(signed["signature"]["algorithm"], "ed25519");
}

#[test]
fn openssl_and_casebook_read_each_others_keys() {
    let place = Place::new();
    let openssl = |arguments: &[&str]| {
        let output = Command::new("openssl").args(arguments).current_dir(place.folder.path()).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    };
    assert_eq!(String::from_utf8(openssl(&["pkey", "-in", "key", "-pubout"])).unwrap(), place.read("key.pub"));
    openssl(&["genpkey", "-algorithm", "ed25519", "-out", "theirs"]);
    openssl(&["pkey", "-in", "theirs", "-pubout", "-out", "theirs.pub"]);
    place.casebook(&["export", place.id.as_str(), "--sign", "theirs", "-o", "signed.json"], 0);
    let found = place.verify(&["--report", "signed.json", "--public-key", "theirs.pub"], 0);
    has(&found, &["the signature of signed.json: it fits the key theirs.pub"]);
}

#[test]
fn change_anywhere_in_a_cited_record_or_an_evidence_file_is_named() {
    let original = Place::new();
    let report: Value = serde_json::from_str(&original.read("report/report.json")).unwrap();
    let records = report["proof"]["records"].as_array().unwrap();
    let file = "logs/endpoint_process.ndjson";
    let cited = |line: usize| {
        records.iter().any(|r| r["file"] == "endpoint_process.ndjson" && r["line"].as_u64() == Some(line as u64 + 1))
    };
    let lines: Vec<String> = original.read(file).lines().map(str::to_owned).collect();
    let write = |lines: &[String]| {
        let place = original.copied();
        // The time of change stays, so that the index alone would not find it.
        let time = std::fs::metadata(original.at(file)).unwrap().modified().unwrap();
        std::fs::write(place.at(file), lines.join("\n") + "\n").unwrap();
        std::fs::File::options().write(true).open(place.at(file)).unwrap().set_modified(time).unwrap();
        place.verify(&["--evidence", "logs"], 4)
    };

    // The date is in no quotation.
    let at = (0..lines.len()).find(|n| cited(*n)).unwrap();
    let mut edited = lines.clone();
    edited[at] = edited[at].replace("2026-03-01", "2026-03-02");
    assert_ne!(edited, lines);
    let found = write(&edited);
    let place = format!("cites endpoint_process.ndjson:{}: that record is not what was cited", at + 1);
    has(&found, &[&place, "evidence file endpoint_process.ndjson was changed"]);

    // A record that nothing cites.
    let at = (0..lines.len()).find(|n| !cited(*n)).unwrap();
    let mut edited = lines.clone();
    edited[at] = edited[at].replace("web-03", "web-04");
    let found = write(&edited);
    has(&found, &["evidence file endpoint_process.ndjson was changed", "1 problem: do not rely"]);

    let place = original.copied();
    std::fs::remove_file(place.at("logs/auth.log")).unwrap();
    has(&place.verify(&["--evidence", "logs"], 4), &["evidence file auth.log cannot be read"]);
}
