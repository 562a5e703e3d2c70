//! Checks what a count or an absence shows: the query, its sources and its window.

use serde_json::Value;

use super::Exhibit;
use crate::claim::Corpus;
use casebook_protocol::{CitationCheck, Timestamp};

/// An absence holds for all conditions of a query together. If a query requires several terms or values, the
/// claim must name all of them.
pub(super) fn asked_for(exhibit: &Exhibit, claim: &str) -> Result<(), String> {
    let Ok(arguments) = serde_json::from_str::<Value>(&exhibit.call.arguments) else { return Ok(()) };
    let any = arguments.get("mode").and_then(Value::as_str) == Some("any");
    let terms = arguments.get("terms").and_then(Value::as_array).filter(|t| !any && t.len() > 1);
    let conditions = arguments.get("where").map(values_in).unwrap_or_default();
    let claim = claim.to_lowercase();
    let required = terms.into_iter().flatten().flat_map(values_in).chain(conditions);
    match required.into_iter().find(|value| !claim.contains(&value.to_lowercase())) {
        None => Ok(()),
        Some(value) => Err(format!(
            "the query also required {:?}, which the claim does not name: it shows only that they do not occur together",
            casebook_protocol::one_line(&value, 80)
        )),
    }
}

fn values_in(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone()],
        Value::Number(number) => vec![number.to_string()],
        Value::Array(items) => items.iter().flat_map(values_in).collect(),
        Value::Object(map) => map
            .iter()
            .filter(|(key, _)| !matches!(key.as_str(), "op" | "field"))
            .flat_map(|(_, item)| values_in(item))
            .collect(),
        Value::Bool(_) | Value::Null => Vec::new(),
    }
}

/// Adds the arguments of the call and the sources that it searched: a count or an absence is about them.
pub(super) fn queried(exhibit: &Exhibit, corpus: &mut Corpus, check: &mut CitationCheck) -> Result<(), String> {
    match serde_json::from_str::<Value>(&exhibit.call.arguments) {
        Ok(arguments) => corpus.add_query(&arguments),
        Err(_) => corpus.add_text(&exhibit.call.arguments),
    }
    if exhibit.served() {
        check.sources.push(super::served::source(exhibit));
        return Ok(());
    }
    let searched = exhibit.json.as_ref().and_then(|j| j.get("searched")).and_then(Value::as_array);
    match searched {
        Some(sources) if sources.is_empty() => return Err("no source was searched".to_owned()),
        Some(sources) => check.sources.extend(sources.iter().filter_map(Value::as_str).map(str::to_owned)),
        None => check.sources.push(exhibit.call.tool.clone()),
    }
    Ok(())
}

pub(super) fn covers(exhibit: &Exhibit, from: Option<Timestamp>, to: Option<Timestamp>) -> Result<(), String> {
    let edge =
        |key: &str| -> Option<Timestamp> { exhibit.json.as_ref()?.get("window")?.get(key)?.as_str()?.parse().ok() };
    let early_enough = match (edge("from"), from) {
        (None, _) => true,
        (Some(searched), Some(claimed)) => searched <= claimed,
        (Some(_), None) => false,
    };
    let late_enough = match (edge("to"), to) {
        (None, _) => true,
        (Some(searched), Some(claimed)) => searched >= claimed,
        (Some(_), None) => false,
    };
    if early_enough && late_enough {
        Ok(())
    } else {
        Err("the absence is claimed over a window that was not searched".to_owned())
    }
}
