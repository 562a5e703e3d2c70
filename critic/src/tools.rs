//! The four tools of the Critic. They answer from the records of the investigation: the arguments of a call, its
//! whole result, the documentation of each tool, and the toolset of each Expert.

use std::sync::Arc;

use async_trait::async_trait;
use casebook_agent::results::asked::Asked;
use casebook_agent::results::tools::{call_of, looked, recorded};
use casebook_agent::tools::Tools;
use casebook_protocol::{Domain, DomainToolset, InvestigationId, ToolSpec, Toolset};
use casebook_runtime::store::Store;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;

pub struct RecordTools {
    investigation: InvestigationId,
    toolsets: Vec<DomainToolset>,
    store: Arc<dyn Store>,
}

impl RecordTools {
    #[must_use]
    pub fn new(investigation: InvestigationId, toolsets: Vec<DomainToolset>, store: Arc<dyn Store>) -> Self {
        Self { investigation, toolsets, store }
    }

    async fn result(&self, wanted: &CallArguments, look: Asked) -> Result<String, String> {
        let (call, text) = recorded(self.store.as_ref(), &self.investigation, &wanted.call).await?;
        let sources = sources(&text);
        let page = looked(text, look.look()?).await?;
        let mut shown =
            json!({"call": call.id, "bytes": call.bytes, "status": call.status, "sources": sources, "page": page});
        if let (Some(true), Some(map)) = (wanted.arguments, shown.as_object_mut()) {
            map.insert("tool".to_owned(), call.tool.as_str().into());
            map.insert("arguments".to_owned(), read_arguments(&call.arguments));
        }
        Ok(shown.to_string())
    }

    fn toolset(&self, arguments: &ToolsetArguments) -> Result<String, String> {
        let member = self.toolsets.iter().find(|t| t.domain == arguments.domain).ok_or_else(|| {
            let known: Vec<&str> = self.toolsets.iter().map(|t| t.domain.as_str()).collect();
            format!("no Expert {} was on the roster, which had {}", arguments.domain, known.join(", "))
        })?;
        let wanted = |t: &&ToolSpec| arguments.tool.as_ref().is_none_or(|name| *name == t.name);
        let described = |t: &ToolSpec| {
            let schema = read_arguments(&t.input_schema);
            json!({"name": t.name, "description": t.description, "input_schema": schema, "repeatable": t.repeatable})
        };
        let tools: Vec<serde_json::Value> = member.toolset.tools.iter().filter(wanted).map(described).collect();
        if let Some(name) = arguments.tool.as_ref().filter(|_| tools.is_empty()) {
            let known: Vec<&str> = member.toolset.tools.iter().map(|t| t.name.as_str()).collect();
            return Err(format!("Expert {} has no tool {name:?}; it has {}", arguments.domain, known.join(", ")));
        }
        Ok(json!({"domain": member.domain, "toolset": member.toolset.name, "about": member.toolset.about, "tools": tools}).to_string())
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CallArguments {
    call: String,
    #[serde(default)]
    arguments: Option<bool>,
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

/// Arguments or a schema as JSON, not as a text of JSON.
fn read_arguments(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap_or_else(|_| text.into())
}

/// The sources of evidence that a result is from.
fn sources(result: &str) -> Vec<String> {
    let json: serde_json::Value = serde_json::from_str(result).unwrap_or_default();
    let searched = json.get("searched").and_then(|s| s.as_array()).into_iter().flatten().filter_map(|s| s.as_str());
    let own = json.get("source").and_then(|s| s.as_str());
    searched.chain(own).map(str::to_owned).collect()
}

fn arguments<T: DeserializeOwned>(tool: &str, text: &str) -> Result<T, String> {
    serde_json::from_str(text).map_err(|e| unreadable(tool, &e))
}

fn unreadable(tool: &str, error: &serde_json::Error) -> String {
    format!("the arguments of {tool} cannot be read: {error}")
}

fn spec(name: &str, description: &str, input_schema: &str) -> ToolSpec {
    ToolSpec { name: name.into(), description: description.into(), input_schema: input_schema.into(), repeatable: true }
}

#[async_trait]
impl Tools for RecordTools {
    fn toolset(&self) -> Toolset {
        Toolset {
            name: "record".into(),
            about: "what the Experts of this investigation called, and what they saw".into(),
            tools: vec![
                spec(
                    "get_tool_call",
                    "The tool, arguments, status and size of a recorded tool call, and whose it was.",
                    r#"{"type":"object","properties":{"call":{"type":"string"}},"required":["call"]}"#,
                ),
                spec(
                    "get_tool_result",
                    "The whole result that a tool call returned, exactly as the Expert had it: a page from `offset`, lines \
                     `from_line` to `to_line`, the value at a JSON `pointer`, the places where `search` occurs (from byte \
                     `after` on), or, with `count`, how many items are at `pointer` (`by` the values of a field) or how often \
                     `search` occurs there. With `pointer` and another of these, only the value at that pointer is read. \
                     `arguments` adds the tool and its arguments.",
                    &format!(
                        r#"{{"type":"object","properties":{{"call":{{"type":"string"}},"arguments":{{"type":"boolean"}},{}}},"required":["call"]}}"#,
                        Asked::PROPERTIES
                    ),
                ),
                // `get_tool_info` is another name for it. It is not offered twice.
                spec(
                    "get_toolset_info",
                    "The documentation and schema of an Expert's tools, or of one `tool`.",
                    r#"{"type":"object","properties":{"domain":{"type":"string"},"tool":{"type":"string"}},"required":["domain"]}"#,
                ),
                spec("list_toolsets", "All toolsets by Expert.", r#"{"type":"object","properties":{}}"#),
            ],
        }
    }

    async fn call(&self, tool: &str, text: &str) -> Result<String, String> {
        match tool {
            "get_tool_call" => {
                let wanted: CallArguments = arguments(tool, text)?;
                let call = call_of(self.store.as_ref(), &self.investigation, &wanted.call).await?;
                // Omit the times of the run, so that the same investigation gives the same answers.
                let shown = json!({"id": call.id, "domain": call.domain, "tool": call.tool, "arguments": read_arguments(&call.arguments), "status": call.status, "result": call.result, "bytes": call.bytes});
                Ok(shown.to_string())
            }
            "get_tool_result" => {
                let (wanted, look) = Asked::read(text, &["call", "arguments"]).map_err(|e| unreadable(tool, &e))?;
                self.result(&wanted, look).await
            }
            "get_toolset_info" | "get_tool_info" => self.toolset(&arguments(tool, text)?),
            "list_toolsets" => {
                let NoArguments {} = arguments(tool, text)?;
                let all = self.toolsets.iter().map(|t| {
                    let tools: Vec<&str> = t.toolset.tools.iter().map(|s| s.name.as_str()).collect();
                    json!({"domain": t.domain, "toolset": t.toolset.name, "about": t.toolset.about, "tools": tools})
                });
                Ok(json!({"toolsets": all.collect::<Vec<_>>()}).to_string())
            }
            other => Err(format!("unknown tool {other:?}; use one of the four listed")),
        }
    }
}

#[cfg(test)]
mod tests;
