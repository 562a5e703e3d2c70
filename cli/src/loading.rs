//! Loads a folder of evidence on another thread, so that signals are handled meanwhile.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use casebook_evidence::{Catalog, Declared, Hint, LoadError, Progress};
use tokio::sync::{mpsc, oneshot};

use crate::failure::Failure;
use crate::stop::Stop;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loading {
    pub step: &'static str,
    /// The current file; empty between files.
    pub file: String,
    pub done: u64,
    /// Bytes to load, as far as known.
    pub total: u64,
}

/// Loads `evidence`, with its index in the folder `data`. Other processes may do the same at the same time.
/// `hint` supplies the year and zone for logs without them, `declared` what wrote them.
pub async fn load(
    evidence: &Path,
    data: &Path,
    hint: Option<Hint>,
    declared: &Declared,
    stop: &mut Stop,
    show: &mut (dyn FnMut(&Loading) + Send),
) -> Result<Arc<Catalog>, Failure> {
    let (folder, index) = (whole_path(evidence)?, index_folder(data));
    let declared = declared.clone();
    let (report, mut reports) = mpsc::channel(16);
    let (finish, mut finished) = oneshot::channel();
    // Not `spawn_blocking`: the runtime would wait for it at exit, and so would the user.
    let started = std::thread::Builder::new().name("evidence".into()).spawn(move || {
        let mut progress = |p: Progress<'_>| {
            // If the channel is full, the next report replaces this one.
            let _ = report.try_send(Loading {
                step: p.step,
                file: p.file.to_owned(),
                done: p.bytes_done,
                total: p.bytes_total,
            });
        };
        // The receiver is gone after a request to stop.
        let _ = finish.send(Catalog::declared_in(&folder, &index, hint.as_ref(), &declared, &mut progress));
    });
    started.map_err(|e| Failure::failed(format!("cannot start a thread: {e}"), "free some memory"))?;
    loop {
        tokio::select! {
            biased;
            () = stop.wait() => return Err(stopped()),
            Some(loading) = reports.recv() => show(&loading),
            loaded = &mut finished => {
                let loaded = loaded.map_err(|_| Failure::defect("loading the evidence stopped without a reason"))?;
                return loaded.map(Arc::new).map_err(|e| failure(&e));
            }
        }
    }
}

pub(crate) fn stopped() -> Failure {
    let what = "stopped while loading the evidence; nothing was investigated yet";
    Failure::unfinished(what, "run the same command again")
}

pub(crate) fn index_folder(data: &Path) -> PathBuf {
    data.join("evidence")
}

pub fn whole_path(evidence: &Path) -> Result<PathBuf, Failure> {
    let found = evidence.canonicalize();
    let found = found.map_err(|e| {
        Failure::usage(
            format!("evidence folder {}: {e}", evidence.display()),
            "name the folder with the log files: --evidence DIR",
        )
    })?;
    if found.is_dir() {
        return Ok(found);
    }
    Err(Failure::usage(
        format!("evidence {} is not a folder", evidence.display()),
        "name the folder that contains the file: --evidence DIR",
    ))
}

fn failure(error: &LoadError) -> Failure {
    match error {
        LoadError::NoFolder(_) | LoadError::NotAFolder(_) => {
            Failure::usage(error, "name the folder with the log files: --evidence DIR")
        }
        LoadError::NothingUsable { .. } => Failure::usage(
            error,
            "put log files there: JSON lines, CSV, TSV, Zeek, syslog, auditd, plain lines, EVTX; also as gzip, zstd, zip or tar",
        ),
        LoadError::Read { .. } => Failure::failed(error, "make it readable"),
        LoadError::Write { path, source } => Failure::write(path, source),
        LoadError::Index { .. } if error.is_full() => {
            Failure::failed(error, "free some space on that disk, then run the same command again")
        }
        LoadError::Index { path, .. } => {
            Failure::failed(error, format!("delete {} and try again; it is rebuilt from the evidence", path.display()))
        }
        LoadError::Changed(_) => {
            Failure::failed(error, "copy the evidence to a folder that nothing writes to, and investigate that")
        }
        LoadError::Inside { .. } => Failure::usage(
            error,
            "an attacker could have written what is inside the evidence; keep team folders and rules elsewhere",
        ),
        LoadError::Stopped => Failure::defect(error),
    }
}
