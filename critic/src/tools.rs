//! The Critic's four tools (seeds). They answer from what was recorded: the arguments of a call, its
//! whole result, each tool's own documentation, and who had which toolset.

use std::sync::Arc;

use async_trait::async_trait;
use casebook_agent::store::Store;
use casebook_agent::stored;
use casebook_agent::tools::Tools;
use casebook_agent::worker::{artifact_text, call_key};
use casebook_protocol::{CallId, Domain, DomainToolset, InvestigationId, ToolCall, ToolSpec, Toolset};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// The longest piece of a result that one call returns, in bytes.
const PAGE: usize = 16 * 1024;
/// Text around a hit that a search in a result returns, in bytes.
const AROUND: usize = 160;

/// The tools over the record of one investigation.
pub struct RecordTools {
    investigation: InvestigationId,
    toolsets: Vec<DomainToolset>,
    store: Arc<dyn Store>,
}

impl RecordTools {
    /// The tools over the record of `investigation`, whose Experts had `toolsets`.
    #[must_use]
    pub fn new(investigation: InvestigationId, toolsets: Vec<DomainToolset>, store: Arc<dyn Store>) -> Self {
        Self { investigation, toolsets, store }
    }

    async fn recorded(&self, call: &str) -> Result<ToolCall, String> {
        let id = CallId::new(call).map_err(|e| e.to_string())?;
        let bytes = self.store.recorded(&self.investigation, &call_key(&id)).await.map_err(|e| e.to_string())?;
        let bytes = bytes.ok_or_else(|| format!("no tool call {id} is on record in this investigation"))?;
        stored::read(&bytes).map_err(|e| format!("tool call {id} is recorded but cannot be read: {e}"))
    }

    async fn result(&self, arguments: ResultArguments) -> Result<String, String> {
        let call = self.recorded(&arguments.call).await?;
        let text = artifact_text(self.store.as_ref(), &call.result).await.map_err(|e| e.to_string())?;
        let text = text.ok_or_else(|| format!("the result {} of {} is not in the store", call.result, call.id))?;
        let page = match (&arguments.search, &arguments.pointer) {
            (Some(needle), _) => found(&text, needle),
            (None, Some(pointer)) => pointed(&text, pointer)?,
            (None, None) => {
                let offset = arguments.offset.unwrap_or(0);
                let piece = slice(&text, offset, PAGE);
                json!({"text": piece, "offset": offset, "next_offset": (offset + piece.len() < text.len()).then_some(offset + piece.len())})
            }
        };
        Ok(json!({"call": call.id, "artifact": call.result, "bytes": call.bytes, "status": call.status, "page": page})
            .to_string())
    }

