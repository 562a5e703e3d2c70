//! Loads files: one thread reads and splits them, another writes the index.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use casebook_protocol::{Precision, TimeBasis, Timestamp};

use super::declared::Declared;
use super::fields::{self, Shape};
use super::hint::Hint;
use super::index::{Block, Entry, Looked, Manifest, Meta, Stored, VERSION, Writer, cache_folder, now};
use super::prepare::{self, Prepared};
use super::private;
use super::profile::Profile;
use super::readings::{self, Grams};
use super::rules::RuleSet;
use super::rules::events::EventPass;
use super::rules::hits::Kept;
use super::rules::pass::Carried;
use super::source::{Place, Progress, Skipped, Source};
use super::split::{Cutter, Piece};
use super::text::{Hashing, Opener};
use super::time::plan::Resolver;
use super::walk::{self, Found};
use super::{LoadError, TimeRole, collection};

/// A block ends when it has at least this many bytes.
const BLOCK_BYTES: usize = 64 << 10;
const BLOCK_RECORDS: usize = 512;
const QUEUE: usize = 16;
const EXAMPLES: usize = 5;

enum Said {
    Block(Batch),
    Source(Box<Done>),
}

/// A source that was read, its file, and the hits of the rules.
type Done = (Stored, Manifest, BTreeMap<usize, Kept>);

struct Batch {
    entries: Vec<Entry>,
    raw: Vec<u8>,
    ends: Vec<usize>,
    shape: Arc<Shape>,
    file: Arc<str>,
    position: u64,
    carried: Vec<Carried>,
}

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
    let mut prepared = Vec::new();
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
        for (found, body) in opened.texts {
            prepared.push(Prepared::new(found, body, declared)?);
        }
    }
    if prepared.is_empty() {
        return Err(LoadError::nothing(root, &skipped));
    }
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
    let total = prepared.iter().map(|p| p.body.size).sum();
    let (say, hear) = sync_channel(QUEUE);
    std::thread::scope(|scope| {
        let reader = scope.spawn(move || read_all(prepared, rules, &say));
        let written = write_all(&hear, writer, manifest, total, progress);
        // If the writer fails, the channel closes, which ends the reader.
        drop(hear);
        let read = reader.join().map_err(|_| LoadError::Stopped)?;
        let sources = written?;
        read.map(|()| sources)
    })
}

