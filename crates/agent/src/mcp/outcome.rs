//! Turns the answer of a server into the recorded bytes.

use casebook_protocol::hash::canonical_json;
use serde_json::{Value, json};

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Answered {
    pub content: Vec<Value>,
    pub structured: Option<Value>,
    pub failed: bool,
}

impl Answered {
    /// The text that is recorded and cited. A single block of text is kept unchanged, also if structured content
    /// repeats it. Anything else becomes one JSON document.
    ///
    /// # Errors
    /// The server's reason for a failed call.
    pub fn text(self) -> Result<String, String> {
        let failed = self.failed;
        let text = match (self.content.as_slice(), &self.structured) {
            ([], None) => String::new(),
            ([], Some(structured)) => canonical_json(structured),
            ([one], structured) => match (text_of(one), structured) {
                (Some(text), None) => text.to_owned(),
                (Some(text), Some(structured)) if same(text, structured) => text.to_owned(),
                _ => whole(&self.content, structured.as_ref()),
            },
            (_, structured) => whole(&self.content, structured.as_ref()),
        };
        match (failed, text.is_empty()) {
            (false, _) => Ok(text),
            (true, false) => Err(text),
            (true, true) => Err("the server reports a failed call without a reason".to_owned()),
        }
    }
}

fn text_of(block: &Value) -> Option<&str> {
    (block.get("type")?.as_str()? == "text").then(|| block.get("text")?.as_str()).flatten()
}

/// True if `text` is the JSON of `structured`, or its only value.
fn same(text: &str, structured: &Value) -> bool {
    let only = structured.as_object().filter(|map| map.len() == 1).and_then(|map| map.values().next());
    only.and_then(Value::as_str) == Some(text)
        || serde_json::from_str::<Value>(text).is_ok_and(|value| value == *structured)
}

fn whole(content: &[Value], structured: Option<&Value>) -> String {
    let mut all = json!({ "content": content });
    if let (Some(map), Some(structured)) = (all.as_object_mut(), structured) {
        map.insert("structuredContent".into(), structured.clone());
    }
    canonical_json(&all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(content: &[Value], structured: Option<Value>) -> Result<String, String> {
        Answered { content: content.to_vec(), structured, failed: false }.text()
    }

    fn text(text: &str) -> Value {
        json!({"type": "text", "text": text})
    }

    #[test]
    fn one_text_is_kept_to_the_byte() {
        assert_eq!(answered(&[text("{\"b\": 1,  \"a\":2}")], None), Ok("{\"b\": 1,  \"a\":2}".into()));
        let same = Some(json!({"a": 2, "b": 1}));
        assert_eq!(answered(&[text("{\"b\": 1,  \"a\":2}")], same), Ok("{\"b\": 1,  \"a\":2}".into()));
        let wrapped = Some(json!({"content": "line 1\nline 2"}));
        assert_eq!(answered(&[text("line 1\nline 2")], wrapped), Ok("line 1\nline 2".into()));
        assert_eq!(answered(&[], None), Ok(String::new()));
    }

    #[test]
    fn structured_content_is_kept_as_such() {
        assert_eq!(answered(&[], Some(json!({"b": 1, "a": [2]}))), Ok(r#"{"a":[2],"b":1}"#.into()));
        let both = answered(&[text("two rows")], Some(json!({"rows": 2}))).unwrap();
        let both: Value = serde_json::from_str(&both).unwrap();
        assert_eq!(both["structuredContent"]["rows"], 2);
        assert_eq!(both["content"][0]["text"], "two rows");
    }

    #[test]
    fn several_blocks_are_kept_whole() {
        let image = json!({"type": "image", "data": "AAAA", "mimeType": "image/png"});
        let all: Value = serde_json::from_str(&answered(&[text("a"), image.clone()], None).unwrap()).unwrap();
        assert_eq!(all["content"], json!([text("a"), image]));
        assert!(answered(&[image], None).unwrap().contains("image/png"));
    }

    #[test]
    fn a_failure_is_its_reason() {
        let failed = |content: &[Value]| Answered { content: content.to_vec(), structured: None, failed: true }.text();
        assert_eq!(failed(&[text("no such table")]), Err("no such table".into()));
        assert_eq!(failed(&[]), Err("the server reports a failed call without a reason".into()));
    }
}
