//! The result tools, with which an Expert examines the results of its own calls. Prompts only contain a summary of
//! large results.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use async_trait::async_trait;
use casebook_protocol::tool::{GET_RESULT, MY_FINDINGS, RESULT_TOOLS};
use casebook_protocol::{
    Acts, Alert, CallId, Citation, Files, Finding, InvestigationId, Task, TaskId, ToolCall, ToolSpec, Toolset, View,
};
use serde::Deserialize;
use serde_json::json;

use super::asked::Asked;
use super::calculate::Calculation;
use super::{Look, What, look};
use crate::tools::Tools;
use crate::worker::ToolsFor;
use casebook_protocol::key::call_key;
use casebook_runtime::Env;
use casebook_runtime::process::blocking;
use casebook_runtime::store::Store;
use casebook_runtime::store::artifact_text;
use casebook_runtime::stored;

/// The tool that computes with numbers and times in results. Its value is cited as an `aggregate`.
const CALCULATE: &str = "calculate";

fn added() -> [ToolSpec; 2] {
    let result = format!(
        r#"{{"type":"object","properties":{{"call":{{"type":"string"}},{}}},"required":["call"]}}"#,
        Asked::PROPERTIES
    );
    [
        ToolSpec::new(
            CALCULATE,
            "Computes with values at JSON pointers in results: `sum`; `difference` (first less second), `ratio`, or \
             `duration` in seconds of two; `rate` per hour (number, time, time). Cite it as `aggregate` at `/value`.",
            r#"{"type":"object","properties":{"op":{"enum":["sum","difference","ratio","duration","rate"]},"values":{"type":"array","items":{"type":"object","properties":{"call":{"type":"string"},"at":{"type":"string"}},"required":["call","at"]}}},"required":["op","values"]}"#,
            true,
        ),
        ToolSpec::new(
            GET_RESULT,
            "Shows the rest of an earlier result, or of the value at `pointer`: the places of the text `search`, lines, \
             a piece from byte `offset`; with `count` the number of items (`by` the values of a field) or of places. \
             Cite the earlier call.",
            &result,
            true,
        ),
    ]
}

/// Adds the result tools to a toolset that has tools.
pub fn with(mut toolset: Toolset) -> Toolset {
    let there = |name: &str| toolset.tools.iter().any(|tool| tool.name == name);
    let fresh = added().into_iter().filter(|tool| !toolset.tools.is_empty() && !there(&tool.name));
    let fresh: Vec<ToolSpec> = fresh.collect();
    toolset.tools.extend(fresh);
    toolset
}

/// An Expert's tools, with the result tools for each task.
pub struct OwnResults(pub Arc<dyn Tools>);

impl ToolsFor for OwnResults {
    fn tools_for(&self, task: &Arc<Task>, env: &Env) -> Arc<dyn Tools> {
        let own = match &task.view {
            View::Investigate(view) => self.0.for_case(&task.investigation, view),
            _ => None,
        };
        let inner = own.unwrap_or_else(|| Arc::clone(&self.0));
        Arc::new(ResultTools {
            inner,
            investigation: task.investigation.clone(),
            task: task.id.clone(),
            store: Arc::clone(&env.store),
            earlier: match &task.view {
                View::Investigate(view) => view.earlier.clone(),
                _ => Vec::new(),
            },
        })
    }
}

struct ResultTools {
    inner: Arc<dyn Tools>,
    investigation: InvestigationId,
    task: TaskId,
    store: Arc<dyn Store>,
    earlier: Vec<Finding>,
}

#[async_trait]
impl Tools for ResultTools {
    fn toolset(&self) -> Toolset {
        let mut toolset = with(self.inner.toolset());
        if !self.earlier.is_empty() {
            let about = "Your own findings of earlier rounds, the latest first, each with the calls that it cited and \
                their arguments: use it to go on where you were. Cite a new call, never this one.";
            let schema = r#"{"type":"object","properties":{}}"#;
            toolset.tools.push(ToolSpec::new(MY_FINDINGS, about, schema, true));
        }
        toolset
    }

    fn sent(&self, tool: &str, arguments: &str) -> String {
        self.inner.sent(tool, arguments)
    }

    async fn call(&self, tool: &str, arguments: &str) -> Result<String, String> {
        if tool == MY_FINDINGS && !self.earlier.is_empty() {
            return self.mine().await;
        }
        if tool == CALCULATE {
            return self.calculate(arguments).await;
        }
        if tool != GET_RESULT {
            return self.inner.call(tool, arguments).await;
        }
        let (of, asked) = Asked::read::<Of>(arguments, &["call"])
            .map_err(|e| format!("the arguments of {GET_RESULT} cannot be read: {e}"))?;
        let (call, text) = self.recorded(&of.call).await?;
        let shown = looked(text, asked.look()?).await?;
        Ok(json!({"call": call.id, "tool": call.tool, "bytes": call.bytes, "page": shown}).to_string())
    }

