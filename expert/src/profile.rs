//! The profile of a separate Expert process: its evidence and its domains.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use casebook_protocol::Domain;
use casebook_runtime::config::{self, Check, ConfigFaults, Form, Source};
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    pub file: PathBuf,
    /// The folders of the log files and of their index; none if only servers have the evidence.
    pub evidence: Option<(PathBuf, PathBuf)>,
    /// Folder with Experts, MCP servers and their policy.
    pub team: Option<PathBuf>,
    /// The domains to investigate; if empty, all that the evidence or the team folder has.
    pub domains: BTreeSet<Domain>,
}

/// The evidence and domains of a separate Expert process. Paths are relative to the file.
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
    /// The folder for the index of the log files.
    #[schemars(length(min = 1))]
    index: Option<String>,
    /// The team folder: Experts, MCP servers and their policy.
    #[schemars(length(min = 1))]
    team: Option<String>,
    /// The domains to investigate; default: all that the evidence or the team folder has.
    #[serde(default)]
    #[schemars(with = "Vec<String>", inner(regex(pattern = "^[a-z0-9-]{1,32}$")))]
    domains: BTreeSet<Domain>,
}

impl Profile {
    /// Reads the profile `file` with the content `text`. Its relative paths start at its folder.
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
                check.wrong(&["evidence"], "needs an index; name its folder, index = \"DIR\"");
                None
            }
            (None, Some(_)) => {
                check.wrong(&["index"], "needs evidence; name its folder, evidence = \"DIR\"");
                None
            }
            (None, None) if team.is_none() => {
                let what = "expected evidence or a team; name a folder of logs (evidence and index), a team folder \
                            (team), or both";
                check.wrong(&[], what);
                None
            }
            (None, None) => None,
        };
        source.holds(check)?;
        Ok(Self { file: file.to_path_buf(), evidence, team, domains: written.domains })
    }

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
            ("\nindex = \"i\"", "2: index: needs evidence; name its folder, evidence = \"DIR\""),
            ("evidence = \"e\"", "1: evidence: needs an index"),
            ("", "1: the file: expected evidence or a team"),
            ("evidence = \"e\"\nindex = \"i\"\ndomain = [\"network\"]", "3: domain: unknown key; write domains"),
            ("evidence = \"e\"\nindex = \"i\"\ndomains = [\n  \"network\",\n  \"A.b\",\n]", "5: domains.1: "),
            ("evidence = \"\"\nindex = \"i\"", "1: evidence: is empty; name a folder"),
        ] {
            let got = parse(text).unwrap_err();
            assert!(got.starts_with(&format!("/etc/casebook/expert.toml:{want}")), "{got}");
        }
    }
}
