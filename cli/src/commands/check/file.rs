//! One file, by what it is.

use std::path::Path;

use casebook_agent::mcp::pins::Pins;
use casebook_agent::mcp::policy::Policy;
use casebook_agent::mcp::servers::{Servers, Variable};
use casebook_agent::model::config::{ANALYST, Config};
use casebook_expert::definition::Definition;
use casebook_expert::profile::Profile;
use casebook_runtime::config::{self, ConfigFault, ConfigFaults, Form};
use casebook_runtime::service::Settings;
use casebook_runtime::service::key::Key;
use casebook_runtime::service::settings::{File, SettingsError};

use super::Found;

/// Checks the file at `path`.
pub(super) fn check(path: &Path, config: Option<&Config>, variable: Variable<'_>, found: &mut Found) {
    if let Err(error) = std::fs::metadata(path) {
        return found.fault(path, 1, format!("this file cannot be read: {error}"));
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
        (_, "toml") => toml(path, found),
        _ => {
            let what = "this is no file that can be checked: name a team folder, a YAML, JSON or TOML file";
            found.fault(path, 1, what);
        }
    }
}

/// What `parse` makes of the file; none if it does not hold.
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

/// The model that an Expert names is one of the models file.
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

/// A models file, a profile or the settings of a process, by the keys that stand in it.
fn toml(path: &Path, found: &mut Found) {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let table: toml::Table = toml::from_str(&text).unwrap_or_default();
    let has = |key: &str| table.contains_key(key);
    let name = path.file_stem().unwrap_or_default().to_string_lossy().to_lowercase();
    if has("roles") || table.get("models").is_some_and(toml::Value::is_table) || name.contains("model") {
        models(path, found);
    } else if ["evidence", "index", "team"].into_iter().any(has) || name.contains("profile") {
        read(path, found, |text| Profile::parse(path, text));
    } else if let Some(keys) = keys(&name) {
        read(path, found, |text| settings(path, text, keys));
    } else {
        found.keep::<()>(path, Ok(()));
        let what = "this is no models file ([models.NAME], [roles.NAME]), no profile (evidence, index, team), and not \
             named hub.toml, director.toml, critic.toml or expert.toml: name it so, or leave it out";
        found.fault(path, 1, what);
    }
}

/// The settings of the process that reads a file of this name.
fn keys(name: &str) -> Option<&'static [&'static Key]> {
    match name {
        "hub" | "casebook-hub" => Some(casebook_hub::program::PROGRAM.keys),
        "expert" | "casebook-expert" => Some(&casebook_expert::settings::KEYS),
        "director" | "casebook-director" | "critic" | "casebook-critic" => Some(&casebook_agent::service::KEYS),
        _ => None,
    }
}

fn settings(path: &Path, text: &str, keys: &[&'static Key]) -> Result<(), ConfigFaults> {
    let file = File { path: path.to_path_buf(), text: text.to_owned() };
    Settings::gather(keys, Some(&file), |_| None, &[])
        .map(|_| ())
        .map_err(|error| ConfigFaults(vec![placed(path, &error)]))
}

/// The error with its line, which it has in words.
fn placed(path: &Path, error: &SettingsError) -> ConfigFault {
    let shown = path.display().to_string();
    let rest = error.place.strip_prefix(&shown).and_then(|rest| rest.strip_prefix(':')).unwrap_or_default();
    let (line, key) = rest.split_once(": ").unwrap_or((rest, ""));
    let key = if key.is_empty() { String::new() } else { format!("{key}: ") };
    ConfigFault { file: path.to_path_buf(), line: line.parse().unwrap_or(1), what: format!("{key}{}", error.fault) }
}
