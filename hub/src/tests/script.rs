//! A scripted team for tests: what each task answers is a function of the task alone, so that every
//! run on the same case ends in the same report, whatever happens on the way.

use std::collections::BTreeMap;

use casebook_agent::reasoner::{Action, CallRequest, Done};
use casebook_agent::turn::{Effect, Input, TurnLoop};
use casebook_protocol::hash::sha256_hex;
use casebook_protocol::{
    Alert, Answer, ArtifactId, Bearing, Budget, Citation, Conclusion, Decision, Domain, Entity, EntityKind, EntryDraft,
    EntryKind, EventDraft, EventTime, FindingDraft, FindingKind, Gap, GapKind, InvestigationId, Judgement, Locator,
    Member, ModelCall, ModelCallId, Move, Outcome, Phase, Player, Precision, Priority, Purpose, Question, Recorded,
    ReviewDraft, Score, SourceInfo, Task, TaskId, TaskKind, TimeBasis, TimelineDraft, Timestamp, ToolCall, ToolSpec,
    Toolset, Usage, Verdict, View, Weight,
};
use casebook_runtime::stored;
use casebook_trust::Exhibits;

use crate::advance::{Advanced, advance};
use crate::decide::Command;
use crate::state::{Case, State};

pub(crate) const SEARCH: &str = "search";

pub(crate) fn domain(name: &str) -> Domain {
    Domain::new(name).unwrap()
}

pub(crate) fn member(name: &str) -> Member {
    let source = SourceInfo {
        on_subject_host: name == "endpoint",
        records: 10,
        about: "a log".into(),
        ..SourceInfo::new(format!("{name}-log"), format!("{name} sensor"))
    };
    let tools = vec![ToolSpec::new(SEARCH, "searches", "{}", true)];
    let toolset = Toolset { name: "evidence".into(), about: "logs".into(), tools };
    Member {
        domain: domain(name),
        description: format!("knows {name}"),
        sources: vec![source],
        toolset,
        covers: vec![],
        one_call: None,
    }
}

