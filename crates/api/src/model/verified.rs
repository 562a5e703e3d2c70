//! The answer to a verification.

use casebook_hub::Verification;
use serde::Serialize;

#[derive(Debug, Serialize)]
pub struct Verified<'a> {
    /// No difference was found.
    pub intact: bool,
    pub events: u64,
    pub artifacts: u64,
    pub results: u64,
    pub findings: u64,
    pub citations: u64,
    /// False: the investigation is open, so its last events may be missing.
    pub closed: bool,
    /// The recorded report was compared.
    pub report: bool,
    pub problems: Vec<Difference<'a>>,
    /// Messages in the log that no Hub wrote, and that change nothing.
    pub foreign: &'a [String],
}

#[derive(Debug, Serialize)]
pub struct Difference<'a> {
    /// The event, if it concerns one.
    pub seq: Option<u64>,
    pub what: &'a str,
}

impl<'a> Verified<'a> {
    #[must_use]
    pub fn of(found: &'a Verification) -> Self {
        Self {
            intact: found.problems.is_empty(),
            events: found.events,
            artifacts: found.artifacts,
            results: found.results,
            findings: found.findings,
            citations: found.citations,
            closed: found.closed,
            report: found.report,
            problems: found.problems.iter().map(|one| Difference { seq: one.seq, what: &one.what }).collect(),
            foreign: &found.foreign,
        }
    }
}
