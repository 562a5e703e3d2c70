//! The JSON Schema of each format, as it is printed and as it stands under docs/schemas.

use casebook_agent::mcp::policy::Policy;
use casebook_agent::mcp::servers::Servers;
use casebook_expert::definition::Definition;
use serde_json::{Value, json};

use crate::args::Format;

/// The JSON Schema of `format` as text.
///
/// Those of Experts, tools.yaml and mcp.json are made from the types that the files are read into. TOML is read
/// otherwise: the schemas of models and profiles are written by hand, and held to their readers by tests.
#[must_use]
pub fn schema(format: Format) -> String {
    let schema = match format {
        Format::Expert => Definition::schema(),
        Format::Tools => Policy::schema(),
        Format::Mcp => Servers::schema(),
        Format::Models => return include_str!("../../../../docs/schemas/models.schema.json").to_owned(),
        Format::Profile => profile(),
    };
    // A value with texts as keys can be written.
    let mut text = serde_json::to_string_pretty(&schema).unwrap_or_default();
    text.push('\n');
    text
}

fn profile() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "profile",
        "description": "What an Expert that is a process of its own reads. Paths are relative to the file.",
        "type": "object",
        "properties": {
            "evidence": {"description": "The folder with the log files.", "type": "string", "minLength": 1},
            "index": {
                "description": "The folder in which the index of the log files is kept.",
                "type": "string",
                "minLength": 1
            },
            "team": {
                "description": "The team folder: Experts, MCP servers and what they may do.",
                "type": "string",
                "minLength": 1
            },
            "domains": {
                "description": "The domains in which it investigates; all that the evidence, or the team folder, has \
                                where none is named.",
                "type": "array",
                "items": {"type": "string", "pattern": "^[a-z0-9-]{1,32}$"}
            }
        },
        "dependentRequired": {"evidence": ["index"], "index": ["evidence"]},
        "anyOf": [{"required": ["evidence"]}, {"required": ["team"]}],
        "additionalProperties": false
    })
}
