//! The profile of an Expert that is a process of its own: which evidence it reads, and in which domains.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use casebook_protocol::Domain;
use casebook_runtime::config::{self, Check, ConfigFaults, Form, Source};
use schemars::JsonSchema;
use serde::Deserialize;

/// What an Expert reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// The file that says so.
    pub file: PathBuf,
    /// The folder with the log files, and the folder of their index; none if the evidence is behind servers alone.
    pub evidence: Option<(PathBuf, PathBuf)>,
    /// The team folder: Experts, MCP servers and what they may do.
    pub team: Option<PathBuf>,
    /// The domains in which it investigates; if none is named, all that the evidence or the team folder has.
    pub domains: BTreeSet<Domain>,
}

/// What an Expert that is a process of its own reads. Paths are relative to the file.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(
    title = "profile",
    extend(
        "dependentRequired" = {"evidence": ["index"], "index": ["evidence"]},
        "anyOf" = [{"required": ["evidence"]}, {"required": ["team"]}]
    )
)]
struct Written {
    /// The folder with the log files.
    #[schemars(length(min = 1))]
    evidence: Option<String>,
    /// The folder in which the index of the log files is kept.
    #[schemars(length(min = 1))]
    index: Option<String>,
    /// The team folder: Experts, MCP servers and what they may do.
    #[schemars(length(min = 1))]
    team: Option<String>,
    /// The domains in which it investigates; if none is named, all that the evidence or the team folder has.
    #[serde(default)]
    #[schemars(with = "Vec<String>", inner(regex(pattern = "^[a-z0-9-]{1,32}$")))]
    domains: BTreeSet<Domain>,
}

impl Profile {
    /// The profile `file` with the content `text`. Paths in it are relative to its folder.
    ///
    /// # Errors
    /// The first fault of form, or all faults of meaning.
    pub fn parse(file: &Path, text: &str) -> Result<Self, ConfigFaults> {
        let source = Source::new(Form::Toml, file, text);
        let written: Written = source.read()?;
        let mut check = Check::default();
        for (key, path) in [("evidence", &written.evidence), ("index", &written.index), ("team", &written.team)] {
            if path.as_ref().is_some_and(String::is_empty) {
                check.wrong(&[key], "is empty; name a folder");
            }
        }
        let folder = file.parent().unwrap_or(Path::new(""));
        let team = written.team.map(|path| folder.join(path));
        let evidence = match (written.evidence, written.index) {
            (Some(evidence), Some(index)) => Some((folder.join(evidence), folder.join(index))),
            (Some(_), None) => {
                check.wrong(&["evidence"], "needs an index; name the folder in which it is kept, index = \"DIR\"");
                None
            }
            (None, Some(_)) => {
                check.wrong(&["index"], "is that of evidence; name it, evidence = \"DIR\"");
                None
            }
            (None, None) if team.is_none() => {
                let what = "there is nothing to read; name a folder of logs (evidence and index), a team folder \
                            (team), or both";
                check.wrong(&[], what);
                None
            }
            (None, None) => None,
        };
        source.holds(check)?;
        Ok(Self { file: file.to_path_buf(), evidence, team, domains: written.domains })
    }

    /// The JSON Schema of the file.
    pub fn schema() -> serde_json::Value {
        config::schema::<Written>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Profile, String> {
        Profile::parse(Path::new("/etc/casebook/expert.toml"), text).map_err(|e| e.to_string())
    }

    #[test]
    fn paths_are_relative_to_the_profile_and_domains_are_checked() {
        let profile = parse("evidence = \"logs\"\nindex = \"/var/lib/index\"\ndomains = [\"network\"]\n").unwrap();
        let evidence = (PathBuf::from("/etc/casebook/logs"), PathBuf::from("/var/lib/index"));
        assert_eq!((profile.evidence, profile.team), (Some(evidence), None));
        assert_eq!(profile.domains.iter().map(Domain::as_str).collect::<Vec<_>>(), ["network"]);
        assert!(parse("evidence = \"logs\"\nindex = \"i\"").unwrap().domains.is_empty());
        let served = parse("team = \"team\"").unwrap();
        assert_eq!((served.evidence, served.team), (None, Some(PathBuf::from("/etc/casebook/team"))));
    }

    #[test]
    fn a_fault_names_its_line() {
        for (text, want) in [
            ("\nindex = \"i\"", "2: index: is that of evidence; name it, evidence = \"DIR\""),
            ("evidence = \"e\"", "1: evidence: needs an index"),
            ("", "1: the file: there is nothing to read"),
            ("evidence = \"e\"\nindex = \"i\"\ndomain = [\"network\"]", "3: domain: unknown key; write domains"),
            ("evidence = \"e\"\nindex = \"i\"\ndomains = [\n  \"network\",\n  \"A.b\",\n]", "5: domains.1: "),
            ("evidence = \"\"\nindex = \"i\"", "1: evidence: is empty; name a folder"),
        ] {
            let got = parse(text).unwrap_err();
            assert!(got.starts_with(&format!("/etc/casebook/expert.toml:{want}")), "{got}");
        }
    }
}
