//! Writes evidence for models: sections of a first message, and tool results. An attacker may have written the text,
//! so it must not be able to end its block. Hidden characters are shown as escapes (rule "hostile evidence").

use std::fmt::Write;

use casebook_protocol::tool::{GET_RESULT, RESULT_TOOLS, server_of};
use casebook_protocol::{CallStatus, ToolCall, alert, hash, one_line};
use serde_json::Value;

use crate::results::shape;

mod cut;
mod listed;
mod quote;

pub(crate) use cut::head;
pub use cut::{Shortened, fit};
pub use quote::recorded_quote;

/// A section with one JSON document. Every `<` is written `\u003c`, so that no text can close the section.
pub fn section(name: &str, content: &Value) -> String {
    format!("<{name}>\n{}\n</{name}>\n", escape_json(&content.to_string(), true))
}

/// A section with text. `<` and `>` are escaped as in JSON.
pub fn text_section(name: &str, content: &str) -> String {
    let text = copied(content.trim_end_matches('\n'), b"\r\t<>", |out, c| match c {
        '<' | '>' => push_json_escape(out, c),
        c => push_visible(out, c),
    });
    format!("<{name}>\n{text}\n</{name}>\n")
}

/// The result of `call` with the recorded text `text` as models read it: a line about the result, and the data in a
/// block. The marker of the block follows from the data, so a replay sends the same request. A result over `limit`
/// bytes is cut at items or lines. Its first line describes the shape of the whole, what was left out, and how to get
/// it; with `looks` by the result tools. The last item of a cut list has a separate block.
pub fn result(call: &ToolCall, text: &str, limit: usize, looks: bool) -> String {
    let tool = one_line(&call.tool, 80).replace(['<', '>', '(', ')'], "?");
    if call.status == CallStatus::Answered
        && EVIDENCE_TOOLS.contains(&call.tool.as_str())
        && let Ok(value) = serde_json::from_str::<Value>(text)
    {
        return of_evidence(call, text, &value, limit, looks);
    }
    if call.tool == LOOKED_UP
        && call.status == CallStatus::Answered
        && let Some(shown) = serde_json::from_str(text).ok().and_then(|value| listed::looked_up(&value))
        && shown.len() <= limit
    {
        return format!("result of call {} ({tool}), {} bytes, whole\n{}", call.id, text.len(), block(&shown));
    }
    written(call, &tool, text, limit, looks)
}

/// The Critic's tool for results.
const LOOKED_UP: &str = "get_tool_result";

/// The tools over evidence files, whose results have a known form.
const EVIDENCE_TOOLS: [&str; 10] = [
    "list_sources",
    "describe_source",
    "search",
    "count_by",
    "around",
    "baseline",
    "related",
    "get_record",
    "rule_hits",
    "sql",
];

fn of_evidence(call: &ToolCall, text: &str, value: &Value, limit: usize, looks: bool) -> String {
    let listed = match call.tool.as_str() {
        "get_record" => listed::record(value, limit),
        tool => listed::listed(tool, &call.arguments, value, limit),
    };
    match listed {
        Some(listed) => {
            let head = format!("result of call {} ({}), {} bytes", call.id, call.tool, text.len());
            let notes = match listed.notes.is_empty() {
                true => "whole".to_owned(),
                false => format!("cut: {}. {}", listed.notes.join("; "), rest(call, &call.tool, looks)),
            };
            format!("{head}, {notes}\n{}", block(&listed.text))
        }
        None => written(call, &call.tool, &listed::pruned(value).to_string(), limit, looks),
    }
}

fn written(call: &ToolCall, tool: &str, text: &str, limit: usize, looks: bool) -> String {
    let json = serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
    let whole = if json { escape_json(text, false) } else { visible(text) };
    let id = &call.id;
    if whole.len() <= limit {
        let head = match call.status {
            CallStatus::Failed => format!("call {id} ({tool}) failed"),
            CallStatus::Answered => format!("result of call {id} ({tool}), {} bytes, whole", text.len()),
        };
        return format!("{head}\n{}", block(&whole));
    }
    let cut = Cut::of(text, json, limit);
    let head = match call.status {
        CallStatus::Failed => format!("call {id} ({tool}) failed, message cut"),
        CallStatus::Answered => {
            let rest = rest(call, tool, looks);
            format!("result of call {id} ({tool}), {} bytes, cut: {}. {rest}", text.len(), cut.note)
        }
    };
    let last = cut.last.map_or_else(String::new, |(at, item)| format!("{at}, the last item:\n{}", block(&item)));
    format!("{head}\n{}{last}", block(&cut.shown))
}

fn block(content: &str) -> String {
    let marker = marker(content);
    format!("<data-{marker}>\n{content}\n</data-{marker}>\n")
}

