//! The cost of checking arguments against a schema.

use std::collections::BTreeMap;

use serde_json::Value;

/// The largest schema of an offered tool, in bytes.
pub(super) const SCHEMA: usize = 64 * 1024;
/// The most steps to follow all references of a schema.
const STEPS: u64 = 20_000;

/// Checks that arguments can be checked against `schema` in bounded time, since a running check cannot be stopped.
pub(super) fn bounded(schema: &Value) -> Result<(), String> {
    let bytes = schema.to_string().len();
    if bytes > SCHEMA {
        return Err(format!("its schema has {bytes} bytes, more than {SCHEMA}"));
    }
    let mut known = BTreeMap::new();
    match steps(schema, schema, &mut known, 0) {
        Some(steps) if steps <= STEPS => Ok(()),
        _ => Err("its schema refers to itself, or to other parts too often, to be checked in bounded time".to_owned()),
    }
}

/// The steps below `value`; none if a reference is circular, external or too deep.
fn steps(root: &Value, value: &Value, known: &mut BTreeMap<String, Option<u64>>, depth: u32) -> Option<u64> {
    if depth > 200 {
        return None;
    }
    match value {
        Value::Array(items) => {
            items.iter().try_fold(1_u64, |n, item| Some(n.saturating_add(steps(root, item, known, depth + 1)?)))
        }
        Value::Object(map) => map.iter().try_fold(1_u64, |n, (key, item)| {
            let below = match (key.as_str(), item.as_str()) {
                ("$ref" | "$dynamicRef" | "$recursiveRef", Some(to)) => followed(root, to, known, depth)?,
                // These are counted where they are referred to.
                ("$defs" | "definitions", _) => 1,
                _ => steps(root, item, known, depth + 1)?,
            };
            Some(n.saturating_add(below))
        }),
        _ => Some(1),
    }
}

fn followed(root: &Value, to: &str, known: &mut BTreeMap<String, Option<u64>>, depth: u32) -> Option<u64> {
    if let Some(steps) = known.get(to) {
        return *steps;
    }
    // Until the result is known, a reference back here is circular.
    known.insert(to.to_owned(), None);
    let target = root.pointer(to.strip_prefix('#')?)?;
    let found = steps(root, target, known, depth + 1);
    known.insert(to.to_owned(), found);
    found
}
