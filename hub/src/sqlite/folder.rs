//! The files of a data folder: the lock of its writer, and connections to its database.

use std::fs::{File, TryLockError};
use std::io::{ErrorKind, Read, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use casebook_runtime::files;
use rusqlite::{Connection, OpenFlags};

use super::fault::OpenError;

pub(super) const DATABASE: &str = "casebook.db";
const LOCK: &str = "casebook.lock";
/// SQLite's page cache of a connection, in KiB.
const CACHE_KIB: i64 = 2048;
const BUSY: Duration = Duration::from_secs(10);

/// A connection that only reads. It never uses `immutable=1`, which would skip what is only in the WAL file.
pub(super) fn reading(file: &Path) -> Result<Connection, rusqlite::Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(file, flags)?;
    steady(&connection)?;
    connection.pragma_update(None, "query_only", true)?;
    connection.pragma_update(None, "cache_size", -CACHE_KIB)?;
    connection.busy_timeout(BUSY)?;
    Ok(connection)
}

/// The system may hold the lock of a killed process a little longer: how long the next process waits.
pub(super) const PUT_AWAY: Duration = Duration::from_millis(500);

/// What Casebook writes into a data folder. SQLite gives its other files the permissions of the database.
const FILES: [&str; 8] =
    [LOCK, DATABASE, "casebook.db-wal", "casebook.db-shm", "index.lock", "index.db", "index.db-wal", "index.db-shm"];
const FOLDERS: [&str; 5] = ["evidence", "cluster", "demo", "servers", "uploads"];

fn not_writable(folder: &Path) -> impl Fn(std::io::Error) -> OpenError {
    |error| match error.kind() {
        ErrorKind::StorageFull => OpenError::Full { folder: folder.to_path_buf() },
        _ => OpenError::NotWritable { folder: folder.to_path_buf(), reason: error.to_string() },
    }
}

/// Takes the files of the data folder away from all but their owner. A folder with other files in it may have other
/// readers, so its own permissions are only reported.
pub(super) fn private(folder: &Path) -> Result<(), OpenError> {
    files::create_private(&folder.join(DATABASE)).map_err(not_writable(folder))?;
    let entries = std::fs::read_dir(folder).map_err(not_writable(folder))?.flatten();
    let mut names = entries.map(|entry| entry.file_name());
    let ours = names.all(|name| FILES.iter().chain(&FOLDERS).any(|known| name == *known));
    // A folder of this name beside other files may be the person's own.
    let folders = FOLDERS.iter().filter(|_| ours);
    let inside = FILES.iter().chain(folders).map(|name| folder.join(name)).filter(|path| path.exists());
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
pub(super) fn lock(folder: &Path) -> Result<File, OpenError> {
    let not_writable = not_writable(folder);
    files::private_folder(folder).map_err(&not_writable)?;
    let mut file = files::private_file(&folder.join(LOCK)).map_err(&not_writable)?;
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

pub(super) fn prepare(connection: &mut Connection) -> Result<(), rusqlite::Error> {
    connection.busy_timeout(BUSY)?;
    steady(connection)?;
    let _: String = connection.query_row("PRAGMA journal_mode=WAL", [], |row| row.get(0))?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    // Detects a damaged table or index now rather than on first use.
    let _: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    Ok(())
}
