//! What the program prints and with which code it ends, for whatever a person may get wrong. To read all errors of the
//! command line in one place, read `expected/errors.txt`.

use std::path::Path;
use std::process::{Command, Stdio};

use casebook_table::{blocks, expect_file};

/// An alert and logs, which every case has.
const FILES: [(&str, &str); 2] =
    [("alert.json", "{\"id\":\"a\"}"), ("logs/a.ndjson", "{\"time\":\"2026-03-01T00:00:00Z\",\"x\":1}\n")];

fn file(place: &Path, name: &str, text: &str) {
    let path = place.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text.replace("\\n", "\n").replace("\\e", "\u{1b}")).unwrap();
}

fn run(place: &Path, arguments: &str) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_casebook"));
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("CASEBOOK_") || name.starts_with("OTEL_")) {
        command.env_remove(name);
    }
    let output = command.args(arguments.split(' ').filter(|one| !one.is_empty())).current_dir(place);
    let output = output.stdin(Stdio::null()).output().unwrap();
    let code = output.status.code().unwrap();
    assert_ne!(code, 0, "{arguments} is not an error");
    let [shown, text] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    let ours = text.starts_with("casebook: ");
    assert!(!ours || text.lines().count() <= 2, "more than what was wrong and what to do: {text}");
    // The faults that `check` finds are its output.
    let shown =
        if arguments.starts_with(" check") || arguments.starts_with(" rules check") { shown } else { String::new() };
    let text = (shown + &text).replace(place.to_str().unwrap(), "PLACE").replace("\n\n", "\n");
    assert!(!text.contains('\u{1b}'), "{text:?}");
    format!("{text}exit code {code}\n")
}

#[test]
fn every_error_names_what_was_wrong_and_what_to_do() {
    blocks(&expect_file!["expected/errors.txt"], |_, input| {
        let place = tempfile::tempdir().unwrap();
        FILES.iter().for_each(|(name, text)| file(place.path(), name, text));
        let mut answer = String::new();
        for line in input.lines() {
            if let Some(arguments) = line.strip_prefix("$ casebook") {
                answer = run(place.path(), arguments);
            } else if let Some(name) = line.strip_prefix("folder ") {
                std::fs::create_dir_all(place.path().join(name)).unwrap();
            } else {
                let (name, text) = line.split_once(":").unwrap_or_else(|| panic!("expected FILE: TEXT, got {line:?}"));
                file(place.path(), name, text.trim_start());
            }
        }
        answer
    });
}
