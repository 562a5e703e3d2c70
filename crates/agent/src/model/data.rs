//! How material reaches a model: sections of a first message, and tool results. Both may hold text
//! that an attacker wrote, so nothing in them can end the block that it stands in, and characters that
//! show nothing are shown as escapes (rule 3.7).

use std::fmt::Write;

use casebook_protocol::tool::{RESULT_TOOLS, server_of};
use casebook_protocol::{CallStatus, ToolCall, alert, hash, one_line};
use serde_json::Value;

use crate::results::shape;

mod cut;
mod quote;

pub(crate) use cut::head;
pub use cut::{Shortened, fit};
pub use quote::recorded_quote;

/// A section whose content is one JSON document. Every `<` in it is written `\u003c`, so that no text
/// inside can close a section; it stays the same document.
pub fn section(name: &str, content: &Value) -> String {
    format!("<{name}>\n{}\n</{name}>\n", escape_json(&content.to_string(), true))
}

/// A section whose content is text, with `<` and `>` escaped as in JSON.
pub fn text_section(name: &str, content: &str) -> String {
    let text = copied(content.trim_end_matches('\n'), b"\r\t<>", |out, c| match c {
        '<' | '>' => push_json_escape(out, c),
        c => push_visible(out, c),
    });
    format!("<{name}>\n{text}\n</{name}>\n")
}

/// The result of `call`, whose whole recorded text is `text`, as the model reads it: one line that
/// says what it is, and the data in a block whose marker follows from the data. A result over `limit`
/// bytes is cut where JSON or lines allow it: the first line says what shape the whole has, what was left
/// out and how to reach it, with the tools that look into results where the task has them (`looks`), and
/// the last item of a list that was cut has a block of its own.
/// The same result gives the same text, so that a replay asks the same.
pub fn result(call: &ToolCall, text: &str, limit: usize, looks: bool) -> String {
    let tool = one_line(&call.tool, 80).replace(['<', '>', '(', ')'], "?");
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
            let rest = rest(call, &tool, looks);
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

/// How the rest of a result is reached.
fn rest(call: &ToolCall, tool: &str, looks: bool) -> String {
    let again = format!("call {tool} again for less: narrower conditions or times, a smaller limit, the next offset");
    if !looks || RESULT_TOOLS.contains(&call.tool.as_str()) {
        return format!("To see the rest {again}");
    }
    let looked = format!("To see the rest look into call {} with {}", call.id, RESULT_TOOLS.join(", "));
    // What narrows a query down is known of our own tools.
    if server_of(&call.tool).is_some() { looked } else { format!("{looked}, or {again}") }
}

struct Cut {
    shown: String,
    /// What was left out, and the shape of the whole.
    note: String,
    /// The last item of the list of which most was left out, with its pointer.
    last: Option<(String, String)>,
}

/// Of the room for a result, the part for the last item of a list.
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
        // The line that names it is ours: a name that somebody may have chosen does not stand in it.
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
            let _ = write!(note, "; {at}{cut} stands at the end");
        }
        let _ = write!(note, ". Its shape is {}", shape(value));
        Self { shown: fitted.text, note, last: last.map(|(at, item)| (at, item.text)) }
    }
}

/// Twelve hex digits that do not occur in `content`: whoever writes the content cannot write the end
/// of its block.
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

/// Shows nothing, or changes how what is around it is shown.
fn unseen(c: char) -> bool {
    alert::hidden(c)
        || matches!(c, '\u{2028}' | '\u{2029}' | '\u{180e}' | '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}'
            | '\u{fe00}'..='\u{fe0f}' | '\u{e0080}'..='\u{e0fff}')
}

/// Where a text begins that is not plain: printable ASCII, line ends and tabs, but for `also`. What is
/// plain is copied in one, and nearly everything is.
fn plain(text: &str, also: &[u8]) -> usize {
    let plain = |b: &u8| matches!(b, b' '..=b'~' | b'\n' | b'\r' | b'\t') && !also.contains(b);
    text.as_bytes().iter().position(|b| !plain(b)).unwrap_or(text.len())
}

/// Copies `text`, with each character that is not [`plain`] passed to `other`.
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

/// `text` with what shows nothing written as `\u{202e}`; line ends and tabs stay.
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

/// JSON text that means the same, with JSON's own escapes for what shows nothing, and for `<` where
/// `angle` is set. Such characters occur inside strings only, white space between tokens aside.
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
