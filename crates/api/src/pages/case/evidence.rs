//! The sources: what the team could look at, how often it did, and what it cited.

use std::collections::BTreeMap;

use casebook_protocol::{CallStatus, SourceInfo};
use casebook_report::{record, words};
use maud::{Markup, html};

use super::{Case, empty_yet};
use crate::chart::bars;
use crate::pages::icon::Icon;
use crate::pages::parts;

/// The results of more calls are not read for this tab: it would take too long.
pub const MANY: usize = 2_000;

#[must_use]
pub fn show(case: &Case<'_>) -> Markup {
    let sources = case.state.sources();
    html! {
        @if sources.is_empty() { (empty_yet(case, Icon::File, "No sources", "The team names its sources when the case opens.")) }
        @else { (cards(case, &sources)) }
        @if let Some(unfound) = words::unfound(&case.backing) {
            section.card aria-labelledby="unfound" { header { h2 #unfound { "Searched without a hit" } } div.pad { p { (case.with_links(|links| links.sentence(&unfound))) } } }
        } @else if !case.is_open() && case.report.calls.len() > MANY {
            p.soft { "The report lists the names that no search found. Here they are left out because there are more than " (words::thousands(MANY as u64)) " tool calls." }
        }
        div.half {
            (tools(case))
            section.card aria-labelledby="alert" {
                header { h2 #alert { "The alert as it was sent" } }
                div.pad { dl.json { @for (path, value) in record::flat(&case.report.alert.json()) { dt { (path) } dd { (parts::quoted(&value, &[])) } } } }
            }
        }
    }
}

fn cards(case: &Case<'_>, sources: &BTreeMap<String, SourceInfo>) -> Markup {
    let mut cited: BTreeMap<&str, usize> = BTreeMap::new();
    for record in case
        .report
        .findings
        .iter()
        .flat_map(|found| &found.citations)
        .filter(|cited| cited.holds)
        .flat_map(|cited| &cited.records)
    {
        *cited.entry(record.source.as_str()).or_default() += 1;
    }
    html! {
        div.half { @for source in sources.values() {
            @let times = cited.get(source.source.as_str()).copied().unwrap_or(0);
            section.card aria-label=(source.source) {
                header { h2 { (Icon::File.show()) " " (source.source) } span.soft.small { (words::thousands(source.records)) " records" } }
                div.pad.stack {
                    div.row {
                        span.badge { "sensor " (source.sensor) }
                        @if source.on_subject_host { span.badge.open title="A process on that host could have changed it" { (Icon::Alert.show()) "written on the alerted host" } }
                        @else { span.badge.good { (Icon::Shield.show()) "not on the alerted host" } }
                    }
                    p.small.soft { (source.about) }
                    @if times > 0 { p.small { span.ok { "✓ " } (words::count(times as u64, "citation")) } } @else { p.small.soft { "No finding cites it." } }
                    @if case.frame.investigates { a.small href={ "/evidence?id=" (case.id) "&source=" (crate::pages::fleet::encoded(&source.source)) } { "Search its records" } }
                }
            }
        } }
    }
}

fn tools(case: &Case<'_>) -> Markup {
    let mut by: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for call in &case.report.calls {
        let count = by.entry(call.tool.as_str()).or_default();
        count.0 += 1;
        count.1 += usize::from(call.status == CallStatus::Failed);
    }
    let mut rows: Vec<(String, f64, String)> = by
        .into_iter()
        .map(|(tool, (calls, failed))| {
            let more = if failed > 0 { format!(", {failed} failed") } else { String::new() };
            (tool.to_owned(), calls as f64, format!("{calls}{more}"))
        })
        .collect();
    rows.sort_by(|a, b| b.1.total_cmp(&a.1));
    html! {
        section.card aria-labelledby="tools" {
            header { h2 #tools { "How the team looked" } span.soft.small { (words::count(case.report.calls.len() as u64, "tool call")) } }
            div.pad { @if rows.is_empty() { p.soft { "No tool was called yet." } } @else { (bars::lines(&rows, "c2")) } }
        }
    }
}
