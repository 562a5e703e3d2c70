//! Fits an object to a schema.

use serde_json::{Map, Value, json};

/// Fits `value` to `schema`: removes unknown fields, and adds required ones (null if allowed, else empty).
/// `root` has the targets of `$ref`.
pub(super) fn fit(root: &Value, schema: &Value, value: Option<&Value>) -> Value {
    if let Some(pointed) = schema.get("$ref").and_then(Value::as_str) {
        let target = pointed.strip_prefix('#').and_then(|pointer| root.pointer(pointer));
        return target.map_or_else(|| value.cloned().unwrap_or_default(), |target| fit(root, target, value));
    }
    // A value of another type counts as absent.
    let value = value.filter(|value| takes(root, schema, value));
    let absent = value.is_none();
    if absent && allows_null(schema) {
        return Value::Null;
    }
    if let Some(variants) = schema.get("anyOf").or_else(|| schema.get("oneOf")).and_then(Value::as_array) {
        let fitting = |one: &&Value| !only_null(one) && value.is_some_and(|value| takes(root, one, value));
        let other = variants.iter().find(fitting).or_else(|| variants.iter().find(|one| !only_null(one)));
        return other.map_or(Value::Null, |one| fit(root, one, value));
    }
    if let Some(words) = schema.get("enum").and_then(Value::as_array) {
        return value.filter(|value| words.contains(value)).or_else(|| words.first()).cloned().unwrap_or_default();
    }
    match value {
        Some(Value::Object(map)) if schema.get("properties").is_some() => object(root, schema, map),
        Some(Value::Array(items)) => {
            let item = schema.get("items");
            items.iter().map(|one| item.map_or_else(|| one.clone(), |item| fit(root, item, Some(one)))).collect()
        }
        Some(value) => value.clone(),
        None => empty(root, schema),
    }
}

fn object(root: &Value, schema: &Value, map: &Map<String, Value>) -> Value {
    let fields = schema.get("properties").and_then(Value::as_object);
    let required = schema.get("required").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let wanted = fields
        .into_iter()
        .flatten()
        .filter(|(name, _)| map.contains_key(*name) || required.iter().any(|one| one.as_str() == Some(name.as_str())));
    wanted.map(|(name, field)| (name.clone(), fit(root, field, map.get(name)))).collect()
}

fn empty(root: &Value, schema: &Value) -> Value {
    match kind(schema) {
        "object" => object(root, schema, &Map::new()),
        "array" => json!([]),
        "string" => json!("x"),
        "number" | "integer" => json!(schema.get("minimum").and_then(Value::as_i64).unwrap_or(0)),
        "boolean" => json!(false),
        _ => Value::Null,
    }
}

/// The first type of a schema that is not null.
fn kind(schema: &Value) -> &str {
    match schema.get("type") {
        Some(Value::String(one)) => one,
        Some(Value::Array(some)) => some.iter().filter_map(Value::as_str).find(|one| *one != "null").unwrap_or("null"),
        _ => "",
    }
}

/// Whether the schema allows the type of the value; null counts as absent.
fn takes(root: &Value, schema: &Value, value: &Value) -> bool {
    let pointed = schema.get("$ref").and_then(Value::as_str).and_then(|p| root.pointer(p.strip_prefix('#')?));
    if let Some(target) = pointed {
        return takes(root, target, value);
    }
    if let Some(variants) = schema.get("anyOf").or_else(|| schema.get("oneOf")).and_then(Value::as_array) {
        return variants.iter().any(|one| takes(root, one, value));
    }
    match kind(schema) {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "number" | "integer" => value.is_number(),
        "boolean" => value.is_boolean(),
        "null" => false,
        _ => !value.is_null(),
    }
}

fn only_null(schema: &Value) -> bool {
    schema.get("type").and_then(Value::as_str) == Some("null")
}

fn allows_null(schema: &Value) -> bool {
    let listed = |key: &str| schema.get(key).and_then(Value::as_array);
    only_null(schema)
        || listed("type").is_some_and(|types| types.iter().any(|one| one == "null"))
        || listed("enum").is_some_and(|words| words.contains(&Value::Null))
        || listed("anyOf").is_some_and(|variants| variants.iter().any(allows_null))
}
