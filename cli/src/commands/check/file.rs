//! Checks one file by its kind.

use std::path::Path;

use casebook_agent::mcp::pins::Pins;
use casebook_agent::mcp::policy::Policy;
use casebook_agent::mcp::servers::{Servers, Variable};
use casebook_agent::model::config::{ANALYST, Config};
use casebook_expert::definition::Definition;
use casebook_expert::profile::Profile;
use casebook_expert::{formats, sources};
use casebook_runtime::config::{self, ConfigFaults, Form};
use casebook_runtime::service::settings;

use super::Found;

pub(super) fn check(path: &Path, config: Option<&Config>, variable: Variable<'_>, found: &mut Found) {
    if let Err(error) = std::fs::metadata(path) {
        return found.fault(path, 1, format!("cannot read this file: {error}"));
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    let extension = path.extension().unwrap_or_default().to_string_lossy().to_lowercase();
    match (name.as_str(), extension.as_str()) {
        ("pins.json", _) => pins(path, found),
        (_, "json" | "jsonc") => {
            servers(path, variable, found);
        }
        ("tools.yaml" | "tools.yml", _) => {
            policy(path, found);
        }
        (_, "yaml" | "yml") => {
            if let Some(definition) = read(path, found, |text| Definition::parse(path, text)) {
                model(&definition, config, found);
            }
        }
        (sources::FILE, _) => super::sources::check(path, found),
        (formats::FILE, _) => super::formats::check(path, found),
        (_, "toml") => toml(path, found),
        _ => {
            let what = "expected a team folder or a YAML, JSON or TOML file";
            found.fault(path, 1, what);
        }
    }
}

fn read<T>(path: &Path, found: &mut Found, parse: impl FnOnce(&str) -> Result<T, ConfigFaults>) -> Option<T> {
    let parsed = config::text(path).and_then(|text| parse(&text));
    found.keep(path, parsed)
}

pub(super) fn servers(path: &Path, variable: Variable<'_>, found: &mut Found) -> Option<Servers> {
    read(path, found, |text| Servers::parse(path, text, variable))
}

pub(super) fn policy(path: &Path, found: &mut Found) -> Option<Policy> {
    read(path, found, |text| Policy::parse(path, text))
}

pub(super) fn pins(path: &Path, found: &mut Found) {
    read(path, found, |text| Pins::parse(path, text).map_err(|fault| ConfigFaults(vec![fault])));
}

pub(super) fn models(path: &Path, found: &mut Found) -> Option<Config> {
    read(path, found, |text| Config::parse(path, text))
}

/// Checks that the models file defines the model of an Expert.
pub(super) fn model(definition: &Definition, config: Option<&Config>, found: &mut Found) {
    let (Some(config), Some(name)) = (config, definition.model.as_deref()) else { return };
    if name == ANALYST || config.model(name).is_some() {
        return;
    }
    let known: Vec<&str> = config.models().map(|model| model.name.as_str()).chain([ANALYST]).collect();
    let name = casebook_protocol::one_line(name, 64);
    let what = format!("the models file has no {name:?}; write one of {}", known.join(", "));
    found.at(Form::Yaml, &definition.file, &["model"], &what);
}

/// A models file, a profile, sources.toml or the settings of a process; recognised by its keys and name.
fn toml(path: &Path, found: &mut Found) {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let table: toml::Table = toml::from_str(&text).unwrap_or_default();
    let has = |key: &str| table.contains_key(key);
    let name = path.file_stem().unwrap_or_default().to_string_lossy().to_lowercase();
    if has("roles") || table.get("models").is_some_and(toml::Value::is_table) || name.contains("model") {
        models(path, found);
    } else if ["evidence", "index", "team"].into_iter().any(has) || name.contains("profile") {
        read(path, found, |text| Profile::parse(path, text));
    } else if has("format") {
        super::formats::check(path, found);
    } else if has("source") || has("trusted") {
        super::sources::check(path, found);
    } else {
        let what = "expected a models file ([models.NAME], [roles.NAME]), a profile (evidence, index, team), \
                    sources.toml ([[source]]), formats.toml ([[format]]), or a file named hub.toml, director.toml, critic.toml or expert.toml; rename it, or leave it out";
        read(path, found, |text| match name.trim_start_matches("casebook-") {
            "hub" => settings::check::<casebook_hub::program::Options>(path, text),
            "expert" => settings::check::<casebook_expert::settings::Options>(path, text),
            "director" | "critic" => settings::check::<casebook_agent::service::RoleOptions>(path, text),
            _ => Err(ConfigFaults::of_file(path, what)),
        });
    }
}
