//! What is written of one server, checked.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use serde_json::{Map, Value};

use super::raw::{self, Secret, Server, ToolName};
use super::{Kind, SecretSource, ServerPolicy};
use crate::document::{Document, duration};
use crate::fault::ConfigFault;
use crate::mcp::pattern::Pattern;
use crate::mcp::servers::{is_header, is_variable};

/// The shortest and the longest time that may be set.
const TIMES: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(3600)];

/// Reads one server and keeps what is wrong.
pub(super) struct Reader<'a> {
    document: &'a Document,
    folder: &'a Path,
    name: &'a str,
    pub(super) faults: Vec<ConfigFault>,
}

impl<'a> Reader<'a> {
    pub(super) const fn new(document: &'a Document, folder: &'a Path, name: &'a str) -> Self {
        Self { document, folder, name, faults: Vec::new() }
    }

    pub(super) fn policy(&mut self, server: &Server) -> ServerPolicy {
        let usual = ServerPolicy::default();
        let policy = ServerPolicy {
            line: self.document.line(&["servers", self.name]),
            kind: match server.kind {
                Some(raw::Kind::Evidence) => Kind::Evidence,
                Some(raw::Kind::General) | None => Kind::General,
            },
            about: server.about.clone().unwrap_or_default().trim().to_owned(),
            read_only: patterns(server.read_only.as_deref()),
            writes: patterns(server.writes.as_deref()),
            repeatable: patterns(server.repeatable.as_deref()),
            concurrency: server.concurrency.map_or(usual.concurrency, usize::from),
            timeout: self.time("timeout", server.timeout.as_deref(), usual.timeout),
            start_timeout: self.time("start_timeout", server.start_timeout.as_deref(), usual.start_timeout),
            environment: server.environment.iter().flatten().map(|name| name.0.clone()).collect(),
            secrets: self.secrets("secrets", server.secrets.as_ref()),
            headers: self.secrets("headers", server.headers.as_ref()),
            scope: self.scope(server.scope.as_ref()),
            sensor: server.sensor.as_ref().map(|sensor| sensor.trim().to_owned()),
            on_subject_host: server.written_on_subject_host.unwrap_or(usual.on_subject_host),
        };
        self.contradictions(&policy);
        policy
    }

    fn fault(&mut self, key: &[&str], what: impl std::fmt::Display) {
        let path = [&["servers", self.name], key].concat();
        self.faults.push(self.document.fault(&path, what));
    }

    fn time(&mut self, key: &str, written: Option<&str>, usual: Duration) -> Duration {
        let Some(written) = written else { return usual };
        let [least, most] = TIMES;
        match duration(written) {
            Some(time) if (least..=most).contains(&time) => time,
            Some(_) => {
                self.fault(&[key], "is out of range: write a time from 100ms to 1h");
                usual
            }
            None => {
                self.fault(&[key], "is no time: write one such as 60s, 500ms or 2m");
                usual
            }
        }
    }

    fn secrets(&mut self, key: &str, written: Option<&BTreeMap<String, Secret>>) -> BTreeMap<String, SecretSource> {
        let mut secrets = BTreeMap::new();
        for (name, secret) in written.into_iter().flatten() {
            if key == "headers" && !is_header(name) {
                self.fault(&[key, name], "is no name of a header: write one such as Authorization");
            }
            if key == "secrets" && !is_variable(name) {
                self.fault(&[key, name], "is no name of an environment variable: write one such as GITHUB_TOKEN");
            }
            let source = match (&secret.env, &secret.file) {
                (Some(env), None) => SecretSource::Env(env.clone()),
                (None, Some(file)) => SecretSource::File(self.folder.join(file)),
                _ => {
                    self.fault(&[key, name], "says not where one secret is: write { env: NAME } or { file: PATH }");
                    continue;
                }
            };
            secrets.insert(name.clone(), source);
        }
        secrets
    }

