//! `casebook show`

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use casebook_agent::model::data::visible;
use casebook_hub::archive::{self, Past};
use casebook_protocol::{CallId, CallStatus, Event, Recorded, Report, TaskId, between, report::TaskUsage};
use casebook_runtime::store::Store;
use casebook_trust::Backing;

use crate::args::Show;
use crate::failure::{Exit, Failure};
use crate::home::Home;
use crate::screen::{BOLD, DIM, PLAIN, RED, Screen, YELLOW, of_score, of_verdict, paint, safe};
use casebook_report::{Form, compare, save, words};

/// So many places of evidence are named for an event; the report names all.
const PLACES: usize = 4;

pub(super) async fn run(home: &Home, args: &Show, screen: &mut Screen) -> Result<Exit, Failure> {
    let (id, Past { log, state, report }) = home.read(&args.id).await?;
    if let Some(call) = &args.call {
        return recorded(home, &report, call, screen).await;
    }
    screen.line(format_args!(
        "{}  severity {}",
        paint(BOLD, safe(&report.alert.title, 160)),
        report.alert.severity.name()
    ));
    let opened = screen.time(report.opened);
    let alert = safe(report.alert.id.as_str(), 80);
    screen.line(paint(DIM, format_args!("investigation {id}, alert {alert}, opened {opened}")));
    if state.closed.is_some() {
        verdict(&report, screen);
    } else if let Some(reason) = &state.not_investigated {
        screen.wrapped("", RED, &format!("not investigated: {}", safe(reason, 1_000)));
        screen.line(home.goes_on(&id));
    } else {
        screen.line(paint(YELLOW, format_args!("not finished: {}, round {}", state.phase.name(), state.round)));
        screen.line(home.goes_on(&id));
    }
    story(&report, screen);
    usage(&report, &took(&log), screen);
    Ok(Exit::Done)
}

/// What a tool call returned, to the byte but for what a terminal must not get.
async fn recorded(home: &Home, report: &Report, call: &CallId, screen: &mut Screen) -> Result<Exit, Failure> {
    let Some(call) = report.calls.iter().find(|one| one.id == *call) else {
        let some: Vec<&str> = report.calls.iter().take(5).map(|one| one.id.as_str()).collect();
        let advice = format!("the report names the call of each citation; there are {} and so on", some.join(", "));
        return Err(Failure::usage(format!("investigation {} has no tool call {call}", report.investigation), advice));
    };
    let bytes = home.store.get(&call.result).await?;
    let bytes = bytes.ok_or_else(|| Failure {
        exit: Exit::NotIntact,
        what: format!("the result {} of call {} is not in the store", call.result, call.id),
        advice: "`casebook verify` says what else is missing".into(),
    })?;
    let failed = if call.status == CallStatus::Failed { ", failed" } else { "" };
    screen.line(format_args!("{}  {}", paint(BOLD, safe(&call.tool, 80)), safe(&call.arguments, 2_000)));
    screen.line(paint(DIM, format_args!("call {}{failed}, {} bytes, SHA-256 {}", call.id, call.bytes, call.result)));
    for line in String::from_utf8_lossy(&bytes).lines() {
        screen.line(visible(line));
    }
    Ok(Exit::Done)
}

/// The verdict, what it used, and where the report is.
pub(super) async fn conclusion(
    report: &Report,
    out: Option<&Path>,
    store: &dyn Store,
    screen: &mut Screen,
) -> Result<(), Failure> {
    verdict(report, screen);
    by_role(report, screen);
    screen.line("");
    if let Some(folder) = out {
        let backing = archive::backed(store, report, Backing::of(report)).await?;
        save::report(folder, report, &backing)?;
        screen.line(format_args!("{} {}", paint(BOLD, "Report"), folder.join(Form::Html.file_name()).display()));
    }
    Ok(())
}

/// The verdict with its reasons, as at the end of an investigation.
pub(super) fn verdict(report: &Report, screen: &mut Screen) {
    screen.line("");
    screen.wrapped("", BOLD, &safe(&report.headline, 400));
    screen.line(format_args!(
        "{}  {}",
        paint(of_verdict(report.verdict), words::verdict(report.verdict)),
        words::meaning(report.verdict)
    ));
    screen.wrapped("", PLAIN, &safe(&report.summary, 2_000));
    if let Some(reason) = &report.stop_reason {
        screen.wrapped("", YELLOW, &format!("stopped before its end: {}", safe(reason, 300)));
    }
    if let Some(accounted) = words::accounted(&report.ruling).filter(|_| report.ruling.proposed.dismisses()) {
        screen.line(paint(DIM, accounted));
    }
    if let Some(proposed) = words::overruled(&report.ruling) {
        screen.line(format_args!("proposed was {}; missing for it:", proposed.to_lowercase()));
    }
    for missing in &report.ruling.missing {
        screen.wrapped("  - ", PLAIN, &safe(missing, 400));
    }
    points("What to do", &report.actions, screen);
    points("Open questions", &report.open_questions, screen);
}

