//! The whole log as a strip with a slider: any moment is a link.

use casebook_protocol::{Event, Recorded};
use maud::{Markup, html};

use super::Case;
use crate::chart::strip::{self, Mark, Segment};
use crate::model::told;
use crate::pages::icon::Icon;
use crate::pages::parts;

#[must_use]
pub fn show(case: &Case<'_>, tab: &str) -> Markup {
    let at = case.at.unwrap_or(case.last);
    let rounds: Vec<u64> =
        case.log.iter().filter(|e| matches!(e.event, Event::RoundStarted { .. })).map(|e| e.seq).collect();
    let before = rounds.iter().rev().find(|seq| **seq < at).copied();
    let link = |seq: u64| format!("/i/{}?at={}", case.id, seq.clamp(1, case.last));
    let entry = case.log.iter().rev().find(|entry| entry.seq <= at);
    html! {
        div.player #scrub data-last=(case.last) data-id=(case.id) {
            div.row.apart {
                div.row {
                    h2 { "Replay" }
                    @if let Some(entry) = entry {
                        span.soft.small { "event " span.num { (at) } " of " span.num { (case.last) } " · " (parts::time(case.frame, entry.at)) " · " (told::told(&entry.event).0) }
                    }
                }
                div.row {
                    @if let Some(before) = before { a.btn href=(link(before)) title="Round before" data-key="{" { (Icon::Back.show()) "Round" } }
                    a.btn href=(link(at.saturating_sub(1))) title="Event before" data-key="[" { (Icon::Back.show()) "Event" }
                    a.btn href=(link(at + 1)) title="Event after" data-key="]" { "Event" (Icon::Next.show()) }
                    @if case.at.is_some() { a.btn.main href={ "/i/" (case.id) "?tab=" (if tab == "channels" { "timeline" } else { tab }) } { "Present" } }
                }
            }
            (strip::strip(case.last, at, &segments(case), &marks(case)))
            form method="get" action={ "/i/" (case.id) } {
                label for="at" { "Go to event" }
                input #at type="number" name="at" min="1" max=(case.last) value=(at);
                input.js #slide type="range" min="1" max=(case.last) value=(at) aria-label="Moment, as the number of an event";
                button { "Show" }
                button.js #play type="button" data-key=" " { (Icon::Launch.show()) "Play" }
            }
        }
    }
}

fn segments(case: &Case<'_>) -> Vec<Segment> {
    let mut out: Vec<Segment> = Vec::new();
    for entry in case.log {
        if let Event::RoundStarted { phase, round } = &entry.event {
            if let Some(last) = out.last_mut() {
                last.to = entry.seq;
            }
            let class = match phase {
                casebook_protocol::Phase::Discovery => "c2",
                casebook_protocol::Phase::Trace => "c1",
                casebook_protocol::Phase::Conclude => "c3",
            };
            out.push(Segment { name: format!("{} {round}", phase.name()), from: entry.seq, to: case.last, class });
        }
    }
    out
}

/// The events that change a channel or end something.
fn marks(case: &Case<'_>) -> Vec<Mark> {
    let mark = |entry: &Recorded| {
        let class = match &entry.event {
            Event::Journaled { .. } | Event::Decided { .. } => "g3",
            Event::Reviewed { .. } => "g5",
            Event::TimelineRewritten { .. } => "g6",
            Event::TaskFailed { .. } | Event::Stopping { .. } => "g7",
            Event::Concluded { .. } => "g8",
            _ => return None,
        };
        let (title, text) = told::told(&entry.event);
        Some(Mark {
            seq: entry.seq,
            class,
            label: format!("{}: {title}. {text}", entry.seq),
            href: format!("/i/{}?at={}", case.id, entry.seq),
        })
    };
    case.log.iter().filter_map(mark).collect()
}

#[must_use]
pub fn past(case: &Case<'_>) -> Markup {
    let at = case.log.last().map(|entry| parts::time(case.frame, entry.at));
    parts::note(
        "calm",
        Icon::Clock,
        &html! {
            "You are viewing the past: everything below is as it was " @if let Some(at) = at { "at " (at) } ", after event " (case.at.unwrap_or(case.last)) " of " (case.last) ". "
            a href={ "/i/" (case.id) } { "Go to the present" }
        },
    )
}
