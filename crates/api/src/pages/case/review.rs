//! The Critic's latest Review: what was proposed, and what the rules made of it.

use casebook_protocol::Reviewed;
use casebook_protocol::report::Disagreement;
use casebook_report::words;
use maud::{Markup, html};

use super::{Case, empty_yet};
use crate::pages::icon::Icon;
use crate::pages::parts;

#[must_use]
pub fn show(case: &Case<'_>) -> Markup {
    let Some(review) = &case.state.review else {
        return empty_yet(
            case,
            Icon::Pen,
            "No Review yet",
            "The Critic scores the findings when all Experts have answered.",
        );
    };
    let mut findings: Vec<&Reviewed> = review.findings.iter().collect();
    findings.sort_by(|a, b| b.score.partial_cmp(&a.score).unwrap_or(std::cmp::Ordering::Equal));
    let portion = case.portion("review", &findings, 0);
    let capped = findings.iter().filter(|one| !one.capped_by.is_empty()).count();
    html! {
        section.card aria-labelledby="summary" {
            header { h2 #summary { "Review of round " (review.round) } span.soft.small { (words::count(findings.len() as u64, "finding")) ", " (capped) " capped by rules" } }
            div.pad { p.lead { (case.with_links(|links| links.sentence(&review.summary))) } }
        }
        @if !case.report.disagreements.is_empty() { (disagreements(case)) }
        section.card aria-label="Scores" { div { @for one in portion.rows { (line(case, one)) } } (portion.nav) }
    }
}

/// Shown at once; the rest is folded.
const SHOWN: usize = 4;

fn disagreements(case: &Case<'_>) -> Markup {
    let all = &case.report.disagreements;
    let (first, rest) = all.split_at(SHOWN.min(all.len()));
    let list = |part: &[Disagreement]| {
        case.with_links(|links| html! { ul.bullets { @for one in part { li { (links.ids(&one.findings)) ": " (links.sentence(&one.about)) } } } })
    };
    html! {
        section.card aria-labelledby="disagree" {
            header { h2 #disagree { "Disagreements" } span.count { (all.len()) } }
            div.pad.stack {
                (list(first))
                @if !rest.is_empty() { details { summary { (words::count(rest.len() as u64, "more disagreement")) } (list(rest)) } }
            }
        }
    }
}

fn line(case: &Case<'_>, one: &Reviewed) -> Markup {
    let moved = (one.proposed.get() - one.score.get()).abs() > 0.004;
    case.with_links(|links| html! {
        article.find {
            div.row.apart {
                div.row {
                    (parts::score(one.score, one.label.name()))
                    @if moved { span.small.soft { "proposed " span.num { (one.proposed) } } }
                    @for rule in &one.capped_by { span.badge.open title=(rule.meaning()) { (Icon::Ban.show()) (rule.name()) } }
                }
                span.small { (links.ids(std::slice::from_ref(&one.finding.id))) }
            }
            p { (links.sentence(&one.finding.draft.claim)) }
            p.small { span.strong { "Critic: " } span.soft { (links.sentence(&one.rationale)) } }
        }
    })
}
