//! The tools of `casebook mcp`.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use casebook_agent::mcp::serve::{Hints, Served};
use casebook_agent::model::data::visible;
use casebook_agent::results::asked::Asked;
use casebook_agent::results::tools::looked;
use casebook_agent::tools::Tools;
use casebook_hub::archive::{self, Past};
use casebook_hub::{HubError, State, Summary};
use casebook_protocol::{ArtifactId, CallId, InvestigationId, Report, ToolCall, Toolset, one_line};
use casebook_runtime::store::Store;
use casebook_runtime::store::artifact_text;
use casebook_trust::Backing;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::backend::Backend;
use super::brief;
use super::docs;
use super::search::Wanted;
use crate::home::Home;
use casebook_report::Form;

/// How often to look for an opened investigation, and the pause between.
const LOOKS: u32 = 20;
const LOOK: Duration = Duration::from_millis(250);

pub struct Casebook {
    home: Home,
    backend: Arc<Backend>,
}

impl Casebook {
    #[must_use]
    pub fn new(home: Home, backend: Arc<Backend>) -> Self {
        Self { home, backend }
    }

    #[must_use]
    pub fn served(self) -> Served {
        let hints = |tool: &str| match tool {
            "open_investigation" => Hints { read_only: false, idempotent: true, open_world: true },
            _ => Hints::READS,
        };
        Served { name: "casebook", instructions: docs::INSTRUCTIONS.into(), tools: Arc::new(self), hints }
    }

    fn store(&self) -> &dyn Store {
        self.home.store.as_ref()
    }

    async fn find(&self, id: &str) -> Result<InvestigationId, String> {
        self.home.find(id).await.map_err(|f| format!("{}; {} (list_investigations)", f.what, f.advice))
    }

    async fn read(&self, id: &str) -> Result<(InvestigationId, Past), String> {
        let id = self.find(id).await?;
        let past = archive::read(self.store(), &id).await.map_err(message)?;
        Ok((id, past))
    }

    /// One part of an investigation's records, under `name`.
    async fn part(&self, id: &str, name: &str, part: impl FnOnce(Past) -> Value) -> Result<Value, String> {
        let (id, past) = self.read(id).await?;
        Ok(json!({"id": id, "finished": past.state.closed.is_some(), name: part(past)}))
    }

    async fn open(&self, wanted: Open) -> Result<Value, String> {
        let (id, new) = self.backend.open(&Value::Object(wanted.alert)).await?;
        let next = if self.begun(&id).await? {
            "call get_investigation for its state"
        } else {
            "the alert is stored and waits for its turn; get_investigation finds it once it has started"
        };
        Ok(json!({"id": id, "new": new, "next": next}))
    }

    /// Whether it is in the store; a busy team takes a while.
    async fn begun(&self, id: &InvestigationId) -> Result<bool, String> {
        for _ in 0..LOOKS {
            if !self.store().log(id, 1).await.map_err(|e| e.to_string())?.is_empty() {
                return Ok(true);
            }
            tokio::time::sleep(LOOK).await;
        }
        Ok(false)
    }

    async fn status(&self, wanted: &One) -> Result<Value, String> {
        let (id, Past { state, report, .. }) = self.read(&wanted.id).await?;
        let open = state.closed.is_none();
        let worked_on = if open { self.backend.under_way(&id).await } else { None };
        let concluded = |value: Value| if open { Value::Null } else { value };
        Ok(json!({
            "id": id,
            "alert": {"id": report.alert.id, "title": report.alert.title, "severity": report.alert.severity},
            "opened": state.opened,
            "closed": state.closed,
            "phase": state.phase,
            "round": state.round,
            "worked_on": worked_on,
            "under_way": state.in_flight().map(|(task, _)| task.as_str()).collect::<Vec<_>>(),
            "findings": report.findings.len(),
            "headline": report.headline,
            "not_investigated": state.not_investigated,
            "verdict": concluded(json!(report.verdict)),
            "summary": concluded(json!(report.summary)),
            "missing": concluded(json!(report.ruling.missing)),
            "stop_reason": report.stop_reason,
            "usage": {"rounds": report.usage.rounds, "total": report.usage.total},
        }))
    }

    async fn summaries(&self) -> Result<Vec<Summary>, String> {
        archive::summaries(self.store()).await.map_err(message)
    }

    async fn list(&self, wanted: &List) -> Result<Value, String> {
        let limit = within("limit", wanted.limit, 20, 200)?;
        let all = self.summaries().await?;
        let after = match &wanted.before {
            None => 0,
            Some(id) => {
                let id = self.find(id).await?;
                all.iter().position(|one| one.investigation == id).map_or(all.len(), |at| at + 1)
            }
        };
        let page: Vec<&Summary> = all.iter().skip(after).take(limit).collect();
        let last = page.last().filter(|_| after + page.len() < all.len()).map(|one| &one.investigation);
        Ok(json!({"total": all.len(), "investigations": page, "next_before": last}))
    }

