//! What is shown in windows of different sizes.

use std::collections::BTreeMap;
use std::sync::Arc;

use casebook_protocol::{Budget, TaskKind};
use casebook_tests::lab::{FORMS, Lab};
use casebook_tests::model::brain::Brain;
use casebook_tests::model::play::Changed;
use casebook_tests::model::server::Options;
use casebook_tests::model::{Request, prompt};
use casebook_tests::run::demo;
use serde_json::{Value, json};

use crate::forms::brain;
use crate::views::requests;

/// Gives each event a long description, and takes what `auth.log` shows as exonerating.
fn long(request: &Request, answer: &mut Value) {
    let kind = prompt::kind(&request.system);
    let key = if kind == Some(TaskKind::Timeline) { "events" } else { "findings" };
    for one in answer[key].as_array_mut().into_iter().flatten() {
        if let (Some(TaskKind::Timeline), Some(text)) = (kind, one["description"].as_str()) {
            one["description"] =
                json!(format!("{}{}", &text[..text.len().min(60)], " It is on record there.".repeat(18)));
        } else if one["claim"].as_str().is_some_and(|claim| claim.contains("auth.log")) {
            one["bearing"] = json!("exonerating");
        }
    }
}

#[test]
fn timeline_fits_the_window_of_its_model_and_loses_nothing() {
    let run = |form, window: u64| {
        let script = Changed { script: Brain { rounds: 4, ..brain() }, kind: TaskKind::Investigate, change: long };
        let mut lab = Lab::start(Changed { script, kind: TaskKind::Timeline, change: long }, form).unwrap();
        let model = lab.file.split("\n\n").next().unwrap().replace("models.scripted", "models.other");
        let model = model.replace("window = 200000", &format!("window = {window}"));
        let model = model.replace("max_output = 8000", "max_output = 1000");
        lab.file += &format!("\n{model}\n[roles.critic.tasks.timeline]\nmodel = \"other\"\n");
        let report = lab.investigate(&demo(), Budget::default()).unwrap();
        let failed: Vec<_> = report.usage.tasks.iter().filter_map(|t| t.failed.clone()).collect();
        assert_eq!(failed, [""; 0], "{form:?} {window}");
        (lab, report)
    };
    for form in [FORMS[0], FORMS[7]] {
        let ((narrow, report), (wide, _)) = (run(form, 9000), run(form, 200_000));
        let left_out = |request: &Request| {
            let note =
                prompt::section(request, "left_out")?.lines().find_map(|line| line.strip_prefix("timeline: "))?;
            note.split_once(" of ")?.1.split(' ').next()?.parse::<usize>().ok()
        };
        assert!(requests(&wide, TaskKind::Timeline).iter().all(|r| left_out(r).is_none()), "{form:?}");
        let all = requests(&narrow, TaskKind::Timeline);
        let mut shown = Vec::new();
        for request in &all {
            let Some(timeline) = prompt::json_section(request, "timeline") else { continue };
            let events = timeline["events"].as_array().unwrap();
            assert_eq!(events[0]["n"], 1, "{form:?}: the earliest is shown");
            assert!(events.iter().any(|e| e["description"].as_str().unwrap().contains("auth.log")), "{form:?}");
            assert!(left_out(request).is_none_or(|all| events.len() < all), "{form:?}");
            shown.push(events.iter().map(|event| event["findings"].clone()).collect::<Vec<_>>());
        }
        assert!(all.last().is_some_and(|last| left_out(last).is_some()), "{form:?}");
        let last = shown.pop().unwrap();
        let mut cut = shown.iter().flatten().filter(|event| !last.contains(event)).peekable();
        assert!(cut.peek().is_some(), "{form:?}");
        let kept = report.timeline.events.iter().flat_map(|event| &event.findings).map(|id| json!(id));
        let kept: Vec<Value> = kept.collect();
        for id in cut.flat_map(|event| event.as_array().unwrap()) {
            assert!(kept.contains(id), "{form:?}: {id} was not shown, and stays");
        }
    }
}

/// The server counts four bytes as a token. Where it counts none, a token is taken for two and a half bytes.
#[test]
fn room_for_results_is_what_the_provider_counted() {
    const WINDOW: u64 = 16_000;
    // The bytes of the results in the last request of each task.
    let run = |form, unmetered| -> BTreeMap<String, Vec<usize>> {
        let script = Brain { rounds: 1, expert_calls: 9, calls_a_turn: 1, ..brain() };
        let options = Options { window: Some(WINDOW), unmetered, ..Options::default() };
        let lab = Lab::start_with(script, form, &format!("window = {WINDOW}\nmax_output = 1000\n"), options).unwrap();
        let report = lab.investigate(&demo(), Budget::default()).unwrap();
        let failed: Vec<_> = report.usage.tasks.iter().filter_map(|t| t.failed.clone()).collect();
        assert_eq!(failed, [""; 0], "{form:?}");
        let results = |request: &Arc<Request>| {
            let shown = prompt::all_shown(request);
            let task = shown.first()?.call.rsplit_once(".t")?.0.to_owned();
            Some((task, shown.iter().map(|one| one.data.len()).collect()))
        };
        requests(&lab, TaskKind::Investigate).iter().filter_map(results).collect()
    };
    for form in [FORMS[0], FORMS[7]] {
        let (counted, estimated) = (run(form, false), run(form, true));
        assert!(counted.keys().eq(estimated.keys()), "{form:?}");
        let pairs = || counted.values().flatten().zip(estimated.values().flatten());
        assert!(pairs().all(|(counted, estimated)| counted >= estimated), "{form:?}: {counted:?} {estimated:?}");
        assert!(pairs().any(|(counted, estimated)| counted > estimated), "{form:?}: {counted:?} {estimated:?}");
    }
}
