//! Acts to account for. A dismissal must explain each of them (rule "verdict").

use serde::{Deserialize, Serialize};

use crate::checked::RecordRef;
use crate::{FindingId, Timestamp, closed};

closed! {
    /// What a record says was done, in terms that all sensors share.
    pub enum ActKind {
        Process = "process", "a process was started";
        Connection = "connection", "a network connection, a DNS query or a request";
        ModuleLoad = "module_load", "a kernel module or a driver was loaded or removed";
        FileWrite = "file_write", "a file was written, changed or removed";
        AccountChange = "account_change", "an account, a group, a password, a key or a privilege was changed";
        ServiceChange = "service_change", "a service, a scheduled task or an autostart entry was changed";
        ConfigChange = "config_change", "a setting, the registry or a log was changed";
        ProcessAccess = "process_access", "a process read or wrote another process, or ran code in it";
        SignIn = "sign_in", "a sign-in, or an attempt";
        ApiCall = "api_call", "a call of a service's interface";
        Other = "other", "a record of another kind";
    }
}

closed! {
    /// Why a dismissal must account for a record.
    pub enum ActPart {
        Alerted = "alerted", "the alerted occurrence";
        Below = "below", "done by the alerted process, or by a process below it";
        Claimed = "claimed", "of the kind that the alert claims, on the alerted host";
        Origin = "origin", "a write to a script or program that explains the activity";
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Act {
    pub part: ActPart,
    pub kind: ActKind,
    pub record: RecordRef,
    pub time: Option<Timestamp>,
    /// The program or object, at most 80 characters. The recorded party may have chosen it.
    pub what: String,
}

/// What the alert claims happened, and whether the evidence has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    pub kind: ActKind,
    /// Number of records of this kind on the alerted host, in the time around the alert.
    pub found: u64,
    /// Sensors that record this kind, by configuration, and cover host and time.
    pub watched_by: Vec<String>,
}

/// The acts that the evidence of one Expert shows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Acts {
    /// At most [`MAX_ACTS`], in order of time.
    pub listed: Vec<Act>,
    /// Number of further acts. Also counts what could not be read.
    pub more: u64,
    /// None if the rule of the alert names no kind of act.
    pub claim: Option<Claim>,
    /// Ids, paths, hashes and packages of the alerted occurrence and of its cause. A second source must show one.
    pub keys: Vec<String>,
    /// URL prefixes of package sources that the configuration trusts.
    pub trusted: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccountedAct {
    pub act: Act,
    /// The finding that explains it; none if no credible finding does.
    pub by: Option<FindingId>,
}

/// How far the findings account for the acts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Accounting {
    pub acts: Vec<AccountedAct>,
    /// Number of further acts.
    pub more: u64,
    pub claim: Option<Claim>,
}

impl Accounting {
    pub fn total(&self) -> u64 {
        self.acts.len() as u64 + self.more
    }

    pub fn explained(&self) -> u64 {
        self.acts.iter().filter(|act| act.by.is_some()).count() as u64
    }

    pub fn open(&self) -> impl Iterator<Item = &Act> {
        self.acts.iter().filter(|act| act.by.is_none()).map(|act| &act.act)
    }
}

/// Further acts are counted, and a dismissal cannot account for them.
pub const MAX_ACTS: usize = 200;
