//! The Timeline: drawn on a time axis, then event by event with its records.

use casebook_protocol::report::ReportEvent;
use casebook_protocol::{Citation, GapKind, RecordRef, between, one_line};
use casebook_report::words;
use maud::{Markup, html};

use super::{Case, empty_yet};
use crate::chart::axis::{self, Point};
use crate::pages::icon::Icon;
use crate::pages::parts;

#[must_use]
pub fn show(case: &Case<'_>) -> Markup {
    let timeline = &case.report.timeline;
    if case.state.timeline.is_none() {
        return empty_yet(
            case,
            Icon::Clock,
            "No Timeline yet",
            "The Critic writes the first one after the first Review.",
        );
    }
    let portion = case.portion("timeline", &timeline.events, 0);
    html! {
        section.card aria-labelledby="axis" {
            header { h2 #axis { "What happened, on the time axis" } (legend()) }
            div.pad.stack {
                @if timeline.events.is_empty() { p.soft { "No event has enough support." } } @else { (drawn(case)) }
            }
        }
        @if !timeline.gaps.is_empty() { (gaps(case)) }
        section.card aria-labelledby="events" {
            header { h2 #events { (words::count(timeline.events.len() as u64, "event")) } (parts::score(timeline.score, timeline.label.name())) }
            div.pad { ol.events { @for (n, event) in (portion.first..).zip(portion.rows) { (one(case, n, event)) } } (portion.nav) }
        }
        section.card { div.pad { details { summary { "The whole story as text" } p { (case.with_links(|links| links.sentence(&timeline.narrative))) } } } }
    }
}

fn legend() -> Markup {
    let bands = ["Misguided", "Speculative", "Plausible", "Highly-plausible", "Trustworthy"];
    html! { div.legend { @for (n, name) in bands.iter().enumerate().skip(2) { span class={ "s" (n) } { i {} b { (name) } } } } }
}

fn drawn(case: &Case<'_>) -> Markup {
    let points: Vec<Point> = case
        .report
        .timeline
        .events
        .iter()
        .enumerate()
        .map(|(n, event)| Point {
            at: event.when.at,
            until: event.when.until,
            step: parts::step(event.score),
            label: format!(
                "{} {}: {}",
                case.frame.zone.moment(&event.when),
                event.score,
                one_line(&event.description, 160)
            ),
            href: case.row_link("timeline", case.report.timeline.events.len(), n, &format!("e-{}", n + 1)),
        })
        .collect();
    let alerted = case.report.alert.time();
    // A marker far from all events would squeeze them.
    let edges = points.first().zip(points.last());
    let near = alerted.filter(|at| {
        edges.is_none_or(|(first, last)| {
            let span = between(first.at, last.at).max(std::time::Duration::from_secs(60));
            between(*at, first.at) <= span && between(last.at, *at) <= span
        })
    });
    axis::axis(&case.frame.zone, &points, near.map(|at| (at, "alert")))
}

fn gaps(case: &Case<'_>) -> Markup {
    let icon = |kind: GapKind| match kind {
        GapKind::Evidential => Icon::Eye,
        GapKind::Temporal => Icon::Gap,
        GapKind::Logical => Icon::Question,
    };
    html! {
        section.stack aria-label="Gaps" {
            @for gap in &case.report.timeline.gaps {
                div.gap { (icon(gap.kind).show()) div { span.strong { (words::gap(gap.kind)) } " " span.soft { (gap.kind.meaning()) } p { (case.with_links(|links| links.sentence(&gap.description))) } } }
            }
        }
    }
}

/// A pause worth showing: much longer than the usual one between two events.
fn pause(case: &Case<'_>, n: usize) -> Option<std::time::Duration> {
    let events = &case.report.timeline.events;
    let (before, this) = (events.get(n.checked_sub(1)?)?, events.get(n)?);
    let pause = between(before.when.until.unwrap_or(before.when.at), this.when.at);
    let whole = between(events.first()?.when.at, events.last()?.when.at);
    (pause >= std::time::Duration::from_secs(10)
        && pause.as_secs_f64() > whole.as_secs_f64() / events.len() as f64 * 2.0)
        .then_some(pause)
}

fn one(case: &Case<'_>, n: usize, event: &ReportEvent) -> Markup {
    html! {
        @if let Some(day) = day(case, n) { li.day { span.right.label { (day) } } }
        @if let Some(pause) = pause(case, n) { li.pause { span.right { (parts::length(pause)) } span {} span { "no event" } } }
        li #{ "e-" (n + 1) } {
            div.right { (time(case, event)) }
            span class={ "dot s" (parts::step(event.score)) } {}
            div {
                p.what { (case.with_links(|links| links.sentence(&event.description))) }
                div.why {
                    (parts::score(event.score, words::label(event.score)))
                    span { (case.with_links(|links| links.ids(&event.findings))) }
                    @for record in event.evidence.iter().take(3) { (source(case, event, record)) }
                    @if event.evidence.len() > 3 { span { "and " (event.evidence.len() - 3) " more" } }
                }
            }
        }
    }
}

/// The time of day; the day stands above its first event.
fn time(case: &Case<'_>, event: &ReportEvent) -> Markup {
    let shown = case.frame.zone.moment(&event.when);
    let day = case.frame.zone.day(event.when.at);
    let short = if event.when.until.is_none() { shown.strip_prefix(&day).map(str::trim) } else { None };
    html! {
        time datetime=(event.when.at) title=(words::moment(&event.when)) { (short.filter(|text| !text.is_empty()).unwrap_or(&shown)) }
        span.basis { (event.when.basis.meaning()) @if !event.when.field.is_empty() { " · " (event.when.field) } }
    }
}

/// The day, if it is not that of the event before.
fn day(case: &Case<'_>, n: usize) -> Option<String> {
    let events = &case.report.timeline.events;
    let of = |n: usize| events.get(n).map(|event| case.frame.zone.day(event.when.at));
    let before = n.checked_sub(1).and_then(of);
    of(n).filter(|day| before.as_ref() != Some(day))
}

/// The record, linked to the tool call that returned it with the quote marked.
fn source(case: &Case<'_>, event: &ReportEvent, record: &RecordRef) -> Markup {
    let among = case.report.findings.iter().filter(|found| event.findings.contains(&found.finding.id));
    let cited = among.flat_map(|found| found.citations.iter().enumerate().map(move |(n, cited)| (found, n, cited)));
    let holds = |(_, _, cited): &(_, usize, &casebook_protocol::report::ReportCitation)| {
        cited.holds && cited.records.contains(record)
    };
    let mut found = cited.filter(holds);
    let first = found.next();
    html! {
        @match first {
            Some((found, n, cited)) => { a.mono href=(quoted(case, found.finding.id.as_str(), n, &cited.citation)) { (Icon::File.show()) " " (words::record(record)) } }
            None => span.mono { (words::record(record)) }
        }
    }
}

/// Where the result of a citation is shown with its quote.
pub fn quoted(case: &Case<'_>, finding: &str, n: usize, citation: &Citation) -> String {
    format!("/i/{}/c/{}?cite={finding}.{}#hit", case.id, citation.call(), n + 1)
}
