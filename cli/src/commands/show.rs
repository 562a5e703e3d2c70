//! `casebook show`

use std::path::Path;

use casebook_hub::archive;
use casebook_protocol::{Report, report::TaskUsage};

use crate::args::Show;
use crate::failure::{Exit, Failure};
use crate::home::{Home, hub_failure};
use crate::render::words;
use crate::screen::{BOLD, DIM, RED, Screen, YELLOW, of_score, of_verdict, paint, safe};

/// So many places of evidence are named for an event; the report names all.
const PLACES: usize = 4;

pub(super) async fn run(data: &Path, args: &Show, screen: &mut Screen) -> Result<Exit, Failure> {
    let home = Home::existing(data)?;
    let id = home.find(&args.id).await?;
    let state = archive::state(home.store.as_ref(), &id).await.map_err(|e| hub_failure(&e))?;
    let report = archive::report(home.store.as_ref(), &id).await.map_err(|e| hub_failure(&e))?;
    screen.line(format_args!(
        "{}  severity {}",
        paint(BOLD, safe(&report.alert.title, 160)),
        words::severity(report.alert.severity)
    ));
    screen.line(paint(
        DIM,
        format_args!(
            "investigation {id}, alert {}, opened {}",
            safe(report.alert.id.as_str(), 80),
            words::second(report.opened)
        ),
    ));
    if state.closed.is_some() {
        verdict(&report, screen);
    } else {
        screen.line(paint(YELLOW, format_args!("not finished: {}, round {}", state.phase.name(), state.round)));
        screen.line(format_args!("`casebook resume {id}{}` goes on with it", super::investigate::data_option(data)));
    }
    story(&report, screen);
    usage(&report, screen);
    Ok(Exit::Done)
}

/// The verdict with its reasons, as at the end of an investigation.
pub(super) fn verdict(report: &Report, screen: &mut Screen) {
    screen.line("");
    screen.line(format_args!(
        "{}  {}",
        paint(of_verdict(report.verdict), words::verdict(report.verdict)),
        words::meaning(report.verdict)
    ));
    screen.line(safe(&report.summary, 2_000));
    if let Some(reason) = &report.stop_reason {
        screen.line(paint(YELLOW, format_args!("stopped before its end: {}", safe(reason, 300))));
    }
    if report.ruling.proposed != report.ruling.verdict {
        screen.line(format_args!(
            "proposed was {}; missing for it:",
            words::verdict(report.ruling.proposed).to_lowercase()
        ));
    }
    for missing in &report.ruling.missing {
        screen.line(format_args!("  - {}", safe(missing, 400)));
    }
    points("What to do", &report.actions, screen);
    points("Still open", &report.open_questions, screen);
}

fn points(heading: &str, points: &[String], screen: &mut Screen) {
    if !points.is_empty() {
        screen.line(paint(BOLD, heading));
    }
    for (number, point) in (1..).zip(points) {
        screen.line(format_args!("  {number}. {}", safe(point, 400)));
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
        let mut places: Vec<String> =
            event.evidence.iter().take(PLACES).map(|r| safe(&format!("{}:{}", r.file, r.line), 80)).collect();
        if event.evidence.len() > PLACES {
            places.push(format!("{} more", event.evidence.len() - PLACES));
        }
        screen.line(format_args!(
            "  {} {} {}",
            words::moment(&event.when),
            paint(of_score(event.score), event.score),
            safe(&event.description, 200)
        ));
        screen.line(paint(DIM, format_args!("      {}, {}", words::basis(&event.when).0, places.join(", "))));
    }
    for gap in &timeline.gaps {
        screen.line(paint(
            YELLOW,
            format_args!("  {}: {}", words::gap(gap.kind).to_lowercase(), safe(&gap.description, 300)),
        ));
    }
    screen.line("");
    screen.line(paint(BOLD, format_args!("Findings ({})", report.findings.len())));
    for found in &report.findings {
        let score = found.score.map_or_else(
            || paint(DIM, "not reviewed yet     "),
            |s| paint(of_score(s), format_args!("{s} {:<16}", found.label.map_or("", |l| l.name()))),
        );
        screen.line(format_args!("  {score} {} {}", found.finding.id, safe(&found.finding.draft.claim, 200)));
    }
}

fn usage(report: &Report, screen: &mut Screen) {
    screen.line("");
    screen.line(paint(BOLD, "Used"));
    for task in &report.usage.tasks {
        let TaskUsage { usage, failed, .. } = task;
        screen.line(format_args!(
            "  {:<28} {}{}",
            task.task.as_str(),
            spent(usage),
            failed.as_ref().map_or_else(String::new, |why| paint(RED, format_args!("  failed: {}", safe(why, 160))))
        ));
    }
    screen.line(format_args!("  {:<28} {}", "all", spent(&report.usage.total)));
}

fn spent(usage: &casebook_protocol::Usage) -> String {
    let tools = format!("{:>5} tool calls", usage.tool_calls);
    if usage.model_calls == 0 {
        return tools;
    }
    format!(
        "{tools} {:>5} model calls {:>9} tokens in {:>8} out {:>10}",
        usage.model_calls,
        usage.input_tokens,
        usage.output_tokens,
        words::money(usage.cost_micros)
    )
}
