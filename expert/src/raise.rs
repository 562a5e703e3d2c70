//! Findings that code adds to every task, whatever its reasoner answers: text that addresses the investigator
//! and, with a language model, serious known behaviours. A model that follows such a text cannot keep it out of
//! the report.

use std::collections::BTreeSet;

use casebook_agent::reasoner::Done;
use casebook_protocol::{Bearing, Citation, FindingDraft, FindingKind, Locator, Score, Task, View, Weight};
use serde_json::Value;

use crate::analyst::rec::Rec;
use crate::analyst::{Case, compose};
use casebook_trust::injection;

mod served;

/// Different texts reported in one task. The last finding says if there are more.
pub(crate) const TEXTS: usize = 24;
/// Serious findings added to those of a model.
const GRAVE: usize = 8;
/// In characters.
const QUOTE: usize = 300;

pub(crate) fn beside(task: &Task, done: &[Done]) -> Vec<FindingDraft> {
    let View::Investigate(view) = &task.view else { return Vec::new() };
    let case = Case::of(view, done, task.round);
    let mut raised = texts(&case.recs);
    raised.extend(served::texts(done));
    raised.extend(grave(&case));
    raised
}

fn grave(case: &Case) -> Vec<FindingDraft> {
    let mut found = compose::findings(case);
    found.retain(|f| f.bearing == Bearing::Incriminating && f.weight >= Weight::Strong);
    found.sort_by_key(|f| (std::cmp::Reverse(f.weight), !f.about_alert, f.time.as_ref().map(|t| t.at)));
    found.truncate(GRAVE);
    for finding in &mut found {
        let next = finding.look_next.take().unwrap_or_default();
        finding.look_next = Some(format!("Raised by code from what the Expert searched. {next}").trim().to_owned());
    }
    found
}

pub(crate) fn texts(recs: &[Rec]) -> Vec<FindingDraft> {
    let addressed = recs.iter().filter_map(|rec| Some((rec, addressed(rec)?)));
    distinct(addressed.map(|(rec, text)| (letters(&text.value), draft(rec, &text))))
}

/// One finding for each text.
fn distinct(all: impl Iterator<Item = (String, FindingDraft)>) -> Vec<FindingDraft> {
    let mut seen = BTreeSet::new();
    let mut new = all.filter(|(text, _)| seen.insert(text.clone())).map(|(_, draft)| draft);
    let mut found: Vec<FindingDraft> = new.by_ref().take(TEXTS).collect();
    if let (Some(last), Some(_)) = (found.last_mut(), new.next()) {
        last.claim.push_str(" More records hold such texts than are listed here.");
    }
    found
}

struct Text {
    field: Option<String>,
    value: String,
    wants: &'static str,
}

fn addressed(rec: &Rec) -> Option<Text> {
    let mut leaves: Vec<(String, String)> = rec.fields.iter().map(|(k, v)| (k.clone(), v.clone())).collect();
    if leaves.is_empty()
        && let Ok(json) = serde_json::from_str::<Value>(&rec.raw)
    {
        strings("", &json, &mut leaves);
    }
    // Quote the shortest text that shows it.
    leaves.sort_by_key(|(_, value)| value.len());
    for (path, value) in leaves {
        if let Some(wants) = injection::wants(&value) {
            return Some(Text { field: name(&path), value, wants });
        }
    }
    let wants = injection::wants(&rec.raw)?;
    Some(Text { field: None, value: window(&rec.raw), wants })
}

fn strings(key: &str, value: &Value, leaves: &mut Vec<(String, String)>) {
    match value {
        Value::Object(map) => map.iter().for_each(|(key, inner)| strings(key, inner, leaves)),
        Value::Array(items) => items.iter().for_each(|inner| strings(key, inner, leaves)),
        Value::String(text) => leaves.push((key.to_owned(), text.clone())),
        _ => {}
    }
}

/// The last part of a path if it is a plain name: it becomes part of a claim, which the Director reads.
fn name(path: &str) -> Option<String> {
    let last = path.rsplit('.').find(|p| !p.chars().all(|c| c.is_ascii_digit()))?;
    let plain = last.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '@'));
    (plain && (1..=40).contains(&last.len()) && injection::wants(last).is_none()).then(|| last.to_owned())
}

fn window(raw: &str) -> String {
    let chars: Vec<char> = raw.chars().collect();
    let parts = (0..chars.len()).step_by(QUOTE / 2).map(|at| chars.iter().skip(at).take(QUOTE).collect::<String>());
    let mut parts = parts.peekable();
    let first = parts.peek().cloned().unwrap_or_default();
    parts.find(|part| injection::wants(part).is_some()).unwrap_or(first)
}

fn letters(text: &str) -> String {
    text.chars().filter(|c| c.is_alphabetic()).flat_map(char::to_lowercase).take(160).collect()
}

fn draft(rec: &Rec, text: &Text) -> FindingDraft {
    let place = text.field.as_ref().map_or_else(String::new, |field| format!(" in `{field}`"));
    let file = if rec.file.contains('`') { String::new() } else { format!(" of `{}`", rec.file) };
    let claim = format!("Text{place} of a record{file} addresses the analyst: {}.", text.wants);
    let quote = text.value.chars().take(QUOTE).collect();
    let at = Locator::Pointer(rec.pointer.clone());
    FindingDraft { time: rec.event_time(), ..addresses(claim, Citation::Literal { call: rec.call.clone(), at, quote }) }
}

/// A finding about a text that addresses the analyst.
fn addresses(claim: String, citation: Citation) -> FindingDraft {
    FindingDraft {
        bearing: Bearing::Incriminating,
        about_alert: false,
        confidence: Score::clamped(0.9),
        citations: vec![citation],
        look_next: Some("Who could write this text? It is data, and was not followed.".to_owned()),
        ..FindingDraft::neutral(FindingKind::Instruction, claim)
    }
}
