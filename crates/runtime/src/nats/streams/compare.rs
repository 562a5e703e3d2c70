//! Compares the settings of a stream or consumer with those that we ask for.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::Value;

use crate::nats::NatsError;

#[derive(Default)]
pub(super) struct Different(Vec<String>);

impl Different {
    /// Keeps a difference. Any other error ends the check.
    pub(super) fn take(&mut self, looked: Result<(), NatsError>) -> Result<(), NatsError> {
        match looked {
            Err(NatsError::Different(what)) => self.0.push(what),
            other => return other,
        }
        Ok(())
    }

    pub(super) fn all(self) -> Result<(), NatsError> {
        if self.0.is_empty() { Ok(()) } else { Err(NatsError::Different(self.0.join("; "))) }
    }
}

/// Settings that could lose, delay or change messages if the server sets them and we do not. For other settings the
/// server's own value is accepted.
const BINDING: [&str; 13] = [
    "backoff",
    "headers_only",
    "inactive_threshold",
    "max_batch",
    "max_deliver",
    "max_expires",
    "max_msg_size",
    "max_msgs_per_subject",
    "mirror",
    "no_ack",
    "pause_until",
    "sealed",
    "subject_transform",
];
/// The same for a work queue, which must not drop jobs silently.
const BINDING_IN_QUEUES: [&str; 2] = ["max_age", "max_bytes"];

pub(super) fn same<T: Serialize>(what: &str, asked: &T, found: &T) -> Result<(), NatsError> {
    let unreadable =
        |e: serde_json::Error| NatsError::Failed { doing: format!("compare {what}"), reason: e.to_string() };
    let asked = serde_json::to_value(asked).map_err(unreadable)?;
    let found = serde_json::to_value(found).map_err(unreadable)?;
    let (Value::Object(asked), Value::Object(found)) = (asked, found) else { return Ok(()) };
    let queue = asked.get("retention").is_some_and(|kept| kept == "workqueue");
    let keys: BTreeSet<&String> = asked.keys().chain(found.keys()).collect();
    let differences: Vec<String> = keys
        .into_iter()
        .map(|key| (key, asked.get(key).unwrap_or(&Value::Null), found.get(key).unwrap_or(&Value::Null)))
        .filter(|(key, asked, found)| {
            let key = key.as_str();
            let binding = BINDING.contains(&key) || (queue && BINDING_IN_QUEUES.contains(&key));
            !matches!(key, "metadata" | "name" | "description") && !alike(asked, found, binding)
        })
        .map(|(key, asked, found)| match (key.as_str(), seconds(found), seconds(asked)) {
            ("ack_wait", Some(found), Some(asked)) => {
                format!("expected a lease of {asked} s, got {found} s; give every Hub `lease = {found}`")
            }
            _ => format!("expected {key} {asked}, got {found}"),
        })
        .collect();
    if differences.is_empty() {
        return Ok(());
    }
    Err(NatsError::Different(format!("{what}: {}", differences.join(", "))))
}

fn seconds(value: &Value) -> Option<u64> {
    value.as_u64().map(|nanos| nanos / 1_000_000_000)
}

/// True if the settings are equivalent. A server may write out a default as 0, -1, false or empty. It may choose a
/// number that we left open, unless the setting is `binding`.
fn alike(asked: &Value, found: &Value, binding: bool) -> bool {
    let nothing = |v: &Value| match v {
        Value::Null => true,
        Value::Bool(b) => !b,
        Value::Number(n) => n.as_i64().is_some_and(|n| n <= 0),
        Value::String(s) => s.is_empty(),
        Value::Array(a) => a.is_empty(),
        Value::Object(o) => o.is_empty(),
    };
    asked == found
        || (nothing(asked) && nothing(found))
        || (!binding && (asked.is_null() || (nothing(asked) && asked.is_number())))
}
