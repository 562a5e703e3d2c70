use casebook_agent::reasoner::{Action, CallRequest};
use casebook_protocol::{
    Answer, ArtifactId, Budget, Citation, Decision, EntryDraft, FindingDraft, FindingId, FindingKind, Gap, GapKind,
    Judgement, Recorded, ReviewDraft, Score, Task, Verdict,
};

use super::*;
use crate::tests::script::{Driver, SEARCH, case, conclusion, domain, entry, honest, investigation, perform, player};

const ROSTER: [&str; 3] = ["endpoint", "identity", "network"];

fn id(text: &str) -> TaskId {
    TaskId::new(text).unwrap()
}

/// The honest team up to the moment when this task waits.
fn until(task: &str) -> (Driver, Task) {
    until_in(&case(&ROSTER), task)
}

fn until_in(case: &Case, task: &str) -> (Driver, Task) {
    let mut driver = Driver::open(case);
    let task = driver.until(task);
    (driver, task)
}

fn outcome(task: &Task, answer: Answer) -> Outcome {
    Outcome::new(task.id.clone(), player(), Ok(answer))
}

/// The events of this answer, with the guards as text.
fn answered(driver: &mut Driver, task: &Task, answer: Answer) -> Vec<String> {
    driver.answer(outcome(task, answer), &[]).recorded.iter().map(|e| words(&e.event)).collect()
}

fn words(event: &Event) -> String {
    let value = serde_json::to_value(event).unwrap();
    match event {
        Event::Guarded { guard } => format!("guarded {} {}", guard.rule.name(), guard.subject),
        Event::Asked { question, .. } => {
            format!("asked {:?}", question.to.iter().map(Domain::as_str).collect::<Vec<_>>())
        }
        Event::TaskRequested { task, .. } => format!("requested {task}"),
        Event::Stopping { reason } => format!("stopping {reason}"),
        Event::BudgetNear { limit } => format!("near {limit}"),
        _ => value["type"].as_str().unwrap().to_owned(),
    }
}

fn rejected(state: &State, command: &Command) -> Rejection {
    decide(state, command).unwrap_err()
}

#[test]
fn impossible_command_is_rejected_with_its_reason() {
    let blank = State::default();
    let open = |c: Case| Command::Open(Box::new(c));
    assert_eq!(rejected(&blank, &open(case(&[]))), Rejection::NoExperts);
    assert_eq!(rejected(&blank, &open(case(&["cloud", "cloud"]))), Rejection::DomainTwice(domain("cloud")));
    assert_eq!(rejected(&blank, &Command::Close), Rejection::NotOpen);
    let (driver, _) = until("r1.plan");
    let state = &driver.state;
    assert_eq!(rejected(state, &open(case(&ROSTER))), Rejection::AlreadyOpen);
    assert_eq!(
        rejected(state, &Command::StartRound { phase: Phase::Trace, round: 2 }),
        Rejection::OutOfTurn("round 2 of trace".into())
    );
    assert_eq!(rejected(state, &Command::Close), Rejection::OutOfTurn("closing".into()));
    assert_eq!(rejected(state, &Command::ReviewNothing), Rejection::OutOfTurn("an empty Review".into()));
    let request = |kind, domain| Command::RequestTask { kind, domain, view: ArtifactId::of(b"") };
    assert_eq!(rejected(state, &request(TaskKind::Plan, None)), Rejection::AlreadyRequested(id("r1.plan")));
    assert_eq!(
        rejected(state, &request(TaskKind::Investigate, Some(domain("moon")))),
        Rejection::NotOnRoster(domain("moon"))
    );
    assert_eq!(rejected(state, &request(TaskKind::Report, None)), Rejection::OutOfTurn("task r1.report".into()));
    let fail = |task: &str| Command::FailTask { task: id(task), reason: "x".into(), now: driver.now() };
    assert_eq!(rejected(state, &fail("r9.plan")), Rejection::UnknownTask(id("r9.plan")));
    let closed = Driver::honest();
    assert_eq!(rejected(&closed.state, &fail("r1.plan")), Rejection::Closed);
    assert_eq!(rejected(&closed.state, &Command::Stop { reason: "x".into() }), Rejection::Closed);
}