fn rest(call: &ToolCall, tool: &str, looks: bool) -> String {
    let again = format!("call {tool} again for less: narrower conditions or times, a smaller limit, the next offset");
    if !looks || RESULT_TOOLS.contains(&call.tool.as_str()) {
        return format!("To see the rest {again}");
    }
    let looked = format!("To see the rest look into call {} with {GET_RESULT}", call.id);
    // Only our own tools are known to have narrower queries.
    if server_of(&call.tool).is_some() { looked } else { format!("{looked}, or {again}") }
}

struct Cut {
    shown: String,
    /// What was left out, and the shape of the whole.
    note: String,
    /// The last item of the list with the largest cut, and its pointer.
    last: Option<(String, String)>,
}

/// The share of a result's room for the last item of a list.
const LAST: usize = 8;

impl Cut {
    fn of(text: &str, json: bool, limit: usize) -> Self {
        match serde_json::from_str::<Value>(text) {
            Ok(value) if json => Self::json(&value, limit),
            _ => {
                let fitted = cut::lines(&visible(text), limit);
                let note = format!("{}. It is a text of {} lines", fitted.notes.join("; "), text.lines().count());
                Self { shown: fitted.text, note, last: None }
            }
        }
    }

    fn json(value: &Value, limit: usize) -> Self {
        let room = limit / LAST;
        let fitted = fit(value, limit - room);
        // This line is ours, so a pointer that an attacker may have chosen is not shown in it.
        let ours = |at: &String| at.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '/' | '_' | '-' | '.'));
        let item = fitted.last.clone().filter(ours).and_then(|at| Some((fit(value.pointer(&at)?, room), at)));
        let (fitted, last) =
            match item.filter(|(item, _)| item.text.len() <= room && (item.notes.is_empty() || item.text != "{}")) {
                Some((item, at)) => (fitted, Some((at, item))),
                None => (fit(value, limit), None),
            };
        let mut note = fitted.notes.join("; ");
        if let Some((at, item)) = &last {
            let cut = if item.notes.is_empty() { "" } else { ", cut," };
            let _ = write!(note, "; {at}{cut} is shown at the end");
        }
        let _ = write!(note, ". Its shape is {}", shape(value));
        Self { shown: fitted.text, note, last: last.map(|(at, item)| (at, item.text)) }
    }
}

/// Twelve hex digits that do not occur in `content`, so that its author cannot write the end of the block.
fn marker(content: &str) -> String {
    let mut digest = hash::sha256_hex(content.as_bytes());
    loop {
        let marker: String = digest.chars().take(12).collect();
        if !content.contains(&marker) {
            return marker;
        }
        digest = hash::sha256_hex(digest.as_bytes());
    }
}

fn unseen(c: char) -> bool {
    alert::hidden(c)
        || matches!(c, '\u{2028}' | '\u{2029}' | '\u{180e}' | '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}'
            | '\u{fe00}'..='\u{fe0f}' | '\u{e0080}'..='\u{e0fff}')
}

/// Where the first character begins that must be changed. Plain text is printable ASCII, line ends and tabs, without
/// the bytes in `also`.
fn plain(text: &str, also: &[u8]) -> usize {
    let plain = |b: &u8| matches!(b, b' '..=b'~' | b'\n' | b'\r' | b'\t') && !also.contains(b);
    text.as_bytes().iter().position(|b| !plain(b)).unwrap_or(text.len())
}

fn copied(text: &str, also: &[u8], mut other: impl FnMut(&mut String, char)) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 16);
    let mut rest = text;
    loop {
        let (copied, left) = rest.split_at(plain(rest, also));
        out.push_str(copied);
        let mut chars = left.chars();
        let Some(c) = chars.next() else { return out };
        other(&mut out, c);
        rest = chars.as_str();
    }
}

/// `text` with hidden characters written as `\u{202e}`. Line ends and tabs stay.
pub fn visible(text: &str) -> String {
    copied(text, b"\r", push_visible)
}

fn push_visible(out: &mut String, c: char) {
    if unseen(c) {
        let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
    } else {
        out.push(c);
    }
}

fn push_json_escape(out: &mut String, c: char) {
    let mut units = [0; 2];
    for unit in c.encode_utf16(&mut units) {
        let _ = write!(out, "\\u{unit:04x}");
    }
}

/// JSON with the same meaning, in which hidden characters are escaped, and `<` if `angle` is set. Such characters
/// occur only inside strings.
fn escape_json(json: &str, angle: bool) -> String {
    let also: &[u8] = if angle { b"<" } else { b"" };
    copied(json, also, |out, c| match c {
        '<' if angle => push_json_escape(out, c),
        c if unseen(c) => push_json_escape(out, c),
        c => out.push(c),
    })
}

#[cfg(test)]
mod tests;