    async fn acts(&self, alert: &Alert) -> Option<Acts> {
        self.inner.acts(alert).await
    }

    async fn files(&self) -> Option<Files> {
        self.inner.files().await
    }
}

impl ResultTools {
    async fn calculate(&self, arguments: &str) -> Result<String, String> {
        let asked: Calculation =
            serde_json::from_str(arguments).map_err(|e| format!("the arguments of {CALCULATE} cannot be read: {e}"))?;
        let mut results = BTreeMap::new();
        for place in &asked.values {
            if !results.contains_key(&place.call) {
                let (_, text) = self.recorded(&place.call).await?;
                results.insert(place.call.clone(), text);
            }
        }
        let computed = blocking(move || asked.computed(&results)).await;
        computed.unwrap_or_else(|error| Err(format!("the tool stopped: {error}")))
    }

    async fn mine(&self) -> Result<String, String> {
        let mut findings = Vec::new();
        for finding in &self.earlier {
            let draft = &finding.draft;
            let cited: BTreeSet<&CallId> = draft.citations.iter().map(Citation::call).collect();
            let mut calls = Vec::new();
            for id in cited {
                let call = call_of(self.store.as_ref(), &self.investigation, id.as_str()).await?;
                let arguments: serde_json::Value = serde_json::from_str(&call.arguments).unwrap_or_default();
                calls.push(json!({"tool": call.tool, "arguments": arguments}));
            }
            let at = draft.time.as_ref().map(|time| time.at);
            findings.push(json!({"id": finding.id, "claim": draft.claim, "time": at, "look_next": draft.look_next, "calls": calls}));
        }
        Ok(json!({"findings": findings}).to_string())
    }

    async fn recorded(&self, call: &str) -> Result<(ToolCall, String), String> {
        let call = call.trim();
        let own = call.strip_prefix(self.task.as_str()).is_some_and(|rest| rest.starts_with('.'));
        if !own {
            let shown = casebook_protocol::one_line(call, 80);
            return Err(format!(
                "expected a call of this task, got {shown:?}; write the id in the first line of a result"
            ));
        }
        recorded(self.store.as_ref(), &self.investigation, call).await.and_then(|(call, text)| {
            if RESULT_TOOLS.contains(&call.tool.as_str()) {
                return Err(format!("{} examined a result itself; name the call that it examined", call.id));
            }
            Ok((call, text))
        })
    }
}

/// A recorded call of an investigation, with its whole result. Errors are messages for the caller.
pub async fn recorded(
    store: &dyn Store,
    investigation: &InvestigationId,
    call: &str,
) -> Result<(ToolCall, String), String> {
    let call = call_of(store, investigation, call).await?;
    let text = artifact_text(store, &call.result).await.map_err(|e| e.to_string())?;
    let text = text.ok_or_else(|| format!("the result {} of {} is not in the store", call.result, call.id))?;
    Ok((call, text))
}

pub async fn call_of(store: &dyn Store, investigation: &InvestigationId, call: &str) -> Result<ToolCall, String> {
    let id = CallId::new(call).map_err(|e| e.to_string())?;
    let bytes = store.recorded(investigation, &call_key(&id)).await.map_err(|e| e.to_string())?;
    let bytes = bytes.ok_or_else(|| {
        format!(
            "tool call {id} is not recorded; use a call of an earlier turn, with the id in the first line of its result"
        )
    })?;
    stored::read(&bytes).map_err(|e| format!("tool call {id} is recorded but cannot be read: {e}"))
}

pub async fn looked(text: String, wanted: Look) -> Result<serde_json::Value, String> {
    let seen = blocking(move || look(&text, &wanted)).await;
    seen.unwrap_or_else(|error| Err(format!("the tool stopped: {error}")))
}

#[derive(Deserialize)]
struct Of {
    call: String,
}

/// Lines, a piece, or the whole value. Lines and bytes together are an error.
pub(super) fn part(
    from_line: Option<u64>,
    to_line: Option<u64>,
    offset: Option<usize>,
    length: Option<usize>,
) -> Result<What, String> {
    match (from_line.or(to_line), offset.map(|_| 0).or(length)) {
        (Some(_), Some(_)) => Err("give lines, or an offset with a length, not both".to_owned()),
        (Some(_), None) => Ok(What::Lines { from: from_line.unwrap_or(1), to: to_line }),
        (None, Some(_)) => Ok(What::Piece { offset: offset.unwrap_or(0), length }),
        (None, None) => Ok(What::Value),
    }
}
