//! The JSON Schema of each format, as it is printed and as it stands under docs/schemas.

use casebook_agent::mcp::policy::Policy;
use casebook_agent::mcp::servers::Servers;
use casebook_agent::model::config::Config;
use casebook_expert::definition::Definition;
use casebook_expert::profile::Profile;

use crate::args::Format;

/// The JSON Schema of `format` as text.
pub fn schema(format: Format) -> String {
    let schema = match format {
        Format::Expert => Definition::schema(),
        Format::Tools => Policy::schema(),
        Format::Mcp => Servers::schema(),
        Format::Models => Config::schema(),
        Format::Profile => Profile::schema(),
    };
    // A value with texts as keys can be written.
    let mut text = serde_json::to_string_pretty(&schema).unwrap_or_default();
    text.push('\n');
    text
}
