//! Parses the records of a block and evaluates the rules. Blocks do not depend on each other.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::sync::mpsc::{Receiver, SyncSender};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use crate::Format;
use crate::coverage::{CoverageFields, Pairs};
use crate::fields::{self, Parsed, Shape};
use crate::meet::Keys;
use crate::prepare::Prepared;
use crate::profile::{Counted, Counting, Tally};
use crate::readings::Grams;
use crate::rules::RuleSet;
use crate::rules::events::EventPass;
use crate::rules::pass::{BlockPass, Met};
use crate::split::Piece;
use crate::time::plan::{Before, Stated, TimePlan};

/// How the blocks of a source are read.
pub(super) struct BlockPlan {
    pub(super) shape: Shape,
    times: TimePlan,
    sensor: String,
    pub(super) file: String,
    coverage: CoverageFields,
    pub(super) rules: Option<Arc<RuleSet>>,
    /// How the values of fields are counted, if not all are.
    pub(super) counting: RwLock<HashMap<String, Counting>>,
    /// What each thread counts.
    pub(super) tallies: Mutex<BTreeMap<usize, Tally>>,
}

impl BlockPlan {
    pub(super) fn new(prepared: &Prepared, rules: Option<&Arc<RuleSet>>) -> Self {
        Self {
            shape: prepared.detected.shape.clone(),
            times: prepared.plan.clone(),
            sensor: prepared.sensor(),
            file: prepared.found.file.clone(),
            coverage: CoverageFields { host: prepared.plan.host.clone(), kind: prepared.kind.clone() },
            rules: rules.cloned(),
            counting: RwLock::default(),
            tallies: Mutex::default(),
        }
    }

    fn format(&self) -> Format {
        self.shape.format
    }

    /// Evaluates rules over the events of a source. The lines of one event may be in two blocks, so such a source is
    /// evaluated when its blocks are joined.
    pub(super) fn events(&self) -> Option<EventPass> {
        let rules = self.rules.as_ref().filter(|_| self.format() == Format::Auditd)?;
        EventPass::new(rules, &self.sensor, &self.file, self.format())
    }
}

/// Bytes that a block has room for at first: what ends a block, and a line.
const ROOM: usize = 68 << 10;

/// A block to read.
pub(super) struct Job {
    pub(super) plan: Arc<BlockPlan>,
    /// Each record with the end of its bytes in `raw`.
    pub(super) pieces: Vec<(Piece, usize)>,
    pub(super) raw: Vec<u8>,
    pub(super) answer: SyncSender<Block>,
}

/// A line with its fields.
pub(super) type Line = (Vec<(String, String)>, Vec<u8>);

/// A block that was read.
pub(super) struct Block {
    pub(super) records: Vec<BlockRecord>,
    pub(super) filter: Vec<u8>,
    pub(super) fields: Vec<Counted>,
    pub(super) met: Vec<Met>,
    /// The lines of an event, which are evaluated together; none of other sources.
    pub(super) lines: Vec<Line>,
    /// The thread that read it, and the pairs of host and kind that are new to it.
    pub(super) thread: usize,
    pub(super) pairs: Vec<(String, Option<String>)>,
}

#[derive(Clone, Copy)]
pub(super) struct BlockRecord {
    pub(super) piece: Piece,
    pub(super) malformed: bool,
    pub(super) time: Stated,
    /// The connection that it is of.
    pub(super) connection: Option<u64>,
    /// The number of its host and kind.
    pub(super) pair: usize,
}

impl Job {
    pub(super) fn new(plan: &Arc<BlockPlan>) -> Self {
        // It is replaced when the block is complete.
        let (answer, _) = std::sync::mpsc::sync_channel(1);
        Self { plan: Arc::clone(plan), pieces: Vec::new(), raw: Vec::with_capacity(ROOM), answer }
    }
}

/// Reads blocks until there are no more. `thread` is the number of the calling thread.
pub(super) fn work(jobs: &Mutex<Receiver<Job>>, thread: usize) {
    let mut worker: Option<Worker> = None;
    loop {
        let job = jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(job) = job else { return };
        if worker.as_ref().is_none_or(|worker| !Arc::ptr_eq(&worker.plan, &job.plan)) {
            worker = Some(Worker::new(&job.plan, thread));
        }
        let Some(worker) = &mut worker else { return };
        let tallies = || job.plan.tallies.lock().unwrap_or_else(PoisonError::into_inner);
        let mut tally = tallies().remove(&thread).unwrap_or_default();
        let block = worker.read(&job, &mut tally);
        tallies().insert(thread, tally);
        // The writer may have ended.
        let _ = job.answer.send(block);
    }
}

/// Reads blocks of one source.
struct Worker {
    plan: Arc<BlockPlan>,
    rules: Option<BlockPass>,
    grams: Grams,
    keys: Keys,
    together: bool,
    /// The record before, whose memory the next one uses.
    last: Parsed,
    time: Before,
    thread: usize,
    pairs: Pairs,
}

impl Worker {
    fn new(plan: &Arc<BlockPlan>, thread: usize) -> Self {
        let together = plan.events().is_some();
        let rules = plan.rules.as_ref().filter(|_| !together);
        Self {
            rules: rules.and_then(|rules| BlockPass::new(rules, &plan.sensor, &plan.file, plan.format())),
            plan: Arc::clone(plan),
            grams: Grams::new(),
            keys: Keys::default(),
            together,
            last: Parsed::default(),
            time: Before::default(),
            thread,
            pairs: Pairs::default(),
        }
    }

    fn read(&mut self, job: &Job, tally: &mut Tally) -> Block {
        let mut records = Vec::with_capacity(job.pieces.len());
        let mut lines = Vec::new();
        let (text, mut from) = (std::str::from_utf8(&job.raw).ok(), 0);
        for (nth, (piece, end)) in job.pieces.iter().enumerate() {
            let bytes = job.raw.get(from..*end).unwrap_or_default();
            let own = text.and_then(|text| text.get(from..*end)).map_or_else(|| fields::text_of(bytes), Cow::Borrowed);
            from = *end;
            let mut parsed = fields::parse_again(&self.plan.shape, &own, std::mem::take(&mut self.last));
            tally.add(&parsed.fields);
            let time = self.plan.times.state(&mut parsed.fields, &mut self.time);
            if let Some(rules) = &mut self.rules {
                rules.add(&parsed.fields, bytes, nth);
            }
            let malformed = piece.broken || (parsed.malformed && !piece.oversize);
            let connection = self.keys.of(&parsed.fields);
            let pair = self.pairs.number(self.plan.coverage.of(&parsed.fields));
            records.push(BlockRecord { piece: *piece, malformed, time, connection, pair });
            if self.together {
                lines.push((std::mem::take(&mut parsed.fields), bytes.to_vec()));
            }
            self.last = parsed;
        }
        self.grams.add_all(&self.plan.shape, &job.raw, job.pieces.iter().map(|(_, end)| *end));
        let fields = tally.take(&self.plan.counting.read().unwrap_or_else(PoisonError::into_inner));
        let met = self.rules.as_mut().map(BlockPass::take).unwrap_or_default();
        let pairs = self.pairs.take();
        Block { records, filter: self.grams.take(), fields, met, lines, thread: self.thread, pairs }
    }
}
