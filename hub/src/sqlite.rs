//! The store in a data folder, as one SQLite file.
//!
//! One thread writes. It groups waiting requests in one transaction and answers them when it is synced to disk
//! (`synchronous=FULL`). A request is one statement, so a request that fails does not affect the others. Reads
//! use other connections. One process at a time writes; any number of others read beside it.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use casebook_protocol::{ArtifactId, InvestigationId, Recorded};
use casebook_runtime::store::{Feed, News, Once, Store, StoreError};
use rusqlite::{Connection, OptionalExtension, params};
use tokio::sync::{mpsc, oneshot, watch};

use casebook_runtime::store::{follows, intact};

use crate::parts::in_parts;

mod fault;
mod feed;
mod folder;
mod packed;
mod tables;
mod writer;

pub use fault::OpenError;
use fault::fault;
use writer::{Job, Named, Request};

/// Maximum number of requests that wait for the writer; then senders wait.
const WAITING: usize = 1024;
const READERS: usize = 4;

/// The store in a data folder. Clones share it; the folder is released with the last clone.
#[derive(Debug, Clone)]
pub struct SqliteStore {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    file: PathBuf,
    readers: Mutex<Vec<Connection>>,
    writer: Option<Writer>,
    /// The first write that failed.
    failed: watch::Sender<Option<StoreError>>,
}

#[derive(Debug)]
struct Writer {
    requests: mpsc::Sender<Job>,
    thread: std::thread::JoinHandle<()>,
    /// Held for the lifetime of the store.
    _lock: File,
}

impl Drop for Inner {
    fn drop(&mut self) {
        // The writer ends when the channel closes. The lock is released after that.
        if let Some(Writer { requests, thread, _lock }) = self.writer.take() {
            drop(requests);
            let _ = thread.join();
        }
    }
}

impl SqliteStore {
    /// Opens the data folder for writing, and creates it if it is missing. Tables of an older version are converted.
    pub fn open(folder: impl AsRef<Path>) -> Result<Self, OpenError> {
        let folder = folder.as_ref().to_path_buf();
        let lock = folder::lock(&folder)?;
        let file = folder.join(folder::DATABASE);
        folder::private(&folder)?;
        let failed = |error: rusqlite::Error| OpenError::of(&folder, &file, &error);
        let mut connection = Connection::open(&file).map_err(failed)?;
        folder::prepare(&mut connection).map_err(failed)?;
        let found = tables::version(&connection).map_err(failed)?;
        if found > tables::VERSION {
            return Err(OpenError::Newer { folder, found, known: tables::VERSION });
        }
        tables::upgrade(&mut connection, found).map_err(failed)?;
        let (requests, waiting) = mpsc::channel(WAITING);
        let name = file.display().to_string();
        let spawned = std::thread::Builder::new()
            .name("casebook-writer".into())
            .spawn(move || writer::run(connection, waiting, &name));
        let thread = spawned.map_err(|e| OpenError::NotWritable { folder, reason: e.to_string() })?;
        let writer = Some(Writer { requests, thread, _lock: lock });
        let inner = Inner { file, readers: Mutex::default(), writer, failed: watch::Sender::default() };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Opens the data folder for reading, also while another process writes to it. Writing methods return
    /// [`StoreError::ReadOnly`].
    pub fn read(folder: impl AsRef<Path>) -> Result<Self, OpenError> {
        let folder = folder.as_ref().to_path_buf();
        let file = folder.join(folder::DATABASE);
        if !file.is_file() {
            return Err(OpenError::Empty { folder });
        }
        // A person who may only read the folder cannot change its permissions.
        let _ = folder::private(&folder);
        let connection = folder::reading(&file).and_then(|db| tables::version(&db).map(|found| (db, found)));
        let (connection, found) = connection.map_err(|error| OpenError::of_reader(&folder, &file, &error))?;
        match found.cmp(&tables::VERSION) {
            std::cmp::Ordering::Less => Err(OpenError::Older { folder, found, known: tables::VERSION }),
            std::cmp::Ordering::Greater => Err(OpenError::Newer { folder, found, known: tables::VERSION }),
            std::cmp::Ordering::Equal => {
                let readers = Mutex::new(vec![connection]);
                let inner = Inner { file, readers, writer: None, failed: watch::Sender::default() };
                Ok(Self { inner: Arc::new(inner) })
            }
        }
    }

    /// Every stored row, unpacked, to search through all of them.
    pub async fn rows(&self) -> Result<Vec<Vec<u8>>, StoreError> {
        let rows = self.query("read everything".into(), |db| {
            let mut query = db.prepare_cached(
                "SELECT form, entry FROM events UNION ALL SELECT form, bytes FROM results UNION ALL SELECT form, bytes FROM artifacts",
            )?;
            query.query_map([], form_and_bytes)?.collect::<Result<Vec<_>, _>>()
        });
        rows.await?.into_iter().map(|(form, bytes)| unpacked(|| "a row".into(), form, bytes)).collect()
    }

    async fn write<T: Send + 'static>(
        &self,
        doing: String,
        request: impl FnOnce(oneshot::Sender<Result<T, StoreError>>) -> Request,
    ) -> Result<T, StoreError> {
        let gone = || StoreError::Unavailable {
            doing: doing.clone(),
            reason: "the writing thread of the store has ended".into(),
        };
        let (reply, answer) = oneshot::channel();
        let writer = self.inner.writer.as_ref().ok_or_else(|| StoreError::ReadOnly { doing: doing.clone() })?;
        writer.requests.send(Job { doing: doing.clone(), request: request(reply) }).await.map_err(|_| gone())?;
        let answer = answer.await.unwrap_or_else(|_| Err(gone()));
        if let Err(error @ StoreError::Unavailable { .. }) = &answer {
            self.inner.failed.send_if_modified(|first| {
                let fresh = first.is_none();
                first.get_or_insert_with(|| error.clone());
                fresh
            });
        }
        answer
    }

