//! A store on top of another one: writes of a trial stay in memory, and the records of the original Critic are
//! hidden.

use std::sync::Arc;

use async_trait::async_trait;
use casebook_hub::MemoryStore;
use casebook_protocol::key::call_key;
use casebook_protocol::{ArtifactId, InvestigationId, Recorded, TaskId, TaskKind};
use casebook_runtime::store::{Once, Store, StoreError};
use casebook_runtime::stored;

use super::trial::MadeCall;

pub struct Overlay {
    below: Arc<dyn Store>,
    above: MemoryStore,
    /// Prefixes of keys of the tasks that are played again.
    hidden: Vec<String>,
}

impl Overlay {
    /// A store on top of `below` in which the Critic's tasks of `round` were never performed.
    pub fn new(below: Arc<dyn Store>, round: u32) -> Self {
        let tasks = [TaskKind::Review, TaskKind::Timeline].map(|kind| TaskId::of(round, kind, None));
        let hidden = tasks.iter().flat_map(|t| [format!("call/{t}."), format!("outcome/{t}")]).collect();
        Self { below, above: MemoryStore::default(), hidden }
    }

    pub async fn record(&self, investigation: &InvestigationId, made: &MadeCall) -> crate::Result<()> {
        let json = stored::write(&made.call)?;
        self.above.put(&made.bytes).await?;
        self.above.record_once(investigation, &call_key(&made.call.id), &json).await?;
        Ok(())
    }
}

#[async_trait]
impl Store for Overlay {
    async fn append(&self, investigation: &InvestigationId, _: u64, _: &[Recorded]) -> Result<(), StoreError> {
        let doing = format!("append to the log of {investigation}");
        Err(StoreError::Unavailable { doing, reason: "a trial changes no log".into() })
    }

    async fn log(&self, investigation: &InvestigationId, from: u64) -> Result<Vec<Recorded>, StoreError> {
        self.below.log(investigation, from).await
    }

    async fn investigations(&self) -> Result<Vec<InvestigationId>, StoreError> {
        self.below.investigations().await
    }

    async fn record_once(&self, investigation: &InvestigationId, key: &str, bytes: &[u8]) -> Result<Once, StoreError> {
        match self.recorded(investigation, key).await? {
            Some(bytes) => Ok(Once::Stands(bytes)),
            None => self.above.record_once(investigation, key, bytes).await,
        }
    }

    async fn recorded(&self, investigation: &InvestigationId, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        if let Some(bytes) = self.above.recorded(investigation, key).await? {
            return Ok(Some(bytes));
        }
        if self.hidden.iter().any(|prefix| key.starts_with(prefix.as_str())) {
            return Ok(None);
        }
        self.below.recorded(investigation, key).await
    }

    async fn put(&self, bytes: &[u8]) -> Result<ArtifactId, StoreError> {
        self.above.put(bytes).await
    }

    async fn get(&self, id: &ArtifactId) -> Result<Option<Vec<u8>>, StoreError> {
        match self.above.get(id).await? {
            Some(bytes) => Ok(Some(bytes)),
            None => self.below.get(id).await,
        }
    }
}
