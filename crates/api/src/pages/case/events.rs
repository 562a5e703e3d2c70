//! The event log, the newest first, a page at a time.

use casebook_protocol::Recorded;
use maud::{Markup, html};

use super::Case;
use crate::model::told::{Group, told};

pub const PAGE: usize = 200;

fn class(group: Group) -> String {
    let n = Group::ALL.iter().position(|one| *one == group).unwrap_or(0);
    format!("g{n}")
}

#[must_use]
pub fn show(case: &Case<'_>) -> Markup {
    let group = Group::ALL.into_iter().find(|group| group.name() == case.group);
    let upto = case.upto.unwrap_or(u64::MAX);
    let kept = |entry: &&Recorded| entry.seq <= upto && group.is_none_or(|group| Group::of(&entry.event) == group);
    let mut all = case.log.iter().rev().filter(kept);
    let shown: Vec<&Recorded> = all.by_ref().take(PAGE).collect();
    let next = all.next().map(|entry| entry.seq);
    let link = |group: &str, upto: Option<u64>| {
        let base = case.with_links(|links| links.tab("events"));
        let group =
            if group.is_empty() { String::new() } else { format!("&group={}", crate::pages::fleet::encoded(group)) };
        format!("{base}{group}{}", upto.map_or_else(String::new, |upto| format!("&upto={upto}")))
    };
    html! {
        nav.row aria-label="Groups of events" {
            a.badge.(if group.is_none() { "calm" } else { "none" }) href=(link("", None)) aria-current=[group.is_none().then_some("true")] { "all" }
            @for one in Group::ALL {
                a.badge.(if group == Some(one) { "calm" } else { "none" }) href=(link(one.name(), None)) aria-current=[(group == Some(one)).then_some("true")] { span.kind.(class(one)) {} (one.name()) }
            }
        }
        section.card aria-label="Events" {
            @if shown.is_empty() { p.pad.soft { "No event of this group." } }
            @let fresh = shown.iter().filter(|entry| case.have.is_none_or(|have| entry.seq > have));
            ol.log data-most=[case.have.map(|_| PAGE)] { @for entry in fresh { (line(case, entry)) } }
            @if next.is_some() { nav.pages aria-label="Older events" { span {} a.btn href=(link(case.group, next)) { "Older" } } }
        }
    }
}

fn line(case: &Case<'_>, entry: &Recorded) -> Markup {
    let (title, text) = told(&entry.event);
    let group = Group::of(&entry.event);
    html! {
        li #{ "s-" (entry.seq) } {
            a.num href={ "/i/" (case.id) "?at=" (entry.seq) } title={ "The channels at event " (entry.seq) } { (entry.seq) }
            time datetime=(entry.at) title=(case.frame.zone.second(entry.at)) { (case.frame.zone.clock(entry.at)) }
            span class={ "kind " (class(group)) } { (group.name()) }
            span { span.strong { (title) } " " (case.with_links(|links| links.sentence(&text))) }
        }
    }
}