    async fn query<T: Send + 'static>(
        &self,
        doing: String,
        query: impl FnOnce(&Connection) -> Result<T, rusqlite::Error> + Send + 'static,
    ) -> Result<T, StoreError> {
        let inner = Arc::clone(&self.inner);
        let what = doing.clone();
        let done = tokio::task::spawn_blocking(move || {
            let failed = |error: &rusqlite::Error| fault(&doing, &inner.file.display().to_string(), error);
            let connection = inner.reader().map_err(|e| failed(&e))?;
            let result = query(&connection).map_err(|e| failed(&e));
            inner.give_back(connection);
            result
        });
        done.await.map_err(|e| StoreError::Unavailable { doing: what, reason: e.to_string() })?
    }
}

impl SqliteStore {
    /// Reads one row by its key on this thread: a cached page takes a few microseconds, less than a switch to
    /// another thread.
    fn look<T>(
        &self,
        doing: impl FnOnce() -> String,
        query: impl FnOnce(&Connection) -> Result<T, rusqlite::Error>,
    ) -> Result<T, StoreError> {
        let connection = self.inner.reader();
        let result = connection.and_then(|connection| {
            let result = query(&connection);
            self.inner.give_back(connection);
            result
        });
        result.map_err(|error| fault(&doing(), &self.inner.file.display().to_string(), &error))
    }
}

impl Inner {
    fn reader(&self) -> Result<Connection, rusqlite::Error> {
        let idle = self.readers.lock().unwrap_or_else(PoisonError::into_inner).pop();
        if let Some(connection) = idle {
            return Ok(connection);
        }
        folder::reading(&self.file)
    }

    fn give_back(&self, connection: Connection) {
        let mut readers = self.readers.lock().unwrap_or_else(PoisonError::into_inner);
        if readers.len() < READERS {
            readers.push(connection);
        }
    }
}

