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
    /// The folder with the log files.
    pub evidence: PathBuf,
    /// The folder in which the index of the evidence is kept.
    pub index: PathBuf,
    /// The domains in which it investigates; all that the evidence has where none is named.
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
    evidence: Spanned<PathBuf>,
    index: Spanned<PathBuf>,
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
        Ok(Self {
            file: file.to_path_buf(),
            evidence: path(&written.evidence, "evidence")?,
            index: path(&written.index, "index")?,
            domains,
        })
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
        assert_eq!(profile.evidence, Path::new("/etc/casebook/logs"));
        assert_eq!(profile.index, Path::new("/var/lib/index"));
        assert_eq!(profile.domains.iter().map(Domain::as_str).collect::<Vec<_>>(), ["network"]);
        assert!(parse("evidence = \"logs\"\nindex = \"i\"").unwrap().domains.is_empty());
    }

    #[test]
    fn a_fault_is_told_with_its_line() {
        let fault = |text: &str| parse(text).unwrap_err();
        assert_eq!(fault("index = \"i\""), "/etc/casebook/expert.toml:1: missing field `evidence`");
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
