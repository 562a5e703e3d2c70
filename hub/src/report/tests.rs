use casebook_agent::reasoner::Action;
use casebook_protocol::{Answer, Bearing, Entity, EntityKind, FindingId, Recorded, Score, View};
use casebook_report::compare::stable;

use super::*;
use crate::tests::script::{Driver, case, honest};

#[test]
fn report_is_complete_ordered_and_lists_blind_spots() {
    let mut narrow = case(&["endpoint", "network"]);
    narrow.roster[0].sources[0].records = 0;
    let mut driver = Driver::open(&narrow);
    driver.run(
        &|task, done| match task.id.as_str() {
            "r2.investigate.network" => Action::GiveUp("the tool is away".into()),
            "r3.review" => Action::GiveUp("confused".into()),
            _ => honest(task, done),
        },
        |n| n - 1,
    );
    let report = build(&driver.state).unwrap();
    let ids: Vec<_> = report.findings.iter().map(|f| f.finding.id.as_str()).collect();
    assert_eq!(ids, ["r1-endpoint-1", "r1-endpoint-2", "r1-network-1", "r1-network-2", "r3-network-1", "r3-network-2"]);
    assert_eq!((report.findings[0].score.map(Score::get), report.findings[5].score), (Some(0.8), None));
    assert_eq!(report.findings[5].rationale, "never reviewed");
    assert_eq!(
        report.blind_spots,
        [
            "identity: no source of evidence",
            "cloud: no source of evidence",
            "configuration: no source of evidence",
            "application: no source of evidence",
            "endpoint: source endpoint-log holds no record",
            "network: its Expert failed in round 2: the tool is away",
            "the Review of round 3 failed, so that 2 findings have no score: confused",
        ]
    );
    let calls: Vec<_> = report.calls.iter().map(|c| c.id.as_str()).collect();
    assert_eq!(
        calls[..3],
        ["r1.investigate.endpoint.t1.0", "r1.investigate.endpoint.t1002.0", "r1.investigate.network.t1.0"]
    );
    let tasks: Vec<_> = report.usage.tasks.iter().map(|t| t.task.as_str()).collect();
    assert_eq!(tasks[..4], ["r1.plan", "r1.investigate.endpoint", "r1.investigate.network", "r1.review"]);
    let total = report.usage.tasks.iter().fold(casebook_protocol::Usage::default(), |mut sum, t| {
        sum += t.usage;
        sum
    });
    assert_eq!((total, report.usage.rounds), (report.usage.total, 3));
}

#[test]
fn calls_are_sorted_by_turn_and_place_as_numbers() {
    let task = TaskId::new("r1.plan").unwrap();
    let at = |turn, n| place(&task, &CallId::of(&task, turn, n));
    assert!(at(2, 0) < at(10, 0) && at(10, 2) < at(10, 11));
}

#[test]
fn disagreement_of_expert_and_critic_is_reported() {
    let mut driver = Driver::open(&case(&["network"]));
    driver.run(
        &|task, done| {
            let Action::Answer(mut answer) = honest(task, done) else { return honest(task, done) };
            if let (Answer::Review(draft), 1, View::Review(_)) = (answer.as_mut(), task.round, &task.view) {
                let other = draft.judgements[1].finding.clone();
                draft.judgements[0].score = Score::clamped(0.4);
                draft.judgements[0].contradicted_by = vec![other.clone(), FindingId::new("r9-x-1").unwrap()];
                draft.judgements[1].contradicted_by = vec![draft.judgements[0].finding.clone(), other];
            }
            Action::Answer(answer)
        },
        |_| 0,
    );
    let said: Vec<_> =
        build(&driver.state).unwrap().disagreements.into_iter().map(|d| (d.findings.len(), d.about)).collect();
    assert_eq!(
        said,
        [(1, "the Expert is sure at 0.90, the Critic's score is 0.40".into()), (2, "they cannot both be true".into())]
    );
}

