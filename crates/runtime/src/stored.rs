//! The stored form of outcomes and finished calls, with its version.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

pub const STORED_VERSION: u16 = 1;

#[derive(Serialize, Deserialize)]
struct Envelope<T> {
    v: u16,
    body: T,
}

#[derive(Deserialize)]
struct Version {
    v: u16,
}

pub fn write<T: Serialize>(body: &T) -> Result<Vec<u8>, String> {
    serde_json::to_vec(&Envelope { v: STORED_VERSION, body }).map_err(|e| e.to_string())
}

pub fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    let Version { v } = serde_json::from_slice(bytes).map_err(|e| e.to_string())?;
    if v != STORED_VERSION {
        return Err(format!("expected format version {STORED_VERSION} or older, got {v}; use a newer casebook"));
    }
    serde_json::from_slice::<Envelope<T>>(bytes).map(|e| e.body).map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests {
    use casebook_protocol::{Outcome, ToolCall};

    use super::*;

    /// Written by version 1 and never changed since.
    const CALL_V1: &str = include_str!("../fixtures/call-v1.json");
    const OUTCOME_V1: &str = include_str!("../fixtures/outcome-v1.json");

    #[test]
    fn what_version_1_wrote_is_read_and_written_the_same() {
        let call: ToolCall = read(CALL_V1.trim_end().as_bytes()).unwrap();
        assert_eq!(String::from_utf8(write(&call).unwrap()).unwrap(), CALL_V1.trim_end());
        let outcome: Outcome = read(OUTCOME_V1.trim_end().as_bytes()).unwrap();
        assert_eq!(String::from_utf8(write(&outcome).unwrap()).unwrap(), OUTCOME_V1.trim_end());
    }

    #[test]
    fn a_later_version_is_refused_with_both_named() {
        let error = read::<ToolCall>(br#"{"v":2,"body":{}}"#).unwrap_err();
        assert_eq!(error, "expected format version 1 or older, got 2; use a newer casebook");
        assert!(read::<ToolCall>(b"{}").is_err());
    }
}
