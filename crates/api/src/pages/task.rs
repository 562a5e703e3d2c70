//! One invocation: what it was given, what it did, what came of it.

use casebook_hub::State;
use casebook_protocol::{CallStatus, Event, ModelCall, Purpose, Recorded, ToolCall, View, between};
use casebook_report::words;
use maud::{Markup, html};

use super::case::{Case, tasks, usage_words};
use super::frame::Live;
use super::icon::Icon;
use super::parts;
use crate::chart::waterfall::{self, Line};
use crate::model::spans::Span;
use crate::model::told;

/// Calls on the page.
const SHOWN: usize = 200;

enum Step<'a> {
    Tool(&'a ToolCall),
    Model(&'a ModelCall),
}

impl Step<'_> {
    const fn times(&self) -> (casebook_protocol::Timestamp, casebook_protocol::Timestamp) {
        match self {
            Self::Tool(call) => (call.started, call.ended),
            Self::Model(call) => (call.started, call.ended),
        }
    }
}

/// In order of time.
fn steps<'a>(state: &'a State, span: &Span) -> Vec<Step<'a>> {
    let tools = state.calls.values().filter(|made| made.task == span.task).map(|made| Step::Tool(&made.call));
    let models = state.asked.values().filter(|made| made.task == span.task).map(|made| Step::Model(&made.call));
    let mut all: Vec<Step<'_>> = tools.chain(models).collect();
    all.sort_by_key(Step::times);
    all
}

#[must_use]
pub fn page(case: &Case<'_>, span: &Span, view: &[u8]) -> String {
    let steps = steps(case.state, span);
    let live = if span.to.is_none() { Live::One(case.id.as_str()) } else { Live::Still };
    let body = html! {
        div {
            p.crumb { a href="/" { "Investigations" } " / " a href={ "/i/" (case.id) "?tab=tasks" } { (case.row.title) } " / " span.mono { (span.task) } }
            h1 { (tasks::name(span)) " · round " (span.round) }
            p.facts #facts data-part {
                @if let Some(why) = &span.failed { span.badge.bad { (Icon::Ban.show()) "Failed" } span { (why) } }
                @else if span.to.is_some() { span.badge.good { (Icon::Check.show()) "Answered" } }
                @else { span.badge.calm.run { (Icon::Spinner.show()) "Under way" } }
                span { (words::capital(span.kind.role().name())) ": " b { @if let Some(player) = &span.player { (player.name) " " (player.version) } @else { "not known yet" } } }
                @if let Some(to) = span.to { span { "took " b { (parts::length(between(span.from, to))) } } }
                span { (usage_words(&span.usage)) }
                a href={ "/i/" (case.id) "?at=" (span.seq) } { "the channels when it began" }
            }
        }
        div #steps data-part { (drawn(case, &steps)) }
        div.two {
            section.card #calls data-part aria-labelledby="did" { header { h2 #did { "What it did" } span.count { (steps.len()) } } (calls(case, &steps)) }
            div.stack.wide {
                section.card #result data-part aria-labelledby="came" { header { h2 #came { "What came of it" } } div.pad { (results(case, span)) } }
                section.card aria-labelledby="told" { header { h2 #told { "What it was given" } span.soft.small { (crate::model::zone::bytes(view.len() as u64)) } } div.pad { (given(case, span, view)) } }
            }
        }
    };
    case.frame.page(&format!("{} of {}", span.task, case.row.title), "/", live, &body)
}

fn drawn(case: &Case<'_>, steps: &[Step<'_>]) -> Markup {
    if steps.is_empty() {
        return parts::note(
            "calm",
            Icon::Info,
            &html! { "No tool and no model was called here: code answered from what it was given." },
        );
    }
    let line = |step: &Step<'_>| {
        let (from, to) = step.times();
        let (name, class, label, href) = match step {
            Step::Tool(call) => {
                let class = if call.status == CallStatus::Failed { "tb" } else { "c2" };
                (
                    call.tool.clone(),
                    class,
                    casebook_protocol::one_line(&call.arguments, 160),
                    format!("/i/{}/c/{}", case.id, call.id),
                )
            }
            Step::Model(call) => (
                call.model.clone(),
                "c3",
                format!("{} tokens in, {} out", call.usage.input_tokens, call.usage.output_tokens),
                format!("#m-{}", call.id),
            ),
        };
        Line { name, from, to, class, label, href, heading: None }
    };
    let lines: Vec<Line> = steps.iter().take(40).map(line).collect();
    html! {
        section.card aria-labelledby="when" {
            header { h2 #when { "When" } div.legend { span.c2 { i {} b { "tool" } } span.c3 { i {} b { "model" } } span.tb { i {} b { "failed" } } @if steps.len() > 40 { b { "the first 40 of " (steps.len()) } } } }
            div.pad { (waterfall::waterfall("Calls over time", &lines)) }
        }
    }
}

fn calls(case: &Case<'_>, steps: &[Step<'_>]) -> Markup {
    html! {
        @if steps.is_empty() { p.pad.soft { "Nothing." } }
        @for step in steps.iter().take(SHOWN) { @match step { Step::Tool(call) => (tool(case, call)), Step::Model(call) => (model(case, call)) } }
        @if steps.len() > SHOWN { p.pad.soft { (steps.len() - SHOWN) " more: " a href={ "/i/" (case.id) "?tab=events" } { "all events" } } }
    }
}