fn form_and_bytes(row: &rusqlite::Row<'_>) -> Result<(i64, Vec<u8>), rusqlite::Error> {
    Ok((row.get(0)?, row.get(1)?))
}

fn unpacked(what: impl FnOnce() -> String, form: i64, bytes: Vec<u8>) -> Result<Vec<u8>, StoreError> {
    packed::unpack(form, bytes).map_err(|reason| StoreError::Corrupt { what: what(), reason })
}

/// The entries of rows (`seq`, `form`, `entry`) that follow each other.
fn entries(investigation: &InvestigationId, rows: &[(i64, i64, Vec<u8>)]) -> Result<Vec<Recorded>, StoreError> {
    let mut log: Vec<Recorded> = Vec::with_capacity(rows.len());
    for (seq, form, bytes) in rows {
        let prev = log.last().map(|entry| entry.hash.as_str());
        log.extend(tables::read(investigation, seq.unsigned_abs(), prev, *form, bytes.clone())?);
    }
    Ok(log)
}

/// The id of an artifact, decoded from hexadecimal.
fn raw(id: &ArtifactId) -> Vec<u8> {
    let digit = |b: u8| if b.is_ascii_digit() { b - b'0' } else { b.wrapping_sub(b'a').wrapping_add(10) };
    id.as_str().as_bytes().chunks(2).map(|pair| pair.iter().fold(0, |byte, b| byte << 4 | digit(*b))).collect()
}

fn named(artifacts: &[(&ArtifactId, &[u8])]) -> Named {
    artifacts.iter().map(|(id, bytes)| ((*id).clone(), packed::pack(bytes))).collect()
}

#[async_trait]
impl Store for SqliteStore {
    async fn append(
        &self,
        investigation: &InvestigationId,
        after: u64,
        entries: &[Recorded],
    ) -> Result<(), StoreError> {
        self.append_with(investigation, after, entries, &[]).await
    }

    async fn append_with(
        &self,
        investigation: &InvestigationId,
        after: u64,
        entries: &[Recorded],
        artifacts: &[(&ArtifactId, &[u8])],
    ) -> Result<(), StoreError> {
        let doing = format!("append to the log of {investigation}");
        let unwritable = |e: serde_json::Error| StoreError::Unavailable { doing: doing.clone(), reason: e.to_string() };
        follows(investigation, after, after, entries)?;
        let last = entries.last().map_or(after, |entry| entry.seq);
        let row = tables::write(entries).map_err(unwritable)?;
        let (investigation, named) = (investigation.clone(), named(artifacts));
        self.write(doing, |reply| Request::Append { investigation, after, last, row, named, reply }).await
    }

