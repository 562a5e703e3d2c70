//! The three channels at a moment: Journal, Review, Timeline, with what differs from the present.

use casebook_protocol::{JournalEntry, Reviewed, TimelineEvent};
use casebook_report::words;
use maud::{Markup, html};

use super::Case;
use crate::pages::icon::Icon;
use crate::pages::parts;

#[must_use]
pub fn show(case: &Case<'_>) -> Markup {
    html! {
        div.three {
            section.card aria-labelledby="ch-journal" { (journal(case)) }
            section.card aria-labelledby="ch-review" { (review(case)) }
            section.card aria-labelledby="ch-timeline" { (timeline(case)) }
        }
    }
}

fn journal(case: &Case<'_>) -> Markup {
    let entries = &case.state.journal;
    let all = case.present.map_or(entries.len(), |present| present.journal.len());
    let next = case.present.and_then(|present| present.journal.get(entries.len()));
    html! {
        header { h2 #ch-journal { "Journal" } span.count { (entries.len()) " of " (all) } }
        div.pad {
            @if entries.is_empty() { p.soft { "No entry yet." } }
            @for entry in entries.iter().rev() { (note(case, entry)) }
            @if let Some(next) = next { p.soft.small { "Next: #" (next.seq) ", " (next.entry.kind.name()) } }
        }
    }
}

fn note(case: &Case<'_>, entry: &JournalEntry) -> Markup {
    html! {
        div.entry {
            span.mark title=(entry.entry.kind.name()) { (parts::entry_icon(entry.entry.kind).show()) }
            div {
                p.small.soft { "#" (entry.seq) " " (entry.entry.kind.name()) " · round " (entry.round) }
                p.small { (case.with_links(|links| links.sentence(&casebook_protocol::one_line(&entry.entry.text, 400)))) }
            }
        }
    }
}

fn review(case: &Case<'_>) -> Markup {
    let Some(review) = &case.state.review else {
        return html! { header { h2 #ch-review { "Review" } } div.pad { p.soft { "No Review yet." } } };
    };
    html! {
        header { h2 #ch-review { "Review of round " (review.round) } span.count { (review.findings.len()) } }
        div.pad.stack {
            p.small { (case.with_links(|links| links.sentence(&review.summary))) }
            ul.stack { @for one in &review.findings { (scored(case, one)) } }
        }
    }
}

fn scored(case: &Case<'_>, one: &Reviewed) -> Markup {
    let later =
        case.present.and_then(|present| present.known.get(&one.finding.id)).filter(|now| now.score != one.score);
    html! {
        li {
            div.row.apart { (case.with_links(|links| links.ids(std::slice::from_ref(&one.finding.id)))) (parts::score(one.score, "")) }
            @if let Some(later) = later { p.small.soft { "later " (later.score) } }
        }
    }
}

fn timeline(case: &Case<'_>) -> Markup {
    let Some(timeline) = &case.state.timeline else {
        return html! { header { h2 #ch-timeline { "Timeline" } } div.pad { p.soft { "No Timeline yet." } } };
    };
    let later: &[TimelineEvent] =
        case.present.and_then(|present| present.timeline.as_ref()).map_or(&[], |now| &now.events);
    let stays =
        |event: &TimelineEvent| later.is_empty() || later.iter().any(|other| other.description == event.description);
    let added = later
        .iter()
        .filter(|event| !timeline.events.iter().any(|other| other.description == event.description))
        .count();
    html! {
        header { h2 #ch-timeline { "Timeline, version " (timeline.version) } span.count { (timeline.events.len()) } }
        div.pad.stack {
            div.row.apart { (parts::score(timeline.score, timeline.label.name())) span.small.soft { (words::count(timeline.gaps.len() as u64, "gap")) } }
            ul.stack {
                @for event in &timeline.events {
                    li.small {
                        time datetime=(event.time.at) { (case.frame.zone.clock(event.time.at)) } " "
                        (case.with_links(|links| links.sentence(&casebook_protocol::one_line(&event.description, 160))))
                        @if !stays(event) { " " span.badge.open { (Icon::Gap.show()) "dropped later" } }
                    }
                }
            }
            @if added > 0 { p.soft.small { (words::count(added as u64, "event")) " more in the present Timeline" } }
        }
    }
}
