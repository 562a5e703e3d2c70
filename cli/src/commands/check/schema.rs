//! Generates the JSON Schemas in docs/schemas.

use casebook_agent::mcp::policy::Policy;
use casebook_agent::mcp::servers::Servers;
use casebook_agent::model::config::Config;
use casebook_expert::definition::Definition;
use casebook_expert::profile::Profile;
use casebook_expert::{formats, sources};

use crate::args::Format;

pub fn schema(format: Format) -> String {
    let schema = match format {
        Format::Expert => Definition::schema(),
        Format::Tools => Policy::schema(),
        Format::Mcp => Servers::schema(),
        Format::Models => Config::schema(),
        Format::Profile => Profile::schema(),
        Format::Sources => sources::schema(),
        Format::Formats => formats::schema(),
    };
    // A map with string keys always serialises.
    let mut text = serde_json::to_string_pretty(&schema).unwrap_or_default();
    text.push('\n');
    text
}
