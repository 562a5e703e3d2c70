//! The result of the citation check of a finding.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::ArtifactId;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RecordRef {
    pub source: String,
    /// The file within the evidence, or `artifact:<id>` for a tool that returns no files. `#<JSON pointer>` names a
    /// part of it.
    pub file: String,
    /// From 1. For a text at a JSON pointer: the line within that text. For a record at a JSON pointer: 1.
    pub line: u64,
}

impl RecordRef {
    /// The artifact and the `#<JSON pointer>` within it; none for a record in a file.
    pub fn artifact(&self) -> Option<(&str, &str)> {
        let (artifact, fragment) = self.file.split_at(self.file.find('#').unwrap_or(self.file.len()));
        artifact.strip_prefix("artifact:").map(|artifact| (artifact, fragment))
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CitationCheck {
    pub holds: bool,
    /// What the check found, or why the citation is not valid.
    pub note: String,
    pub artifact: Option<ArtifactId>,
    pub records: Vec<RecordRef>,
    /// The sources of its records, or those that its query searched.
    pub sources: Vec<String>,
    /// The quoted field, if the recorded party chooses its text. Such a quotation proves that the text was written,
    /// not that it is true.
    pub chosen: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checked {
    pub citations: Vec<CitationCheck>,
    /// What the claim states without evidence.
    pub faults: Vec<String>,
}

impl Checked {
    /// True if there is a citation, every citation is valid, and the evidence covers the whole claim.
    pub fn valid(&self) -> bool {
        !self.citations.is_empty() && self.citations.iter().all(|c| c.holds) && self.faults.is_empty()
    }

    pub fn sources(&self) -> BTreeSet<&str> {
        self.citations.iter().filter(|c| c.holds).flat_map(|c| c.sources.iter().map(String::as_str)).collect()
    }

    /// The records of the valid citations, without duplicates, in the order cited.
    pub fn records(&self) -> Vec<RecordRef> {
        let mut seen = BTreeSet::new();
        let all = self.citations.iter().filter(|c| c.holds).flat_map(|c| &c.records);
        all.filter(|r| seen.insert(*r)).cloned().collect()
    }
}
