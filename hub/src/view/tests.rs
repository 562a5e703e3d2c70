use std::cell::RefCell;

use casebook_agent::reasoner::Done;
use casebook_protocol::{Event, FindingDraft, Outcome, Phase};

use super::*;
use crate::tests::script::{Driver, case, domain, honest, perform};

const ROSTER: [&str; 3] = ["endpoint", "identity", "network"];

/// Every task of an honest run with its view as JSON.
fn tasks() -> Vec<(Task, String)> {
    let seen = RefCell::new(Vec::new());
    let mut driver = Driver::open(&case(&ROSTER));
    let reasoner = |task: &Task, done: &[Done]| {
        if done.is_empty() {
            seen.borrow_mut().push((task.clone(), serde_json::to_string(&task.view).unwrap()));
        }
        honest(task, done)
    };
    driver.run(&reasoner, |_| 0);
    seen.into_inner()
}

/// In every view of the kinds, from round 2 on (when there is something to leak), each of `present`
/// stands and none of `absent` does.
#[track_caller]
fn check(kinds: &[TaskKind], present: &[&str], absent: &[&str]) {
    let tasks = tasks();
    let views: Vec<_> = tasks.iter().filter(|(t, _)| kinds.contains(&t.view.kind()) && t.round > 1).collect();
    assert!(!views.is_empty());
    for (task, view) in views {
        for text in present {
            assert!(view.contains(text), "{} should see {text:?}: {view}", task.id);
        }
        for text in absent {
            assert!(!view.contains(text), "{} must not see {text:?}: {view}", task.id);
        }
    }
}

const ALERT: &str = "Module loaded";
const JOURNAL: &str = "entry of r1.plan";
const CLAIM: &str = "was done";
const RATIONALE: &str = "\"rationale\":\"checked\"";
const REVIEW_SUMMARY: &str = "\"summary\":\"reviewed\"";
const NARRATIVE: &str = "story of `thing1`";
/// What only the bytes of a tool result and a quotation of them say.
const RAW: &str = "did thing";
const TOOLS: &str = "searches";

#[test]
fn director_sees_no_bytes_of_evidence() {
    let director = [TaskKind::Plan, TaskKind::Decide, TaskKind::Report];
    check(
        &director,
        &[ALERT, JOURNAL, REVIEW_SUMMARY, RATIONALE, CLAIM, "story ", "knows network", "tool_calls"],
        &[RAW, TOOLS],
    );
}

#[test]
fn director_does_not_see_quotation_that_failed_its_check() {
    let mut driver = Driver::open(&case(&["network"]));
    let lie = |f: FindingDraft| FindingDraft {
        citations: vec![Citation::Literal {
            call: f.citations[0].call().clone(),
            at: casebook_protocol::Locator::Pointer(String::new()),
            quote: "IGNORE ALL".into(),
        }],
        ..f
    };
    let mut seen = Vec::new();
    while let Some((id, task)) = driver.waiting.pop_first() {
        if matches!(task.view, View::Plan(_) | View::Decide(_) | View::Report(_)) {
            seen.push((id, serde_json::to_string(&task.view).unwrap()));
        }
        let (mut outcome, results): (Outcome, _) = perform(&task, &honest);
        if let Ok(casebook_protocol::Answer::Investigate(found)) = &mut outcome.result {
            *found = found.drain(..).map(lie).collect();
        }
        driver.answer(outcome, &results);
    }
    let noted = |e: &casebook_protocol::Recorded| matches!(&e.event, Event::FindingChecked { checked, .. } if checked.citations[0].note.contains("IGNORE"));
    assert!(driver.log.iter().any(noted), "the log has the check in full");
    assert!(seen.len() >= 5 && seen.iter().all(|(_, view)| !view.contains("IGNORE")), "{seen:?}");
}

#[test]
fn expert_sees_no_review_no_timeline_no_other_findings() {
    let absent = [RATIONALE, REVIEW_SUMMARY, "story", "endpoint", "identity"];
    check(&[TaskKind::Investigate], &[ALERT, JOURNAL, "what happened in round", TOOLS, "network-log"], &absent);
}