fn points(heading: &str, points: &[String], screen: &mut Screen) {
    if !points.is_empty() {
        screen.line(paint(BOLD, heading));
    }
    for (number, point) in (1..).zip(points) {
        screen.wrapped(&format!("  {number}. "), PLAIN, &safe(point, 400));
    }
}

fn story(report: &Report, screen: &mut Screen) {
    let timeline = &report.timeline;
    screen.line("");
    screen.line(format_args!(
        "{}  {}",
        paint(BOLD, "Timeline"),
        paint(of_score(timeline.score), format_args!("{} {}", timeline.score, timeline.label.name()))
    ));
    for event in &timeline.events {
        let mut places: Vec<String> = event.evidence.iter().take(PLACES).map(|r| safe(&words::record(r), 80)).collect();
        if event.evidence.len() > PLACES {
            places.push(format!("{} more", event.evidence.len() - PLACES));
        }
        let until = event.when.until.map_or_else(String::new, |until| format!(" to {}", screen.time(until)));
        let when = format!("{}{until}", screen.time(event.when.at));
        let lead = format!("  {when} {} ", paint(of_score(event.score), event.score));
        screen.wrapped(&lead, PLAIN, &safe(&event.description, 200));
        screen.wrapped("      ", DIM, &format!("{}, {}", event.when.basis.meaning(), places.join(", ")));
    }
    for gap in &timeline.gaps {
        let text = format!("{} gap: {}", gap.kind.name(), safe(&gap.description, 300));
        screen.wrapped("  ", YELLOW, &text);
    }
    screen.line("");
    screen.line(paint(BOLD, format_args!("Findings ({})", report.findings.len())));
    for found in &report.findings {
        let score = found.score.map_or_else(
            || paint(DIM, "not reviewed yet     "),
            |s| paint(of_score(s), format_args!("{s} {:<16}", found.label.map_or("", |l| l.name()))),
        );
        let lead = format!("  {score} {} ", found.finding.id);
        screen.wrapped(&lead, PLAIN, &safe(&found.finding.draft.claim, 200));
    }
}

/// What each task used, who played it, and how long it took from its request to its end.
fn usage(report: &Report, took: &BTreeMap<TaskId, Duration>, screen: &mut Screen) {
    screen.line("");
    screen.line(paint(BOLD, "Used"));
    for task in &report.usage.tasks {
        let TaskUsage { usage, failed, .. } = task;
        let time = took.get(&task.task).map_or_else(String::new, |time| words::seconds(*time));
        screen.line(format_args!(
            "  {:<28} {} {time:>8}  {}{}",
            task.task.as_str(),
            spent(usage),
            safe(&played(task), 80),
            failed.as_ref().map_or_else(String::new, |why| paint(RED, format_args!("  failed: {}", safe(why, 400))))
        ));
    }
    screen.line(format_args!("  {:<28} {}", "all", spent(&report.usage.total)));
}

fn played(task: &TaskUsage) -> String {
    task.player.as_ref().map_or_else(|| "none".to_owned(), |p| format!("{} {}", p.name, p.version))
}

/// From each task's request to its end.
fn took(log: &[Recorded]) -> BTreeMap<TaskId, Duration> {
    let mut begun = BTreeMap::new();
    let mut took = BTreeMap::new();
    for entry in log {
        match &entry.event {
            Event::TaskRequested { task, .. } => drop(begun.insert(task.clone(), entry.at)),
            Event::TaskAnswered { task, .. } | Event::TaskFailed { task, .. } => {
                if let Some(from) = begun.get(task) {
                    took.insert(task.clone(), between(*from, entry.at));
                }
            }
            _ => {}
        }
    }
    took
}

/// What each role used and who played it, when a model was asked.
pub(super) fn by_role(report: &Report, screen: &mut Screen) {
    if report.usage.total.model_calls == 0 {
        return;
    }
    screen.line("");
    screen.line(paint(BOLD, "Used"));
    let players = compare::players(report);
    for (role, usage) in compare::used_by_role(report) {
        let who: Vec<&str> = players.get(role).into_iter().flatten().map(String::as_str).collect();
        screen.line(format_args!("  {role:<10} {}  {}", spent(&usage), safe(&who.join(", "), 120)));
    }
    let total = &report.usage.total;
    screen.line(format_args!(
        "  {:<10} {}  {} of the tokens in were cached",
        "all",
        spent(total),
        words::share(total.cached_tokens, total.input_tokens)
    ));
}

fn spent(usage: &casebook_protocol::Usage) -> String {
    let tools = format!("{:>5} tool calls", usage.tool_calls);
    if usage.model_calls == 0 {
        return tools;
    }
    format!(
        "{tools} {:>4} model calls {:>9} tokens in ({:>9} cached) {:>8} out {:>10}",
        usage.model_calls,
        usage.input_tokens,
        usage.cached_tokens,
        usage.output_tokens,
        words::money(usage.cost_micros)
    )
}
