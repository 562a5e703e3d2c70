//! The Director's Journal.

use casebook_protocol::{JournalEntry, Priority};
use casebook_report::words;
use maud::{Markup, html};

use super::{Case, empty_yet};
use crate::pages::icon::Icon;
use crate::pages::parts;

#[must_use]
pub fn show(case: &Case<'_>) -> Markup {
    let entries = &case.state.journal;
    if entries.is_empty() {
        return empty_yet(
            case,
            Icon::Book,
            "The Journal is empty",
            "The Director writes the first entry with its first plan.",
        );
    }
    let newest: Vec<&JournalEntry> = entries.iter().rev().collect();
    let portion = case.portion("journal", &newest, 0);
    let mut rounds: Vec<(u32, Vec<&JournalEntry>)> = Vec::new();
    for entry in portion.rows.iter().rev().copied() {
        match rounds.last_mut() {
            Some((round, all)) if *round == entry.round => all.push(entry),
            _ => rounds.push((entry.round, vec![entry])),
        }
    }
    html! {
        @for (round, entries) in rounds.iter().rev() {
            section.card aria-label={ "Journal of round " (round) } {
                header { h2 { @if *round == 0 { "Before the first round" } @else { "Round " (round) } @if let Some(first) = entries.first() { span.soft { " · " (first.phase.name()) } } } span.count { (words::count(entries.len() as u64, "entry")) } }
                div.pad { @for entry in entries { (one(case, entry)) } }
            }
        }
        (portion.nav)
    }
}

/// Entries are numbered from 1, and the newest comes first.
fn link(case: &Case<'_>, seq: u32) -> String {
    let all = case.state.journal.len();
    case.row_link("journal", all, all.saturating_sub(seq as usize), &format!("j-{seq}"))
}

fn one(case: &Case<'_>, entry: &JournalEntry) -> Markup {
    let draft = &entry.entry;
    let replaced = case.state.journal.iter().find(|later| later.entry.supersedes.contains(&entry.seq));
    let tone = match draft.priority {
        Some(Priority::Critical | Priority::High) => "open",
        _ => "none",
    };
    case.with_links(|links| html! {
        article.entry #{ "j-" (entry.seq) } {
            span.mark { (parts::entry_icon(draft.kind).show()) }
            div.stack {
                div.row.small {
                    span.strong { "#" (entry.seq) " " (words::capital(draft.kind.name())) }
                    @if let Some(priority) = draft.priority { span.badge.(tone) { (priority.name()) } }
                    @for old in &draft.supersedes { a href=(link(case, *old)) { "corrects #" (old) } }
                    @if let Some(later) = replaced { a href=(link(case, later.seq)) { "corrected by #" (later.seq) } }
                    span.soft { (parts::time(case.frame, entry.at)) }
                }
                p { (links.sentence(&draft.text)) }
                @if !draft.citations.is_empty() { p.small { span.soft { "Rests on " } (links.ids(&draft.citations)) } }
                @if !draft.follow_ups.is_empty() { ul.bullets.small { @for follow in &draft.follow_ups { li { (links.sentence(follow)) } } } }
            }
        }
    })
}
