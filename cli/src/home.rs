//! The stored investigations and their ids: in a data folder, or on the NATS server of a team. Commands read
//! both through the same store.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use casebook_hub::archive::{self, Past};
use casebook_hub::{MemoryStore, OpenError, SqliteStore};
use casebook_protocol::InvestigationId;
use casebook_protocol::hash::sha256_hex;
use casebook_runtime::store::Store;

use crate::commands::investigate::{data_option, quoted};
use crate::failure::Failure;
use crate::nats::Nats;
use crate::screen::safe;

/// Maximum number of candidates to name if an id is ambiguous.
const NAMED: usize = 8;

pub struct Home {
    /// The data folder. It has the indexes of evidence even if the investigations are on a server.
    pub folder: PathBuf,
    pub store: Arc<dyn Store>,
    /// The server that stores the investigations, if any.
    server: Option<Nats>,
}

impl Home {
    /// Uses `store`, and `folder` for the indexes of evidence.
    #[must_use]
    pub fn with(folder: &Path, store: Arc<dyn Store>) -> Self {
        Self { folder: folder.to_path_buf(), store, server: None }
    }

    /// Uses a store in memory, and `folder` for the indexes of evidence.
    #[must_use]
    pub fn in_memory(folder: &Path) -> Self {
        Self::with(folder, Arc::new(MemoryStore::default()))
    }

    /// Opens the data folder and creates it if it is missing.
    pub fn open(folder: &Path) -> Result<Self, Failure> {
        Ok(Self::with(folder, Arc::new(SqliteStore::open(folder)?)))
    }

    /// Opens a data folder, which must exist, to continue an investigation.
    pub fn existing(folder: &Path) -> Result<Self, Failure> {
        exists(folder)?;
        Self::open(folder)
    }

    /// Opens a data folder, which must exist, for reading. Another process may write to it meanwhile.
    pub fn reading(folder: &Path) -> Result<Self, Failure> {
        exists(folder)?;
        let store = match SqliteStore::read(folder) {
            Err(OpenError::Older { .. } | OpenError::Empty { .. }) => match SqliteStore::open(folder) {
                // A writer that just began makes the tables.
                Err(OpenError::Locked { .. }) => SqliteStore::read(folder)?,
                converted => {
                    drop(converted?);
                    SqliteStore::read(folder)?
                }
            },
            store => store?,
        };
        Ok(Self::with(folder, Arc::new(store)))
    }

    /// Reads from the server in `nats`, or else from the data folder, which must exist.
    pub async fn named(folder: &Path, nats: &Nats) -> Result<Self, Failure> {
        if nats.nats.is_none() {
            return Self::reading(folder);
        }
        let store = nats.connect("reader").await?.env().store;
        Ok(Self { server: Some(nats.clone()), ..Self::with(folder, store) })
    }

    /// The investigation whose id begins with `text`.
    pub async fn find(&self, text: &str) -> Result<InvestigationId, Failure> {
        find(self.store.as_ref(), text).await
    }

    /// The records of the investigation whose id begins with `text`.
    pub async fn read(&self, text: &str) -> Result<(InvestigationId, Past), Failure> {
        let id = self.find(text).await?;
        let past = archive::read(self.store.as_ref(), &id).await?;
        Ok((id, past))
    }

    pub const fn is_local(&self) -> bool {
        self.server.is_none()
    }

    /// Where the index of these investigations is kept.
    pub fn index_folder(&self) -> PathBuf {
        match self.server.as_ref().and_then(|server| server.nats.as_deref()) {
            None => self.folder.clone(),
            Some(url) => {
                // What is skipped as foreign depends on the key.
                let key = self.server.as_ref().and_then(|server| server.mac_key_file.as_deref());
                let key = key.and_then(|file| std::fs::read(file).ok()).map(|key| sha256_hex(&key)).unwrap_or_default();
                let name: String = sha256_hex(format!("{url}\n{key}").as_bytes()).chars().take(16).collect();
                self.folder.join("servers").join(name)
            }
        }
    }

    /// The server or the folder, for messages.
    pub fn place(&self) -> String {
        let url = self.server.as_ref().and_then(|server| server.nats.clone());
        url.unwrap_or_else(|| self.folder.display().to_string())
    }

    /// How to continue an unfinished investigation, for messages.
    pub fn goes_on(&self, id: &InvestigationId) -> String {
        let Some(Nats { nats: Some(url), credentials, ca, .. }) = &self.server else {
            return format!("continue it with `casebook resume {id}{}`", data_option(&self.folder));
        };
        let option = |name: &str, path: &Option<PathBuf>| {
            path.as_ref().map_or_else(String::new, |path| format!(" {name} {}", quoted(&path.display().to_string())))
        };
        let who = option("--credentials", credentials);
        let ca = option("--ca", ca);
        format!("the team at {url} is working on it; watch it with `casebook watch {id} --nats {url}{who}{ca}`")
    }
}

fn exists(folder: &Path) -> Result<(), Failure> {
    if folder.is_dir() {
        return Ok(());
    }
    Err(Failure::usage(
        format!("data folder {} does not exist", folder.display()),
        "`casebook investigate` creates it; name another with --data DIR or CASEBOOK_DATA",
    ))
}

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
                "an alert that a server accepted starts when an Expert is available and its turn comes; until then \
                 it is not listed"
                    .to_owned()
            } else if all.is_empty() {
                "no investigations are stored yet".to_owned()
            } else {
                format!("known: {}", named(&all.iter().collect::<Vec<_>>()))
            };
            Err(Failure::usage(format!("no investigation has an id that begins with {:?}", safe(text, 80)), advice))
        }
        several => Err(Failure::usage(
            format!("{} investigations have an id that begins with {text:?}", several.len()),
            format!("type more of the id: {}", named(several)),
        )),
    }
}

fn named(ids: &[&InvestigationId]) -> String {
    let names: Vec<&str> = ids.iter().take(NAMED).map(|id| id.as_str()).collect();
    let more = ids.len().saturating_sub(NAMED);
    if more == 0 { names.join(", ") } else { format!("{}, and {more} more (`casebook list`)", names.join(", ")) }
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
        check("3f", "2 investigations have an id that begins with \"3f\"; type more of the id: 3f2a-1, 3f2b-2");
        check("x\u{1b}", "no investigation has an id that begins with \"x⟨U+001B⟩\"; known: 3f2a-1, 3f2b-2, 9c00-3");
        check("", "no investigation has an id that begins with \"\"; known: 3f2a-1, 3f2b-2, 9c00-3");
    }
}
