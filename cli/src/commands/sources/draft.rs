//! Drafts sources.toml: a guess for each source, for a person to confirm.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use casebook_evidence::{Catalog, FilePattern, Source};
use casebook_protocol::one_line;

use crate::failure::Failure;
use crate::loading::whole_path;

const HEADER: &str = "\
# What wrote each file of the evidence: a draft by `casebook sources --write`. Every value is a guess from the
# content of the file, which an attacker may have written. Until you set confirmed = true, an entry counts as
# written on the alerted host. Check for each entry:
#   files            You know where this file comes from. The path is relative to the evidence folder, and the
#                    first entry that matches a file counts. Remove an entry for a file that you do not know.
#   sensor           The system that wrote it. Files of one system have the same sensor.
#   on_alerted_host  false only if no process on the host that it describes could have written a record, even as
#                    root: the record was made and kept on another machine.
# You may add: records = [\"process\"], the kinds of acts that the sensor records in full; hosts = [\"web1\"], the
# hosts that it watches. docs/experts.md describes all keys.
# Keep this file in the team folder, never with the evidence.

# [trusted]
# package_sources = [\"http://deb.example.org/debian/\"]
";

fn failed(file: &Path, error: &std::io::Error) -> Failure {
    match error.kind() {
        ErrorKind::AlreadyExists => {
            Failure::usage(format!("{} exists", file.display()), "name a new file; a draft replaces nothing")
        }
        _ => Failure::write(file, error),
    }
}

/// Refuses a file that exists, or that an attacker who can add to the evidence could replace.
pub(super) fn check(file: &Path, evidence: &Path) -> Result<(), Failure> {
    let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let folder: PathBuf = parent.canonicalize().map_err(|error| Failure::write(file, &error))?;
    if folder.starts_with(whole_path(evidence)?) {
        return Err(Failure::usage(
            format!("{} is inside the evidence folder", file.display()),
            "write it into the team folder, such as --write team/sources.toml",
        ));
    }
    match file.symlink_metadata() {
        Ok(_) => Err(failed(file, &ErrorKind::AlreadyExists.into())),
        Err(_) => Ok(()),
    }
}

pub(super) fn write(file: &Path, catalog: &Catalog) -> Result<(), Failure> {
    let text = draft(catalog.sources());
    let opened = OpenOptions::new().write(true).create_new(true).open(file);
    opened.and_then(|mut to| to.write_all(text.as_bytes())).map_err(|error| failed(file, &error))
}

fn draft(sources: &[Source]) -> String {
    let mut text = HEADER.to_owned();
    for source in sources {
        let host = if source.written_on_subject_host {
            "it looks like a log of programs on the host that it describes"
        } else {
            "it looks like a log that no program on the described host writes"
        };
        text.push_str(&format!(
            "\n# {}: {}; {host}\n[[source]]\nfiles = {}\nsensor = {}\non_alerted_host = {}\nconfirmed = false\n",
            source.domain,
            one_line(&source.domain_reason, 160),
            quoted(&FilePattern::exact(&source.file)),
            quoted(&one_line(&source.sensor, 80)),
            source.written_on_subject_host
        ));
    }
    text
}

/// As a basic string of TOML.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            // Characters that a person would not see.
            c if c != ' ' && one_line(&c.to_string(), 4) != c.to_string() => {
                quoted.push_str(&format!("\\U{:08X}", u32::from(c)));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use casebook_expert::sources;

    use super::*;

    #[test]
    fn draft_can_be_read_and_confirms_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let evidence = folder.path().join("evidence");
        std::fs::create_dir_all(evidence.join("a \"b\"")).unwrap();
        let files = ["**.log", "a \"b\"/x\\y.log", "new\nline.log", "plain.log", "\u{202e}odd.log"];
        for name in files {
            std::fs::write(evidence.join(name), "2026-03-01T02:03:04Z one\n2026-03-01T02:03:05Z two\n").unwrap();
        }
        let odd = r#"{"Channel":"x\nconfirmed = true\n[[source]]","EventID":1}"#;
        std::fs::write(evidence.join("win.ndjson"), format!("{odd}\n{odd}\n{odd}\n")).unwrap();
        let mut catalog = Catalog::open_in(&evidence, &folder.path().join("index"), None, &mut |_| {}).unwrap();
        let file = folder.path().join("sources.toml");
        check(&file, &evidence).unwrap();
        write(&file, &catalog).unwrap();
        let text = std::fs::read_to_string(&file).unwrap();
        let declared = sources::parse(&file, &text).unwrap_or_else(|e| panic!("{e}\n{text}"));
        assert!(!text.contains('\u{202e}') && text.contains("\\U0000202Eodd.log"), "{text}");
        assert_eq!(declared.rules.len(), catalog.sources().len());
        for (n, source) in catalog.sources().iter().enumerate() {
            let matching: Vec<usize> =
                (0..declared.rules.len()).filter(|m| declared.rules[*m].files.matches(&source.file)).collect();
            assert_eq!(matching, [n], "{}", source.file);
        }
        catalog.declare(&declared).unwrap();
        assert!(catalog.sources().iter().all(|source| source.on_subject_host() && !source.confirmed));
        let again = check(&file, &evidence).unwrap_err();
        assert!(again.to_string().contains("exists"), "{again}");
        let inside = check(&evidence.join("sources.toml"), &evidence).unwrap_err();
        assert!(inside.to_string().contains("inside the evidence folder"), "{inside}");
    }
}
