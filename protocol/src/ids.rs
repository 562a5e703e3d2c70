//! Typed ids. Each is checked when it is made, so that no two kinds can be confused and no hostile text becomes part
//! of a subject or a path. Short ids need no allocation; copies of long ones share their text.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize, Serializer};
use smol_str::{SmolStr, format_smolstr};

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind} {text:?} is not valid: {rule}")]
pub struct InvalidId {
    kind: &'static str,
    text: String,
    rule: &'static str,
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $kind:literal, $max:literal, $rule:literal, $ok:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
        #[serde(try_from = "SmolStr")]
        pub struct $name(SmolStr);

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl $name {
            pub fn new(text: impl Into<SmolStr>) -> Result<Self, InvalidId> {
                let text = text.into();
                let ok: fn(char) -> bool = $ok;
                if text.is_empty() || text.len() > $max || !text.chars().all(ok) {
                    let text = text.chars().take(80).collect();
                    return Err(InvalidId { kind: $kind, text, rule: $rule });
                }
                Ok(Self(text))
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl FromStr for $name {
            type Err = InvalidId;
            fn from_str(text: &str) -> Result<Self, InvalidId> {
                Self::new(text)
            }
        }

        impl TryFrom<SmolStr> for $name {
            type Error = InvalidId;
            fn try_from(text: SmolStr) -> Result<Self, InvalidId> {
                Self::new(text)
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> String {
                id.0.into()
            }
        }
    };
}

const fn lower_or_digit(c: char) -> bool {
    c.is_ascii_lowercase() || c.is_ascii_digit()
}

id!(
    /// A UUID, which is part of subjects on the wire.
    InvestigationId, "investigation id", 64,
    "1 to 64 of a-z, 0-9 and '-'", |c| lower_or_digit(c) || c == '-'
);
id!(
    /// The id that the sender gives, or `sha256-…` of the content. Two alerts with the same id are the same alert.
    AlertId, "alert id", 256,
    "1 to 256 characters, none of them a control character", |c| !c.is_control()
);
id!(
    /// A subject area with its own Expert, such as `endpoint` or `identity`.
    Domain, "domain", 32,
    "1 to 32 of a-z, 0-9 and '-'", |c| lower_or_digit(c) || c == '-'
);
id!(
    /// A task within its investigation, such as `r2.investigate.endpoint`. It is deterministic, so that a restarted
    /// Hub asks for the same tasks.
    TaskId, "task id", 96,
    "1 to 96 of a-z, 0-9, '.' and '-'", |c| lower_or_digit(c) || matches!(c, '.' | '-')
);
id!(
    /// A tool call within its investigation, such as `r1.investigate.endpoint.t2.0`.
    CallId, "call id", 128,
    "1 to 128 of a-z, 0-9, '.' and '-'", |c| lower_or_digit(c) || matches!(c, '.' | '-')
);
id!(
    /// A model call within its investigation, such as `r1.investigate.endpoint.m2`.
    ModelCallId, "model call id", 128,
    "1 to 128 of a-z, 0-9, '.' and '-'", |c| lower_or_digit(c) || matches!(c, '.' | '-')
);
id!(
    /// A finding within its investigation, such as `r1-endpoint-3`.
    FindingId, "finding id", 64,
    "1 to 64 of a-z, 0-9 and '-'", |c| lower_or_digit(c) || c == '-'
);
id!(
    /// A lead within its investigation, such as `r1-lead-2`.
    LeadId, "lead id", 64,
    "1 to 64 of a-z, 0-9 and '-'", |c| lower_or_digit(c) || c == '-'
);
id!(
    /// The address of an artifact: the SHA-256 of its bytes in lower-case hex (rule "artifact").
    ArtifactId, "artifact id", 64,
    "64 lower-case hex digits", |c| c.is_ascii_digit() || matches!(c, 'a'..='f')
);

/// The domains of the built-in Experts.
pub const DOMAINS: [&str; 6] = ["endpoint", "identity", "cloud", "network", "configuration", "application"];

impl ArtifactId {
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(crate::hash::sha256_hex(bytes).into())
    }

    /// The first twelve digits, enough for a person to distinguish the artifacts of an investigation.
    pub fn short(&self) -> &str {
        self.0.get(..12).unwrap_or(&self.0)
    }
}

impl CallId {
    #[must_use]
    pub fn of(task: &TaskId, turn: u32, place: u32) -> Self {
        Self(format_smolstr!("{task}.t{turn}.{place}"))
    }

    pub fn is_of(&self, task: &TaskId) -> bool {
        within(&self.0, task)
    }

    /// True if code made the call again to check a citation.
    pub fn is_again(&self) -> bool {
        let turn = self.0.rsplit('.').nth(1).and_then(|turn| turn.strip_prefix('t'));
        turn.and_then(|turn| turn.parse().ok()).is_some_and(|turn: u32| turn > AGAIN)
    }
}

/// The turns of calls that code makes again begin after this one.
pub const AGAIN: u32 = 1000;

impl ModelCallId {
    #[must_use]
    pub fn of(task: &TaskId, n: u32) -> Self {
        Self(format_smolstr!("{task}.m{n}"))
    }

    pub fn is_of(&self, task: &TaskId) -> bool {
        within(&self.0, task)
    }
}

/// The id of a call begins with the id of its task, so that a worker can only record calls of its own task.
fn within(call: &str, task: &TaskId) -> bool {
    call.strip_prefix(task.as_str()).is_some_and(|rest| rest.starts_with('.'))
}

impl FindingId {
    #[must_use]
    pub fn of(round: u32, domain: &Domain, n: usize) -> Self {
        Self(format_smolstr!("r{round}-{domain}-{n}"))
    }
}

impl LeadId {
    #[must_use]
    pub fn of(round: u32, n: usize) -> Self {
        Self(format_smolstr!("r{round}-lead-{n}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_text_is_no_id() {
        for text in ["", "a.b", "a b", "*", ">", "../x", "É", "A"] {
            assert!(InvestigationId::new(text).is_err(), "{text:?}");
            assert!(Domain::new(text).is_err(), "{text:?}");
        }
        assert!(serde_json::from_str::<Domain>("\"end.point\"").is_err());
        assert!(Domain::new("a".repeat(33)).is_err());
    }

    #[test]
    fn a_call_belongs_to_the_task_that_its_id_begins_with_and_to_no_other() {
        let task = |text: &str| TaskId::new(text).unwrap();
        let own = task("r1.investigate.net");
        assert!(CallId::of(&own, 2, 0).is_of(&own) && ModelCallId::of(&own, 1).is_of(&own));
        for other in ["r1.investigate.network", "r11.investigate.net", "r1.plan"] {
            assert!(!CallId::of(&task(other), 2, 0).is_of(&own) && !ModelCallId::of(&task(other), 1).is_of(&own));
        }
    }

    #[test]
    fn error_names_what_where_and_the_rule() {
        let error = Domain::new("End Point").unwrap_err().to_string();
        assert_eq!(error, "domain \"End Point\" is not valid: 1 to 32 of a-z, 0-9 and '-'");
    }
}
