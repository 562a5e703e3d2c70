use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use casebook_protocol::{InvestigationId, Timestamp};
use casebook_runtime::files;
use casebook_runtime::store::{Feed, Store, StoreError};
use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::database::{self, Progress, Tables};
use crate::figures::Figures;
use crate::query::{self, Counts, Page, Wanted};
use crate::row::Row;

const FILE: &str = "index.db";
const LOCK: &str = "index.lock";
/// How often to look at what another process folds, and how long it may make no progress.
const LOOK: Duration = Duration::from_millis(20);
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("cannot use the index of investigations {}: {reason}; delete it, it is made again", file.display())]
    Database { file: PathBuf, reason: String },
    #[error("the cursor {0:?} is not of this list; begin again without a cursor")]
    Cursor(String),
    #[error("another process makes the index of investigations in {} and has stopped; end it", .0.display())]
    Stalled(PathBuf),
}

/// The rows of all investigations of a store. Clones share it.
#[derive(Debug, Clone)]
pub struct Index(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// Empty if it is in memory.
    folder: PathBuf,
    open: Mutex<Open>,
}

#[derive(Debug)]
struct Open {
    connection: Connection,
    role: Role,
    /// The position was found in the store.
    checked: bool,
}

#[derive(Debug)]
enum Role {
    /// Holds the lock; `None` in memory.
    Writer(#[allow(dead_code, reason = "released when dropped")] Option<File>),
    Reader,
}

impl Index {
    /// Opens the index in `folder`, and creates it if it is missing or cannot be used. If the folder cannot be written to,
    /// or if another version of this program keeps its index there, the index is in memory.
    pub fn open(folder: &Path) -> Result<Self, IndexError> {
        let opened = files::private_folder(folder).ok().and_then(|()| in_folder(folder).transpose()).transpose();
        match opened.map_err(|error| wrong(folder, &error))? {
            Some(open) => Ok(Self(Arc::new(Inner { folder: folder.to_path_buf(), open: Mutex::new(open) }))),
            None => Self::in_memory(),
        }
    }

    pub fn in_memory() -> Result<Self, IndexError> {
        let made = Connection::open_in_memory().and_then(|mut connection| {
            database::reset(&mut connection)?;
            Ok(Open { connection, role: Role::Writer(None), checked: true })
        });
        let open = Mutex::new(made.map_err(|error| wrong(Path::new(""), &error))?);
        Ok(Self(Arc::new(Inner { folder: PathBuf::new(), open })))
    }

