//! What the answered calls say beside records: the sources, and in how many records a name occurs.

use std::collections::BTreeMap;

use casebook_agent::reasoner::CallRequest;
use casebook_protocol::{CallId, EntityKind};
use serde_json::{Value, json};

use super::account;
use super::seed::{Seed, Seeds};

/// Fewer records than this are not a complete log of a host.
const FEW: u64 = 100;
/// A name says something in a source that has at most so many records with it, and at most one in `SCARCE` records.
const SCARCE_MAX: u64 = 20;
const SCARCE: u64 = 30;

/// An answered call.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(super) call: CallId,
    pub(super) tool: String,
    pub(super) asked: Value,
    pub(super) found: Value,
}

#[derive(Debug, Default)]
pub(crate) struct Answers {
    all: Vec<Answer>,
    pub(super) files: Vec<String>,
    /// Records of each source, by its id.
    sizes: BTreeMap<String, u64>,
}

impl Answers {
    pub(super) fn new(all: Vec<Answer>) -> Self {
        let listed = all.iter().find(|answer| answer.tool == "list_sources").and_then(|answer| answer.found.as_array());
        let text = |source: &Value, key: &str| source.get(key).and_then(Value::as_str).map(str::to_owned);
        let listed = || listed.into_iter().flatten();
        let size = |source: &Value| Some((text(source, "source")?, source.get("records")?.as_u64()?));
        Self {
            files: listed().filter_map(|s| text(s, "file")).collect(),
            sizes: listed().filter_map(size).collect(),
            all,
        }
    }

    /// Those of a tool.
    pub(super) fn of(&self, tool: &'static str) -> impl Iterator<Item = &Answer> {
        self.all.iter().filter(move |answer| answer.tool == tool)
    }

    pub(super) fn to(&self, request: &CallRequest) -> Option<&Answer> {
        let asked: Value = serde_json::from_str(&request.arguments).ok()?;
        self.all.iter().find(|answer| answer.tool == request.tool && answer.asked == asked)
    }

    /// All records of all sources.
    pub(super) fn records(&self) -> u64 {
        self.sizes.values().sum()
    }

    /// So few records were probably collected for the alert, so weaker links are enough.
    pub(super) fn few(&self) -> bool {
        self.records() <= FEW
    }

    /// What the search for the name alone found.
    fn searched<'a, T>(&'a self, name: &str, read: impl Fn(&'a Value) -> Option<T>) -> Option<T> {
        let terms = json!([name]);
        let mut alone = self.of("search").filter(|answer| answer.asked.get("terms") == Some(&terms));
        alone.find_map(|answer| read(&answer.found))
    }

    /// How many records have the name, if it was searched for.
    pub(super) fn total(&self, name: &str) -> Option<u64> {
        self.searched(name, |found| found.get("total")?.as_u64())
    }

    /// True if few records have the id of a job or a session. A job may take many steps.
    pub(super) fn of_one_job(&self, id: &str) -> bool {
        self.total(id).is_some_and(|total| (1..=200).contains(&total))
    }

    /// True if so few records have the name that they probably belong together.
    pub(super) fn is_rare(&self, name: &str) -> bool {
        let all = self.records();
        let few = (all / 50).clamp(30, 200);
        self.total(name).is_some_and(|total| (1..=few).contains(&total) && (total * 3 <= all * 2 || all < 12))
    }

    /// In a third of all records, such as the domain of a company.
    pub(super) fn is_common(&self, name: &str) -> bool {
        self.total(name).is_some_and(|total| total > FEW && total * 3 >= self.records())
    }

    /// The rare names of the alert that tell about its activity.
    pub(super) fn specific(&self, seeds: &Seeds) -> Vec<String> {
        let telling = |s: &&Seed| {
            let system_account = s.kind == EntityKind::User && account::of_system(&s.text);
            s.kind != EntityKind::Host && !system_account && !s.text.chars().all(|c| c.is_ascii_digit())
        };
        let rare = seeds.names.iter().filter(telling).filter(|seed| self.is_rare(&seed.text));
        rare.map(|seed| seed.text.clone()).collect()
    }

    /// The sources in which few records have a name of the alert, with the name: a log of another system that speaks of
    /// it.
    pub(super) fn scarce(&self, seeds: &Seeds) -> Vec<(String, String)> {
        let names = seeds.names.iter().map(|seed| &seed.text).filter(|name| !account::of_system(name));
        let few = |(source, count): &(&String, &Value)| {
            let size = self.sizes.get(*source).copied().unwrap_or(0);
            count.as_u64().is_some_and(|count| count <= SCARCE_MAX && count * SCARCE <= size)
        };
        let of = |name: &String| {
            let counts = self.searched(name, |found| found.get("by_source")?.as_object());
            let counts = counts.into_iter().flatten().filter(few);
            counts.map(|(source, _)| (source.clone(), name.clone())).collect::<Vec<_>>()
        };
        names.flat_map(of).collect()
    }
}
