//! Turns an error of form into one sentence: the key, what is wrong, and what to write instead.

use serde_json::Value;
use serde_path_to_error::{Path, Segment};

use crate::near::nearest;

/// Texts of the readers, and the words that users see.
const EXPECTED: [(&str, &str); 16] = [
    ("expected sequence", "expected a list"),
    ("a sequence", "expected a list"),
    ("expected mapping", "expected a map"),
    ("struct ", "expected a map"),
    ("expected end of mapping after enum", "expected one key alone"),
    ("expected string key", "expected one key"),
    ("expected string", "expected a text"),
    ("a string", "expected a text"),
    ("cannot deserialize null", "expected a text"),
    ("invalid boolean", "expected true or false"),
    ("a boolean", "expected true or false"),
    ("invalid u", "expected a whole number in its range"),
    ("u8", "expected a whole number in its range"),
    ("u32", "expected a whole number in its range"),
    ("u64", "expected a whole number in its range"),
    ("f64", "expected a number"),
];

pub(super) fn steps(path: &Path) -> Vec<String> {
    let step = |segment: &Segment| match segment {
        Segment::Seq { index } => Some(index.to_string()),
        Segment::Map { key } | Segment::Enum { variant: key } => Some(key.clone()),
        Segment::Unknown => None,
    };
    path.iter().filter_map(step).collect()
}

pub(super) fn sentence(error: &str, path: &Path, schema: &Value) -> String {
    let mut steps = steps(path);
    // The part about the found value is dropped: it may be a secret.
    let expected = match error.split_once(": ") {
        Some(("invalid type" | "invalid value", rest)) => rest.rsplit_once(", expected ").map(|(_, expected)| expected),
        _ => None,
    };
    let noun = EXPECTED.iter().find(|(start, _)| expected.unwrap_or(error).starts_with(start)).map(|(_, noun)| *noun);
    let what = if let Some(rest) = error.strip_prefix("unknown field `") {
        let (field, known) = rest.split_once('`').unwrap_or((rest, ""));
        if steps.last().is_none_or(|last| last != field) {
            steps.push(field.to_owned());
        }
        let known = names(known);
        match nearest(field, known.iter().copied()) {
            Some(near) => format!("unknown key; write {near}"),
            None => format!("unknown key; write one of {}", known.join(", ")),
        }
    } else if let Some(rest) = error.strip_prefix("missing field `") {
        steps.push(rest.trim_end_matches('`').to_owned());
        format!("is missing{}", help(schema, &steps))
    } else if error.starts_with("unknown variant") {
        let known = error.rsplit_once(", expected ").map_or("", |(_, known)| known);
        format!("expected one of {}{}", names(known).join(", "), help(schema, &steps))
    } else if let Some(noun) = noun {
        format!("{noun}{}", help(schema, &steps))
    } else if let Some(expected) = expected {
        format!("expected {expected}{}", help(schema, &steps))
    } else {
        casebook_protocol::one_line(error, 300)
    };
    let steps: Vec<&str> = steps.iter().map(String::as_str).collect();
    format!("{}: {what}", place(&steps))
}

pub(super) fn place(steps: &[&str]) -> String {
    if steps.is_empty() {
        return "the file".to_owned();
    }
    steps.iter().map(|step| casebook_protocol::one_line(step, 80)).collect::<Vec<_>>().join(".")
}

/// The names in a list such as "one of `a`, `b`" or "`a` or `b`".
fn names(list: &str) -> Vec<&str> {
    let list = list.trim_start_matches(", expected ").trim_start_matches("one of ");
    list.split(", ").flat_map(|part| part.split(" or ")).map(|name| name.trim_matches('`')).collect()
}

/// What to write at `steps`, from the description in the schema.
fn help(schema: &Value, steps: &[String]) -> String {
    let found = steps.iter().try_fold(schema, |at, step| below(at, step));
    let about = found.and_then(|at| at.get("description")?.as_str());
    let Some(about) = about else { return String::new() };
    let about = about.split("\n\n").next().unwrap_or(about).replace('\n', " ");
    let mut chars = about.trim_end_matches('.').chars();
    let first: String = chars.next().into_iter().flat_map(char::to_lowercase).collect();
    format!("; write {first}{}", chars.as_str())
}

fn below<'a>(schema: &'a Value, step: &str) -> Option<&'a Value> {
    let key = |key: &str| schema.get(key).filter(|inner| inner.is_object());
    let named = schema.get("properties").and_then(|all| all.get(step));
    let found = named.or_else(|| key("additionalProperties")).or_else(|| key("items"));
    let ways = ["anyOf", "oneOf"].into_iter().filter_map(|key| schema.get(key)?.as_array()).flatten();
    found.or_else(|| ways.into_iter().find_map(|one| below(one, step)))
}
