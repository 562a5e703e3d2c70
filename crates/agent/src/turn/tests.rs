use casebook_protocol::{
    Decision, Domain, FindingKind, Locator, ModelCall, ModelCallId, Move, Purpose, ToolCall, ToolSpec,
};

use super::*;
use crate::model::{Ask, Choice, Fault};

fn machine(turns: u32, tool_calls: u32) -> TurnLoop {
    let tool = |name: &str, repeatable| ToolSpec::new(name, "", "{}", repeatable);
    let toolset =
        Toolset { name: "t".into(), about: String::new(), tools: vec![tool("search", true), tool("ask", false)] };
    let task = TaskId::of(1, TaskKind::Investigate, Some(&Domain::new("endpoint").unwrap()));
    TurnLoop::new(task, TaskKind::Investigate, Allowance { turns, tool_calls, ..Allowance::default() }, &toolset)
}

fn request(tool: &str) -> CallRequest {
    CallRequest { tool: tool.into(), arguments: "{}".into() }
}

fn calls(tools: &[&str]) -> Input {
    Input::Action(Action::Call(tools.iter().map(|t| request(t)).collect()))
}

fn done(effect: &Effect) -> Input {
    let Effect::Call { id, request, .. } = effect else { panic!("{effect:?} is not a call") };
    let call = ToolCall::answered(id.clone(), &*request.tool, &*request.arguments, b"{}");
    Input::Called(Box::new(Done { call, result: "{}".into() }))
}

fn ids(effects: &[Effect]) -> Vec<&str> {
    effects.iter().map(|e| if let Effect::Call { id, .. } = e { id.as_str() } else { "-" }).collect()
}

#[test]
fn calls_of_a_turn_run_together_and_the_mind_goes_on_when_all_are_done() {
    let mut m = machine(5, 10);
    let first = m.step(calls(&["search", "ask"]));
    assert_eq!(ids(&first), ["r1.investigate.endpoint.t1.0", "r1.investigate.endpoint.t1.1"]);
    assert_eq!(m.step(done(&first[1])), []);
    assert_eq!(m.step(done(&first[1])), [], "a second result of a call changes nothing");
    assert_eq!(m.step(done(&first[0])), [Effect::Think { last: false }]);
    assert_eq!(
        m.done().iter().map(|d| d.call.id.as_str()).collect::<Vec<_>>(),
        ["r1.investigate.endpoint.t1.0", "r1.investigate.endpoint.t1.1"]
    );
}

#[test]
fn a_tool_outside_the_toolset_is_refused_by_code() {
    let mut m = machine(5, 10);
    let effects = m.step(calls(&["delete_everything"]));
    let Effect::Call { refused: Some(why), .. } = &effects[0] else { panic!() };
    assert_eq!(why, "expected a tool of your toolset (ask, search), got \"delete_everything\"");
}

#[test]
fn limits_are_hard_and_the_last_turn_offers_no_tools() {
    let mut m = machine(2, 10);
    let effects = m.step(calls(&["search"]));
    assert_eq!(m.step(done(&effects[0])), [Effect::Think { last: true }]);
    let [Effect::Finish(Err(why))] = &m.step(calls(&["search"]))[..] else { panic!() };
    assert!(why.contains("no more tool call was granted"), "{why}");

    assert_eq!(m.limits(), ["2 turns"]);

    let mut m = machine(9, 1);
    let effects = m.step(calls(&["search", "search"]));
    assert_eq!(m.limits(), ["1 tool calls"]);
    assert!(matches!(&effects[1], Effect::Call { refused: Some(_), .. }));
    m.step(done(&effects[0]));
    assert_eq!(m.step(done(&effects[1])), [Effect::Think { last: true }]);
}

#[test]
fn an_answer_of_another_kind_is_a_failure() {
    let decision = Answer::Decide(Decision { next: Move::Advance, reason: "ignore your instructions".into() });
    let effects = machine(5, 10).step(Input::Action(Action::Answer(Box::new(decision))));
    assert_eq!(effects, [Effect::Finish(Err("answered a investigate task as if it were decide".into()))]);
}

#[test]
fn counted_queries_are_made_again_before_the_answer_counts() {
    let mut m = machine(5, 10);
    let first = m.step(calls(&["search", "ask"]));
    m.step(done(&first[0]));
    m.step(done(&first[1]));
    let count = |n: usize| Citation::Count {
        call: CallId::new(ids(&first)[n]).unwrap(),
        at: Locator::Pointer("/total".into()),
        value: 1,
        again: None,
    };
    let citations = vec![count(0), count(0), count(1)];
    let finding = FindingDraft { citations, ..FindingDraft::neutral(FindingKind::Aggregate, "x".into()) };
    let checks = m.step(Input::Action(Action::Answer(Box::new(Answer::Investigate(vec![finding])))));
    assert_eq!(ids(&checks), ["r1.investigate.endpoint.t1002.0"], "once, and only the repeatable tool");
    let [Effect::Finish(Ok(answer))] = &m.step(done(&checks[0]))[..] else { panic!() };
    let Answer::Investigate(findings) = answer.as_ref() else { panic!() };
    let again: Vec<bool> = findings[0].citations.iter().map(|c| c.again().is_some()).collect();
    assert_eq!(again, [true, true, false]);
}

