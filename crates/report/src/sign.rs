//! Signs a report with an Ed25519 key, so that a copy that is kept elsewhere can be trusted. Keys are PEM files as
//! `openssl genpkey -algorithm ed25519` writes them.

use casebook_protocol::Report;
use casebook_protocol::hash::{canonical_json, hex, unhex};
use ed25519_dalek::pkcs8::spki::der::pem::LineEnding;
use ed25519_dalek::pkcs8::{
    DecodePrivateKey, DecodePublicKey, EncodePrivateKey, EncodePublicKey, KeypairBytes, PublicKeyBytes,
};
use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};
use serde::Serialize;
use serde_json::Value;

/// The field of the signature in a signed report.
const SIGNATURE: &str = "signature";
/// Precedes the signed report, so that no other use of the key gives a valid signature.
const PURPOSE: &str = "casebook report\n";

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SignError {
    #[error("it is not an Ed25519 {what} in PEM form: {reason}")]
    Key { what: &'static str, reason: String },
    #[error("the report cannot be read: {0}")]
    Report(String),
}

/// What a signature shows about a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signed {
    /// The key made it over exactly this report.
    Valid,
    /// Another key made it, or the report was changed afterwards.
    Invalid,
    Missing,
}

/// A private and a public key as PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyPair {
    pub private: String,
    pub public: String,
}

impl KeyPair {
    /// Makes the pair of these random bytes.
    ///
    /// Errors: The keys cannot be written as PEM, which is a bug.
    pub fn of(random: [u8; 32]) -> Result<Self, SignError> {
        let failed = |reason: String| SignError::Key { what: "key", reason };
        // OpenSSL does not read a private key that has its public key beside it.
        let private = KeypairBytes { secret_key: random, public_key: None };
        let private = private.to_pkcs8_pem(LineEnding::LF).map_err(|e| failed(e.to_string()))?;
        let public = PublicKeyBytes(SigningKey::from_bytes(&random).verifying_key().to_bytes());
        let public = public.to_public_key_pem(LineEnding::LF).map_err(|e| failed(e.to_string()))?;
        Ok(Self { private: private.to_string(), public })
    }
}

#[derive(Serialize)]
struct WithSignature<'a> {
    #[serde(flatten)]
    report: &'a Report,
    signature: Shown,
}

#[derive(Serialize)]
struct Shown {
    algorithm: &'static str,
    /// In hexadecimal digits.
    public_key: String,
    value: String,
}

/// The report as JSON with a signature by the private key in `pem`.
///
/// Errors: `pem` has no private key.
pub fn signed(report: &Report, pem: &str) -> Result<String, SignError> {
    let unreadable = |e: serde_json::Error| SignError::Report(e.to_string());
    let wrong = |e: ed25519_dalek::pkcs8::Error| SignError::Key { what: "private key", reason: e.to_string() };
    let key = SigningKey::from_pkcs8_pem(pem).map_err(wrong)?;
    // Read back, so that both sides sign the same text of each number.
    let value: Value = serde_json::from_str(&serde_json::to_string(report).map_err(unreadable)?).map_err(unreadable)?;
    let signature = Shown {
        algorithm: "ed25519",
        public_key: hex(key.verifying_key().as_bytes()),
        value: hex(&key.sign(&message(&value)).to_bytes()),
    };
    serde_json::to_string_pretty(&WithSignature { report, signature }).map(|json| json + "\n").map_err(unreadable)
}

/// Whether the report in `json` has a signature by the public key in `pem`. The key that the report names is not used.
///
/// Errors: `pem` has no public key, or `json` has no report.
pub fn check(json: &str, pem: &str) -> Result<Signed, SignError> {
    let wrong = |e: ed25519_dalek::pkcs8::spki::Error| SignError::Key { what: "public key", reason: e.to_string() };
    let key = VerifyingKey::from_public_key_pem(pem).map_err(wrong)?;
    let mut value: Value = serde_json::from_str(json).map_err(|e| SignError::Report(e.to_string()))?;
    let Some(signature) = value.as_object_mut().and_then(|report| report.remove(SIGNATURE)) else {
        return Ok(Signed::Missing);
    };
    let bytes = signature.get("value").and_then(Value::as_str).and_then(unhex);
    let signature = bytes.and_then(|bytes| Signature::from_slice(&bytes).ok());
    let valid = signature.is_some_and(|signature| key.verify_strict(&message(&value), &signature).is_ok());
    Ok(if valid { Signed::Valid } else { Signed::Invalid })
}

/// Whether the report in `json` has a signature of any key.
pub fn has_signature(json: &str) -> bool {
    serde_json::from_str::<Value>(json).is_ok_and(|report| report.get(SIGNATURE).is_some())
}

fn message(report: &Value) -> Vec<u8> {
    format!("{PURPOSE}{}", canonical_json(report)).into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        serde_json::from_str(include_str!("../../../hub/fixtures/report-v1.json")).unwrap()
    }

    fn pair(seed: u8) -> KeyPair {
        KeyPair::of([seed; 32]).unwrap()
    }

    #[test]
    fn signature_of_the_key_is_valid_and_the_report_stays_readable() {
        let json = signed(&report(), &pair(1).private).unwrap();
        assert_eq!(check(&json, &pair(1).public), Ok(Signed::Valid));
        assert_eq!(serde_json::from_str::<Report>(&json).unwrap(), report());
        assert!(has_signature(&json));
        let compact = serde_json::from_str::<Value>(&json).unwrap().to_string();
        assert_eq!(check(&compact, &pair(1).public), Ok(Signed::Valid), "white space and order do not count");
    }

    #[test]
    fn another_key_a_changed_report_and_a_changed_signature_are_invalid() {
        let json = signed(&report(), &pair(1).private).unwrap();
        assert_eq!(check(&json, &pair(2).public), Ok(Signed::Invalid));
        let verdict = json.replacen("\"verdict\": \"", "\"verdict\": \"x", 1);
        assert_ne!(verdict, json);
        assert_eq!(check(&verdict, &pair(1).public), Ok(Signed::Invalid));
        let mut value: Value = serde_json::from_str(&json).unwrap();
        for text in ["", "00", "zz", "0"] {
            value["signature"]["value"] = text.into();
            assert_eq!(check(&value.to_string(), &pair(1).public), Ok(Signed::Invalid), "{text:?}");
        }
        value["signature"] = Value::Null;
        assert_eq!(check(&value.to_string(), &pair(1).public), Ok(Signed::Invalid));
        let plain = serde_json::to_string(&report()).unwrap();
        assert_eq!(check(&plain, &pair(1).public), Ok(Signed::Missing));
        assert!(!has_signature(&plain));
    }

    #[test]
    fn text_that_is_not_a_key_is_named() {
        let error = signed(&report(), &pair(1).public).unwrap_err().to_string();
        assert!(error.starts_with("it is not an Ed25519 private key in PEM form: "), "{error}");
        let error = check("{}", &pair(1).private).unwrap_err().to_string();
        assert!(error.starts_with("it is not an Ed25519 public key in PEM form: "), "{error}");
    }
}
