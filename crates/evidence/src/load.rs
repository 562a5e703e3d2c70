//! Loads files. One thread reads, hashes and cuts them into blocks; a thread for each core parses the blocks and evaluates
//! the rules; the calling thread joins the blocks in order and writes the index.

use std::io;
use std::path::Path;
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex};

use super::declared::Declared;
use super::hint::Hint;
use super::index::{Looked, Manifest, Meta, Stored, VERSION, Writer, cache_folder, now};
use super::meet::{self, Connections};
use super::prepare::{self, Prepared};
use super::private;
use super::rules::RuleSet;
use super::source::{Progress, Skipped};
use super::text::Opener;
use super::walk::{self, Found};
use super::{LoadError, collection};

mod block;
mod cut;
mod join;

use block::BlockPlan;
use cut::{Cutting, Ticket};
use join::Joining;

/// Blocks that wait for each thread, and that wait to be written.
const WAITING: usize = 2;
const QUEUE: usize = 16;
const THREADS_MAX: usize = 16;

pub(crate) fn build(
    root: &Path,
    index: &Path,
    (found, mut skipped): (Vec<Found>, Vec<Skipped>),
    hint: Option<&Hint>,
    looked: &[Looked],
    declared: &Declared,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<Meta, LoadError> {
    if let Some(folder) = index.parent().filter(|f| !f.as_os_str().is_empty()) {
        private::folder(folder)?;
    }
    let (read, rules) = (now(), declared.rule_set.as_ref());
    let writer = Writer::create(index)?;
    let cache = cache_folder(index);
    match std::fs::remove_dir_all(&cache) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => {
            return Err(LoadError::Write { path: cache, source });
        }
        _ => {}
    }
    let mut manifest = Vec::new();
    let mut texts = Vec::new();
    let known: u64 = found.iter().map(|f| f.size).sum();
    let mut opener = Opener::new(&cache, &found);
    for file in found {
        progress(Progress { step: "looking at", file: &file.file, bytes_done: 0, bytes_total: known });
        let opened = opener.open(&file)?;
        skipped.extend(opened.skipped);
        if opened.texts.is_empty() {
            let Found { file, size, mtime, inode, .. } = file;
            manifest.push(Manifest { file, size, mtime, sha256: String::new(), inode });
        }
        texts.extend(opened.texts);
    }
    if texts.is_empty() {
        return Err(LoadError::nothing(root, &skipped));
    }
    let mut prepared = prepare::all(texts, declared)?;
    let guessed = prepare::share(&mut prepared, hint, looked);
    let mut sources = run(prepared, &writer, &mut manifest, rules, progress)?;
    if sources.iter().all(|s| s.source.records == 0) {
        return Err(LoadError::nothing(root, &skipped));
    }
    progress(Progress { step: "finishing", file: "", bytes_done: known, bytes_total: known });
    manifest.sort_by(|a, b| a.file.cmp(&b.file));
    manifest.dedup_by(|a, b| a.file == b.file);
    let skipped = collection::counted(skipped);
    let rules = rules.map_or(Ok(String::new()), |rules| writer.correlate(rules, &mut sources))?;
    let meta = Meta { version: VERSION, manifest, skipped, sources, guessed, rules, reading: declared.reading(), read };
    writer.finish(&meta)?;
    Ok(meta)
}

fn run(
    prepared: Vec<Prepared>,
    writer: &Writer,
    manifest: &mut Vec<Manifest>,
    rules: Option<&Arc<RuleSet>>,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<Vec<Stored>, LoadError> {
    let files: Vec<String> = prepared.iter().map(|p| p.found.file.clone()).collect();
    let (mut to_cut, mut to_join) = (Vec::new(), Vec::new());
    for (number, (prepared, id)) in prepared.into_iter().zip(walk::ids(&files)).enumerate() {
        let plan = Arc::new(BlockPlan::new(&prepared, rules));
        to_cut.push(Cutting::new(&prepared, Arc::clone(&plan)));
        to_join.push(Joining::new(prepared, id, number, plan)?);
    }
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(THREADS_MAX);
    let (give, jobs) = sync_channel(threads * WAITING);
    let (say, hear) = sync_channel(threads * QUEUE);
    let jobs = Arc::new(Mutex::new(jobs));
    std::thread::scope(|scope| {
        let reader = scope.spawn(move || cut::all(to_cut, &give, &say));
        for thread in 0..threads {
            let jobs = Arc::clone(&jobs);
            scope.spawn(move || block::work(&jobs, thread));
        }
        drop(jobs);
        let joined = join_all(to_join, &hear, writer, manifest, progress);
        // If the writer fails, the channel closes, which ends the other threads.
        drop(hear);
        let read = reader.join().map_err(|_| LoadError::Stopped)?;
        // A reader that failed is why the writer did.
        read.and(joined)
    })
}

fn join_all(
    sources: Vec<Joining>,
    hear: &Receiver<Ticket>,
    writer: &Writer,
    manifest: &mut Vec<Manifest>,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<Vec<Stored>, LoadError> {
    let total = sources.iter().map(Joining::bytes).sum();
    let (mut before, mut shown, mut next) = (0u64, 0u64, 1);
    let (mut done, mut connections): (Vec<Stored>, Vec<Connections>) = (Vec::new(), Vec::new());
    for (number, mut source) in (0..).zip(sources) {
        loop {
            match hear.recv().map_err(|_| LoadError::Stopped)? {
                Ticket::Block { reply, position } => {
                    let block = reply.recv().map_err(|_| LoadError::Stopped)?;
                    source.add(block, &mut next, writer)?;
                    let bytes_done = before + position;
                    if bytes_done >= shown + (1 << 20) {
                        shown = bytes_done;
                        progress(Progress { step: "loading", file: source.file(), bytes_done, bytes_total: total });
                    }
                }
                Ticket::End { tally, sha256 } => {
                    before += source.bytes();
                    let file = source.file().to_owned();
                    progress(Progress { step: "loading", file: &file, bytes_done: before, bytes_total: total });
                    source.end(writer)?;
                    let read = source.finish(tally, sha256);
                    writer.hits(number, read.kept)?;
                    manifest.push(read.manifest);
                    done.push(read.stored);
                    connections.push(read.connections);
                    break;
                }
            }
        }
    }
    meet::compare(&mut done.iter_mut().map(|stored| &mut stored.source).collect::<Vec<_>>(), &connections);
    Ok(done)
}