    fn toolset(&self, arguments: &ToolsetArguments) -> Result<String, String> {
        let member = self.toolsets.iter().find(|t| t.domain == arguments.domain).ok_or_else(|| {
            let known: Vec<&str> = self.toolsets.iter().map(|t| t.domain.as_str()).collect();
            format!("no Expert {} was on the roster, which had {}", arguments.domain, known.join(", "))
        })?;
        let wanted = |t: &&ToolSpec| arguments.tool.as_ref().is_none_or(|name| *name == t.name);
        let tools: Vec<&ToolSpec> = member.toolset.tools.iter().filter(wanted).collect();
        if tools.is_empty() {
            return Err(format!(
                "Expert {} has no tool {:?}",
                arguments.domain,
                arguments.tool.as_deref().unwrap_or_default()
            ));
        }
        Ok(json!({"domain": member.domain, "toolset": member.toolset.name, "about": member.toolset.about, "tools": tools}).to_string())
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CallArguments {
    call: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ResultArguments {
    call: String,
    offset: Option<usize>,
    search: Option<String>,
    pointer: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ToolsetArguments {
    domain: Domain,
    tool: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NoArguments {}

fn arguments<T: DeserializeOwned>(tool: &str, text: &str) -> Result<T, String> {
    serde_json::from_str(text).map_err(|e| format!("the arguments of {tool} cannot be read: {e}"))
}

fn slice(text: &str, offset: usize, length: usize) -> &str {
    let floor = |mut at: usize| {
        at = at.min(text.len());
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        at
    };
    text.get(floor(offset)..floor(offset.saturating_add(length))).unwrap_or_default()
}

/// The first places in the result at which the text stands. A result is JSON, so the text is looked
/// for as it is written there, too.
fn found(text: &str, needle: &str) -> Value {
    let escaped = Value::String(needle.to_owned()).to_string();
    let escaped = escaped.trim_matches('"');
    let twice = Value::String(escaped.to_owned()).to_string();
    let forms = [needle, escaped, twice.trim_matches('"')];
    let form = forms.into_iter().find(|form| !form.is_empty() && text.contains(form));
    let hits: Vec<Value> = form
        .map(|form| text.match_indices(form).take(5).map(|(at, hit)| json!({"offset": at, "text": slice(text, at.saturating_sub(AROUND), hit.len() + 2 * AROUND)})).collect())
        .unwrap_or_default();
    json!({"search": needle, "found": !hits.is_empty(), "hits": hits})
}

fn pointed(text: &str, pointer: &str) -> Result<Value, String> {
    let json: Value =
        serde_json::from_str(text).map_err(|_| "the result is not JSON: page through it instead".to_owned())?;
    let value = json.pointer(pointer).ok_or_else(|| format!("nothing stands at {pointer:?} in the result"))?;
    let written = value.to_string();
    if written.len() > PAGE {
        return Ok(json!({"pointer": pointer, "text": slice(&written, 0, PAGE), "cut": true}));
    }
    Ok(json!({"pointer": pointer, "value": value}))
}

fn spec(name: &str, description: &str, input_schema: &str) -> ToolSpec {
    ToolSpec { name: name.into(), description: description.into(), input_schema: input_schema.into(), repeatable: true }
}

#[async_trait]
impl Tools for RecordTools {
    fn toolset(&self) -> Toolset {
        let info = r#"{"type":"object","additionalProperties":false,"required":["domain"],"properties":{"domain":{"type":"string"},"tool":{"type":["string","null"],"description":"one tool of it; leave out for all"}}}"#;
        Toolset {
            name: "record".into(),
            about: "what the Experts of this investigation called, and what they saw".into(),
            tools: vec![
                spec(
                    "get_tool_call",
                    "The tool, arguments, status and size of a recorded tool call, and whose it was.",
                    r#"{"type":"object","additionalProperties":false,"required":["call"],"properties":{"call":{"type":"string"}}}"#,
                ),
                spec(
                    "get_tool_result",
                    "The whole result that a tool call returned, exactly as the Expert had it: a page from `offset`, the places at which `search` stands, or the value at a JSON `pointer`.",
                    r#"{"type":"object","additionalProperties":false,"required":["call"],"properties":{"call":{"type":"string"},"offset":{"type":["integer","null"],"minimum":0},"search":{"type":["string","null"]},"pointer":{"type":["string","null"]}}}"#,
                ),
                spec(
                    "get_toolset_info",
                    "The toolset of an Expert with each tool's own documentation and schema.",
                    info,
                ),
                spec("get_tool_info", "The same as get_toolset_info.", info),
                spec(
                    "list_toolsets",
                    "All toolsets by Expert.",
                    r#"{"type":"object","additionalProperties":false,"properties":{}}"#,
                ),
            ],
        }
    }

    async fn call(&self, tool: &str, text: &str) -> Result<String, String> {
        match tool {
            "get_tool_call" => {
                let wanted: CallArguments = arguments(tool, text)?;
                let call = self.recorded(&wanted.call).await?;
                // Without the times of the run: the same investigation gives the same answers.
                let shown = json!({"id": call.id, "domain": call.domain, "tool": call.tool, "arguments": call.arguments, "status": call.status, "result": call.result, "bytes": call.bytes});
                Ok(shown.to_string())
            }
            "get_tool_result" => self.result(arguments(tool, text)?).await,
            "get_toolset_info" | "get_tool_info" => self.toolset(&arguments(tool, text)?),
            "list_toolsets" => {
                let NoArguments {} = arguments(tool, text)?;
                let all = self.toolsets.iter().map(|t| {
                    let tools: Vec<&str> = t.toolset.tools.iter().map(|s| s.name.as_str()).collect();
                    json!({"domain": t.domain, "toolset": t.toolset.name, "about": t.toolset.about, "tools": tools})
                });
                Ok(json!({"toolsets": all.collect::<Vec<_>>()}).to_string())
            }
            other => Err(format!("there is no tool {other:?} here")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_found_as_it_is_written_in_json() {
        let result = json!({"raw": "{\"path\":\"C:\\\\Temp\"}"}).to_string();
        for needle in [r#""path""#, "Temp", r"C:\\Temp"] {
            assert_eq!(found(&result, needle)["found"], true, "{needle} in {result}");
        }
        assert_eq!(found(&result, "nothing")["found"], false);
    }

    #[test]
    fn pages_end_at_characters() {
        assert_eq!(slice("aéb", 2, 1), "é");
        assert_eq!(slice("aéb", 1, 2), "é");
        assert_eq!(slice("abc", 9, 9), "");
    }
}
