//! Servers of others are there for tests: each starts and lists its tools.

use casebook_tests::thirdparty::{FILESYSTEM_SERVER, SQLITE_SERVER, npm, python};
use serde_json::json;

use super::script::{Client, LEGACY, text};

#[test]
fn a_third_party_python_server_starts_and_answers() {
    let folder = tempfile::tempdir().unwrap();
    let server = python(&SQLITE_SERVER).with_file_name("mcp-server-sqlite");
    let file = folder.path().join("a.db");
    let mut client = Client::stdio(&[text(&server), "--db-path", text(&file)], LEGACY);
    let names: Vec<String> = client.tools().iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect();
    assert!(names.iter().any(|name| name == "read_query") && names.len() >= 5, "{names:?}");
    let rows = client.call("read_query", &json!({"query": "SELECT 6 * 7 AS answer"})).unwrap();
    assert!(rows.contains("42"), "{rows}");
}

#[test]
fn a_third_party_npm_server_starts_and_answers() {
    let Some(programs) = npm(&[FILESYSTEM_SERVER], 18) else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().canonicalize().unwrap().join("a.txt");
    std::fs::write(&file, "forty-two").unwrap();
    let server = programs.join("mcp-server-filesystem");
    let mut client = Client::stdio(&[text(&server), text(folder.path())], LEGACY);
    assert!(client.tools().iter().any(|tool| tool["name"] == "read_text_file"));
    assert_eq!(client.call("read_text_file", &json!({"path": file})).unwrap(), "forty-two");
}
