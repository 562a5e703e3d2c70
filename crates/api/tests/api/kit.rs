//! A recorded investigation, and everything that can be shown of it.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use casebook_agent::model::{Ask, Called, Choice, Message, Part, Reply, Stop, ToolAnswer};
use casebook_api::cases::{Cases, Held, Listed};
use casebook_api::http::{Config, listen};
use casebook_api::model::insights::Insights;
use casebook_api::model::row::Row;
use casebook_api::model::zone::Zone;
use casebook_api::pages::case::{self, Case, TABS};
use casebook_api::pages::frame::{Frame, Theme};
use casebook_api::pages::{backtest, call, compare, evidence, fleet, launch, model, problem, settings, task, verified};
use casebook_api::problem::{Kind, Problem};
use casebook_api::team::{Backtest, Body, Outcome, Repeat};
use casebook_hub::{MemoryStore, State, Verification, report, verify};
use casebook_index::{Index, Wanted};
use casebook_protocol::{ArtifactId, Budget, CallStatus, InvestigationId, Recorded, Report, Timestamp, ToolCall};
use casebook_runtime::clock::Clock;
use casebook_runtime::store::Store;
use casebook_trust::Backing;
use serde_json::json;

pub(crate) const KEY: &str = "the-key-of-the-test";

pub(crate) fn fixture() -> Vec<Recorded> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../hub/fixtures/log-v1.ndjson");
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

pub(crate) struct Noon;

impl Clock for Noon {
    fn now(&self) -> Timestamp {
        "2026-11-25T12:00:00Z".parse().unwrap()
    }
}

pub(crate) fn frame() -> Frame {
    Frame {
        theme: Theme::System,
        zone: Zone::default(),
        now: Noon.now(),
        keys: true,
        here: "/".into(),
        investigates: true,
        build: "test",
    }
}

/// Every page of one log, with its name.
pub(crate) fn pages(log: &[Recorded], result: &str) -> Vec<(String, String)> {
    let frame = frame();
    let id: InvestigationId = log[0].investigation.clone();
    let held = Held { log: log.to_vec(), state: State::replay(log) };
    let last = held.state.last_seq();
    let row = Row::of(&id, &held.state);
    let listed = |rows: Vec<Row>| Listed { rows, next: Some(result.to_owned()) };
    let twice = || vec![row.clone(), row.clone()];
    let briefs = || vec![row.brief(), row.brief()];
    let report = report::build(&held.state).unwrap();
    let view = |held: &Held, at: Option<u64>, tab: &str| {
        let (row, report) = (Row::of(&id, &held.state), report::build(&held.state).unwrap());
        let present = State::replay(log);
        let (present, backing) = (at.map(|_| &present), searched(&report, result));
        let case = Case::new(&frame, &held.log, &held.state, &report, &row);
        case::page(&Case { last, at, present, backing, ..case }, tab)
    };
    let mut out =
        vec![("fleet".to_owned(), fleet::page(&frame, &briefs(), &listed(twice()), 2, &fleet::Filter::default()))];
    let empty = fleet::Filter { q: "no such case".into(), ..fleet::Filter::default() };
    out.push(("fleet-none".into(), fleet::page(&frame, &briefs(), &listed(Vec::new()), 2, &empty)));
    for (tab, _) in TABS {
        out.push((format!("case-{tab}"), view(&held, None, tab)));
    }
    let half = held.until(last / 2);
    let middle = Held { log: half.to_vec(), state: State::replay(half) };
    out.push(("case-past".into(), view(&middle, Some(last / 2), "channels")));
    out.push(("case-running".into(), view(&middle, None, "timeline")));
    let case = Case::new(&frame, &held.log, &held.state, &report, &row);
    for span in case.spans.iter().filter(|span| span.tool_calls > 0).take(1) {
        out.push(("task".into(), task::page(&case, span, b"not a view")));
    }
    let cited = report.findings.iter().find(|found| !found.citations.is_empty());
    if let Some(found) = cited {
        let one = call::Cited { found, cited: &found.citations[0] };
        let made =
            report.calls.iter().find(|call| call.id == *found.citations[0].citation.call()).unwrap_or(&report.calls[0]);
        let made = &ToolCall {
            id: found.citations[0].citation.call().clone(),
            result: ArtifactId::of(result.as_bytes()),
            ..made.clone()
        };
        let around =
            json!({"records": [{"file": "auth.log", "line": 1, "time": "2026-11-25T00:00:00Z", "text": result}]});
        out.push(("call".into(), call::page(&case, made, result, Some(&one), Some(&around))));
    }
    if let Some(made) = held.state.asked.values().next() {
        let part = || vec![Part { cache: false, text: result.to_owned() }];
        let called = Called { arguments: result.to_owned(), id: "c".into(), tool: result.to_owned() };
        let reply = Reply { calls: vec![called], kept: None, stop: Stop::Done, text: result.to_owned() };
        let answer = ToolAnswer { failed: true, id: "c".into(), text: result.to_owned(), tool: result.to_owned() };
        let ask = Ask {
            id: made.call.id.clone(),
            model: made.call.model.clone(),
            prompt: made.call.prompt.clone(),
            purpose: made.call.purpose,
            system: part(),
            messages: vec![Message::User(part()), Message::Assistant(reply.clone()), Message::Results(vec![answer])],
            tools: Vec::new(),
            choice: Choice::Free,
            format: None,
            max_output: 1,
        };
        out.push(("model".into(), model::page(&case, &made.task, &made.call, Ok(&ask), Ok(&reply))));
        out.push(("model-not-kept".into(), model::page(&case, &made.task, &made.call, Err(result), Err(result))));
    }
    let found = Ok(json!({"total": 1, "records": [{"file": result, "line": 1, "time": result, "raw": result}]}));
    let wanted = evidence::Wanted {
        q: result.into(),
        source: result.into(),
        from: result.into(),
        to: result.into(),
        file: result.into(),
        line: Some(1),
    };
    out.push(("evidence".into(), evidence::page(&case, &wanted, &found)));
    let side = || compare::Side { row: Some(&row), report: &report };
    let models = [result.to_owned()];
    out.push(("compare".into(), compare::page(&frame, &twice(), [result, ""], Some([side(), side()]), &models)));
    let repeat = Repeat { investigation: id.clone(), from_round: 1, model: Some(result.to_owned()) };
    let outcomes = [
        ("running", Outcome::Running),
        ("done", Outcome::Done(Arc::new(report.clone()))),
        ("failed", Outcome::Failed(result.to_owned())),
    ];
    for (name, outcome) in outcomes {
        let one = Backtest { n: 1, repeat: repeat.clone(), round: 1, events: 9, outcome };
        out.push((format!("backtest-{name}"), backtest::page(&frame, &one, &side())));
    }
    out.push(("insights".into(), casebook_api::pages::insights::page(&frame, &numbers(log))));
    let bodies = [Body { name: result.into(), about: result.into(), removable: true }];
    let (again, wrong) = (true, Some(result));
    let draft = launch::Draft { alert: result, body: result, cost: result, minutes: result, again, wrong };
    out.push(("launch".into(), launch::page(&frame, &bodies, &Budget::default(), &draft)));
    let problem = verify::Problem { seq: Some(1), what: result.into() };
    let differs = Verification { problems: vec![problem], foreign: vec![result.to_owned()], ..Verification::default() };
    let intact = Verification { events: 3, closed: true, report: true, ..Verification::default() };
    for (name, found) in [("verified", intact), ("verified-differs", differs)] {
        out.push((name.into(), verified::page(&case, &found)));
    }
    out.push(("settings".into(), settings::page(&frame, &[("Rounds".to_owned(), result.to_owned())])));
    out.push(("problem".into(), problem::page(&frame, &Problem::new(Kind::NotFound, result))));
    out
}

