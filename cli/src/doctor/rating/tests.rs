use casebook_agent::model::config::Config;
use casebook_agent::model::{Answered, Ask, AskError, Called};
use casebook_protocol::Tokens;
use casebook_protocol::{
    Answer, ArtifactId, Decision, ModelCall, ModelCallId, Move, Outcome, Player, TaskId, Timestamp,
};

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

fn heard(choice: Choice, result: Result<Reply, AskError>, seconds: u64) -> Heard {
    let tokens = Tokens { input: 10, output: 1, ..Tokens::default() };
    let result = result.map(|reply| Answered { reply, version: "m-1".into(), tokens, cost_micros: 1, attempts: 1 });
    Heard { ask: ask(choice), result, took: Duration::from_secs(seconds) }
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

fn trial(result: Result<(), &str>, repaired: bool, heard: Vec<Heard>) -> Trial {
    let call = ModelCall {
        id: ModelCallId::new("r1001.decide.m1").unwrap(),
        model: "m".into(),
        version: "m-1".into(),
        prompt: "decide 1".into(),
        purpose: if repaired { Purpose::Repair } else { Purpose::Turn },
        request: ArtifactId::of(b""),
        request_bytes: 0,
        reply: None,
        failed: None,
        attempts: 1,
        usage: Usage::default(),
        started: Timestamp::UNIX_EPOCH,
        ended: Timestamp::UNIX_EPOCH,
    };
    let outcome = Outcome {
        task: TaskId::new("r1001.decide").unwrap(),
        player: Player { name: "m".into(), version: "m-1".into(), built_in: false },
        result: result
            .map(|()| Answer::Decide(Decision { next: Move::Advance, reason: "enough".into() }))
            .map_err(str::to_owned),
        journal: vec![],
        calls: vec![],
        asked: vec![call],
        raised: vec![],
        usage: Usage { model_calls: 1, input_tokens: 10, ..Usage::default() },
    };
    Trial { kind: TaskKind::Decide, outcome, heard }
}

#[test]
fn the_grade_says_what_held_and_the_counts_how_often() {
    let good = trial(Ok(()), false, vec![heard(Choice::Free, Ok(submitted()), 3)]);
    let repaired = trial(Ok(()), true, vec![heard(Choice::Free, Ok(submitted()), 1)]);
    let failed = trial(Err("no"), false, vec![heard(Choice::Free, Ok(submitted()), 9)]);
    let rate = |trials: &[Trial]| rate(&profile(""), trials);
    assert_eq!(rate(std::slice::from_ref(&good)).grade, Grade::Good);
    let mixed = rate(&[good, repaired, failed.clone()]);
    assert_eq!((mixed.grade, mixed.version.as_deref(), mixed.usage.model_calls), (Grade::Poor, Some("m-1"), 3));
    assert_eq!(mixed.latency, Some([1, 3, 9].map(Duration::from_secs)));
    let [tally] = mixed.tasks.as_slice() else { panic!("{mixed:?}") };
    assert_eq!(
        (tally.trials, tally.at_once, tally.repaired, tally.failures.as_slice()),
        (3, 1, 1, &["no".to_owned()][..])
    );
    assert_eq!(rate(&[failed]).grade, Grade::Unfit);
    assert_eq!(rate(&[]).grade, Grade::Unfit);
}

#[test]
fn each_trouble_has_its_advice() {
    let check = |more: &str, heard: Vec<Heard>, expect: &str| {
        let advice = rate(&profile(more), &[trial(Err("no"), false, heard)]).advice;
        assert!(advice.iter().any(|a| a.contains(expect)), "{expect:?} is not in {advice:?}");
    };
    let only = || Choice::Only("submit".into());
    check(
        "answer = \"native\"\n",
        vec![heard(Choice::Free, Ok(said("I think so.")), 1)],
        "set answer = \"submit_tool\"",
    );
    check("", vec![heard(only(), Ok(said("Fine.")), 1)], "ignores tool_choice");
    check("", vec![heard(Choice::Nothing, Ok(submitted()), 1)], "calls tools when it is told");
    check("", vec![heard(Choice::Free, Ok(Reply { stop: Stop::Length, ..said("{") }), 1)], "max_output = 8192");
    check("", vec![heard(Choice::Free, Ok(Reply { stop: Stop::Refused, ..said("") }), 1)], "refuses");
    let long = error(Fault::Rejected, "This model's maximum context length is 4096 tokens");
    check("", vec![heard(Choice::Free, Err(long), 1)], "smaller than window = 65536");
    check(
        "timeout_seconds = 7\n",
        vec![heard(Choice::Free, Err(error(Fault::TimedOut, "late")), 1)],
        "timeout_seconds = 7",
    );
    let fine = rate(&profile(""), &[trial(Ok(()), false, vec![heard(only(), Ok(submitted()), 1)])]);
    assert_eq!(fine.advice, Vec::<String>::new());
}
