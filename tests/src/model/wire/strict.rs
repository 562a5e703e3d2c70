//! The rules for schemas that a provider is asked to enforce: the strictest subset that all of them
//! take (closed objects, every field required, no limits, no `oneOf`). Anthropic alone would take
//! optional fields, and OpenAI's newest models some limits; fine-tuned models and compatible servers
//! take neither.

use serde_json::Value;

/// Keywords that may stand in a schema.
const KNOWN: [&str; 12] = [
    "type",
    "description",
    "enum",
    "const",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "anyOf",
    "$ref",
    "$defs",
    "definitions",
];
/// Objects and arrays may be nested so deep.
const DEEPEST: usize = 10;

/// What is wrong with a schema that is to be enforced; none if it may be.
pub(super) fn fault(schema: &Value) -> Option<String> {
    let of = |key: &str| schema.get(key);
    if of("type").and_then(Value::as_str) != Some("object") || of("anyOf").is_some() {
        return Some("schema must be a JSON Schema of 'type: \"object\"' and must not use 'anyOf' at its top".into());
    }
    within(schema, &mut Vec::new(), 0)
}

fn within<'a>(schema: &'a Value, path: &mut Vec<&'a str>, depth: usize) -> Option<String> {
    let context = |path: &[&str]| format!("In context=({})", path.join(", "));
    let Some(map) = schema.as_object() else {
        return Some(format!("{}, schema must be an object", context(path)));
    };
    if depth > DEEPEST {
        return Some(format!("{}, the schema is nested deeper than {DEEPEST} levels", context(path)));
    }
    if let Some(key) = map.keys().find(|key| !KNOWN.contains(&key.as_str())) {
        return Some(format!("{}, '{key}' is not permitted", context(path)));
    }
    if !map.keys().any(|key| matches!(key.as_str(), "type" | "enum" | "const" | "anyOf" | "$ref")) {
        return Some(format!("{}, schema must have a 'type' key", context(path)));
    }
    let is = |name: &str| match map.get("type") {
        Some(Value::String(one)) => one == name,
        Some(Value::Array(some)) => some.iter().any(|one| one == name),
        _ => false,
    };
    if is("object") {
        if map.get("additionalProperties") != Some(&Value::Bool(false)) {
            return Some(format!(
                "{}, 'additionalProperties' is required to be supplied and to be false",
                context(path)
            ));
        }
        let required = map.get("required").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let fields = map.get("properties").and_then(Value::as_object);
        for name in fields.into_iter().flat_map(|fields| fields.keys()) {
            if !required.iter().any(|one| one == name) {
                return Some(format!(
                    "{}, 'required' is required to be supplied and to be an array including every key in properties. Missing '{name}'.",
                    context(path)
                ));
            }
        }
    }
    if is("array") && !map.contains_key("items") {
        return Some(format!("{}, array schema missing items", context(path)));
    }
    for key in ["properties", "$defs", "definitions"] {
        for (name, field) in map.get(key).and_then(Value::as_object).into_iter().flatten() {
            path.extend([key, name.as_str()]);
            let found = within(field, path, depth + 1);
            path.truncate(path.len().saturating_sub(2));
            if found.is_some() {
                return found;
            }
        }
    }
    let items = map.get("items").into_iter().map(|item| ("items", item));
    let some = map.get("anyOf").and_then(Value::as_array).into_iter().flatten().map(|one| ("anyOf", one));
    for (key, inner) in items.chain(some) {
        path.push(key);
        let found = within(inner, path, depth + usize::from(key == "items"));
        path.pop();
        if found.is_some() {
            return found;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(field: Value, expect: Option<&str>) {
        let schema =
            json!({"type": "object", "properties": {"a": field}, "required": ["a"], "additionalProperties": false});
        assert_eq!(fault(&schema).as_deref(), expect, "{schema}");
    }

    #[test]
    fn the_common_subset_is_taken() {
        check(json!({"type": ["string", "null"], "description": "x"}), None);
        check(json!({"anyOf": [{"type": "null"}, {"type": "string", "enum": ["x"]}]}), None);
        check(json!({"type": "array", "items": {"type": "number"}}), None);
    }

    #[test]
    fn anything_beyond_it_is_refused() {
        let at = "In context=(properties, a), ";
        check(json!({"type": "number", "minimum": 0}), Some(&format!("{at}'minimum' is not permitted")));
        check(json!({"oneOf": []}), Some(&format!("{at}'oneOf' is not permitted")));
        check(json!({}), Some(&format!("{at}schema must have a 'type' key")));
        check(json!({"type": "array"}), Some(&format!("{at}array schema missing items")));
        check(
            json!({"type": "object", "properties": {}}),
            Some(&format!("{at}'additionalProperties' is required to be supplied and to be false")),
        );
        check(
            json!({"type": "object", "properties": {"b": {"type": "null"}}, "required": [], "additionalProperties": false}),
            Some(&format!(
                "{at}'required' is required to be supplied and to be an array including every key in properties. Missing 'b'."
            )),
        );
        assert!(fault(&json!({"type": "string"})).is_some(), "not an object at the top");
    }
}
