//! One investigation: the answer on top, and a tab for each part of the record. With `at`, everything is as it was
//! after that event.

use std::collections::{BTreeMap, BTreeSet};

use casebook_hub::State;
use casebook_protocol::{FindingId, InvestigationId, Recorded, Report, Reviewed, ToolCall, Usage};
use casebook_report::words;
use casebook_trust::{Backing, headline};
use maud::{Markup, html};

use super::frame::{Frame, Live};
use super::icon::Icon;
use super::parts::{self, Links};
use crate::model::row::Row;
use crate::model::spans::{Span, spans};

pub mod channels;
pub mod events;
pub mod evidence;
pub mod findings;
pub mod hero;
pub mod journal;
pub mod player;
pub mod portion;
pub mod review;
pub mod rounds;
pub mod tasks;
pub mod timeline;

pub struct Case<'a> {
    pub frame: &'a Frame,
    pub id: &'a InvestigationId,
    /// Up to the moment of the page.
    pub log: &'a [Recorded],
    pub state: &'a State,
    pub report: &'a Report,
    pub row: &'a Row,
    pub spans: Vec<Span>,
    /// The last event of the whole log.
    pub last: u64,
    /// The moment of the page, if it is not the present.
    pub at: Option<u64>,
    /// The present, to compare with, if the page shows the past.
    pub present: Option<&'a State>,
    /// Events that are shown up to this one, on the tab for events.
    pub upto: Option<u64>,
    /// The last event that the browser has on that tab. Rows up to it stay as they are, and are left out.
    pub have: Option<u64>,
    pub group: &'a str,
    /// The first row on the page of a long tab.
    pub from: Option<usize>,
    /// A finding whose page of the tab is wanted.
    pub finding: &'a str,
    /// For the tabs that show cited records and searches.
    pub backing: Backing,
}

pub const TABS: [(&str, &str); 8] = [
    ("timeline", "Timeline"),
    ("findings", "Findings"),
    ("journal", "Journal"),
    ("review", "Review"),
    ("rounds", "Rounds"),
    ("tasks", "Tasks"),
    ("events", "Events"),
    ("evidence", "Evidence"),
];

impl<'a> Case<'a> {
    /// The present of the whole log `log`.
    pub fn new(frame: &'a Frame, log: &'a [Recorded], state: &'a State, report: &'a Report, row: &'a Row) -> Self {
        Self {
            frame,
            id: &report.investigation,
            log,
            state,
            report,
            row,
            spans: spans(log),
            last: state.last_seq(),
            at: None,
            present: None,
            upto: None,
            have: None,
            group: "",
            from: None,
            finding: "",
            backing: Backing::default(),
        }
    }

    pub fn knows(&self, id: &str) -> bool {
        self.report.findings.iter().any(|found| found.finding.id.as_str() == id)
    }

