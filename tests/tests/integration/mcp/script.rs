//! What the tests share: the Python client behind a pipe, and our servers as processes.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use casebook_tests::thirdparty::{PYTHON_SDK, python};
use casebook_tests::{run, wait};
use serde_json::{Value, json};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/integration/mcp/client.py");

/// How long an investigation may take.
const PATIENCE: Duration = Duration::from_secs(600);

/// Speaks the lifecycle with `initialize`.
pub(crate) const LEGACY: &str = "legacy";
/// Asks the server which lifecycle it speaks, and takes the newest.
pub(crate) const AUTO: &str = "auto";

/// The demo case.
pub(crate) fn demo(part: &str) -> PathBuf {
    run::demo().join(part)
}

/// A session of the official Python SDK.
pub(crate) struct Client {
    child: Child,
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
    /// The protocol version, and what the server says of itself.
    pub(super) said: Value,
}

impl Client {
    /// With a server that it starts.
    pub(crate) fn stdio(command: &[&str], mode: &str) -> Self {
        Self::start(&json!({"stdio": command, "mode": mode}))
    }

    /// With a server at `url`.
    pub(crate) fn http(url: &str, mode: &str) -> Self {
        Self::start(&json!({"http": url, "mode": mode}))
    }

    fn start(how: &Value) -> Self {
        let mut python = Command::new(python(&[PYTHON_SDK]));
        let mut child =
            python.arg(SCRIPT).arg(how.to_string()).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let to = child.stdin.take();
        let from = BufReader::new(child.stdout.take().unwrap());
        let mut client = Self { child, to, from, said: Value::Null };
        client.said = client.hear();
        client
    }

    /// The investigation once it is over.
    pub(crate) fn closed(&mut self, id: &str) -> Value {
        self.until(id, |standing| !standing["closed"].is_null())
    }

    /// The investigation once it is as `wanted`. A team may not have begun it yet.
    pub(crate) fn until(&mut self, id: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let mut said = None;
        let found = wait::found(PATIENCE, || {
            let said = said.insert(self.call("get_investigation", &json!({"id": id}))).as_ref();
            said.ok().map(|text| serde_json::from_str(text).unwrap()).filter(&wanted)
        });
        found.unwrap_or_else(|| panic!("{said:?}"))
    }

    fn hear(&mut self) -> Value {
        let mut line = String::new();
        assert!(self.from.read_line(&mut line).unwrap() > 0, "the client ended");
        serde_json::from_str(&line).unwrap()
    }

    fn ask(&mut self, request: &Value) -> Value {
        writeln!(self.to.as_mut().unwrap(), "{request}").unwrap();
        self.hear()
    }

    /// The tools that the server lists.
    pub(crate) fn tools(&mut self) -> Vec<Value> {
        self.ask(&json!({"list": true}))["tools"].as_array().unwrap().clone()
    }

    /// The result of a call as it came.
    pub(crate) fn raw(&mut self, tool: &str, arguments: &Value) -> Value {
        self.ask(&json!({"call": tool, "arguments": arguments}))
    }

    /// The text of a call's answer; else the message of its failure.
    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> Result<String, String> {
        let result = self.raw(tool, arguments);
        let text = result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{result}")).to_owned();
        if result["isError"] == true { Err(text) } else { Ok(text) }
    }

    /// The JSON of a call's answer.
    pub(crate) fn json(&mut self, tool: &str, arguments: &Value) -> Value {
        let answer = self.call(tool, arguments).unwrap_or_else(|e| panic!("{tool} {arguments}: {e}"));
        serde_json::from_str(&answer).unwrap()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // At the end of its input it closes the session, and the server with it.
        drop(self.to.take());
        let _ = self.child.wait();
    }
}

/// One of our servers over HTTP; killed with this value.
pub(crate) struct Server {
    pub(super) child: Child,
    /// Where it serves.
    pub(super) url: String,
}

impl Server {
    /// Starts `casebook` with `arguments` and reads where it serves.
    pub(crate) fn start(arguments: &[&str]) -> Self {
        let mut command = Command::new(run::program("casebook"));
        let mut child = command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        // `casebook mcp` and `casebook evidence` each begin with their own name.
        let url = line.trim_end().rsplit(' ').next().filter(|url| url.starts_with("http://"));
        let url = url.unwrap_or_else(|| panic!("{line:?}")).to_owned();
        Self { child, url }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The path of our program.
pub(crate) fn program() -> String {
    run::program("casebook").display().to_string()
}

/// A path as an argument.
pub(crate) fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}
