//! Who may use the server in mode `local`: the key that the command printed, and sessions. Time is passed in.
//!
//! A session is a text that only the holder of the key can make, so the server keeps none: a session outlives a restart
//! with the same key.

use std::time::Duration;

use casebook_protocol::hash::{hex, sha256_hex, unhex};
use casebook_protocol::{Timestamp, between};
use casebook_runtime::random::random;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

const IDLE: Duration = Duration::from_secs(60 * 60);
const WHOLE: Duration = Duration::from_secs(12 * 60 * 60);
/// How often a browser gets a new text for its session.
const RENEWED: Duration = Duration::from_secs(60);
/// Different wrong keys in a minute. A program that repeats an old key is not guessing.
const TRIES: usize = 5;
const MINUTE: Duration = Duration::from_secs(60);
/// What the code is for, so that it cannot serve another purpose.
const LABEL: &[u8] = b"casebook session 1";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tried {
    Right,
    Wrong,
    TooOften,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Known {
    Yes,
    /// Yes, and the browser gets this session from now on.
    Renewed(String),
    No,
}

pub struct Access {
    /// A hash: what is compared says nothing about the key.
    key: String,
    sessions: Option<Hmac<Sha256>>,
    /// The hashes of wrong keys, and when each was first tried.
    wrong: Vec<(Timestamp, String)>,
}

impl Access {
    #[must_use]
    pub fn new(key: &str) -> Self {
        // A key of any length fits.
        let sessions = Hmac::new_from_slice(key.as_bytes()).ok();
        Self { key: sha256_hex(key.as_bytes()), sessions, wrong: Vec::new() }
    }

    pub fn tried(&mut self, key: &str, now: Timestamp) -> Tried {
        // The right key always counts, so that wrong ones lock no one out.
        let tried = sha256_hex(key.as_bytes());
        if tried == self.key {
            return Tried::Right;
        }
        self.wrong.retain(|(at, _)| between(*at, now) < MINUTE);
        if self.wrong.iter().any(|(_, wrong)| *wrong == tried) {
            return Tried::Wrong;
        }
        if self.wrong.len() >= TRIES {
            return Tried::TooOften;
        }
        self.wrong.push((now, tried));
        Tried::Wrong
    }

    /// A new session.
    #[must_use]
    pub fn begin(&self, now: Timestamp) -> String {
        self.session(now.as_second(), now.as_second())
    }

    #[must_use]
    pub fn knows(&self, session: &str, now: Timestamp) -> Known {
        let Some((begun, used)) = self.read(session) else { return Known::No };
        let since = |second: i64| u64::try_from(now.as_second() - second).map(Duration::from_secs).unwrap_or_default();
        match since(used) {
            _ if since(begun) >= WHOLE => Known::No,
            idle if idle >= IDLE => Known::No,
            idle if idle >= RENEWED => Known::Renewed(self.session(begun, now.as_second())),
            _ => Known::Yes,
        }
    }

    /// When it was begun and last used, as seconds since 1970, if we made it.
    fn read(&self, session: &str) -> Option<(i64, i64)> {
        let (begun, rest) = session.split_once('.')?;
        let (used, code) = rest.split_once('.')?;
        let (begun, used) = (begun.parse().ok()?, used.parse().ok()?);
        self.code(begun, used)?.verify_slice(&unhex(code)?).ok()?;
        Some((begun, used))
    }

    fn session(&self, begun: i64, used: i64) -> String {
        let code = self.code(begun, used).map(|code| hex(&code.finalize().into_bytes())).unwrap_or_default();
        format!("{begun}.{used}.{code}")
    }

    fn code(&self, begun: i64, used: i64) -> Option<Hmac<Sha256>> {
        let mut code = self.sessions.clone()?;
        code.update(LABEL);
        code.update(&begun.to_be_bytes());
        code.update(&used.to_be_bytes());
        Some(code)
    }
}

/// 256 random bits.
///
/// # Errors
/// The system has no random numbers.
pub fn secret() -> std::io::Result<String> {
    random::<32>().map(|bytes| hex(&bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn wrong_keys_are_counted_and_forgotten_after_a_minute() {
        let mut access = Access::new("right");
        for n in 0..5 {
            assert_eq!(access.tried(&format!("wrong {n}"), at(n)), Tried::Wrong);
        }
        assert_eq!(access.tried("wrong 5", at(5)), Tried::TooOften);
        assert_eq!(access.tried("wrong 4", at(5)), Tried::Wrong, "a repeated key does not count again");
        assert_eq!(access.tried("right", at(5)), Tried::Right);
        assert_eq!(access.tried("wrong 5", at(61)), Tried::Wrong);
    }

    #[test]
    fn a_session_ends_when_idle_and_after_half_a_day() {
        let access = Access::new("key");
        let mut session = access.begin(at(0));
        for hour in 1..13 {
            match access.knows(&session, at(hour * 3_500)) {
                Known::Renewed(next) if hour < 13 => session = next,
                known => panic!("hour {hour}: {known:?}"),
            }
        }
        assert_eq!(access.knows(&session, at(43_200)), Known::No, "12 hours");
        assert_eq!(access.knows(&access.begin(at(0)), at(3_600)), Known::No, "idle");
        assert_eq!(access.knows(&access.begin(at(0)), at(59)), Known::Yes);
    }

    #[test]
    fn only_the_holder_of_the_key_makes_a_session_and_it_cannot_be_prolonged() {
        let access = Access::new("key");
        let session = access.begin(at(0));
        assert_eq!(Access::new("key").knows(&session, at(1)), Known::Yes, "another process with this key");
        assert_eq!(Access::new("other").knows(&session, at(1)), Known::No);
        let (_, code) = session.rsplit_once('.').unwrap();
        let other = if code.starts_with('0') { "1" } else { "0" };
        for forged in [
            format!("0.5.{code}"),
            format!("5.0.{code}"),
            format!("0.0.{other}{}", &code[1..]),
            "0.0.".into(),
            "0.0.zz".into(),
            String::new(),
        ] {
            assert_eq!(access.knows(&forged, at(1)), Known::No, "{forged}");
        }
    }
}
