//! Where pages and API read investigations: [`Cases`]. [`StoreCases`] folds the logs of a [`Store`] and keeps the
//! results; an index can replace it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use casebook_hub::archive;
use casebook_hub::{HubError, State};
use casebook_protocol::{ArtifactId, ChainError, InvestigationId, Recorded};
use casebook_runtime::store::{Store, StoreError};

use crate::model::row::Row;

/// Logs with their states that stay in memory. Rows always stay.
const HELD: usize = 48;

#[derive(Debug, Clone, thiserror::Error)]
pub enum Trouble {
    #[error("investigation {0} not found")]
    Unknown(String),
    #[error("{0}")]
    Unreadable(String),
}

impl From<HubError> for Trouble {
    fn from(error: HubError) -> Self {
        match error {
            HubError::Unknown(id) => Self::Unknown(id.to_string()),
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
    /// As it was after event `at`.
    #[must_use]
    pub fn until(&self, at: u64) -> Self {
        let log: Vec<Recorded> = self.log.iter().take_while(|entry| entry.seq <= at).cloned().collect();
        let state = State::replay(&log);
        Self { log, state }
    }
}

/// An investigation that has new events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    pub investigation: InvestigationId,
    pub seq: u64,
}

#[async_trait]
pub trait Cases: Send + Sync + 'static {
    /// Every investigation, the newest first.
    async fn rows(&self) -> Result<Vec<Arc<Row>>, Trouble>;

    async fn read(&self, id: &InvestigationId) -> Result<Arc<Held>, Trouble>;

    async fn artifact(&self, id: &ArtifactId) -> Result<Option<Vec<u8>>, Trouble>;

    /// Reads what was recorded since the last call.
    async fn news(&self) -> Result<Vec<Notice>, Trouble>;
}

#[derive(Default)]
struct Memory {
    rows: BTreeMap<InvestigationId, Arc<Row>>,
    held: BTreeMap<InvestigationId, Arc<Held>>,
    /// The least recently read comes first.
    order: VecDeque<InvestigationId>,
}

impl Memory {
    fn keep(&mut self, id: &InvestigationId, held: Arc<Held>) {
        self.rows.insert(id.clone(), Arc::new(Row::of(id, &held.log, &held.state)));
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

pub struct StoreCases {
    store: Arc<dyn Store>,
    memory: Mutex<Memory>,
    /// One reader at a time brings the memory up to date.
    reading: tokio::sync::Mutex<()>,
}

impl StoreCases {
    #[must_use]
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store, memory: Mutex::default(), reading: tokio::sync::Mutex::default() }
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Brings one investigation up to date. The second value is whether it has new events.
    async fn refreshed(&self, id: &InvestigationId) -> Result<(Arc<Held>, bool), Trouble> {
        let known = self.memory().held.get(id).cloned();
        let Some(mut held) = known else {
            let log = archive::log(self.store.as_ref(), id).await?;
            if log.is_empty() {
                return Err(Trouble::Unknown(id.to_string()));
            }
            let held = Arc::new(Held { state: State::replay(&log), log });
            self.memory().keep(id, Arc::clone(&held));
            return Ok((held, true));
        };
        if held.state.closed.is_some() {
            return Ok((held, false));
        }
        let tail = self.store.log(id, held.state.last_seq() + 1).await?;
        if tail.is_empty() {
            return Ok((held, false));
        }
        let grown = Arc::make_mut(&mut held);
        for entry in tail {
            follows(&grown.state, &entry).map_err(|reason| HubError::Broken { investigation: id.clone(), reason })?;
            grown.state.apply(&entry);
            grown.log.push(entry);
        }
        self.memory().keep(id, Arc::clone(&held));
        Ok((held, true))
    }

    /// True if nothing was recorded since the row was made. A log that cannot be read stays so until it is opened.
    async fn unchanged(&self, id: &InvestigationId) -> Result<bool, Trouble> {
        let (row, held) = {
            let memory = self.memory();
            (memory.rows.get(id).cloned(), memory.held.contains_key(id))
        };
        match row {
            None => Ok(false),
            Some(row) if row.closed.is_some() || row.trouble.is_some() => Ok(true),
            Some(_) if held => Ok(false),
            Some(row) => Ok(self.store.log(id, row.seq + 1).await?.is_empty()),
        }
    }

    async fn all(&self) -> Result<Vec<Notice>, Trouble> {
        let _one = self.reading.lock().await;
        let mut news = Vec::new();
        for id in self.store.investigations().await? {
            if self.unchanged(&id).await? {
                continue;
            }
            match self.refreshed(&id).await {
                Ok((held, true)) => {
                    news.push(Notice { investigation: id, seq: held.state.last_seq() });
                }
                Ok((_, false)) => {}
                Err(trouble) => {
                    self.memory().rows.insert(id.clone(), Arc::new(Row::damaged(&id, trouble.to_string())));
                }
            }
        }
        Ok(news)
    }
}

fn follows(state: &State, entry: &Recorded) -> Result<(), ChainError> {
    let last = state.last.as_ref();
    let expected = state.last_seq() + 1;
    if entry.seq != expected {
        return Err(ChainError::Sequence { expected, found: entry.seq });
    }
    if last.is_some_and(|(_, hash)| *hash != entry.prev) {
        return Err(ChainError::Link { seq: entry.seq });
    }
    Ok(())
}

#[async_trait]
impl Cases for StoreCases {
    async fn rows(&self) -> Result<Vec<Arc<Row>>, Trouble> {
        self.all().await?;
        let mut rows: Vec<Arc<Row>> = self.memory().rows.values().cloned().collect();
        rows.sort_by(|a, b| (b.opened, &a.id).cmp(&(a.opened, &b.id)));
        Ok(rows)
    }

    async fn read(&self, id: &InvestigationId) -> Result<Arc<Held>, Trouble> {
        let _one = self.reading.lock().await;
        Ok(self.refreshed(id).await?.0)
    }

    async fn artifact(&self, id: &ArtifactId) -> Result<Option<Vec<u8>>, Trouble> {
        Ok(self.store.get(id).await?)
    }

    async fn news(&self) -> Result<Vec<Notice>, Trouble> {
        self.all().await
    }
}
