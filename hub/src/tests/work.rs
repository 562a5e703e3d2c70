//! Tests of a worker on a bus that fails.

use casebook_runtime::process::Performer;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use casebook_agent::model::{Answered, Ask, AskError, Choice, Model, Reply, Stop};
use casebook_agent::reasoner::{Action, Analyst, Asking, Past, Reasoner, Turn};
use casebook_agent::tools::{NoTools, Tools};
use casebook_agent::worker::{Fixed, Worker};
use casebook_protocol::DeadLetter;
use casebook_protocol::Tokens;
use casebook_protocol::subject::{self, Queue};
use casebook_protocol::{
    Answer, ArtifactId, InvestigationId, ModelCallId, Player, Purpose, Recorded, Role, Task, Toolset, Usage,
};
use casebook_runtime::Env;
use casebook_runtime::bus::Bus;
use casebook_runtime::clock::TickingClock;
use casebook_runtime::store::{Once, Store, StoreError};
use casebook_runtime::wire;

use crate::memory::MemoryStore;
use crate::tests::away::Away;
use crate::tests::script::{Driver, case, member, player, search, think};

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
async fn job_is_not_done_before_its_dead_letter_is_written() {
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

/// A store in which another worker performs the whole task at the first record: before it or after it.
struct Meeting {
    inner: Arc<MemoryStore>,
    before: bool,
    other: Mutex<Option<(Worker, Arc<Task>)>>,
}

#[async_trait]
impl Store for Meeting {
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
        let other = self.other.lock().unwrap().take();
        let once = if self.before { None } else { Some(self.inner.record_once(of, key, bytes).await?) };
        if let Some((other, task)) = other {
            other.perform(&task).await.unwrap();
        }
        match once {
            Some(once) => Ok(once),
            None => self.inner.record_once(of, key, bytes).await,
        }
    }

    async fn recorded(&self, of: &InvestigationId, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        self.inner.recorded(of, key).await
    }

    async fn put(&self, bytes: &[u8]) -> Result<ArtifactId, StoreError> {
        self.inner.put(bytes).await
    }

    async fn get(&self, id: &ArtifactId) -> Result<Option<Vec<u8>>, StoreError> {
        self.inner.get(id).await
    }
}

/// Two workers perform one task.
async fn meet(reasoner: Arc<dyn Reasoner>, tools: Arc<dyn Tools>, before: bool) {
    let task = Arc::new(investigate());
    let store = Arc::new(Meeting { inner: Arc::default(), before, other: Mutex::default() });
    let works = |store: Arc<dyn Store>| {
        let env = Env { bus: Arc::new(Away::new("", 0)), store, clock: Arc::new(TickingClock::default()) };
        Worker::new(env, Arc::clone(&reasoner), Arc::new(Fixed(Arc::clone(&tools))))
    };
    *store.other.lock().unwrap() = Some((works(store.inner.clone()), Arc::clone(&task)));
    let outcome = works(store.clone()).perform(&task).await.unwrap();
    assert!(outcome.result.is_ok(), "{:?}", outcome.result);
}

#[tokio::test]
async fn call_that_another_worker_recorded_is_not_made_again() {
    // The other makes the second call, and where it comes first the first one as well.
    for (before, ran) in [(false, 2), (true, 3)] {
        let tools = Arc::new(Search::default());
        meet(Arc::new(Analyst(think)), tools.clone(), before).await;
        assert_eq!(tools.0.load(Ordering::SeqCst), ran, "tools, before: {before}");
        let reasoner = Arc::new(Asks::default());
        meet(reasoner.clone(), Arc::new(NoTools), before).await;
        assert_eq!(reasoner.0.load(Ordering::SeqCst), ran, "models, before: {before}");
    }
}

/// A reasoner that asks a model twice and finds nothing, and how often the model was asked.
#[derive(Default)]
struct Asks(AtomicU32);

#[async_trait]
impl Reasoner for Asks {
    fn keeps_requests(&self) -> bool {
        true
    }

    fn player(&self, _: &Task, _: &Past) -> Player {
        player()
    }

    async fn next(&self, task: &Arc<Task>, past: &Past, turn: &Turn) -> Action {
        if past.asked.len() == 2 {
            return Action::Answer(Box::new(Answer::Investigate(Vec::new())));
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
        Action::Ask(Box::new(Asking {
            ask,
            request,
            bytes,
            most: Usage::default(),
            time: Duration::from_secs(1),
            stands: None,
        }))
    }

    fn models(&self) -> Option<&dyn Model> {
        Some(self)
    }
}

#[async_trait]
impl Model for Asks {
    async fn ask(&self, _: &Ask, _: Duration) -> Result<Answered, AskError> {
        self.0.fetch_add(1, Ordering::SeqCst);
        let reply = Reply { calls: Vec::new(), kept: None, stop: Stop::Done, text: "so".into() };
        Ok(Answered {
            reply,
            version: "m".into(),
            tokens: Tokens::default(),
            estimated: false,
            cost_micros: 0,
            attempts: 1,
        })
    }
}

/// The first task of an Expert, as it goes out.
fn investigate() -> Task {
    Driver::open(&case(&["network"])).until("r1.investigate.network")
}

#[tokio::test]
async fn repeated_task_uses_recorded_calls() {
    let (bus, tools) = (Arc::new(Away::new("", 0)), Arc::new(Search::default()));
    let worker = worker(&bus, tools.clone());
    let ran = || tools.0.load(Ordering::SeqCst);
    let fresh = investigate();
    let first = worker.perform(&Arc::new(fresh.clone())).await.unwrap();
    assert_eq!(ran(), 2);
    let again = worker.perform(&Arc::new(fresh.clone())).await.unwrap();
    assert_eq!((ran(), &again.calls), (2, &first.calls), "nothing is made again");
    // The same bytes, delivered once more because their worker died with them.
    let queue = Queue::new(Role::Expert, fresh.domain.as_ref());
    let jobs = subject::tasks(Role::Expert, fresh.domain.as_ref());
    bus.enqueue(&jobs, "x", wire::encode(&fresh).unwrap()).await.unwrap();
    drop(bus.pull(&jobs).await.unwrap());
    worker.handle(&queue, bus.pull(&jobs).await.unwrap()).await;
    assert_eq!(ran(), 2, "a second delivery takes it as well");
}

#[tokio::test]
async fn step_that_cannot_be_published_fails_no_task() {
    let task = investigate();
    let bus = Arc::new(Away::new("casebook.hub.steps.", u32::MAX));
    let tools = Arc::new(Search::default());
    let outcome = worker(&bus, tools.clone()).perform(&Arc::new(task)).await.unwrap();
    assert_eq!((u32::MAX - bus.left(), bus.told()), (2, 0), "its steps were tried and not told");
    assert!(outcome.result.is_ok(), "{:?}", outcome.result);
    assert_eq!((outcome.calls.len(), tools.0.load(Ordering::SeqCst)), (2, 2));
}
