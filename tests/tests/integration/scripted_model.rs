//! The scripted model as a program of its own.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

#[test]
fn the_program_prints_its_url_serves_records_and_counts() {
    let folder = tempfile::tempdir().unwrap();
    let mut program = Command::new(env!("CARGO_BIN_EXE_scripted-model"))
        .arg("--record")
        .arg(folder.path())
        .args(["--port", "0", "--script", "benchmark", "--latency-ms", "1", "--end-with-input"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(program.stdout.take().unwrap()).lines();
    let mut input = program.stdin.take().unwrap();
    let url = lines.next().unwrap().unwrap();
    let body = json!({"model": "m", "messages": [{"role": "user", "content": "Are you there?"}]});
    let answer = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
        casebook_runtime::tls::install();
        let request = reqwest::Client::new().post(format!("{url}/v1/chat/completions"));
        request.header("authorization", "Bearer k").body(body.to_string()).send().await.unwrap().text().await.unwrap()
    });
    let answer: Value = serde_json::from_str(&answer).unwrap();
    assert_eq!(answer["choices"][0]["message"]["content"], "ok");
    writeln!(input, "counts").unwrap();
    let counts: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
    assert_eq!((&counts["requests"], &counts["answered"]), (&json!(1), &json!(1)));
    let kept = std::fs::read_to_string(folder.path().join("000001-unknown.request.json")).unwrap();
    assert_eq!(kept, body.to_string(), "the body as it came, and no header with a key");
    drop(input);
    assert!(program.wait().unwrap().success());
}
