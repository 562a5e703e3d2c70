//! Records all requests, their outcomes and counts.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use casebook_protocol::{TaskKind, Timestamp};
use serde::Serialize;

use crate::model::cache::{Counted, PromptCache};
use crate::model::prompt;
use crate::model::request::{Request, hash};
use crate::model::wire::Usage;

#[derive(Debug, Clone)]
pub struct Captured {
    /// From 1, in order of arrival.
    pub number: u64,
    pub kind: Option<TaskKind>,
    /// The task's id, if a tool result contains it.
    pub task: Option<String>,
    /// Identifies the conversation, and counts the model's replies in it.
    pub place: (u64, usize),
    /// How often this request has arrived, from 1.
    pub attempt: u32,
    pub request: Arc<Request>,
    pub prompt: Counted,
}

/// When a request arrived and was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub number: u64,
    /// The same for all requests with this body.
    pub content: u64,
    pub key: String,
    pub kind: Option<TaskKind>,
    /// When the whole request had arrived.
    pub begun: Timestamp,
    /// When the reply was sent; `None` if the request failed or the client left.
    pub answered: Option<Timestamp>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    pub requests: u64,
    /// Refused as invalid or not allowed.
    pub rejected: u64,
    /// Answered with a reply of the model.
    pub answered: u64,
    /// Answered although the same request had been answered before.
    pub answered_again: u64,
    pub by_kind: BTreeMap<String, u64>,
    pub active: u64,
    pub most_at_once: u64,
    pub bytes: u64,
    pub prompt: Counted,
    pub output: u64,
}

#[derive(Debug, Default)]
struct Inner {
    captured: Vec<Captured>,
    ledger: Vec<Entry>,
    rejected: Vec<String>,
    counts: Counts,
    cache: PromptCache,
    /// Arrivals and answers of each request, by content.
    seen: HashMap<u64, (u32, u32)>,
}

#[derive(Debug)]
pub struct Log {
    inner: Mutex<Inner>,
    keep: bool,
    folder: Option<PathBuf>,
}

impl Log {
    /// Keeps requests in memory if `keep`, and writes them into `folder` if it is given.
    pub fn new(keep: bool, folder: Option<PathBuf>) -> Self {
        Self { inner: Mutex::default(), keep, folder }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a request. Dropping the guard ends it, also if the client left.
    pub fn begin(self: &Arc<Self>) -> UnderWay {
        let mut inner = self.lock();
        let counts = &mut inner.counts;
        counts.requests += 1;
        counts.active += 1;
        counts.most_at_once = counts.most_at_once.max(counts.active);
        UnderWay(Arc::clone(self))
    }

    pub fn reject(&self, message: &str) {
        let mut inner = self.lock();
        inner.counts.rejected += 1;
        if self.keep {
            inner.rejected.push(message.to_owned());
        }
    }

    /// Counts and stores a valid request.
    pub fn take(&self, request: Arc<Request>) -> Captured {
        let kind = prompt::kind(&request.system);
        let owner = hash(&(&request.key, &request.model));
        let content = content(&request);
        let mut inner = self.lock();
        let prompt = inner.cache.count(owner, &request.prefix);
        let times = inner.seen.entry(content).or_default();
        times.0 += 1;
        let attempt = times.0;
        let counts = &mut inner.counts;
        *counts.by_kind.entry(kind.map_or("?", TaskKind::name).to_owned()).or_default() += 1;
        counts.bytes += request.bytes.len() as u64;
        counts.prompt.input += prompt.input;
        counts.prompt.read += prompt.read;
        counts.prompt.written += prompt.written;
        let number = counts.by_kind.values().sum();
        let task =
            if self.keep { prompt::all_shown(&request).first().map(|shown| shown.task().to_owned()) } else { None };
        let captured = Captured { number, kind, task, place: request.place(), attempt, request, prompt };
        if self.keep {
            inner.ledger.push(Entry {
                number,
                content: hash(&(captured.request.provider, &captured.request.bytes)),
                key: captured.request.key.clone(),
                kind,
                begun: Timestamp::now(),
                answered: None,
            });
            inner.captured.push(captured.clone());
        }
        captured
    }

    pub fn answered(&self, captured: &Captured, usage: Usage) {
        let mut inner = self.lock();
        inner.counts.answered += 1;
        inner.counts.output += usage.output;
        let times = inner.seen.entry(content(&captured.request)).or_default();
        times.1 += 1;
        let again = times.1 > 1;
        inner.counts.answered_again += u64::from(again);
        if let Some(entry) = inner.ledger.iter_mut().rev().find(|entry| entry.number == captured.number) {
            entry.answered = Some(Timestamp::now());
        }
    }

    /// Writes a request body and its reply into the folder, if there is one. Keys are in headers and are not
    /// written.
    pub fn record(&self, captured: &Captured, sent: &str) -> std::io::Result<()> {
        let Some(folder) = &self.folder else { return Ok(()) };
        let name = format!("{:06}-{}", captured.number, captured.kind.map_or("unknown", TaskKind::name));
        std::fs::write(folder.join(format!("{name}.request.json")), &captured.request.bytes)?;
        std::fs::write(folder.join(format!("{name}.reply")), sent)
    }

    pub fn captured(&self) -> Vec<Captured> {
        self.lock().captured.clone()
    }

    pub fn ledger(&self) -> Vec<Entry> {
        self.lock().ledger.clone()
    }

    /// The `nth` answered request, from 1.
    pub fn answered_as(&self, nth: usize) -> Option<Entry> {
        let inner = self.lock();
        let mut answered: Vec<&Entry> = inner.ledger.iter().filter(|entry| entry.answered.is_some()).collect();
        answered.sort_by_key(|entry| entry.answered);
        answered.get(nth.checked_sub(1)?).map(|entry| (*entry).clone())
    }

    pub fn rejected(&self) -> Vec<String> {
        self.lock().rejected.clone()
    }

    pub fn counts(&self) -> Counts {
        self.lock().counts.clone()
    }
}

fn content(request: &Request) -> u64 {
    hash(&(request.provider, &request.key, &request.bytes))
}

#[derive(Debug)]
pub struct UnderWay(Arc<Log>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        let mut inner = self.0.lock();
        inner.counts.active = inner.counts.active.saturating_sub(1);
    }
}
