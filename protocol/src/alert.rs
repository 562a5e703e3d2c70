//! The alert that an investigation is about: any JSON object, kept as it was sent.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::hash::{canonical_json, sha256_hex};
use crate::{AlertId, InvalidId, Timestamp, closed};

mod fields;

/// The largest accepted alert, in bytes.
pub const MAX_ALERT_BYTES: usize = 1024 * 1024;

closed! {
    /// How urgent an alert is, as its sender says. The queue takes the most urgent first.
    pub enum Severity {
        Informational = "informational", "for information";
        Low = "low";
        Medium = "medium", "medium; the default";
        High = "high";
        Critical = "critical";
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Alert {
    /// Its own id, or one made from its content.
    pub id: AlertId,
    pub title: String,
    pub severity: Severity,
    /// The whole object as canonical JSON text, since the wire codec carries no free-form JSON.
    pub body: String,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AlertError {
    #[error(
        "expected an alert of at most {MAX_ALERT_BYTES} bytes, got {bytes}; send the alert alone and leave the evidence in files"
    )]
    TooLarge { bytes: usize },
    #[error("alert is not JSON: {reason} at line {line}, column {column}")]
    NotJson { reason: String, line: usize, column: usize },
    #[error("expected an alert as one JSON object such as {{\"id\": …, …}}, got {found}")]
    NotAnObject { found: &'static str },
    #[error(transparent)]
    Id(#[from] InvalidId),
}

impl Alert {
    pub fn parse(bytes: &[u8]) -> Result<Self, AlertError> {
        if bytes.len() > MAX_ALERT_BYTES {
            return Err(AlertError::TooLarge { bytes: bytes.len() });
        }
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        let value: Value = serde_json::from_slice(bytes).map_err(|error| {
            let text = error.to_string();
            let reason = text.split(" at line ").next().unwrap_or(&text).to_owned();
            AlertError::NotJson { reason, line: error.line(), column: error.column() }
        })?;
        let found = match &value {
            Value::Object(_) => None,
            Value::Array(_) => Some("an array"),
            Value::String(_) => Some("a string"),
            Value::Number(_) => Some("a number"),
            Value::Bool(_) => Some("a boolean"),
            Value::Null => Some("null"),
        };
        if let Some(found) = found {
            return Err(AlertError::NotAnObject { found });
        }
        let body = canonical_json(&value);
        let id = match value.get("id") {
            Some(Value::String(id)) if !id.trim().is_empty() => AlertId::new(id.trim())?,
            Some(Value::Number(id)) => AlertId::new(id.to_string())?,
            _ => AlertId::new(format!("sha256-{}", sha256_hex(body.as_bytes())))?,
        };
        let title = fields::title(&value).unwrap_or_else(|| id.to_string());
        let severity = fields::severity(&value).unwrap_or(Severity::Medium);
        Ok(Self { id, title: one_line(&title, 120), severity, body })
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or(Value::Null)
    }

    /// The host that it names.
    pub fn host(&self) -> Option<String> {
        fields::named(&self.json(), fields::HOST)
    }

    /// The account that it names.
    pub fn user(&self) -> Option<String> {
        fields::named(&self.json(), fields::USER)
    }

    /// When the activity happened, or else when the alert was made.
    pub fn time(&self) -> Option<Timestamp> {
        fields::named(&self.json(), fields::TIME)?.parse().ok()
    }

    /// The sentence that says what it is about.
    pub fn about(&self) -> Option<String> {
        fields::named(&self.json(), fields::ABOUT)
    }
}

/// `text` on one line of at most `max` characters. Control characters become spaces, since an attacker may have
/// written the text (rule "hostile evidence").
pub fn one_line(text: &str, max: usize) -> String {
    // Most texts are on one line already, and every prompt shows many of them.
    if text.len() <= max && is_one_line(text.as_bytes()) { text.to_owned() } else { made_one_line(text, max) }
}

pub fn one_sentence(text: &str, max: usize) -> String {
    let line = one_line(text, max);
    if line.matches('`').count().is_multiple_of(2) {
        return line;
    }
    let mut cut = one_line(&line, max.saturating_sub(1));
    if !cut.matches('`').count().is_multiple_of(2) {
        cut.push('`');
    }
    cut
}

fn made_one_line(text: &str, max: usize) -> String {
    let clean: String = text.chars().map(|c| if hidden(c) { ' ' } else { c }).collect();
    let clean = clean.split_whitespace().collect::<Vec<_>>().join(" ");
    if clean.chars().count() <= max {
        return clean;
    }
    let mut cut: String = clean.chars().take(max.saturating_sub(1)).collect();
    cut.push('…');
    cut
}

/// Visible ASCII with single spaces between words.
fn is_one_line(text: &[u8]) -> bool {
    let visible = text.iter().all(|byte| matches!(byte, b' '..=b'~'));
    visible && text.first() != Some(&b' ') && text.last() != Some(&b' ') && !text.windows(2).any(|two| two == b"  ")
}

/// Characters that hide text or change how it is shown: control, bidirectional, zero-width and tag characters.
pub fn hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}' | '\u{061c}' | '\u{00ad}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(input: &str, expect: &str) {
        let got = match Alert::parse(input.as_bytes()) {
            Ok(alert) => format!("{} | {} | {:?}", alert.id, alert.title, alert.severity),
            Err(error) => error.to_string(),
        };
        assert_eq!(got, expect);
    }

    #[test]
    fn alerts_are_read_or_refused_with_a_reason() {
        check(r#"{"id":"a-1","rule":{"title":"Shell","level":"high"}}"#, "a-1 | Shell | High");
        check(r#"{"id":7,"title":"x\u202ey","severity":"LOW"}"#, "7 | x y | Low");
        check(r#"{"id":8,"AlertName":"Odd sign-in","AlertSeverity":"High"}"#, "8 | Odd sign-in | High");
        check(r#"{"id":9,"record":{"AlertName":"Odd sign-in","AlertSeverity":"Low"}}"#, "9 | Odd sign-in | Low");
        let wazuh = r#"{"id":"w","rule":{"id":"100212","level":12,"description":"Shell of a web server"}}"#;
        check(wazuh, "w | Shell of a web server | High");
        check(r#"{"id":"f","rule":"Privileged container","priority":"Warning"}"#, "f | Privileged container | Medium");
        check(r#"{"id":"s","alert":{"signature":"ET POLICY","severity":1}}"#, "s | ET POLICY | High");
        check(r#"{"id":"n","alert_name":"Much data sent","severity":"high"}"#, "n | Much data sent | High");
        check(r#"{"id":"r","alertRule":"Password spray","description":"many"}"#, "r | Password spray | Medium");
        check(r#"{"id":"g","type":"Drive: shared outside","severity":"MEDIUM"}"#, "g | Drive: shared outside | Medium");
        check(r#"{"id":"d","detail":{"title":"Port probe","severity":"low"}}"#, "d | Port probe | Low");
        check(r#"{"id":"k","kibana.alert.rule.name":"Rare process"}"#, "k | Rare process | Medium");
        check(r#"{"id":"t","type":"alert"}"#, "t | t | Medium");
        check("[1]", "expected an alert as one JSON object such as {\"id\": …, …}, got an array");
        check("{\"id\":", "alert is not JSON: EOF while parsing a value at line 1, column 6");
        let big = format!("{{\"x\":\"{}\"}}", "a".repeat(MAX_ALERT_BYTES));
        assert!(matches!(Alert::parse(big.as_bytes()), Err(AlertError::TooLarge { .. })));
        let deep = "[".repeat(100_000);
        assert!(matches!(Alert::parse(deep.as_bytes()), Err(AlertError::NotJson { .. })));
    }

    proptest::proptest! {
        #[test]
        fn what_is_one_line_is_left_as_it_is(text in "[ a]{0,7}|[ a~\\t\\u{7f}\\u{200b}é]{0,7}", max in 0_usize..9) {
            let line = one_line(&text, max);
            proptest::prop_assert_eq!(&line, &made_one_line(&text, max));
            let one = is_one_line(text.as_bytes()) && text.len() <= max;
            proptest::prop_assert!(!one || line == text, "{:?}", text);
        }
    }

    #[test]
    fn a_name_in_backquotes_that_is_cut_is_closed() {
        for (max, expect) in
            [(9, "ran `abc`"), (8, "ran `a…`"), (6, "ran …"), (5, "ran …"), (4, "ran…"), (20, "ran `abc`")]
        {
            assert_eq!(one_sentence("ran `abc`", max), expect, "{max}");
        }
    }

    #[test]
    fn without_an_id_the_content_names_it_whatever_the_order_of_keys() {
        let a = Alert::parse(br#"{"x":1,"y":2}"#).unwrap();
        let b = Alert::parse(br#"{ "y":2, "x":1 }"#).unwrap();
        assert_eq!(a, b);
    }
}