    async fn search(&self, wanted: &Search) -> Result<Value, String> {
        let limit = within("limit", wanted.limit, 10, 100)?;
        let words = Wanted::new(&wanted.text).ok_or("`text` has no word to look for")?;
        let mut found = Vec::new();
        for id in self.store().investigations().await.map_err(|e| e.to_string())? {
            // list_investigations reports those that cannot be read.
            let Ok(Past { state, report, .. }) = archive::read(self.store(), &id).await else { continue };
            if let Some((passages, hits)) = words.hits(&report) {
                let verdict = state.closed.map(|_| report.verdict);
                found.push((
                    report.opened,
                    json!({
                        "id": id, "title": report.alert.title, "opened": report.opened, "closed": state.closed,
                        "verdict": verdict, "passages": passages, "hits": hits,
                    }),
                ));
            }
        }
        found.sort_by_key(|(opened, _)| std::cmp::Reverse(*opened));
        let total = found.len();
        let found: Vec<Value> = found.into_iter().take(limit).map(|(_, one)| one).collect();
        Ok(json!({"text": wanted.text, "total": total, "investigations": found}))
    }

    async fn rendered(&self, wanted: &Rendered) -> Result<Value, String> {
        let (id, Past { state, report, .. }) = self.read(&wanted.id).await?;
        let finished = state.closed.is_some();
        match (wanted.format.as_deref().unwrap_or("markdown"), wanted.full) {
            ("markdown", full) => {
                let backing =
                    archive::backed(self.store(), &report, Backing::of_numbers(&report)).await.map_err(message)?;
                let text = Form::Md.render(&report, &backing).map_err(|e| e.to_string())?;
                let text = visible(&if finished { text } else { format!("{}{text}", unfinished(&state)) });
                if full {
                    return Ok(json!({"id": id, "finished": finished, "markdown": text}));
                }
                let (part, next) = brief::lines(&text, wanted.cursor)?;
                Ok(json!({"id": id, "finished": finished, "markdown": part, "next_cursor": next}))
            }
            ("json", true) => Ok(json!({"id": id, "finished": finished, "report": whole(report)})),
            ("json", false) => Ok(json!({"id": id, "finished": finished, "report": brief::report(&report)})),
            (other, _) => Err(format!("get_report: `format` must be markdown or json, not {other:?}")),
        }
    }

    async fn findings(&self, wanted: &Findings) -> Result<Value, String> {
        let (id, Past { state, report, .. }) = self.read(&wanted.id).await?;
        let all = &report.findings;
        let limit = within("limit", wanted.limit, if wanted.full { 200 } else { 20 }, 200)?;
        let (findings, next) = if wanted.full {
            brief::page(all, wanted.cursor, limit, |finding| json!(finding), usize::MAX)
        } else {
            brief::findings(all, wanted.cursor, limit)
        };
        Ok(json!({
            "id": id, "finished": state.closed.is_some(), "total": all.len(), "findings": findings,
            "next_cursor": next,
        }))
    }

    async fn evidence(&self, wanted: &Evidence, asked: Asked) -> Result<Value, String> {
        let (id, past) = self.read(&wanted.id).await?;
        let call = recorded(&past.report, wanted)?;
        let text = artifact_text(self.store(), &call.result).await.map_err(|e| e.to_string())?;
        let text = text.ok_or_else(|| format!("the result {} of call {} is not in the store", call.result, call.id))?;
        let refused = |why: String| format!("get_evidence: {why}");
        let seen = looked(text, asked.look().map_err(refused)?).await.map_err(refused)?;
        Ok(json!({
            "id": id, "call": call.id, "tool": call.tool, "arguments": call.arguments, "domain": call.domain,
            "status": call.status, "artifact": call.result, "bytes": call.bytes, "seen": seen,
        }))
    }

    async fn answer(&self, tool: &str, arguments: &str) -> Result<Value, String> {
        let one = || read::<One>(tool, arguments);
        match tool {
            "open_investigation" => self.open(read(tool, arguments)?).await,
            "get_investigation" => self.status(&one()?).await,
            "list_investigations" => self.list(&read(tool, arguments)?).await,
            "search_investigations" => self.search(&read(tool, arguments)?).await,
            "get_timeline" => self.part(&one()?.id, "timeline", |past| json!(past.state.timeline)).await,
            "get_review" => self.part(&one()?.id, "review", |past| json!(past.state.review)).await,
            "get_journal" => self.part(&one()?.id, "journal", |past| json!(past.state.journal)).await,
            "get_findings" => self.findings(&read(tool, arguments)?).await,
            "get_report" => self.rendered(&read(tool, arguments)?).await,
            "get_evidence" => {
                let own = ["id", "call", "artifact"];
                let (wanted, asked) = Asked::read(arguments, &own).map_err(|e| unreadable(tool, &e))?;
                self.evidence(&wanted, asked).await
            }
            _ => {
                let known: Vec<String> = docs::specs().into_iter().map(|spec| spec.name).collect();
                Err(format!("unknown tool {tool:?}; the tools are {}", known.join(", ")))
            }
        }
    }
}