    /// Folds what the store has and the index does not, or waits until the process that holds the lock has done so.
    pub async fn catch_up(&self, store: &dyn Store) -> Result<(), IndexError> {
        let target = store.end().await?;
        let mut seen = (0, Instant::now());
        loop {
            if self.become_writer()? {
                return self.fold(store).await;
            }
            let position = self.position()?;
            if position >= target {
                return Ok(());
            }
            if position != seen.0 {
                seen = (position, Instant::now());
            } else if seen.1.elapsed() > PATIENCE {
                return Err(IndexError::Stalled(self.0.folder.clone()));
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    async fn fold(&self, store: &dyn Store) -> Result<(), IndexError> {
        self.check(store).await?;
        loop {
            let after = self.position()?;
            let feed = store.feed(after).await?;
            if feed.position == after {
                return Ok(());
            }
            self.take(feed).await?;
        }
    }

    /// Begins again if the index is of another store.
    async fn check(&self, store: &dyn Store) -> Result<(), IndexError> {
        if self.0.lock().checked {
            return Ok(());
        }
        let Progress { at, hash, .. } = self.with(|db| database::progress(db))?;
        let same = match at {
            0 => true,
            at => {
                let feed = store.feed(at - 1).await?;
                feed.appended.first().is_some_and(|one| one.position == at && database::hash(one) == hash)
            }
        };
        if !same {
            tracing::info!(folder = %self.0.folder.display(), "the index of investigations is of another store; it is made again");
            self.with(database::reset)?;
        }
        self.0.lock().checked = true;
        Ok(())
    }

    async fn take(&self, feed: Feed) -> Result<(), IndexError> {
        let index = self.clone();
        let folded = tokio::task::spawn_blocking(move || index.with(|db| database::fold(db, &feed))).await;
        folded.map_err(|e| StoreError::Unavailable { doing: "fold the feed".into(), reason: e.to_string() })?
    }

    /// The position in the feed up to which everything is folded.
    pub fn position(&self) -> Result<u64, IndexError> {
        self.with(|db| database::progress(db)).map(|progress| progress.position)
    }

    /// A page of rows. `now` decides which open investigations are quiet.
    pub fn page(&self, wanted: &Wanted, now: Timestamp) -> Result<Page, IndexError> {
        let page = self.with(|db| query::page(db, wanted, now))?;
        page.ok_or_else(|| IndexError::Cursor(wanted.cursor.clone().unwrap_or_default()))
    }

    pub fn get(&self, id: &InvestigationId) -> Result<Option<(Row, Figures)>, IndexError> {
        self.with(|db| query::get(db, id))
    }

    /// The ids that begin with `text`, in order, at most `limit`.
    pub fn beginning(&self, text: &str, limit: u32) -> Result<Vec<InvestigationId>, IndexError> {
        let ids = self.with(|db| query::beginning(db, text, limit))?;
        Ok(ids.into_iter().filter_map(|id| InvestigationId::new(id).ok()).collect())
    }

    pub fn counts(&self) -> Result<Counts, IndexError> {
        self.with(|db| query::counts(db))
    }

    /// The sum over the investigations that were opened in a period.
    pub fn figures(&self, since: Option<Timestamp>, before: Option<Timestamp>) -> Result<Figures, IndexError> {
        self.with(|db| query::figures(db, since, before))
    }

    fn with<T>(&self, act: impl FnOnce(&mut Connection) -> Result<T, rusqlite::Error>) -> Result<T, IndexError> {
        act(&mut self.0.lock().connection).map_err(|error| wrong(&self.0.folder, &error))
    }

    /// Takes the lock if the process that held it has ended.
    fn become_writer(&self) -> Result<bool, IndexError> {
        let mut open = self.0.lock();
        if matches!(open.role, Role::Writer(_)) {
            return Ok(true);
        }
        let Ok(Some(lock)) = locked(&self.0.folder) else { return Ok(false) };
        open.role = Role::Writer(Some(lock));
        open.connection.pragma_update(None, "query_only", false).map_err(|error| wrong(&self.0.folder, &error))?;
        Ok(true)
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn wrong(folder: &Path, error: &rusqlite::Error) -> IndexError {
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

/// `None` if the folder cannot be used.
fn in_folder(folder: &Path) -> Result<Option<Open>, rusqlite::Error> {
    let file = folder.join(FILE);
    let open = |connection, role| Some(Open { connection, role, checked: false });
    match locked(folder) {
        Ok(Some(lock)) => match writing(&file) {
            Ok(connection) => Ok(open(connection, Role::Writer(Some(lock)))),
            Err(error) if denied(&error) => Ok(None),
            Err(error) => Err(error),
        },
        Ok(None) => Ok(beside_writer(&file).and_then(|connection| open(connection, Role::Reader))),
        Err(_) => Ok(None),
    }
}

fn denied(error: &rusqlite::Error) -> bool {
    let denied = [ErrorCode::CannotOpen, ErrorCode::ReadOnly, ErrorCode::PermissionDenied];
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
            tracing::warn!(file = %file.display(), %error, "the index of investigations is damaged; it is made again");
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
    let _ = files::private_file(file);
    let mut connection = Connection::open(file)?;
    database::prepare(&connection)?;
    if database::tables(&connection)? != Tables::Current {
        database::reset(&mut connection)?;
    }
    database::progress(&connection)?;
    Ok(connection)
}

/// The index of the process that holds the lock, which may be making it just now. `None` if this program cannot read it.
fn beside_writer(file: &Path) -> Option<Connection> {
    let end = Instant::now() + PATIENCE;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    while Instant::now() < end {
        let opened = Connection::open_with_flags(file, flags).and_then(|connection| {
            connection.busy_timeout(PATIENCE)?;
            connection.pragma_update(None, "query_only", true)?;
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
