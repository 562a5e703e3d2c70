//! The rounds: what was asked, what came back, what was decided, and what it cost.

use casebook_hub::Round;
use casebook_protocol::{Domain, Move, Phase, Usage};
use casebook_report::words;
use maud::{Markup, html};

use super::{Case, empty_yet, usage_words};
use crate::chart::bars::{self, Bar};
use crate::pages::icon::Icon;

#[must_use]
pub fn show(case: &Case<'_>) -> Markup {
    if case.state.rounds.is_empty() {
        return empty_yet(case, Icon::Spinner, "No round yet", "The first round begins when the team is ready.");
    }
    html! {
        div.half {
            (work(case))
            (found(case))
        }
        @for (number, round) in case.state.rounds.iter().rev() { (one(case, *number, round)) }
    }
}

fn used(case: &Case<'_>, round: u32) -> Usage {
    let mut total = Usage::default();
    case.spans.iter().filter(|span| span.round == round).for_each(|span| total += span.usage);
    total
}

/// Cost over rounds; tool calls where no model was asked.
fn work(case: &Case<'_>) -> Markup {
    let paid = case.state.usage.cost_micros > 0;
    let bar = |(number, round): (&u32, &Round)| {
        let usage = used(case, *number);
        let value = if paid { usage.cost_micros as f64 / 1e6 } else { usage.tool_calls as f64 };
        Bar {
            name: format!("{number}"),
            values: vec![value],
            label: format!("Round {number}, {}: {}", round.phase.name(), usage_words(&usage)),
            href: Some(format!("#round-{number}")),
        }
    };
    let chart: Vec<Bar> = case.state.rounds.iter().map(bar).collect();
    let (title, unit): (_, &dyn Fn(f64) -> String) =
        if paid { ("Cost by round", &|n| format!("{n:.2}")) } else { ("Tool calls by round", &|n| format!("{n:.0}")) };
    html! { section.card { header { h2 { (title) } span.soft.small { (usage_words(&case.state.usage)) } } div.pad { (bars::bars(title, bars::HALF, &chart, &["c1"], unit)) } } }
}

const TONES: [&str; 3] = ["tg", "ts", "to"];
const KINDS: [&str; 3] = ["credible", "not credible", "not reviewed"];

fn found(case: &Case<'_>) -> Markup {
    let bar = |(number, round): (&u32, &Round)| {
        let mut values = vec![0.0; 3];
        for finding in round.findings.values() {
            let place = match case.known(&finding.finding.id) {
                Some(known) if known.score.get() >= casebook_trust::rule::TIMELINE_THRESHOLD => 0,
                Some(_) => 1,
                None => 2,
            };
            if let Some(count) = values.get_mut(place) {
                *count += 1.0;
            }
        }
        let shown: Vec<String> = values.iter().zip(KINDS).map(|(n, kind)| format!("{n} {kind}")).collect();
        Bar {
            name: format!("{number}"),
            values,
            label: format!("Round {number}: {}", shown.join(", ")),
            href: Some(format!("#round-{number}")),
        }
    };
    let chart: Vec<Bar> = case.state.rounds.iter().map(bar).collect();
    html! {
        section.card {
            header { h2 { "Findings by round" } div.legend { @for (tone, kind) in TONES.iter().zip(KINDS) { span.(tone) { i {} b { (kind) } } } } }
            div.pad { (bars::bars("Findings by round", bars::HALF, &chart, &TONES, &|n| format!("{n:.0}"))) }
        }
    }
}

fn one(case: &Case<'_>, number: u32, round: &Round) -> Markup {
    let usage = used(case, number);
    let tasks = case.spans.iter().filter(|span| span.round == number);
    case.with_links(|links| html! {
        section.card #{ "round-" (number) } aria-label={ "Round " (number) } {
            header { h2 { "Round " (number) span.soft { " · " (round.phase.name()) } } span.soft.small { (usage_words(&usage)) } }
            div.pad.stack {
                @if let Some(question) = &round.question {
                    div {
                        p.label { "Question to " @if question.to.is_empty() { "every Expert" } @else { (question.to.iter().map(Domain::as_str).collect::<Vec<_>>().join(", ")) } }
                        p { (links.sentence(&question.text)) }
                        @if !question.follow.is_empty() { p.small { span.soft { "Follow: " } @for name in question.follow.iter().take(24) { code { (name) } " " } @if question.follow.len() > 24 { span.soft { "and " (question.follow.len() - 24) " more" } } } }
                    }
                } @else if round.phase != Phase::Conclude { p.soft { "The Director plans the question." } }
                div.row { @for span in tasks {
                    a.badge.(if span.failed.is_some() { "bad" } else if span.to.is_none() { "calm" } else { "none" }) href=(links.task(span.task.as_str())) {
                        (span.kind.name()) @if let Some(domain) = &span.domain { " " (domain) } @if !span.findings.is_empty() { " · " (words::count(span.findings.len() as u64, "finding")) }
                    }
                } }
                @if let Some(decision) = &round.decision {
                    p { span.badge.(if decision.next == Move::Advance { "good" } else { "calm" }) { (Icon::Next.show()) (words::capital(decision.next.name())) } " " (links.sentence(&decision.reason)) }
                }
            }
        }
    })
}
