//! Pins: the hashes of the tools when we began to trust them. A changed or new tool of a pinned server is held back
//! until a person confirms it (rule "hostile evidence").

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use casebook_protocol::hash::{canonical_json, sha256_hex};
use casebook_runtime::config::ConfigFault;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::Listed;

const VERSION: u32 = 1;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pins {
    version: u32,
    servers: BTreeMap<String, BTreeMap<String, String>>,
}

impl Default for Pins {
    fn default() -> Self {
        Self { version: VERSION, servers: BTreeMap::new() }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pinned {
    Same,
    /// Its description, schema or hint has changed.
    Changed,
    /// Its server is pinned, but did not have this tool.
    New,
    /// Its server is not pinned.
    Never,
}

/// The hash of what callers see of a tool: name, description, schema, and whether it only reads.
pub fn fingerprint(tool: &Listed) -> String {
    let shown = json!({
        "name": tool.name,
        "description": tool.description,
        "schema": tool.schema,
        "read_only": tool.read_only,
    });
    sha256_hex(canonical_json(&shown).as_bytes())
}

impl Pins {
    pub fn parse(file: &Path, text: &str) -> Result<Self, ConfigFault> {
        let fault = |line, what| ConfigFault { file: file.to_path_buf(), line, what };
        let pins: Self = serde_json::from_str(text).map_err(|e| {
            let what = format!("{e}; remove this file to pin all tools again");
            fault(e.line().max(1), what)
        })?;
        if pins.version != VERSION {
            let what = format!("expected version {VERSION}, got {}; use the casebook that wrote it", pins.version);
            return Err(fault(1, what));
        }
        Ok(pins)
    }

    /// The pins of a team folder; empty without a file.
    pub fn read(team: &Path) -> Result<Self, ConfigFault> {
        let file = path(team);
        match fs::read_to_string(&file) {
            Ok(text) => Self::parse(&file, &text),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(Self::default()),
            Err(e) => Err(ConfigFault { file, line: 1, what: format!("cannot be read: {e}") }),
        }
    }

    pub fn of(&self, server: &str, tool: &Listed) -> Pinned {
        match self.servers.get(server).map(|pinned| pinned.get(&tool.name)) {
            None => Pinned::Never,
            Some(None) => Pinned::New,
            Some(Some(pin)) if *pin == fingerprint(tool) => Pinned::Same,
            Some(Some(_)) => Pinned::Changed,
        }
    }

    pub fn tools<'a>(&'a self, server: &str) -> impl Iterator<Item = &'a str> + use<'a> {
        self.servers.get(server).into_iter().flat_map(|pinned| pinned.keys().map(String::as_str))
    }

    /// Pins `tools` of `server`, and removes the pins of tools that it no longer `has`.
    pub fn confirm<'a>(&mut self, server: &str, tools: impl IntoIterator<Item = &'a Listed>, has: &[Listed]) {
        let pinned = self.servers.entry(server.to_owned()).or_default();
        pinned.extend(tools.into_iter().map(|tool| (tool.name.clone(), fingerprint(tool))));
        pinned.retain(|name, _| has.iter().any(|tool| tool.name == *name));
    }

    /// Changes and returns the pins of a team folder. A lock keeps other processes out.
    pub fn update(team: &Path, change: impl FnOnce(&mut Self)) -> Result<Self, ConfigFault> {
        let file = path(team);
        let failed = |e: std::io::Error| ConfigFault {
            file: file.clone(),
            line: 1,
            what: format!(
                "cannot be written: {e}; run `casebook tools --confirm SERVER` on a machine that can write it"
            ),
        };
        let lock = File::create(team.join(".pins.lock")).map_err(failed)?;
        lock.lock().map_err(failed)?;
        let mut pins = Self::read(team)?;
        change(&mut pins);
        let mut text = serde_json::to_string_pretty(&pins).map_err(|e| failed(e.into()))?;
        text.push('\n');
        let mut written = tempfile::NamedTempFile::new_in(team).map_err(failed)?;
        written.write_all(text.as_bytes()).and_then(|()| written.as_file().sync_all()).map_err(failed)?;
        written.persist(&file).map_err(|e| failed(e.error))?;
        Ok(pins)
    }
}

pub fn path(team: &Path) -> PathBuf {
    team.join("pins.json")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &str, description: &str) -> Listed {
        Listed {
            name: name.into(),
            description: description.into(),
            schema: json!({"type": "object"}),
            read_only: Some(true),
        }
    }

    #[test]
    fn a_tool_is_known_by_all_that_a_caller_is_told_of_it() {
        let folder = tempfile::tempdir().unwrap();
        let (a, b) = (tool("a", "reads a"), tool("b", "reads b"));
        let both = [a.clone(), b.clone()];
        assert_eq!(Pins::read(folder.path()).unwrap().of("s", &a), Pinned::Never);
        Pins::update(folder.path(), |pins| pins.confirm("s", &both, &both)).unwrap();
        let pins = Pins::read(folder.path()).unwrap();
        assert_eq!(pins.of("s", &a), Pinned::Same);
        assert_eq!(pins.of("other", &a), Pinned::Never);
        assert_eq!(pins.of("s", &tool("c", "")), Pinned::New);
        for changed in [
            tool("a", "reads a and b"),
            Listed { schema: json!({"type": "object", "properties": {"x": {}}}), ..a.clone() },
            Listed { read_only: None, ..a.clone() },
        ] {
            assert_eq!(pins.of("s", &changed), Pinned::Changed, "{changed:?}");
        }
        let now = [tool("a", "new"), tool("c", "")];
        let pins = Pins::update(folder.path(), |pins| pins.confirm("s", &now[..1], &now)).unwrap();
        assert_eq!((pins.of("s", &now[0]), pins.of("s", &now[1])), (Pinned::Same, Pinned::New));
        assert_eq!(pins.tools("s").collect::<Vec<_>>(), ["a"], "what is gone is forgotten");
    }

    #[test]
    fn a_broken_file_is_a_fault_and_is_not_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        for text in ["{", "{\"version\":2,\"servers\":{}}", "{\"version\":1,\"servers\":{},\"x\":1}", "[]"] {
            fs::write(path(folder.path()), text).unwrap();
            assert!(Pins::read(folder.path()).is_err(), "{text}");
            assert!(Pins::update(folder.path(), |_| {}).is_err());
            assert_eq!(fs::read_to_string(path(folder.path())).unwrap(), text);
        }
    }
}
