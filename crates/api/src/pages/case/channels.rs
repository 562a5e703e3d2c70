//! The three channels at a moment: Journal, Review, Timeline, with what differs from the present.

use casebook_hub::State;
use casebook_protocol::{JournalEntry, Reviewed, Timeline, TimelineEvent};
use casebook_report::words;
use maud::{Markup, html};

use super::Case;
use super::portion::ROWS;
use crate::pages::icon::Icon;
use crate::pages::parts;

/// Findings with another score that are named.
const MOVED: usize = 6;

#[must_use]
pub fn show(case: &Case<'_>) -> Markup {
    html! {
        @if let Some(present) = case.present { (since(case, present)) }
        div.three {
            section.card aria-labelledby="ch-journal" { (journal(case)) }
            section.card aria-labelledby="ch-review" { (review(case)) }
            section.card aria-labelledby="ch-timeline" { (timeline(case)) }
        }
    }
}

/// Events of `these` that `those` do not have.
fn only<'t>(these: Option<&'t Timeline>, those: Option<&Timeline>) -> Vec<&'t TimelineEvent> {
    let events = |of: Option<&'t Timeline>| of.into_iter().flat_map(|timeline| &timeline.events);
    let there = |event: &TimelineEvent| {
        those.is_some_and(|those| those.events.iter().any(|other| other.description == event.description))
    };
    events(these).filter(|event| !there(event)).collect()
}

/// What the present has that the moment had not.
fn since(case: &Case<'_>, present: &State) -> Markup {
    let (then, now) = (case.state, present);
    let moved = then.known.iter().filter_map(|(id, then)| Some((id, then.score, now.known.get(id)?.score)));
    let moved: Vec<_> = moved.filter(|(_, then, now)| then != now).collect();
    let reviewed = now.known.len().saturating_sub(then.known.len());
    let entries = now.journal.get(then.journal.len()..).unwrap_or_default();
    let added = only(now.timeline.as_ref(), then.timeline.as_ref());
    let dropped = only(then.timeline.as_ref(), now.timeline.as_ref()).len();
    let version = |state: &State| state.timeline.as_ref().map_or(0, |timeline| timeline.version);
    html! {
        section.card aria-label="Changed since" {
            header { h2 { "Changed since" } span.soft.small { (words::count(case.last - case.state.last_seq(), "event")) " later" } }
            div.pad { ul.bullets.small {
                @if let Some(next) = entries.first() { li { (words::count(entries.len() as u64, "Journal entry")) " more; the next is #" (next.seq) ", " (next.entry.kind.name()) } }
                @if reviewed > 0 { li { (words::count(reviewed as u64, "finding")) " more reviewed" } }
                @if !moved.is_empty() { li { "Other scores: " @for (n, (id, then, now)) in moved.iter().take(MOVED).enumerate() {
                    @if n > 0 { ", " } (case.with_links(|links| links.ids(std::slice::from_ref(*id)))) " " (then) " → " (now)
                } @if moved.len() > MOVED { " and " (moved.len() - MOVED) " more" } } }
                @if version(now) > version(then) { li { "Timeline version " (version(then)) " → " (version(now)) ": " (words::count(added.len() as u64, "event")) " added, " (dropped) " dropped"
                    @if !added.is_empty() { details { summary { "Added" } ul.bullets { @for event in &added { li { (case.with_links(|links| links.sentence(&casebook_protocol::one_line(&event.description, 160)))) } } } } }
                } }
                @if let (None, Some((_, ruling))) = (&then.conclusion, &now.conclusion) { li { "The verdict: " span.strong { (words::verdict(ruling.verdict)) } } }
                @if now.journal.len() == then.journal.len() && version(now) == version(then) && reviewed == 0 { li { "Journal, Review and Timeline are the same." } }
            } }
        }
    }
}

fn journal(case: &Case<'_>) -> Markup {
    let entries = &case.state.journal;
    let all = case.present.map_or(entries.len(), |present| present.journal.len());
    html! {
        header { h2 #ch-journal { "Journal" } span.count { (entries.len()) " of " (all) } }
        div.pad {
            @if entries.is_empty() { p.soft { "No entry yet." } }
            @for entry in entries.iter().rev().take(ROWS) { (note(case, entry)) }
            (more(case, "journal", entries.len()))
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
            ul.stack { @for one in review.findings.iter().take(ROWS) { (scored(case, one)) } }
            (more(case, "review", review.findings.len()))
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
    let dropped = case.present.map_or_else(Vec::new, |present| only(Some(timeline), present.timeline.as_ref()));
    html! {
        header { h2 #ch-timeline { "Timeline, version " (timeline.version) } span.count { (timeline.events.len()) } }
        div.pad.stack {
            div.row.apart { (parts::score(timeline.score, timeline.label.name())) span.small.soft { (words::count(timeline.gaps.len() as u64, "gap")) } }
            ul.stack {
                @for event in timeline.events.iter().take(ROWS) {
                    li.small {
                        time datetime=(event.time.at) { (case.frame.zone.clock(event.time.at)) } " "
                        (case.with_links(|links| links.sentence(&casebook_protocol::one_line(&event.description, 160))))
                        @if dropped.contains(&event) { " " span.badge.open { (Icon::Gap.show()) "dropped later" } }
                    }
                }
            }
            (more(case, "timeline", timeline.events.len()))
        }
    }
}

fn more(case: &Case<'_>, tab: &str, all: usize) -> Markup {
    html! { @if all > ROWS { p.small { a href=(case.with_links(|links| links.tab(tab))) { "All " (all) } } } }
}
