use casebook_report::compare::stable;
use std::collections::BTreeSet;

use casebook_agent::reasoner::{Action, Done};
use casebook_protocol::{Answer, Decision, Event, Question, Recorded, Task, TaskId, View};
use proptest::prelude::*;

use super::*;
use crate::report;
use crate::state::{Case, State};
use crate::tests::script::{Driver, case, domain, findings, honest};

const ROSTER: [&str; 3] = ["endpoint", "identity", "network"];

fn kinds(log: &[Recorded]) -> String {
    let words = log.iter().filter_map(|e| match &e.event {
        Event::RoundStarted { phase, .. } => Some(format!("| {}", phase.name())),
        Event::TaskRequested { kind, domain: Some(domain), .. } => Some(format!("{}:{domain}", kind.name())),
        Event::TaskRequested { kind, .. } => Some(kind.name().to_owned()),
        Event::Stopping { .. } => Some("STOP".into()),
        Event::NotInvestigated { .. } => Some("PAUSE".into()),
        Event::Closed {} => Some("closed".into()),
        _ => None,
    });
    words.collect::<Vec<_>>().join(" ")
}

/// The flow when the task of this id fails and every other is answered.
#[track_caller]
fn check(failing: &str, expect: &str) {
    let mut driver = Driver::open(&case(&["endpoint", "network"]));
    driver.run(
        &|task, done| if task.id.as_str() == failing { Action::GiveUp("no".into()) } else { honest(task, done) },
        |_| 0,
    );
    assert_eq!(kinds(&driver.log), expect);
}

const DISCOVERY: &str = "| discovery plan investigate:endpoint investigate:network review timeline decide";
const TRACE: &str = "| trace plan investigate:network review timeline decide";
const END: &str = "| conclude report closed";

#[test]
fn discovery_then_trace_then_conclude() {
    check("", &format!("{DISCOVERY} {TRACE} {TRACE} {END}"));
}

#[test]
fn no_failure_hangs_the_flow() {
    check("r1.plan", &format!("{DISCOVERY} {TRACE} {TRACE} {END}"));
    check("r1.investigate.endpoint", &format!("{DISCOVERY} {TRACE} {TRACE} {END}"));
    check(
        "r1.review",
        &format!("{} decide {TRACE} {TRACE} {END}", DISCOVERY.strip_suffix(" timeline decide").unwrap()),
    );
    check("r1.timeline", &format!("{DISCOVERY} {TRACE} {TRACE} {END}"));
    check("r1.decide", &format!("{DISCOVERY} STOP {END}"));
    check("r2.plan", &format!("{DISCOVERY} | trace plan STOP {END}"));
    check("r2.investigate.network", &format!("{DISCOVERY} | trace plan investigate:network decide {TRACE} {END}"));
    check("r4.report", &format!("{DISCOVERY} {TRACE} {TRACE} {END}"));
}

/// An Expert without an answer in these rounds; in `calling` it makes a tool call first.
fn mute(rounds: std::ops::Range<u32>, calling: bool) -> impl Fn(&Task, &[Done]) -> Action {
    move |task, done| match &task.view {
        View::Investigate(_) if rounds.contains(&task.round) && (!calling || !done.is_empty()) => {
            Action::GiveUp("model m: HTTP 401".into())
        }
        _ => honest(task, done),
    }
}

#[test]
fn no_verdict_until_an_expert_answers() {
    let mut driver = Driver::open(&Case {
        budget: casebook_protocol::Budget { rounds: 2, ..casebook_protocol::Budget::default() },
        ..case(&["endpoint", "network"])
    });
    driver.run(&mute(1..3, false), |_| 0);
    let paused = "| discovery plan investigate:endpoint investigate:network PAUSE";
    assert_eq!(
        kinds(&driver.log),
        format!("{paused} {paused} {DISCOVERY} {TRACE} {END}"),
        "two rounds may be decided, and those without an answer do not count"
    );
    let reasons = driver.log.iter().filter_map(|e| match &e.event {
        Event::NotInvestigated { reason } => Some(reason.as_str()),
        _ => None,
    });
    assert_eq!(reasons.collect::<Vec<_>>(), ["model m: HTTP 401"; 2], "equal reasons stand once");
}

