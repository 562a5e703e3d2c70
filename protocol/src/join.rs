//! How a worker joins a Hub and reports that it is alive. Messages are JSON, so that different versions can explain a
//! refusal.

use serde::{Deserialize, Serialize};

use crate::subject::Queue;
use crate::{Domain, Member, Role};

/// A request to join, and then a heartbeat every few seconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Join {
    pub protocol: u16,
    pub version: String,
    pub role: Role,
    /// Set for Experts.
    #[serde(default)]
    pub domain: Option<Domain>,
    /// The name of this process. Processes of one queue share its work.
    pub instance: String,
    #[serde(default)]
    pub member: Option<Member>,
    /// The tasks that this process performs at once; 0 if it does not say.
    #[serde(default)]
    pub at_once: usize,
    /// It leaves and takes no more work.
    #[serde(default)]
    pub leaves: bool,
}

impl Join {
    pub fn queue(&self) -> Queue {
        Queue::new(self.role, self.domain.as_ref())
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Joined {
    pub protocol: u16,
    pub version: String,
    /// Why the Hub refuses the worker; none if it accepts.
    #[serde(default)]
    pub refused: Option<String>,
    /// A retry cannot help.
    #[serde(default)]
    pub for_good: bool,
}
