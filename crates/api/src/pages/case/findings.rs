//! The findings: how their scores are distributed, and each with its reason and its citations.

use casebook_protocol::report::{ReportCitation, ReportFinding};
use casebook_protocol::{Citation, one_line};
use casebook_report::words;
use maud::{Markup, html};

use super::{Case, empty_yet, timeline};
use crate::chart::scores::{self, Dot};
use crate::pages::icon::Icon;
use crate::pages::parts;

#[must_use]
pub fn show(case: &Case<'_>) -> Markup {
    if case.report.findings.is_empty() {
        return empty_yet(case, Icon::Search, "No findings yet", "The Experts search their sources now.");
    }
    let (mut all, rest): (Vec<_>, Vec<_>) = case.report.findings.iter().partition(|found| words::credible(found));
    all.sort_by(|a, b| b.score.partial_cmp(&a.score).unwrap_or(std::cmp::Ordering::Equal));
    let credible = all.len();
    all.extend(rest);
    let wanted = all.iter().position(|found| found.finding.id.as_str() == case.finding);
    let portion = case.portion("findings", &all, wanted.unwrap_or(0));
    let (shown, rest) = portion.rows.split_at(credible.saturating_sub(portion.first).min(portion.rows.len()));
    let dots: Vec<Dot> = case
        .report
        .findings
        .iter()
        .filter_map(|found| {
            let score = found.score?;
            let label = format!("{score} {}: {}", found.finding.id, one_line(&found.finding.draft.claim, 140));
            Some(Dot {
                score: score.get(),
                label,
                href: case.with_links(|links| links.near(found.finding.id.as_str())),
            })
        })
        .collect();
    let unscored = case.report.findings.len() - dots.len();
    html! {
        section.card aria-labelledby="dist" {
            header { h2 #dist { "How credible the findings are" } span.soft.small { "a dot is a finding" @if unscored > 0 { "; " (unscored) " not reviewed yet" } } }
            div.pad { @if dots.is_empty() { p.soft { "The Critic has not reviewed them yet." } } @else { (scores::scores(&dots)) } }
        }
        @if !shown.is_empty() {
            section.card aria-labelledby="credible" { header { h2 #credible { "Credible" } span.count { (credible) } } @for found in shown { (one(case, found)) } }
        }
        @if !rest.is_empty() {
            section.card aria-labelledby="others" { header { h2 #others { "Not credible, or not reviewed" } span.count { (all.len() - credible) } } @for found in rest { (one(case, found)) } }
        }
        (portion.nav)
    }
}

fn one(case: &Case<'_>, found: &ReportFinding) -> Markup {
    let draft = &found.finding.draft;
    let tone = match draft.bearing {
        casebook_protocol::Bearing::Incriminating => "bad",
        casebook_protocol::Bearing::Exonerating => "good",
        casebook_protocol::Bearing::Neutral => "none",
    };
    case.with_links(|links| html! {
        article.find #{ "f-" (found.finding.id) } {
            div.row.apart {
                div.row {
                    @match (found.score, found.label) {
                        (Some(score), Some(label)) => (parts::score(score, label.name())),
                        _ => span.badge { (Icon::Clock.show()) "not reviewed" },
                    }
                    span.badge.(tone) { (words::capital(words::bearing(draft.bearing, draft.weight))) }
                    @if draft.about_alert { span.badge.calm { (Icon::Flag.show()) "about the alert" } }
                }
                span.small.soft { span.mono { (found.finding.id) } " · Expert " (found.finding.domain) " · round " (found.finding.round) }
            }
            h3 { (links.sentence(&draft.claim)) }
            @if let Some(time) = &draft.time { p.small.soft { (parts::moment(case.frame, time)) } }
            @if !found.rationale.is_empty() { p.small { span.strong { "Critic: " } (links.sentence(&found.rationale)) } }
            @for fault in &found.faults { p.small.no { "Not in the evidence: " (links.sentence(fault)) } }
            @for rule in &found.capped_by { p.small { span.badge.open { (Icon::Ban.show()) (rule.name()) } " " span.soft { (rule.meaning()) } } }
            @if !found.corroborated_by.is_empty() { p.small { span.soft { "Supported by " } (links.ids(&found.corroborated_by)) } }
            @if !found.contradicted_by.is_empty() { p.small { span.no { "Contradicted by " } (links.ids(&found.contradicted_by)) } }
            @if found.citations.is_empty() { p.small.no { "Cites nothing." } }
            div.stack { @for (n, cited) in found.citations.iter().enumerate() { (cite(case, found, n, cited)) } }
            @if let Some(next) = &draft.look_next { p.small { span.strong { "Look next: " } (links.sentence(next)) } }
        }
    })
}

fn cite(case: &Case<'_>, found: &ReportFinding, n: usize, cited: &ReportCitation) -> Markup {
    let href = timeline::quoted(case, found.finding.id.as_str(), n, &cited.citation);
    html! {
        div.cite {
            div.row.apart {
                div.row {
                    @if cited.holds { span.ok { "✓ holds" } } @else { span.no { "✗ does not hold" } }
                    @if let Some(record) = cited.records.first() {
                        a.mono href=(href) { (words::record(record)) }
                        @if cited.records.len() > 1 { span.soft { "and " (cited.records.len() - 1) " more" } }
                    } @else { a href=(href) { (words::cited(&cited.citation)) } }
                }
                span.soft { (one_line(&cited.note, 200)) }
            }
            @if let Some(search) = case.backing.search(&cited.citation) { p.small { (case.with_links(|links| links.sentence(&words::searched(search)))) } }
            @if let Citation::Literal { quote, .. } = &cited.citation { pre tabindex="0" { (parts::quoted(quote, &[])) } }
        }
    }
}
