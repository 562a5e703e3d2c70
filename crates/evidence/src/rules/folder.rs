//! Finds the files with rules in a folder, and the documents in a file.

use std::path::{Path, PathBuf};

use super::{Origin, RULES_MAX, RuleFault, RuleFile};

/// In bytes.
const FILE_MAX: u64 = 1 << 20;
const DEPTH_MAX: usize = 16;

/// The rules of a user: all `*.yml` and `*.yaml` files below `folder`, in order of path.
///
/// Errors: The folder or a file cannot be read, or a file is too large.
pub fn rule_files(folder: &Path) -> Result<Vec<RuleFile>, RuleFault> {
    let mut paths = Vec::new();
    if folder.is_file() {
        paths.push(folder.to_path_buf());
    } else {
        collect(folder, 0, &mut paths)?;
    }
    paths.sort();
    paths.into_iter().map(read).collect()
}

fn fault(file: &Path, what: impl Into<String>) -> RuleFault {
    RuleFault { file: file.to_path_buf(), line: 1, what: what.into() }
}

fn collect(folder: &Path, depth: usize, paths: &mut Vec<PathBuf>) -> Result<(), RuleFault> {
    let failed = |e: std::io::Error| fault(folder, format!("cannot read this folder of rules: {e}"));
    if depth > DEPTH_MAX {
        return Err(fault(folder, format!("expected at most {DEPTH_MAX} folders in one another; move the rules up")));
    }
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let named = |end: &str| path.extension().is_some_and(|e| e.eq_ignore_ascii_case(end));
        if path.is_dir() {
            collect(&path, depth + 1, paths)?;
        } else if named("yml") || named("yaml") {
            paths.push(path);
        }
        if paths.len() > RULES_MAX {
            return Err(fault(folder, format!("expected at most {RULES_MAX} files with rules; remove some")));
        }
    }
    Ok(())
}

fn read(path: PathBuf) -> Result<RuleFile, RuleFault> {
    let size =
        std::fs::metadata(&path).map(|m| m.len()).map_err(|e| fault(&path, format!("cannot read the file: {e}")))?;
    if size > FILE_MAX {
        return Err(fault(&path, format!("the file has {size} bytes; write at most {FILE_MAX}")));
    }
    let text = std::fs::read(&path).map_err(|e| fault(&path, format!("cannot read the file: {e}")))?;
    let text = String::from_utf8(text).map_err(|_| fault(&path, "expected UTF-8; save the file in that encoding"))?;
    Ok(RuleFile { origin: Origin::User, path, text })
}

/// The documents of a file that are not empty, each with its first line, from 1.
pub(super) fn documents(text: &str) -> Vec<(usize, &str)> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut found = Vec::new();
    let (mut start, mut first) = (0, 1);
    let mut at = 0;
    for (number, line) in (1..).zip(text.split_inclusive('\n')) {
        let end = at + line.len();
        if line.trim_end() == "---" {
            found.push((first, text.get(start..at).unwrap_or_default()));
            (start, first) = (end, number + 1);
        }
        at = end;
    }
    found.push((first, text.get(start..).unwrap_or_default()));
    let empty =
        |document: &str| document.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with('#'));
    found.retain(|(_, document)| !empty(document));
    found
}
