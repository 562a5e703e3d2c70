//! Where all that lasts is kept: one of the two seams (the other is the [`Bus`](crate::bus::Bus)).
//! Embedded it is an SQLite file, distributed it is JetStream; the same promises hold for both.

use async_trait::async_trait;
use casebook_protocol::event::EVENT_VERSION;
use casebook_protocol::{ArtifactId, InvestigationId, Recorded};
use serde::Deserialize;
use serde::de::DeserializeOwned;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// Another writer was first: read the log and decide again.
    #[error("log of {investigation} ends at event {found}, not at {expected}: another Hub wrote to it")]
    Conflict {
        investigation: InvestigationId,
        /// Where the writer thought the log ends.
        expected: u64,
        /// Where it ends.
        found: u64,
    },
    #[error("{what} is stored but cannot be read: {reason}")]
    Corrupt {
        /// What and where.
        what: String,
        reason: String,
    },
    #[error("{what} has format version {found}, this casebook reads up to {known}")]
    Newer {
        /// What and where.
        what: String,
        found: u16,
        known: u16,
    },
    /// The store itself failed; nothing of the request was stored.
    #[error("cannot {doing}: {reason}")]
    Unavailable {
        /// What was tried, and where.
        doing: String,
        reason: String,
    },
}

/// The end of [`Store::record_once`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Once {
    /// These bytes are recorded now: nothing stood under the key when they were sent. Two senders of the same
    /// bytes may both be told so; what workers record holds its times, and is never the same twice.
    Recorded,
    /// Other bytes were recorded before; they stand.
    Stands(Vec<u8>),
}

/// Where all that lasts is kept. What a method answered `Ok` for survives the death of the process,
/// and of the machine where the store is configured so.
#[async_trait]
pub trait Store: Send + Sync + 'static {
    /// Appends `entries` to the log of an investigation that ends at sequence `after` (0: empty). All
    /// of them or none.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when the log ends elsewhere.
    async fn append(&self, investigation: &InvestigationId, after: u64, entries: &[Recorded])
    -> Result<(), StoreError>;

    /// The log from sequence `from` (1: all) to its end, in order.
    async fn log(&self, investigation: &InvestigationId, from: u64) -> Result<Vec<Recorded>, StoreError>;

    /// Every investigation that has a log, in order of id.
    async fn investigations(&self) -> Result<Vec<InvestigationId>, StoreError>;

    /// Records `bytes` under `key` once: whoever comes second learns what stands.
    async fn record_once(&self, investigation: &InvestigationId, key: &str, bytes: &[u8]) -> Result<Once, StoreError>;

    /// Stores `artifacts`, each under the hash given with it, and then records `bytes` under `key` once: where
    /// the key is recorded, what its bytes name is stored. One write where the store can.
    async fn record_once_with(
        &self,
        investigation: &InvestigationId,
        key: &str,
        bytes: &[u8],
        artifacts: &[(&ArtifactId, &[u8])],
    ) -> Result<Once, StoreError> {
        for (_, artifact) in artifacts {
            self.put(artifact).await?;
        }
        self.record_once(investigation, key, bytes).await
    }

    /// Stores `artifacts` and then appends as [`Store::append`] does: where the entries are, what they name is
    /// stored. One write where the store can.
    async fn append_with(
        &self,
        investigation: &InvestigationId,
        after: u64,
        entries: &[Recorded],
        artifacts: &[(&ArtifactId, &[u8])],
    ) -> Result<(), StoreError> {
        for (_, artifact) in artifacts {
            self.put(artifact).await?;
        }
        self.append(investigation, after, entries).await
    }

    async fn recorded(&self, investigation: &InvestigationId, key: &str) -> Result<Option<Vec<u8>>, StoreError>;

    /// Stores the bytes of an artifact under their hash. Storing them again is no change.
    async fn put(&self, bytes: &[u8]) -> Result<ArtifactId, StoreError>;

    /// The bytes of an artifact; checked against the hash that names them.
    async fn get(&self, id: &ArtifactId) -> Result<Option<Vec<u8>>, StoreError>;
}

/// Entries follow each other and the end of the log, or nothing is appended.
///
/// # Errors
/// [`StoreError::Conflict`] when the log ends elsewhere, [`StoreError::Unavailable`] when an entry is out of place.
pub fn follows(
    investigation: &InvestigationId,
    after: u64,
    found: u64,
    entries: &[Recorded],
) -> Result<(), StoreError> {
    if after != found {
        return Err(StoreError::Conflict { investigation: investigation.clone(), expected: after, found });
    }
    match entries
        .iter()
        .zip(after + 1..)
        .find(|(entry, seq)| entry.seq != *seq || entry.investigation != *investigation)
    {
        None => Ok(()),
        Some((entry, seq)) => {
            let reason = format!("event {} of {} was to be appended as event {seq}", entry.seq, entry.investigation);
            Err(StoreError::Unavailable { doing: format!("append to the log of {investigation}"), reason })
        }
    }
}

/// The bytes are those that the id names.
///
/// # Errors
/// [`StoreError::Corrupt`] when they are not.
pub fn intact(id: &ArtifactId, bytes: Vec<u8>) -> Result<Vec<u8>, StoreError> {
    let found = ArtifactId::of(&bytes);
    if found == *id {
        return Ok(bytes);
    }
    let reason = format!("its bytes have the hash {found}: they were changed after they were stored");
    Err(StoreError::Corrupt { what: format!("artifact {id}"), reason })
}

/// The events in `bytes`, a JSON array whose items have their version in `v`.
///
/// # Errors
/// [`StoreError::Newer`] when one is of a later version, [`StoreError::Corrupt`] when they cannot be read.
pub fn read_events<T: DeserializeOwned>(what: impl Fn() -> String, bytes: &[u8]) -> Result<Vec<T>, StoreError> {
    #[derive(Deserialize)]
    struct Version {
        v: u16,
    }
    let malformed = |e: serde_json::Error| StoreError::Corrupt { what: what(), reason: e.to_string() };
    // The versions first: of a later one nothing more is known.
    let versions: Vec<Version> = serde_json::from_slice(bytes).map_err(malformed)?;
    match versions.iter().map(|version| version.v).max() {
        Some(found) if found > EVENT_VERSION => Err(StoreError::Newer { what: what(), found, known: EVENT_VERSION }),
        _ => serde_json::from_slice(bytes).map_err(malformed),
    }
}

/// The text of an artifact.
pub async fn artifact_text(store: &dyn Store, id: &ArtifactId) -> Result<Option<String>, StoreError> {
    Ok(store.get(id).await?.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
}
