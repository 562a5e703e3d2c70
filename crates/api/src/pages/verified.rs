//! What a verification of one investigation found.

use casebook_report::words::count;
use maud::html;

use super::case::Case;
use super::frame::Live;
use super::icon::Icon;
use super::parts;
use crate::model::verified::Verified;

#[must_use]
pub fn page(case: &Case<'_>, found: &Verified<'_>) -> String {
    let report = if found.report { "the recorded report is what the log gives" } else { "no report is recorded yet" };
    let body = html! {
        div.top { div {
            p.crumb { a href="/" { "Investigations" } " / " a href={ "/i/" (case.id) } { (case.row.title) } }
            h1 { "Verification" }
        } }
        @if found.intact {
            (parts::note("good", Icon::Shield, &html! { span.strong { "No difference was found. " } "The record is as it was written." }))
        } @else {
            (parts::note("bad", Icon::Alert, &html! { span.strong { (count(found.problems.len() as u64, "difference")) ". " } "Do not rely on this investigation." }))
            section.card { header { h2 { "Differences" } } div.pad { ul {
                @for one in &found.problems { li { @if let Some(seq) = one.seq { "Event " (seq) ": " } (one.what) } }
            } } }
        }
        section.card { header { h2 { "Checked" } } div.pad { ul {
            li { (count(found.events, "event")) ": each follows the one before" @if found.closed { "; the last one closes the investigation" } }
            li { (count(found.artifacts, "artifact")) ": each has its hash" }
            li { (count(found.results, "recorded result")) ": each is what the log says" }
            li { (count(found.findings, "finding")) " with " (count(found.citations, "citation")) ": checked again with the same answers" }
            li { (report) }
        } } }
        section.card { header { h2 { "Not known" } } div.pad { ul {
            @if !found.closed { li { "Whether the log is complete: it is not closed, so its last events may be missing." } }
            @for foreign in found.foreign { li { "Skipped: " (foreign) } }
            li { "Whether the whole log was written anew: compare with a report that was kept elsewhere (" code { "casebook verify --report FILE" } ")." }
            li { "Whether the evidence is unchanged: " code { "casebook verify --evidence DIR" } " compares it." }
        } } }
    };
    case.frame.page("Verification", "/", Live::Still, &body)
}
