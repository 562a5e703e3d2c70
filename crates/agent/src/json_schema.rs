//! Checks JSON against schemas from untrusted servers.

use boon::{Compiler, ErrorKind, SchemaIndex, Schemas, UrlLoader, ValidationError};
use casebook_protocol::one_line;
use serde_json::Value;

/// The base address of a schema, against which relative references are resolved.
const ADDRESS: &str = "https://schema.invalid/tool";
/// The longest description of a fault, in bytes.
const FAULT: usize = 300;

/// A compiled schema. Its dialect is the one in `$schema`, or 2020-12.
pub(crate) struct JsonSchema {
    schemas: Schemas,
    root: SchemaIndex,
}

/// Denies all other documents. The library's own loader would open `file:` URLs.
struct OwnPartsOnly;

impl UrlLoader for OwnPartsOnly {
    fn load(&self, url: &str) -> Result<Value, Box<dyn std::error::Error>> {
        Err(format!("a schema may refer only to its own parts, not to {url:?}").into())
    }
}

impl JsonSchema {
    pub(crate) fn compile(schema: &Value) -> Result<Self, String> {
        let mut compiler = Compiler::new();
        compiler.use_loader(Box::new(OwnPartsOnly));
        compiler.add_resource(ADDRESS, schema.clone()).map_err(|e| one_line(&e.to_string(), FAULT))?;
        let mut schemas = Schemas::new();
        let root = compiler.compile(ADDRESS, &mut schemas).map_err(|e| one_line(&format!("{e:#}"), FAULT))?;
        Ok(Self { schemas, root })
    }

    /// At most `most` faults of `value`, each as a JSON pointer (RFC 6901; empty for the whole value) and what was
    /// expected there.
    pub(crate) fn faults(&self, value: &Value, most: usize) -> Vec<(String, String)> {
        let mut found = Vec::new();
        if let Err(error) = self.schemas.validate(value, self.root) {
            leaves(&error, &mut found);
        }
        found.truncate(most);
        found
    }
}

impl std::fmt::Debug for JsonSchema {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("JsonSchema").finish_non_exhaustive()
    }
}

fn leaves(error: &ValidationError<'_, '_>, found: &mut Vec<(String, String)>) {
    let at = error.instance_location.to_string();
    match (&error.kind, error.causes.as_slice()) {
        (kind, []) => found.push((at, one_line(&kind.to_string(), FAULT))),
        // The variant that matches deepest is probably the intended one.
        (ErrorKind::AnyOf | ErrorKind::OneOf(None), causes) => match causes.iter().max_by_key(|cause| depth(cause)) {
            Some(meant) if depth(meant) > depth_of(error) => leaves(meant, found),
            _ => {
                let mut variants = Vec::new();
                causes.iter().for_each(|cause| leaves(cause, &mut variants));
                let wants: Vec<String> = variants.into_iter().map(|(_, want)| want).collect();
                found.push((at, one_line(&wants.join(", or "), FAULT)));
            }
        },
        (_, causes) => causes.iter().for_each(|cause| leaves(cause, found)),
    }
}

fn depth(error: &ValidationError<'_, '_>) -> usize {
    error.causes.iter().map(depth).max().unwrap_or_default().max(depth_of(error))
}

fn depth_of(error: &ValidationError<'_, '_>) -> usize {
    error.instance_location.tokens.len()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn faults(schema: Value, value: Value) -> Vec<(String, String)> {
        JsonSchema::compile(&schema).unwrap().faults(&value, 10)
    }

    #[test]
    fn fault_has_place_and_expectation() {
        let schema = json!({"type": "object", "required": ["id"], "additionalProperties": false,
            "properties": {"id": {"type": "integer", "maximum": 5}}});
        let fault = |at: &str, what: &str| vec![(at.to_owned(), what.to_owned())];
        assert_eq!(faults(schema.clone(), json!({"id": 5})), vec![]);
        assert_eq!(faults(schema.clone(), json!({})), fault("", "missing properties 'id'"));
        assert_eq!(faults(schema.clone(), json!({"id": "x"})), fault("/id", "want integer, but got string"));
        assert_eq!(faults(schema.clone(), json!({"id": 9})), fault("/id", "must be <=5, but got 9"));
        assert_eq!(faults(schema, json!({"id": 1, "x": 1})), fault("", "additionalProperties 'x' not allowed"));
    }

    #[test]
    fn variants_report_the_one_that_fits_best() {
        let schema = json!({"anyOf": [{"type": "null"}, {"type": "object", "properties": {"n": {"type": "integer"}}}]});
        assert_eq!(faults(schema.clone(), json!({"n": "x"})), [("/n".into(), "want integer, but got string".into())]);
        let both = "want null, but got string, or want object, but got string";
        assert_eq!(faults(schema, json!("x")), [(String::new(), both.into())]);
    }

    #[test]
    fn schema_cannot_read_other_documents() {
        let folder = tempfile::tempdir().unwrap();
        let other = folder.path().join("other.json");
        std::fs::write(&other, "{}").unwrap();
        for url in [format!("file://{}", other.display()), "http://127.0.0.1:9/x".into(), "other.json".into()] {
            let refused = JsonSchema::compile(&json!({"$ref": url})).err();
            assert!(refused.as_ref().is_some_and(|why| why.contains("own parts")), "{url}: {refused:?}");
        }
    }
}
