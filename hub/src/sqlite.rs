//! The store in a data folder, as one SQLite file.
//!
//! One thread writes. It groups waiting requests in one transaction and answers them when it is synced to disk
//! (`synchronous=FULL`). A request is one statement, so a request that fails does not affect the others. Reads
//! use other connections. One process at a time can use the folder.

use std::fs::{File, TryLockError};
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use casebook_protocol::{ArtifactId, InvestigationId, Recorded};
use casebook_runtime::files;
use casebook_runtime::store::{Once, Store, StoreError};
use rusqlite::{Connection, OpenFlags, OptionalExtension, params};
use tokio::sync::{mpsc, oneshot, watch};

use casebook_runtime::store::{follows, intact};

mod fault;
mod packed;
mod tables;
mod writer;

pub use fault::OpenError;
use fault::fault;
use writer::{Job, Named, Request};

/// Maximum number of requests that wait for the writer; then senders wait.
const WAITING: usize = 1024;
const READERS: usize = 4;

/// SQLite's page cache of a connection, in KiB.
const CACHE_KIB: i64 = 2048;

/// The store in a data folder. Clones share it; the folder is released with the last clone.
#[derive(Debug, Clone)]
pub struct SqliteStore {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    file: PathBuf,
    readers: Mutex<Vec<Connection>>,
    requests: Option<mpsc::Sender<Job>>,
    writer: Option<std::thread::JoinHandle<()>>,
    /// The first write that failed.
    failed: watch::Sender<Option<StoreError>>,
    /// Held for the lifetime of the store.
    _lock: File,
}

impl Drop for Inner {
    fn drop(&mut self) {
        // The writer ends when the channel closes. The lock is released after that.
        drop(self.requests.take());
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
    }
}