/// A search for `name` without a hit.
fn searched(report: &Report, name: &str) -> Backing {
    let mut backing = Backing::of(report);
    for call in &report.calls {
        let arguments = json!({"terms": [name, "x"], "mode": "any"}).to_string();
        let call = ToolCall { arguments, tool: "search".into(), status: CallStatus::Answered, ..call.clone() };
        let result = json!({"total": 9, "returned": 2, "searched": [name], "by_term": {"x": 9}});
        backing.add(&call, result.to_string().as_bytes());
    }
    backing
}

fn numbers(log: &[Recorded]) -> Insights {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    std::thread::scope(|scope| scope.spawn(|| runtime.block_on(counted(log))).join().unwrap())
}

async fn counted(log: &[Recorded]) -> Insights {
    let store = MemoryStore::default();
    store.append(&log[0].investigation, 0, log).await.unwrap();
    let cases = Cases::new(Arc::new(store), Index::in_memory().unwrap());
    let listed = cases.list(&Wanted { limit: 10, ..Wanted::default() }, Noon.now()).await.unwrap();
    let (figures, verdicts, counts) = cases.numbers().unwrap();
    Insights::of(figures, verdicts, counts.all, &listed.rows)
}

pub(crate) struct Served {
    pub(crate) base: String,
    pub(crate) address: SocketAddr,
    pub(crate) store: MemoryStore,
    pub(crate) id: InvestigationId,
    pub(crate) log: Vec<Recorded>,
}

/// A server over a store with the first `events` events of the fixture.
pub(crate) async fn served(events: usize) -> Served {
    served_with(events, |_| {}).await
}

/// A server over a log that differs from the fixture.
pub(crate) async fn served_with(events: usize, change: impl FnOnce(&mut Vec<Recorded>)) -> Served {
    let mut log = fixture();
    change(&mut log);
    for n in 0..log.len() {
        let before = n.checked_sub(1).map(|n| log[n].clone());
        log[n] = Recorded::next(&log[n].investigation, before.as_ref(), log[n].at, log[n].event.clone());
    }
    let id = log[0].investigation.clone();
    let store = MemoryStore::default();
    store.append(&id, 0, &log[..events.min(log.len())]).await.unwrap();
    let cases = Arc::new(Cases::new(Arc::new(store.clone()), Index::in_memory().unwrap()));
    let config = Config {
        cases,
        team: None,
        clock: Arc::new(Noon),
        key: KEY.into(),
        address: "127.0.0.1:0".parse().unwrap(),
        contained: false,
    };
    let listening = listen(config).await.unwrap();
    let address = listening.address;
    tokio::spawn(listening.serve(std::future::pending()));
    Served { base: format!("http://{address}"), address, store, id, log }
}
