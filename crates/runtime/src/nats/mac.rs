//! A message authentication code (HMAC-SHA256) on what Hubs write, in a header. Permissions decide who may write; the
//! code shows who did.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use async_nats::HeaderMap;
use casebook_protocol::hash::{hex, unhex};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::store::packing::PACKED;
use super::store::{HASH, LAST};
use super::{NatsError, PROTOCOL, REFERENCE};

const MAC: &str = "Casebook-Mac";
/// What the code is for, so that the key cannot serve another purpose by accident. It has the version of the format.
const LABEL: &[u8] = b"casebook nats message 1";
/// Set by the publisher, and enforced and stored by the server.
pub(super) const EXPECTED: &str = "Nats-Expected-Last-Subject-Sequence";
/// The headers that change the meaning of a message. The expected sequence binds an entry to its place in a log: the
/// server refuses a copy of it elsewhere.
const COVERED: [&str; 5] = [PROTOCOL, REFERENCE, LAST, HASH, EXPECTED];
/// The fewest characters of a key.
const SHORTEST: usize = 32;
/// What Hubs sign.
const SIGNED: [&str; 5] =
    ["casebook.log.", "casebook.result.hub.", "casebook.events.", "casebook.timeline.", "casebook.reports"];

/// True if only Hubs write to `subject`.
pub(super) fn signed(subject: &str) -> bool {
    SIGNED.iter().any(|prefix| subject.starts_with(prefix))
}

#[derive(Clone)]
pub(crate) struct MacKey(Hmac<Sha256>);

impl MacKey {
    /// Reads a key. Only its owner may have access to the file.
    pub(super) fn read(path: &Path) -> Result<Self, NatsError> {
        let file = |reason: String| NatsError::File { path: path.display().to_string(), reason };
        let mode = std::fs::metadata(path).map_err(|e| file(e.to_string()))?.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            return Err(file(format!(
                "expected a key that only its owner can read, got mode {mode:04o}; run `chmod 600`"
            )));
        }
        let text = std::fs::read(path).map_err(|e| file(e.to_string()))?;
        let key = text.trim_ascii();
        if key.len() < SHORTEST {
            let found = key.len();
            return Err(file(format!("expected a key of at least {SHORTEST} characters, got {found}; make a new one")));
        }
        Hmac::new_from_slice(key).map(Self).map_err(|e| file(e.to_string()))
    }

    fn code(&self, subject: &str, headers: &HeaderMap, payload: &[u8]) -> Hmac<Sha256> {
        let mut code = self.0.clone();
        // Each part is preceded by its length, so that no two messages give the same bytes.
        let mut part = |bytes: &[u8]| {
            code.update(&(bytes.len() as u64).to_be_bytes());
            code.update(bytes);
        };
        part(LABEL);
        part(subject.as_bytes());
        let header = |name: &str, part: &mut dyn FnMut(&[u8])| {
            let values: Vec<_> = headers.get_all(name).collect();
            part(&(values.len() as u64).to_be_bytes());
            values.iter().for_each(|value| part(value.as_str().as_bytes()));
        };
        COVERED.iter().for_each(|name| header(name, &mut part));
        part(payload);
        // Last and only if it is there, so that messages from before there was packing keep their code.
        if headers.get(PACKED).is_some() {
            header(PACKED, &mut part);
        }
        code
    }

    /// Adds the code to a message with all other headers.
    pub(super) fn sign(&self, subject: &str, headers: &mut HeaderMap, payload: &[u8]) {
        let code = self.code(subject, headers, payload).finalize().into_bytes();
        headers.insert(MAC, hex(&code).as_str());
    }

    /// # Errors
    /// The reason, for people.
    pub(super) fn check(&self, subject: &str, headers: &HeaderMap, payload: &[u8]) -> Result<(), &'static str> {
        let mut given = headers.get_all(MAC);
        let Some(found) = given.next() else { return Err("it has no Casebook-Mac") };
        let bytes = unhex(found.as_str()).filter(|_| given.next().is_none());
        let fits = bytes.is_some_and(|bytes| self.code(subject, headers, payload).verify_slice(&bytes).is_ok());
        if fits { Ok(()) } else { Err("its Casebook-Mac does not match") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> MacKey {
        MacKey(Hmac::new_from_slice(text.as_bytes()).unwrap())
    }

    #[test]
    fn code_covers_subject_headers_payload_and_key() {
        let key_one = key("one");
        let mut headers = HeaderMap::new();
        headers.insert(LAST, "7");
        key_one.sign("casebook.log.a", &mut headers, b"[]");
        assert_eq!(key_one.check("casebook.log.a", &headers, b"[]"), Ok(()));
        let wrong = Err("its Casebook-Mac does not match");
        assert_eq!(key_one.check("casebook.log.b", &headers, b"[]"), wrong);
        assert_eq!(key_one.check("casebook.log.a", &headers, b"[ ]"), wrong);
        assert_eq!(key("two").check("casebook.log.a", &headers, b"[]"), wrong);
        for name in COVERED.into_iter().chain([PACKED]) {
            let mut changed = headers.clone();
            changed.insert(name, "8");
            assert_eq!(key_one.check("casebook.log.a", &changed, b"[]"), wrong, "{name}");
            let mut doubled = headers.clone();
            doubled.append(name, "8");
            assert_eq!(key_one.check("casebook.log.a", &doubled, b"[]"), wrong, "{name}");
        }
        let mut packed = headers.clone();
        packed.insert(PACKED, "zlib");
        key_one.sign("casebook.log.a", &mut packed, b"[]");
        assert_eq!(key_one.check("casebook.log.a", &packed, b"[]"), Ok(()));
        let code = packed.get(MAC).unwrap().clone();
        let mut bare = headers.clone();
        bare.insert(MAC, code);
        assert_eq!(key_one.check("casebook.log.a", &bare, b"[]"), wrong);
        let mut twice = headers.clone();
        twice.append(MAC, "00");
        assert_eq!(key_one.check("casebook.log.a", &twice, b"[]"), wrong);
        for bad in ["", "0", "zz", "é0"] {
            headers.insert(MAC, bad);
            assert_eq!(key_one.check("casebook.log.a", &headers, b"[]"), wrong, "{bad}");
        }
        assert_eq!(key_one.check("casebook.log.a", &HeaderMap::new(), b"[]"), Err("it has no Casebook-Mac"));
    }

    #[test]
    fn short_or_readable_key_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mac.key");
        let read = |text: &str, mode: u32| {
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            MacKey::read(&path).map(drop).map_err(|e| e.to_string())
        };
        let long = "0123456789abcdef0123456789abcdef\n";
        assert_eq!(read(long, 0o600), Ok(()));
        assert!(read(long, 0o640).unwrap_err().ends_with("got mode 0640; run `chmod 600`"));
        assert!(read("short\n", 0o600).unwrap_err().contains("at least 32 characters, got 5"));
    }
}
