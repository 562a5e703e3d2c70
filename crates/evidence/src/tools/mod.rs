//! The tools of an Expert over its sources.

mod args;
mod count;
mod describe;
mod find;
mod shown;
pub(super) mod spec;
mod sql;

use std::sync::Arc;

use casebook_protocol::Toolset;
use serde_json::Value;

use super::query::Filter;
use super::{Catalog, Source};
use args::Args;

/// The evidence tools over those sources of a catalog that one Expert may see. Shared between threads;
/// a call blocks on files, so call it where blocking is allowed.
#[derive(Debug, Clone)]
pub struct EvidenceTools {
    catalog: Arc<Catalog>,
    /// Places of the sources, ascending.
    visible: Arc<[usize]>,
}

impl EvidenceTools {
    /// The tools over the sources with these ids; an id that names no source is ignored.
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

    /// The catalog behind the tools; it holds sources that these tools do not show.
    #[must_use]
    pub fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    /// The sources that these tools show, in order of file name.
    pub fn visible(&self) -> impl Iterator<Item = &Source> {
        self.visible.iter().filter_map(|place| self.catalog.sources().get(*place))
    }

    /// Name, documentation and argument schema of every tool.
    #[must_use]
    pub fn toolset(&self) -> Toolset {
        spec::toolset(self.visible())
    }

    /// The names of all tools, whatever the sources.
    pub fn tool_names() -> impl Iterator<Item = &'static str> {
        spec::TOOLS.iter().map(|(name, ..)| *name)
    }

    /// Calls a tool. The answer is JSON and is the same for the same call on the same evidence.
    ///
    /// # Errors
    /// A message for the caller: what is wrong with the call and what would be right, or why the evidence
    /// cannot be read.
    pub fn call(&self, tool: &str, arguments_json: &str) -> Result<String, String> {
        let read = |tool, known| Args::new(tool, arguments_json, known);
        let answer = match tool {
            "list_sources" => read("list_sources", &[]).map(|_| self.list_sources())?,
            "describe_source" => self.describe_source(&read("describe_source", describe::DESCRIBE)?)?,
            "search" => self.search(&read("search", find::SEARCH)?)?,
            "count_by" => self.count_by(&read("count_by", count::COUNT)?)?,
            "around" => self.around(&read("around", find::AROUND)?)?,
            "get_record" => self.get_record(&read("get_record", find::GET)?)?,
            "sql" => self.sql(&read("sql", sql::SQL)?)?,
            _ => {
                let known: Vec<&str> = spec::TOOLS.iter().map(|(name, ..)| *name).collect();
                return Err(format!("unknown tool {tool:?}; there are {}", known.join(", ")));
            }
        };
        Ok(text(&answer))
    }

    /// The places of the sources that `sources` names; of all that may be seen where it is not given.
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

    /// The ids of the sources that a filter covers.
    fn names(&self, filter: &Filter) -> Vec<&str> {
        filter.sources.iter().filter_map(|p| self.catalog.sources().get(*p)).map(|s| s.id.as_str()).collect()
    }

    /// The visible sources for a message.
    fn known(&self) -> String {
        let all: Vec<&str> = self.visible().map(|s| s.id.as_str()).take(40).collect();
        if all.is_empty() { "none".to_owned() } else { all.join(", ") }
    }
}

/// JSON with keys in one order, so that an answer has one hash.
fn text(answer: &Value) -> String {
    casebook_protocol::hash::canonical_json(answer)
}
