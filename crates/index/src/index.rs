use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use casebook_protocol::Timestamp;
use casebook_runtime::files;
use casebook_runtime::store::{Feed, Store, StoreError};
use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::brief::{self, Brief};
use crate::database::{self, Progress, Tables};
use crate::figures::Figures;
use crate::query::{self, Counts, Page, Wanted};

const FILE: &str = "index.db";
const READERS: usize = 4;
const LOCK: &str = "index.lock";
/// How often to look at what another process folds, and how long it may make no progress.
const LOOK: Duration = Duration::from_millis(20);
const PATIENCE: Duration = Duration::from_secs(10);
/// How often, and after which pauses, an append that cannot be read is read again: a replica may not have it yet.
const AGAIN: u32 = 3;
const PAUSE: Duration = Duration::from_millis(200);

#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("cannot use the index of investigations {}: {reason}; delete it; it will be rebuilt", file.display())]
    Database { file: PathBuf, reason: String },
    #[error("the disk of the index of investigations {} is full", .0.display())]
    Full(PathBuf),
    #[error("the cursor {0:?} is not of this list")]
    Cursor(String),
    #[error("another process is building the index of investigations in {} and has stalled; stop that process", .0.display())]
    Stalled(PathBuf),
}

/// The rows of all investigations of a store. Clones share it.
#[derive(Debug, Clone)]
pub struct Index(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    open: Mutex<Open>,
    /// Free connections that only read, so that readers do not wait for each other; none if the index is in memory.
    readers: Mutex<Option<Vec<Connection>>>,
    /// One fold at a time in this process. True if the position was found in the store.
    folding: tokio::sync::Mutex<bool>,
}

#[derive(Debug)]
struct Open {
    connection: Connection,
    /// None if it is in memory.
    folder: Option<PathBuf>,
}

impl Open {
    fn in_memory() -> Result<Self, rusqlite::Error> {
        let mut connection = Connection::open_in_memory()?;
        database::reset(&mut connection)?;
        Ok(Self { connection, folder: None })
    }

    fn error(&self, error: &rusqlite::Error) -> IndexError {
        wrong(self.folder.as_deref().unwrap_or(Path::new("")), error)
    }
}

impl Index {
    /// Opens the index in `folder`, and creates it if it is missing or cannot be used. If the folder cannot be written
    /// to, the index is in memory.
    pub fn open(folder: &Path) -> Result<Self, IndexError> {
        let opened = files::private_folder(folder).ok().and_then(|()| in_folder(folder).transpose()).transpose();
        match opened.map_err(|error| wrong(folder, &error))? {
            Some(connection) => Ok(Self::of(Open { connection, folder: Some(folder.to_path_buf()) })),
            None => Self::in_memory(),
        }
    }

    pub fn in_memory() -> Result<Self, IndexError> {
        Open::in_memory().map(Self::of).map_err(|error| wrong(Path::new(""), &error))
    }

    fn of(open: Open) -> Self {
        // At once with the one that writes, so that all have the same file. Without them it serves readers, too.
        let readers =
            open.folder.as_ref().map(|folder| (0..READERS).map_while(|_| reader(&folder.join(FILE))).collect());
        let (open, readers) = (Mutex::new(open), Mutex::new(readers));
        Self(Arc::new(Inner { open, readers, folding: tokio::sync::Mutex::new(false) }))
    }

    /// Folds what the store has and the index does not. One process at a time folds. On a full disk the index goes on in
    /// memory.
    pub async fn catch_up(&self, store: &dyn Store) -> Result<(), IndexError> {
        let mut checked = self.0.folding.lock().await;
        match self.folded(store, &mut checked).await {
            Err(IndexError::Full(file)) => {
                tracing::warn!(file = %file.display(), "the disk is full; the index of investigations is kept in memory");
                self.forget()?;
                self.fold(store).await
            }
            folded => folded,
        }
    }

    async fn folded(&self, store: &dyn Store, checked: &mut bool) -> Result<(), IndexError> {
        let _lock = self.locked().await?;
        // Another version of this program may have made it again in between.
        if self.with(|db| database::tables(db))? != Tables::Current {
            self.forget()?;
        }
        if !*checked {
            self.check(store).await?;
            *checked = true;
        }
        self.fold(store).await
    }