    /// The fixed arguments in the file's order.
    fn scope(&mut self, written: Option<&BTreeMap<String, Map<String, Value>>>) -> Vec<(Pattern, Map<String, Value>)> {
        let mut scope: Vec<(Pattern, Map<String, Value>)> = Vec::new();
        let Some(written) = written else { return scope };
        let root = self.document.root();
        let found = root.get("servers").and_then(|all| all.get(self.name)).and_then(|server| server.get("scope"));
        for (key, _) in found.map_or(&[][..], |scope| scope.entries()) {
            let (name, Some(arguments)) = (key.text.as_str(), written.get(&key.text)) else { continue };
            let pattern = Pattern::new(name);
            if name.is_empty() || arguments.is_empty() {
                self.fault(&["scope", name], "fixes nothing: write the name of a tool with arguments, or leave it out");
            }
            for (had, fixed) in &scope {
                let both = arguments.iter().find(|(argument, value)| fixed.get(*argument).is_some_and(|v| v != *value));
                if let Some((argument, _)) = both.filter(|_| overlap(had.as_str(), name)) {
                    let what = format!("fixes this differently from {had}, which may be the same tool: fix it once");
                    self.fault(&["scope", name, argument], what);
                }
            }
            scope.push((pattern, arguments.clone()));
        }
        scope
    }

    /// What is said in two ways.
    fn contradictions(&mut self, policy: &ServerPolicy) {
        // What may change something is not called a second time by code.
        for (key, patterns) in [("read_only", &policy.read_only), ("repeatable", &policy.repeatable)] {
            for (n, pattern) in patterns.iter().enumerate().filter(|(_, pattern)| may_write(policy, pattern)) {
                let what =
                    format!("{pattern} may be a tool that is named under writes, too: name it in one of the two");
                self.fault(&[key, &n.to_string()], what);
            }
        }
        for name in policy.secrets.keys().filter(|name| policy.environment.contains(name)) {
            self.fault(&["secrets", name], "is named under environment, too: leave one of the two out");
        }
    }
}

/// A tool that `pattern` stands for is named under writes. Two wildcards that overlap may do so in names that
/// no tool has.
fn may_write(policy: &ServerPolicy, pattern: &Pattern) -> bool {
    let clear = |w: &&Pattern| *w == pattern || w.is_exact() || pattern.is_exact();
    policy.writes.iter().filter(clear).any(|w| overlap(w.as_str(), pattern.as_str()))
}

fn patterns(names: Option<&[ToolName]>) -> Vec<Pattern> {
    names.into_iter().flatten().map(|name| Pattern::new(name.0.clone())).collect()
}

/// There is a name that both of these names with wildcards stand for.
pub(crate) fn overlap(a: &str, b: &str) -> bool {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    // Whether what is left of `a` and what is left of `b` overlap, for each way to cut `b`.
    let mut below: Vec<bool> = Vec::new();
    for i in (0..=a.len()).rev() {
        let mut row = vec![false; b.len() + 1];
        for j in (0..=b.len()).rev() {
            let at = |row: &[bool], j: usize| row.get(j).copied().unwrap_or(false);
            let found = match (a.get(i), b.get(j)) {
                (None, None) => true,
                (Some('*'), _) if at(&below, j) => true,
                (_, Some('*')) if at(&row, j + 1) => true,
                (Some('*'), Some(_)) => at(&row, j + 1),
                (Some(_), Some('*')) => at(&below, j),
                (Some(x), Some(y)) => x == y && at(&below, j + 1),
                _ => false,
            };
            if let Some(cell) = row.get_mut(j) {
                *cell = found;
            }
        }
        below = row;
    }
    below.first().copied().unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_wildcards_overlap_where_one_name_is_both() {
        let check = |a: &str, b: &str, expect: bool| {
            assert_eq!((overlap(a, b), overlap(b, a)), (expect, expect), "{a} {b}");
        };
        check("search", "search", true);
        check("search", "find", false);
        check("*", "find", true);
        check("*", "", true);
        check("get_*", "*_issue", true);
        check("get_*", "list_*", false);
        check("a*c", "ab", false);
        check("a*c", "*b*", true);
        check("a", "", false);
    }
}
