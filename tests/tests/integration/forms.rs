//! What a capable model does and a scripted one has not done: it writes into the Journal and answers in one turn, and
//! it corrects what code returns.

use casebook_protocol::{Budget, FindingId, FindingKind, Report, Rule, TaskKind};
use casebook_tests::lab::{FORMS, Lab};
use casebook_tests::model::Request;
use casebook_tests::model::brain::Brain;
use casebook_tests::model::play::{Changed, Play, Reply, Script};
use casebook_tests::run::demo;
use serde_json::{Value, json};

pub(crate) fn brain() -> Brain {
    Brain { rounds: 2, journal: 2, ..Brain::default() }
}

pub(crate) fn investigated(script: impl Script, form: (&str, &str)) -> (Lab, Report) {
    let lab = Lab::start(script, form).unwrap();
    let report = lab.investigate(&demo(), Budget::default()).unwrap();
    assert_eq!(lab.server.log().rejected(), [""; 0], "{form:?}");
    assert_eq!(lab.violations(), [""; 0], "{form:?}");
    let failed: Vec<_> = report.usage.tasks.iter().filter(|t| t.failed.is_some()).collect();
    assert!(failed.is_empty(), "{form:?}: {failed:?}");
    assert_eq!(lab.server.log().counts().answered_again, 0, "{form:?}: no call was paid for twice");
    (lab, report)
}

/// Its Director writes into the Journal in the same reply as its answer.
struct Together(Brain);

impl Script for Together {
    fn reply(&self, request: &Request) -> Play {
        let quiet = Brain { journal: 0, ..self.0.clone() };
        match (self.0.reply(request), quiet.reply(request)) {
            (Play::Reply(entries), Play::Reply(answer)) if entries.calls.iter().any(|call| call.name == "journal") => {
                Play::Reply(Reply { calls: [entries.calls, answer.calls].concat(), ..answer })
            }
            (play, _) => play,
        }
    }
}

#[test]
fn journal_entries_beside_an_answer_are_kept() {
    let texts = |report: &Report| -> Vec<String> { report.journal.iter().map(|e| e.entry.text.clone()).collect() };
    let (_, apart) = investigated(brain(), FORMS[0]);
    assert!(apart.journal.len() >= 4, "{:?}", texts(&apart));
    for form in FORMS {
        let (_, together) = investigated(Together(brain()), form);
        assert_eq!(texts(&together), texts(&apart), "{form:?}");
        let plans = together.usage.tasks.iter().filter(|t| t.kind == TaskKind::Plan);
        let calls: Vec<u64> = plans.map(|t| t.usage.model_calls).collect();
        assert!(calls.iter().all(|calls| *calls == 1), "{form:?}: {calls:?}");
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Slip {
    Quote,
    Call,
    Time,
}

fn spoil(finding: &mut Value, slip: Slip) {
    match slip {
        Slip::Quote => finding["citations"][0]["quote"] = json!("this stands in no log"),
        Slip::Call => finding["citations"][0]["call"] = json!("r9.investigate.endpoint.t1.0"),
        Slip::Time => finding["time"] = json!("2001-02-03T04:05:06Z"),
    }
}

/// Its Experts make a mistake in their first finding, and correct it when it is returned, or do not.
pub(crate) fn sloppy(slip: Slip, corrects: bool) -> impl Script {
    let change = move |request: &Request, answer: &mut Value| {
        let told = String::from_utf8_lossy(&request.bytes).contains("Code has checked your findings");
        let findings = answer["findings"].as_array_mut().unwrap();
        if findings.first().is_none_or(|first| first["kind"] != "occurrence") {
            return;
        }
        if !told || !corrects {
            spoil(&mut findings[0], slip);
        }
        findings.truncate(if told { 1 } else { usize::MAX });
    };
    Changed { script: brain(), kind: TaskKind::Investigate, change }
}

fn claims(report: &Report) -> Vec<&str> {
    report.findings.iter().map(|f| f.finding.draft.claim.as_str()).collect()
}

/// Whether the Expert of the task of this finding makes the mistake in it.
fn slips(honest: &Report, id: &FindingId) -> bool {
    let same = honest.findings.iter().find(|f| f.finding.id == *id).unwrap();
    id.as_str().ends_with("-1") && same.finding.draft.kind == FindingKind::Occurrence
}

fn experts(report: &Report) -> impl Iterator<Item = &casebook_protocol::report::TaskUsage> {
    report.usage.tasks.iter().filter(|t| t.kind == TaskKind::Investigate)
}

#[test]
fn a_faulty_finding_is_returned_once_and_its_correction_counts() {
    let (_, honest) = investigated(brain(), FORMS[0]);
    assert!(experts(&honest).all(|task| task.corrected == 0));
    for form in FORMS {
        for slip in [Slip::Quote, Slip::Call, Slip::Time] {
            let (_, report) = investigated(sloppy(slip, true), form);
            assert_eq!(claims(&report), claims(&honest), "{form:?} {slip:?}");
            assert!(report.findings.iter().all(|f| f.citations.iter().all(|c| c.holds)), "{form:?} {slip:?}");
            let ids = || honest.findings.iter().map(|f| &f.finding.id);
            let corrected: u32 = experts(&report).map(|task| task.corrected).sum();
            assert_eq!(corrected as usize, ids().filter(|id| slips(&honest, id)).count(), "{form:?} {slip:?}");
            assert!(corrected >= 4, "too few");
            let page = casebook_report::Form::Md.render(&report, &casebook_trust::Backing::default()).unwrap();
            assert!(page.contains(&format!("{corrected} findings corrected")), "{form:?} {slip:?}");
            for (task, before) in experts(&report).zip(experts(&honest)) {
                let calls = before.usage.model_calls + u64::from(task.corrected);
                assert_eq!(task.usage.model_calls, calls, "{form:?} {slip:?}: each is returned once");
            }
        }
    }
}

#[test]
fn what_stays_faulty_is_capped_and_the_rest_of_the_answer_stands() {
    let (_, honest) = investigated(brain(), FORMS[0]);
    for form in [FORMS[0], FORMS[5]] {
        for slip in [Slip::Quote, Slip::Call, Slip::Time] {
            let (_, report) = investigated(sloppy(slip, false), form);
            assert_eq!(claims(&report), claims(&honest), "{form:?} {slip:?}");
            assert!(experts(&report).all(|task| task.corrected == 0), "{form:?} {slip:?}");
            for found in &report.findings {
                let (draft, score) = (&found.finding.draft, found.score.unwrap().get());
                let first = slips(&honest, &found.finding.id);
                let kept = if first && slip != Slip::Time { score <= 0.29 } else { score >= 0.5 };
                assert!(kept, "{form:?} {slip:?}: {} {score}", found.finding.id);
                assert!(!(first && slip == Slip::Time) || draft.time.is_none(), "{form:?}: the false time is dropped");
            }
            let dropped = report.guards.iter().filter(|g| g.rule == Rule::TimeNotInEvidence).count();
            assert_eq!(dropped > 0, slip == Slip::Time, "{form:?} {slip:?}: {:?}", report.guards);
        }
    }
}
