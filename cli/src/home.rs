//! The data folder, and the investigations in it by the names that people type.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use casebook_hub::{HubError, OpenError, SqliteStore};
use casebook_protocol::InvestigationId;
use casebook_runtime::nats;
use casebook_runtime::store::{Store, StoreError};

use crate::failure::{Exit, Failure};
use crate::screen::safe;

/// So many candidates are named where an id is not unique.
const NAMED: usize = 8;

/// An opened data folder.
pub struct Home {
    /// Where it is.
    pub folder: PathBuf,
    /// What is kept in it.
    pub store: Arc<dyn Store>,
}

impl Home {
    /// Opens the data folder and makes it where it is missing.
    ///
    /// # Errors
    /// It cannot be written, or another process has it.
    pub fn open(folder: &Path) -> Result<Self, Failure> {
        let store = SqliteStore::open(folder).map_err(|e| open_failure(&e))?;
        Ok(Self { folder: folder.to_path_buf(), store: Arc::new(store) })
    }

    /// Opens a data folder that is there.
    ///
    /// # Errors
    /// As [`Home::open`], and when there is none.
    pub fn existing(folder: &Path) -> Result<Self, Failure> {
        if folder.is_dir() {
            return Self::open(folder);
        }
        Err(Failure::usage(
            format!("there is no data folder {}", folder.display()),
            "`casebook investigate` makes it; name another with --data DIR or CASEBOOK_DATA",
        ))
    }

    /// The investigation whose id is, or begins with, `text`.
    ///
    /// # Errors
    /// There is none, or more than one.
    pub async fn find(&self, text: &str) -> Result<InvestigationId, Failure> {
        let all = self.store.investigations().await.map_err(|e| store_failure(&e))?;
        chosen(&all, text)
    }
}

fn chosen(all: &[InvestigationId], text: &str) -> Result<InvestigationId, Failure> {
    if let Some(exact) = all.iter().find(|id| id.as_str() == text) {
        return Ok(exact.clone());
    }
    let matching: Vec<&InvestigationId> =
        all.iter().filter(|id| !text.is_empty() && id.as_str().starts_with(text)).collect();
    match matching.as_slice() {
        [one] => Ok((*one).clone()),
        [] => {
            let whole = text.len() == 36 && text.matches('-').count() == 4;
            let advice = if whole {
                "an alert that a server has accepted begins once an Expert is there and its turn has come; until then \
                 there is nothing to show"
                    .to_owned()
            } else if all.is_empty() {
                "there are no investigations yet".to_owned()
            } else {
                format!("there {}", named(&all.iter().collect::<Vec<_>>()))
            };
            Err(Failure::usage(format!("no investigation has an id that begins with {:?}", safe(text, 80)), advice))
        }
        several => Err(Failure::usage(
            format!("{} investigations have an id that begins with {text:?}", several.len()),
            format!("there {}: give more of the id", named(several)),
        )),
    }
}

fn named(ids: &[&InvestigationId]) -> String {
    let names: Vec<&str> = ids.iter().take(NAMED).map(|id| id.as_str()).collect();
    let more = ids.len().saturating_sub(NAMED);
    let are = if ids.len() == 1 { "is" } else { "are" };
    if more == 0 {
        format!("{are} {}", names.join(", "))
    } else {
        format!("{are} {}, and {more} more (`casebook list`)", names.join(", "))
    }
}

fn open_failure(error: &OpenError) -> Failure {
    let text = error.to_string();
    let (what, advice) = text.rsplit_once(": ").unwrap_or((&text, ""));
    Failure::failed(what, advice)
}

/// What a failure of the store is to a person.
#[must_use]
pub fn store_failure(error: &StoreError) -> Failure {
    match error {
        StoreError::Corrupt { .. } => Failure {
            exit: Exit::NotIntact,
            what: error.to_string(),
            advice: "restore the data folder from a copy; `casebook verify` says how much is concerned".into(),
        },
        StoreError::Newer { .. } => Failure::failed(error, "use a newer casebook: nothing is damaged"),
        StoreError::Unavailable { reason, .. } if reason.contains(nats::FORBIDDEN) => Failure::failed(
            error,
            "name the credentials of a user who may read: --credentials FILE (of the user `reader`)",
        ),
        StoreError::Unavailable { reason, .. } if reason.contains("stream not found") => {
            Failure::failed(error, "no Hub has made its streams on this server yet: start one (casebook-hub)")
        }
        _ => Failure::failed(error, "what is recorded is safe: mend this, then run the same command again"),
    }
}

/// What a failure of the Hub is to a person.
#[must_use]
pub fn hub_failure(error: &HubError) -> Failure {
    match error {
        HubError::Store(error) => store_failure(error),
        HubError::Unknown(_) | HubError::NotRunning(_) | HubError::Rejected(_) => {
            Failure::usage(error, "`casebook list` shows what there is")
        }
        HubError::Broken { .. } => Failure {
            exit: Exit::NotIntact,
            what: error.to_string(),
            advice: "do not rely on it; restore the data folder from a copy".into(),
        },
        HubError::Suspended | HubError::Stopped | HubError::Contended(_) | HubError::Bus(_) => {
            Failure::unfinished(error, "`casebook resume ID` goes on from there")
        }
        HubError::Defect(_) => Failure::defect(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_may_be_cut_short_while_it_is_unique() {
        let all = ["3f2a-1", "3f2b-2", "9c00-3"].map(|t| InvestigationId::new(t).unwrap());
        let check = |text: &str, expect: &str| {
            let got = chosen(&all, text).map_or_else(|f| format!("{}; {}", f.what, f.advice), |id| id.to_string());
            assert_eq!(got, expect);
        };
        check("9", "9c00-3");
        check("3f2a-1", "3f2a-1");
        check(
            "3f",
            "2 investigations have an id that begins with \"3f\"; there are 3f2a-1, 3f2b-2: give more of the id",
        );
        check("x\u{1b}", "no investigation has an id that begins with \"x⟨U+001B⟩\"; there are 3f2a-1, 3f2b-2, 9c00-3");
        check("", "no investigation has an id that begins with \"\"; there are 3f2a-1, 3f2b-2, 9c00-3");
    }
}
