//! The answer to a verification, and its sentences for the page and the terminal.

use casebook_hub::Verification;
use casebook_report::words::count;
use serde::Serialize;

#[derive(Debug, Serialize)]
pub struct Verified<'a> {
    /// No difference was found.
    pub intact: bool,
    #[serde(flatten)]
    pub found: &'a Verification,
}

impl<'a> Verified<'a> {
    #[must_use]
    pub fn of(found: &'a Verification) -> Self {
        Self { intact: found.problems.is_empty(), found }
    }
}

/// What was compared.
#[must_use]
pub fn checked(found: &Verification) -> Vec<String> {
    let ending = if found.closed { "; the last one closes the investigation" } else { "" };
    let (findings, citations) = (count(found.findings, "finding"), count(found.citations, "citation"));
    let mut checked = vec![
        format!("{}: each follows the one before{ending}", count(found.events, "event")),
        format!("{}: each has its hash", count(found.artifacts, "artifact")),
        format!("{}: each is what the log says", count(found.results, "recorded result")),
        format!("{findings} with {citations}: checked again with the same answers"),
    ];
    if found.report {
        checked.push("the recorded report: it is what the log gives".into());
    }
    checked
}

/// What the store alone cannot show.
#[must_use]
pub fn unknown(found: &Verification) -> Vec<String> {
    let mut unknown = Vec::new();
    if !found.closed {
        unknown.push(
            "whether the log is complete: it is not closed, so its last events may be missing (no report is recorded yet)"
                .into(),
        );
    }
    if found.unhashed > 0 {
        let outcomes = match found.unhashed {
            1 => "the outcome of 1 task is".to_owned(),
            n => format!("the outcomes of {n} tasks are"),
        };
        unknown.push(format!("whether {outcomes} unchanged: an older version recorded no hash of them"));
    }
    unknown
}

/// What differs from what was recorded.
#[must_use]
pub fn problems(found: &Verification) -> Vec<String> {
    let problem = |one: &casebook_hub::verify::Problem| {
        one.seq.map_or_else(|| one.what.clone(), |seq| format!("event {seq}: {}", one.what))
    };
    found.problems.iter().map(problem).collect()
}
