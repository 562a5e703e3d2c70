mod args;
mod baseline;
mod count;
mod coverage;
mod describe;
mod find;
mod rules;
mod shown;
pub(super) mod spec;
mod sql;
mod table;

use std::sync::Arc;

use casebook_protocol::Toolset;
use serde_json::Value;

use super::query::Filter;
use super::{Catalog, Source};
use args::Args;

/// The tools for the sources that one Expert may see, for use by many threads. A call blocks on file access.
#[derive(Debug, Clone)]
pub struct EvidenceTools {
    catalog: Arc<Catalog>,
    /// Source numbers, ascending.
    visible: Arc<[usize]>,
}

impl EvidenceTools {
    /// Ignores ids that are not a source.
    #[must_use]
    pub fn new(catalog: Arc<Catalog>, visible_sources: &[String]) -> Self {
        let visible = catalog
            .sources()
            .iter()
            .enumerate()
            .filter(|(_, source)| visible_sources.contains(&source.id))
            .map(|(place, _)| place)
            .collect();
        Self { catalog, visible }
    }

    /// Includes sources that these tools hide.
    pub fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    pub fn visible(&self) -> impl Iterator<Item = &Source> {
        self.visible.iter().filter_map(|place| self.catalog.sources().get(*place))
    }

    /// The visible sources with the sensors that they count as.
    fn with_sensors(&self) -> impl Iterator<Item = (&Source, &str)> {
        let visible = |place: &usize| self.visible.contains(place);
        self.catalog.with_sensors().enumerate().filter(move |(place, _)| visible(place)).map(|(_, source)| source)
    }

    pub fn toolset(&self) -> Toolset {
        spec::toolset(self.visible())
    }

    pub fn tool_names() -> impl Iterator<Item = &'static str> {
        spec::TOOLS.iter().map(|(name, ..)| *name)
    }

    /// Calls a tool. The answer is JSON, and the same call on the same evidence gives the same answer.
    ///
    /// Errors: What is wrong with the call and what is expected, or why the evidence cannot be read.
    pub fn call(&self, tool: &str, arguments_json: &str) -> Result<String, String> {
        let call = (Arc::clone(&self.visible), tool.to_owned(), arguments_json.to_owned());
        if let Some(known) = self.catalog.answers.get(&call)
            && self.is_unchanged()
        {
            return Ok(known.as_ref().to_owned());
        }
        let answer = self.answer_of(tool, arguments_json)?;
        let written = text(&answer);
        // A file that cannot be read now may be there again.
        if answer.get("not_searched").is_none() {
            self.catalog.answers.keep(call, &written);
        }
        Ok(written)
    }

    /// Whether each visible file still is as it was loaded.
    fn is_unchanged(&self) -> bool {
        self.visible.iter().all(|place| i64::try_from(*place).is_ok_and(|place| self.catalog.text(place).is_ok()))
    }

    fn answer_of(&self, tool: &str, arguments_json: &str) -> Result<Value, String> {
        let read = |tool, known| Args::new(tool, arguments_json, known);
        match tool {
            "list_sources" => read("list_sources", &[]).map(|_| self.list_sources()),
            "coverage" => self.coverage(&read("coverage", coverage::COVERAGE)?),
            "describe_source" => self.describe_source(&read("describe_source", describe::DESCRIBE)?),
            "search" => self.search(&read("search", find::SEARCH)?),
            "count_by" => self.count_by(&read("count_by", count::COUNT)?),
            "around" => self.around(&read("around", find::AROUND)?),
            "get_record" => self.get_record(&read("get_record", find::GET)?),
            "baseline" => self.baseline(&read("baseline", baseline::BASELINE)?),
            "related" => self.related(&read("related", find::RELATED)?),
            "rule_hits" => self.rule_hits(&read("rule_hits", rules::RULE_HITS)?),
            "sql" => self.sql(&read("sql", sql::SQL)?),
            _ => {
                let known: Vec<&str> = spec::TOOLS.iter().map(|(name, ..)| *name).collect();
                Err(format!("unknown tool {tool:?}; there are {}", known.join(", ")))
            }
        }
    }

    fn sources(&self, args: &Args) -> Result<Vec<usize>, String> {
        let wanted = args.texts("sources")?;
        if wanted.is_empty() {
            return Ok(self.visible.to_vec());
        }
        let mut places = Vec::new();
        for name in wanted {
            let hit = self
                .visible
                .iter()
                .find(|place| self.catalog.sources().get(**place).is_some_and(|s| s.id == name || s.file == name));
            match hit {
                Some(place) => places.push(*place),
                None => return args.fail(&format!("no source {name:?}; there are {}", self.known())),
            }
        }
        places.sort_unstable();
        places.dedup();
        Ok(places)
    }

    fn names(&self, filter: &Filter) -> Vec<&str> {
        filter.sources.iter().filter_map(|p| self.catalog.sources().get(*p)).map(|s| s.id.as_str()).collect()
    }

    fn known(&self) -> String {
        let all: Vec<&str> = self.visible().map(|s| s.id.as_str()).take(40).collect();
        if all.is_empty() { "none".to_owned() } else { all.join(", ") }
    }
}

/// Sorts keys, so that equal answers have equal hashes.
fn text(answer: &Value) -> String {
    casebook_protocol::hash::canonical_json(answer)
}
