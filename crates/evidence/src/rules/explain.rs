//! Why a rule did or did not match a record, part by part.

use serde_json::Value;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explained {
    pub matched: bool,
    pub parts: Vec<ExplainedPart>,
}

/// A selection, a field or a combination of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExplainedPart {
    /// How many parts contain this one.
    pub depth: usize,
    pub matched: bool,
    pub what: String,
}

const VALUE_MAX: usize = 200;

/// The parts of a trace of the library.
pub(super) fn parts(trace: &Value) -> Vec<ExplainedPart> {
    let mut all = Vec::new();
    condition(trace, 0, &mut all);
    all
}

fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value[key].as_str().unwrap_or_default()
}

fn list<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    value[key].as_array().map(Vec::as_slice).unwrap_or_default()
}

fn put(trace: &Value, depth: usize, what: String, all: &mut Vec<ExplainedPart>) {
    all.push(ExplainedPart { depth, matched: trace["matched"].as_bool().unwrap_or(false), what });
}

fn condition(trace: &Value, depth: usize, all: &mut Vec<ExplainedPart>) {
    match text(trace, "type") {
        "selection" => {
            put(trace, depth, text(trace, "name").to_owned(), all);
            detection(&trace["detection"], depth + 1, all);
        }
        kind @ ("and" | "or") => {
            let what = if kind == "and" { "all of" } else { "one of" };
            put(trace, depth, what.to_owned(), all);
            list(trace, "children").iter().for_each(|child| condition(child, depth + 1, all));
        }
        "not" => {
            put(trace, depth, "not".to_owned(), all);
            condition(&trace["child"], depth + 1, all);
        }
        _ => {
            let what = format!("{} of {} selections", text(trace, "quantifier"), list(trace, "branches").len());
            put(trace, depth, what, all);
            for branch in list(trace, "branches") {
                put(branch, depth + 1, text(branch, "name").to_owned(), all);
                detection(&branch["detection"], depth + 2, all);
            }
        }
    }
}

fn detection(trace: &Value, depth: usize, all: &mut Vec<ExplainedPart>) {
    match text(trace, "type") {
        "all_of" => list(trace, "items").iter().for_each(|each| item(each, depth, all)),
        kind @ ("any_of" | "and") => {
            if kind == "any_of" {
                put(trace, depth, "one of".to_owned(), all);
            }
            list(trace, "branches").iter().for_each(|branch| detection(branch, depth + 1, all));
        }
        "keywords" => item(&trace["item"], depth, all),
        other => put(trace, depth, other.to_owned(), all),
    }
}

fn item(trace: &Value, depth: usize, all: &mut Vec<ExplainedPart>) {
    let shown = |value: &Value| match value {
        Value::String(text) => format!("\"{}\"", casebook_protocol::one_line(text, VALUE_MAX)),
        other => casebook_protocol::one_line(&other.to_string(), VALUE_MAX),
    };
    let wanted = match trace["pattern"].as_str() {
        Some(pattern) => format!("{} {}", text(trace, "matcher"), shown(&Value::String(pattern.to_owned()))),
        None => text(trace, "matcher").to_owned(),
    };
    let what = match (trace["field"].as_str(), &trace["actual"]) {
        (None, _) => format!("the record: {wanted}"),
        (Some(field), Value::Null) => format!("{field}: {wanted}; the record does not have the field"),
        (Some(field), actual) => format!("{field}: {wanted}; the record has {}", shown(actual)),
    };
    put(trace, depth, what, all);
}
