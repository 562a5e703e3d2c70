//! The state of a process, for operators and supervisors.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::wire::WIRE_VERSION;

/// A process whose actors have not run for this long is not alive.
const STUCK: Duration = Duration::from_secs(15);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QueueHealth {
    pub connected: bool,
    /// A Hub has accepted this process.
    pub joined: bool,
    pub under_way: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Standing {
    /// The queues of this process, by the name of their NATS user.
    pub queues: BTreeMap<String, QueueHealth>,
    pub preparing: Option<String>,
    pub draining: bool,
    /// Other problems, by what they concern.
    pub troubles: BTreeMap<String, String>,
}

impl Standing {
    /// Why the process takes no work; empty if it does.
    pub fn reasons(&self) -> Vec<String> {
        let mut reasons = Vec::new();
        if self.draining {
            reasons.push("stopping".to_owned());
        }
        reasons.extend(self.preparing.iter().map(|what| format!("not ready yet: {what}")));
        for (name, queue) in self.queues.iter().filter(|(name, _)| !self.troubles.contains_key(*name)) {
            if !queue.connected {
                reasons.push(format!("{name}: no connection to the NATS server"));
            } else if !queue.joined {
                reasons.push(format!("{name}: no Hub has accepted it"));
            }
        }
        reasons.extend(self.troubles.iter().map(|(what, why)| format!("{what}: {why}")));
        reasons
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    pub role: String,
    pub name: String,
    pub version: String,
    /// The version of the messages between processes.
    pub wire: u16,
    pub ready: bool,
    /// Connected to the server, for every queue.
    pub connected: bool,
    /// Accepted by a Hub, for every queue.
    pub joined: bool,
    pub queues: Vec<String>,
    pub under_way: u64,
    pub reasons: Vec<String>,
}

/// A unique name. Containers can share machine name and process id, so it has a random part.
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

/// The health of this process. Clones share it.
#[derive(Clone)]
pub struct Health(Arc<Inner>);

impl Health {
    #[must_use]
    pub fn new(role: &str) -> Self {
        let standing = Standing { preparing: Some("starting".to_owned()), ..Standing::default() };
        let (standing, beat) = (Mutex::new(standing), Mutex::new(Instant::now()));
        Self(Arc::new(Inner { role: role.to_owned(), name: instance(), standing, beat }))
    }

    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Sets what the process is preparing; none if it is ready.
    pub fn preparing(&self, what: Option<&str>) {
        self.update(|standing| standing.preparing = what.map(str::to_owned));
    }

    pub fn update(&self, change: impl FnOnce(&mut Standing)) {
        change(&mut self.0.standing.lock().unwrap_or_else(PoisonError::into_inner));
    }

    pub fn queue(&self, name: &str, change: impl FnOnce(&mut QueueHealth)) {
        self.update(|standing| change(standing.queues.entry(name.to_owned()).or_default()));
    }

    /// Sets the problem of `what`; none if it is solved.
    pub fn trouble(&self, what: &str, why: Option<String>) {
        self.update(|standing| match why {
            Some(why) => drop(standing.troubles.insert(what.to_owned(), why)),
            None => drop(standing.troubles.remove(what)),
        });
    }

    pub fn standing(&self) -> Standing {
        self.0.standing.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Proves that the actors run. Call it about every second from one of their threads.
    pub fn beat(&self) {
        *self.0.beat.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

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
        assert_eq!(reasons(), ["not ready yet: starting"]);
        health.preparing(None);
        health.queue("expert-cloud", |queue| queue.under_way = 2);
        assert_eq!(reasons(), ["expert-cloud: no connection to the NATS server"]);
        health.trouble("expert-cloud", Some("cannot connect: refused".into()));
        assert_eq!(reasons(), ["expert-cloud: cannot connect: refused"]);
        health.trouble("expert-cloud", None);
        health.queue("expert-cloud", |queue| queue.connected = true);
        assert_eq!(reasons(), ["expert-cloud: no Hub has accepted it"]);
        health.queue("expert-cloud", |queue| queue.joined = true);
        let answer = health.answer();
        assert!(answer.ready && answer.joined && answer.under_way == 2, "{answer:?}");
        health.update(|standing| standing.draining = true);
        assert_eq!(reasons(), ["stopping"]);
    }

    #[test]
    fn two_processes_have_two_names() {
        assert_ne!(Health::new("hub").name(), Health::new("hub").name());
    }
}
