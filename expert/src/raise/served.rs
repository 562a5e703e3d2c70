//! Text that addresses the investigator in results of MCP servers, in any field.

use casebook_agent::reasoner::Done;
use casebook_protocol::tool::server_of;
use casebook_protocol::{CallId, CallStatus, Citation, FindingDraft, Locator};
use casebook_trust::check::place::step;
use serde_json::Value;

use super::{QUOTE, addresses, distinct, letters, window};
use casebook_trust::injection;

/// Bytes read of one result; no stored result is larger.
const READ: usize = 16 << 20;

/// In the order of the calls.
pub(super) fn texts(done: &[Done]) -> Vec<FindingDraft> {
    let served = done.iter().filter(|d| d.call.status == CallStatus::Answered && server_of(&d.call.tool).is_some());
    let all = served.flat_map(|done| leaves(&done.result).into_iter().map(|(at, text)| (&done.call.id, at, text)));
    distinct(all.filter_map(|(call, at, text)| {
        let wants = injection::wants(&text)?;
        Some((letters(&text), draft(call, at, &text, wants)))
    }))
}

/// The texts of a result with their places. Texts with several lines are split.
fn leaves(result: &str) -> Vec<(Locator, String)> {
    let mut all = Vec::new();
    let mut left = READ;
    match serde_json::from_str::<Value>(result) {
        Ok(json) => collect(&json, "", &mut left, &mut all),
        Err(_) => {
            for (line, n) in result.lines().zip(1..) {
                take(Locator::Line(n), line, &mut left, &mut all);
            }
        }
    }
    all
}

fn collect(value: &Value, path: &str, left: &mut usize, all: &mut Vec<(Locator, String)>) {
    match value {
        Value::String(text) => {
            let lines = text.lines().filter(|line| !line.trim().is_empty());
            lines.for_each(|line| take(Locator::Pointer(path.to_owned()), line, left, all));
        }
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(i, item)| collect(item, &format!("{path}/{i}"), left, all));
        }
        Value::Object(map) => {
            for (key, item) in map {
                take(Locator::Pointer(path.to_owned()), key, left, all);
                collect(item, &format!("{path}/{}", step(key)), left, all);
            }
        }
        Value::Number(_) | Value::Bool(_) | Value::Null => {}
    }
}

fn take(at: Locator, text: &str, left: &mut usize, all: &mut Vec<(Locator, String)>) {
    if *left > 0 {
        *left = left.saturating_sub(text.len());
        all.push((at, text.to_owned()));
    }
}

fn draft(call: &CallId, at: Locator, text: &str, wants: &str) -> FindingDraft {
    let shown = if text.chars().count() > QUOTE { window(text) } else { text.to_owned() };
    let claim = format!("Text in what an MCP server returned addresses the analyst: {wants}.");
    addresses(claim, Citation::Literal { call: call.clone(), at, quote: shown })
}
