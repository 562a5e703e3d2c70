use std::sync::Arc;

use casebook_protocol::{
    Alert, Allowance, Answer, CallStatus, DirectorView, InvestigationId, ModelCall, Phase, Question, TaskId, TaskKind,
    ToolCall, Toolset, View,
};
use serde_json::{Value, json};

use super::*;
use crate::model::brief::Briefing;
use crate::model::config::Config;
use crate::model::schema::AnswerForm;
use crate::model::{Called, Fault, Stop};

mod second;

#[derive(schemars::JsonSchema)]
#[allow(dead_code)]
struct PlanForm {
    question: String,
}

struct PlanBrief;

impl Brief for PlanBrief {
    fn brief(&self, _: &Task, room: usize) -> Briefing {
        Briefing {
            prompt: "plan 1".into(),
            system: "Casebook task: plan (prompt plan 1)".into(),
            parts: vec![Part { text: "x".repeat(room.min(1000)), cache: true }],
        }
    }

    fn form(&self, _: TaskKind) -> Arc<AnswerForm> {
        Arc::new(AnswerForm::of::<PlanForm>("plan", "The plan."))
    }

    fn returned(&self, _: &Task, _: &[Done], object: &Value) -> String {
        let faulty = object.get("question").and_then(Value::as_str) == Some("faulty");
        if faulty { "Give the question again: it quotes nothing.".into() } else { String::new() }
    }

    fn mended(&self, _: &Task, _: &[Done], first: &Value, second: &Value) -> Option<(Answer, u32)> {
        let text = |object: &Value| object.get("question").and_then(Value::as_str).map(str::to_owned);
        let text = format!("{} then {}", text(first)?, text(second)?);
        Some((Answer::Plan(Question { text, to: vec![], follow: vec![] }.into()), 1))
    }

    fn read(&self, _: &Task, _: &[Done], object: &Value, _: usize) -> Result<Answer, Vec<String>> {
        match object.get("question").and_then(Value::as_str) {
            Some("bad") => Err(vec!["/question: ask something".into()]),
            Some(text) => Ok(Answer::Plan(Question { text: text.into(), to: vec![], follow: vec![] }.into())),
            None => Err(vec!["/question: is missing".into()]),
        }
    }
}

