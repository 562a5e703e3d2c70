//! Whole investigations with a language model in every role, over real HTTP to a scripted model that
//! speaks the providers' wire formats.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use casebook_agent::model::Model;
use casebook_agent::model::client::Client;
use casebook_agent::model::replay::{Replay, record};
use casebook_cli::reasoners::Reasoners;
use casebook_protocol::{Budget, Report, TaskKind, Verdict};
use casebook_tests::lab::{FORMS, KEY, Lab};
use casebook_tests::model::Request;
use casebook_tests::model::brain::Brain;
use casebook_tests::model::faults::{Fault, Faulty, When};
use casebook_tests::model::server::Options;
use casebook_tests::run::{self, demo};

fn brain() -> Brain {
    Brain { rounds: 2, ..Brain::default() }
}

/// The failures of tasks, each as `task: reason`.
fn failures(report: &Report) -> Vec<String> {
    let failed = report.usage.tasks.iter().filter_map(|t| t.failed.as_ref().map(|why| format!("{}: {why}", t.task)));
    failed.collect()
}

fn credible(report: &Report) -> usize {
    report.findings.iter().filter(|f| f.score.is_some_and(|s| s.get() >= 0.5)).count()
}

#[test]
fn investigation_ends_in_each_wire_format_and_answer_mode() {
    for form in FORMS {
        let lab = Lab::start_with(
            brain(),
            form,
            "price = { input = 3.0, cached = 0.3, output = 15.0 }\n",
            Options::default(),
        )
        .unwrap();
        let report = lab.investigate(&demo(), Budget::default()).unwrap();
        let log = lab.server.log();
        assert_eq!(log.rejected(), [""; 0], "{form:?}");
        assert_eq!(lab.violations(), [""; 0], "{form:?}");
        assert_eq!(failures(&report), [""; 0], "{form:?}");
        assert!(credible(&report) >= 4, "{form:?}: {} credible findings", credible(&report));
        assert!(report.findings.iter().all(|f| f.citations.iter().all(|c| c.holds)), "{form:?}");
        assert!(!report.timeline.events.is_empty() && report.verdict == Verdict::TruePositive, "{form:?}");
        let players: Vec<_> = report.usage.tasks.iter().filter_map(|t| t.player.as_ref()).collect();
        assert!(players.iter().all(|p| p.name == "scripted"), "{form:?}: {players:?}");
        let total = report.usage.total;
        let counts = log.counts();
        assert_eq!(total.model_calls, counts.requests, "{form:?}: every call is accounted for");
        assert_eq!(counts.answered_again, 0, "{form:?}: no call was made twice");
        assert_eq!(total.input_tokens, counts.prompt.input, "{form:?}");
        assert_eq!(total.cached_tokens, counts.prompt.read, "{form:?}");
        assert!(total.cached_tokens > total.input_tokens / 5, "{form:?}: {total:?}");
        assert!(total.cost_micros > 0 && report.usage.tasks.iter().all(|t| t.usage.cost_micros > 0), "{form:?}");
    }
}

/// An investigation in which the scripted model fails once or always; gives the report.
fn with(form: (&str, &str), fault: Fault, when: When) -> (Lab, Report) {
    let lab =
        Lab::start_with(Faulty::new(brain(), fault, when), form, "timeout_seconds = 2\n", Options::default()).unwrap();
    let report = lab.investigate(&demo(), Budget::default()).unwrap();
    (lab, report)
}

const ONCE: When = When { kind: None, answers: false, nth: Some(2), attempts: Some(1) };

#[test]
fn temporary_fault_is_retried_without_effect_on_the_report() {
    for form in [FORMS[0], FORMS[2], FORMS[5]] {
        for fault in [Fault::RateLimited(Some(1)), Fault::Overloaded, Fault::Broken, Fault::Cut, Fault::Gateway] {
            let (lab, report) = with(form, fault.clone(), ONCE);
            assert_eq!(failures(&report), [""; 0], "{form:?} {fault:?}");
            assert_eq!(lab.violations(), [""; 0], "{form:?} {fault:?}");
            assert!(credible(&report) >= 4, "{form:?} {fault:?}");
            let counts = lab.server.log().counts();
            assert_eq!(counts.answered_again, 0, "{form:?} {fault:?}: no finished call was paid for twice");
        }
    }
}

#[test]
fn bad_answer_is_repaired_once() {
    let answer = When { kind: Some(TaskKind::Plan), answers: true, nth: Some(1), attempts: None };
    for form in [FORMS[0], FORMS[1], FORMS[2], FORMS[3], FORMS[4]] {
        for fault in [Fault::Prose, Fault::WrongTypes, Fault::Truncated, Fault::Empty] {
            let (lab, report) = with(form, fault.clone(), answer.clone());
            assert_eq!(failures(&report), [""; 0], "{form:?} {fault:?}");
            assert_eq!(lab.violations(), [""; 0], "{form:?} {fault:?}");
            let plan = report.usage.tasks.iter().find(|t| t.kind == TaskKind::Plan).unwrap();
            assert_eq!(plan.usage.model_calls, 3, "{form:?} {fault:?}: the Journal, the bad answer, its repair");
        }
        let (_, fenced) = with(form, Fault::Fenced, answer.clone());
        let plan = fenced.usage.tasks.iter().find(|t| t.kind == TaskKind::Plan).unwrap();
        assert_eq!(plan.usage.model_calls, 2, "{form:?}: an object in a fence needs no repair");
    }
}

