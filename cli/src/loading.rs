//! Loads a folder of evidence beside the event loop, so that a signal is heard while gigabytes are
//! read.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use casebook_evidence::{Catalog, Hint, LoadError, Progress};
use tokio::sync::{mpsc, oneshot};

use crate::failure::Failure;
use crate::stop::Stop;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loading {
    pub step: &'static str,
    /// The file at hand; empty between files.
    pub file: String,
    /// Bytes loaded so far.
    pub done: u64,
    /// Bytes to load, as far as is known yet.
    pub total: u64,
}

/// Loads `evidence`, with its index in the folder `data`. Other processes may load it there at the same time. `hint`
/// is what is known of the matter, for logs that write no year or no zone.
///
/// # Errors
/// The evidence cannot be loaded, the index not written; or someone asked to stop.
pub async fn load(
    evidence: &Path,
    data: &Path,
    hint: Option<Hint>,
    stop: &mut Stop,
    show: &mut (dyn FnMut(&Loading) + Send),
) -> Result<Arc<Catalog>, Failure> {
    let (folder, index) = (whole_path(evidence)?, index_folder(data));
    let (tell, mut told) = mpsc::channel(16);
    let (finish, mut finished) = oneshot::channel();
    // A thread of its own: the runtime would wait for blocking work when it ends, and a person who
    // stops the program would wait, too.
    let started = std::thread::Builder::new().name("evidence".into()).spawn(move || {
        let mut progress = |p: Progress<'_>| {
            // A full channel: the next report says more than this one.
            let _ = tell.try_send(Loading {
                step: p.step,
                file: p.file.to_owned(),
                done: p.bytes_done,
                total: p.bytes_total,
            });
        };
        // Nobody waits any more when someone asked to stop.
        let _ = finish.send(Catalog::open_in(&folder, &index, hint.as_ref(), &mut progress));
    });
    started.map_err(|e| Failure::failed(format!("cannot start a thread: {e}"), "free some memory"))?;
    loop {
        tokio::select! {
            biased;
            () = stop.wait() => return Err(stopped()),
            Some(loading) = told.recv() => show(&loading),
            loaded = &mut finished => {
                let loaded = loaded.map_err(|_| Failure::defect("loading the evidence stopped without a reason"))?;
                return loaded.map(Arc::new).map_err(|e| failure(&e));
            }
        }
    }
}

pub(crate) fn stopped() -> Failure {
    let what = "stopped while the evidence was loading: nothing was investigated yet";
    Failure::unfinished(what, "run the same command again")
}

/// Where the indexes of evidence are in a data folder.
pub(crate) fn index_folder(data: &Path) -> PathBuf {
    data.join("evidence")
}

/// The whole path of a folder of evidence.
pub fn whole_path(evidence: &Path) -> Result<PathBuf, Failure> {
    let found = evidence.canonicalize();
    let found = found.map_err(|e| {
        Failure::usage(
            format!("evidence folder {}: {e}", evidence.display()),
            "give the folder that holds the log files: --evidence DIR",
        )
    })?;
    if found.is_dir() {
        return Ok(found);
    }
    Err(Failure::usage(
        format!("evidence {} is no folder", evidence.display()),
        "give the folder that holds the file: --evidence DIR",
    ))
}

fn failure(error: &LoadError) -> Failure {
    match error {
        LoadError::NoFolder(_) | LoadError::NotAFolder(_) => {
            Failure::usage(error, "give the folder that holds the log files: --evidence DIR")
        }
        LoadError::NothingUsable { .. } => Failure::usage(
            error,
            "put the log files there as text or gzip: JSON lines, CSV, TSV, Zeek, syslog, auditd or plain lines",
        ),
        LoadError::Read { .. } => Failure::failed(error, "see to it that it can be read"),
        LoadError::Write { path, source } => Failure::write(path, source),
        LoadError::Index { path, .. } => Failure::failed(
            error,
            format!(
                "if the disk is not full, delete {} and try again: it is built anew from the evidence",
                path.display()
            ),
        ),
        LoadError::Changed(_) => {
            Failure::failed(error, "copy the evidence to a folder that nothing writes to, and investigate that")
        }
        LoadError::Stopped => Failure::defect(error),
    }
}
