//! The subjects on the wire. All begin with `casebook.`. Those under `casebook.hub`, `task`, `log`, `result`,
//! `artifact` and `dead` are internal.

use std::fmt;

use crate::{ArtifactId, Domain, InvestigationId, Role, Severity, TaskId};

/// Incoming alerts, JSON.
pub const ALERTS: &str = "casebook.alerts";
/// Incoming alerts, answered with the id of the investigation.
pub const OPEN: &str = "casebook.open";
/// Alerts that a Hub has accepted: what it answers on [`OPEN`], JSON.
pub const ACCEPTED: &str = "casebook.accepted";
/// Requests of other programs for consumers of their own, JSON.
pub const FOLLOW: &str = "casebook.follow";
/// The final report of every investigation, JSON.
pub const REPORTS: &str = "casebook.reports";
/// Prefix of messages between our own processes. They are hints and may be lost or duplicated.
pub const HINTS: &str = "casebook.hub.";
/// [`outcomes`] of any queue.
pub const OUTCOMES: &str = "casebook.hub.outcomes.>";
/// [`steps`] of any queue.
pub const STEPS: &str = "casebook.hub.steps.>";
/// [`join`] of any queue.
pub const JOINS: &str = "casebook.hub.join.>";
/// [`presence`] of any queue.
pub const PRESENCE: &str = "casebook.hub.presence.>";
/// A Hub announces that an accepted alert waits for any Hub.
pub const WAITING: &str = "casebook.hub.waiting";

/// The work queue of a task: its role, and its domain for Experts. Every subject that a worker may use ends in its
/// queue, so that a server can limit permissions to one queue.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Queue {
    pub role: Role,
    /// Set for Experts.
    pub domain: Option<Domain>,
}

impl Queue {
    #[must_use]
    pub fn new(role: Role, domain: Option<&Domain>) -> Self {
        Self { role, domain: domain.cloned() }
    }

    /// The queue of a task, read from its id. None if the Hub does not make such ids.
    pub fn of(task: &TaskId) -> Option<Self> {
        Self::of_parts(task.as_str())
    }

    fn of_parts(task: &str) -> Option<Self> {
        let mut parts = task.split('.').skip(1);
        let role = match parts.next()? {
            "plan" | "decide" | "report" => Role::Director,
            "investigate" => Role::Expert,
            "review" | "timeline" => Role::Critic,
            _ => return None,
        };
        let domain = match role {
            Role::Expert => Some(Domain::new(parts.next()?).ok()?),
            Role::Director | Role::Critic => None,
        };
        Some(Self { role, domain })
    }

    /// The name of consumers, streams and users, without dots, such as `expert-network`.
    pub fn name(&self) -> String {
        match &self.domain {
            Some(domain) => format!("{}-{domain}", self.role.name()),
            None => self.role.name().to_owned(),
        }
    }
}

impl fmt::Display for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.domain {
            Some(domain) => write!(f, "{}.{domain}", self.role.name()),
            None => f.write_str(self.role.name()),
        }
    }
}

pub fn tasks(role: Role, domain: Option<&Domain>) -> String {
    format!("casebook.task.{}", Queue::new(role, domain))
}

/// Announcements of recorded outcomes, bincode.
pub fn outcomes(queue: &Queue) -> String {
    format!("casebook.hub.outcomes.{queue}")
}

/// Announcements of finished calls, bincode.
pub fn steps(queue: &Queue) -> String {
    format!("casebook.hub.steps.{queue}")
}

/// Requests of workers to join, JSON.
pub fn join(queue: &Queue) -> String {
    format!("casebook.hub.join.{queue}")
}

/// Heartbeats of workers, JSON.
pub fn presence(queue: &Queue) -> String {
    format!("casebook.hub.presence.{queue}")
}

/// Jobs that were given up, with the reason, JSON.
pub fn dead(queue: &Queue) -> String {
    format!("casebook.dead.{queue}")
}

/// Messages that no Hub could handle, with the reason, JSON.
pub const DEAD_HUB: &str = "casebook.dead.hub";

/// Accepted alerts that wait for a Hub. One Hub holds each of them during its investigation.
pub fn cases(severity: Severity) -> String {
    format!("casebook.hub.case.{}", severity.name())
}

/// Every recorded event of an investigation in order, JSON.
pub fn events(investigation: &InvestigationId) -> String {
    format!("casebook.events.{investigation}")
}

/// The Timeline of an investigation after each rewrite, JSON.
pub fn timeline(investigation: &InvestigationId) -> String {
    format!("casebook.timeline.{investigation}")
}

pub fn log(investigation: &InvestigationId) -> String {
    format!("{LOG}{investigation}")
}

/// The investigation of a subject that [`log`] made.
pub fn investigation_of_log(subject: &str) -> Option<InvestigationId> {
    InvestigationId::new(subject.strip_prefix(LOG)?).ok()
}

const LOG: &str = "casebook.log.";

/// A part of an artifact, from 0.
pub fn artifact(id: &ArtifactId, part: u32) -> String {
    format!("casebook.artifact.{id}.{part}")
}

/// The queue of the worker that records under `key`; none for the Hub.
pub fn writer(key: &str) -> Option<Queue> {
    Queue::of_parts(key.split_once('/')?.1)
}

/// The place of what is recorded once under `key`, such as `outcome/r1.plan` or `report`.
pub fn result(investigation: &InvestigationId, key: &str) -> String {
    let key_token = key.replace('/', ".");
    match writer(key) {
        Some(queue) => format!("casebook.result.{queue}.{investigation}.{key_token}"),
        None => format!("casebook.result.hub.{investigation}.{key_token}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TaskKind;

    #[test]
    fn the_queue_of_every_task_is_read_from_its_id() {
        let network = Domain::new("network").unwrap();
        for kind in [
            TaskKind::Plan,
            TaskKind::Investigate,
            TaskKind::Review,
            TaskKind::Timeline,
            TaskKind::Decide,
            TaskKind::Report,
        ] {
            let domain = (kind == TaskKind::Investigate).then_some(&network);
            assert_eq!(Queue::of(&TaskId::of(3, kind, domain)), Some(Queue::new(kind.role(), domain)));
        }
        for odd in ["plan", "r1", "r1.investigate", "r1.other", "hub"] {
            assert_eq!(Queue::of_parts(odd), None, "{odd}");
        }
    }

    #[test]
    fn what_a_worker_records_is_under_its_own_subject() {
        let id = InvestigationId::new("i-1").unwrap();
        let check = |key: &str, expect: &str| assert_eq!(result(&id, key), expect);
        check(
            "call/r1.investigate.network.t2.0",
            "casebook.result.expert.network.i-1.call.r1.investigate.network.t2.0",
        );
        check("outcome/r2.review", "casebook.result.critic.i-1.outcome.r2.review");
        check("model/r1.plan.m1", "casebook.result.director.i-1.model.r1.plan.m1");
        check("report", "casebook.result.hub.i-1.report");
    }
}
