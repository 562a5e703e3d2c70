//! What a verification of one investigation found.

use casebook_hub::Verification;
use casebook_report::words::{capital, count};
use maud::html;

use super::case::Case;
use super::frame::Live;
use super::icon::Icon;
use super::parts;
use crate::model::verified;

#[must_use]
pub fn page(case: &Case<'_>, found: &Verification) -> String {
    let problems = verified::problems(found);
    let body = html! {
        div.top { div {
            p.crumb { a href="/" { "Investigations" } " / " a href={ "/i/" (case.id) } { (case.row.title) } }
            h1 { "Verification" }
        } }
        @if problems.is_empty() {
            (parts::note("good", Icon::Shield, &html! { span.strong { "No difference was found. " } "The record is as it was written." }))
        } @else {
            (parts::note("bad", Icon::Alert, &html! { span.strong { (count(problems.len() as u64, "difference")) ". " } "Do not rely on this investigation." }))
            section.card { header { h2 { "Differences" } } div.pad { ul { @for one in &problems { li { (capital(one)) } } } } }
        }
        section.card { header { h2 { "Checked" } } div.pad { ul { @for one in verified::checked(found) { li { (capital(&one)) } } } } }
        section.card { header { h2 { "Not known" } } div.pad { ul {
            @for one in verified::unknown(found) { li { (capital(&one)) } }
            @for foreign in &found.foreign { li { "Skipped: " (foreign) } }
            li { "Whether the whole log was written anew: compare with a report that was kept elsewhere (" code { "casebook verify --report FILE" } ")" }
            li { "Whether the evidence is unchanged: " code { "casebook verify --evidence DIR" } " compares it" }
        } } }
    };
    case.frame.page("Verification", "/", Live::Still, &body)
}
