//! What is wrong with a configuration file: file, line, and what to write instead.

use std::path::PathBuf;

/// A fault of a configuration file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}:{line}: {what}", file.display())]
pub struct ConfigFault {
    /// The file.
    pub file: PathBuf,
    /// The line, from 1.
    pub line: usize,
    /// What is wrong and what to write instead. Never a secret's value.
    pub what: String,
}

/// `faults` in the order of their files and lines, none twice.
#[must_use]
pub fn sorted(mut faults: Vec<ConfigFault>) -> Vec<ConfigFault> {
    faults.sort_by(|a, b| (&a.file, a.line, &a.what).cmp(&(&b.file, b.line, &b.what)));
    faults.dedup();
    faults
}

/// `faults` in order, one of those that begin with the same key at the same line: a value that has not the form
/// of its key is not told of a second time for what follows from that.
#[must_use]
pub fn one_a_key(faults: Vec<ConfigFault>) -> Vec<ConfigFault> {
    let mut kept: Vec<ConfigFault> = Vec::new();
    for fault in faults {
        let key = |fault: &ConfigFault| fault.what.split_once(": ").map(|(key, _)| key.to_owned());
        if !kept.iter().any(|had| had.file == fault.file && had.line == fault.line && key(had) == key(&fault)) {
            kept.push(fault);
        }
    }
    sorted(kept)
}
