//! Line formats of the user's own: from `formats.toml` to the fields in the evidence.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

/// The path of a new user in docs/evidence.md.
#[test]
fn own_format_of_the_manual_reads_the_log_of_the_manual() {
    let manual = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/evidence.md")).unwrap();
    let (_, manual) = manual.split_once("## Your own line formats").unwrap();
    let block = |language: &str| manual.split(&format!("```{language}\n")).nth(1).unwrap().split("```").next().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    let run = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_casebook"));
        for name in ["CASEBOOK_TEAM", "CASEBOOK_MODELS", "CASEBOOK_DATA"] {
            command.env_remove(name);
        }
        let output = command.current_dir(folder.path()).args(arguments).output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    file("logs/shop/app.log", block("text"));
    file("team/formats.toml", block("toml"));
    let (_, text) = run(&["check", "team", "--evidence", "logs", "--data", "data", "--json"]);
    let told: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&told["faults"], &told["notices"]), (&json!([]), &json!([])));
    file("logs/shop/app.log", &format!("no time\n{}", block("text")));
    let (_, text) = run(&["check", "team", "--evidence", "logs", "--data", "data"]);
    let want = "the pattern does not match 1 of 3 records of shop/app.log; the first is on line 1";
    assert!(text.contains(&format!("team/formats.toml:1: format.0: {want}")), "{text}");
    let (_, text) = run(&["sources", "--evidence", "logs", "--team", "team", "--data", "data"]);
    assert!(text.contains("lines by a pattern, 3 records, 2025-12-24 18:30:00"), "{text}");
    file("team/formats.toml", &block("toml").replace("%d.%m", "%m.%d"));
    let (code, text) = run(&["check", "team"]);
    assert_eq!(code, Some(2));
    assert!(text.starts_with("team/formats.toml:7: format.0.examples.0: the time \"24.12.2025"), "{text}");
}
