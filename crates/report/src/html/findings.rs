//! The findings, each with its judgement and with its citations down to record and tool call.

use casebook_protocol::report::{ReportCitation, ReportFinding};
use casebook_protocol::{Citation, FindingId, Report};
use maud::{Markup, html};

use super::log::call_anchor;
use super::parts::{basis, chip, citation_anchor, event_anchor, finding_anchor, findings, place, quoted, sentence};
use super::words;

pub(super) fn section(report: &Report) -> Markup {
    let (credible, others): (Vec<_>, Vec<_>) = report.findings.iter().partition(|f| words::credible(f));
    html! {
        section #findings {
            h2 { "Findings" }
            @if report.findings.is_empty() { p.none { "No Expert submitted a finding." } }
            @for found in &credible { (finding(report, found)) }
            @if !others.is_empty() {
                h3 { "Not believed, or not reviewed" }
                p.sub { "These score below 0.50. They carry no event of the Timeline and no verdict." }
                @for found in &others { (finding(report, found)) }
            }
        }
    }
}

/// Texts that somebody wrote for whoever investigates, whatever the Critic made of them.
pub(super) fn addressed(report: &Report) -> Markup {
    html! {
        @if words::addressed(report).next().is_some() {
            section #addressed {
                h2 { (words::ADDRESSED) }
                p.sub { (words::ADDRESSED_MEANS) }
                ul {
                    @for found in words::addressed(report) {
                        li {
                            (findings(report, std::slice::from_ref(&found.finding.id))) ": " (sentence(report, &found.finding.draft.claim))
                            @for cited in &found.citations {
                                @if let Citation::Literal { quote, .. } = &cited.citation { (quoted(quote)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn finding(report: &Report, found: &ReportFinding) -> Markup {
    let draft = &found.finding.draft;
    html! {
        article id=(finding_anchor(&found.finding.id)) {
            p.sub { (chip(found.score)) " " span.id { (found.finding.id) } }
            h4 { (sentence(report, &draft.claim)) }
            p.sub {
                (words::capital(words::kind(draft.kind))) ", " (words::bearing(draft.bearing, draft.weight))
                @if draft.about_alert { ", about the alerted activity" }
                ". Expert " b { (found.finding.domain) } ", round " (found.finding.round) ", own confidence " (draft.confidence) "."
                @if let Some(technique) = &draft.technique { " Technique " code { (technique) } "." }
            }
            @if let Some(time) = &draft.time { p.sub { time datetime=(time.at) { (words::moment(time)) } " " (basis(time)) } }
            (judgement(report, found))
            (citations(report, found))
            @if let Some(next) = &draft.look_next { p { b { "Look next: " } (sentence(report, next)) } }
        }
    }
}

fn judgement(report: &Report, found: &ReportFinding) -> Markup {
    let events = on_timeline(report, &found.finding.id);
    html! {
        @if !found.rationale.is_empty() { p.critic { b { "Critic: " } (sentence(report, &found.rationale)) } }
        @for fault in &found.faults { p.fault { b { "Not in the evidence: " } (sentence(report, fault)) } }
        @if !found.capped_by.is_empty() || !found.corroborated_by.is_empty() || !found.contradicted_by.is_empty() || !events.is_empty() {
            ul.links {
                @if !events.is_empty() { li { "Timeline " @for (i, n) in events.iter().enumerate() { @if i > 0 { ", " } a href=(format!("#{}", event_anchor(*n))) { "event " (n) } } } }
                @if !found.corroborated_by.is_empty() { li { "Supported by " (findings(report, &found.corroborated_by)) } }
                @if !found.contradicted_by.is_empty() { li { "Contradicted by " (findings(report, &found.contradicted_by)) } }
                @for rule in &found.capped_by { li { "Capped by rule " code { (rule.name()) } } }
            }
        }
    }
}

fn on_timeline(report: &Report, id: &FindingId) -> Vec<usize> {
    let events = report.timeline.events.iter().enumerate();
    events.filter(|(_, event)| event.findings.contains(id)).map(|(i, _)| i + 1).collect()
}

fn citations(report: &Report, found: &ReportFinding) -> Markup {
    html! {
        @if found.citations.is_empty() { p.fault { "Cites nothing." } }
        @else {
            ol.cites {
                @for (i, cited) in found.citations.iter().enumerate() {
                    li id=(citation_anchor(&found.finding.id, i + 1)) { (citation(report, cited)) }
                }
            }
        }
    }
}

fn citation(report: &Report, cited: &ReportCitation) -> Markup {
    html! {
        p.place {
            @if cited.holds { span.ok { "✓ holds" } } @else { span.no { "✗ does not hold" } }
            @for record in &cited.records { " " b { (place(record)) } }
            @if cited.records.is_empty() { " " b { (words::cited(&cited.citation)) } }
        }
        @if let Citation::Literal { quote, .. } = &cited.citation { (quoted(quote)) }
        @else if !cited.records.is_empty() { p { (words::cited(&cited.citation)) } }
        p.from {
            "Check: " (cited.note) ". From " (call(report, cited))
            ", at " code { (words::place(&cited.citation)) }
            @if let Some(artifact) = &cited.artifact { ", artifact " code title=(artifact) { (artifact.short()) } }
        }
    }
}

/// The tool call that returned what is cited, with its arguments.
fn call(report: &Report, cited: &ReportCitation) -> Markup {
    let id = cited.citation.call();
    html! {
        @match report.calls.iter().find(|call| call.id == *id) {
            Some(call) => { a href=(format!("#{}", call_anchor(id))) { code { (call.tool) } } " " code { (casebook_protocol::one_line(&call.arguments, 160)) } }
            None => { "call " code { (id) } ", which is not on record" }
        }
    }
}
