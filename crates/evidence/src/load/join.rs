//! Joins the blocks of a source in order.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};

use casebook_protocol::{Precision, TimeBasis, Timestamp};

use super::block::{Block, BlockPlan, BlockRecord};
use crate::coverage;
use crate::index::{self, Entry, Manifest, Stored, Writer};
use crate::meet::Connections;
use crate::prepare::Prepared;
use crate::profile::Profile;
use crate::rules::events::EventPass;
use crate::rules::hits::Kept;
use crate::rules::pass::SourceHits;
use crate::source::{Place, Source};
use crate::split::Tally;
use crate::time::plan::Resolver;
use crate::walk::Found;
use crate::{LoadError, TimeRole};

const EXAMPLES: usize = 5;

/// A source that was read.
pub(super) struct Read {
    pub(super) stored: Stored,
    pub(super) manifest: Manifest,
    /// The hits of the rules.
    pub(super) kept: BTreeMap<usize, Kept>,
    pub(super) connections: Connections,
}

pub(super) struct Joining {
    prepared: Prepared,
    plan: Arc<BlockPlan>,
    source: Source,
    number: i64,
    resolver: Resolver,
    profile: Profile,
    last: (u64, i64),
    earliest: Option<i64>,
    latest: Option<i64>,
    times: BTreeMap<(Option<u8>, TimeBasis), u64>,
    hits: SourceHits,
    events: Option<EventPass>,
    connections: Connections,
    coverage: coverage::Tally,
}

impl Joining {
    pub(super) fn new(prepared: Prepared, id: String, number: usize, plan: Arc<BlockPlan>) -> Result<Self, LoadError> {
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
            coverage: Vec::new(),
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
        Ok(Self {
            resolver: Resolver::new(&prepared.plan),
            profile: Profile::default(),
            number: i64::try_from(number).unwrap_or(i64::MAX),
            last: (0, 0),
            earliest: None,
            latest: None,
            times: BTreeMap::new(),
            hits: SourceHits::default(),
            events: plan.events(),
            connections: Connections::default(),
            coverage: coverage::Tally::default(),
            plan,
            prepared,
            source,
        })
    }

    pub(super) fn file(&self) -> &str {
        &self.source.file
    }

    pub(super) fn bytes(&self) -> u64 {
        self.source.bytes
    }

    /// Adds the next block. `next` is the number of its first record.
    pub(super) fn add(&mut self, block: Block, next: &mut i64, writer: &Writer) -> Result<(), LoadError> {
        let mut entries = Vec::with_capacity(block.records.len());
        for record in &block.records {
            let entry = self.entry(record, *next);
            if let Some((key, at)) = record.connection.zip(entry.time) {
                self.connections.add(key, at);
            }
            entries.push(entry);
            *next += 1;
        }
        let counted = block.records.iter().zip(&entries).map(|(record, entry)| (record.pair, entry.time));
        self.coverage.add(block.thread, &block.pairs, counted);
        if let Some(rules) = &self.plan.rules {
            for met in block.met {
                let Some(entry) = entries.get(met.nth) else { continue };
                self.hits.add(rules, met, (self.number, entry.id), entry.time);
            }
        }
        if let Some(events) = &mut self.events {
            for ((fields, line), entry) in block.lines.iter().zip(&entries) {
                events.add(fields, line, ((self.number, entry.id), entry.time), &mut self.hits);
            }
        }
        let changed = self.profile.add(block.fields);
        if !changed.is_empty() {
            self.plan.counting.write().unwrap_or_else(PoisonError::into_inner).extend(changed);
        }
        writer.add(&index::Block { entries, filter: block.filter })?;
        writer.carry(&self.hits.carried())
    }

    /// Evaluates the last events. There are no more blocks.
    pub(super) fn end(&mut self, writer: &Writer) -> Result<(), LoadError> {
        let Some(events) = &mut self.events else { return Ok(()) };
        events.end(&mut self.hits);
        writer.carry(&self.hits.carried())
    }

    fn entry(&mut self, record: &BlockRecord, id: i64) -> Entry {
        let BlockRecord { piece, malformed, time, .. } = *record;
        let (time, ingested) = self.resolver.resolve(time);
        self.source.records += 1;
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
        Entry {
            id,
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
        }
    }

    /// `sha256` is that of the text.
    pub(super) fn finish(mut self, tally: Tally, sha256: String) -> Read {
        let sha256 = self.prepared.body.sha256.take().unwrap_or(sha256);
        let mut source = self.source;
        (source.lines, source.blank_lines, source.format_lines) = (tally.lines, tally.blank, tally.format);
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
        source.coverage = self.coverage.finish();
        let tallies = std::mem::take(&mut *self.plan.tallies.lock().unwrap_or_else(PoisonError::into_inner));
        tallies.into_values().for_each(|tally| drop(self.profile.add(tally.rest())));
        (source.fields, source.more_fields) = self.profile.finish(&times);
        let found = self.prepared.found;
        let cache =
            self.prepared.body.cached.then(|| {
                self.prepared.body.path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default()
            });
        let outer = found.outer.clone();
        let Found { outer: file, size, mtime, inode, .. } = found;
        let manifest = Manifest { file, size, mtime, sha256, inode };
        let shape = self.plan.shape.clone();
        let stored = Stored { source, shape, names, cache, outer };
        Read { stored, manifest, kept: self.hits.finish(), connections: self.connections }
    }
}
