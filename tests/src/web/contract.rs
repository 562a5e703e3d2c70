//! The answers of the API are those of its description, for requests that schemathesis makes.

use std::process::{Command, Stdio};

use serde_json::Value;

use super::stage::Stage;
use crate::{Result, thirdparty};

/// What cannot be said in OpenAPI 3.1, so that a request that fits the description may be refused:
/// which parameters of a result go together. A pointer and lines depend on the result as well.
const LEFT_OUT: &str = r#"
[[operations]]
include-path = "/api/v1/investigations/{id}/calls/{call}/result"
checks.positive_data_acceptance.enabled = false
"#;
/// It has no end, so no request to it has an answer; the events of one case do end.
const ENDLESS: &str = "/api/v1/events";

/// # Errors
/// The output of schemathesis, with what it found and how to repeat it.
pub async fn check(examples: u32) -> Result<String> {
    let (stage, id) = Stage::closed().await?;
    let text =
        |value: &Value, pointer: &str| value.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    let calls = stage.api(&format!("/investigations/{id}/calls?limit=1")).await?;
    let findings = stage.api(&format!("/investigations/{id}/findings?limit=1")).await?;
    let (call, finding) = (text(&calls, "/items/0/id"), text(&findings, "/items/0/finding/id"));
    // Once with names that are made up, and once with those of the demo.
    let real = format!(
        "[parameters]\n\"path.id\" = {id:?}\n\"path.call\" = {call:?}\n\"path.finding\" = {finding:?}\n\"path.task\" = \"r1.plan\"\n"
    );
    let mut figures = Vec::new();
    for (names, parameters) in [("made-up names", ""), ("names of the demo", &real)] {
        let summary = run(&stage, &format!("{parameters}{LEFT_OUT}"), examples)?;
        figures.push(format!("{names}: {summary}"));
    }
    figures.push(format!(
        "left out: the endless stream {ENDLESS}; for results of calls, that each combination of parameters is accepted"
    ));
    Ok(figures.join("\n"))
}

/// What one run generated.
fn run(stage: &Stage, settings: &str, examples: u32) -> Result<String> {
    let (server, folder) = (&stage.server, stage.data.path());
    std::fs::write(folder.join("schemathesis.toml"), settings)?;
    let mut check = Command::new(thirdparty::python(&["schemathesis==4.32.0"]).with_file_name("schemathesis"));
    check.args(["run", &format!("{}/api/v1/openapi.json", server.base), "--url", &server.base, "--warnings", "off"]);
    check.args(["--max-examples", &examples.to_string(), "--seed", "1", "--exclude-path", ENDLESS]);
    check.args(["-H", &format!("Authorization: Bearer {}", server.key)]);
    let output = check.current_dir(folder).stdin(Stdio::null()).output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        return Err(text.into());
    }
    let summary = text.rsplit("SUMMARY").next().unwrap_or_default();
    let told = |line: &&str| ["Tested:", "generated", "passed"].iter().any(|word| line.contains(word));
    Ok(summary.lines().map(str::trim).filter(told).collect::<Vec<_>>().join(", "))
}
