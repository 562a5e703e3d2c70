//! Parses the records of a block and evaluates the rules. Blocks do not depend on each other.

use std::collections::HashSet;
use std::sync::mpsc::{Receiver, SyncSender};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use crate::Format;
use crate::fields::{self, Shape};
use crate::prepare::Prepared;
use crate::profile::{Counted, Tally};
use crate::readings::Grams;
use crate::rules::RuleSet;
use crate::rules::pass::{BlockPass, Met};
use crate::split::Piece;
use crate::time::plan::{Stated, TimePlan};

/// How the blocks of a source are read.
pub(super) struct BlockPlan {
    pub(super) shape: Shape,
    times: TimePlan,
    sensor: String,
    file: String,
    pub(super) rules: Option<Arc<RuleSet>>,
    /// Fields whose values are not counted any more.
    pub(super) unique: RwLock<HashSet<String>>,
}

impl BlockPlan {
    pub(super) fn new(prepared: &Prepared, rules: Option<&Arc<RuleSet>>) -> Self {
        Self {
            shape: prepared.detected.shape.clone(),
            times: prepared.plan.clone(),
            sensor: prepared.sensor(),
            file: prepared.found.file.clone(),
            rules: rules.cloned(),
            unique: RwLock::default(),
        }
    }

    fn format(&self) -> Format {
        self.shape.format
    }
}

/// A block to read.
pub(super) struct Job {
    pub(super) plan: Arc<BlockPlan>,
    /// Each record with the end of its bytes in `raw`.
    pub(super) pieces: Vec<(Piece, usize)>,
    pub(super) raw: Vec<u8>,
    pub(super) answer: SyncSender<Block>,
}

/// A block that was read.
pub(super) struct Block {
    pub(super) records: Vec<BlockRecord>,
    pub(super) filter: Vec<u8>,
    pub(super) fields: Vec<Counted>,
    pub(super) met: Vec<Met>,
}

#[derive(Clone, Copy)]
pub(super) struct BlockRecord {
    pub(super) piece: Piece,
    pub(super) malformed: bool,
    pub(super) time: Stated,
}

impl Job {
    pub(super) fn new(plan: &Arc<BlockPlan>) -> Self {
        // It is replaced when the block is complete.
        let (answer, _) = std::sync::mpsc::sync_channel(1);
        Self { plan: Arc::clone(plan), pieces: Vec::new(), raw: Vec::new(), answer }
    }
}

/// Reads blocks until there are no more.
pub(super) fn work(jobs: &Mutex<Receiver<Job>>) {
    let mut worker: Option<Worker> = None;
    loop {
        let job = jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(job) = job else { return };
        if worker.as_ref().is_none_or(|worker| !Arc::ptr_eq(&worker.plan, &job.plan)) {
            worker = Some(Worker::new(&job.plan));
        }
        let Some(worker) = &mut worker else { return };
        let block = worker.read(&job);
        // The writer may have ended.
        let _ = job.answer.send(block);
    }
}

/// Reads blocks of one source.
struct Worker {
    plan: Arc<BlockPlan>,
    rules: Option<BlockPass>,
    tally: Tally,
    grams: Grams,
}

impl Worker {
    fn new(plan: &Arc<BlockPlan>) -> Self {
        let rules = plan.rules.as_ref();
        Self {
            rules: rules.and_then(|rules| BlockPass::new(rules, &plan.sensor, &plan.file, plan.format())),
            plan: Arc::clone(plan),
            tally: Tally::default(),
            grams: Grams::new(),
        }
    }

    fn read(&mut self, job: &Job) -> Block {
        let mut records = Vec::with_capacity(job.pieces.len());
        let mut from = 0;
        for (nth, (piece, end)) in job.pieces.iter().enumerate() {
            let bytes = job.raw.get(from..*end).unwrap_or_default();
            from = *end;
            let mut parsed = fields::parse(&self.plan.shape, bytes);
            self.tally.add(&parsed.fields);
            let time = self.plan.times.state(&mut parsed.fields);
            if let Some(rules) = &mut self.rules {
                rules.add(&parsed.fields, bytes, nth);
            }
            let malformed = piece.broken || (parsed.malformed && !piece.oversize);
            records.push(BlockRecord { piece: *piece, malformed, time });
        }
        self.grams.add_all(&self.plan.shape, &job.raw, job.pieces.iter().map(|(_, end)| *end));
        let unique = self.plan.unique.read().unwrap_or_else(PoisonError::into_inner);
        let fields = self.tally.take(&unique);
        drop(unique);
        let met = self.rules.as_mut().map(BlockPass::take).unwrap_or_default();
        Block { records, filter: self.grams.take(), fields, met }
    }
}
