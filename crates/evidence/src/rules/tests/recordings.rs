//! Each rule of ours over records that it must meet and records that it must not meet (`tests/recordings/rules`).

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::Value;

use super::*;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Recording {
    rule: String,
    hit: bool,
    /// The log in which it stands.
    pub(super) file: String,
    record: Option<Value>,
    line: Option<String>,
    records: Option<Vec<Value>>,
    lines: Option<Vec<String>>,
}

impl Recording {
    pub(super) fn texts(&self) -> Vec<String> {
        let records = self.record.iter().chain(self.records.iter().flatten()).map(Value::to_string);
        records.chain(self.line.iter().chain(self.lines.iter().flatten()).cloned()).collect()
    }

    /// Several records are for a correlation, which other records in the log would disturb.
    fn alone(&self) -> bool {
        self.records.is_some() || self.lines.is_some()
    }
}

pub(super) fn recordings() -> Vec<Recording> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/recordings/rules");
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let lines = files.iter().flat_map(|file| {
        let text = std::fs::read_to_string(file).unwrap();
        text.lines().map(str::to_owned).collect::<Vec<_>>()
    });
    lines.map(|line| serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect()
}

/// The rules that each record of a log meets, by the line on which it starts.
fn met(file: &str, text: &str) -> BTreeMap<u64, BTreeSet<String>> {
    let rules = RuleSet::built_in();
    let loaded = Loaded::new(&[(file, text.to_owned())]);
    let catalog = loaded.catalog(Some(&rules));
    let lines = text.lines().count() as u64;
    let of = |line| {
        let record = catalog.record(file, line).ok()?;
        let source = i64::try_from(catalog.source_of(file)?).ok()?;
        let ids = catalog.rules_met(source, &record).into_iter().map(|rule| rule.id).collect();
        Some((line, ids))
    };
    (1..=lines).filter_map(of).collect()
}

#[test]
fn each_rule_meets_what_it_is_for_and_not_what_resembles_it() {
    let all = recordings();
    let mut logs: BTreeMap<&str, Vec<&Recording>> = BTreeMap::new();
    for one in all.iter().filter(|one| !one.alone()) {
        logs.entry(&one.file).or_default().push(one);
    }
    let mut wrong = Vec::new();
    for (file, recorded) in logs {
        let (mut text, mut begins) = (String::new(), Vec::new());
        for one in &recorded {
            begins.push(text.lines().count() as u64 + 1);
            one.texts().iter().for_each(|line| text.push_str(&format!("{}\n", line.trim_end_matches('\n'))));
        }
        let met = met(file, &text);
        for (one, line) in recorded.iter().zip(begins) {
            let hit = met.get(&line).is_some_and(|rules| rules.contains(&one.rule));
            if hit != one.hit {
                wrong.push(format!("{} {file}:{line}: expected hit {}: {:?}", one.rule, one.hit, one.texts()));
            }
        }
    }
    for one in all.iter().filter(|one| one.alone()) {
        let loaded = Loaded::new(&[(&one.file, one.texts().join("\n") + "\n")]);
        let hit = loaded.totals(&RuleSet::built_in()).iter().any(|total| total.rule.id == one.rule);
        if hit != one.hit {
            wrong.push(format!("{} in {}: expected hit {}", one.rule, one.file, one.hit));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), all.len(), wrong.join("\n"));
}

#[test]
fn each_rule_of_ours_is_recorded() {
    let hits: BTreeSet<String> = recordings().into_iter().filter(|one| one.hit).map(|one| one.rule).collect();
    let rules = RuleSet::built_in();
    let single = rules.rules.iter().filter(|rule| rule.correlation.is_none() && !rule.part);
    let missing: Vec<&str> = single.filter(|rule| !hits.contains(&rule.id)).map(|rule| rule.title.as_str()).collect();
    assert!(missing.is_empty(), "no recording for {missing:?}");
}
