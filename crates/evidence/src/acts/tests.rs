//! The demo case with records added: which acts are listed.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use casebook_protocol::{ActKind, Acts, Alert};
use casebook_table::{blocks, expect_file};

use crate::{Catalog, Declared, FilePattern, SourceRule};

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

/// "It did not happen" needs a search, and files are written too often to be searched for.
#[test]
fn sensor_speaks_against_a_claim_only_if_its_kind_is_searched_for() {
    let folder = tempfile::tempdir().unwrap();
    let rule = SourceRule {
        files: FilePattern::new("endpoint_process.ndjson").unwrap(),
        sensor: "edr".into(),
        on_alerted_host: false,
        records: vec![ActKind::ModuleLoad, ActKind::FileWrite],
        hosts: vec![],
        domain: None,
        zone: None,
        year: None,
        time_field: None,
        confirmed: true,
    };
    let declared = Declared { rules: vec![rule], ..Declared::default() };
    let catalog = Catalog::declared_in(&demo().join("evidence"), folder.path(), None, &declared, &mut |_| {}).unwrap();
    let alert = std::fs::read_to_string(demo().join("alert.json")).unwrap();
    for (title, kind, watched) in [
        ("Kernel module load by non-system process", ActKind::ModuleLoad, vec!["edr".to_owned()]),
        ("File write by non-system process", ActKind::FileWrite, vec![]),
    ] {
        let alert = alert.replace("Kernel module load by non-system process", title);
        let claim = catalog.acts(&Alert::parse(alert.as_bytes()).unwrap()).unwrap().claim.unwrap();
        assert_eq!((claim.kind, claim.found, claim.watched_by), (kind, 0, watched), "{title}");
    }
}
