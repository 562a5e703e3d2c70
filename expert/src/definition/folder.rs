use std::path::{Path, PathBuf};

use casebook_runtime::config::{self, ConfigFault, ConfigFaults, Form, Source, sorted};

use super::Definition;

/// The Experts in the files `*.yaml` and `*.yml` of `dir`, in order of file name. Duplicate names and a folder without
/// Experts are faults.
pub fn read(dir: &Path) -> Result<Vec<Definition>, ConfigFaults> {
    let (read, faults) = each(dir);
    if faults.is_empty() { Ok(read) } else { Err(ConfigFaults(faults)) }
}

pub fn each(dir: &Path) -> (Vec<Definition>, Vec<ConfigFault>) {
    let files = match files(dir) {
        Ok(files) => files,
        Err(error) => {
            return (Vec::new(), ConfigFaults::of_file(dir, format!("this folder cannot be read: {error}")).0);
        }
    };
    let (mut read, mut faults): (Vec<Definition>, Vec<ConfigFault>) = (Vec::new(), Vec::new());
    if files.is_empty() {
        let what = "expected at least one Expert in this folder; write a file NAME.yaml for each (docs/experts.md)";
        faults.extend(ConfigFaults::of_file(dir, what).0);
    }
    for file in files {
        let text = match config::text(&file) {
            Ok(text) => text,
            Err(found) => {
                faults.extend(found.0);
                continue;
            }
        };
        match Definition::parse(&file, &text) {
            Ok(definition) => {
                if let Some(had) = read.iter().find(|had| had.name == definition.name) {
                    let what = format!("{} is also an Expert of {}; rename one", had.name, had.file.display());
                    faults.push(Source::new(Form::Yaml, &file, &text).fault(&["name"], what));
                }
                read.push(definition);
            }
            Err(found) => faults.extend(found.0),
        }
    }
    (read, sorted(faults))
}

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
