//! The form of an answer: two schemas from one Rust type. The wire schema is a strict subset that all providers
//! accept: closed objects, every field required, optional ones nullable, no limits, no `oneOf`, no maps. Answers are
//! checked against the full schema.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::json_schema::JsonSchema as Compiled;

/// A JSON Schema with its text, which is written once, since every request of its kind contains it.
#[derive(Clone)]
pub struct Schema(Arc<Texts>);

struct Texts {
    value: Value,
    raw: Box<RawValue>,
}

impl Schema {
    #[must_use]
    pub fn read(text: &str) -> Self {
        Self::from(serde_json::from_str(text).unwrap_or_else(|_| serde_json::json!({"type": "object"})))
    }

    pub fn value(&self) -> &Value {
        &self.0.value
    }

    /// The schema as JSON. Fields keep their order, since models read them in it.
    pub fn text(&self) -> &str {
        self.0.raw.get()
    }

    /// The same, for insertion into other JSON.
    pub fn raw(&self) -> &RawValue {
        &self.0.raw
    }
}

impl From<Value> for Schema {
    fn from(value: Value) -> Self {
        let raw = serde_json::value::to_raw_value(&value).unwrap_or_default();
        Self(Arc::new(Texts { value, raw }))
    }
}

impl std::fmt::Debug for Schema {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.text())
    }
}

impl PartialEq for Schema {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0.value == other.0.value
    }
}

impl Eq for Schema {}

impl Serialize for Schema {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.value.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Schema {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(Self::from)
    }
}

#[derive(Debug)]
pub struct AnswerForm {
    /// The name on the wire, such as `plan`.
    pub name: String,
    pub description: String,
    pub wire: Schema,
    pub full: Value,
    compiled: Compiled,
}

impl AnswerForm {
    #[must_use]
    pub fn of<T: JsonSchema>(name: &str, description: &str) -> Self {
        let settings = schemars::generate::SchemaSettings::draft2020_12().with(|s| s.inline_subschemas = true);
        Self::new(name, description, settings.into_generator().into_root_schema_for::<T>().to_value())
    }

    /// Separate from [`AnswerForm::of`], so that it is not compiled again for each type.
    #[allow(clippy::expect_used, reason = "the schema comes from one of our types, and tests make every form")]
    fn new(name: &str, description: &str, full: Value) -> Self {
        let compiled = Compiled::compile(&full).expect("a generated schema is valid");
        Self { name: name.to_owned(), description: description.to_owned(), wire: strict(&full).into(), full, compiled }
    }

    /// At most [`MAX_ERRORS`] faults of `object`, each with its place.
    pub fn faults(&self, object: &Value) -> Vec<String> {
        let faults = self.compiled.faults(object, MAX_ERRORS).into_iter();
        faults.map(|(at, what)| format!("{}: {what}", if at.is_empty() { "the answer" } else { &at })).collect()
    }
}

/// Keywords that some provider refuses or ignores.
const DROPPED: [&str; 19] = [
    "$schema",
    "title",
    "default",
    "examples",
    "format",
    "minLength",
    "maxLength",
    "pattern",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minProperties",
    "maxProperties",
    "unevaluatedProperties",
];

pub fn strict(schema: &Value) -> Value {
    match schema {
        Value::Object(map) => {
            if let Some(named) = map.get("oneOf").and_then(Value::as_array).and_then(|of| names(of)) {
                return named_values(map, named);
            }
            let mut out = Map::new();
            for (key, value) in map.iter().filter(|(key, _)| !DROPPED.contains(&key.as_str())) {
                let value = match (key.as_str(), value) {
                    ("properties", Value::Object(fields)) => {
                        Value::Object(fields.iter().map(|(name, field)| (name.clone(), strict(field))).collect())
                    }
                    ("enum" | "const" | "required" | "description", other) => other.clone(),
                    (_, other) => strict(other),
                };
                let key = if key == "oneOf" { "anyOf" } else { key };
                out.insert(key.to_owned(), value);
            }
            if let Some(fields) = out.get("properties").and_then(Value::as_object) {
                let all = fields.keys().cloned().map(Value::String).collect();
                out.insert("required".into(), Value::Array(all));
                out.insert("additionalProperties".into(), Value::Bool(false));
            }
            Value::Object(out)
        }
        Value::Array(items) => Value::Array(items.iter().map(strict).collect()),
        other => other.clone(),
    }
}

/// The constants of an enum whose values each have a description.
fn names(of: &[Value]) -> Option<Vec<(Value, Option<&str>)>> {
    of.iter().map(|one| Some((one.get("const")?.clone(), one.get("description").and_then(Value::as_str)))).collect()
}

fn named_values(map: &Map<String, Value>, named: Vec<(Value, Option<&str>)>) -> Value {
    let mut about: Vec<String> =
        map.get("description").and_then(Value::as_str).map(str::to_owned).into_iter().collect();
    about.extend(named.iter().filter_map(|(name, text)| Some(format!("{}: {}", name.as_str()?, text.as_ref()?))));
    let mut out = Map::new();
    out.insert("type".into(), Value::String("string".into()));
    if !about.is_empty() {
        out.insert("description".into(), Value::String(about.join(" ")));
    }
    out.insert("enum".into(), Value::Array(named.into_iter().map(|(name, _)| name).collect()));
    Value::Object(out)
}

/// The most listed faults. A repair does not need more.
pub const MAX_ERRORS: usize = 10;
