//! Subjects on the wire, spelled in this one file (design, section 6).

use crate::{Domain, InvestigationId, Role};

/// Alerts come in here, JSON.
pub const ALERTS: &str = "casebook.alerts";
/// The same, answered with the investigation's id.
pub const OPEN: &str = "casebook.open";
/// The final report of every investigation, JSON.
pub const REPORTS: &str = "casebook.reports";
/// Outcomes of tasks on their way to the Hub, bincode.
pub const OUTCOMES: &str = "casebook.hub.outcomes";
/// Finished calls on their way to the Hub, bincode.
pub const STEPS: &str = "casebook.hub.steps";

/// The work queue of a role, of one domain for Experts.
#[must_use]
pub fn tasks(role: Role, domain: Option<&Domain>) -> String {
    match domain {
        Some(domain) => format!("casebook.task.{}.{domain}", role.name()),
        None => format!("casebook.task.{}", role.name()),
    }
}

/// Every recorded event of an investigation in order, JSON.
#[must_use]
pub fn events(investigation: &InvestigationId) -> String {
    format!("casebook.events.{investigation}")
}

/// The Timeline of an investigation after each rewrite, JSON.
#[must_use]
pub fn timeline(investigation: &InvestigationId) -> String {
    format!("casebook.timeline.{investigation}")
}