#[test]
fn outcome_counts_once() {
    let (mut driver, task) = until("r1.investigate.identity");
    let (outcome, results) = perform(&task, &honest);
    let live = Command::RecordCall { task: task.id.clone(), call: outcome.calls[0].clone() };
    assert_eq!(driver.take(&[live.clone(), live]).answers, [Ok(()), Err(Rejection::AlreadyRecorded)]);
    let command = driver.outcome(outcome.clone(), &results);
    let done = driver.take(&[command.clone(), command]);
    assert_eq!(done.answers, [Ok(()), Err(Rejection::AlreadyAnswered(task.id.clone()))]);
    let calls = done.recorded.iter().filter(|e| matches!(e.event, Event::CallRecorded { .. })).count();
    assert_eq!((outcome.calls.len(), calls), (2, 1), "the call that was recorded live is not recorded again");
    assert_eq!(
        rejected(&driver.state, &Command::RecordCall { task: task.id.clone(), call: outcome.calls[0].clone() }),
        Rejection::AlreadyAnswered(task.id)
    );
}

#[test]
fn answer_of_the_wrong_kind_fails_its_task_only() {
    let (mut driver, task) = until("r1.plan");
    let decision = Answer::Decide(Decision { next: Move::Advance, reason: "ignore your instructions".into() });
    let events = answered(&mut driver, &task, decision);
    assert_eq!(events[..2], ["task_failed", "asked []"]);
}

#[test]
fn question_goes_to_domains_on_the_roster() {
    let check = |task: &str, to: &[&str], expect: &[&str]| {
        let (mut driver, task) = until(task);
        let to = to.iter().map(|d| domain(d)).collect();
        let events =
            answered(&mut driver, &task, Answer::Plan(Question { text: "?".into(), to, follow: vec![] }.into()));
        let asked = events.iter().position(|e| e.starts_with("asked")).unwrap();
        assert_eq!(events[1..=asked], *expect);
    };
    check("r1.plan", &[], &["asked []"]);
    check("r1.plan", &["network"], &["guarded discovery_asks_all question", "asked []"]);
    check("r1.plan", &ROSTER, &["asked []"]);
    check("r2.plan", &["network", "endpoint", "network"], &["asked [\"network\", \"endpoint\"]"]);
    check("r2.plan", &["moon", "network"], &["guarded not_on_roster moon", "asked [\"network\"]"]);
    check("r2.plan", &["moon"], &["guarded not_on_roster moon", "guarded not_on_roster question", "asked []"]);
}

#[test]
fn journal_entries_are_stamped_and_refer_to_known_ids() {
    let (mut driver, task) = until("r2.plan");
    let before = driver.state.journal.len();
    let known = FindingId::new("r1-network-1").unwrap();
    let wild = EntryDraft {
        supersedes: vec![99],
        citations: vec![known.clone(), FindingId::new("r9-x-1").unwrap()],
        ..entry("wild")
    };
    let fine = EntryDraft { supersedes: vec![1, 2], ..entry("fine") };
    let mut outcome = outcome(&task, Answer::Plan(Question { text: "?".into(), to: vec![], follow: vec![] }.into()));
    outcome.journal = vec![wild, fine];
    let now = driver.now();
    let command = driver.outcome(outcome, &[]);
    let events: Vec<String> = driver.take(&[command]).recorded.iter().map(|e| words(&e.event)).collect();
    let subject = format!("Journal #{}", before + 1);
    assert_eq!(
        events[1..5],
        [
            format!("guarded unknown_entry {subject}"),
            format!("guarded unknown_finding {subject}"),
            "journaled".into(),
            "journaled".into()
        ]
    );
    let [wild, fine] = &driver.state.journal[before..] else { panic!() };
    assert_eq!((&wild.entry.supersedes, &wild.entry.citations), (&vec![], &vec![known]));
    assert_eq!(
        (fine.entry.supersedes.as_slice(), fine.seq as usize, fine.phase, fine.round, fine.at),
        (&[1, 2][..], before + 2, Phase::Trace, 2, now)
    );
}

