//! A folder of Experts.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use casebook_agent::fault::{ConfigFault, sorted};
use casebook_protocol::Domain;

use super::Definition;

pub(super) fn read(dir: &Path) -> Result<Vec<Definition>, Vec<ConfigFault>> {
    let (read, faults) = each(dir);
    if faults.is_empty() { Ok(read) } else { Err(faults) }
}

/// The Experts that hold, and the faults of all others.
pub(super) fn each(dir: &Path) -> (Vec<Definition>, Vec<ConfigFault>) {
    let fault = |file: &Path, what: String| ConfigFault { file: file.to_path_buf(), line: 1, what };
    let files = match files(dir) {
        Ok(files) => files,
        Err(error) => return (Vec::new(), vec![fault(dir, format!("this folder cannot be read: {error}"))]),
    };
    let (mut read, mut faults): (Vec<Definition>, Vec<ConfigFault>) = (Vec::new(), Vec::new());
    if files.is_empty() {
        let what = "there is no Expert in this folder: write one file NAME.yaml for each (docs/experts.md)";
        faults.push(fault(dir, what.to_owned()));
    }
    for file in files {
        let text = std::fs::read_to_string(&file).map_err(|error| vec![fault(&file, cannot(&error))]);
        match text.and_then(|text| Definition::parse(&file, &text)) {
            Ok(definition) => read.push(definition),
            Err(found) => faults.extend(found),
        }
    }
    faults.extend(doubles(&read));
    (read, sorted(faults))
}

fn cannot(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::InvalidData => "this is no UTF-8 text: save it as UTF-8".to_owned(),
        _ => format!("this file cannot be read: {error}"),
    }
}

/// The YAML files of `dir`, in the order of their names.
fn files(dir: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        let yaml = path.extension().is_some_and(|e| e.eq_ignore_ascii_case("yaml") || e.eq_ignore_ascii_case("yml"));
        let hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        if yaml && !hidden && path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Experts that have a name which another one has.
fn doubles(read: &[Definition]) -> Vec<ConfigFault> {
    let mut first: BTreeMap<&Domain, &Path> = BTreeMap::new();
    let mut faults = Vec::new();
    for definition in read {
        if let Some(had) = first.get(&definition.name) {
            let what = format!("name: {} is an Expert of {}, too: rename one", definition.name, had.display());
            faults.push(ConfigFault { file: definition.file.clone(), line: definition.line, what });
        } else {
            first.insert(&definition.name, &definition.file);
        }
    }
    faults
}