pub(crate) fn case(domains: &[&str]) -> Case {
    Case {
        alert: Alert::parse(br#"{"id":"a-1","title":"Module loaded","severity":"high","sensors":["network"]}"#)
            .unwrap(),
        budget: Budget { rounds: 6, ..Budget::default() },
        roster: domains.iter().map(|d| member(d)).collect(),
        evidence: "/evidence".into(),
    }
}

pub(crate) fn investigation() -> InvestigationId {
    InvestigationId::new("inv-1").unwrap()
}

/// What the search tool of the script returns: one record that names the query.
pub(crate) fn search(arguments: &str) -> String {
    let asked: serde_json::Value = serde_json::from_str(arguments).unwrap();
    let (name, round) = (asked["domain"].as_str().unwrap(), asked["round"].as_u64().unwrap());
    let (source, file) = (format!("{name}-log"), format!("{name}.log"));
    let time = format!("2024-01-01T10:00:{round:02}Z");
    let raw = format!("`{name}` did thing{round}");
    serde_json::json!({"total": 1, "total_is_exact": true, "window": {"from": null, "to": null}, "searched": [source],
        "records": [{"source": source, "file": file, "line": round, "time": time, "time_basis": "record", "raw": raw}]})
    .to_string()
}

fn finding(task: &Task, done: &Done, claim: String) -> FindingDraft {
    let at: Timestamp = format!("2024-01-01T10:00:{:02}Z", task.round).parse().unwrap();
    FindingDraft {
        time: Some(EventTime {
            at,
            until: None,
            precision: Precision::Second,
            basis: TimeBasis::Record,
            field: "time".into(),
        }),
        entities: vec![Entity { kind: EntityKind::Process, value: task.domain.as_ref().unwrap().to_string() }],
        bearing: Bearing::Incriminating,
        weight: Weight::Strong,
        confidence: Score::clamped(0.9),
        citations: vec![Citation::Literal {
            call: done.call.id.clone(),
            at: Locator::Pointer("/records/0".into()),
            quote: format!("did thing{}", task.round),
        }],
        ..FindingDraft::neutral(FindingKind::Occurrence, claim)
    }
}

/// Two findings: one that happened, and one that counts.
pub(crate) fn findings(task: &Task, done: &Done) -> Vec<FindingDraft> {
    let first = finding(task, done, format!("`thing{}` was done", task.round));
    let count =
        Citation::Count { call: done.call.id.clone(), at: Locator::Pointer("/total".into()), value: 1, again: None };
    let second = FindingDraft {
        kind: FindingKind::Aggregate,
        claim: "1 record".into(),
        time: None,
        citations: vec![count],
        ..first.clone()
    };
    vec![first, second]
}

/// The honest team.
pub(crate) fn think(task: &Task, done: &[Done], _last: bool) -> Action {
    honest(task, done)
}

pub(crate) fn honest(task: &Task, done: &[Done]) -> Action {
    let answer = match &task.view {
        View::Investigate(_) => match done.first() {
            None => {
                let arguments = serde_json::json!({"domain": task.domain, "round": task.round}).to_string();
                return Action::Call(vec![CallRequest { tool: SEARCH.into(), arguments }]);
            }
            Some(done) => Answer::Investigate(findings(task, done)),
        },
        View::Plan(_) => {
            let to = if task.phase == Phase::Trace { vec![domain("network")] } else { vec![] };
            Answer::Plan(
                Question { text: format!("what happened in round {}?", task.round), to, follow: vec![] }.into(),
            )
        }
        View::Review(view) => {
            let judged = view.findings.iter().map(|f| Judgement::new(&f.finding.id, Score::clamped(0.8), "checked"));
            Answer::Review(ReviewDraft { summary: "reviewed".into(), judgements: judged.collect(), leads: vec![] })
        }
        View::Timeline(view) => {
            let mut events: Vec<EventDraft> = view
                .previous
                .iter()
                .flat_map(|t| &t.events)
                .map(|e| EventDraft { description: e.description.clone(), findings: e.findings.clone() })
                .collect();
            let fresh = view.review.findings.iter().map(|f| EventDraft {
                description: f.finding.draft.claim.clone(),
                findings: vec![f.finding.id.clone()],
            });
            events.extend(fresh);
            let gaps = vec![Gap { kind: GapKind::Evidential, description: "more".into() }];
            Answer::Timeline(TimelineDraft {
                narrative: format!("story of `thing{}`", task.round),
                events,
                gaps,
                score: Score::clamped(0.7),
            })
        }
        View::Decide(_) => {
            let next = if task.phase == Phase::Trace && task.round < 3 { Move::Stay } else { Move::Advance };
            Answer::Decide(Decision { next, reason: "enough".into() })
        }
        View::Report(view) => Answer::Report(conclusion(
            view.review.iter().flat_map(|r| r.findings.iter().map(|f| f.finding.id.clone())).collect(),
        )),
    };
    Action::Answer(Box::new(answer))
}

pub(crate) fn conclusion(findings: Vec<casebook_protocol::FindingId>) -> Conclusion {
    Conclusion {
        verdict: Verdict::TruePositive,
        summary: "it was an attack".into(),
        root_cause: "a hook".into(),
        actions: vec!["isolate".into()],
        open_questions: vec![],
        findings,
    }
}

pub(crate) fn player() -> Player {
    Player { name: "script".into(), version: "1".into(), built_in: false }
}

/// The one model call of a task.
fn asked(task: &Task) -> ModelCall {
    let (prompt, request) = (format!("{} 1", task.view.kind().name()), ArtifactId::of(task.id.as_str().as_bytes()));
    let call = ModelCall::new(ModelCallId::of(&task.id, 1), "script", prompt, Purpose::Turn);
    ModelCall { version: "1".into(), request, request_bytes: 1000, ..call }
}

pub(crate) fn entry(text: &str) -> EntryDraft {
    EntryDraft::new(EntryKind::Decision, Priority::High, text)
}

/// Performs a task without a store: its outcome, and the bytes of its calls.
pub(crate) fn perform(task: &Task, reasoner: &dyn Fn(&Task, &[Done]) -> Action) -> (Outcome, Vec<Vec<u8>>) {
    let toolset = match &task.view {
        View::Investigate(view) => view.toolset.clone(),
        _ => Toolset { name: "none".into(), about: String::new(), tools: vec![] },
    };
    let mut machine = TurnLoop::new(task.id.clone(), task.view.kind(), task.allowance, &toolset);
    let mut results = Vec::new();
    let mut effects = machine.begin();
    loop {
        let mut inputs = Vec::new();
        for effect in effects {
            match effect {
                Effect::Finish(result) => {
                    let calls: Vec<ToolCall> = machine.done().iter().map(|d| d.call.clone()).collect();
                    let usage = Usage { model_calls: 1, tool_calls: calls.len() as u64, ..Usage::default() };
                    let journal = match task.view.kind() {
                        TaskKind::Plan | TaskKind::Decide => vec![entry(&format!("entry of {}", task.id))],
                        _ => vec![],
                    };
                    let (asked, limits) = (vec![asked(task)], machine.limits());
                    let whole = Outcome::new(task.id.clone(), player(), result.map(|a| *a));
                    return (Outcome { journal, calls, asked, limits, usage, ..whole }, results);
                }
                Effect::Ask(_) => unreachable!("the script asks no model"),
                Effect::Think { .. } => inputs.push(Input::Action(reasoner(task, machine.done()))),
                Effect::Call { id, request, .. } => {
                    let text = search(&request.arguments);
                    let call = ToolCall::answered(id, request.tool, request.arguments, text.as_bytes());
                    let call = ToolCall { domain: task.domain.clone(), ..call };
                    results.push(text.clone().into_bytes());
                    inputs.push(Input::Called(Box::new(Done { call, result: text.into() })));
                }
            }
        }
        effects = inputs.into_iter().flat_map(|input| machine.step(input)).collect();
    }
}

/// An outcome as a worker stores it.
pub(crate) fn row(outcome: &Outcome) -> Vec<u8> {
    stored::write(outcome).unwrap()
}

/// Drives an investigation with pure code alone.
pub(crate) struct Driver {
    pub(crate) state: State,
    pub(crate) log: Vec<Recorded>,
    /// Where each append ended.
    pub(crate) cuts: Vec<usize>,
    pub(crate) waiting: BTreeMap<TaskId, Task>,
    pub(crate) seconds: i64,
}

impl Driver {
    pub(crate) fn open(case: &Case) -> Self {
        let mut driver = Self {
            state: State::default(),
            log: vec![],
            cuts: vec![],
            waiting: BTreeMap::new(),
            seconds: 1_700_000_000,
        };
        driver.take(&[Command::Open(Box::new(case.clone()))]);
        driver
    }

    pub(crate) fn now(&self) -> Timestamp {
        Timestamp::from_second(self.seconds).unwrap()
    }

    pub(crate) fn take(&mut self, commands: &[Command]) -> Advanced {
        self.seconds += 1;
        let done = advance(self.state.clone(), &investigation(), commands, self.now(), true);
        assert_eq!(done.defect, None);
        self.state = done.state.clone();
        self.log.extend(done.recorded.clone());
        self.cuts.push(self.log.len());
        self.waiting.extend(done.tasks.iter().map(|t| (t.id.clone(), t.clone())));
        done
    }

    pub(crate) fn outcome(&self, outcome: Outcome, results: &[Vec<u8>]) -> Command {
        let mut exhibits = Exhibits::default();
        for (call, bytes) in outcome.calls.iter().flat_map(|c| results.iter().map(move |r| (c, r))) {
            exhibits.add(call.clone(), true, bytes);
        }
        Command::RecordOutcome {
            sha256: sha256_hex(&row(&outcome)),
            outcome: Box::new(outcome),
            exhibits,
            now: self.now(),
        }
    }

    /// Records an outcome.
    pub(crate) fn answer(&mut self, outcome: Outcome, results: &[Vec<u8>]) -> Advanced {
        let command = self.outcome(outcome, results);
        self.take(&[command])
    }

    /// The task of this id as soon as it waits; the honest team performs others before it.
    pub(crate) fn until(&mut self, task: &str) -> Task {
        let id = TaskId::new(task).unwrap();
        loop {
            if let Some(found) = self.waiting.remove(&id) {
                return found;
            }
            let (_, next) = self.waiting.pop_first().expect("the task never comes");
            let (outcome, results) = perform(&next, &honest);
            self.answer(outcome, &results);
        }
    }

    /// Answers the waiting tasks until it is closed; `pick` says which comes next.
    pub(crate) fn run(&mut self, reasoner: &dyn Fn(&Task, &[Done]) -> Action, mut pick: impl FnMut(usize) -> usize) {
        for _ in 0..1000 {
            if self.state.closed.is_some() {
                assert!(self.waiting.is_empty());
                return;
            }
            if self.state.not_investigated.is_some() {
                self.take(&[Command::GoOn]);
            }
            let id =
                self.waiting.keys().nth(pick(self.waiting.len())).expect("nothing under way and not closed").clone();
            let task = self.waiting.remove(&id).unwrap();
            let (outcome, results) = perform(&task, reasoner);
            assert_eq!(self.answer(outcome, &results).answers, [Ok(())]);
        }
        panic!("it does not end");
    }

    /// The honest team on three domains, to the end.
    pub(crate) fn honest() -> Self {
        let mut driver = Self::open(&case(&["endpoint", "identity", "network"]));
        driver.run(&honest, |_| 0);
        driver
    }
}

/// A call that was not made, by number.
pub(crate) fn numbered(n: u32) -> ToolCall {
    ToolCall::answered(casebook_protocol::CallId::new(format!("r1.plan.t{n}.0")).unwrap(), SEARCH, "{}", b"")
}