/// The note above the report of an unfinished investigation.
fn unfinished(state: &State) -> String {
    let (phase, round) = (state.phase.name(), state.round);
    if let Some(reason) = &state.not_investigated {
        return format!("> **Not investigated:** no log was read, and there is no verdict. {reason}\n\n");
    }
    format!(
        "> **Not finished:** {phase}, round {round}. It has no verdict yet; the report covers what is recorded so far.\n\n"
    )
}

fn recorded<'r>(report: &'r Report, wanted: &Evidence) -> Result<&'r ToolCall, String> {
    let mut calls = report.calls.iter();
    match (&wanted.call, &wanted.artifact) {
        (Some(call), None) => {
            let id = CallId::new(call).map_err(|e| e.to_string())?;
            calls.find(|one| one.id == id).ok_or_else(|| format!("get_evidence: this investigation has no call {id}"))
        }
        (None, Some(artifact)) => {
            let id = ArtifactId::new(artifact).map_err(|e| e.to_string())?;
            let found = calls.find(|one| one.result == id);
            found.ok_or_else(|| format!("get_evidence: no call of this investigation has the result {id}"))
        }
        _ => Err("get_evidence: give either `call` or `artifact` from a citation".into()),
    }
}

fn within(name: &str, given: Option<usize>, usual: usize, most: usize) -> Result<usize, String> {
    match given.unwrap_or(usual) {
        number if (1..=most).contains(&number) => Ok(number),
        number => Err(format!("`{name}` must be a whole number from 1 to {most}, got {number}")),
    }
}

#[allow(clippy::needless_pass_by_value, reason = "for map_err")]
fn message(error: HubError) -> String {
    error.to_string()
}

fn read<T: DeserializeOwned>(tool: &str, arguments: &str) -> Result<T, String> {
    serde_json::from_str(arguments).map_err(|e| unreadable(tool, &e))
}

fn unreadable(tool: &str, error: &serde_json::Error) -> String {
    format!("{tool}: cannot read the arguments: {error}")
}

/// Escapes invisible characters in every text (`docs/rules.md`, hostile evidence).
fn shown(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(visible(&text)),
        Value::Array(items) => Value::Array(items.into_iter().map(shown).collect()),
        Value::Object(map) => {
            Value::Object(map.into_iter().map(|(key, value)| (visible(&key), shown(value))).collect())
        }
        other => other,
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Open {
    alert: Map<String, Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct One {
    id: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    limit: Option<usize>,
    before: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Search {
    text: String,
    limit: Option<usize>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rendered {
    id: String,
    format: Option<String>,
    #[serde(default)]
    cursor: usize,
    #[serde(default)]
    full: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Findings {
    id: String,
    limit: Option<usize>,
    #[serde(default)]
    cursor: usize,
    #[serde(default)]
    full: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Evidence {
    id: String,
    call: Option<String>,
    artifact: Option<String>,
}

/// Characters of the arguments of a call in a report. Many clients refuse messages of more than 1 MiB.
const ARGUMENTS: usize = 400;

fn whole(mut report: Report) -> Report {
    for call in &mut report.calls {
        call.arguments = one_line(&call.arguments, ARGUMENTS);
    }
    report
}

#[async_trait]
impl Tools for Casebook {
    fn toolset(&self) -> Toolset {
        let about = "investigations of security alerts";
        Toolset { name: "casebook".into(), about: about.into(), tools: docs::specs() }
    }

    async fn call(&self, tool: &str, arguments: &str) -> Result<String, String> {
        let answer = self.answer(tool, arguments).await;
        answer.map(|value| shown(value).to_string()).map_err(|message| visible(&message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_of_an_answer_hides_anything() {
        let answer = json!({"a\u{202e}": ["x\u{200b}y", {"b": "\u{1b}[31m\n"}], "n": 1});
        assert_eq!(shown(answer).to_string(), r#"{"a\\u{202e}":["x\\u{200b}y",{"b":"\\u{1b}[31m\n"}],"n":1}"#);
    }

    #[test]
    fn what_is_documented_is_what_is_known() {
        for spec in docs::specs() {
            let schema: Value = serde_json::from_str(&spec.input_schema).unwrap();
            assert_eq!(schema["additionalProperties"], false, "{}", spec.name);
        }
        assert_eq!(
            within("limit", Some(0), 20, 200).unwrap_err(),
            "`limit` must be a whole number from 1 to 200, got 0"
        );
        assert_eq!(within("limit", None, 20, 200), Ok(20));
    }
}