#[test]
fn permanent_fault_fails_its_task_and_the_flow_goes_on() {
    // The Experts have called their tools when the answer fails.
    let answers = When { kind: Some(TaskKind::Investigate), answers: true, ..When::default() };
    let faults = [
        (Fault::Prose, "after one repair"),
        (Fault::WrongTypes, "after one repair"),
        (Fault::Truncated, "after one repair"),
        (Fault::Refusal, "refused"),
        (Fault::NoJsonBody, "not JSON"),
        (Fault::Huge(100 << 20), "bytes"),
        (Fault::Slow(Duration::from_secs(30)), "no answer within"),
        (Fault::EndlessCalls, ""),
    ];
    for form in [FORMS[0], FORMS[3], FORMS[4]] {
        for (fault, reason) in faults.clone() {
            let when = When { answers: fault != Fault::EndlessCalls, ..answers.clone() };
            let (_, report) = with(form, fault.clone(), when);
            let failed = failures(&report);
            // A provider whose answers are not JSON is left alone for a while, whatever the task.
            let paused = |f: &String| fault == Fault::NoJsonBody && f.contains("not asked, after");
            let (asked, others): (Vec<_>, Vec<_>) = failed.iter().partition(|f| f.contains(".investigate."));
            assert!(!asked.is_empty() && others.into_iter().all(paused), "{form:?} {fault:?}: {failed:?}");
            // A call that waits for the provider may run out of time.
            let waited = |f: &String| fault == Fault::NoJsonBody && f.contains("no answer within");
            assert!(failed.iter().all(|f| f.contains(reason) || waited(f)), "{form:?} {fault:?}: {failed:?}");
            assert!(report.findings.is_empty(), "{form:?} {fault:?}: nothing is invented");
            assert_eq!(report.verdict, Verdict::Inconclusive, "{form:?} {fault:?}");
            assert!(report.blind_spots.iter().any(|s| s.contains("its Expert failed")), "{form:?} {fault:?}");
        }
    }
}

#[test]
fn model_learns_of_a_wrong_tool_call_and_goes_on() {
    let once = When { kind: Some(TaskKind::Investigate), answers: false, nth: Some(1), attempts: None };
    for form in FORMS {
        for fault in [Fault::UnknownTool, Fault::BadArguments] {
            let (lab, report) = with(form, fault.clone(), once.clone());
            assert_eq!(failures(&report), [""; 0], "{form:?} {fault:?}");
            assert_eq!(lab.violations(), [""; 0], "{form:?} {fault:?}");
            assert!(
                report.calls.iter().any(|c| c.status == casebook_protocol::CallStatus::Failed),
                "{form:?} {fault:?}"
            );
        }
    }
}

#[test]
fn failing_director_ends_in_inconclusive() {
    for kind in [TaskKind::Plan, TaskKind::Decide, TaskKind::Report] {
        let script = Brain { verdict: Verdict::FalsePositive, ..brain() };
        let always = When { kind: Some(kind), ..When::default() };
        let lab = Lab::start(Faulty::new(script, Fault::Refusal, always), FORMS[0]).unwrap();
        let report = lab.investigate(&demo(), Budget::default()).unwrap();
        assert_eq!(report.verdict, Verdict::Inconclusive, "{kind:?}");
        assert!(failures(&report).iter().any(|f| f.contains("refused")), "{kind:?}");
    }
}

#[test]
fn limits_are_kept_and_the_report_is_still_written() {
    let long = Brain { rounds: 30, ..Brain::default() };
    let priced = "price = { input = 3.0, output = 15.0 }\n";
    let lab = || Lab::start_with(long.clone(), FORMS[0], priced, Options::default()).unwrap();
    let cases = [
        (Budget { model_calls: 100, ..Budget::default() }, "model calls"),
        (Budget { tokens: 600_000, ..Budget::default() }, "tokens"),
        (Budget { cost_micros: 1_000_000, ..Budget::default() }, "cost"),
    ];
    for (budget, what) in cases {
        let lab = lab();
        let report = lab.investigate(&demo(), budget).unwrap();
        let total = report.usage.total;
        let stopped = report.stop_reason.clone().unwrap_or_default();
        assert!(stopped.contains(what), "{what}: {stopped:?}");
        assert!(total.model_calls <= budget.model_calls, "{what}: {total:?}");
        assert!(total.input_tokens + total.output_tokens <= budget.tokens, "{what}: {total:?}");
        assert!(total.cost_micros <= budget.cost_micros, "{what}: {total:?}");
        let told = report.usage.tasks.iter().find(|t| t.kind == TaskKind::Report).unwrap();
        assert_eq!(told.failed, None, "{what}: a part of the budget is kept for the report");
        if what != "model calls" {
            continue;
        }
        let warned = |c: &casebook_tests::model::capture::Captured| {
            matches!(c.kind, Some(TaskKind::Plan | TaskKind::Decide))
                && String::from_utf8_lossy(&c.request.bytes).contains("<budget>")
        };
        assert!(lab.server.log().captured().iter().any(warned), "{what}: the Director is warned");
    }
}

