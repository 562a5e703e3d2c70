//! How a worker is let in, and says that it is there. JSON, so that two versions can refuse each other
//! in words.

use serde::{Deserialize, Serialize};

use crate::subject::Queue;
use crate::{Domain, Member, Role};

/// A worker that wants to be let in, and again every few seconds for as long as it is there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Join {
    /// The version of messages that it speaks.
    pub protocol: u16,
    /// The version of its program.
    pub version: String,
    pub role: Role,
    /// Its domain, for Experts.
    #[serde(default)]
    pub domain: Option<Domain>,
    /// Its own name: instances of one queue share its work.
    pub instance: String,
    /// What the roster says of it, for Experts.
    #[serde(default)]
    pub member: Option<Member>,
    /// It goes: it takes no more work.
    #[serde(default)]
    pub leaves: bool,
}

impl Join {
    /// The queue that it works on.
    pub fn queue(&self) -> Queue {
        Queue::new(self.role, self.domain.as_ref())
    }
}

/// A Hub's answer to [`Join`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Joined {
    /// The version of messages that the Hub speaks.
    pub protocol: u16,
    /// The version of its program.
    pub version: String,
    /// Why the worker is not let in; none when it is.
    #[serde(default)]
    pub refused: Option<String>,
    /// It will never be let in as it is; otherwise it may try again.
    #[serde(default)]
    pub for_good: bool,
}