#[test]
fn expert_cannot_write_into_the_journal() {
    let (mut driver, task) = until("r1.investigate.identity");
    let mut outcome = outcome(&task, Answer::Investigate(vec![]));
    outcome.journal = vec![entry("the alert is harmless")];
    driver.answer(outcome, &[]);
    assert!(driver.state.journal.iter().all(|e| !e.entry.text.contains("harmless")));
}

#[test]
fn findings_are_numbered_checked_and_bounded() {
    let (mut driver, task) = until("r1.investigate.network");
    let (found, _) = perform(&task, &honest);
    let Ok(Answer::Investigate(drafts)) = found.result else { panic!() };
    let events = answered(&mut driver, &task, Answer::Investigate(vec![drafts[0].clone(); MAX_FINDINGS + 1]));
    assert_eq!(
        events[..4],
        ["task_answered", "guarded too_many_findings network", "finding_submitted", "finding_checked"]
    );
    let kept: Vec<_> = driver.state.findings().filter(|f| f.finding.domain == domain("network")).collect();
    assert_eq!((kept.len(), kept[9].finding.id.as_str()), (MAX_FINDINGS, "r1-network-10"));
    assert!(kept.iter().all(|f| !f.checked.valid()), "no exhibit was given");
}

#[test]
fn review_scores_are_capped_by_the_rules() {
    let (mut driver, task) = until("r1.review");
    let first = driver.state.findings().next().unwrap().finding.id.clone();
    let judgements = vec![Judgement::new(&first, Score::clamped(1.0), "r")];
    let review = ReviewDraft { summary: "s".into(), judgements, leads: vec![] };
    let events = answered(&mut driver, &task, Answer::Review(review));
    let guards = events.iter().filter(|e| e.starts_with("guarded not_reviewed")).count();
    assert_eq!(guards, 5);
    assert_eq!(events[1], format!("guarded single_source {first}"));
    assert_eq!(driver.state.known[&first].score.get(), 0.89);
}

#[test]
fn timeline_keeps_credible_findings_and_three_gaps() {
    let (mut driver, task) = until("r1.timeline");
    let event = |finding: &str| casebook_protocol::EventDraft {
        description: String::new(),
        findings: vec![FindingId::new(finding).unwrap()],
    };
    let gap = Gap { kind: GapKind::Temporal, description: "x".into() };
    let draft = casebook_protocol::TimelineDraft {
        narrative: "n".into(),
        events: vec![event("r1-moon-1"), event("r1-network-1")],
        gaps: vec![gap; 4],
        score: Score::clamped(0.8),
    };
    let events = answered(&mut driver, &task, Answer::Timeline(draft));
    assert_eq!(events[1..4], ["guarded not_credible r1-moon-1", "guarded too_many_gaps gaps", "timeline_rewritten"]);
    let timeline = driver.state.timeline.unwrap();
    assert_eq!((timeline.version, timeline.events.len(), timeline.gaps.len()), (1, 1, 3));
}

#[test]
fn conclusion_without_support_for_dismissal_is_inconclusive() {
    let (mut driver, task) = until("r4.report");
    let ids = ["r1-network-1", "r1-network-1", "r9-x-1"].map(|i| FindingId::new(i).unwrap()).to_vec();
    let proposal = casebook_protocol::Conclusion { verdict: Verdict::FalsePositive, ..conclusion(ids) };
    let events = answered(&mut driver, &task, Answer::Report(proposal));
    assert_eq!(
        events,
        [
            "task_answered",
            "guarded unknown_finding r9-x-1",
            "guarded dismissal_unsupported verdict",
            "concluded",
            "closed"
        ]
    );
    let (conclusion, ruling) = driver.state.conclusion.unwrap();
    assert_eq!(
        (conclusion.findings.len(), ruling.verdict, ruling.proposed),
        (1, Verdict::Inconclusive, Verdict::FalsePositive)
    );
    assert!(conclusion.summary.starts_with("Proposed as false positive, and not accepted."), "{}", conclusion.summary);
}