fn tool(case: &Case<'_>, call: &ToolCall) -> Markup {
    let cited: Vec<_> = case
        .report
        .findings
        .iter()
        .filter(|found| found.citations.iter().any(|cited| cited.citation.call() == &call.id))
        .map(|found| found.finding.id.clone())
        .collect();
    html! {
        article.find {
            div.row.apart {
                a.strong href={ "/i/" (case.id) "/c/" (call.id) } { (Icon::Tool.show()) " " (call.tool) }
                span.small.soft.num { (crate::model::zone::bytes(call.bytes)) " · " (parts::length(between(call.started, call.ended))) @if call.status == CallStatus::Failed { " " span.no { "failed" } } }
            }
            p.small.mono { (parts::quoted(&call.arguments, &[])) }
            @if !cited.is_empty() { p.small { span.ok { "✓ cited by " } (case.with_links(|links| links.ids(&cited))) } }
        }
    }
}

fn model(case: &Case<'_>, call: &ModelCall) -> Markup {
    let purpose = match call.purpose {
        Purpose::Turn => "turn",
        Purpose::Last => "last turn",
        Purpose::Repair => "repair of an invalid answer",
    };
    html! {
        article.find #{ "m-" (call.id) } {
            div.row.apart { a.strong href={ "/i/" (case.id) "/m/" (call.id) } { (Icon::Brain.show()) " " (call.model) } span.soft.small { (call.version) } span.small.soft.num { (parts::length(between(call.started, call.ended))) @if call.attempts > 1 { " · " (call.attempts) " attempts" } } }
            p.small { (purpose) ", prompt " code { (call.prompt) } ": " (words::thousands(call.usage.input_tokens)) " tokens in (" (words::thousands(call.usage.cached_tokens)) " cached), " (words::thousands(call.usage.output_tokens)) " out, cost " (words::money(call.usage.cost_micros)) }
            @if let Some(why) = &call.failed { p.small.no { (why) } }
        }
    }
}

fn results(case: &Case<'_>, span: &Span) -> Markup {
    let effects: Vec<&Recorded> = case
        .log
        .iter()
        .filter(|entry| span.effects.contains(&entry.seq))
        .filter(|entry| !matches!(entry.event, Event::FindingChecked { .. }))
        .collect();
    if effects.is_empty() {
        return html! { p.soft { @if span.to.is_some() { "Nothing that changed the investigation." } @else { "Not yet." } } };
    }
    html! { ul.stack { @for entry in effects.iter().take(60) {
        @let (title, text) = told::told(&entry.event);
        li { a.soft.num href={ "/i/" (case.id) "?at=" (entry.seq) } { (entry.seq) } " " span.strong { (title) } " " (case.with_links(|links| links.sentence(&text))) }
    } @if effects.len() > 60 { li.soft { (effects.len() - 60) " more" } } } }
}

/// The view by its parts. It is an artifact, so these are the bytes that the task got.
fn given(case: &Case<'_>, span: &Span, view: &[u8]) -> Markup {
    let raw = format!("/api/v1/investigations/{}/tasks/{}/view", case.id, span.task);
    let Ok(parsed) = serde_json::from_slice::<View>(view) else {
        return html! { p { "This version cannot read the view. " a href=(raw) { "As JSON" } } };
    };
    let count = |n: usize, name: &str| html! { li { span.num.strong { (n) } " " (name) } };
    html! {
        div.stack {
            ul.bullets { @match &parsed {
                View::Plan(view) | View::Decide(view) | View::Report(view) => {
                    li { "the alert " span.strong { (view.alert.title) } }
                    (count(view.journal.len(), "Journal entries"))
                    @if let Some(review) = &view.review { (count(review.findings.len(), "findings of the Review")) }
                    @if let Some(timeline) = &view.timeline { (count(timeline.events.len(), "events of the Timeline")) }
                    (count(view.roster.len(), "Experts to ask"))
                    @if let Some(warning) = &view.warning { li.to { "warning: " (warning) } }
                }
                View::Investigate(view) => {
                    li { "the alert " span.strong { (view.alert.title) } }
                    (count(view.journal.len(), "Journal entries"))
                    li { "the question: " (view.question.text) }
                    (count(view.sources.len(), "sources"))
                    (count(view.toolset.tools.len(), "tools"))
                    li.soft { "not: Review, Timeline, findings of others" }
                }
                View::Review(view) => {
                    (count(view.findings.len(), "findings to score"))
                    (count(view.earlier.len(), "earlier findings to compare with"))
                    (count(view.journal.len(), "Journal entries"))
                }
                View::Timeline(view) => {
                    (count(view.review.findings.len(), "scored findings"))
                    (count(view.previous.as_ref().map_or(0, |timeline| timeline.events.len()), "events of the Timeline before"))
                    (count(view.journal.len(), "Journal entries"))
                }
            } }
            a href=(raw) { "The whole view as JSON" }
        }
    }
}
