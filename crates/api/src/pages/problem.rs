//! The pages of problems: what went wrong, and what to do.

use maud::html;

use super::frame::{Frame, Live};
use super::icon::Icon;
use crate::problem::{Kind, Problem};

/// A problem as the answer to the request for a page.
#[must_use]
pub fn page(frame: &Frame, problem: &Problem) -> String {
    let body = html! {
        div.card { div.empty {
            (Icon::Question.show())
            h1 { (problem.kind.title()) }
            p { (problem.detail) }
            p { (problem.kind.advice()) }
            a.btn href="/" { "All investigations" }
        } }
    };
    frame.page(problem.kind.title(), "", Live::Still, &body)
}

/// The page of a kind of problem, to which `type` of an answer leads.
#[must_use]
pub fn about(frame: &Frame, kind: Kind) -> String {
    let body = html! {
        div { p.crumb { "Problems" } h1 { (kind.title()) } }
        div.card.pad.stack {
            p { "The server answers with status " (kind.status()) ", and `type` is " code { "/problems/" (kind.name()) } "." }
            p { span.strong { "What to do: " } (kind.advice()) }
        }
    };
    frame.page(kind.title(), "", Live::Still, &body)
}
