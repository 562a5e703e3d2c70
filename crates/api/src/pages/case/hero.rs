//! The answer, how sure it is and why, what to do first, what is missing, and what happens at this moment.

use casebook_protocol::{Phase, between};
use casebook_report::words;
use maud::{Markup, html};

use super::{Case, fact, usage_words};
use crate::pages::icon::Icon;
use crate::pages::parts;

/// Shown at once; the rest is folded.
const SHOWN: usize = 3;

#[must_use]
pub fn show(case: &Case<'_>) -> Markup {
    let concluded = case.state.conclusion.is_some();
    let tone = if concluded { parts::verdict_look(case.report.verdict).0 } else { "calm" };
    html! {
        div.stack {
            section.card.hero.(tone) aria-label="Answer" {
                div { @if concluded { (answer(case)) } @else { (so_far(case)) } }
                div.aside { (facts(case)) }
            }
            @if case.is_open() { (now(case)) }
        }
    }
}

/// The answer in one line, for pages that are about something else.
#[must_use]
pub fn brief(case: &Case<'_>) -> Markup {
    let concluded = case.state.conclusion.is_some();
    let (tone, icon) = if concluded { parts::verdict_look(case.report.verdict) } else { ("calm", Icon::Spinner) };
    html! {
        section.card.brief.(tone) aria-label="Answer" {
            p.verdict { (icon.show()) @if concluded { (words::verdict(case.report.verdict)) } @else { "No verdict yet" } }
            p.soft { @if concluded { (case.with_links(|links| links.sentence(&case.report.headline))) } @else { (words::count(case.report.findings.len() as u64, "finding")) " so far, round " (case.state.round) "." } }
            @if case.state.timeline.is_some() { (parts::score(case.report.timeline.score, case.report.timeline.label.name())) }
            a href={ "/i/" (case.id) } { "The whole answer" }
        }
    }
}

fn answer(case: &Case<'_>) -> Markup {
    let report = case.report;
    let (_, icon) = parts::verdict_look(report.verdict);
    case.with_links(|links| html! {
        p.verdict { (icon.show()) (words::verdict(report.verdict)) }
        p.headline { (links.sentence(&report.headline)) }
        div {
            p.soft { (words::capital(words::meaning(report.verdict))) "." @if let Some(other) = words::overruled(&report.ruling) { " The team proposed: " (other.to_lowercase()) "." } }
            (paragraphs(&report.summary, &|text| links.sentence(text)))
        }
        @if let Some(reason) = &report.stop_reason { (parts::note("open", Icon::Clock, &html! { "Ended early: " (reason) })) }
        @if !report.actions.is_empty() {
            div.stack { h2 { "Do first" } (folded(&report.actions, "action", true, &|text| links.sentence(text))) }
        }
        @if !report.ruling.missing.is_empty() {
            div.stack { h2 { "Missing" } (folded(&report.ruling.missing, "point", false, &|text| links.sentence(text))) }
        }
        @if !report.open_questions.is_empty() {
                div.stack { h2 { "Open questions" } (folded(&report.open_questions, "question", false, &|text| links.sentence(text))) }
            }
            @if !report.root_cause.is_empty() { details { summary { "Cause" } p { (links.sentence(&report.root_cause)) } } }
            @if !report.ruling.grounds.is_empty() {
            details { summary { "Why this verdict: " (words::count(report.ruling.grounds.len() as u64, "ground")) }
                ul.bullets { @for ground in &report.ruling.grounds { li { (links.sentence(ground)) } } }
            }
        }
    })
}

/// The first sentences, and the rest folded.
fn paragraphs(text: &str, show: &dyn Fn(&str) -> Markup) -> Markup {
    let end = text
        .char_indices()
        .filter(|(_, c)| *c == '.')
        .map(|(at, _)| at + 1)
        .find(|at| *at >= 160 && text.get(*at..).is_some_and(|rest| rest.starts_with(' ')));
    match end.map(|at| text.split_at(at)) {
        None => html! { p.lead { (show(text)) } },
        Some((first, rest)) => {
            html! { p.lead { (show(first)) } details { summary { "The whole summary" } p { (show(rest)) } } }
        }
    }
}

fn folded(items: &[String], more: &str, numbered: bool, show: &dyn Fn(&str) -> Markup) -> Markup {
    let list = |part: &[String]| {
        html! {
            @if numbered { ol.steps { @for item in part { li { span { (show(item)) } } } } } @else { ul.bullets { @for item in part { li { (show(item)) } } } }
        }
    };
    let (first, rest) = items.split_at(SHOWN.min(items.len()));
    html! { (list(first)) @if !rest.is_empty() { details { summary { (words::count(rest.len() as u64, &format!("more {more}"))) } (list(rest)) } } }
}

