//! Parts that several pages use.

use std::time::Duration;

use casebook_protocol::{
    Credibility, EntryKind, EventTime, FindingId, InvestigationId, Score, Severity, Timestamp, Verdict, between,
};
use casebook_report::record::{Part, Shown};
use casebook_report::words::{self, Piece};
use maud::{Markup, html};

use super::frame::Frame;
use super::icon::Icon;
use crate::model::row::{Row, Standing};
use crate::model::zone;

/// In characters; the rest is one link away.
pub const LONG: usize = 2_000;

#[must_use]
pub const fn severity_look(severity: Severity) -> (&'static str, &'static str, Icon) {
    match severity {
        Severity::Critical => ("Critical", "bad", Icon::Flame),
        Severity::High => ("High", "bad", Icon::Alert),
        Severity::Medium => ("Medium", "open", Icon::Alert),
        Severity::Low => ("Low", "calm", Icon::Info),
        Severity::Informational => ("Informational", "none", Icon::Info),
    }
}

#[must_use]
pub fn severity(severity: Option<Severity>) -> Markup {
    match severity.map(severity_look) {
        None => html! { span.badge { (Icon::Question.show()) "Unknown" } },
        Some((word, tone, icon)) => html! { span.badge.(tone) { (icon.show()) (word) } },
    }
}

#[must_use]
pub const fn verdict_look(verdict: Verdict) -> (&'static str, Icon) {
    match verdict {
        Verdict::TruePositive => ("bad", Icon::Flame),
        Verdict::BenignPositive => ("good", Icon::Shield),
        Verdict::FalsePositive => ("good", Icon::Check),
        Verdict::Inconclusive => ("open", Icon::Question),
    }
}

#[must_use]
pub fn verdict(verdict: Verdict) -> Markup {
    let (tone, icon) = verdict_look(verdict);
    html! { span.badge.(tone) { (icon.show()) (words::verdict(verdict)) } }
}

#[must_use]
pub fn standing(row: &Row, now: Timestamp) -> Markup {
    match row.standing(now) {
        Standing::Closed => match row.verdict {
            Some(given) => verdict(given),
            None => html! { span.badge { (Icon::Check.show()) "Closed" } },
        },
        Standing::Running => html! {
            span.badge.calm.run { (Icon::Spinner.show()) (words::capital(row.phase.name())) @if row.round > 0 { " · round " (row.round) } }
        },
        Standing::NotInvestigated => html! { span.badge.bad { (Icon::Broken.show()) "Not investigated" } },
        Standing::Quiet => html! { span.badge.open { (Icon::Pause.show()) "No event for " (since(row.last_at, now)) } },
        Standing::Broken => html! { span.badge.bad { (Icon::Broken.show()) "Not intact" } },
    }
}

#[must_use]
pub fn since(at: Option<Timestamp>, now: Timestamp) -> String {
    at.map_or_else(String::new, |at| zone::age(between(at, now)))
}

#[must_use]
pub fn step(score: Score) -> usize {
    let band = Credibility::of(score);
    Credibility::BANDS.iter().position(|one| *one == band).unwrap_or(0)
}

/// Number, bar and word.
#[must_use]
pub fn score(score: Score, label: &str) -> Markup {
    let width = format!("{:.1}", score.get() * 44.0);
    let class = format!("score s{}", step(score));
    html! {
        span class=(class) {
            svg viewBox="0 0 44 6" aria-hidden="true" {
                rect width="44" height="6" rx="3" fill="currentColor" opacity=".2" {}
                rect width=(width) height="6" rx="3" fill="currentColor" {}
            }
            span.num { (score) } span { (label) }
        }
    }
}

#[must_use]
pub fn time(frame: &Frame, at: Timestamp) -> Markup {
    let shown = frame.zone.second(at);
    html! { time datetime=(at) title=(at) { (shown) } }
}

#[must_use]
pub fn ago(frame: &Frame, at: Timestamp) -> Markup {
    html! { time datetime=(at) title=(frame.zone.second(at)) { (zone::age(between(at, frame.now))) " ago" } }
}

#[must_use]
pub fn moment(frame: &Frame, when: &EventTime) -> Markup {
    html! {
        time datetime=(when.at) title=(words::moment(when)) { (frame.zone.moment(when)) }
        " " span.basis { (when.basis.meaning()) @if !when.field.is_empty() { " · " (when.field) } }
    }
}

#[must_use]
pub fn length(time: Duration) -> String {
    if time < Duration::from_secs(1) {
        format!("{} ms", time.as_millis())
    } else if time < Duration::from_secs(60) {
        words::seconds(time)
    } else {
        zone::age(time)
    }
}

