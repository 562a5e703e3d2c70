//! Durable storage: SQLite in one process, JetStream in a distributed installation.

use async_trait::async_trait;
use casebook_protocol::event::EVENT_VERSION;
use casebook_protocol::{ArtifactId, InvestigationId, Recorded};
use serde::Deserialize;
use serde::de::DeserializeOwned;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// Another writer was first. Read the log and decide again.
    #[error("log of {investigation} ends at event {found}, not at {expected}: another Hub wrote to it")]
    Conflict { investigation: InvestigationId, expected: u64, found: u64 },
    #[error("{what} is stored but cannot be read: {reason}")]
    Corrupt { what: String, reason: String },
    #[error("expected {what} in format version {known} or older, got {found}; use a newer casebook")]
    Newer { what: String, found: u16, known: u16 },
    #[error("cannot {doing}: the data folder was opened for reading only")]
    ReadOnly { doing: String },
    /// The store failed. Nothing of the request was stored.
    #[error("cannot {doing}: {reason}")]
    Unavailable { doing: String, reason: String },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Once {
    /// These bytes are recorded. Two writers of the same bytes may both get this. Records of workers contain times, so
    /// they always differ.
    Recorded,
    Stands(Vec<u8>),
}

/// A message in a log that no Hub wrote. Readers skip it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Foreign {
    /// Its sequence in the stream.
    pub sequence: u64,
    pub reason: String,
}

/// One append to the log of an investigation.
#[derive(Debug, Clone, PartialEq)]
pub struct Appended {
    pub position: u64,
    pub investigation: InvestigationId,
    /// An error if what is stored cannot be read. The feed continues after it.
    pub entries: Result<Vec<Recorded>, StoreError>,
}

/// A page of the appends of all investigations, in the order of their commit.
#[derive(Debug, Clone, PartialEq)]
pub struct Feed {
    pub appended: Vec<Appended>,
    /// Where the next page continues. It is the given position if there is nothing more yet.
    pub position: u64,
}

/// Waits for appends.
#[async_trait]
pub trait News: Send {
    /// Returns when something may have been appended since the last call, or since [`Store::news`].
    async fn wait(&mut self) -> Result<(), StoreError>;
}

/// What a method answered with `Ok` survives a crash of the process, and of the machine if the store is configured for
/// that.
#[async_trait]
pub trait Store: Send + Sync + 'static {
    /// Appends all `entries` or none to a log that ends at sequence `after` (0: empty).
    ///
    /// # Errors
    /// [`StoreError::Conflict`] if the log ends elsewhere.
    async fn append(&self, investigation: &InvestigationId, after: u64, entries: &[Recorded])
    -> Result<(), StoreError>;

    /// The log from sequence `from` on (1: all), in order.
    async fn log(&self, investigation: &InvestigationId, from: u64) -> Result<Vec<Recorded>, StoreError>;

    /// The messages that [`Store::log`] skipped when it last read this log.
    fn foreign(&self, _investigation: &InvestigationId) -> Vec<Foreign> {
        Vec::new()
    }

    /// Every investigation that has a log, in order of id.
    async fn investigations(&self) -> Result<Vec<InvestigationId>, StoreError>;

    /// Records `bytes` under `key`, unless something is recorded there.
    async fn record_once(&self, investigation: &InvestigationId, key: &str, bytes: &[u8]) -> Result<Once, StoreError>;

    /// Stores `artifacts` under their given hashes, and then records `bytes` under `key` once. A recorded key so
    /// implies that its artifacts are stored. Stores may use one write for all.
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

    /// Stores `artifacts` and then appends as [`Store::append`]. So an appended entry implies that its artifacts are
    /// stored. Stores may use one write for all.
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

    /// Stores an artifact under its hash. Storing it again changes nothing.
    async fn put(&self, bytes: &[u8]) -> Result<ArtifactId, StoreError>;

    /// The bytes of an artifact, checked against its hash.
    async fn get(&self, id: &ArtifactId) -> Result<Option<Vec<u8>>, StoreError>;

    /// Waits for a write that the store cannot make, and returns why. A store that waits by itself never has one.
    async fn failed(&self) -> StoreError {
        std::future::pending().await
    }

    /// What was appended after a position (0: all), one page at a time.
    async fn feed(&self, _after: u64) -> Result<Feed, StoreError> {
        Err(no_feed())
    }

    /// The position of the last append; 0 if there is none.
    async fn end(&self) -> Result<u64, StoreError> {
        Err(no_feed())
    }

    /// Call this before [`Store::feed`], so that no append falls between.
    async fn news(&self) -> Result<Box<dyn News>, StoreError> {
        Err(no_feed())
    }
}

fn no_feed() -> StoreError {
    StoreError::Unavailable { doing: "read the feed".into(), reason: "this store holds only a part of one".into() }
}

/// Checks that `entries` follow each other and the end of the log.
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

pub fn intact(id: &ArtifactId, bytes: Vec<u8>) -> Result<Vec<u8>, StoreError> {
    let found = ArtifactId::of(&bytes);
    if found == *id {
        return Ok(bytes);
    }
    let reason = format!("its bytes have the hash {found}: they were changed after they were stored");
    Err(StoreError::Corrupt { what: format!("artifact {id}"), reason })
}

/// An event with the version of its form.
pub trait Versioned: DeserializeOwned {
    fn version(&self) -> u16;
}

impl Versioned for Recorded {
    fn version(&self) -> u16 {
        self.v
    }
}

/// Reads a JSON array of events that each have their version in `v`.
///
/// # Errors
/// [`StoreError::Newer`] if an event has a later version.
pub fn read_events<T: Versioned>(what: impl Fn() -> String, bytes: &[u8]) -> Result<Vec<T>, StoreError> {
    #[derive(Deserialize)]
    struct Version {
        v: u16,
    }
    let read = serde_json::from_slice::<Vec<T>>(bytes);
    let versions: Vec<u16> = match &read {
        Ok(events) => events.iter().map(Versioned::version).collect(),
        // The rest of a later version may be unreadable.
        Err(_) => serde_json::from_slice(bytes)
            .map_or_else(|_| Vec::new(), |versions: Vec<Version>| versions.iter().map(|version| version.v).collect()),
    };
    match versions.into_iter().max() {
        Some(found) if found > EVENT_VERSION => Err(StoreError::Newer { what: what(), found, known: EVENT_VERSION }),
        _ => read.map_err(|e| StoreError::Corrupt { what: what(), reason: e.to_string() }),
    }
}

pub async fn artifact_text(store: &dyn Store, id: &ArtifactId) -> Result<Option<String>, StoreError> {
    Ok(store.get(id).await?.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
}
