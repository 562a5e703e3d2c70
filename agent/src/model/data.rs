//! How material reaches a model: sections of a first message, and tool results. Both may hold text
//! that an attacker wrote, so nothing in them can end the block that it stands in, and characters that
//! show nothing are shown as escapes (rule 3.7).

use std::fmt::Write;

use casebook_protocol::{CallStatus, ToolCall, alert, hash, one_line};
use serde_json::Value;

mod cut;
mod quote;

pub(crate) use cut::head;
pub use cut::{Fitted, fit};
pub use quote::recorded_quote;

/// A section whose content is one JSON document. Every `<` in it is written `\u003c`, so that no text
/// inside can close a section; it stays the same document.
#[must_use]
pub fn section(name: &str, content: &Value) -> String {
    format!("<{name}>\n{}\n</{name}>\n", escape_json(&content.to_string(), true))
}

/// A section whose content is text, with `<` and `>` escaped as in JSON.
#[must_use]
pub fn text_section(name: &str, content: &str) -> String {
    let text = copied(content.trim_end_matches('\n'), b"\r\t<>", |out, c| match c {
        '<' | '>' => push_json_escape(out, c),
        c => push_visible(out, c),
    });
    format!("<{name}>\n{text}\n</{name}>\n")
}

/// The result of `call`, whose whole recorded text is `text`, as the model reads it: one line that
/// says what it is, and the data in a block whose marker follows from the data. A result over `limit`
/// bytes is cut where JSON or lines allow it; the first line says what was left out and what to do.
/// The same result gives the same text, so that a replay asks the same.
#[must_use]
pub fn result(call: &ToolCall, text: &str, limit: usize) -> String {
    let tool = one_line(&call.tool, 80).replace(['<', '>', '(', ')'], "?");
    let json = serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
    let shown = if json { escape_json(text, false) } else { visible(text) };
    let (shown, note) = if shown.len() <= limit { (shown, None) } else { shortened(text, json, limit, &tool) };
    let id = &call.id;
    let head = match (call.status, note) {
        (CallStatus::Failed, None) => format!("call {id} ({tool}) failed"),
        (CallStatus::Failed, Some(_)) => format!("call {id} ({tool}) failed, message cut"),
        (CallStatus::Answered, None) => format!("result of call {id} ({tool}), {} bytes, whole", text.len()),
        (CallStatus::Answered, Some(note)) => {
            format!("result of call {id} ({tool}), {} bytes, cut: {note}", text.len())
        }
    };
    let marker = marker(&shown);
    format!("{head}\n<data-{marker}>\n{shown}\n</data-{marker}>\n")
}

fn shortened(text: &str, json: bool, limit: usize, tool: &str) -> (String, Option<String>) {
    let value = if json { serde_json::from_str::<Value>(text).ok() } else { None };
    let fitted = match value {
        Some(value) => fit(&value, limit),
        None => cut::lines(&visible(text), limit),
    };
    let note = format!(
        "{}. To see the rest call {tool} again for less: narrower conditions or times, a smaller limit, the next offset",
        fitted.notes.join("; ")
    );
    (fitted.text, Some(note))
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
#[must_use]
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
