//! Reads files, hashes them, and cuts them into blocks of whole records.

use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use super::block::{Block, BlockPlan, Job};
use crate::LoadError;
use crate::prepare::Prepared;
use crate::split::{Cut, Cutter, Tally};
use crate::text::Hashing;

/// A block ends when it has at least this many bytes.
const BLOCK_BYTES: usize = 64 << 10;
const BLOCK_RECORDS: usize = 512;

/// What comes next of a source, in order.
pub(super) enum Ticket {
    Block {
        reply: Receiver<Block>,
        /// Of the first byte after the block.
        position: u64,
    },
    End {
        tally: Tally,
        /// Of the text.
        sha256: String,
    },
}

/// How a text is read.
pub(super) struct Cutting {
    file: String,
    path: PathBuf,
    size: u64,
    skip: u64,
    cut: Cut,
    plan: Arc<BlockPlan>,
}

impl Cutting {
    pub(super) fn new(prepared: &Prepared, plan: Arc<BlockPlan>) -> Self {
        Self {
            file: prepared.found.file.clone(),
            path: prepared.body.path.clone(),
            size: prepared.body.size,
            skip: prepared.detected.skip,
            cut: prepared.detected.cut.clone(),
            plan,
        }
    }
}

/// Ends early if the receiver is gone.
pub(super) fn all(texts: Vec<Cutting>, give: &SyncSender<Job>, say: &SyncSender<Ticket>) -> Result<(), LoadError> {
    for text in texts {
        let path = text.path.clone();
        let more = one(text, give, say).map_err(|failed| match failed {
            Failed::Read(source) => LoadError::Read { path, source },
            Failed::Changed(file) => LoadError::Changed(file),
        })?;
        if !more {
            break;
        }
    }
    Ok(())
}

enum Failed {
    Read(io::Error),
    Changed(String),
}

impl From<io::Error> for Failed {
    fn from(error: io::Error) -> Self {
        Self::Read(error)
    }
}

/// False if the receiver is gone.
fn one(text: Cutting, give: &SyncSender<Job>, say: &SyncSender<Ticket>) -> Result<bool, Failed> {
    // Data appended during loading is not read.
    let mut hashing = Hashing::new(File::open(&text.path)?.take(text.size));
    io::copy(&mut hashing.by_ref().take(text.skip), &mut io::sink())?;
    let mut cutter = Cutter::new(&mut hashing, &text.cut, text.skip, 1);
    let mut bytes = Vec::new();
    let mut job = Job::new(&text.plan);
    let send = |job: Job, position: u64| {
        let (answer, reply) = sync_channel(1);
        job.pieces.is_empty()
            || (say.send(Ticket::Block { reply, position }).is_ok() && give.send(Job { answer, ..job }).is_ok())
    };
    while let Some(piece) = cutter.next(&mut bytes)? {
        job.raw.extend_from_slice(&bytes);
        job.pieces.push((piece, job.raw.len()));
        if (job.raw.len() >= BLOCK_BYTES || job.pieces.len() >= BLOCK_RECORDS)
            && !send(std::mem::replace(&mut job, Job::new(&text.plan)), cutter.position())
        {
            return Ok(false);
        }
    }
    let (position, tally) = (cutter.position(), cutter.tally());
    if position < text.size {
        return Err(Failed::Changed(text.file));
    }
    let sent = send(job, position);
    let sha256 = hashing.finish()?;
    Ok(sent && say.send(Ticket::End { tally, sha256 }).is_ok())
}
