//! Small pieces that several sections show.

use casebook_protocol::RecordRef;
use casebook_protocol::report::ReportFinding;
use casebook_protocol::{Coherence, Credibility, EventTime, FindingId, Report, Score};
use maud::{Markup, html};

use crate::words::{self, Piece, pieces};

/// Longer texts are cut, and say so; the report as JSON has them whole.
const MOST: usize = 6_000;

/// A sentence, its names from the evidence set apart, the findings that it names linked.
pub(super) fn sentence(report: &Report, text: &str) -> Markup {
    html! {
        @for piece in pieces(text) {
            @match piece {
                Piece::Plain(plain) => { (linked(report, plain)) }
                Piece::Name(name) => { code { (name) } }
            }
        }
    }
}

fn linked(report: &Report, text: &str) -> Markup {
    let id = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    html! {
        @for word in text.split_inclusive(|c: char| !id(c)) {
            @let bare = word.trim_end_matches(|c: char| !id(c));
            @if known(report, bare) { a href=(format!("#f-{bare}")) { (bare) } (word.get(bare.len()..).unwrap_or_default()) }
            @else { (word) }
        }
    }
}

fn known(report: &Report, id: &str) -> bool {
    id.starts_with('r') && report.findings.iter().any(|f| f.finding.id.as_str() == id)
}

/// Text as it stands in the evidence.
pub(super) fn quoted(text: &str) -> Markup {
    let end = text.char_indices().nth(MOST).map(|(end, _)| end);
    let shown = end.and_then(|end| text.get(..end)).unwrap_or(text);
    html! {
        pre { (shown) @if end.is_some() { b.cut { "… " (words::thousands((text.chars().count() - MOST) as u64)) " more characters" } } }
    }
}

/// A finding's score with its label.
pub(super) fn chip(score: Option<Score>) -> Markup {
    html! {
        @match score {
            Some(score) => { span class=(format!("chip s{}", step(Credibility::of(score)))) { b { (score) } " " (Credibility::of(score).name()) } }
            None => { span.chip.s0 { "not reviewed" } }
        }
    }
}

/// The Timeline's score with its label.
pub(super) fn coherence(score: Score, label: Coherence) -> Markup {
    html! { span class=(format!("chip s{}", step(Credibility::of(score)))) { b { (score) } " " (label.name()) } }
}

const fn step(label: Credibility) -> u8 {
    match label {
        Credibility::Misguided => 0,
        Credibility::Speculative => 1,
        Credibility::Plausible => 2,
        Credibility::HighlyPlausible => 3,
        Credibility::Trustworthy => 4,
    }
}

/// How the time of something is known.
pub(super) fn basis(time: &EventTime) -> Markup {
    let (words, field) = words::basis(time);
    html! { span.basis { (words) @if let Some(field) = field { " " code { (field) } } } }
}

/// Links to findings. One that the report does not have is named without a link.
pub(super) fn findings(report: &Report, ids: &[FindingId]) -> Markup {
    html! {
        @for (i, id) in ids.iter().enumerate() {
            @if i > 0 { ", " }
            @if known(report, id.as_str()) { a href=(format!("#{}", finding_anchor(id))) { (id) } }
            @else { (id) }
        }
    }
}

pub(super) fn finding_anchor(id: &FindingId) -> String {
    format!("f-{id}")
}

pub(super) fn citation_anchor(id: &FindingId, n: usize) -> String {
    format!("c-{id}-{n}")
}

pub(super) fn event_anchor(n: usize) -> String {
    format!("e-{n}")
}

pub(super) fn place(record: &RecordRef) -> String {
    words::record(record)
}

/// A record, leading to the citation among these findings that holds it.
pub(super) fn record(report: &Report, ids: &[FindingId], record: &RecordRef) -> Markup {
    let mut among = report.findings.iter().filter(|f| ids.contains(&f.finding.id));
    let holder = among.find_map(|f| cites(f, record));
    html! {
        @match holder {
            Some(anchor) => { a.place href=(format!("#{anchor}")) { (place(record)) } }
            None => { span.place { (place(record)) } }
        }
    }
}

fn cites(finding: &ReportFinding, record: &RecordRef) -> Option<String> {
    let n = finding
        .citations
        .iter()
        .position(|c| c.holds && c.records.iter().any(|r| r.file == record.file && r.line == record.line))?;
    Some(citation_anchor(&finding.finding.id, n + 1))
}