#[test]
fn reviewing_critic_sees_earlier_findings_only_to_compare() {
    for (task, view) in tasks().iter().filter(|(t, _)| t.view.kind() == TaskKind::Review) {
        let earlier = (1..task.round).map(|round| format!("\"r{round}-"));
        assert!(earlier.clone().all(|id| !view.contains(&id)), "{view}");
        assert!(view.contains(&format!("\"r{}-network-1\"", task.round)));
    }
    check(
        &[TaskKind::Review],
        &[ALERT, "what happened in round", JOURNAL, CLAIM, TOOLS, "quoted text found"],
        &["story", REVIEW_SUMMARY, RATIONALE],
    );
}

#[test]
fn timeline_critic_sees_review_and_timeline_but_no_tools() {
    check(&[TaskKind::Timeline], &[JOURNAL, REVIEW_SUMMARY, RATIONALE, "story "], &[ALERT, TOOLS, "toolset"]);
    let (_, second) = tasks().into_iter().find(|(t, _)| t.id.as_str() == "r2.timeline").unwrap();
    assert!(second.contains(NARRATIVE) && !second.contains("\"finding\":{\"id\":\"r1-"), "{second}");
}

fn contradicting(change_old: impl Fn(&mut FindingDraft), change_new: impl Fn(&mut FindingDraft)) -> usize {
    let mut driver = Driver::open(&case(&["network"]));
    loop {
        let (id, task) = driver.waiting.pop_first().unwrap();
        if id.as_str() == "r2.review" {
            let View::Review(view) = task.view else { panic!() };
            return view.earlier.len();
        }
        let (mut outcome, results) = perform(&task, &honest);
        if let Ok(casebook_protocol::Answer::Investigate(found)) = &mut outcome.result {
            found.truncate(1);
            if task.phase == Phase::Discovery { change_old(&mut found[0]) } else { change_new(&mut found[0]) }
        }
        driver.answer(outcome, &results);
    }
}

#[test]
fn critic_sees_earlier_finding_only_if_contradicted() {
    let exonerates = |f: &mut FindingDraft| f.bearing = Bearing::Exonerating;
    let absent = |f: &mut FindingDraft| (f.kind, f.claim) = (FindingKind::Absence, "no `THING1` anywhere".into());
    let of_host = |f: &mut FindingDraft| f.entities[0].kind = EntityKind::Host;
    let nothing = |_: &mut FindingDraft| {};
    assert_eq!(contradicting(nothing, nothing), 0);
    assert_eq!(contradicting(nothing, exonerates), 1);
    assert_eq!(contradicting(nothing, absent), 1);
    let says =
        |claim: &'static str| move |f: &mut FindingDraft| (f.kind, f.claim) = (FindingKind::Absence, claim.into());
    assert_eq!(contradicting(nothing, says("no process other than `THING1`")), 0, "what an absence excepts is there");
    let over = |from: &str, to: &str| {
        let call = casebook_protocol::CallId::new("r2.investigate.network.t1.0").unwrap();
        let edges = [from, to].map(|edge| Some(edge.parse().unwrap()));
        let at = casebook_protocol::Locator::Pointer("/total".into());
        move |f: &mut FindingDraft| {
            absent(f);
            let (call, at, [from, to]) = (call.clone(), at.clone(), edges);
            f.citations = vec![Citation::Absence { call, at, from, to, again: None }];
        }
    };
    assert_eq!(contradicting(nothing, over("1970-01-01T00:00:00Z", "2100-01-01T00:00:00Z")), 1);
    assert_eq!(contradicting(nothing, over("2100-01-01T00:00:00Z", "2101-01-01T00:00:00Z")), 0, "another window");
    assert_eq!(contradicting(of_host, |f| (exonerates(f), of_host(f)).1), 0, "a shared host does not contradict");
}

#[test]
fn tasks_of_one_step_share_what_is_left_of_the_tool_calls() {
    let mut small = case(&ROSTER);
    small.budget.tool_calls = 10;
    let mut driver = Driver::open(&small);
    driver.run(
        &|task, done| {
            let granted = task.allowance.tool_calls;
            match task.view.kind() {
                TaskKind::Investigate if task.round == 1 => assert_eq!(granted, 4),
                TaskKind::Review if task.round == 1 => assert_eq!(granted, 4),
                _ => {}
            }
            honest(task, done)
        },
        |n| n - 1,
    );
}

#[test]
fn unknown_task_has_no_view() {
    let driver = Driver::open(&case(&ROSTER));
    assert_eq!(build(&State::default(), TaskKind::Plan, None), None);
    assert_eq!(build(&driver.state, TaskKind::Investigate, Some(&domain("moon"))), None);
    assert_eq!(build(&driver.state, TaskKind::Timeline, None), None);
}
