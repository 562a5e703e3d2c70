//! The arguments of tools over recorded results.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::tools::part;
use super::{Look, What};

/// The requested part of a result; the first page by default.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Asked {
    pointer: Option<String>,
    search: Option<String>,
    after: Option<usize>,
    offset: Option<usize>,
    length: Option<usize>,
    from_line: Option<u64>,
    to_line: Option<u64>,
    count: Option<bool>,
    by: Option<String>,
}

impl Asked {
    /// The arguments as JSON Schema, to be inserted after the tool's own properties.
    pub const PROPERTIES: &str = r#""pointer":{"type":"string"},"search":{"type":"string"},"after":{"type":"integer"},"offset":{"type":"integer"},"length":{"type":"integer"},"from_line":{"type":"integer"},"to_line":{"type":"integer"},"count":{"type":"boolean"},"by":{"type":"string"}"#;

    /// Splits arguments into those of the tool, which `own` names, and a look.
    pub fn read<T: DeserializeOwned>(arguments: &str, own: &[&str]) -> Result<(T, Self), serde_json::Error> {
        let mut rest: Map<String, Value> = serde_json::from_str(arguments)?;
        let own: Map<String, Value> = own.iter().filter_map(|key| rest.remove_entry(*key)).collect();
        Ok((serde_json::from_value(Value::Object(own))?, serde_json::from_value(Value::Object(rest))?))
    }

    pub fn look(self) -> Result<Look, String> {
        let count = self.count.unwrap_or(false) || self.by.is_some();
        let lines = self.from_line.is_some() || self.to_line.is_some();
        let piece = self.offset.is_some() || self.length.is_some();
        let what = match (self.search, count) {
            (Some(_), _) if lines || piece || self.by.is_some() => {
                return Err("`search` goes with `pointer`, `after` and `count` alone".to_owned());
            }
            (None, true) if lines || piece => {
                return Err("`count` and `by` go with `pointer` and `search` alone".to_owned());
            }
            (Some(text), true) => What::CountText { text },
            (Some(text), false) => What::Search { text, after: self.after.unwrap_or(0) },
            (None, true) => What::Count { by: self.by },
            (None, false) if self.pointer.is_none() && !lines => {
                What::Piece { offset: self.offset.unwrap_or(0), length: self.length }
            }
            (None, false) => part(self.from_line, self.to_line, self.offset, self.length)?,
        };
        Ok(Look { pointer: self.pointer, what })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    struct Own {
        call: String,
    }

    fn asked(arguments: &str) -> Result<Look, String> {
        let (own, asked) = Asked::read::<Own>(arguments, &["call"]).map_err(|e| e.to_string())?;
        assert_eq!(own.call, "c");
        asked.look()
    }

    #[test]
    fn arguments_are_a_look_or_say_what_does_not_go_together() {
        let check = |more: &str, pointer: Option<&str>, what: What| {
            let look = Look { pointer: pointer.map(str::to_owned), what };
            assert_eq!(asked(&format!("{{{more}\"call\":\"c\"}}")), Ok(look), "{more}");
        };
        let text = || "x".to_owned();
        check("", None, What::Piece { offset: 0, length: None });
        check(r#""offset":7,"pointer":null,"#, None, What::Piece { offset: 7, length: None });
        check(r#""pointer":"/a","#, Some("/a"), What::Value);
        check(r#""pointer":"/a","offset":7,"#, Some("/a"), What::Piece { offset: 7, length: None });
        check(r#""to_line":7,"#, None, What::Lines { from: 1, to: Some(7) });
        check(r#""search":"x","after":7,"#, None, What::Search { text: text(), after: 7 });
        check(r#""search":"x","count":true,"#, None, What::CountText { text: text() });
        check(r#""by":"x","#, None, What::Count { by: Some(text()) });
        let refused = |more: &str, why: &str| {
            let error = asked(&format!("{{{more}\"call\":\"c\"}}")).unwrap_err();
            assert!(error.contains(why), "{error}");
        };
        refused(r#""search":"x","offset":1,"#, "`search` goes with");
        refused(r#""count":true,"from_line":1,"#, "`count` and `by` go with");
        refused(r#""offset":1,"from_line":1,"#, "not both");
        refused(r#""offset":-1,"#, "invalid value");
        refused(r#""path":"x","#, "unknown field `path`, expected one of `pointer`, ");
        assert!(asked("{}").unwrap_err().contains("missing field `call`"));
        assert!(asked("[]").unwrap_err().contains("invalid type"));
    }

    #[test]
    fn the_schema_has_what_is_read() {
        let schema: Map<String, Value> = serde_json::from_str(&format!("{{{}}}", Asked::PROPERTIES)).unwrap();
        let error = Asked::read::<Map<String, Value>>(r#"{"x":1}"#, &[]).unwrap_err().to_string();
        let known: Vec<&str> = error.split('`').skip(3).step_by(2).collect();
        assert_eq!(schema.keys().map(String::as_str).collect::<Vec<_>>(), known);
    }
}