#[test]
fn contradiction_between_experts_is_reported_without_critic() {
    let mut driver = Driver::open(&case(&["endpoint", "network"]));
    driver.run(
        &|task, done| {
            let Action::Answer(mut answer) = honest(task, done) else { return honest(task, done) };
            if let (Answer::Investigate(drafts), 1) = (answer.as_mut(), task.round) {
                let network = task.domain.as_ref().is_some_and(|d| d.as_str() == "network");
                drafts[0].bearing = if network { Bearing::Exonerating } else { Bearing::Incriminating };
                drafts[0].entities = vec![Entity { kind: EntityKind::Process, value: "thing1".into() }];
                drafts.truncate(1);
            }
            Action::Answer(answer)
        },
        |_| 0,
    );
    let report = build(&driver.state).unwrap();
    let said: Vec<_> = report.disagreements.iter().map(|d| d.about.as_str()).collect();
    assert_eq!(said, ["the Experts endpoint and network point opposite ways about the same thing"]);
}

#[test]
fn unfinished_report_says_so() {
    let driver = Driver::open(&case(&["network"]));
    let report = build(&driver.state).unwrap();
    assert_eq!(report.verdict, Verdict::Inconclusive);
    assert!(report.summary.contains("not finished"));
    assert_eq!(build(&State::default()), None);
}

#[test]
fn two_runs_differ_only_in_ids_and_times() {
    let one = Driver::honest();
    let mut two = Driver::open(&case(&["endpoint", "identity", "network"]));
    two.seconds += 1_000_000;
    two.run(&honest, |n| n - 1);
    let [one, two] = [one, two].map(|driver| build(&driver.state).unwrap());
    assert_ne!(one, two);
    assert_eq!(stable(&one).to_string(), stable(&two).to_string());
}

#[test]
fn guards_are_in_order_of_tasks_not_of_their_end() {
    let guards = |pick: fn(usize) -> usize| {
        let mut driver = Driver::open(&case(&["endpoint", "network"]));
        let reasoner = |task: &casebook_protocol::Task, done: &[casebook_agent::reasoner::Done]| match (
            honest(task, done),
            task.round,
        ) {
            (Action::Answer(answer), 1) => match *answer {
                Answer::Investigate(found) => {
                    Action::Answer(Box::new(Answer::Investigate(vec![found[0].clone(); 201])))
                }
                other => Action::Answer(Box::new(other)),
            },
            (other, _) => other,
        };
        driver.run(&reasoner, pick);
        build(&driver.state).unwrap().guards
    };
    let first = guards(|_| 0);
    assert_eq!((first[0].subject.as_str(), first[1].subject.as_str()), ("endpoint", "network"));
    assert_eq!(first, guards(|n| n - 1));
}

/// A log as version 1 wrote it, with model calls, a task that failed and a domain whose last Expert is gone. The
/// file never changes: old logs stay readable.
#[test]
fn log_and_report_of_version_1_stay_readable() {
    let text = include_str!("../../fixtures/log-v1.ndjson");
    let log: Vec<Recorded> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    Recorded::verify(&log[0].investigation, &log).unwrap();
    let state = State::replay(&log);
    assert!(state.asked.len() > 5 && state.asked.values().all(|made| made.call.version == "1"));
    assert_eq!(state.gone.values().collect::<Vec<_>>(), ["no Expert for identity is there any more"]);
    let report = build(&state).unwrap();
    let failed = report.usage.tasks.iter().find(|t| t.failed.is_some()).unwrap();
    assert_eq!(failed.player.as_ref().map(|p| p.name.as_str()), Some("script"), "the failed player is named");
    let expect: Report = serde_json::from_str(include_str!("../../fixtures/report-v1.json")).unwrap();
    assert!(same(&expect, &report) && !same(&Report { headline: "Harmless.".into(), ..expect.clone() }, &report));
    assert_eq!(report.headline, "Attack: Module loaded; confidence 0.70 (highly-plausible), since 2024-01-01 10:00Z.");
    let written: Vec<String> = log.iter().map(|entry| serde_json::to_string(entry).unwrap()).collect();
    assert_eq!(written.join("\n"), text.trim_end(), "what is read is written the same");
}
