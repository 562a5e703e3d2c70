use casebook_agent::model::config::Config;
use casebook_agent::model::{Answered, Ask, AskError, Called};
use casebook_protocol::{Answer, Decision, ModelCallId, Move, Outcome, Player, Purpose, TaskId, Tokens, Usage};
use std::time::Duration;

use super::*;

fn profile(more: &str) -> Profile {
    let text = format!(
        "[models.m]\nprovider = \"openai-compatible\"\nmodel = \"m\"\nbase_url = \"http://127.0.0.1:9/v1\"\nwindow = 65536\nprice = {{ input = 1, output = 1 }}\n{more}"
    );
    Config::parse("models.toml", &text).unwrap().model("m").unwrap().clone()
}

fn ask(choice: Choice) -> Ask {
    Ask {
        id: ModelCallId::new("r1001.decide.m1").unwrap(),
        model: "m".into(),
        prompt: "decide 1".into(),
        purpose: Purpose::Turn,
        system: vec![],
        messages: vec![],
        tools: vec![],
        choice,
        format: None,
        max_output: 100,
    }
}

fn heard(choice: Choice, result: Result<Reply, AskError>) -> Heard {
    let tokens = Tokens { input: 10, output: 1, ..Tokens::default() };
    let result = result.map(|reply| Answered {
        reply,
        version: "m-1".into(),
        tokens,
        estimated: false,
        cost_micros: 1,
        attempts: 1,
    });
    Heard { ask: ask(choice), result, took: Duration::ZERO }
}

fn said(text: &str) -> Reply {
    Reply { text: text.into(), calls: vec![], stop: Stop::Done, kept: None }
}

fn submitted() -> Reply {
    Reply { calls: vec![Called { id: "1".into(), tool: "submit".into(), arguments: "{}".into() }], ..said("") }
}

fn error(fault: Fault, message: &str) -> AskError {
    AskError { fault, message: message.into(), attempts: 1 }
}

fn trial(result: Result<(), &str>, heard: Vec<Heard>) -> Trial {
    let player = Player { name: "m".into(), version: "m-1".into(), built_in: false };
    let answer = |()| Answer::Decide(Decision { next: Move::Advance, reason: "enough".into() });
    let result = result.map(answer).map_err(str::to_owned);
    let usage = Usage { model_calls: 1, input_tokens: 10, ..Usage::default() };
    let outcome = Outcome { usage, ..Outcome::new(TaskId::new("r1001.decide").unwrap(), player, result) };
    Trial { kind: TaskKind::Decide, outcome, heard }
}

#[test]
fn each_trouble_has_its_advice() {
    let check = |more: &str, heard: Vec<Heard>, expect: &str| {
        let advice = advice(&profile(more), &[trial(Err("no"), heard)]);
        assert!(advice.iter().any(|a| a.contains(expect)), "{expect:?} is not in {advice:?}");
    };
    let only = || Choice::Only("submit".into());
    check("answer = \"native\"\n", vec![heard(Choice::Free, Ok(said("I think so.")))], "set answer = \"submit_tool\"");
    check("", vec![heard(only(), Ok(said("Fine.")))], "ignores tool_choice");
    check("", vec![heard(Choice::Nothing, Ok(submitted()))], "calls tools when none are allowed");
    check("", vec![heard(Choice::Free, Ok(Reply { stop: Stop::Length, ..said("{") }))], "max_output = 8192");
    check("", vec![heard(Choice::Free, Ok(Reply { stop: Stop::Refused, ..said("") }))], "refuses");
    let long = error(Fault::Rejected, "This model's maximum context length is 4096 tokens");
    check("", vec![heard(Choice::Free, Err(long))], "smaller than window = 65536");
    check(
        "timeout_seconds = 7\n",
        vec![heard(Choice::Free, Err(error(Fault::TimedOut, "late")))],
        "timeout_seconds = 7",
    );
    let fine = advice(&profile(""), &[trial(Ok(()), vec![heard(only(), Ok(submitted()))])]);
    assert_eq!(fine, Vec::<String>::new());
}

#[test]
fn model_plays_the_roles_whose_tasks_it_did() {
    let of = |failed: &[TaskKind]| {
        let result = |kind: TaskKind| if failed.contains(&kind) { Err("no") } else { Ok(()) };
        let all = TaskKind::ALL.into_iter().map(|kind| Trial { kind, ..trial(result(kind), vec![]) });
        let (can, cannot) = roles(&all.collect::<Vec<_>>());
        (can, cannot)
    };
    // No tool call: it cannot cite as an Expert.
    assert_eq!(of(&[]), (vec![Role::Director, Role::Critic], vec![Role::Expert]));
    assert_eq!(of(&[TaskKind::Timeline]), (vec![Role::Director], vec![Role::Expert, Role::Critic]));
    assert_eq!(of(&[TaskKind::Plan, TaskKind::Review]).0, []);
    assert_eq!(roles(&[]).0, []);
}
