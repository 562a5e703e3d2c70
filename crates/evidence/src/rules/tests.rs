mod hostile;
mod patterns;
mod recordings;
mod same;
mod stories;
mod tables;

use std::sync::Arc;

use crate::index::hits::{Total, stored, totals};
use crate::{Catalog, Declared};

use super::*;

fn user(text: &str) -> RuleFile {
    RuleFile { origin: Origin::User, path: PathBuf::from("own.yml"), text: text.to_owned() }
}

/// A folder of logs, loaded with rules.
struct Loaded {
    folder: tempfile::TempDir,
}

impl Loaded {
    fn new(files: &[(&str, String)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join("evidence").join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        Self { folder }
    }

    fn catalog(&self, rules: Option<&Arc<RuleSet>>) -> Catalog {
        let declared = Declared { rule_set: rules.cloned(), ..Declared::default() };
        let (evidence, index) = (self.folder.path().join("evidence"), self.folder.path().join("index"));
        Catalog::declared_in(&evidence, &index, None, &declared, &mut |_| {}).unwrap()
    }

    fn totals(&self, rules: &Arc<RuleSet>) -> Vec<Total> {
        self.catalog(Some(rules)).with_index(|db| Ok(totals(db)?)).unwrap()
    }

    /// The titles of the rules with hits, with the number of hits.
    fn hits(&self, rules: &Arc<RuleSet>) -> Vec<String> {
        self.totals(rules).iter().map(|total| format!("{} x{}", total.rule.title, total.hits)).collect()
    }
}

fn rules(text: &str) -> Arc<RuleSet> {
    Arc::new(RuleSet::read(&[user(text)]).unwrap())
}

const CURL: &str = "
title: Curl
logsource: {category: process_creation, product: linux}
detection:
  selection:
    CommandLine|contains: curl
  condition: selection
level: high
";

fn execve(second: u32, command: &str) -> String {
    let arguments: Vec<String> = command.split(' ').enumerate().map(|(n, a)| format!("a{n}=\"{a}\"")).collect();
    let argc = arguments.len();
    format!("type=EXECVE msg=audit(17000000{second:02}.123:{second}): argc={argc} {}\n", arguments.join(" "))
}

#[test]
fn a_rule_matches_records_of_its_log_source_only() {
    let audit: String = (0..10).map(|n| execve(n, if n == 4 { "curl http://x" } else { "ls -l" })).collect();
    let other = "{\"ts\":1700000000.5,\"CommandLine\":\"curl\",\"uid\":\"C1\",\"id.orig_h\":\"10.0.0.1\"}\n".repeat(5);
    let loaded = Loaded::new(&[("audit.log", audit), ("conn.log", other)]);
    let rules = rules(CURL);
    assert_eq!(loaded.hits(&rules), ["Curl x1"]);
    let total = &loaded.totals(&rules)[0];
    let hits = loaded.catalog(Some(&rules)).with_index(|db| Ok(stored(db, total.number, total.source)?)).unwrap();
    assert_eq!(hits, [(5, Some(1_700_000_004_123_000_000), None)]);
}

#[test]
fn other_rules_are_evaluated_again_and_no_rules_take_any_index() {
    let loaded = Loaded::new(&[("audit.log", (0..10).map(|n| execve(n, "curl http://x")).collect())]);
    assert_eq!(loaded.catalog(None).with_index(|db| Ok(totals(db)?)).unwrap().len(), 0);
    assert_eq!(loaded.hits(&rules(CURL)), ["Curl x10"]);
    assert_eq!(loaded.catalog(None).with_index(|db| Ok(totals(db)?)).unwrap().len(), 1, "the index is used as it is");
    assert_eq!(loaded.hits(&rules(&CURL.replace("curl", "wget"))), [""; 0]);
}

#[test]
fn the_rules_of_casebook_are_valid_and_known() {
    let set = RuleSet::built_in();
    assert!(set.rules().len() >= 20);
    for (number, rule) in set.rules().iter().enumerate() {
        assert!(set.has_log_source(number), "{}: no record has the log source {}", rule.file.display(), rule.logsource);
        assert!(!rule.part || rule.level == Level::Informational, "{}", rule.title);
        assert!(rule.part || rule.judgement.look_next.is_some(), "{} does not say where to look next", rule.title);
    }
}

#[test]
fn a_record_is_explained_part_by_part() {
    let set = rules(CURL);
    let record =
        |command: &str| vec![("type".to_owned(), "EXECVE".to_owned()), ("cmdline".to_owned(), command.to_owned())];
    let told = set.explain("auditd@web1", "audit.log", &record("wget x"), &|_| true);
    let [(0, Ok(told))] = told.as_slice() else { panic!("{told:?}") };
    assert!(!told.matched);
    let parts: Vec<&str> = told.parts.iter().map(|part| part.what.as_str()).collect();
    assert_eq!(parts, ["selection", "CommandLine: contains \"curl\"; the record has \"wget x\""]);
    let told = set.explain("zeek", "conn.log", &record("curl"), &|_| true);
    assert!(matches!(told.as_slice(), [(0, Err(_))]), "{told:?}");
}

#[test]
fn a_folder_of_rules_is_read_below_subfolders() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("linux")).unwrap();
    std::fs::write(folder.path().join("linux/a.yml"), CURL).unwrap();
    std::fs::write(folder.path().join("README.md"), "not a rule").unwrap();
    let files = rule_files(folder.path()).unwrap();
    assert_eq!(files.len(), 1);
    assert_eq!(RuleSet::read(&files).unwrap().rules()[0].title, "Curl");
    assert!(rule_files(Path::new("/nowhere")).unwrap_err().to_string().contains("cannot read"));
}