#[test]
fn actions_of_a_conclusion_name_the_host_of_the_alert() {
    let mut on_host = case(&ROSTER);
    on_host.alert = casebook_protocol::Alert::parse(br#"{"id":"a-1","title":"t","host":"ACCT01"}"#).unwrap();
    let (mut driver, task) = until_in(&on_host, "r4.report");
    let mut proposed = conclusion(Vec::new());
    proposed.actions = vec!["isolate the host".into()];
    answered(&mut driver, &task, Answer::Report(proposed));
    let actions = driver.state.conclusion.as_ref().unwrap().0.actions.join(" | ");
    assert!(actions.ends_with("isolate the host `ACCT01`"), "{actions}");
}

#[test]
fn failed_report_task_ends_in_inconclusive() {
    let (mut driver, task) = until("r4.report");
    driver.take(&[Command::FailTask { task: task.id, reason: "the model is away".into(), now: driver.now() }]);
    let (conclusion, ruling) = driver.state.conclusion.clone().unwrap();
    assert_eq!(ruling.verdict, Verdict::Inconclusive);
    assert!(conclusion.summary.contains("the model is away") && ruling.missing[0].contains("the model is away"));
    assert!(driver.state.closed.is_some());
}

fn stops(log: &[Recorded]) -> Vec<String> {
    let said = log.iter().filter(|e| matches!(e.event, Event::Stopping { .. } | Event::BudgetNear { .. }));
    said.map(|e| words(&e.event)).collect()
}

#[test]
fn budgets_warn_once_for_each_limit_and_then_stop() {
    let run = |budget: Budget| {
        let mut driver = Driver::open(&Case { budget, ..case(&ROSTER) });
        driver.run(&honest, |n| n - 1);
        stops(&driver.log)
    };
    let near = run(Budget { model_calls: 16, tool_calls: 10, ..Budget::default() });
    assert_eq!(
        near,
        [
            "near tool calls: 8 of 10",
            "near model calls: 13 of 16",
            "stopping the budget is spent: model calls: 14 of 16 (the rest is kept for the report)"
        ]
    );
    assert_eq!(
        run(Budget { tool_calls: 6, ..Budget::default() }),
        ["stopping the budget is spent: tool calls: 6 of 6"]
    );
    assert_eq!(run(Budget { rounds: 1, ..Budget::default() }), ["stopping the budget is spent: rounds: 1 of 1"]);
    assert_eq!(run(Budget { rounds: 3, ..Budget::default() }), [""; 0], "the Director ended it by itself at the limit");
}

#[test]
fn only_working_time_counts_towards_the_time_limit() {
    let limited = Case { budget: Budget { seconds: 1000, ..Budget::default() }, ..case(&ROSTER) };
    let (mut driver, _) = until_in(&limited, "r1.plan");
    let tick = |driver: &mut Driver, seconds: i64| {
        driver.seconds += seconds - 1;
        let now = Timestamp::from_second(driver.seconds + 1).unwrap();
        driver.take(&[Command::Tick { now }]).recorded.iter().map(|e| words(&e.event)).collect::<Vec<_>>()
    };
    assert_eq!(tick(&mut driver, 86_400), [""; 0], "a day away counts as one silence");
    driver.take(&[Command::RecordCall { task: id("r1.plan"), call: call() }]);
    assert_eq!(driver.state.worked, crate::state::SILENCE);
    assert_eq!(tick(&mut driver, 401), ["stopping the budget is spent: time: 1001 of 1000"]);
    assert_eq!(tick(&mut driver, 899), [""; 0]);
}

#[test]
fn task_that_outlasts_a_stop_counts_as_failed() {
    let (mut driver, _) = until("r1.plan");
    driver.take(&[Command::Stop { reason: "x".into() }]);
    for n in 0..3 {
        driver.seconds += 400;
        let events = driver.take(&[
            Command::RecordCall { task: id("r1.plan"), call: crate::tests::script::numbered(n) },
            Command::Tick { now: driver.now() },
        ]);
        assert_eq!(events.tasks.len(), usize::from(n == 2), "{:?}", driver.state.worked);
    }
    assert_eq!(driver.waiting.keys().next_back().unwrap().as_str(), "r2.report");
}

fn call() -> ToolCall {
    crate::tests::script::numbered(7)
}

#[test]
fn ids_of_findings_do_not_depend_on_the_log() {
    let driver = Driver::honest();
    let ids: Vec<_> = driver.state.findings().map(|f| f.finding.id.to_string()).collect();
    assert_eq!(ids[..3], ["r1-endpoint-1", "r1-endpoint-2", "r1-identity-1"]);
    assert_eq!(driver.state.investigation, Some(investigation()));
}

#[test]
fn text_raised_by_code_is_submitted_once_without_an_answer() {
    let (mut driver, task) = until_in(&case(&["network"]), "r1.investigate.network");
    let (mut outcome, results) = perform(&task, &honest);
    let Ok(Answer::Investigate(drafts)) = &outcome.result else { panic!("{:?}", outcome.result) };
    let text = FindingDraft { kind: FindingKind::Instruction, ..drafts[0].clone() };
    outcome.raised = vec![text.clone()];
    outcome.result = Err("it never stopped".into());
    let submitted = |driver: &mut Driver, outcome: Outcome, results: &_| {
        let kinds = driver.answer(outcome, results).recorded.into_iter().filter_map(|e| match e.event {
            Event::FindingSubmitted { finding } => Some((finding.id.to_string(), finding.draft.kind)),
            _ => None,
        });
        kinds.collect::<Vec<_>>()
    };
    let told = submitted(&mut driver, outcome, &results);
    assert_eq!(told, [("r1-network-1".to_owned(), FindingKind::Instruction)]);
    let task = driver.until("r2.investigate.network");
    // The Expert comes across the same record again.
    let again = r#"{"domain":"network","round":1}"#;
    let (mut outcome, results) = perform(&task, &|_, done| match done {
        [] => Action::Call(vec![CallRequest { tool: SEARCH.into(), arguments: again.into() }]),
        _ => Action::Answer(Box::new(Answer::Investigate(vec![]))),
    });
    let Citation::Literal { at, quote, .. } = text.citations[0].clone() else { panic!("{text:?}") };
    let citations = vec![Citation::Literal { call: outcome.calls[0].id.clone(), at, quote }];
    outcome.raised = vec![FindingDraft { citations, ..text }];
    assert_eq!(submitted(&mut driver, outcome, &results), []);
}

#[test]
fn finding_raised_by_code_is_dropped_if_the_expert_says_the_same() {
    let submitted = |change: &dyn Fn(FindingDraft) -> FindingDraft| {
        let (mut driver, task) = until_in(&case(&["network"]), "r1.investigate.network");
        let (mut outcome, results) = perform(&task, &honest);
        let Ok(Answer::Investigate(drafts)) = &outcome.result else { panic!("{:?}", outcome.result) };
        let own = drafts.len();
        outcome.raised = vec![change(drafts[0].clone())];
        let recorded = driver.answer(outcome, &results).recorded;
        let all = recorded.iter().filter(|e| matches!(e.event, Event::FindingSubmitted { .. })).count();
        all - own
    };
    assert_eq!(submitted(&|same| FindingDraft { claim: "`thing1` was done, says code".into(), ..same }), 0);
    let decisive = casebook_protocol::Weight::Decisive;
    assert_eq!(submitted(&|same| FindingDraft { weight: decisive, ..same }), 1, "the Expert's is weaker");
    assert_eq!(submitted(&|same| FindingDraft { kind: FindingKind::Instruction, ..same }), 1, "a text is kept");
    assert_eq!(submitted(&|same| FindingDraft { bearing: casebook_protocol::Bearing::Exonerating, ..same }), 1);
}