fn write_all(
    hear: &Receiver<Said>,
    writer: &Writer,
    manifest: &mut Vec<Manifest>,
    total: u64,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<Vec<Stored>, LoadError> {
    let mut sources = Vec::new();
    let mut grams = Grams::new();
    let (mut before, mut shown) = (0u64, 0u64);
    for said in hear {
        match said {
            Said::Block(batch) => {
                let mut from = 0;
                for end in &batch.ends {
                    readings::each(&batch.shape, batch.raw.get(from..*end).unwrap_or_default(), &mut |lower| {
                        grams.add(lower);
                        false
                    });
                    from = *end;
                }
                writer.add(&Block { entries: batch.entries, filter: grams.take() })?;
                writer.carry(&batch.carried)?;
                let bytes_done = before + batch.position;
                if bytes_done >= shown + (1 << 20) {
                    shown = bytes_done;
                    progress(Progress { step: "loading", file: &batch.file, bytes_done, bytes_total: total });
                }
            }
            Said::Source(done) => {
                let (stored, entry, kept) = *done;
                writer.hits(i64::try_from(sources.len()).unwrap_or(i64::MAX), kept)?;
                before += stored.source.bytes;
                progress(Progress {
                    step: "loading",
                    file: &stored.source.file,
                    bytes_done: before,
                    bytes_total: total,
                });
                sources.push(stored);
                manifest.push(entry);
            }
        }
    }
    Ok(sources)
}

fn read_all(prepared: Vec<Prepared>, rules: Option<&Arc<RuleSet>>, say: &SyncSender<Said>) -> Result<(), LoadError> {
    let files: Vec<String> = prepared.iter().map(|p| p.found.file.clone()).collect();
    let mut next = 1;
    for (number, (prepared, id)) in prepared.into_iter().zip(walk::ids(&files)).enumerate() {
        let done = Reading::new(prepared, id, number, next, rules)?.run(say)?;
        let Some(done) = done else { return Ok(()) };
        next += i64::try_from(done.0.source.records).unwrap_or(0);
        if say.send(Said::Source(Box::new(done))).is_err() {
            return Ok(());
        }
    }
    Ok(())
}

struct Reading {
    prepared: Prepared,
    source: Source,
    number: i64,
    next: i64,
    shape: Arc<Shape>,
    file: Arc<str>,
    resolver: Resolver,
    profile: Profile,
    entries: Vec<Entry>,
    raw: Vec<u8>,
    ends: Vec<usize>,
    last: (u64, i64),
    earliest: Option<i64>,
    latest: Option<i64>,
    times: BTreeMap<(Option<u8>, TimeBasis), u64>,
    rules: Option<EventPass>,
}

impl Reading {
    fn new(
        prepared: Prepared,
        id: String,
        number: usize,
        next: i64,
        rules: Option<&Arc<RuleSet>>,
    ) -> Result<Self, LoadError> {
        let source = Source {
            id,
            file: prepared.found.file.clone(),
            format: prepared.detected.shape.format,
            domain: prepared.belongs.domain().ok_or(LoadError::Stopped)?,
            domain_reason: prepared.belongs.reason.clone(),
            sensor: prepared.sensor(),
            written_on_subject_host: prepared.belongs.on_host,
            confirmed: false,
            acts: Vec::new(),
            hosts: prepared.hosts.clone(),
            records: 0,
            malformed: 0,
            oversize: 0,
            untimed: 0,
            lines: 0,
            blank_lines: 0,
            format_lines: 0,
            bytes: prepared.body.size,
            first_time: None,
            last_time: None,
            time_field: None,
            time_basis: TimeBasis::Inferred,
            notes: prepared.notes.clone(),
            time_fields: prepared.time_fields.clone(),
            fields: Vec::new(),
            more_fields: false,
            malformed_examples: Vec::new(),
        };
        let rules = rules.and_then(|rules| EventPass::new(rules, &source.sensor, &source.file, source.format));
        Ok(Self {
            rules,
            shape: Arc::new(prepared.detected.shape.clone()),
            file: source.file.as_str().into(),
            resolver: Resolver::new(prepared.plan.clone()),
            profile: Profile::default(),
            number: i64::try_from(number).unwrap_or(i64::MAX),
            next,
            entries: Vec::new(),
            raw: Vec::new(),
            ends: Vec::new(),
            last: (0, 0),
            earliest: None,
            latest: None,
            times: BTreeMap::new(),
            prepared,
            source,
        })
    }

    /// Reads the whole file. None if the writer has ended.
    fn run(mut self, say: &SyncSender<Said>) -> Result<Option<Done>, LoadError> {
        let path = self.prepared.body.path.clone();
        let failed = |source| LoadError::Read { path: path.clone(), source };
        let file = File::open(&path).map_err(failed)?;
        // Data appended during loading is not read.
        let mut hashing = Hashing::new(file.take(self.prepared.body.size));
        let skip = self.prepared.detected.skip;
        io::copy(&mut hashing.by_ref().take(skip), &mut io::sink()).map_err(failed)?;
        let mut cutter = Cutter::new(&mut hashing, &self.prepared.detected.cut, skip, 1);
        let mut bytes = Vec::new();
        while let Some(piece) = cutter.next(&mut bytes).map_err(failed)? {
            self.add(&piece, &bytes);
            if (self.raw.len() >= BLOCK_BYTES || self.entries.len() >= BLOCK_RECORDS)
                && !self.send(say, cutter.position())
            {
                return Ok(None);
            }
        }
        self.rules.iter_mut().for_each(EventPass::end);
        let (position, tally) = (cutter.position(), cutter.tally());
        if position < self.prepared.body.size {
            return Err(LoadError::Changed(self.source.file));
        }
        if !self.send(say, position) {
            return Ok(None);
        }
        let read = hashing.finish().map_err(failed)?;
        let sha256 = self.prepared.body.sha256.take().unwrap_or(read);
        (self.source.lines, self.source.blank_lines, self.source.format_lines) =
            (tally.lines, tally.blank, tally.format);
        Ok(Some(self.finish(sha256)))
    }

    fn add(&mut self, piece: &Piece, bytes: &[u8]) {
        self.source.records += 1;
        let parsed = fields::parse(&self.shape, bytes);
        let mut fields = parsed.fields;
        self.profile.add(self.source.records, &fields);
        let (time, ingested) = self.resolver.resolve(&mut fields);
        if let Some(rules) = &mut self.rules {
            rules.add(&fields, bytes, (self.number, self.next), time.map(|t| t.ns));
        }
        let malformed = piece.broken || (parsed.malformed && !piece.oversize);
        if malformed {
            self.source.malformed += 1;
            if self.source.malformed_examples.len() < EXAMPLES {
                self.source.malformed_examples.push(Place { file: self.source.file.clone(), line: piece.line });
            }
        }
        self.source.oversize += u64::from(piece.oversize);
        match time {
            Some(time) => {
                *self.times.entry((time.field, time.basis)).or_default() += 1;
                self.earliest = Some(self.earliest.map_or(time.ns, |t| t.min(time.ns)));
                self.latest = Some(self.latest.map_or(time.ns, |t| t.max(time.ns)));
            }
            None => self.source.untimed += 1,
        }
        self.last = if self.last.0 == piece.line { (piece.line, self.last.1 + 1) } else { (piece.line, 1) };
        let number = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        self.entries.push(Entry {
            id: self.next,
            source: self.number,
            line: number(piece.line),
            nth: self.last.1,
            offset: number(piece.offset),
            length: number(piece.length),
            time: time.map(|t| t.ns),
            basis: time.map_or(TimeBasis::Inferred, |t| t.basis),
            precision: time.map_or(Precision::Second, |t| t.precision),
            field: time.and_then(|t| t.field).map(i64::from),
            ingested,
            malformed,
            oversize: piece.oversize,
        });
        self.next += 1;
        self.raw.extend_from_slice(bytes);
        self.ends.push(self.raw.len());
    }

    /// Sends the collected block. False if the writer has ended.
    fn send(&mut self, say: &SyncSender<Said>, position: u64) -> bool {
        let batch = Batch {
            entries: std::mem::take(&mut self.entries),
            raw: std::mem::replace(&mut self.raw, Vec::with_capacity(BLOCK_BYTES * 2)),
            ends: std::mem::take(&mut self.ends),
            shape: Arc::clone(&self.shape),
            file: Arc::clone(&self.file),
            position,
            carried: self.rules.as_mut().map(EventPass::carried).unwrap_or_default(),
        };
        batch.entries.is_empty() || say.send(Said::Block(batch)).is_ok()
    }

    fn finish(self, sha256: String) -> Done {
        let mut source = self.source;
        let stamp = |ns: i64| Timestamp::from_nanosecond(ns.into()).ok();
        source.first_time = self.earliest.and_then(stamp);
        source.last_time = self.latest.and_then(stamp);
        let names = self.resolver.names().to_vec();
        // Ignore lines that take the time of the line before.
        let most = self.times.iter().max_by_key(|((field, _), n)| (field.is_some(), **n));
        if let Some(((field, basis), _)) = most {
            source.time_basis = *basis;
            source.time_field = field.and_then(|f| names.get(usize::from(f)).cloned());
        }
        if self.resolver.disbelieved > 0 {
            source.notes.push(format!(
                "in {} records {} differs by minutes or more from the clock that the other records agree on: the clock is used there",
                self.resolver.disbelieved,
                names.first().map_or("the UTC time", String::as_str)
            ));
        }
        let times: Vec<String> = source
            .time_fields
            .iter()
            .filter(|f| f.role != TimeRole::Other || !f.note.is_empty())
            .map(|f| f.name.clone())
            .collect();
        (source.fields, source.more_fields) = self.profile.finish(&times);
        let found = self.prepared.found;
        let cache =
            self.prepared.body.cached.then(|| {
                self.prepared.body.path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default()
            });
        let outer = found.outer.clone();
        let Found { outer: file, size, mtime, inode, .. } = found;
        let manifest = Manifest { file, size, mtime, sha256, inode };
        let kept = self.rules.map(EventPass::finish).unwrap_or_default();
        (Stored { source, shape: Shape::clone(&self.shape), names, cache, outer }, manifest, kept)
    }
}
