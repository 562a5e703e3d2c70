//! Messages between our own processes: a version of two bytes, then bincode. Only this file uses bincode. The crate
//! has no maintainer any more, and 2.0.1 is pinned as its last working version.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// The version of the messages. Both ends must use the same one.
pub const WIRE_VERSION: u16 = 10;

pub const MAX_MESSAGE_BYTES: usize = 64 * 1024 * 1024;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    #[error(
        "expected a message of protocol version {WIRE_VERSION}, got {found}; run the same version of casebook on both \
         ends, and check that the message comes from casebook"
    )]
    Version { found: u16 },
    #[error("message cannot be read as {expected}: {reason}")]
    Malformed { expected: &'static str, reason: String },
    #[error("message cannot be written: {0}")]
    Unwritable(String),
}

fn config() -> impl bincode::config::Config {
    bincode::config::standard().with_limit::<MAX_MESSAGE_BYTES>()
}

pub fn encode<T: Serialize>(message: &T) -> Result<Vec<u8>, WireError> {
    let mut bytes = WIRE_VERSION.to_be_bytes().to_vec();
    let body = bincode::serde::encode_to_vec(message, config()).map_err(|e| WireError::Unwritable(e.to_string()))?;
    if body.len() > MAX_MESSAGE_BYTES {
        return Err(WireError::Unwritable(format!("{} bytes are more than {MAX_MESSAGE_BYTES}", body.len())));
    }
    bytes.extend(body);
    Ok(bytes)
}

pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, WireError> {
    let malformed = |reason: String| WireError::Malformed { expected: std::any::type_name::<T>(), reason };
    let (version, body) = bytes.split_first_chunk::<2>().ok_or_else(|| malformed("it is empty".into()))?;
    let found = u16::from_be_bytes(*version);
    if found != WIRE_VERSION {
        return Err(WireError::Version { found });
    }
    let (message, read) = bincode::serde::decode_from_slice(body, config()).map_err(|e| malformed(e.to_string()))?;
    if read != body.len() {
        return Err(malformed(format!("{} bytes are left over", body.len() - read)));
    }
    Ok(message)
}

#[cfg(test)]
mod tests {
    use casebook_protocol::{Domain, Usage};

    use super::*;

    #[test]
    fn a_message_comes_back_as_it_was() {
        let usage = Usage { model_calls: 7, ..Usage::default() };
        assert_eq!(decode::<Usage>(&encode(&usage).unwrap()).unwrap(), usage);
    }

    #[test]
    fn golden_bytes_of_version_10() {
        let domain = Domain::new("network").unwrap();
        assert_eq!(encode(&domain).unwrap(), b"\x00\x0a\x07network");
    }

    #[test]
    fn another_version_is_refused_with_both_named() {
        let error = decode::<Usage>(&[0, 11, 1]).unwrap_err().to_string();
        assert_eq!(
            error,
            "expected a message of protocol version 10, got 11; run the same version of casebook on both ends, and check that the message comes from casebook"
        );
    }

    #[test]
    fn hostile_bytes_are_an_error_never_an_allocation() {
        let huge = [&WIRE_VERSION.to_be_bytes()[..], &[253, 255, 255, 255, 255, 255, 255, 255, 255]].concat();
        assert!(decode::<Vec<u8>>(&huge).is_err());
        let mut left_over = encode(&Usage::default()).unwrap();
        left_over.push(0);
        assert!(decode::<Usage>(&left_over).is_err());
        assert!(decode::<Usage>(&[]).is_err());
        assert!(decode::<Domain>(b"\x00\x06\x03A.b").is_err(), "an id is checked when it is read");
    }
}
