//! What is read first: verdict, summary, what to do, what happened.

use casebook_protocol::{Report, report::ReportEvent};
use maud::{Markup, html};

use super::parts::{basis, chip, coherence, event_anchor, findings, record, sentence};
use super::{tone, words};

pub(super) fn banner(report: &Report) -> Markup {
    html! {
        header class=(tone(report.verdict)) {
            p.brand { "Casebook " span { "investigation report" } }
            p.verdict { (words::verdict(report.verdict)) }
            p.meaning { (words::capital(words::meaning(report.verdict))) "." }
            h1 { (report.alert.title) }
            @if let Some(reason) = &report.stop_reason { p.stopped { b { "Stopped before its end: " } (sentence(report, reason)) } }
            dl {
                (fact("Alert", &html! { code { (report.alert.id) } }))
                (fact("Severity", &html! { (words::severity(report.alert.severity)) }))
                (fact("Investigated", &html! { (words::second(report.opened)) ", " (words::took(report)) ", " (report.usage.rounds) @if report.usage.rounds == 1 { " round" } @else { " rounds" } }))
                (fact("Investigation", &html! { code { (report.investigation) } }))
            }
        }
    }
}

fn fact(name: &str, value: &Markup) -> Markup {
    html! { div { dt { (name) } dd { (value) } } }
}

pub(super) fn summary(report: &Report) -> Markup {
    html! {
        section #summary {
            h2 { "Summary" }
            p.lead { (sentence(report, &report.summary)) }
            @if !report.actions.is_empty() {
                h3 { "What to do" }
                ol.actions { @for action in &report.actions { li { (sentence(report, action)) } } }
            }
            h3 { "Root cause" }
            p { @if report.root_cause.is_empty() { "Not established." } @else { (sentence(report, &report.root_cause)) } }
            @if !report.open_questions.is_empty() {
                h3 { "Open questions" }
                ul { @for question in &report.open_questions { li { (sentence(report, question)) } } }
            }
        }
    }
}

pub(super) fn ruling(report: &Report) -> Markup {
    let ruling = &report.ruling;
    html! {
        section #ruling {
            h2 { "How the verdict came about" }
            p {
                @match words::overruled(ruling) {
                    Some(proposed) => { "The Director proposed " b { (proposed.to_lowercase()) } ". The rules did not let that stand; what counts is " b { (words::verdict(ruling.verdict).to_lowercase()) } "." }
                    None => { "The Director proposed " b { (words::verdict(ruling.verdict).to_lowercase()) } ", and the rules let it stand." }
                }
            }
            @if !ruling.grounds.is_empty() {
                h3 { "Grounds" }
                ul { @for ground in &ruling.grounds { li { (sentence(report, ground)) } } }
            }
            @if !ruling.missing.is_empty() { (missing(report)) }
            @if !report.rests_on.is_empty() { p { "It rests on " (findings(report, &report.rests_on)) "." } }
        }
    }
}

/// What the proposed verdict lacked: the shortest way to a better one.
fn missing(report: &Report) -> Markup {
    html! {
        div.missing {
            p { b { @if report.ruling.proposed.dismisses() { "What was missing for a dismissal" } @else { "What was missing" } } }
            ul { @for item in &report.ruling.missing { li { (sentence(report, item)) } } }
        }
    }
}

pub(super) fn timeline(report: &Report) -> Markup {
    let timeline = &report.timeline;
    html! {
        section #timeline {
            h2 { "Timeline" }
            p.sub { (coherence(timeline.score, timeline.label)) " coherence of the whole" }
            p { (sentence(report, &timeline.narrative)) }
            @if timeline.events.is_empty() { p.none { "No event is supported well enough to stand here." } }
            @else {
                ol.events { @for (i, happened) in timeline.events.iter().enumerate() { (event(report, i + 1, happened)) } }
            }
            @if timeline.gaps.is_empty() { p.none { "No gap was named." } }
            @else {
                h3 { "Gaps" }
                ul.gaps { @for gap in &timeline.gaps { li { b { (words::gap(gap.kind)) } " " (sentence(report, &gap.description)) } } }
            }
        }
    }
}

fn event(report: &Report, n: usize, event: &ReportEvent) -> Markup {
    html! {
        li id=(event_anchor(n)) {
            time datetime=(event.time) { (words::moment(&event.when)) }
            p.what { (sentence(report, &event.description)) }
            p.why {
                (chip(Some(event.score))) " " (basis(&event.when))
                span.refs { "Findings " (findings(report, &event.findings)) }
                @for reference in &event.evidence { " " (record(report, &event.findings, reference)) }
            }
        }
    }
}