    async fn log(&self, investigation: &InvestigationId, from: u64) -> Result<Vec<Recorded>, StoreError> {
        let (id, doing) = (investigation.to_string(), format!("read the log of {investigation}"));
        // The row before the first one has the hash that the first entry follows.
        let first = i64::try_from(from.max(1)).unwrap_or(i64::MAX);
        let rows = self.query(doing, move |db| {
            let mut query = db.prepare_cached(
                "SELECT seq, form, entry FROM events WHERE investigation = (SELECT n FROM investigations WHERE id = ?1) AND seq >= ?2 ORDER BY seq",
            )?;
            let rows = query.query_map(params![id, first - 1], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
            rows.collect::<Result<Vec<(i64, i64, Vec<u8>)>, _>>()
        });
        let rows = rows.await?;
        let mut log: Vec<Recorded> = Vec::with_capacity(rows.len());
        for part in in_parts(&rows, |_, rows| entries(investigation, rows)) {
            let mut part = part?;
            // It was read without the part before it.
            if let (Some(first), Some(last)) = (part.first_mut(), log.last()) {
                first.prev.clone_from(&last.hash);
            }
            log.append(&mut part);
        }
        log.retain(|entry| entry.seq >= from);
        Ok(log)
    }

    async fn investigations(&self) -> Result<Vec<InvestigationId>, StoreError> {
        let rows = self.query("list the investigations".into(), |db| {
            let mut query = db.prepare_cached(
                "SELECT id FROM investigations WHERE EXISTS (SELECT 1 FROM events WHERE investigation = n) ORDER BY id",
            )?;
            query.query_map([], |row| row.get(0))?.collect::<Result<Vec<String>, _>>()
        });
        let corrupt = |e: casebook_protocol::InvalidId| StoreError::Corrupt {
            what: "the id of an investigation".into(),
            reason: e.to_string(),
        };
        rows.await?.into_iter().map(|id| InvestigationId::new(id).map_err(corrupt)).collect()
    }

    async fn record_once(&self, investigation: &InvestigationId, key: &str, bytes: &[u8]) -> Result<Once, StoreError> {
        self.record_once_with(investigation, key, bytes, &[]).await
    }

    async fn record_once_with(
        &self,
        investigation: &InvestigationId,
        key: &str,
        bytes: &[u8],
        artifacts: &[(&ArtifactId, &[u8])],
    ) -> Result<Once, StoreError> {
        let (investigation, key, bytes) = (investigation.clone(), key.to_owned(), packed::pack(bytes));
        let named = named(artifacts);
        self.write(format!("record {key} of {investigation}"), |reply| Request::Once {
            investigation,
            key,
            bytes,
            named,
            reply,
        })
        .await
    }

    async fn recorded(&self, investigation: &InvestigationId, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        self.look(
            || format!("read {key} of {investigation}"),
            |db| {
                let mut query = db.prepare_cached(
                    "SELECT form, bytes FROM results WHERE investigation = (SELECT n FROM investigations WHERE id = ?1) AND key = ?2",
                )?;
                query.query_row(params![investigation.as_str(), key], form_and_bytes).optional()
            },
        )?
        .map(|(form, bytes)| unpacked(|| format!("{key} of {investigation}"), form, bytes))
        .transpose()
    }

    async fn put(&self, bytes: &[u8]) -> Result<ArtifactId, StoreError> {
        let id = ArtifactId::of(bytes);
        let named = named(&[(&id, bytes)]);
        self.write(format!("store artifact {id}"), |reply| Request::Put { named, reply }).await?;
        Ok(id)
    }

    async fn get(&self, id: &ArtifactId) -> Result<Option<Vec<u8>>, StoreError> {
        let bytes = self.look(
            || format!("read artifact {id}"),
            |db| {
                let mut query = db.prepare_cached("SELECT form, bytes FROM artifacts WHERE id = ?1")?;
                query.query_row(params![raw(id)], form_and_bytes).optional()
            },
        )?;
        let Some((form, bytes)) = bytes else { return Ok(None) };
        intact(id, unpacked(|| format!("artifact {id}"), form, bytes)?).map(Some)
    }

    async fn failed(&self) -> StoreError {
        let mut failed = self.inner.failed.subscribe();
        let error = failed.wait_for(Option::is_some).await.ok().and_then(|failed| failed.clone());
        match error {
            Some(error) => error,
            None => std::future::pending().await,
        }
    }

    async fn feed(&self, after: u64) -> Result<Feed, StoreError> {
        let rows = self.query("read the feed".into(), move |db| feed::page(db, after)).await?;
        Ok(feed::unpacked(after, rows))
    }

    async fn end(&self) -> Result<u64, StoreError> {
        let last = self.query("read the end of the feed".into(), |db| {
            db.query_row("SELECT coalesce(max(pos), 0) FROM events", [], |row| row.get::<_, i64>(0))
        });
        Ok(last.await?.unsigned_abs())
    }

    async fn news(&self) -> Result<Box<dyn News>, StoreError> {
        let failed = |error: rusqlite::Error| fault("listen for news", &self.inner.file.display().to_string(), &error);
        Ok(Box::new(feed::Watching::new(folder::reading(&self.inner.file).map_err(failed)?).map_err(failed)?))
    }
}

#[cfg(test)]
mod tests;
