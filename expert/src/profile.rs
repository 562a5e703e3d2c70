//! The profile of an Expert that is a process of its own: which evidence it reads, and in which domains.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use casebook_protocol::Domain;
use serde::Deserialize;
use toml::Spanned;

/// What an Expert reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// The file that says so.
    pub file: PathBuf,
    /// The folder with the log files, and the folder in which the index of them is kept; none where the
    /// evidence is behind servers alone.
    pub evidence: Option<(PathBuf, PathBuf)>,
    /// The team folder: Experts, MCP servers and what they may do.
    pub team: Option<PathBuf>,
    /// The domains in which it investigates; all that the evidence, or the team folder, has where none is
    /// named.
    pub domains: BTreeSet<Domain>,
}

/// What is wrong with a profile.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}:{line}: {fault}", file.display())]
pub struct ProfileError {
    /// The file.
    pub file: PathBuf,
    /// The line, from 1.
    pub line: usize,
    /// What is wrong and what to write instead.
    pub fault: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    evidence: Option<Spanned<PathBuf>>,
    index: Option<Spanned<PathBuf>>,
    team: Option<Spanned<PathBuf>>,
    #[serde(default)]
    domains: Vec<Spanned<String>>,
}

impl Profile {
    /// The profile `file` with the content `text`. Paths in it are relative to its folder.
    ///
    /// # Errors
    /// [`ProfileError`] with the first fault.
    pub fn parse(file: &Path, text: &str) -> Result<Self, ProfileError> {
        let fault = |at: usize, fault: String| {
            let line = text.get(..at).unwrap_or(text).matches('\n').count() + 1;
            ProfileError { file: file.to_path_buf(), line, fault }
        };
        let written: Written =
            toml::from_str(text).map_err(|e| fault(e.span().map_or(0, |span| span.start), e.message().to_owned()))?;
        let folder = file.parent().unwrap_or(Path::new(""));
        let path = |path: &Spanned<PathBuf>, what: &str| match path.get_ref().as_os_str().is_empty() {
            true => Err(fault(path.span().start, format!("{what} is empty: name a folder"))),
            false => Ok(folder.join(path.get_ref())),
        };
        let mut domains = BTreeSet::new();
        for name in &written.domains {
            let domain = Domain::new(name.get_ref().clone()).map_err(|e| fault(name.span().start, e.to_string()))?;
            domains.insert(domain);
        }
        let evidence = match (&written.evidence, &written.index) {
            (Some(evidence), Some(index)) => Some((path(evidence, "evidence")?, path(index, "index")?)),
            (Some(evidence), None) => {
                let what = "evidence needs an index: name the folder in which it is kept, index = \"DIR\"";
                return Err(fault(evidence.span().start, what.into()));
            }
            (None, Some(index)) => {
                return Err(fault(index.span().start, "index is that of evidence: name it, evidence = \"DIR\"".into()));
            }
            (None, None) => None,
        };
        let team = written.team.as_ref().map(|team| path(team, "team")).transpose()?;
        if evidence.is_none() && team.is_none() {
            let what =
                "there is nothing to read: name a folder of logs (evidence and index), a team folder (team), or both";
            return Err(fault(0, what.into()));
        }
        Ok(Self { file: file.to_path_buf(), evidence, team, domains })
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
    fn a_fault_is_told_with_its_line() {
        let fault = |text: &str| parse(text).unwrap_err();
        assert_eq!(
            fault("\nindex = \"i\""),
            "/etc/casebook/expert.toml:2: index is that of evidence: name it, evidence = \"DIR\""
        );
        assert!(fault("evidence = \"e\"").starts_with("/etc/casebook/expert.toml:1: evidence needs an index"));
        assert!(fault("").starts_with("/etc/casebook/expert.toml:1: there is nothing to read"));
        let odd = fault("evidence = \"e\"\nindex = \"i\"\ndomain = [\"network\"]");
        assert!(odd.starts_with("/etc/casebook/expert.toml:3: unknown field `domain`"), "{odd}");
        let bad = fault("evidence = \"e\"\nindex = \"i\"\ndomains = [\n  \"network\",\n  \"A.b\",\n]");
        assert!(bad.starts_with("/etc/casebook/expert.toml:5: "), "{bad}");
        assert_eq!(
            fault("evidence = \"\"\nindex = \"i\""),
            "/etc/casebook/expert.toml:1: evidence is empty: name a folder"
        );
    }
}
