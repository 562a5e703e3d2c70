//! Tests of a worker on a bus that fails.

use casebook_runtime::process::Performer;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use casebook_agent::mind::{Analyst, Asking, CallRequest, Done, Mind, Past, Thought, Turn};
use casebook_agent::model::{Answered, Ask, AskError, Choice, Model, Reply, Stop};
use casebook_agent::tools::{NoTools, Tools};
use casebook_agent::worker::{Fixed, Worker};
use casebook_protocol::DeadLetter;
use casebook_protocol::Tokens;
use casebook_protocol::subject::{self, Queue};
use casebook_protocol::{
    Answer, ArtifactId, InvestigationId, ModelCallId, Player, Purpose, Recorded, Role, Task, Timestamp, Toolset, Usage,
};
use casebook_runtime::Env;
use casebook_runtime::bus::{Bus, BusError, Delivery};
use casebook_runtime::clock::{Clock, TickingClock};
use casebook_runtime::store::{Once, Store, StoreError};
use casebook_runtime::wire;

use crate::tests::away::Away;
use crate::memory::MemoryStore;
use crate::tests::script::{Driver, SEARCH, case, member, perform, player, search, think};

/// The search of the script, and how often it was made.
#[derive(Default)]
struct Search(AtomicU32);

#[async_trait]
impl Tools for Search {
    fn toolset(&self) -> Toolset {
        member("network").toolset
    }

    async fn call(&self, _: &str, arguments: &str) -> Result<String, String> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Ok(search(arguments))
    }
}

fn worker(bus: &Arc<Away>, tools: Arc<dyn Tools>) -> Worker {
    let env =
        Env { bus: bus.clone(), store: Arc::new(MemoryStore::default()), clock: Arc::new(TickingClock::default()) };
    Worker::new(env, Arc::new(Analyst(think)), Arc::new(Fixed(tools)))
}

#[tokio::test]
async fn a_job_is_not_done_before_its_dead_letter_is_written() {
    let critic = Queue::new(Role::Critic, None);
    let bus = Arc::new(Away::new("casebook.dead.", 1));
    let mut letters = bus.subscribe("casebook.dead.>").await.unwrap();
    let jobs = subject::tasks(Role::Critic, None);
    bus.enqueue(&jobs, "x", b"no task".to_vec()).await.unwrap();
    let worker = worker(&bus, Arc::new(NoTools));
    worker.handle(&critic, bus.pull(&jobs).await.unwrap()).await;
    assert_eq!((bus.left(), bus.told()), (0, 0), "the letter was tried and not written");
    let again = tokio::time::timeout(Duration::from_secs(60), bus.pull(&jobs)).await.expect("the job comes again");
    worker.handle(&critic, again.unwrap()).await;
    let letter: DeadLetter = serde_json::from_slice(&letters.next().await.unwrap().bytes).unwrap();
    assert_eq!((letter.attempts, letter.message), (2, Some(ArtifactId::of(b"no task"))));
    // A job that goes back is still held until then, and the same one is not put in beside it.
    bus.enqueue(&jobs, "x", b"new".to_vec()).await.unwrap();
    let new = bus.try_pull(&jobs).await.unwrap().expect("with its letter written, the old one is done");
    assert_eq!((new.bytes(), new.attempt()), (&b"new"[..], 1));
}

/// A first delivery, as far as its queue knows.
struct First {
    bytes: Vec<u8>,
    shared: bool,
}

#[async_trait]
impl Delivery for First {
    fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn attempt(&self) -> u32 {
        1
    }

    fn shared(&self) -> bool {
        self.shared
    }

    async fn done(self: Box<Self>) -> Result<(), BusError> {
        Ok(())
    }

    async fn back(self: Box<Self>, _: Duration) -> Result<(), BusError> {
        Ok(())
    }
}

#[tokio::test]
async fn where_another_process_may_have_the_job_too_the_first_delivery_looks_as_well() {
    let fresh = investigate();
    let queue = Queue::new(Role::Expert, fresh.domain.as_ref());
    // One that takes itself for the only one makes the first call again, and looks from then on.
    for (shared, runs) in [(true, 2), (false, 3)] {
        let tools = Arc::new(Search::default());
        let worker = worker(&Arc::new(Away::new("", 0)), tools.clone());
        // Another has made the calls, and not recorded its outcome yet.
        worker.perform(&Arc::new(fresh.clone())).await.unwrap();
        let bytes = wire::encode(&fresh).unwrap();
        worker.handle(&queue, Box::new(First { bytes, shared })).await;
        assert_eq!(tools.0.load(Ordering::SeqCst), runs, "shared: {shared}");
    }
}

/// A clock that can be set forward.
#[derive(Default)]
struct Set(TickingClock, AtomicI64);

impl Clock for Set {
    fn now(&self) -> Timestamp {
        Timestamp::from_millisecond(self.0.now().as_millisecond() + self.1.load(Ordering::SeqCst)).unwrap()
    }
}

/// When another worker performs the whole task: about the first record of a call, which then takes a minute if
/// it is after.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Other {
    Never,
    Before,
    After,
}

