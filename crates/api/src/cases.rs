//! Where pages and API read investigations: lists from the index, single logs from the store.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use casebook_hub::archive;
use casebook_hub::{HubError, State};
use casebook_index::{Brief, Counts, Figures, Index, IndexError, Wanted};
use casebook_protocol::{ArtifactId, InvestigationId, Recorded, Timestamp};
use casebook_runtime::store::{Feed, News, Store, StoreError};

use crate::model::row::Row;

/// Logs with their states that stay in memory.
const HELD: usize = 48;

#[derive(Debug, Clone, thiserror::Error)]
pub enum Trouble {
    #[error("investigation {0} not found")]
    Unknown(String),
    #[error("{0}")]
    Broken(String),
    /// Names files of the server, so that its text is for the log alone.
    #[error("{0}")]
    Unreadable(String),
    #[error("this cursor is not from a page of this list")]
    Cursor,
}

impl From<IndexError> for Trouble {
    fn from(error: IndexError) -> Self {
        match error {
            IndexError::Cursor(_) => Self::Cursor,
            error => Self::Unreadable(error.to_string()),
        }
    }
}

impl From<HubError> for Trouble {
    fn from(error: HubError) -> Self {
        match error {
            HubError::Unknown(id) => Self::Unknown(id.to_string()),
            error @ HubError::Broken { .. } => Self::Broken(error.to_string()),
            error => Self::Unreadable(error.to_string()),
        }
    }
}

impl From<StoreError> for Trouble {
    fn from(error: StoreError) -> Self {
        Self::Unreadable(error.to_string())
    }
}

/// The log of an investigation with its state.
#[derive(Debug, Clone)]
pub struct Held {
    pub log: Vec<Recorded>,
    pub state: State,
}

impl Held {
    /// The log up to event `at`.
    #[must_use]
    pub fn until(&self, at: u64) -> &[Recorded] {
        self.log.get(..self.log.partition_point(|entry| entry.seq <= at)).unwrap_or_default()
    }
}

/// An investigation that has new events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    pub investigation: InvestigationId,
    pub seq: u64,
}

#[derive(Debug, Clone)]
pub struct Listed {
    pub rows: Vec<Row>,
    /// The cursor of the next page.
    pub next: Option<String>,
}

#[derive(Default)]
struct Memory {
    held: BTreeMap<InvestigationId, Arc<Held>>,
    /// The least recently read comes first.
    order: VecDeque<InvestigationId>,
}

impl Memory {
    fn keep(&mut self, id: &InvestigationId, held: Arc<Held>) {
        self.held.insert(id.clone(), held);
        self.order.retain(|other| other != id);
        self.order.push_back(id.clone());
        while self.order.len() > HELD
            && let Some(oldest) = self.order.pop_front()
        {
            self.held.remove(&oldest);
        }
    }
}

pub struct Cases {
    store: Arc<dyn Store>,
    index: Index,
    memory: Mutex<Memory>,
    /// One reader at a time brings the memory up to date.
    reading: tokio::sync::Mutex<()>,
}

impl Cases {
    #[must_use]
    pub fn new(store: Arc<dyn Store>, index: Index) -> Self {
        Self { store, index, memory: Mutex::default(), reading: tokio::sync::Mutex::default() }
    }

    #[must_use]
    pub fn store(&self) -> &dyn Store {
        self.store.as_ref()
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A page of investigations. `now` decides which are quiet.
    pub async fn list(&self, wanted: &Wanted, now: Timestamp) -> Result<Listed, Trouble> {
        self.index.catch_up(self.store()).await?;
        let page = self.index.page(wanted, now)?;
        Ok(Listed { rows: page.items.into_iter().map(Row::from).collect(), next: page.next })
    }

    /// How many there are, and little of each of the newest, as of the last list.
    pub fn newest(&self, limit: u32) -> Result<(u64, Vec<Brief>), Trouble> {
        Ok((self.index.all()?, self.index.newest(limit)?))
    }

    /// Numbers over all investigations, as of the last list.
    pub fn numbers(&self) -> Result<(Figures, BTreeMap<String, u64>, Counts), Trouble> {
        Ok((self.index.figures(None, None)?, self.index.verdicts()?, self.index.counts()?))
    }

    pub async fn read(&self, id: &InvestigationId) -> Result<Arc<Held>, Trouble> {
        let _one = self.reading.lock().await;
        let known = self.memory().held.get(id).cloned();
        let Some(known) = known else {
            let log = archive::log(self.store(), id).await?;
            if log.is_empty() {
                return Err(Trouble::Unknown(id.to_string()));
            }
            let held = Arc::new(Held { state: State::replay(&log), log });
            self.memory().keep(id, Arc::clone(&held));
            return Ok(held);
        };
        if known.state.closed.is_some() {
            return Ok(known);
        }
        let tail = self.store.log(id, known.state.last_seq() + 1).await?;
        drop(known);
        // Taken out, so that it grows in place unless a page shows it just now.
        let Some(mut held) = self.memory().held.remove(id) else { return Err(Trouble::Unknown(id.to_string())) };
        if !tail.is_empty() {
            let grown = Arc::make_mut(&mut held);
            for entry in tail {
                let prev = grown.state.last.as_ref().map_or_else(|| Recorded::genesis(id), |(_, hash)| hash.clone());
                let followed = entry.follows(id, grown.state.last_seq() + 1, &prev);
                followed.map_err(|reason| HubError::Broken { investigation: id.clone(), reason })?;
                grown.state.apply(&entry);
                grown.log.push(entry);
            }
        }
        self.memory().keep(id, Arc::clone(&held));
        Ok(held)
    }

    pub async fn artifact(&self, id: &ArtifactId) -> Result<Option<Vec<u8>>, Trouble> {
        Ok(self.store.get(id).await?)
    }

    /// Follows what is appended from now on.
    pub async fn follow(&self) -> Result<Follow, Trouble> {
        let news = self.store.news().await?;
        Ok(Follow { store: Arc::clone(&self.store), news, position: self.store.end().await? })
    }
}

pub struct Follow {
    store: Arc<dyn Store>,
    news: Box<dyn News>,
    position: u64,
}

impl Follow {
    /// Waits for the next appends.
    pub async fn next(&mut self) -> Result<Vec<Notice>, Trouble> {
        loop {
            let Feed { appended, position } = self.store.feed(self.position).await?;
            if position == self.position {
                self.news.wait().await?;
                continue;
            }
            self.position = position;
            let last = |one: casebook_runtime::store::Appended| {
                let seq = one.entries.ok().and_then(|entries| entries.last().map(|entry| entry.seq));
                Notice { investigation: one.investigation, seq: seq.unwrap_or(0) }
            };
            return Ok(appended.into_iter().map(last).collect());
        }
    }
}