pub(in crate::model) fn task() -> Task {
    let alert = Alert::parse(br#"{"id":"a","title":"t"}"#).unwrap();
    let view = DirectorView {
        accounting: None,
        alert,
        journal: vec![],
        review: None,
        timeline: None,
        roster: vec![],
        out_of_reach: vec![],
        notes: vec![],
        coverage: Vec::new(),
        leads: vec![],
        ranks: vec![],
        credible: vec![],
        used: Usage::default(),
        warning: None,
        stop_reason: None,
    };
    Task {
        id: TaskId::of(1, TaskKind::Plan, None),
        investigation: InvestigationId::new("i").unwrap(),
        domain: None,
        phase: Phase::Discovery,
        round: 1,
        view: View::Plan(Box::new(view)),
        allowance: Allowance::default(),
    }
}

fn selected(way: &str, window: u32) -> ModelSelection {
    let text = format!(
        r#"
[models.first]
provider = "openai-compatible"
model = "one"
base_url = "http://localhost:1/v1/"
window = {window}
max_output = 1000
answer = "{way}"
fallback = ["second"]
[models.second]
provider = "openai-compatible"
model = "two"
base_url = "http://localhost:2/v1/"
window = 200000
max_output = 1000
answer = "{way}"
[roles.director]
model = "first"
"#
    );
    let config = Config::parse("models.toml", &text).unwrap();
    config.select(casebook_protocol::Role::Director, TaskKind::Plan, Phase::Discovery, None).unwrap()
}

/// A conversation that is driven by hand.
struct Table {
    task: Task,
    selected: ModelSelection,
    past: Past,
    last: bool,
}

impl Table {
    fn new(way: &str) -> Self {
        Self { task: task(), selected: selected(way, 100_000), past: Past::default(), last: false }
    }

    fn next(&self) -> Action {
        let tool = |name: &str| ToolSpec::new(name, "d", r#"{"type":"object"}"#, true);
        let toolset = Toolset { name: "t".into(), about: String::new(), tools: vec![tool("search"), tool("journal")] };
        let turn =
            Turn { toolset: Arc::new(toolset), last: self.last, prompt_cache: crate::reasoner::PromptCache::default() };
        Dialogue { task: &self.task, selected: &self.selected, brief: &PlanBrief, past: &self.past, turn: &turn }.next()
    }

    fn ask(&self) -> Ask {
        match self.next() {
            Action::Ask(asking) => asking.ask,
            other => panic!("no request: {other:?}"),
        }
    }

    fn gives_up(&self) -> String {
        match self.next() {
            Action::GiveUp(reason) => reason,
            other => panic!("it goes on: {other:?}"),
        }
    }

    /// What comes back for the request that is due.
    fn take(&mut self, result: Result<Reply, Fault>) {
        let ask = self.ask();
        let failed = result.as_ref().err().map(|fault| format!("model {}: {fault:?}", ask.model));
        let call = ModelCall::new(ask.id, ask.model.clone(), ask.prompt, ask.purpose);
        let call = ModelCall { version: ask.model, failed, usage: Usage::default(), ..call };
        Arc::make_mut(&mut self.past.asked).push(Exchange { call, result: result.map(Arc::new) });
    }

    fn done(&mut self, turn: u32, place: u32, text: &str) {
        let call = ToolCall::answered(CallId::of(&self.task.id, turn, place), "search", "{}", text.as_bytes());
        Arc::make_mut(&mut self.past.done).push(Done { call, result: text.into() });
    }
}

fn says(text: &str) -> Result<Reply, Fault> {
    Ok(Reply { text: text.into(), calls: vec![], stop: Stop::Done, kept: None })
}

fn calls(tools: &[&str]) -> Result<Reply, Fault> {
    let call = |(n, tool): (usize, &&str)| Called { id: format!("c{n}"), tool: (*tool).into(), arguments: "{}".into() };
    let calls = tools.iter().enumerate().map(call).collect();
    Ok(Reply { text: String::new(), calls, stop: Stop::Done, kept: None })
}

fn answer(thought: Action) -> Answer {
    match thought {
        Action::Answer(answer) => *answer,
        other => panic!("no answer: {other:?}"),
    }
}

#[test]
fn tools_first_then_their_results_then_an_answer() {
    let mut table = Table::new("native");
    let first = table.ask();
    assert_eq!((first.id.as_str(), first.purpose, first.model.as_str()), ("r1.plan.m1", Purpose::Turn, "first"));
    assert_eq!(first.tools.len(), 2);
    assert_eq!(first.format.as_ref().unwrap().name, "plan");
    table.take(calls(&["search", "search"]));
    let Action::Call(requests) = table.next() else { panic!("no call") };
    assert_eq!(requests.len(), 2);
    table.done(1, 0, "one");
    assert!(matches!(table.next(), Action::Call(_)), "half of the results are not enough");
    table.done(1, 1, "two");
    let second = table.ask();
    let [Message::User(_), Message::Assistant(_), Message::Results(results)] = second.messages.as_slice() else {
        panic!("{:?}", second.messages)
    };
    assert_eq!(results.iter().map(|r| r.id.as_str()).collect::<Vec<_>>(), ["c0", "c1"]);
    assert!(results[1].text.contains("r1.plan.t1.1") && results[1].text.contains("two"));
    assert_eq!(second.messages[0], first.messages[0], "the beginning stays the same for the provider's cache");
    table.take(says(r#"{"question": "who?"}"#));
    assert!(matches!(answer(table.next()), Answer::Plan(q) if q.question.text == "who?"));
}

#[test]
fn the_last_turn_lets_no_tool_be_called() {
    let mut native = Table::new("native");
    native.last = true;
    let ask = native.ask();
    assert_eq!((ask.purpose, ask.tools.len(), ask.choice), (Purpose::Last, 0, Choice::Free));
    let mut submit = Table::new("submit_tool");
    assert_eq!(submit.ask().tools.last().unwrap().name, "submit");
    assert_eq!(submit.ask().choice, Choice::Free);
    submit.last = true;
    let ask = submit.ask();
    assert_eq!(ask.choice, Choice::Only("submit".into()));
    assert_eq!(ask.tools.len(), 1);
    assert_eq!(ask.format, None);
}

#[test]
fn exactly_one_repair_with_the_reasons_and_then_a_failure_with_them() {
    for wrong in ["bad json", r#"{"question": 7}"#, r#"{"question": "bad"}"#, r#"{"question": "a", "more": 1}"#] {
        let mut table = Table::new("native");
        table.take(says(wrong));
        if let Action::Answer(_) = table.next() {
            assert!(wrong.contains("more"), "only an unknown field may pass a form that is open");
            continue;
        }
        let repair = table.ask();
        assert_eq!((repair.purpose, repair.tools.len()), (Purpose::Repair, 0), "{wrong}");
        let Some(Message::User(parts)) = repair.messages.last() else { panic!("{:?}", repair.messages) };
        assert!(parts[0].text.contains("cannot be used") && parts[0].text.contains("only repair"), "{}", parts[0].text);
        let mut mended = Table { past: table.past.clone(), ..Table::new("native") };
        mended.take(says(r#"{"question": "who?"}"#));
        assert!(matches!(mended.next(), Action::Answer(_)));
        table.take(says(wrong));
        assert!(table.gives_up().contains("after one repair"), "{wrong}");
    }
}

#[test]
fn a_submitted_answer_that_does_not_hold_is_told_in_its_own_result() {
    let mut table = Table::new("submit_tool");
    let mut reply = calls(&["search", "submit"]).unwrap();
    reply.calls[1].arguments = json!({"question": "bad"}).to_string();
    table.take(Ok(reply));
    assert!(matches!(table.next(), Action::Call(made) if made.len() == 1));
    table.done(1, 0, "one");
    let repair = table.ask();
    let Some(Message::Results(results)) = repair.messages.last() else { panic!("{:?}", repair.messages) };
    assert_eq!(results.len(), 2, "every call has its result");
    assert!(results[0].text.contains("one"), "{}", results[0].text);
    assert!(results[1].failed && results[1].text.contains("/question: ask something"));
    assert_eq!(repair.choice, Choice::Only("submit".into()));
}

#[test]
fn calls_in_the_repair_are_no_answer() {
    let mut table = Table::new("native");
    table.take(says("well"));
    table.take(calls(&["search"]));
    assert!(table.gives_up().contains("can no longer be called"));
}

#[test]
fn a_model_that_fails_gives_way_to_its_fallback_and_the_last_failure_names_them_all() {
    let mut table = Table::new("native");
    table.take(Err(Fault::Unavailable));
    assert_eq!((table.ask().model.as_str(), table.ask().id.as_str()), ("second", "r1.plan.m2"));
    table.take(Ok(Reply { text: "no".into(), calls: vec![], stop: Stop::Refused, kept: None }));
    let why = table.gives_up();
    assert!(why.contains("first") && why.contains("second refused"), "{why}");
}

#[test]
fn an_unreadable_reply_is_asked_for_once_more_of_the_same_model() {
    let mut table = Table::new("native");
    table.take(Err(Fault::Unreadable));
    assert_eq!((table.ask().model.as_str(), table.ask().purpose), ("first", Purpose::Turn));
    table.take(Err(Fault::Unreadable));
    assert_eq!(table.ask().model, "second");
}

#[test]
fn what_does_not_fit_is_cut_oldest_first_and_says_so() {
    let mut table = Table { selected: selected("native", 10_000), ..Table::new("native") };
    table.take(calls(&["search"]));
    table.done(1, 0, &"old ".repeat(5_000));
    table.take(calls(&["search"]));
    table.done(2, 0, &"new ".repeat(2_000));
    let ask = table.ask();
    assert_eq!(ask.model, "first");
    let shown: Vec<&str> = ask
        .messages
        .iter()
        .filter_map(|m| if let Message::Results(all) = m { Some(all[0].text.as_str()) } else { None })
        .collect();
    assert!(shown[0].contains("cut") && shown[0].len() < shown[1].len(), "{} {}", shown[0].len(), shown[1].len());
    assert!(ask.canonical().len() < 9_000 * 5 / 2, "it fits: {}", ask.canonical().len());
}

#[test]
fn tokens_are_estimated_by_what_the_provider_counted_before() {
    let shown = |input_tokens: u64| {
        let mut table = Table::new("native");
        table.selected = selected("native", 10_000);
        table.take(calls(&["search"]));
        let past = Arc::make_mut(&mut table.past.asked);
        past[0].call.request_bytes = 4000;
        past[0].call.usage.input_tokens = input_tokens;
        table.done(1, 0, &"x".repeat(23_000));
        let ask = table.ask();
        let Message::Results(results) = &ask.messages[2] else { panic!() };
        results[0].text.len()
    };
    assert!(shown(0) < 23_000, "by our estimate it does not fit");
    assert!(shown(1000) > 23_000, "four bytes make a token");
    assert!(shown(2500) < shown(0));
}

#[test]
fn result_shorter_than_its_notice_is_not_cut() {
    let mut table = Table::new("native");
    table.done(1, 0, &"x".repeat(600));
    let whole = fit::shown_at(&table.past.done[0], 512, true);
    assert!(whole.contains("whole") && whole.contains(&"x".repeat(600)), "{whole}");
    table.done(1, 1, &"x".repeat(6000));
    assert!(fit::shown_at(&table.past.done[1], 512, true).len() < 1500);
}

#[test]
fn a_prompt_that_cannot_fit_goes_to_a_model_with_a_larger_window_or_fails_with_advice() {
    let mut table = Table { selected: selected("native", 1_100), ..Table::new("native") };
    for turn in 1..=12 {
        table.take(calls(&["search"]));
        table.done(turn, 0, &"x".repeat(10_000));
    }
    assert_eq!(table.ask().model, "second");
    table.selected.chain.truncate(1);
    let why = table.gives_up();
    assert!(why.contains("model first") && why.contains("larger window"), "{why}");
}

#[test]
fn too_many_calls_at_once_are_cut_and_every_call_kept_has_its_result() {
    let mut table = Table::new("native");
    table.take(calls(&["search"; 100]));
    let Action::Call(requests) = table.next() else { panic!("no call") };
    assert_eq!(requests.len(), MOST_CALLS);
    (0..64).for_each(|place| table.done(1, place, "x"));
    let messages = table.ask().messages;
    let (Message::Assistant(reply), Message::Results(results)) = (&messages[1], &messages[2]) else { panic!() };
    assert_eq!((reply.calls.len(), results.len()), (MOST_CALLS, MOST_CALLS));
}