/// A store that counts looks for calls, and has another worker come in at its first record.
struct Slow {
    inner: Arc<MemoryStore>,
    clock: Arc<Set>,
    looks: AtomicU32,
    other: Other,
    meanwhile: Mutex<Option<(Worker, Arc<Task>)>>,
}

#[async_trait]
impl Store for Slow {
    async fn append(&self, of: &InvestigationId, after: u64, entries: &[Recorded]) -> Result<(), StoreError> {
        self.inner.append(of, after, entries).await
    }

    async fn log(&self, of: &InvestigationId, from: u64) -> Result<Vec<Recorded>, StoreError> {
        self.inner.log(of, from).await
    }

    async fn investigations(&self) -> Result<Vec<InvestigationId>, StoreError> {
        self.inner.investigations().await
    }

    async fn record_once(&self, of: &InvestigationId, key: &str, bytes: &[u8]) -> Result<Once, StoreError> {
        let meanwhile = self.meanwhile.lock().unwrap().take();
        let (before, after) = if self.other == Other::Before { (meanwhile, None) } else { (None, meanwhile) };
        if let Some((other, task)) = before {
            other.perform(&task).await.unwrap();
        }
        let once = self.inner.record_once(of, key, bytes).await?;
        if let Some((other, task)) = after {
            other.perform(&task).await.unwrap();
            self.clock.1.fetch_add(60_000, Ordering::SeqCst);
        }
        Ok(once)
    }

    async fn recorded(&self, of: &InvestigationId, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        self.looks.fetch_add(u32::from(!key.starts_with("outcome/")), Ordering::SeqCst);
        self.inner.recorded(of, key).await
    }

    async fn put(&self, bytes: &[u8]) -> Result<ArtifactId, StoreError> {
        self.inner.put(bytes).await
    }

    async fn get(&self, id: &ArtifactId) -> Result<Option<Vec<u8>>, StoreError> {
        self.inner.get(id).await
    }
}

/// Performs a task that comes again, and how often its worker looked for a call.
async fn looks(mind: Arc<dyn Mind>, tools: Arc<dyn Tools>, other: Other, clock: Arc<Set>) -> u32 {
    let task = Arc::new(Task { again: true, ..investigate() });
    let slow = Slow { inner: Arc::default(), clock, looks: AtomicU32::default(), other, meanwhile: Mutex::default() };
    let slow = Arc::new(slow);
    let works = |store: Arc<dyn Store>| {
        let env = Env { bus: Arc::new(Away::new("", 0)), store, clock: slow.clock.clone() };
        Worker::new(env, Arc::clone(&mind), Arc::new(Fixed(Arc::clone(&tools))))
    };
    let second = works(slow.inner.clone());
    *slow.meanwhile.lock().unwrap() = (other != Other::Never).then(|| (second, Arc::clone(&task)));
    let outcome = works(slow.clone()).perform(&task).await.unwrap();
    assert!(outcome.result.is_ok(), "{:?}", outcome.result);
    slow.looks.load(Ordering::SeqCst)
}

#[tokio::test]
async fn what_was_just_recorded_first_is_a_look_and_what_another_did_is_found() {
    // The other makes the second call, and where it comes first the first one, too.
    for (other, looked, ran) in [(Other::Never, 1, 2), (Other::After, 2, 2), (Other::Before, 2, 3)] {
        let tools = Arc::new(Search::default());
        assert_eq!(looks(Arc::new(Analyst(think)), tools.clone(), other, Arc::default()).await, looked, "{other:?}");
        assert_eq!(tools.0.load(Ordering::SeqCst), ran, "{other:?}");
        let mind = Arc::new(Asks::default());
        assert_eq!(looks(mind.clone(), Arc::new(NoTools), other, Arc::default()).await, looked, "{other:?}");
        assert_eq!(mind.asked.load(Ordering::SeqCst), ran, "{other:?}");
    }
}

#[tokio::test]
async fn a_tool_whose_second_call_may_differ_is_looked_for_each_time() {
    for (repeatable, looked) in [(true, 1), (false, 2)] {
        let tools = Arc::new(Acts { repeatable, search: Search::default() });
        let found = looks(Arc::new(Analyst(twice)), tools, Other::Never, Arc::default()).await;
        assert_eq!(found, looked, "repeatable: {repeatable}");
    }
}

#[tokio::test]
async fn who_would_hurry_looks_first() {
    let clock = Arc::new(Set::default());
    let most = i64::try_from(investigate().allowance.seconds).unwrap() * 1000;
    let mind = Arc::new(Asks { takes: most * 2 / 5, clock: Arc::clone(&clock), ..Asks::default() });
    // Each reply takes two fifths of the time: before the first nothing is known, before the second enough is.
    assert_eq!(looks(mind.clone(), Arc::new(Search::default()), Other::Never, Arc::clone(&clock)).await, 1);
    // Four fifths: it looks before it hurries, and before it asks in a hurry.
    let mind = Asks { takes: most * 4 / 5, clock: Arc::clone(&clock), ..Asks::default() };
    assert_eq!(looks(Arc::new(mind), Arc::new(Search::default()), Other::Never, clock).await, 3);
}

