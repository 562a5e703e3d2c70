//! What workers store of a task, with the version of its form: outcomes and finished calls. Every
//! version ever written is read, the newest is written.

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

/// The bytes of `body` as they are stored.
pub fn write<T: Serialize>(body: &T) -> Result<Vec<u8>, String> {
    serde_json::to_vec(&Envelope { v: STORED_VERSION, body }).map_err(|e| e.to_string())
}

/// What is stored in these bytes.
///
/// # Errors
/// When they are of a version that this program does not know, or malformed.
pub fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    let Version { v } = serde_json::from_slice(bytes).map_err(|e| e.to_string())?;
    if v != STORED_VERSION {
        return Err(format!(
            "it has format version {v}, this program reads up to {STORED_VERSION}: use a newer casebook"
        ));
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
        assert_eq!(error, "it has format version 2, this program reads up to 1: use a newer casebook");
        assert!(read::<ToolCall>(b"{}").is_err());
    }
}