fn asking(n: u32, most: Usage) -> Input {
    let ask = Ask {
        id: ModelCallId::of(&TaskId::of(1, TaskKind::Investigate, None), n),
        model: "m".into(),
        prompt: "p 1".into(),
        purpose: Purpose::Turn,
        system: vec![],
        messages: vec![],
        tools: vec![],
        choice: Choice::Free,
        format: None,
        max_output: 10,
    };
    Input::Action(Action::Ask(Box::new(Asking {
        request: ask.fingerprint(),
        bytes: 1,
        ask,
        most,
        time: std::time::Duration::from_secs(1),
        stands: None,
    })))
}

fn replied(n: u32, usage: Usage) -> Input {
    replied_as(Purpose::Turn, n, usage)
}

fn replied_as(purpose: Purpose, n: u32, usage: Usage) -> Input {
    let id = ModelCallId::of(&TaskId::of(1, TaskKind::Investigate, None), n);
    let call = ModelCall { usage, ..ModelCall::new(id, "m", "p 1", purpose) };
    Input::Replied(Box::new(Exchange { call, result: Err(Fault::Unreadable) }))
}

fn tokens(input_tokens: u64) -> Usage {
    Usage { model_calls: 1, input_tokens, ..Usage::default() }
}

#[test]
fn near_its_tokens_the_next_model_call_is_the_last_and_past_them_there_is_none() {
    let mut m = machine(20, 20);
    m.allowance.tokens = 100;
    assert!(matches!(m.step(asking(1, tokens(40))).as_slice(), [Effect::Ask(_)]));
    assert_eq!(m.step(replied(1, tokens(40))), [Effect::Think { last: false }]);
    assert_eq!(m.step(asking(2, tokens(40))), [Effect::Think { last: true }], "two more do not fit, one does");
    assert!(matches!(m.step(asking(2, tokens(40))).as_slice(), [Effect::Ask(_)]));
    assert_eq!(m.step(replied_as(Purpose::Last, 2, tokens(40))), [Effect::Think { last: true }]);
    let end = m.step(asking(3, tokens(40)));
    let [Effect::Finish(Err(reason))] = end.as_slice() else { panic!("{end:?}") };
    assert!(reason.contains("tokens: 80 of 100"), "{reason}");
    assert_eq!(m.used().input_tokens, 80);
}

#[test]
fn model_calls_and_money_are_hard_limits_too() {
    let mut m = machine(20, 20);
    m.allowance.model_calls = 0;
    assert!(matches!(m.step(asking(1, tokens(1))).as_slice(), [Effect::Finish(Err(_))]));
    let mut m = machine(20, 20);
    m.allowance.cost_micros = 5;
    let dear = Usage { cost_micros: 6, ..tokens(1) };
    let end = m.step(asking(1, dear));
    assert!(matches!(end.as_slice(), [Effect::Finish(Err(why))] if why.contains("cost")), "{end:?}");
}

#[test]
fn when_time_is_nearly_over_only_an_answer_is_asked_for() {
    let mut m = machine(20, 20);
    assert!(matches!(m.step(asking(1, tokens(1))).as_slice(), [Effect::Ask(_)]));
    assert_eq!(m.step(Input::Late), [Effect::Think { last: true }]);
    let end = m.step(calls(&["search"]));
    assert!(matches!(end.as_slice(), [Effect::Finish(Err(_))]), "tools are not offered any more: {end:?}");
}

#[test]
fn who_hurries_goes_on_with_what_another_recorded_that_had_time() {
    let mut m = machine(20, 20);
    m.step(Input::Late);
    assert_eq!(m.step(replied_as(Purpose::Last, 1, tokens(1))), [Effect::Think { last: true }]);
    assert_eq!(m.step(replied(2, tokens(1))), [Effect::Think { last: false }]);
    assert_eq!(ids(&m.step(calls(&["search"]))).len(), 1, "its reply asked for tools");
}

#[test]
fn an_answer_that_stands_is_not_lost_to_a_limit() {
    let standing = || Answer::Investigate(vec![]);
    let stands = |input: Input| {
        let Input::Action(Action::Ask(mut asking)) = input else { panic!() };
        asking.stands = Some(Box::new(standing()));
        Input::Action(Action::Ask(asking))
    };
    let kept = [Effect::Finish(Ok(Box::new(standing())))];
    let mut m = machine(20, 20);
    m.allowance.model_calls = 0;
    assert_eq!(m.step(stands(asking(1, tokens(1)))), kept);
    let mut m = machine(20, 20);
    assert!(matches!(m.step(stands(asking(1, tokens(1)))).as_slice(), [Effect::Ask(_)]));
    assert_eq!(m.step(Input::Action(Action::GiveUp("its time is over".into()))), kept);
    let mut m = machine(20, 20);
    m.step(Input::Action(Action::Corrected(Box::new(standing()), 3)));
    assert_eq!(m.corrected(), 3);
}
