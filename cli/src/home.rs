//! Where investigations are kept, and the investigations in it by the names that people type: a data folder, or the
//! NATS server of a team. Commands read both through the same store.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use casebook_hub::archive::{self, Past};
use casebook_hub::{MemoryStore, SqliteStore};
use casebook_protocol::InvestigationId;
use casebook_runtime::store::Store;

use crate::commands::investigate::{data_option, quoted};
use crate::failure::Failure;
use crate::nats::Nats;
use crate::screen::safe;

/// How many candidates are named if an id is not unique.
const NAMED: usize = 8;

pub struct Home {
    /// The data folder. The indexes of evidence are in it, also if the investigations are on a server.
    pub folder: PathBuf,
    pub store: Arc<dyn Store>,
    /// The server that has the investigations.
    server: Option<Nats>,
}

impl Home {
    /// The store in `store`, and `folder` for the indexes of evidence.
    #[must_use]
    pub fn with(folder: &Path, store: Arc<dyn Store>) -> Self {
        Self { folder: folder.to_path_buf(), store, server: None }
    }

    /// A store in memory, and `folder` for the indexes of evidence.
    #[must_use]
    pub fn in_memory(folder: &Path) -> Self {
        Self::with(folder, Arc::new(MemoryStore::default()))
    }

    /// Opens the data folder. Creates it if it is missing.
    pub fn open(folder: &Path) -> Result<Self, Failure> {
        Ok(Self::with(folder, Arc::new(SqliteStore::open(folder)?)))
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

    /// Opens what the options name: the server if there is one, else the data folder, which must be there.
    pub async fn named(folder: &Path, nats: &Nats) -> Result<Self, Failure> {
        if nats.nats.is_none() {
            return Self::existing(folder);
        }
        let store = nats.connect("reader").await?.env().store;
        Ok(Self { server: Some(nats.clone()), ..Self::with(folder, store) })
    }

    /// The investigation whose id is, or begins with, `text`.
    pub async fn find(&self, text: &str) -> Result<InvestigationId, Failure> {
        find(self.store.as_ref(), text).await
    }

    /// What is recorded of the investigation whose id is, or begins with, `text`.
    pub async fn read(&self, text: &str) -> Result<(InvestigationId, Past), Failure> {
        let id = self.find(text).await?;
        let past = archive::read(self.store.as_ref(), &id).await?;
        Ok((id, past))
    }

    pub const fn is_local(&self) -> bool {
        self.server.is_none()
    }

    /// The server or the folder, for a sentence.
    pub fn place(&self) -> String {
        let url = self.server.as_ref().and_then(|server| server.nats.clone());
        url.unwrap_or_else(|| self.folder.display().to_string())
    }

    /// How an investigation that is not finished goes on, for a sentence.
    pub fn goes_on(&self, id: &InvestigationId) -> String {
        let Some(Nats { nats: Some(url), credentials, ca, .. }) = &self.server else {
            return format!("`casebook resume {id}{}` goes on with it", data_option(&self.folder));
        };
        let option = |name: &str, path: &Option<PathBuf>| {
            path.as_ref().map_or_else(String::new, |path| format!(" {name} {}", quoted(&path.display().to_string())))
        };
        let who = option("--credentials", credentials);
        let ca = option("--ca", ca);
        format!("the team at {url} works on it; `casebook watch {id} --nats {url}{who}{ca}` shows how")
    }
}

/// The investigation in `store` whose id is, or begins with, `text`.
pub async fn find(store: &dyn Store, text: &str) -> Result<InvestigationId, Failure> {
    chosen(&store.investigations().await?, text)
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
