//! How a process is, for whoever runs it: what it says over HTTP and what a supervisor decides by.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::wire::WIRE_VERSION;

/// Actors that have not run for so long are stuck: the process is not alive.
const STUCK: Duration = Duration::from_secs(15);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QueueHealth {
    pub connected: bool,
    /// The Hub knows of us.
    pub joined: bool,
    pub under_way: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Standing {
    /// The queues that it works on, or shall, by the user that it is there.
    pub queues: BTreeMap<String, QueueHealth>,
    /// It is getting ready: what it does.
    pub preparing: Option<String>,
    pub draining: bool,
    /// What else is wrong, by what it concerns.
    pub troubles: BTreeMap<String, String>,
}

impl Standing {
    /// Why it takes no work; nothing when it does.
    pub fn reasons(&self) -> Vec<String> {
        let mut reasons = Vec::new();
        if self.draining {
            reasons.push("it was asked to stop".to_owned());
        }
        reasons.extend(self.preparing.iter().map(|what| format!("not ready yet: {what}")));
        for (name, queue) in self.queues.iter().filter(|(name, _)| !self.troubles.contains_key(*name)) {
            if !queue.connected {
                reasons.push(format!("{name}: no connection to the NATS server"));
            } else if !queue.joined {
                reasons.push(format!("{name}: no Hub has let it in"));
            }
        }
        reasons.extend(self.troubles.iter().map(|(what, why)| format!("{what}: {why}")));
        reasons
    }
}

/// What `/ready` answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    pub role: String,
    /// The name of this process, which no other has.
    pub name: String,
    pub version: String,
    /// The version of the messages between processes.
    pub wire: u16,
    pub ready: bool,
    /// The server is reached, as every user that it is there.
    pub connected: bool,
    /// A Hub has let it in on every queue that it works on.
    pub joined: bool,
    /// The queues that it works on, by name.
    pub queues: Vec<String>,
    pub under_way: u64,
    /// Why it takes no work.
    pub reasons: Vec<String>,
}

/// A name that no other process has: machine, process, and a part by chance, since containers share the
/// first two.
fn instance() -> String {
    let machine = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let chance = uuid::Uuid::now_v7().simple().to_string();
    let tail = chance.get(chance.len().saturating_sub(6)..).unwrap_or(&chance);
    format!("{}-{}-{tail}", casebook_protocol::one_line(&machine, 60), std::process::id())
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
    /// That of a process of `role` which has begun to prepare.
    #[must_use]
    pub fn new(role: &str) -> Self {
        let standing = Standing { preparing: Some("it starts".to_owned()), ..Standing::default() };
        let (standing, beat) = (Mutex::new(standing), Mutex::new(Instant::now()));
        Self(Arc::new(Inner { role: role.to_owned(), name: instance(), standing, beat }))
    }

    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Says what it is preparing; with none that it is prepared.
    pub fn preparing(&self, what: Option<&str>) {
        self.update(|standing| standing.preparing = what.map(str::to_owned));
    }

    /// Changes how it stands.
    pub fn update(&self, change: impl FnOnce(&mut Standing)) {
        change(&mut self.0.standing.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Changes how one queue stands.
    pub fn queue(&self, name: &str, change: impl FnOnce(&mut QueueHealth)) {
        self.update(|standing| change(standing.queues.entry(name.to_owned()).or_default()));
    }

    /// Says what is wrong with `what`; with none that it is right again.
    pub fn trouble(&self, what: &str, why: Option<String>) {
        self.update(|standing| match why {
            Some(why) => drop(standing.troubles.insert(what.to_owned(), why)),
            None => drop(standing.troubles.remove(what)),
        });
    }

    pub fn standing(&self) -> Standing {
        self.0.standing.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Says that the actors of this process run. To be called from where they do, every second or so.
    pub fn beat(&self) {
        *self.0.beat.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// Whether the actors ran lately.
    pub fn live(&self) -> bool {
        self.0.beat.lock().unwrap_or_else(PoisonError::into_inner).elapsed() < STUCK
    }

    pub fn answer(&self) -> Answer {
        let standing = self.standing();
        let mut reasons = standing.reasons();
        if !self.live() {
            reasons.push(format!("its actors have not run for {} s", STUCK.as_secs()));
        }
        Answer {
            role: self.0.role.clone(),
            name: self.0.name.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            wire: WIRE_VERSION,
            ready: reasons.is_empty(),
            connected: !standing.queues.is_empty() && standing.queues.values().all(|queue| queue.connected),
            queues: standing.queues.keys().cloned().collect(),
            joined: !standing.queues.is_empty() && standing.queues.values().all(|queue| queue.joined),
            under_way: standing.queues.values().map(|queue| queue.under_way).sum(),
            reasons,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_ready_when_nothing_speaks_against_it() {
        let health = Health::new("expert");
        let reasons = || health.answer().reasons;
        assert_eq!(reasons(), ["not ready yet: it starts"]);
        health.preparing(None);
        health.queue("expert-cloud", |queue| queue.under_way = 2);
        assert_eq!(reasons(), ["expert-cloud: no connection to the NATS server"]);
        health.trouble("expert-cloud", Some("cannot connect: refused".into()));
        assert_eq!(reasons(), ["expert-cloud: cannot connect: refused"]);
        health.trouble("expert-cloud", None);
        health.queue("expert-cloud", |queue| queue.connected = true);
        assert_eq!(reasons(), ["expert-cloud: no Hub has let it in"]);
        health.queue("expert-cloud", |queue| queue.joined = true);
        let answer = health.answer();
        assert!(answer.ready && answer.joined && answer.under_way == 2, "{answer:?}");
        health.update(|standing| standing.draining = true);
        assert_eq!(reasons(), ["it was asked to stop"]);
    }

    #[test]
    fn two_processes_have_two_names() {
        assert_ne!(Health::new("hub").name(), Health::new("hub").name());
    }
}
