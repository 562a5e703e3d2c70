//! How a process is, for whoever runs it: what it says over HTTP and what a supervisor decides by.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::wire::WIRE_VERSION;

/// Actors that have not run for so long are stuck: the process is not alive.
const STUCK: Duration = Duration::from_secs(15);

/// A queue that a process works on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Seat {
    /// The Hub knows of us.
    pub joined: bool,
    /// Jobs under way.
    pub under_way: u64,
}

/// How a process is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Standing {
    /// The server is reached.
    pub connected: bool,
    /// The queues that it works on, or shall; none for a Hub, which joins nobody.
    pub seats: BTreeMap<String, Seat>,
    /// It was asked to stop.
    pub draining: bool,
    /// What else is wrong, by what it concerns.
    pub troubles: BTreeMap<String, String>,
}

impl Standing {
    /// Why it takes no work; nothing when it does.
    #[must_use]
    pub fn reasons(&self) -> Vec<String> {
        let mut reasons = Vec::new();
        if self.draining {
            reasons.push("it was asked to stop".to_owned());
        }
        if !self.connected {
            reasons.push("no connection to the NATS server".to_owned());
        }
        let absent = self.seats.iter().filter(|(_, seat)| !seat.joined);
        reasons.extend(absent.map(|(name, _)| format!("{name}: no Hub has answered yet")));
        reasons.extend(self.troubles.iter().map(|(what, why)| format!("{what}: {why}")));
        reasons
    }
}

/// What `/ready` answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Answer {
    /// The role.
    pub role: String,
    /// The name of this process: its user at the server.
    pub name: String,
    /// The version of the package.
    pub version: &'static str,
    /// The version of the messages between processes.
    pub wire: u16,
    /// It takes work.
    pub ready: bool,
    /// The server is reached.
    pub connected: bool,
    /// A Hub knows of every queue that it works on.
    pub joined: bool,
    /// Jobs under way.
    pub under_way: u64,
    /// Why it takes no work.
    pub reasons: Vec<String>,
}

struct Inner {
    role: String,
    name: String,
    standing: Mutex<Standing>,
    beat: Mutex<Instant>,
}

/// How this process is. Clones share it.
#[derive(Clone)]
pub struct Health(Arc<Inner>);

impl Health {
    /// That of a process of `role` that is called `name`, connected to nothing yet.
    #[must_use]
    pub fn new(role: &str, name: &str) -> Self {
        let (standing, beat) = (Mutex::default(), Mutex::new(Instant::now()));
        Self(Arc::new(Inner { role: role.to_owned(), name: name.to_owned(), standing, beat }))
    }

    /// Changes how it stands.
    pub fn update(&self, change: impl FnOnce(&mut Standing)) {
        change(&mut self.0.standing.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Changes how one queue stands.
    pub fn seat(&self, name: &str, change: impl FnOnce(&mut Seat)) {
        self.update(|standing| change(standing.seats.entry(name.to_owned()).or_default()));
    }

    /// Says what is wrong with `what`; with none that it is right again.
    pub fn trouble(&self, what: &str, why: Option<String>) {
        self.update(|standing| match why {
            Some(why) => drop(standing.troubles.insert(what.to_owned(), why)),
            None => drop(standing.troubles.remove(what)),
        });
    }

    /// How it stands.
    #[must_use]
    pub fn standing(&self) -> Standing {
        self.0.standing.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Says that the actors of this process run. To be called from where they do, every second or so.
    pub fn beat(&self) {
        *self.0.beat.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// Whether the actors ran lately.
    #[must_use]
    pub fn live(&self) -> bool {
        self.0.beat.lock().unwrap_or_else(PoisonError::into_inner).elapsed() < STUCK
    }

    /// What it says of itself.
    #[must_use]
    pub fn answer(&self) -> Answer {
        let standing = self.standing();
        let mut reasons = standing.reasons();
        if !self.live() {
            reasons.push(format!("its actors have not run for {} s", STUCK.as_secs()));
        }
        Answer {
            role: self.0.role.clone(),
            name: self.0.name.clone(),
            version: env!("CARGO_PKG_VERSION"),
            wire: WIRE_VERSION,
            ready: reasons.is_empty(),
            connected: standing.connected,
            joined: standing.seats.values().all(|seat| seat.joined),
            under_way: standing.seats.values().map(|seat| seat.under_way).sum(),
            reasons,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_ready_when_nothing_speaks_against_it() {
        let health = Health::new("expert", "expert-cloud");
        health.seat("casebook.task.expert.cloud", |seat| seat.under_way = 2);
        let reasons = || health.answer().reasons;
        assert_eq!(
            reasons(),
            ["no connection to the NATS server", "casebook.task.expert.cloud: no Hub has answered yet"]
        );
        health.update(|standing| standing.connected = true);
        health.seat("casebook.task.expert.cloud", |seat| seat.joined = true);
        let answer = health.answer();
        assert!(answer.ready && answer.joined && answer.under_way == 2, "{answer:?}");
        health.trouble("models", Some("no model answers".into()));
        assert_eq!(reasons(), ["models: no model answers"]);
        health.trouble("models", None);
        health.update(|standing| standing.draining = true);
        assert_eq!(reasons(), ["it was asked to stop"]);
    }
}
