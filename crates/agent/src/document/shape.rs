//! The shape of a file: its schema, and each way in which a file departs from it, in words.

use std::collections::BTreeSet;

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{ValidationError, Validator};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value;

use super::{Document, nearest, shown};
use crate::fault::ConfigFault;

/// The JSON Schema (draft 2020-12) of `T` as it is written, with nothing to look up elsewhere in it.
#[must_use]
pub fn schema<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().for_deserialize().with(|s| s.inline_subschemas = true);
    settings.into_generator().into_root_schema_for::<T>().to_value()
}

/// Each way in which `value`, at `base` of `document`, departs from the shape of `T`.
pub(super) fn faults<T: JsonSchema>(document: &Document, base: &[&str], value: &Value) -> Vec<ConfigFault> {
    let schema = schema::<T>();
    let Ok(validator) = Validator::options().with_draft(jsonschema::Draft::Draft202012).build(&schema) else {
        return vec![
            document.fault(base, "cannot be checked: its schema does not hold, which is a defect of casebook"),
        ];
    };
    let mut seen = BTreeSet::new();
    let mut faults = Vec::new();
    for error in validator.iter_errors(value) {
        let pointer = error.instance_path().as_str();
        let steps: Vec<String> = pointer.split('/').skip(1).map(unescaped).collect();
        let mut path = base.to_vec();
        path.extend(steps.iter().map(String::as_str));
        for fault in told(document, &path, &schema, &error) {
            if seen.insert((fault.line, fault.what.clone())) {
                faults.push(fault);
            }
        }
    }
    faults
}

fn unescaped(step: &str) -> String {
    step.replace("~1", "/").replace("~0", "~")
}

fn told(document: &Document, path: &[&str], schema: &Value, error: &ValidationError<'_>) -> Vec<ConfigFault> {
    let rule = error.schema_path().as_str();
    let help = help(schema, rule);
    let one = |what: String| vec![document.fault(path, what)];
    match error.kind() {
        ValidationErrorKind::AdditionalProperties { unexpected } => {
            let known = known(schema, rule);
            unexpected.iter().map(|key| unknown(document, path, key, &known)).collect()
        }
        ValidationErrorKind::Required { property } => {
            let key = property.as_str().unwrap_or_default();
            let about = below(schema, rule).and_then(|at| at.get("properties")?.get(key)?.get("description")?.as_str());
            let about = about.map_or_else(String::new, |about| format!(": write {}", tail(about)));
            vec![document.fault(&[path, &[key]].concat(), format!("is missing{about}"))]
        }
        ValidationErrorKind::Type { kind } => {
            one(format!("is {}, and must be {}{help}", noun(error.instance()), wanted(kind)))
        }
        ValidationErrorKind::Enum { options } => {
            let names: Vec<_> = options.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
            one(format!("is none of {}{help}", names.join(", ")))
        }
        ValidationErrorKind::Minimum { limit } => one(format!("is too small: write {limit} or more{help}")),
        ValidationErrorKind::Maximum { limit } => one(format!("is too large: write {limit} or less{help}")),
        ValidationErrorKind::MinLength { .. } | ValidationErrorKind::MinItems { .. } => one(format!("is empty{help}")),
        ValidationErrorKind::MaxLength { limit } => one(format!("is longer than {limit} characters{help}")),
        ValidationErrorKind::MaxItems { limit } | ValidationErrorKind::MaxProperties { limit } => {
            one(format!("has more than {limit} entries{help}"))
        }
        _ => one(format!("is not what may stand here{help}")),
    }
}

fn unknown(document: &Document, path: &[&str], key: &str, known: &[&str]) -> ConfigFault {
    let mut at = path.to_vec();
    at.push(key);
    let advice = match nearest(key, known.iter().copied()) {
        Some(near) => format!("write {near}"),
        None => format!("write one of {}", known.join(", ")),
    };
    let place = if path.is_empty() { "the file".to_owned() } else { shown(path) };
    document.fault(&at, format!("is no key of {place}: {advice}"))
}

/// The schema that holds the keyword to which `rule` points.
fn below<'a>(schema: &'a Value, rule: &str) -> Option<&'a Value> {
    schema.pointer(rule.rsplit_once('/')?.0)
}

fn known<'a>(schema: &'a Value, rule: &str) -> Vec<&'a str> {
    let keys = below(schema, rule).and_then(|at| at.get("properties")?.as_object());
    keys.into_iter().flat_map(|keys| keys.keys().map(String::as_str)).collect()
}

/// What the nearest description on the way to `rule` says is to be written.
fn help(schema: &Value, rule: &str) -> String {
    let about = below(schema, rule).and_then(|at| at.get("description")?.as_str());
    about.map_or_else(String::new, |about| format!(": write {}", tail(about)))
}

/// A description within a sentence.
fn tail(about: &str) -> String {
    let about = about.split("\n\n").next().unwrap_or(about).replace('\n', " ");
    let about = about.trim_end_matches('.');
    let mut chars = about.chars();
    let first: String = chars.next().into_iter().flat_map(char::to_lowercase).collect();
    first + chars.as_str()
}

fn noun(value: &Value) -> &'static str {
    match value {
        Value::Null => "empty",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a map",
    }
}

fn wanted(kind: &TypeKind) -> String {
    let name = |kind: jsonschema::JsonType| match kind {
        jsonschema::JsonType::Null => "empty",
        jsonschema::JsonType::Boolean => "true or false",
        jsonschema::JsonType::Integer => "a whole number",
        jsonschema::JsonType::Number => "a number",
        jsonschema::JsonType::String => "a text",
        jsonschema::JsonType::Array => "a list",
        jsonschema::JsonType::Object => "a map",
    };
    match kind {
        TypeKind::Single(kind) => name(*kind).to_owned(),
        TypeKind::Multiple(kinds) => {
            let some = kinds.iter().filter(|kind| *kind != jsonschema::JsonType::Null);
            some.map(name).collect::<Vec<_>>().join(" or ")
        }
    }
}
