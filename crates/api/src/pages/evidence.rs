//! The evidence of an investigation, searched with the Experts' read-only tools.

use maud::{Markup, html};
use serde_json::Value;

use super::case::Case;
use super::frame::Live;
use super::icon::Icon;
use super::parts;

#[derive(Debug, Default, Clone)]
pub struct Wanted {
    pub q: String,
    pub source: String,
    pub from: String,
    pub to: String,
    pub file: String,
    pub line: Option<u64>,
}

#[must_use]
pub fn page(case: &Case<'_>, wanted: &Wanted, found: &Result<Value, String>) -> String {
    let field = |name: &str, title: &str, value: &str, hint: &str| {
        html! {
            div.stack { label for=(name) { (title) } input id=(name) name=(name) value=(value) placeholder=(hint); }
        }
    };
    let sources = case.state.sources();
    let body = html! {
        div {
            p.crumb { a href="/" { "Investigations" } " / " a href={ "/i/" (case.id) "?tab=evidence" } { (case.row.title) } " / Evidence" }
            h1 { "Evidence" }
        }
        form.card.pad.row method="get" action="/evidence" role="search" {
            input type="hidden" name="id" value=(case.id);
            (field("q", "Text", &wanted.q, "10.0.0.9"))
            div.stack { label for="source" { "Source" } select id="source" name="source" { option value="" { "all" } @for name in sources.keys() { option value=(name) selected[*name == wanted.source] { (name) } } } }
            (field("from", "From (UTC)", &wanted.from, "2026-01-31T03:00:00Z"))
            (field("to", "To (UTC)", &wanted.to, "2026-01-31T04:00:00Z"))
            button.main { (Icon::Search.show()) "Search" }
        }
        section.card aria-label="Records" { (records(case, wanted, found)) }
    };
    case.frame.page(&format!("Evidence of {}", case.row.title), "/", Live::Still, &body)
}

fn records(case: &Case<'_>, wanted: &Wanted, found: &Result<Value, String>) -> Markup {
    let value = match found {
        Err(why) => return html! { div.pad { (parts::note("open", Icon::Alert, &html! { (why) })) } },
        Ok(value) => value,
    };
    let empty = Vec::new();
    let items = value.get("records").and_then(Value::as_array).unwrap_or(&empty);
    if items.is_empty() {
        return parts::empty(Icon::Search, "No record matches", "Widen the time window, or look in all sources.");
    }
    let total = value.get("total").and_then(Value::as_u64);
    let text = |one: &Value, name: &str| one.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    html! {
        header { h2 { (items.len()) @if let Some(total) = total { " of " (total) } " records" } }
        div.pad { ol.rows { @for one in items {
            @let here = wanted.line.is_some() && one.get("line").and_then(Value::as_u64) == wanted.line && text(one, "file") == wanted.file;
            li.hit[here] {
                div.at { @let time = text(one, "time"); time datetime=(time) { (time) } br; (text(one, "file")) ":" (one.get("line").and_then(Value::as_u64).unwrap_or(0)) }
                div { (parts::quoted(&text(one, "raw"), &[&wanted.q])) }
            }
        } } }
        p.pad.soft.small { "Read with the tools of the Experts, which can only read. " a href={ "/i/" (case.id) "?tab=evidence" } { "All sources of this case" } }
    }
}
