//! What the check of a finding's citations found.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::ArtifactId;

/// A record of evidence: file and line, from 1.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RecordRef {
    pub source: String,
    /// The file within the evidence, or `artifact:<id>` for a tool that returns no files, with
    /// `#<JSON pointer>` for a part of it.
    pub file: String,
    /// The line, from 1; of a text at a pointer the line in that text, of a record there 1.
    pub line: u64,
}

impl RecordRef {
    /// The artifact in which it stands and the `#<JSON pointer>` within it, if it is none of a file.
    pub fn artifact(&self) -> Option<(&str, &str)> {
        let (artifact, fragment) = self.file.split_at(self.file.find('#').unwrap_or(self.file.len()));
        artifact.strip_prefix("artifact:").map(|artifact| (artifact, fragment))
    }
}

/// What the check of one citation found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CitationCheck {
    pub holds: bool,
    /// What was found; why not, where it does not hold.
    pub note: String,
    /// The artifact that it leads to.
    pub artifact: Option<ArtifactId>,
    /// The records that it leads to.
    pub records: Vec<RecordRef>,
    /// The sources that it speaks of: those of its records, or those that its query searched.
    pub sources: Vec<String>,
    /// The field of the record whose text is quoted, where whoever is recorded chooses what stands
    /// there: it proves that it was written, not that it is so.
    pub chosen: Option<String>,
}

/// What the check of a finding found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checked {
    /// One for each citation, in order.
    pub citations: Vec<CitationCheck>,
    /// What the claim states and its evidence does not, in words.
    pub faults: Vec<String>,
}

impl Checked {
    /// There is a citation, every citation holds, and the claim states nothing that its evidence
    /// does not.
    pub fn valid(&self) -> bool {
        !self.citations.is_empty() && self.citations.iter().all(|c| c.holds) && self.faults.is_empty()
    }

    /// The sources of the citations that hold.
    pub fn sources(&self) -> BTreeSet<&str> {
        self.citations.iter().filter(|c| c.holds).flat_map(|c| c.sources.iter().map(String::as_str)).collect()
    }

    /// The records of the citations that hold, each once, in the order cited.
    pub fn records(&self) -> Vec<RecordRef> {
        let mut seen = BTreeSet::new();
        let all = self.citations.iter().filter(|c| c.holds).flat_map(|c| &c.records);
        all.filter(|r| seen.insert(*r)).cloned().collect()
    }
}
