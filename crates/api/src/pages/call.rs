//! One tool call: its rows, the quote of a citation marked, and the log around the cited record.

use casebook_protocol::report::{ReportCitation, ReportFinding};
use casebook_protocol::{ArtifactId, CallStatus, Citation, Locator, ToolCall, between};
use casebook_report::{record, words};
use casebook_trust::Backing;
use maud::{Markup, html};
use serde_json::Value;

use super::case::Case;
use super::frame::Live;
use super::icon::Icon;
use super::parts;

/// Rows of a result on the page, around the cited one.
const ROWS: usize = 60;

pub struct Cited<'a> {
    pub found: &'a ReportFinding,
    pub cited: &'a ReportCitation,
}

impl Cited<'_> {
    fn quote(&self) -> &str {
        match &self.cited.citation {
            Citation::Literal { quote, .. } => quote,
            _ => "",
        }
    }

    fn locator(&self) -> &Locator {
        match &self.cited.citation {
            Citation::Literal { at, .. }
            | Citation::Count { at, .. }
            | Citation::Aggregate { at, .. }
            | Citation::Absence { at, .. } => at,
        }
    }
}

#[must_use]
pub fn page(
    case: &Case<'_>,
    call: &ToolCall,
    result: &str,
    cited: Option<&Cited<'_>>,
    around: Option<&Value>,
) -> String {
    let task = case.state.calls.get(&call.id).map(|made| &made.task);
    // The hash of the bytes that are shown, computed now.
    let intact = ArtifactId::of(result.as_bytes()) == call.result;
    let raw = format!("/api/v1/investigations/{}/calls/{}/result", case.id, call.id);
    let body = html! {
        div.top {
            div {
                p.crumb { a href="/" { "Investigations" } " / " a href={ "/i/" (case.id) } { (case.row.title) } @if let Some(task) = task { " / " a href={ "/i/" (case.id) "/t/" (task) } { (task) } } }
                h1 { (Icon::Tool.show()) " " (call.tool) }
                p.facts {
                    @if call.status == CallStatus::Failed { span.badge.bad { (Icon::Ban.show()) "Failed" } } @else { span.badge.good { (Icon::Check.show()) "Answered" } }
                    @if let Some(domain) = &call.domain { span { "Expert " b { (domain) } } }
                    span { "took " b { (parts::length(between(call.started, call.ended))) } }
                    span { b { (crate::model::zone::bytes(call.bytes)) } }
                    @if intact { span.ok title=(call.result) { "✓ bytes match SHA-256 " span.mono { (call.result.short()) } } } @else { span.no { "the bytes do not match their SHA-256" } }
                }
            }
            a.btn href=(raw) { (Icon::File.show()) "Download" }
        }
        @if let Some(cited) = cited { (verdict(case, cited)) (cited_record(case, call, result, cited)) }
        @if let Some(around) = around { (context(case, around, cited)) }
        section.card aria-labelledby="asked" { header { h2 #asked { "Asked" } } div.pad { (arguments(&call.arguments)) } }
        section.card aria-labelledby="got" { header { h2 #got { "Returned" } } (returned(case, result, cited)) }
    };
    case.frame.page(&format!("{} in {}", call.tool, case.row.title), "/", Live::Still, &body)
}

fn verdict(case: &Case<'_>, one: &Cited<'_>) -> Markup {
    html! {
        section.card.pad.stack aria-label="Citation" {
            div.row {
                @if one.cited.holds { span.badge.good { (Icon::Check.show()) "Quote holds" } } @else { span.badge.bad { (Icon::Ban.show()) "Does not hold" } }
                span.soft { (one.cited.note) }
            }
            p { (case.with_links(|links| links.ids(std::slice::from_ref(&one.found.finding.id)))) ": " (case.with_links(|links| links.sentence(&one.found.finding.draft.claim))) }
            p.small.soft { (words::capital(&words::cited(&one.cited.citation))) " at " code { (words::place(&one.cited.citation)) } @for record in one.cited.records.iter().take(4) { " · " span.mono { (words::record(record)) } } }
        }
    }
}

fn cited_record(case: &Case<'_>, call: &ToolCall, result: &str, one: &Cited<'_>) -> Markup {
    let mut backing = Backing::of(case.report);
    backing.add(call, result.as_bytes());
    let citation = &one.cited.citation;
    html! {
        @if let Some(record) = backing.record(citation) {
            section.card aria-labelledby="record" {
                header { h2 #record { "The cited record" } span.soft.small { "marked: what the claim uses" } }
                div.pad { (parts::record(&record::shown(&record, &one.found.finding.draft.claim, one.quote()), "#got")) }
            }
        }
        @if let Some(search) = backing.search(citation) {
            section.card.pad aria-label="Search" { p { (case.with_links(|links| links.sentence(&words::searched(search)))) } }
        }
    }
}

fn arguments(text: &str) -> Markup {
    match serde_json::from_str::<Value>(text) {
        Ok(Value::Object(map)) if map.is_empty() => html! { p.soft { "no arguments" } },
        Ok(Value::Object(map)) => {
            html! { dl.json { @for (key, value) in &map { dt { (key) } dd { (parts::quoted(&plain(value), &[])) } } } }
        }
        _ => html! { pre tabindex="0" { (parts::quoted(text, &[])) } },
    }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The list in a result, with its name.
fn list(value: &Value) -> Option<(&str, &Vec<Value>)> {
    let named = ["records", "rows", "values", "sources", "items"];
    named.iter().find_map(|name| Some((*name, value.get(*name)?.as_array()?)))
}

/// The item that a pointer such as `/records/128` leads to.
fn item(locator: &Locator, name: &str) -> Option<usize> {
    let Locator::Pointer(pointer) = locator else { return None };
    pointer.strip_prefix('/')?.strip_prefix(name)?.strip_prefix('/')?.split('/').next()?.parse().ok()
}

fn returned(case: &Case<'_>, result: &str, cited: Option<&Cited<'_>>) -> Markup {
    let value: Option<Value> = serde_json::from_str(result).ok();
    let quote = cited.map_or("", |one| one.quote());
    if let Some(value) = &value
        && let Some((name, items)) = list(value)
    {
        let hit = cited.and_then(|one| item(one.locator(), name));
        let start = hit.map_or(0, |hit| hit.saturating_sub(ROWS / 3));
        let more = items.len().saturating_sub(start + ROWS);
        let facts: Vec<(&String, &Value)> =
            value.as_object().into_iter().flatten().filter(|(key, _)| key.as_str() != name).collect();
        return html! {
            div.pad { dl.json { @for (key, fact) in facts { dt { (key) } dd { (parts::quoted(&plain(fact), &[quote])) } } } }
            @if start > 0 { p.pad.soft.small { (start) " rows before" } }
            ol.rows { @for (n, one) in items.iter().enumerate().skip(start).take(ROWS) { (row(case, one, hit == Some(n), hit.is_none_or(|hit| hit == n), quote)) } }
            @if more > 0 { p.pad.soft.small { (more) " rows after" } }
        };
    }
    let text =
        value.as_ref().filter(|value| !value.is_string()).and_then(|value| serde_json::to_string_pretty(value).ok());
    html! { div.pad { pre #hit tabindex="0" { (parts::quoted(text.as_deref().unwrap_or(result), &[quote])) } } }
}

/// Time, place and text of a record; other items as they are.
fn row(case: &Case<'_>, one: &Value, hit: bool, marked: bool, quote: &str) -> Markup {
    let text = |name: &str| one.get(name).and_then(Value::as_str);
    let quotes = if marked { vec![quote] } else { Vec::new() };
    let time = text("time").and_then(|time| time.parse::<casebook_protocol::Timestamp>().ok());
    let line = one.get("line").and_then(Value::as_u64);
    let body = text("text")
        .or_else(|| text("raw"))
        .map_or_else(|| one.as_str().map_or_else(|| one.to_string(), str::to_owned), str::to_owned);
    html! {
        li.hit[hit] id=[hit.then_some("hit")] {
            div.at {
                @if let Some(time) = time { time datetime=(time) title=(case.frame.zone.second(time)) { (text("time").unwrap_or_default()) } br; }
                @if let Some(file) = text("file") { (file) @if let Some(line) = line { ":" (line) } }
            }
            div { @if hit { span.sr { "cited: " } } (parts::quoted(&body, &quotes)) }
        }
    }
}

fn context(case: &Case<'_>, around: &Value, cited: Option<&Cited<'_>>) -> Markup {
    let Some((_, items)) = list(around) else { return html! {} };
    let record = cited.and_then(|one| one.cited.records.first());
    let is = |one: &Value| {
        record.is_some_and(|record| {
            one.get("file").and_then(Value::as_str) == Some(&record.file)
                && one.get("line").and_then(Value::as_u64) == Some(record.line)
        })
    };
    let place = items.iter().position(is).unwrap_or(0);
    let quote = cited.map_or("", |one| one.quote());
    html! {
        section.card aria-labelledby="context" {
            header { h2 #context { "In the log" } @if let Some(record) = record { span.soft.small.mono { (words::record(record)) } } }
            div.pad { ol.rows { @for one in items.iter().skip(place.saturating_sub(4)).take(9) { (row(case, one, false, is(one), if is(one) { quote } else { "" })) } } }
            @if let Some(record) = record { p.pad { a href={ "/evidence?id=" (case.id) "&file=" (super::fleet::encoded(&record.file)) "&line=" (record.line) } { "More records around it" } } }
        }
    }
}