/// Calls twice, one after the other, and finds nothing.
fn twice(_: &Task, done: &[Done], _: bool) -> Thought {
    let arguments = format!("{{\"domain\":\"network\",\"round\":{}}}", done.len());
    match done.len() {
        0 | 1 => Thought::Call(vec![CallRequest { tool: SEARCH.into(), arguments }]),
        _ => Thought::Answer(Box::new(Answer::Investigate(Vec::new()))),
    }
}

/// The search of the script as a tool that may act.
struct Acts {
    repeatable: bool,
    search: Search,
}

#[async_trait]
impl Tools for Acts {
    fn toolset(&self) -> Toolset {
        let mut toolset = self.search.toolset();
        toolset.tools.iter_mut().for_each(|tool| tool.repeatable = self.repeatable);
        toolset
    }

    async fn call(&self, tool: &str, arguments: &str) -> Result<String, String> {
        self.search.call(tool, arguments).await
    }
}

/// A mind that asks a model twice and finds nothing.
#[derive(Default)]
struct Asks {
    /// How often the model was asked.
    asked: AtomicU32,
    /// Milliseconds by which a reply sets the clock forward.
    takes: i64,
    clock: Arc<Set>,
}

#[async_trait]
impl Mind for Asks {
    fn player(&self, _: &Task, _: &Past) -> Player {
        player()
    }

    async fn next(&self, task: &Arc<Task>, past: &Past, turn: &Turn) -> Thought {
        if past.asked.len() == 2 {
            return Thought::Answer(Box::new(Answer::Investigate(Vec::new())));
        }
        let ask = Ask {
            id: ModelCallId::of(&task.id, 1 + u32::try_from(past.asked.len()).unwrap()),
            model: "m".into(),
            prompt: "p 1".into(),
            purpose: if turn.last { Purpose::Last } else { Purpose::Turn },
            system: Vec::new(),
            messages: Vec::new(),
            tools: Vec::new(),
            choice: Choice::Free,
            format: None,
            max_output: 10,
        };
        let (request, bytes) = (ask.fingerprint(), ask.canonical().len() as u64);
        Thought::Ask(Box::new(Asking { ask, request, bytes, most: Usage::default(), time: Duration::from_secs(1) }))
    }

    fn models(&self) -> Option<&dyn Model> {
        Some(self)
    }
}

#[async_trait]
impl Model for Asks {
    async fn ask(&self, _: &Ask, _: Duration) -> Result<Answered, AskError> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        self.clock.1.fetch_add(self.takes, Ordering::SeqCst);
        let reply = Reply { calls: Vec::new(), kept: None, stop: Stop::Done, text: "so".into() };
        Ok(Answered { reply, version: "m".into(), tokens: Tokens::default(), cost_micros: 0, attempts: 1 })
    }
}

/// The first task of an Expert, as it goes out.
fn investigate() -> Task {
    let mut driver = Driver::open(&case(&["network"]));
    let (_, plan) = driver.waiting.pop_first().unwrap();
    let (outcome, results) = perform(&plan, &|task, done| think(task, done, false));
    let command = driver.outcome(outcome, &results);
    driver.take(&[command]);
    driver.waiting.pop_first().unwrap().1
}

#[tokio::test]
async fn a_task_that_comes_again_takes_what_is_recorded() {
    let (bus, tools) = (Arc::new(Away::new("", 0)), Arc::new(Search::default()));
    let worker = worker(&bus, tools.clone());
    let ran = || tools.0.load(Ordering::SeqCst);
    let fresh = investigate();
    assert!(!fresh.again, "the Hub hands it out for the first time");
    let first = worker.perform(&Arc::new(fresh.clone())).await.unwrap();
    assert_eq!(ran(), 2);
    let again = worker.perform(&Arc::new(Task { again: true, ..fresh.clone() })).await.unwrap();
    assert_eq!((ran(), &again.calls), (2, &first.calls), "nothing is made again");
    // The same bytes, delivered once more because their worker died with them.
    let queue = Queue::new(Role::Expert, fresh.domain.as_ref());
    let jobs = subject::tasks(Role::Expert, fresh.domain.as_ref());
    bus.enqueue(&jobs, "x", wire::encode(&fresh).unwrap()).await.unwrap();
    drop(bus.pull(&jobs).await.unwrap());
    worker.handle(&queue, bus.pull(&jobs).await.unwrap()).await;
    assert_eq!(ran(), 2, "a second delivery of a task that went out once looks, too");
}

#[tokio::test]
async fn a_step_that_could_not_be_told_fails_no_task() {
    let task = investigate();
    let bus = Arc::new(Away::new("casebook.hub.steps.", u32::MAX));
    let tools = Arc::new(Search::default());
    let outcome = worker(&bus, tools.clone()).perform(&Arc::new(task)).await.unwrap();
    assert_eq!((u32::MAX - bus.left(), bus.told()), (2, 0), "its steps were tried and not told");
    assert!(outcome.result.is_ok(), "{:?}", outcome.result);
    assert_eq!((outcome.calls.len(), tools.0.load(Ordering::SeqCst)), (2, 2));
}
