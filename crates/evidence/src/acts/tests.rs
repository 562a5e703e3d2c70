//! The demo case with records added: which acts are listed.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use casebook_protocol::{Acts, Alert};
use casebook_table::{blocks, expect_file};

use crate::Catalog;

fn demo() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cases/package-hook-kmod")
}

/// The processes on the way to the alerted one.
const WAY: [&str; 7] = ["328", "329", "537", "615", "616", "625", "13072"];

/// The acts of the demo's alert over the part of its process log about it, with `added` lines by time.
fn with(added: &[&str]) -> Acts {
    let text = std::fs::read_to_string(demo().join("evidence/endpoint_process.ndjson")).unwrap();
    let about =
        |line: &&str| line.contains("hooks/kmod") || WAY.iter().any(|id| line.contains(&format!("\"pid\":{id},")));
    let mut lines: Vec<&str> = text.lines().filter(about).chain(added.iter().copied()).collect();
    lines.sort_by_key(|line| line.get(9..36));
    let folder = tempfile::tempdir().unwrap();
    let evidence = folder.path().join("evidence");
    std::fs::create_dir(&evidence).unwrap();
    std::fs::write(evidence.join("process.ndjson"), lines.join("\n") + "\n").unwrap();
    let catalog = Catalog::open_in(&evidence, &folder.path().join("index"), None, &mut |_| {}).unwrap();
    let alert = std::fs::read_to_string(demo().join("alert.json")).unwrap();
    // The added lines move the line that the alert points to.
    let alert = alert.replace("\"event_ref\"", "\"was\"").replace("\"line\"", "\"place\"");
    catalog.acts(&Alert::parse(alert.as_bytes()).unwrap()).unwrap()
}

fn record(line: &str) -> String {
    let mut words = line.splitn(4, ' ');
    let (time, event, pid) = (words.next().unwrap(), words.next().unwrap(), words.next().unwrap());
    let (pid, ppid) = pid.split_once('<').unwrap_or((pid, "13072"));
    let rest = words.next().unwrap_or("{}").trim_start_matches('{');
    format!(
        r#"{{"time":"2026-11-21T23:{time}Z","event":"{event}","host":"devbox-mara","pid":{pid},"ppid":{ppid},"uid":0,"user":"root",{rest}"#
    )
}

#[test]
fn what_a_process_did_is_listed_as_an_act() {
    blocks(&expect_file!["cases.txt"], |_, given| {
        let added: Vec<String> = given.lines().map(record).collect();
        let acts = with(&added.iter().map(String::as_str).collect::<Vec<_>>());
        let mut text = String::new();
        let known = |what: &str| what.starts_with("cp -aZ") || what.starts_with("mkdir -p /var/tmp/mkinit");
        for act in acts.listed.iter().filter(|act| !known(&act.what)) {
            writeln!(text, "{} {} {}", act.part.name(), act.kind.name(), act.what).unwrap();
        }
        let claim = acts.claim.map(|claim| format!("claim {} {}", claim.kind.name(), claim.found));
        text + &claim.unwrap_or_default()
    });
}
