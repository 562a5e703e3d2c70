//! A branch of an investigation: its log up to the start of a round, then new events. New events are kept in
//! memory and the original is not changed, so a past investigation can be run again with other models.

use std::sync::Arc;

use async_trait::async_trait;
use casebook_protocol::{ArtifactId, Event, InvestigationId, Recorded};
use casebook_runtime::store::{Once, Store, StoreError};

use crate::archive;
use crate::error::HubError;
use crate::memory::MemoryStore;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BranchError {
    #[error(transparent)]
    Original(#[from] HubError),
    #[error("investigation {investigation} has no round {round}: its rounds are 1 to {last}")]
    NoRound {
        investigation: InvestigationId,
        round: u32,
        /// 0 if no round has started.
        last: u32,
    },
}

/// The store of a branch of one investigation: reads the original, writes to memory.
pub struct Branch {
    original: Arc<dyn Store>,
    above: MemoryStore,
    investigation: InvestigationId,
    round: u32,
    kept: u64,
}

impl Branch {
    /// Creates a branch that departs where `round` (from 1) begins.
    pub async fn before_round(
        original: Arc<dyn Store>,
        investigation: &InvestigationId,
        round: u32,
    ) -> Result<Self, BranchError> {
        let log = archive::log(original.as_ref(), investigation).await?;
        if log.is_empty() {
            return Err(HubError::Unknown(investigation.clone()).into());
        }
        let kept = kept(&log, round).ok_or_else(|| BranchError::NoRound {
            investigation: investigation.clone(),
            round,
            last: log.iter().filter_map(|e| begun(&e.event)).max().unwrap_or(0),
        })?;
        let above = MemoryStore::default();
        above.append(investigation, 0, kept).await.map_err(HubError::from)?;
        let kept = kept.len() as u64;
        Ok(Self { original, above, investigation: investigation.clone(), round, kept })
    }

    /// Events that the branch shares with the original.
    pub const fn kept(&self) -> u64 {
        self.kept
    }

    /// Whether `key` was recorded before the branch departs. A task id contains its round.
    fn shared(&self, investigation: &InvestigationId, key: &str) -> bool {
        *investigation == self.investigation && round_of(key).is_some_and(|round| round < self.round)
    }
}

/// The entries before `round` begins; `None` if it does not begin.
fn kept(log: &[Recorded], round: u32) -> Option<&[Recorded]> {
    let end = log.iter().position(|entry| begun(&entry.event) == Some(round))?;
    log.get(..end)
}

const fn begun(event: &Event) -> Option<u32> {
    match event {
        Event::RoundStarted { round, .. } => Some(*round),
        _ => None,
    }
}

/// The round in a key such as `outcome/r2.plan`; `None` for other keys, such as `report`.
fn round_of(key: &str) -> Option<u32> {
    let (_, task) = key.split_once("/r")?;
    task.split_once('.')?.0.parse().ok()
}

#[async_trait]
impl Store for Branch {
    async fn append(
        &self,
        investigation: &InvestigationId,
        after: u64,
        entries: &[Recorded],
    ) -> Result<(), StoreError> {
        self.above.append(investigation, after, entries).await
    }

    async fn log(&self, investigation: &InvestigationId, from: u64) -> Result<Vec<Recorded>, StoreError> {
        self.above.log(investigation, from).await
    }

    async fn investigations(&self) -> Result<Vec<InvestigationId>, StoreError> {
        self.above.investigations().await
    }

    async fn record_once(&self, investigation: &InvestigationId, key: &str, bytes: &[u8]) -> Result<Once, StoreError> {
        if self.shared(investigation, key)
            && let Some(bytes) = self.original.recorded(investigation, key).await?
        {
            return Ok(Once::Stands(bytes));
        }
        self.above.record_once(investigation, key, bytes).await
    }

    async fn recorded(&self, investigation: &InvestigationId, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        if self.shared(investigation, key)
            && let Some(bytes) = self.original.recorded(investigation, key).await?
        {
            return Ok(Some(bytes));
        }
        self.above.recorded(investigation, key).await
    }

    async fn put(&self, bytes: &[u8]) -> Result<ArtifactId, StoreError> {
        self.above.put(bytes).await
    }

    async fn get(&self, id: &ArtifactId) -> Result<Option<Vec<u8>>, StoreError> {
        match self.above.get(id).await? {
            Some(bytes) => Ok(Some(bytes)),
            None => self.original.get(id).await,
        }
    }
}

#[cfg(test)]
mod tests;
