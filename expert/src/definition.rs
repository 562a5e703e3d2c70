//! Experts as configuration: a YAML file defines an Expert's knowledge, instructions and tools.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use casebook_agent::mcp::pattern::Pattern;
use casebook_agent::model::config::Limits;
use casebook_protocol::Domain;
use casebook_runtime::config::{self, Check, ConfigFaults, Form, Source, or_default};
use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

mod folder;
#[cfg(test)]
mod tests;

pub use folder::{each as read_each, read as read_folder};

/// An Expert of Casebook: its knowledge, instructions and tools.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "Expert")]
pub struct Definition {
    /// The file of the definition. A preset has its name in angle brackets.
    #[serde(skip)]
    pub file: PathBuf,
    /// Its domain in 1 to 32 of a-z, 0-9 and hyphen, by which the Director addresses it, such as cloud.
    #[schemars(with = "String", regex(pattern = "^[a-z0-9-]{1,32}$"))]
    pub name: Domain,
    /// Its knowledge and its sources in one or two sentences, which the Director reads.
    #[schemars(length(min = 1, max = 2000))]
    pub description: String,
    /// The data that it expects, for the person who sets it up: sources, fields, time span.
    #[serde(default, deserialize_with = "or_default")]
    #[schemars(length(max = 20000))]
    pub expects: String,
    /// Instructions in addition to those of every Expert: what to look for, what is normal here.
    #[schemars(length(min = 1, max = 40000))]
    pub instructions: String,
    /// The model that it uses, by its name in the models file, or analyst.
    #[schemars(length(min = 1, max = 64))]
    pub model: Option<String>,
    /// A list of tools that it may call, each written server/tool, such as evidence/* or github/search_*.
    #[schemars(length(min = 1, max = 200))]
    #[serde(deserialize_with = "listed")]
    pub tools: Vec<Grant>,
    /// A list of the evidence sources that it reads, by their domains or ids, such as [cloud, identity]; default: its
    /// own domain.
    #[schemars(length(min = 1, max = 200))]
    #[serde(default, deserialize_with = "listed")]
    pub sources: Vec<Pattern>,
    /// A map of limits for each of its tasks, such as { turns: 12, cost: "0.50", time: 10m }.
    #[serde(default, deserialize_with = "or_default")]
    pub limits: Limits,
}

/// Tools that an Expert may call, written server/tool; * matches any characters.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(try_from = "String")]
#[schemars(extend("minLength" = 1, "maxLength" = 200))]
pub struct Grant {
    /// The server; `evidence` is the folder of logs.
    pub server: Pattern,
    /// Its tools.
    pub tool: Pattern,
}

impl TryFrom<String> for Grant {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let written = casebook_protocol::one_line(&text, 80);
        // Only the name of a server may contain a '/'.
        match text.rsplit_once('/') {
            Some((server, tool)) if !server.trim().is_empty() && !tool.trim().is_empty() => {
                Ok(Self { server: Pattern::new(server.trim()), tool: Pattern::new(tool.trim()) })
            }
            Some(_) => Err(format!("expected server/tool, got {written:?}")),
            None if text == "*" => {
                Err("expected server/tool, got \"*\"; write server/*, such as evidence/*".to_owned())
            }
            None => {
                Err(format!("expected server/tool, got {written:?}; write evidence/{written} for a tool over the logs"))
            }
        }
    }
}

fn listed<'de, T: Deserialize<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<T>, D::Error> {
    let list = Vec::deserialize(deserializer)?;
    let valid = (1..=200).contains(&list.len());
    valid.then_some(list).ok_or_else(|| D::Error::custom("expected a list of 1 to 200 names"))
}

impl Definition {
    /// The Expert in `text`, the content of `file`.
    ///
    /// # Errors
    /// The first fault of form, or all faults of meaning.
    pub fn parse(file: &Path, text: &str) -> Result<Self, ConfigFaults> {
        let source = Source::new(Form::Yaml, file, text);
        let mut read: Self = source.read()?;
        let mut check = Check::default();
        read.check(&mut check);
        source.holds(check)?;
        for text in [&mut read.description, &mut read.expects, &mut read.instructions] {
            *text = text.trim().to_owned();
        }
        if read.sources.is_empty() {
            read.sources.push(Pattern::new(read.name.as_str()));
        }
        read.file = file.to_path_buf();
        Ok(read)
    }

    fn check(&self, check: &mut Check) {
        check.text("description", &self.description, 2000);
        check.text("instructions", &self.instructions, 40_000);
        if let Some(model) = &self.model {
            check.text("model", model, 64);
        }
        check.at(&["limits"], |check| self.limits.check(check));
    }

    pub fn schema() -> serde_json::Value {
        config::schema::<Self>()
    }

    /// True if its file grants it `tool` of `server`.
    pub fn grants(&self, server: &str, tool: &str) -> bool {
        self.tools.iter().any(|grant| grant.server.matches(server) && grant.tool.matches(tool))
    }
}

pub fn presets() -> &'static [Definition] {
    static READ: LazyLock<Vec<Definition>> = LazyLock::new(|| {
        let file = |name: &str| PathBuf::from(format!("<{name}>"));
        // A test checks that every preset can be read.
        PRESETS.iter().filter_map(|(name, text)| Definition::parse(&file(name), text).ok()).collect()
    });
    &READ
}

pub fn preset(domain: &Domain) -> Option<&'static Definition> {
    presets().iter().find(|preset| preset.name == *domain)
}

pub const PRESETS: [(&str, &str); 8] = [
    ("access", include_str!("../presets/access.yaml")),
    ("cloud", include_str!("../presets/cloud.yaml")),
    ("code", include_str!("../presets/code.yaml")),
    ("configuration", include_str!("../presets/configuration.yaml")),
    ("endpoint", include_str!("../presets/endpoint.yaml")),
    ("identity", include_str!("../presets/identity.yaml")),
    ("network", include_str!("../presets/network.yaml")),
    ("threat", include_str!("../presets/threat.yaml")),
];
