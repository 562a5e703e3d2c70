//! Where the system is right, weak, slow or expensive.

use casebook_protocol::{Credibility, Rule, Verdict};
use casebook_report::words;
use maud::{Markup, html};

use super::frame::{Frame, Live};
use super::icon::Icon;
use super::parts;
use crate::chart::bars::{self, Bar};
use crate::model::insights::Insights;

#[must_use]
pub fn page(frame: &Frame, all: &Insights) -> String {
    let reviewed: u64 = all.bands.iter().sum();
    let body = html! {
        div { h1 { "Insights" } p.facts { (words::count(all.investigations, "investigation")) ", " (all.closed) " closed" } }
        @if all.investigations == 0 {
            div.card { (parts::empty(Icon::Chart, "Nothing to count yet", "Numbers appear with the first investigation.")) }
        } @else {
            div.half {
                section.card { header { h2 { "Verdicts" } } div.pad { (verdicts(all)) } }
                section.card { header { h2 { "Coherence over time" } span.soft.small { "a bar is a closed case" } } div.pad { (coherence(frame, all)) } }
                section.card { header { h2 { "Credibility of findings" } span.soft.small { (reviewed) " reviewed" } } div.pad { (bands(all)) } }
                section.card { header { h2 { "Rules that changed proposals" } } div.pad { (rules(all)) } }
                section.card { header { h2 { "Findings by Expert" } span.soft.small { "and how many a verdict rests on" } } div.pad { (experts(all)) } }
                section.card { header { h2 { "Tool calls" } span.soft.small { "with failures and time" } } div.pad { (tools(all)) } }
                section.card { header { h2 { "Work by role" } } div.pad { (roles(all)) } }
                section.card { header { h2 { "Who played" } span.soft.small { "tasks" } } div.pad { (counted(all.players.iter().map(|(name, n)| (name.clone(), *n)), "c3")) } }
            }
        }
    };
    frame.page("Insights", "/insights", Live::Still, &body)
}

fn counted(rows: impl Iterator<Item = (String, u64)>, class: &str) -> Markup {
    let mut rows: Vec<(String, f64, String)> = rows.map(|(name, n)| (name, n as f64, words::thousands(n))).collect();
    rows.sort_by(|a, b| b.1.total_cmp(&a.1));
    if rows.is_empty() {
        html! { p.soft { "None so far." } }
    } else {
        bars::lines(&rows, class)
    }
}

fn verdicts(all: &Insights) -> Markup {
    html! { div.stack { @for verdict in Verdict::ALL {
        @let n = all.verdicts.get(verdict.name()).copied().unwrap_or(0);
        div.row.apart { a href={ "/?verdict=" (verdict.name()) } { (parts::verdict(verdict)) } span.num.strong { (n) span.soft { " · " (words::share(n, all.closed)) } } }
    } } }
}

fn coherence(frame: &Frame, all: &Insights) -> Markup {
    let start = all.coherence.len().saturating_sub(24);
    let chart: Vec<Bar> = all
        .coherence
        .iter()
        .skip(start)
        .map(|(at, id, score)| Bar {
            name: String::new(),
            values: vec![*score],
            label: format!("{score:.2}, {}", frame.zone.second(*at)),
            href: Some(format!("/i/{id}")),
        })
        .collect();
    if chart.is_empty() {
        html! { p.soft { "No case is closed yet." } }
    } else {
        bars::bars("Coherence of closed cases", bars::HALF, &chart, &["c1"], &|n| format!("{n:.1}"))
    }
}

fn bands(all: &Insights) -> Markup {
    let top = all.bands.iter().copied().max().unwrap_or(0);
    html! { div.stack { @for (n, band) in Credibility::BANDS.iter().enumerate().rev() {
        @let count = all.bands.get(n).copied().unwrap_or(0);
        div {
            div.row.apart.small { span class={ "strong s" (n) } { (band.name()) } span.num.strong { (count) } }
            svg.chart viewBox="0 0 400 7" preserveAspectRatio="none" height="7" aria-hidden="true" {
                rect.track width="400" height="7" rx="3" {}
                g class={ "s" (n) } { rect.fill width=(count as f64 / top.max(1) as f64 * 400.0) height="7" rx="3" {} }
            }
        }
    } } }
}

fn rules(all: &Insights) -> Markup {
    let meaning = |name: &str| Rule::ALL.iter().find(|rule| rule.name() == name).map_or("", |rule| rule.meaning());
    let mut rows: Vec<(&String, &u64)> = all.rules.iter().collect();
    rows.sort_by_key(|(_, n)| std::cmp::Reverse(**n));
    html! {
        @if rows.is_empty() { p.soft { "No proposal was changed." } }
        ul.stack { @for (name, n) in rows { li { div.row.apart { span.strong { (name) } span.num.strong { (n) } } p.small.soft { (meaning(name)) } } } }
    }
}

fn experts(all: &Insights) -> Markup {
    let rows = all.experts.iter().map(|(name, expert)| {
        (name.clone(), expert.findings as f64, format!("{}, {} in a verdict", expert.findings, expert.cited))
    });
    bars::lines(&rows.collect::<Vec<_>>(), "c2")
}

fn tools(all: &Insights) -> Markup {
    let mut rows: Vec<(String, f64, String)> = all
        .tools
        .iter()
        .map(|(name, tool)| {
            let failed = if tool.failed > 0 { format!(", {} failed", tool.failed) } else { String::new() };
            (
                name.clone(),
                tool.calls as f64,
                format!("{}{failed}, {} ms each", words::thousands(tool.calls), tool.millis / tool.calls.max(1)),
            )
        })
        .collect();
    rows.sort_by(|a, b| b.1.total_cmp(&a.1));
    bars::lines(&rows, "c1")
}

fn roles(all: &Insights) -> Markup {
    html! { dl.pairs.left { @for (role, used) in &all.roles { dt { (words::capital(role)) } dd { (super::case::usage_words(used)) } } } }
}