impl SqliteStore {
    /// Opens the data folder and creates it if it is missing.
    pub fn open(folder: impl AsRef<Path>) -> Result<Self, OpenError> {
        let folder = folder.as_ref().to_path_buf();
        let lock = lock(&folder)?;
        let file = folder.join("casebook.db");
        private(&folder)?;
        let failed = |error: rusqlite::Error| OpenError::of(&folder, &file, &error);
        let mut connection = Connection::open(&file).map_err(failed)?;
        prepare(&mut connection).map_err(failed)?;
        let found: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0)).map_err(failed)?;
        if found > tables::VERSION {
            return Err(OpenError::Newer { folder, found, known: tables::VERSION });
        }
        if found == 0 {
            tables::create(&mut connection).map_err(failed)?;
        }
        let (requests, waiting) = mpsc::channel(WAITING);
        let name = file.display().to_string();
        let spawned = std::thread::Builder::new()
            .name("casebook-writer".into())
            .spawn(move || writer::run(connection, waiting, &name));
        let writer = spawned.map_err(|e| OpenError::NotWritable { folder, reason: e.to_string() })?;
        let inner = Inner {
            file,
            readers: Mutex::default(),
            requests: Some(requests),
            writer: Some(writer),
            failed: watch::Sender::default(),
            _lock: lock,
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Every stored row, unpacked, to search through all of them.
    pub async fn rows(&self) -> Result<Vec<Vec<u8>>, StoreError> {
        let rows = self.read("read everything".into(), |db| {
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
        let requests = self.inner.requests.as_ref().ok_or_else(gone)?;
        requests.send(Job { doing: doing.clone(), request: request(reply) }).await.map_err(|_| gone())?;
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

    async fn read<T: Send + 'static>(
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
        let connection = Connection::open_with_flags(
            &self.file,
            OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX,
        )?;
        steady(&connection)?;
        connection.pragma_update(None, "query_only", true)?;
        connection.pragma_update(None, "cache_size", -CACHE_KIB)?;
        connection.busy_timeout(Duration::from_secs(10))?;
        Ok(connection)
    }

    fn give_back(&self, connection: Connection) {
        let mut readers = self.readers.lock().unwrap_or_else(PoisonError::into_inner);
        if readers.len() < READERS {
            readers.push(connection);
        }
    }
}

/// The system may hold the lock of a killed process a little longer: how long the next process waits.
const PUT_AWAY: Duration = Duration::from_millis(500);

/// What Casebook writes into a data folder. SQLite gives its other files the permissions of the database.
const FILES: [&str; 4] = ["casebook.lock", "casebook.db", "casebook.db-wal", "casebook.db-shm"];
const FOLDERS: [&str; 2] = ["evidence", "cluster"];

fn not_writable(folder: &Path) -> impl Fn(std::io::Error) -> OpenError {
    |error| match error.kind() {
        ErrorKind::StorageFull => OpenError::Full { folder: folder.to_path_buf() },
        _ => OpenError::NotWritable { folder: folder.to_path_buf(), reason: error.to_string() },
    }
}

/// Takes the files of the data folder away from all but their owner. A folder with other files in it may have other
/// readers, so its own permissions are only reported.
fn private(folder: &Path) -> Result<(), OpenError> {
    files::private_file(&folder.join("casebook.db")).map_err(not_writable(folder))?;
    let inside = FILES.iter().chain(&FOLDERS).map(|name| folder.join(name)).filter(|path| path.exists());
    let entries = std::fs::read_dir(folder).map_err(not_writable(folder))?.flatten();
    let mut names = entries.map(|entry| entry.file_name());
    let ours = names.all(|name| FILES.iter().chain(&FOLDERS).any(|known| name == *known));
    for path in inside.chain(ours.then(|| folder.to_path_buf())) {
        if let Err(error) = files::tighten(&path) {
            tracing::warn!(path = %path.display(), %error, "other users may be able to read this; chmod go-rwx failed");
        }
    }
    if let (false, Ok(Some(mode))) = (ours, files::loose(folder)) {
        let (path, mode) = (folder.display(), format!("{mode:o}"));
        tracing::warn!(%path, mode, "other users can enter the data folder, which has other files; chmod 700 it");
    }
    Ok(())
}

/// Locks the folder. The operating system releases the lock when the process ends, even after a crash.
fn lock(folder: &Path) -> Result<File, OpenError> {
    let not_writable = not_writable(folder);
    files::private_folder(folder).map_err(&not_writable)?;
    let mut file = files::private_file(&folder.join("casebook.lock")).map_err(&not_writable)?;
    let end = Instant::now() + PUT_AWAY;
    let mut locked = file.try_lock();
    while matches!(locked, Err(TryLockError::WouldBlock)) && Instant::now() < end {
        std::thread::sleep(PUT_AWAY / 25);
        locked = file.try_lock();
    }
    match locked {
        Ok(()) => {
            // The process id is only for error messages, so a failure to write it is ignored.
            let _ = file.set_len(0).and_then(|()| write!(file, "{}", std::process::id()));
            Ok(file)
        }
        Err(TryLockError::WouldBlock) => {
            let mut process = String::new();
            let _ = file.read_to_string(&mut process);
            Err(OpenError::Locked { folder: folder.to_path_buf(), process })
        }
        Err(TryLockError::Error(error)) => Err(not_writable(error)),
    }
}

/// Plans statements once; SQLite would plan them again for each bound value.
fn steady(connection: &Connection) -> Result<(), rusqlite::Error> {
    connection.set_db_config(rusqlite::config::DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map(drop)
}

fn prepare(connection: &mut Connection) -> Result<(), rusqlite::Error> {
    connection.busy_timeout(Duration::from_secs(10))?;
    steady(connection)?;
    let _: String = connection.query_row("PRAGMA journal_mode=WAL", [], |row| row.get(0))?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    // Detects a damaged table or index now rather than on first use.
    let _: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    Ok(())
}

fn form_and_bytes(row: &rusqlite::Row<'_>) -> Result<(i64, Vec<u8>), rusqlite::Error> {
    Ok((row.get(0)?, row.get(1)?))
}

fn unpacked(what: impl FnOnce() -> String, form: i64, bytes: Vec<u8>) -> Result<Vec<u8>, StoreError> {
    packed::unpack(form, bytes).map_err(|reason| StoreError::Corrupt { what: what(), reason })
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
        let rows = self.read(doing, move |db| {
            let mut query = db.prepare_cached(
                "SELECT seq, form, entry FROM events WHERE investigation = (SELECT n FROM investigations WHERE id = ?1) AND seq >= ?2 ORDER BY seq",
            )?;
            let rows = query.query_map(params![id, first - 1], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
            rows.collect::<Result<Vec<(i64, i64, Vec<u8>)>, _>>()
        });
        let mut log: Vec<Recorded> = Vec::new();
        for (seq, form, bytes) in rows.await? {
            let prev = log.last().map(|entry| entry.hash.as_str());
            let row = tables::read(investigation, seq.unsigned_abs(), prev, form, bytes)?;
            log.extend(row);
        }
        log.retain(|entry| entry.seq >= from);
        Ok(log)
    }

    async fn investigations(&self) -> Result<Vec<InvestigationId>, StoreError> {
        let rows = self.read("list the investigations".into(), |db| {
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
}

#[cfg(test)]
mod tests;