    pub fn with_links<T>(&self, show: impl FnOnce(&Links<'_>) -> T) -> T {
        let findings = |id: &str| self.knows(id);
        let far = self.report.findings.len() > portion::ROWS;
        show(&Links { id: self.id, at: self.at, findings: &findings, far })
    }

    pub fn known(&self, id: &FindingId) -> Option<&Reviewed> {
        self.state.known.get(id)
    }

    /// Calls by id.
    pub fn calls(&self) -> BTreeMap<&str, &ToolCall> {
        self.report.calls.iter().map(|call| (call.id.as_str(), call)).collect()
    }

    /// What it used, with the tasks under way.
    pub fn used(&self) -> Usage {
        let mut used = self.state.usage;
        self.state.in_flight().for_each(|(task, _)| used += self.state.spent(task));
        used
    }

    pub fn is_open(&self) -> bool {
        self.state.closed.is_none()
    }

    fn number(&self, tab: &str) -> Option<usize> {
        Some(match tab {
            "timeline" => self.report.timeline.events.len(),
            "findings" => self.report.findings.len(),
            "journal" => self.state.journal.len(),
            "review" => self.state.review.as_ref()?.findings.len(),
            "rounds" => self.state.rounds.len(),
            "tasks" => self.spans.len(),
            "events" => self.log.len(),
            "evidence" => self
                .state
                .roster()
                .iter()
                .flat_map(|m| m.sources.iter().map(|s| &s.source))
                .collect::<BTreeSet<_>>()
                .len(),
            _ => return None,
        })
    }
}

#[must_use]
pub fn page(case: &Case<'_>, tab: &str) -> String {
    let live = if case.is_open() && case.at.is_none() { Live::One(case.id.as_str()) } else { Live::Still };
    let body = html! {
        (head(case))
        @if case.at.is_some() { (player::past(case)) }
        @if case.at.is_none() { div #hero data-part { @if tab == "timeline" { (hero::show(case)) } @else { (hero::brief(case)) } } }
        section.card #player data-part aria-label="Moments of the investigation" { (player::show(case, tab)) }
        div.stack.wide {
            nav.tabs #tabs data-part aria-label="Parts of the case" {
                @if case.at.is_some() { (tab_link(case, "channels", "At this moment", tab)) }
                @for (name, title) in TABS { (tab_link(case, name, title, tab)) }
            }
            div.stack.wide #tab data-part { (content(case, tab)) }
        }
    };
    case.frame.page(&case.row.title, "/", live, &body)
}

fn tab_link(case: &Case<'_>, name: &str, title: &str, tab: &str) -> Markup {
    let href = case.with_links(|links| links.tab(name));
    html! {
        a href=(href) aria-current=[(name == tab).then_some("page")] { (title) @if let Some(n) = case.number(name) { span.count { (n) } } }
    }
}

fn content(case: &Case<'_>, tab: &str) -> Markup {
    match tab {
        "channels" => channels::show(case),
        "findings" => findings::show(case),
        "journal" => journal::show(case),
        "review" => review::show(case),
        "rounds" => rounds::show(case),
        "tasks" => tasks::show(case),
        "events" => events::show(case),
        "evidence" => evidence::show(case),
        _ => timeline::show(case),
    }
}

fn head(case: &Case<'_>) -> Markup {
    let row = case.row;
    html! {
        div.top {
            div {
                p.crumb { a href="/" { "Investigations" } " / " span.mono { (case.id) } }
                h1 { (row.title) }
                p.facts #facts data-part {
                    (parts::severity(row.severity))
                    @if let Some(host) = &row.host { span { (Icon::Host.show()) " " b { (host) } } }
                    @if let Some(user) = &row.user { span { (Icon::User.show()) " " b { (user) } } }
                    @if let Some(at) = case.report.alert.time() { span { "alerted " (parts::time(case.frame, at)) } }
                    @if let Some((score, label)) = headline::confidence(case.report) { span { "confidence " b { (score) } " " (label) } }
                    @if let Some(when) = headline::since(case.report) { span { "first event " (parts::time(case.frame, when.at)) } }
                    @if let Some(opened) = row.opened { span { "opened " (parts::time(case.frame, opened)) } }
                    span { "alert " span.mono { (row.alert) } }
                }
            }
            div.row {
                a.btn href={ "/compare?a=" (case.id) } { (Icon::Compare.show()) "Compare" }
                form method="post" action={ "/i/" (case.id) "/verify" } { button { (Icon::Shield.show()) "Verify" } }
                a.btn href={ "/api/v1/investigations/" (case.id) "/report.html" @if case.is_open() { "?partial=1" } } { (Icon::File.show()) "Report" }
            }
        }
    }
}

/// `3 of 5` and what it is.
pub(crate) fn fact(name: &str, value: &Markup) -> Markup {
    html! { dt { (name) } dd { (value) } }
}

pub(crate) fn empty_yet(case: &Case<'_>, icon: Icon, title: &str, text: &str) -> Markup {
    let (title, text) = if case.is_open() {
        (title, text)
    } else {
        (title.trim_end_matches(" yet"), "The investigation ended without it.")
    };
    html! { div.card { (parts::empty(icon, title, text)) } }
}

pub(crate) fn usage_words(used: &casebook_protocol::Usage) -> String {
    let mut out = vec![words::count(used.tool_calls, "tool call")];
    if used.model_calls > 0 {
        out.push(words::count(used.model_calls, "model call"));
        out.push(format!("{} tokens", words::thousands(used.input_tokens + used.output_tokens)));
        out.push(format!("cost {}", words::money(used.cost_micros)));
    }
    out.join(" · ")
}
