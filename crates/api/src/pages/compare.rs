//! Two investigations side by side.

use casebook_protocol::Report;
use casebook_report::{compare, words};
use maud::{Markup, html};

use super::frame::{Frame, Live};
use super::icon::Icon;
use super::parts;
use crate::model::row::Row;

pub struct Side<'a> {
    /// None for a backtest, which is not recorded.
    pub row: Option<&'a Row>,
    pub report: &'a Report,
}

#[must_use]
pub fn page(frame: &Frame, rows: &[Row], chosen: [&str; 2], sides: Option<[Side<'_>; 2]>, models: &[String]) -> String {
    let choice = |name: &str, title: &str, id: &str| {
        html! {
            div.stack { label for=(name) { (title) }
                select name=(name) id=(name) { (options(frame, rows.iter(), id)) }
            }
        }
    };
    let [a, b] = chosen;
    let body = html! {
        div { h1 { "Compare" } p.facts { "What differs between two cases, or between two runs of one alert" } }
        @if rows.len() < 2 {
            div.card { (parts::empty(Icon::Compare, "Two cases are needed", "Investigate a second alert, or the same one again with other models.")) }
        } @else {
            form.card.pad.row method="get" action="/compare" { (choice("a", "First", a)) (choice("b", "Second", b)) button.main { "Compare" } }
        }
        @if frame.investigates { (again(frame, rows, a, models)) }
        @if let Some([a, b]) = sides { (both(frame, &a, &b)) }
    };
    frame.page("Compare", "/compare", Live::Still, &body)
}

fn options<'a>(frame: &Frame, rows: impl Iterator<Item = &'a Row>, chosen: &str) -> Markup {
    html! {
        @for row in rows.take(200) { option value=(row.id) selected[row.id.as_str() == chosen] { (row.title) " · " (row.opened.map_or_else(String::new, |at| frame.zone.second(at))) } }
    }
}

/// The form that begins a backtest.
fn again(frame: &Frame, rows: &[Row], chosen: &str, models: &[String]) -> Markup {
    let closed = || rows.iter().filter(|row| row.closed.is_some() && row.round > 0);
    html! {
        @if closed().next().is_some() {
            section.card aria-labelledby="backtest" {
                header { h2 #backtest { "Backtest" } span.soft.small { "repeats a closed case and shows what differs; the case is not changed" } }
                form.pad.row method="post" action="/compare/backtest" {
                    div.stack { label for="investigation" { "Case" } select #investigation name="investigation" { (options(frame, closed(), chosen)) } }
                    div.stack { label for="model" { "Played by" } select #model name="model" {
                        option value="" { "as this server plays" }
                        @for name in models { option value=(name) { (name) } }
                    } }
                    div.stack { label for="from_round" { "From round" } input #from_round name="from_round" inputmode="numeric" value="1" size="4"; }
                    button { (Icon::Compare.show()) "Repeat it" }
                }
            }
        }
    }
}

pub(super) fn both(frame: &Frame, a: &Side<'_>, b: &Side<'_>) -> Markup {
    let differ: Vec<compare::Row> = compare::rows(a.report, b.report);
    let (pairs, only_a, only_b) = compare::findings(a.report, b.report);
    let moved: Vec<_> =
        pairs.iter().filter(|pair| pair.rose().is_some_and(|by| by.abs() > 0.004) || !pair.same_claim()).collect();
    html! {
        div.half { (side(frame, "First", a)) (side(frame, "Second", b)) }
        section.card { header { h2 { "Numbers" } span.soft.small { "marked where they differ" } } div.scroll { table {
            thead { tr { th scope="col" { "What" } th scope="col" { "First" } th scope="col" { "Second" } } }
            tbody { @for (name, then, now) in &differ { tr { th scope="row" { (name.trim()) } td { (then) } td { @if then == now { (now) } @else { mark { (now) } } } } } }
        } } }
        section.card { header { h2 { "Findings that moved" } span.soft.small { (pairs.len()) " in both, " (only_a.len()) " only in the first, " (only_b.len()) " only in the second" } }
            @if moved.is_empty() { p.pad.soft { "No finding that is in both has another score or claim." } }
            @for pair in moved {
                article.find {
                    div.row { span.mono { (pair.then.finding.id) } @if let Some(score) = pair.then.score { (parts::score(score, "")) } span { "→" } @if let Some(score) = pair.now.score { (parts::score(score, words::label(score))) } }
                    p { (pair.now.finding.draft.claim) }
                    @if !pair.same_claim() { p.soft { "First: " (pair.then.finding.draft.claim) } }
                }
            }
        }
        div.half { (story(frame, "Timeline of the first", a)) (story(frame, "Timeline of the second", b)) }
    }
}

fn side(frame: &Frame, name: &str, side: &Side<'_>) -> Markup {
    html! {
        section.card.pad.stack aria-label=(name) {
            p.label { (name) }
            @if let Some(row) = side.row {
                h2 { a href={ "/i/" (row.id) } { (row.title) } }
                div.row { (parts::standing(row, frame.now)) (parts::severity(row.severity)) }
            } @else {
                h2 { (side.report.alert.title) }
                div.row { (parts::verdict(side.report.verdict)) (parts::severity(Some(side.report.alert.severity))) }
            }
            (parts::score(side.report.timeline.score, side.report.timeline.label.name()))
            p.small.soft { (super::case::usage_words(&side.report.usage.total)) }
        }
    }
}

fn story(frame: &Frame, title: &str, side: &Side<'_>) -> Markup {
    html! {
        section.card { header { h2 { (title) } } div.pad { ul.stack { @for event in side.report.timeline.events.iter().take(200) {
            li.small { time datetime=(event.time) { (frame.zone.second(event.time)) } " " (casebook_protocol::one_line(&event.description, 160)) }
        } } } }
    }
}