#[test]
fn what_an_expert_has_examined_is_judged_and_the_built_in_analyst_examines() {
    let mut driver = Driver::open(&case(&["endpoint"]));
    driver.run(&mute(1..2, true), |_| 0);
    assert!(!kinds(&driver.log).contains("PAUSE"), "a tool call was made: {}", kinds(&driver.log));
    let mut driver = Driver::open(&case(&["endpoint", "network"]));
    driver.run(&mute(2..9, false), |_| 0);
    assert!(!kinds(&driver.log).contains("PAUSE"), "the first round has findings: {}", kinds(&driver.log));
    let mut driver = Driver::open(&case(&["network"]));
    let task = driver.until("r1.investigate.network");
    let (mut outcome, _) = crate::tests::script::perform(&task, &mute(1..2, false));
    outcome.player.built_in = true;
    driver.answer(outcome, &[]);
    assert_eq!(driver.state.not_investigated, None);
}

#[test]
fn pause_takes_no_working_time_and_needs_a_command_to_end() {
    let mut driver = Driver::open(&case(&["network"]));
    let task = driver.until("r1.investigate.network");
    let (outcome, _) = crate::tests::script::perform(&task, &mute(1..2, false));
    driver.answer(outcome, &[]);
    let worked = driver.state.worked;
    driver.seconds += 86_400;
    assert_eq!(driver.take(&[crate::decide::Command::Tick { now: driver.now() }]).recorded.len(), 0);
    assert_eq!((driver.state.worked_until(driver.now()), next(&driver.state)), (worked, vec![]));
    let again = driver.take(&[crate::decide::Command::GoOn, crate::decide::Command::GoOn]);
    assert!(again.answers[0].is_ok() && again.answers[1].is_err());
    assert_eq!((driver.state.worked, driver.state.round, driver.state.not_investigated.clone()), (worked, 2, None));
}

#[test]
fn stop_waits_for_tasks_under_way() {
    let mut driver = Driver::open(&case(&["endpoint", "network"]));
    let plan = driver.waiting.remove(&TaskId::new("r1.plan").unwrap()).unwrap();
    let (outcome, _) = crate::tests::script::perform(&plan, &honest);
    driver.answer(outcome, &[]);
    driver.take(&[crate::decide::Command::Stop { reason: "asked to".into() }]);
    assert_eq!(next(&driver.state), []);
    driver.run(&honest, |_| 0);
    assert_eq!(kinds(&driver.log), format!("| discovery plan investigate:endpoint investigate:network STOP {END}"));
    assert_eq!(report::build(&driver.state).unwrap().stop_reason.as_deref(), Some("asked to"));
}

#[test]
fn round_without_findings_asks_no_critic() {
    let mut driver = Driver::open(&case(&["endpoint"]));
    driver.run(
        &|task, done| match &task.view {
            View::Investigate(_) => Action::Answer(Box::new(Answer::Investigate(vec![]))),
            _ => honest(task, done),
        },
        |_| 0,
    );
    assert!(!kinds(&driver.log).contains("review"));
    assert!(
        driver
            .log
            .iter()
            .any(|e| matches!(&e.event, Event::Reviewed { review } if review.round == 1 && review.findings.is_empty()))
    );
}