/// Where links of one investigation lead.
pub struct Links<'a> {
    pub id: &'a InvestigationId,
    /// The moment of the page, if it is in the past.
    pub at: Option<u64>,
    pub findings: &'a dyn Fn(&str) -> bool,
    /// The findings have more than one page.
    pub far: bool,
}

impl Links<'_> {
    #[must_use]
    pub fn tab(&self, tab: &str) -> String {
        match self.at {
            None => format!("/i/{}?tab={tab}", self.id),
            Some(at) => format!("/i/{}?tab={tab}&at={at}", self.id),
        }
    }

    #[must_use]
    pub fn finding(&self, id: &str) -> String {
        let page = if self.far { format!("&finding={id}") } else { String::new() };
        format!("{}{page}#f-{id}", self.tab("findings"))
    }

    /// A link from the tab of the findings itself.
    #[must_use]
    pub fn near(&self, id: &str) -> String {
        if self.far { self.finding(id) } else { format!("#f-{id}") }
    }

    #[must_use]
    pub fn task(&self, task: &str) -> String {
        format!("/i/{}/t/{task}", self.id)
    }

    #[must_use]
    pub fn call(&self, call: &str) -> String {
        format!("/i/{}/c/{call}", self.id)
    }

    /// A sentence with names from the evidence set apart, and ids of findings as links.
    #[must_use]
    pub fn sentence(&self, text: &str) -> Markup {
        html! {
            @for piece in words::pieces(text) {
                @match piece {
                    Piece::Name(name) => { code { (name) } }
                    Piece::Plain(plain) | Piece::Finding(plain) => (self.words(plain)),
                }
            }
        }
    }

    fn words(&self, text: &str) -> Markup {
        let in_id = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        html! {
            @for word in text.split_inclusive(|c| !in_id(c)) {
                @let (id, rest) = word.split_at(word.trim_end_matches(|c| !in_id(c)).len());
                @if id.starts_with('r') && (self.findings)(id) { a href=(self.finding(id)) { (id) } (rest) } @else { (word) }
            }
        }
    }

    #[must_use]
    pub fn ids(&self, ids: &[FindingId]) -> Markup {
        html! {
            @for (n, id) in ids.iter().enumerate() {
                @if n > 0 { ", " }
                @if (self.findings)(id.as_str()) { a href=(self.finding(id.as_str())) { (id) } } @else { (id) }
            }
        }
    }
}

#[must_use]
pub fn entry_icon(kind: EntryKind) -> Icon {
    match kind {
        EntryKind::Decision => Icon::Flag,
        EntryKind::Observation => Icon::Eye,
        EntryKind::Finding => Icon::Check,
        EntryKind::Question => Icon::Question,
        EntryKind::Action => Icon::Pen,
        EntryKind::Hypothesis => Icon::Bulb,
    }
}

/// Text as it is, up to [`LONG`] characters, with `quotes` marked.
#[must_use]
pub fn quoted(text: &str, quotes: &[&str]) -> Markup {
    let (shown, more) = words::cut(text, LONG);
    html! { (marked(shown, quotes)) @if more > 0 { span.soft { " … " (words::thousands(more as u64)) " more characters" } } }
}

/// The first of `quotes` that occurs is marked.
#[must_use]
pub fn marked(text: &str, quotes: &[&str]) -> Markup {
    let found = quotes
        .iter()
        .filter(|quote| !quote.is_empty())
        .find_map(|quote| text.split_once(*quote).map(|parts| (*quote, parts)));
    match found {
        None => html! { (text) },
        Some((quote, (before, after))) => html! { (before) mark { (quote) } (after) },
    }
}

/// A record whole, with what the claim used marked. `rest` leads to what is left out.
#[must_use]
pub fn record(shown: &Shown, rest: &str) -> Markup {
    let text = |parts: &[Part]| {
        html! { @for part in parts { @if part.marked { mark { (part.text) } } @else { (part.text) } } }
    };
    html! {
        @if !shown.text.is_empty() { pre tabindex="0" { (text(&shown.text)) } }
        @if !shown.fields.is_empty() { dl.json { @for (name, value) in &shown.fields { dt { (name) } dd { (text(value)) } } } }
        @if shown.more > 0 { p.small { a href=(rest) { (words::thousands(shown.more)) " more characters" } } }
    }
}

/// An empty part of a page says why it is empty and what comes next.
#[must_use]
pub fn empty(icon: Icon, title: &str, text: &str) -> Markup {
    html! { div.empty { (icon.show()) h2 { (title) } p { (text) } } }
}

#[must_use]
pub fn note(tone: &str, icon: Icon, text: &Markup) -> Markup {
    html! { div.note.(tone) { (icon.show()) div { (text) } } }
}