    async fn fold(&self, store: &dyn Store) -> Result<(), IndexError> {
        loop {
            let after = self.position()?;
            let feed = readable(store, after).await?;
            if feed.position == after {
                return Ok(());
            }
            self.take(after, feed).await?;
        }
    }

    /// The lock of the folder; none in memory. Waits while the process that has it makes progress.
    async fn locked(&self) -> Result<Option<File>, IndexError> {
        let Some(folder) = self.0.lock().folder.clone() else { return Ok(None) };
        let mut seen = (self.position()?, Instant::now());
        loop {
            match locked(&folder) {
                Ok(Some(lock)) => return Ok(Some(lock)),
                Ok(None) => {}
                Err(source) => {
                    return Err(IndexError::Database { file: folder.join(LOCK), reason: source.to_string() });
                }
            }
            let position = self.position()?;
            if position != seen.0 {
                seen = (position, Instant::now());
            } else if seen.1.elapsed() > PATIENCE {
                return Err(IndexError::Stalled(folder));
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Goes on in memory, from the beginning.
    fn forget(&self) -> Result<(), IndexError> {
        let mut open = self.0.lock();
        *open = Open::in_memory().map_err(|error| open.error(&error))?;
        *self.0.readers() = None;
        Ok(())
    }

    /// Begins again if the index is of another store.
    async fn check(&self, store: &dyn Store) -> Result<(), IndexError> {
        let Progress { at, hash, position } = self.with(|db| database::progress(db))?;
        let same = match at {
            0 => position == 0,
            at => {
                let feed = store.feed(at - 1).await?;
                feed.appended.first().is_some_and(|one| one.position == at && database::hash(one) == hash)
            }
        };
        if !same {
            tracing::info!("the index of investigations is of another store; it is being rebuilt");
            self.with(database::reset)?;
        }
        Ok(())
    }

    async fn take(&self, after: u64, feed: Feed) -> Result<(), IndexError> {
        let index = self.clone();
        let folded = tokio::task::spawn_blocking(move || index.with(|db| database::fold(db, after, &feed))).await;
        folded.map_err(|e| StoreError::Unavailable { doing: "fold the feed".into(), reason: e.to_string() })?
    }

    /// The position in the feed up to which everything is folded.
    pub fn position(&self) -> Result<u64, IndexError> {
        self.with(|db| database::progress(db)).map(|progress| progress.position)
    }

    /// A page of rows. `now` decides which open investigations are quiet.
    pub fn page(&self, wanted: &Wanted, now: Timestamp) -> Result<Page, IndexError> {
        let page = self.read(|db| query::page(db, wanted, now))?;
        page.ok_or_else(|| IndexError::Cursor(wanted.cursor.clone().unwrap_or_default()))
    }

    /// Little of each of the newest investigations, in their order.
    pub fn newest(&self, limit: u32) -> Result<Vec<Brief>, IndexError> {
        self.read(|db| brief::newest(db, limit))
    }

    /// How many investigations there are.
    pub fn all(&self) -> Result<u64, IndexError> {
        self.read(brief::all)
    }

    pub fn counts(&self) -> Result<Counts, IndexError> {
        self.read(query::counts)
    }

    /// How many closed investigations have each verdict.
    pub fn verdicts(&self) -> Result<BTreeMap<String, u64>, IndexError> {
        self.read(query::verdicts)
    }

    /// The sum over the investigations that were opened in a period.
    pub fn figures(&self, since: Option<Timestamp>, before: Option<Timestamp>) -> Result<Figures, IndexError> {
        self.read(|db| query::figures(db, since, before))
    }

    /// Acts with a connection that no other reader has, if one is free.
    fn read<T>(&self, act: impl FnOnce(&Connection) -> Result<T, rusqlite::Error>) -> Result<T, IndexError> {
        let Some(reader) = self.0.readers().as_mut().and_then(Vec::pop) else { return self.with(|db| act(db)) };
        let result = act(&reader);
        if let Some(free) = self.0.readers().as_mut() {
            free.push(reader);
        }
        result.map_err(|error| self.0.lock().error(&error))
    }

    fn with<T>(&self, act: impl FnOnce(&mut Connection) -> Result<T, rusqlite::Error>) -> Result<T, IndexError> {
        let mut open = self.0.lock();
        act(&mut open.connection).map_err(|error| open.error(&error))
    }
}

impl Inner {
    fn readers(&self) -> MutexGuard<'_, Option<Vec<Connection>>> {
        self.readers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A page of the feed. What cannot be read is read again before it counts as broken.
async fn readable(store: &dyn Store, after: u64) -> Result<Feed, StoreError> {
    for n in 1..=AGAIN {
        let feed = store.feed(after).await?;
        if feed.appended.iter().all(|one| one.entries.is_ok()) {
            return Ok(feed);
        }
        tokio::time::sleep(PAUSE * n).await;
    }
    store.feed(after).await
}

fn wrong(folder: &Path, error: &rusqlite::Error) -> IndexError {
    if error.sqlite_error_code() == Some(ErrorCode::DiskFull) {
        return IndexError::Full(folder.join(FILE));
    }
    IndexError::Database { file: folder.join(FILE), reason: error.to_string() }
}

/// The lock, or `None` if another process holds it.
fn locked(folder: &Path) -> std::io::Result<Option<File>> {
    let file = files::private_file(&folder.join(LOCK))?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

fn reader(file: &Path) -> Option<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let reader = Connection::open_with_flags(file, flags).ok()?;
    reader.busy_timeout(PATIENCE).ok()?;
    Some(reader)
}

/// `None` if the folder cannot be used.
fn in_folder(folder: &Path) -> Result<Option<Connection>, rusqlite::Error> {
    let file = folder.join(FILE);
    match locked(folder) {
        Ok(Some(_lock)) => match writing(&file) {
            Err(error) if denied(&error) => Ok(None),
            opened => opened.map(Some),
        },
        Ok(None) => Ok(beside_writer(&file)),
        Err(_) => Ok(None),
    }
}

fn denied(error: &rusqlite::Error) -> bool {
    let denied = [ErrorCode::CannotOpen, ErrorCode::ReadOnly, ErrorCode::PermissionDenied, ErrorCode::DiskFull];
    error.sqlite_error_code().is_some_and(|code| denied.contains(&code))
}

fn damaged(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
        || !matches!(error, rusqlite::Error::SqliteFailure(..))
}

/// Opens the file to write; what cannot be read is removed.
fn writing(file: &Path) -> Result<Connection, rusqlite::Error> {
    match usable(file) {
        Err(error) if damaged(&error) => {
            tracing::warn!(file = %file.display(), %error, "the index of investigations is damaged; it is being rebuilt");
            for end in ["", "-wal", "-shm"] {
                let mut name = file.as_os_str().to_owned();
                name.push(end);
                let _ = std::fs::remove_file(name);
            }
            usable(file)
        }
        opened => opened,
    }
}

fn usable(file: &Path) -> Result<Connection, rusqlite::Error> {
    // SQLite says what is wrong if the file cannot be made.
    let _ = files::create_private(file);
    let mut connection = Connection::open(file)?;
    database::prepare(&connection)?;
    if database::tables(&connection)? != Tables::Current {
        database::reset(&mut connection)?;
    }
    database::progress(&connection)?;
    Ok(connection)
}

/// The index while another process folds, which may be making the tables just now. `None` if this program cannot use it.
fn beside_writer(file: &Path) -> Option<Connection> {
    let end = Instant::now() + PATIENCE;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    while Instant::now() < end {
        let opened = Connection::open_with_flags(file, flags).and_then(|connection| {
            database::prepare(&connection)?;
            let tables = database::tables(&connection)?;
            Ok((connection, tables))
        });
        match opened {
            Ok((connection, Tables::Current)) => return Some(connection),
            Ok((_, Tables::Other)) => return None,
            Ok((_, Tables::None)) | Err(_) => std::thread::sleep(LOOK),
        }
    }
    None
}
