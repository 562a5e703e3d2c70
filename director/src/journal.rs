//! The journaling tool. It only collects entries: the worker takes the accepted calls, and the Hub adds phase,
//! round and time.

use async_trait::async_trait;
use casebook_agent::tools::Tools;
use casebook_agent::worker::JOURNAL_TOOL;
use casebook_protocol::{EntryDraft, ToolSpec, Toolset};

/// In bytes, because entries are short notes.
const LONGEST: usize = 4096;

#[derive(Debug, Clone, Copy, Default)]
pub struct JournalTools;

const SCHEMA: &str = r#"{"type":"object","additionalProperties":false,"required":["kind","text"],"properties":{"kind":{"enum":["decision","observation","finding","question","action","hypothesis"],"description":"decision: a strategic choice; observation: a pattern noticed; finding: a confirmed fact; question: an open item; action: a step taken or planned; hypothesis: a working theory"},"text":{"type":"string"},"priority":{"enum":["low","medium","high","critical"]},"follow_ups":{"type":"array","items":{"type":"string"}},"citations":{"type":"array","items":{"type":"string"},"description":"ids of findings"},"supersedes":{"type":"array","items":{"type":"integer"},"description":"numbers of entries"}}}"#;

#[async_trait]
impl Tools for JournalTools {
    fn toolset(&self) -> Toolset {
        Toolset {
            name: "journal".into(),
            about: "your structured working memory; every other agent reads it".into(),
            tools: vec![ToolSpec {
                name: JOURNAL_TOOL.into(),
                description: "Adds an entry to your Journal. One short note. Entries stay as they are; correct them by another that supersedes them. The result gives its number.".into(),
                input_schema: SCHEMA.into(),
                repeatable: false,
            }],
        }
    }

    async fn call(&self, tool: &str, arguments: &str) -> Result<String, String> {
        if tool != JOURNAL_TOOL {
            return Err(format!("expected the tool {JOURNAL_TOOL}, got {tool:?}"));
        }
        let entry: EntryDraft =
            serde_json::from_str(arguments).map_err(|e| format!("the entry cannot be read: {e}"))?;
        if entry.text.trim().is_empty() {
            return Err("the entry has no text".into());
        }
        if entry.text.len() > LONGEST {
            return Err(format!("the entry has {} bytes, more than {LONGEST}: write a shorter note", entry.text.len()));
        }
        Ok(r#"{"accepted":true}"#.into())
    }
}
