//! Every task of the investigation as a waterfall.

use maud::{Markup, html};

use casebook_protocol::Role;
use casebook_report::words;

use super::{Case, empty_yet, usage_words};
use crate::chart::waterfall::{self, Line};
use crate::model::spans::Span;
use crate::pages::icon::Icon;

/// The colour of a role.
#[must_use]
pub const fn class(span: &Span) -> &'static str {
    match (span.failed.is_some(), span.kind.role()) {
        (true, _) => "tb",
        (false, Role::Director) => "c1",
        (false, Role::Expert) => "c2",
        (false, Role::Critic) => "c3",
    }
}

#[must_use]
pub fn name(span: &Span) -> String {
    span.domain.as_ref().map_or_else(
        || words::capital(span.kind.name()),
        |domain| format!("{} {domain}", words::capital(span.kind.name())),
    )
}

#[must_use]
pub fn show(case: &Case<'_>) -> Markup {
    if case.spans.is_empty() {
        return empty_yet(case, Icon::Spinner, "No task yet", "The Director plans first.");
    }
    let mut round = None;
    // The newest are on the last page.
    let portion = case.portion("tasks", &case.spans, case.spans.len());
    let lines: Vec<Line> = portion
        .rows
        .iter()
        .map(|span| {
            let heading = (round != Some(span.round)).then(|| format!("Round {} · {}", span.round, span.phase.name()));
            round = Some(span.round);
            let to = span.to.unwrap_or(case.frame.now.max(span.from));
            let state = span.failed.as_ref().map_or_else(
                || if span.to.is_some() { "answered".into() } else { "under way".to_owned() },
                |why| format!("failed: {why}"),
            );
            Line {
                name: name(span),
                from: span.from,
                to,
                class: class(span),
                label: format!("{}: {state}, {}", span.task, usage_words(&span.usage)),
                href: format!("/i/{}/t/{}", case.id, span.task),
                heading,
            }
        })
        .collect();
    let failed: Vec<&Span> = case.spans.iter().filter(|span| span.failed.is_some()).collect();
    html! {
        @for span in failed {
            (crate::pages::parts::note("bad", Icon::Ban, &html! { span.strong { (span.task) " failed: " } (span.failed.as_deref().unwrap_or_default()) }))
        }
        section.card aria-labelledby="tasks" {
            header { h2 #tasks { (words::count(case.spans.len() as u64, "task")) }
                div.legend { span.c1 { i {} b { "Director" } } span.c2 { i {} b { "Expert" } } span.c3 { i {} b { "Critic" } } span.tb { i {} b { "failed" } } } }
            div.pad { (waterfall::waterfall("Tasks over time", &lines)) }
        }
        section.card aria-label="Tasks as a table" { div.scroll { table {
            thead { tr { th scope="col" { "Task" } th scope="col" { "Who" } th.right scope="col" { "Tool calls" } th.right scope="col" { "Model calls" } th.right scope="col" { "Findings" } th.right scope="col" { "Took" } } }
            tbody { @for span in portion.rows { tr {
                td { a href=(case.with_links(|l| l.task(span.task.as_str()))) { (span.task) } }
                td { @if let Some(player) = &span.player { (player.name) " " span.soft { (player.version) } } @else if span.to.is_none() { "under way" } @else { "no worker" } }
                td.right { (span.tool_calls) } td.right { (span.model_calls) } td.right { (span.findings.len()) }
                td.right { @if let Some(to) = span.to { (crate::pages::parts::length(casebook_protocol::between(span.from, to))) } }
            } } }
        } } }
        (portion.nav)
    }
}
