//! Who may use the server in mode `local`: the key that the command printed, and sessions. Time is passed in.

use std::collections::BTreeMap;
use std::time::Duration;

use casebook_protocol::hash::{hex, sha256_hex};
use casebook_protocol::{Timestamp, between};
use casebook_runtime::random::random;

const IDLE: Duration = Duration::from_secs(60 * 60);
const WHOLE: Duration = Duration::from_secs(12 * 60 * 60);
/// Wrong keys in a minute.
const TRIES: usize = 5;
const MINUTE: Duration = Duration::from_secs(60);

struct Session {
    begun: Timestamp,
    used: Timestamp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tried {
    Right,
    Wrong,
    TooOften,
}

/// Holds hashes alone: what is compared says nothing about the key.
pub struct Access {
    key: String,
    sessions: BTreeMap<String, Session>,
    wrong: Vec<Timestamp>,
}

impl Access {
    #[must_use]
    pub fn new(key: &str) -> Self {
        Self { key: sha256_hex(key.as_bytes()), sessions: BTreeMap::new(), wrong: Vec::new() }
    }

    #[must_use]
    pub fn is(&self, key: &str) -> bool {
        sha256_hex(key.as_bytes()) == self.key
    }

    pub fn tried(&mut self, key: &str, now: Timestamp) -> Tried {
        // The right key always counts, so that wrong ones lock no one out.
        if self.is(key) {
            return Tried::Right;
        }
        self.wrong.retain(|at| between(*at, now) < MINUTE);
        if self.wrong.len() >= TRIES {
            return Tried::TooOften;
        }
        self.wrong.push(now);
        Tried::Wrong
    }

    pub fn begin(&mut self, session: &str, now: Timestamp) {
        self.sessions.retain(|_, one| valid(one, now));
        self.sessions.insert(sha256_hex(session.as_bytes()), Session { begun: now, used: now });
    }

    pub fn knows(&mut self, session: &str, now: Timestamp) -> bool {
        match self.sessions.get_mut(&sha256_hex(session.as_bytes())) {
            Some(one) if valid(one, now) => {
                one.used = now;
                true
            }
            _ => false,
        }
    }
}

fn valid(session: &Session, now: Timestamp) -> bool {
    between(session.used, now) < IDLE && between(session.begun, now) < WHOLE
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
            assert_eq!(access.tried("wrong", at(n)), Tried::Wrong);
        }
        assert_eq!(access.tried("wrong", at(5)), Tried::TooOften);
        assert_eq!(access.tried("right", at(5)), Tried::Right);
        assert_eq!(access.tried("wrong", at(61)), Tried::Wrong);
    }

    #[test]
    fn a_session_ends_when_idle_and_after_half_a_day() {
        let mut access = Access::new("key");
        access.begin("one", at(0));
        assert!(!access.knows("two", at(1)));
        for hour in 0..13 {
            assert_eq!(access.knows("one", at(hour * 3_500)), hour < 13, "hour {hour}");
        }
        assert!(!access.knows("one", at(43_200)), "12 hours");
        access.begin("idle", at(50_000));
        assert!(!access.knows("idle", at(53_600)));
    }
}
