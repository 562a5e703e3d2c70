//! A store in memory, for simulation and branches.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use casebook_protocol::{ArtifactId, InvestigationId, Recorded};
use casebook_runtime::store::{Appended, Feed, News, Once, Store, StoreError, follows, intact};
use tokio::sync::watch;

#[derive(Debug, Default)]
struct Shelves {
    logs: BTreeMap<InvestigationId, Vec<Recorded>>,
    results: BTreeMap<(InvestigationId, String), Vec<u8>>,
    artifacts: BTreeMap<ArtifactId, Vec<u8>>,
    /// Each append, in order: the investigation and the numbers of the first and last entry.
    appends: Vec<(InvestigationId, u64, u64)>,
    appended: watch::Sender<()>,
}

/// The most appends in a page of the feed.
const PAGE: usize = 512;

struct Heard(watch::Receiver<()>);

#[async_trait]
impl News for Heard {
    async fn wait(&mut self) -> Result<(), StoreError> {
        let gone = |_| StoreError::Unavailable { doing: "listen for news".into(), reason: "the store is gone".into() };
        self.0.changed().await.map_err(gone)
    }
}

/// A store in memory. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct MemoryStore(Arc<Mutex<Shelves>>);

impl MemoryStore {
    fn shelves(&self) -> MutexGuard<'_, Shelves> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces the bytes of an artifact, to test how corruption is detected.
    pub fn spoil(&self, id: &ArtifactId, bytes: &[u8]) {
        self.shelves().artifacts.insert(id.clone(), bytes.to_vec());
    }

    /// Replaces or removes a recorded result, to test how a change is detected.
    pub fn tamper(&self, investigation: &InvestigationId, key: &str, bytes: Option<&[u8]>) {
        let place = (investigation.clone(), key.to_owned());
        match bytes {
            Some(bytes) => drop(self.shelves().results.insert(place, bytes.to_vec())),
            None => drop(self.shelves().results.remove(&place)),
        }
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn append(
        &self,
        investigation: &InvestigationId,
        after: u64,
        entries: &[Recorded],
    ) -> Result<(), StoreError> {
        let mut shelves = self.shelves();
        let found = shelves.logs.get(investigation).map_or(0, |log| log.len() as u64);
        follows(investigation, after, found, entries)?;
        shelves.logs.entry(investigation.clone()).or_default().extend_from_slice(entries);
        if let Some(last) = entries.last() {
            shelves.appends.push((investigation.clone(), after + 1, last.seq));
            shelves.appended.send_replace(());
        }
        Ok(())
    }

    async fn log(&self, investigation: &InvestigationId, from: u64) -> Result<Vec<Recorded>, StoreError> {
        let shelves = self.shelves();
        let log = shelves.logs.get(investigation).into_iter().flatten();
        Ok(log.filter(|e| e.seq >= from).cloned().collect())
    }

    async fn investigations(&self) -> Result<Vec<InvestigationId>, StoreError> {
        Ok(self.shelves().logs.keys().cloned().collect())
    }

    async fn record_once(&self, investigation: &InvestigationId, key: &str, bytes: &[u8]) -> Result<Once, StoreError> {
        let mut shelves = self.shelves();
        let place = (investigation.clone(), key.to_owned());
        if let Some(bytes) = shelves.results.get(&place) {
            return Ok(Once::Stands(bytes.clone()));
        }
        shelves.results.insert(place, bytes.to_vec());
        Ok(Once::Recorded)
    }

    async fn recorded(&self, investigation: &InvestigationId, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.shelves().results.get(&(investigation.clone(), key.to_owned())).cloned())
    }

    async fn put(&self, bytes: &[u8]) -> Result<ArtifactId, StoreError> {
        let id = ArtifactId::of(bytes);
        self.shelves().artifacts.entry(id.clone()).or_insert_with(|| bytes.to_vec());
        Ok(id)
    }

    async fn get(&self, id: &ArtifactId) -> Result<Option<Vec<u8>>, StoreError> {
        let bytes = self.shelves().artifacts.get(id).cloned();
        bytes.map(|bytes| intact(id, bytes)).transpose()
    }

    async fn feed(&self, after: u64) -> Result<Feed, StoreError> {
        let shelves = self.shelves();
        let from = usize::try_from(after).unwrap_or(usize::MAX);
        let appends = shelves.appends.iter().zip(1..).skip(from).take(PAGE);
        let appended: Vec<Appended> = appends
            .map(|((investigation, first, last), position)| {
                let log = shelves.logs.get(investigation).into_iter().flatten();
                let entries = log.filter(|entry| (*first..=*last).contains(&entry.seq)).cloned().collect();
                Appended { position, investigation: investigation.clone(), entries: Ok(entries) }
            })
            .collect();
        let position = appended.last().map_or(after, |last| last.position);
        Ok(Feed { appended, position })
    }

    async fn end(&self) -> Result<u64, StoreError> {
        Ok(self.shelves().appends.len() as u64)
    }

    async fn news(&self) -> Result<Box<dyn News>, StoreError> {
        Ok(Box::new(Heard(self.shelves().appended.subscribe())))
    }
}