#[test]
fn prompt_is_cut_to_a_small_window_and_says_so() {
    let in_window = |window: u64| {
        let more = format!("window = {window}\nmax_output = 1500\n");
        let options = Options { window: Some(window), ..Options::default() };
        // Many results, so that they take more of the prompt than what cannot be cut.
        let many = Brain { expert_calls: 16, ..brain() };
        let lab = Lab::start_with(many, FORMS[3], &more, options).unwrap();
        let ended = lab.investigate(&demo(), Budget::default());
        assert_eq!(lab.server.log().rejected(), [""; 0], "no prompt was larger than the window");
        (lab, ended.map_or_else(|failure| vec![failure.to_string()], |report| failures(&report)))
    };
    let cut = |request: &Request| String::from_utf8_lossy(&request.bytes).contains("bytes, cut:");
    let mut said = Vec::new();
    for window in (10_000..20_000).step_by(500) {
        let (lab, failed) = in_window(window);
        let shown = lab.server.log().captured().iter().any(|c| cut(&c.request));
        said.push((window, shown, failed.len()));
        if shown {
            break;
        }
    }
    // In the windows between those that are too small and those in which everything fits, the results give way.
    assert!(said.iter().any(|(_, shown, _)| *shown), "a cut result says so: {said:?}");
    let (_, failed) = in_window(4_500);
    assert!(failed.iter().any(|f| f.contains("use a model with a larger window")), "{failed:?}");
}

/// Every file under a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { all.extend(files(&path)) } else { all.push(path) }
    }
    all
}

#[test]
fn key_is_not_in_requests_store_report_or_errors() {
    let fault = Faulty::new(brain(), Fault::Broken, When { kind: Some(TaskKind::Review), ..When::default() });
    let lab = Lab::start_with(fault, FORMS[0], "timeout_seconds = 1\n", Default::default()).unwrap();
    let report = lab.investigate(&demo(), Budget::default()).unwrap();
    assert!(!failures(&report).is_empty(), "the Review failed");
    assert!(!serde_json::to_string(&report).unwrap().contains(KEY));
    let stored = files(&lab.data());
    assert!(!stored.is_empty());
    for file in stored {
        let bytes = std::fs::read(&file).unwrap();
        let found = bytes.windows(KEY.len()).any(|w| w == KEY.as_bytes());
        assert!(!found, "{} holds the key", file.display());
    }
    // In its file the store is packed: its rows are looked at as they were.
    let rows = tokio::runtime::Runtime::new()
        .unwrap()
        .block_on(async { casebook_hub::SqliteStore::open(lab.data()).unwrap().rows().await.unwrap() });
    assert!(rows.len() > 50 && rows.iter().any(|row| String::from_utf8_lossy(row).contains("\"opened\"")));
    assert!(!rows.iter().any(|row| String::from_utf8_lossy(row).contains(KEY)), "the store holds the key");
    assert!(lab.server.log().captured().iter().all(|c| !String::from_utf8_lossy(&c.request.bytes).contains(KEY)));
}

#[test]
fn recorded_run_replays_to_the_same_report_without_network() {
    let recording = tempfile::tempdir().unwrap();
    let lab = Lab::start(brain(), FORMS[4]).unwrap();
    let config = lab.config().unwrap();
    let client: Arc<dyn Model> = Arc::new(Client::open(&config).unwrap());
    let recorder = record(client, recording.path(), &lab.file).unwrap();
    let run = |data: &str, reasoners: Reasoners| {
        let (alert, evidence) = (demo().join("alert.json"), demo().join("evidence"));
        run::investigate_with(&alert, &evidence, &lab.data().with_file_name(data), Budget::default(), reasoners)
            .unwrap()
    };
    let first = run("recorded", Reasoners::of(Arc::clone(&config), recorder));
    let calls = lab.server.log().counts().requests;
    let replay = |folder: &Path| Reasoners::of(Arc::clone(&config), Arc::new(Replay::open(folder).unwrap()));
    let second = run("replayed", replay(recording.path()));
    assert_eq!(lab.server.log().counts().requests, calls, "a replay sends no request");
    assert_eq!(casebook_report::compare::stable(&first), casebook_report::compare::stable(&second));
    for file in files(recording.path()) {
        assert!(!std::fs::read_to_string(&file).unwrap().contains(KEY), "{}", file.display());
    }
    let gone = files(recording.path()).into_iter().find(|f| f.to_string_lossy().contains("r1.review.m1")).unwrap();
    std::fs::remove_file(gone).unwrap();
    let third = run("missing", replay(recording.path()));
    let failed = failures(&third);
    assert!(
        failed.iter().any(|f| f.contains("no reply to r1.review.m1") && f.contains("did not make this call")),
        "{failed:?}"
    );
}