fn so_far(case: &Case<'_>) -> Markup {
    let credible = case.report.findings.iter().filter(|found| words::credible(found)).count();
    html! {
        @if let Some(reason) = &case.state.not_investigated {
            p.verdict { (Icon::Broken.show()) "Not investigated" }
            p.lead { "No log was read, because no model answered. The investigation goes on when it is resumed." }
            p { (reason) }
        } @else {
            p.verdict { (Icon::Spinner.show()) "No verdict yet" }
            p.headline { (case.with_links(|links| links.sentence(&case.report.headline))) }
        }
        @if let Some(timeline) = &case.state.timeline {
            p.lead { (case.with_links(|links| links.sentence(&casebook_protocol::one_line(&timeline.narrative, 420)))) }
        }
        @if let Some(text) = case.report.alert.about() { div { p.label { "The alert says" } p { (text) } } }
        @if let Some(question) = case.state.this_round().and_then(|round| round.question.as_ref()) {
            div { p.label { "The team is asked" } p { (case.with_links(|links| links.sentence(&question.text))) } }
        }
        p.soft { (words::count(case.report.findings.len() as u64, "finding")) " so far, " (credible) " of them credible." }
    }
}

fn facts(case: &Case<'_>) -> Markup {
    let (report, state) = (case.report, case.state);
    let worked = case.row.opened.zip(state.closed.or(state.last_at)).map(|(from, to)| parts::length(between(from, to)));
    let used = case.used();
    let rests = report.rests_on.len();
    html! {
        (phases(case))
        @if state.timeline.is_some() {
            div { p.label { "Coherence of the story" } div.row.apart { (parts::score(report.timeline.score, report.timeline.label.name())) } }
        }
        @if let Some(accounted) = words::accounted(&report.ruling) { p.small { (Icon::Check.show()) " " (words::capital(&accounted)) } }
        dl.pairs {
            @if rests > 0 { (fact("Rests on", &html! { a href=(case.with_links(|l| l.tab("findings"))) { (words::count(rests as u64, "finding")) } })) }
            (fact("Gaps", &html! { (report.timeline.gaps.len()) }))
            (fact("Blind spots", &html! { (report.blind_spots.len()) }))
            (fact("Rules changed", &html! { (words::count(report.guards.len() as u64, "proposal")) }))
            @if let Some(worked) = worked { (fact("Took", &html! { (worked) })) }
            (fact("Tool calls", &html! { span.num { (words::thousands(used.tool_calls)) } }))
            @if used.model_calls > 0 { (fact("Cost", &html! { span.num { (words::money(used.cost_micros)) } })) }
        }
        @if !report.blind_spots.is_empty() {
            details { summary { "What the team could not see" } ul.bullets { @for spot in &report.blind_spots { li { (spot) } } } }
        }
    }
}

fn phases(case: &Case<'_>) -> Markup {
    let (closed, current) = (case.state.closed.is_some(), case.state.phase);
    html! {
        ol.stack.phases aria-label="Phases" {
            @for phase in Phase::ALL {
                @let rounds = case.state.rounds.values().filter(|round| round.phase == phase).count();
                @let done = closed || phase < current;
                li.row.small {
                    @if done { span.tg { (Icon::Check.show()) } } @else if phase == current { span.tc { (Icon::Spinner.show()) } } @else { span.ts { (Icon::Clock.show()) } }
                    span.strong { (words::capital(phase.name())) }
                    span.soft { @if done { "done" } @else if phase == current { "under way" } @else { "to come" } @if rounds > 0 && phase != Phase::Conclude { ", " (words::count(rounds as u64, "round")) } }
                }
            }
        }
    }
}

fn now(case: &Case<'_>) -> Markup {
    let open: Vec<_> = case.spans.iter().filter(|span| span.to.is_none()).collect();
    html! {
        section.card.now aria-label="Now" {
            h2 { "Now" }
            @if open.is_empty() { span.soft { "no task under way; last event " (parts::since(case.state.last_at, case.frame.now)) " ago" } }
            @for span in open {
                a.task href=(case.with_links(|links| links.task(span.task.as_str()))) {
                    span.badge.calm.run { (Icon::Spinner.show()) (words::capital(span.kind.name())) @if let Some(domain) = &span.domain { " · " (domain) } }
                    span.soft.small { (words::count(span.tool_calls as u64, "call")) ", " (parts::length(between(span.from, case.frame.now))) }
                }
            }
            span.soft.small { (usage_words(&case.used())) }
        }
    }
}
