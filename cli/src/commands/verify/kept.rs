//! Compares the log with a report that was kept elsewhere.

use std::path::{Path, PathBuf};

use casebook_hub::{Verification, report};
use casebook_protocol::{Head, InvestigationId, Report};
use casebook_report::sign::{self, SignError, Signed};
use casebook_report::words::count;
use casebook_runtime::files;

use super::Told;
use crate::failure::Failure;

pub(super) struct Copy {
    file: String,
    report: Report,
    signed: bool,
    /// The public key and what the signature shows.
    checked: Option<(PathBuf, Signed)>,
}

/// Reads the report and checks its signature.
///
/// Errors: A file cannot be read, or holds something else, or the report of another investigation.
pub(super) fn read(file: &Path, id: &InvestigationId, public_key: Option<&Path>) -> Result<Copy, Failure> {
    let shown = file.display().to_string();
    let advice = "name a report.json of this investigation with --report";
    let unread = |why: String| Failure::usage(format!("cannot read the report {shown}: {why}"), advice);
    let json = std::fs::read_to_string(file).map_err(|e| unread(e.to_string()))?;
    // The signature comes first: of a changed report, nothing else counts.
    let checked = public_key.map(|key| signature(&json, key).map(|signed| (key.to_path_buf(), signed))).transpose()?;
    let report: Report = serde_json::from_str(&json).map_err(|e| unread(e.to_string()))?;
    if report.investigation != *id {
        let what = format!("expected the report of {id} in {shown}, got that of {}", report.investigation);
        return Err(Failure::usage(what, advice));
    }
    Ok(Copy { file: shown, report, signed: sign::has_signature(&json), checked })
}

fn signature(json: &str, key: &Path) -> Result<Signed, Failure> {
    let advice = "name the file that `casebook key` wrote beside the private key, FILE.pub";
    let pem = files::text(key, "the public key").map_err(|e| Failure::usage(e, advice))?;
    sign::check(json, &pem).map_err(|error| match error {
        SignError::Key { .. } => Failure::usage(format!("cannot use {}: {error}", key.display()), advice),
        SignError::Report(_) => Failure::usage(error, "name a report.json with --report"),
    })
}

impl Copy {
    pub(super) fn compare(&self, found: &Verification, told: &mut Told) {
        let file = &self.file;
        match &self.checked {
            Some((key, Signed::Valid)) => {
                told.checked.push(format!("the signature of {file}: it fits the key {}", key.display()));
            }
            Some((key, Signed::Invalid)) => told.problems.push(format!(
                "the signature of {file} does not fit the key {}: another key made it, or the report was changed",
                key.display()
            )),
            Some((_, Signed::Missing)) => told.problems.push(format!("{file} has no signature")),
            None if self.signed => {
                told.unknown
                    .push(format!("whether the signature of {file} is valid: give the public key (--public-key FILE)"));
            }
            None => told.unknown.push(format!("whether {file} itself was changed: it has no signature")),
        }
        match self.report.proof.as_ref().map(|proof| &proof.head) {
            None => {
                told.unknown.push(format!("whether {file} is of this log: an older version wrote it without a hash"))
            }
            Some(head) => self.head(head, found, told),
        }
        let Some(built) = &found.built else { return };
        if report::same(&self.report, built) {
            told.checked.push(format!("{file}: it is what the log gives"));
        } else {
            told.problems.push(format!("{file} is not the report that the log gives"));
        }
    }

    fn head(&self, head: &Head, found: &Verification, told: &mut Told) {
        let (file, seq) = (&self.file, head.seq);
        let at = usize::try_from(seq).ok().and_then(|seq| found.chain.get(seq.checked_sub(1)?));
        match at {
            None => told.problems.push(format!(
                "{file} was made from {}, and the log has {}: the last ones were removed",
                count(seq, "event"),
                found.events
            )),
            Some(hash) if *hash != head.hash => told.problems.push(format!(
                "event {seq} has another hash than in {file}: the log, or the report, is not the one that was recorded"
            )),
            Some(_) if found.events > seq => told.problems.push(format!(
                "{file} was made from {}, and the log has {}: events were added after the report",
                count(seq, "event"),
                found.events
            )),
            Some(_) => told.checked.push(format!("the log up to event {seq}: its last hash is the one in {file}")),
        }
    }
}