/// SplitMix64 over a seed and a name.
fn dice(seed: u64, name: &str) -> u64 {
    let mut z =
        name.bytes().fold(seed ^ 0x9e37_79b9_7f4a_7c15, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A team that fails, answers with the wrong kind, asks whom it may not and never wants to end.
fn wild(seed: u64, task: &Task, done: &[Done]) -> Action {
    let roll = dice(seed, task.id.as_str());
    let answer = match (roll % 10, &task.view) {
        (0 | 1, _) => return Action::GiveUp("rolled a failure".into()),
        (2, View::Plan(_)) => Answer::Plan(
            Question { text: "?".into(), to: vec![domain("moon"), domain("network")], follow: vec![] }.into(),
        ),
        (3, View::Plan(_)) => {
            Answer::Plan(Question { text: "?".into(), to: vec![domain("moon")], follow: vec![] }.into())
        }
        (2..=5, View::Decide(_)) => Answer::Decide(Decision { next: Move::Stay, reason: "more".into() }),
        (2 | 3, View::Investigate(_)) => Answer::Investigate(vec![]),
        (4, View::Investigate(_)) if !done.is_empty() => {
            Answer::Investigate([findings(task, &done[0]), findings(task, &done[0])].concat())
        }
        (5..=7, View::Investigate(_)) if !done.is_empty() => {
            Answer::Investigate(findings(task, &done[0])[..1].to_vec())
        }
        _ => return honest(task, done),
    };
    Action::Answer(Box::new(answer))
}

/// A case whose budget may end it anywhere.
fn wild_case(seed: u64) -> Case {
    let mut case = case(&ROSTER);
    case.budget.tool_calls = 3 + seed % 24;
    case
}

fn run_wild(seed: u64, order: u64) -> Driver {
    let mut driver = Driver::open(&wild_case(seed));
    let mut turn = 0;
    driver.run(&|task, done| wild(seed, task, done), |n| {
        turn += 1;
        usize::try_from(dice(order, &turn.to_string())).unwrap_or(0) % n
    });
    driver
}

/// What holds at every event of every log.
fn invariants(log: &[Recorded]) {
    let mut before = State::default();
    for entry in log {
        let ended = |kind| {
            before
                .tasks
                .values()
                .filter(|t| t.round == before.round && t.kind == kind)
                .all(|t| t.progress != Progress::Requested)
        };
        match &entry.event {
            Event::TaskRequested { kind, domain, .. } => {
                assert!(domain.iter().all(|d| ROSTER.contains(&d.as_str())), "{domain:?} is not on the roster");
                let found = before.this_round().is_some_and(|r| !r.findings.is_empty());
                let reviewed = before.task(TaskKind::Review, None).is_some();
                if *kind == TaskKind::Decide {
                    assert!(!found || reviewed, "the Critic was skipped");
                }
                if matches!(kind, TaskKind::Review | TaskKind::Decide) {
                    assert!(ended(TaskKind::Investigate));
                }
            }
            Event::RoundStarted { phase: Phase::Trace, .. } if before.phase == Phase::Discovery => {
                let asked: BTreeSet<_> = before
                    .tasks
                    .values()
                    .filter(|t| t.kind == TaskKind::Investigate)
                    .filter_map(|t| t.domain.clone())
                    .collect();
                assert_eq!(asked.len(), ROSTER.len(), "discovery was left before every Expert was asked");
                assert!(ended(TaskKind::Investigate));
            }
            Event::RoundStarted { phase, .. } => assert!(*phase != Phase::Trace || before.phase == Phase::Trace),
            _ => {}
        }
        before.apply(entry);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn flow_ends_and_keeps_its_rules_with_any_answers(seed in any::<u64>(), order in any::<u64>()) {
        let driver = run_wild(seed, order);
        prop_assert!(driver.state.conclusion.is_some());
        invariants(&driver.log);
        let report = report::build(&driver.state).unwrap();
        prop_assert_eq!(report.usage.rounds as usize, driver.state.rounds.len() - 1);
    }

    #[test]
    fn report_does_not_depend_on_the_order_of_answers(seed in any::<u64>(), a in any::<u64>(), b in any::<u64>()) {
        let [one, two] = [a, b].map(|order| stable(&report::build(&run_wild(seed, order).state).unwrap()));
        prop_assert_eq!(one, two);
    }

    #[test]
    fn hub_restarted_at_any_append_gives_the_same_report(seed in any::<u64>()) {
        let whole = run_wild(seed, 1);
        let expect = stable(&report::build(&whole.state).unwrap());
        for cut in &whole.cuts {
            let mut again = Driver { state: State::replay(&whole.log[..*cut]), log: whole.log[..*cut].to_vec(), ..Driver::open(&wild_case(seed)) };
            prop_assert_eq!(&again.state, &again.log.iter().fold(State::default(), |mut s, e| { s.apply(e); s }));
            again.waiting = again.state.in_flight().map(|(id, t)| {
                let view = crate::view::build(&again.state, t.kind, t.domain.as_ref()).unwrap();
                (id.clone(), crate::view::task(&again.state, id, view).unwrap())
            }).collect();
            again.run(&|task, done| wild(seed, task, done), |_| 0);
            prop_assert_eq!(&stable(&report::build(&again.state).unwrap()), &expect);
        }
    }
}
