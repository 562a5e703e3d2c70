//! A report as one self-contained page: nothing is loaded from anywhere, no script runs, and every
//! statement leads to findings, every finding to citations, every citation to a record and to the
//! tool call that returned it.

mod findings;
mod log;
mod parts;
mod story;

use casebook_protocol::{Report, Verdict};
use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::{visible, words};

/// The style of the page, in the page.
const STYLE: &str = include_str!("style.css");

/// Nothing may be loaded or run, and no style applies but the one whose hash stands here: hostile
/// text that got past all escaping would still find nothing to start.
const POLICY: &str = "default-src 'none'; style-src 'sha256-84D9CNN/Dj3/h/JnNN4e0d+z/dOcXlBynGdG3SSeu9w='; base-uri 'none'; form-action 'none'";

/// The report as a page.
#[must_use]
pub fn render(report: &Report) -> String {
    let title = format!("{}: {}", words::verdict(report.verdict), report.alert.title);
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="referrer" content="no-referrer";
                title { (title) " – Casebook" }
                style { (PreEscaped(STYLE)) }
            }
            body {
                (story::banner(report))
                (contents(report))
                main {
                    (story::summary(report))
                    (story::ruling(report))
                    (story::timeline(report))
                    (findings::addressed(report))
                    (findings::section(report))
                    (log::doubts(report))
                    (log::journal(report))
                    (log::calls(report))
                    (log::cost(report))
                    (log::alert(report))
                }
                footer { "Written by Casebook, report format " (report.casebook_report) ". Everything here is in " code { "report.json" } " too; " code { "casebook verify " (report.investigation) } " checks it against the stored bytes." }
            }
        }
    };
    visible(&page.into_string())
}

fn contents(report: &Report) -> Markup {
    html! {
        nav aria-label="Contents" {
            a href="#summary" { "Summary" }
            a href="#ruling" { "Verdict" }
            a href="#timeline" { "Timeline" }
            a href="#findings" { "Findings " span.n { (report.findings.len()) } }
            @if log::has_doubts(report) { a href="#doubts" { "Doubts" } }
            a href="#journal" { "Journal" }
            a href="#calls" { "Tool calls " span.n { (report.calls.len()) } }
            a href="#cost" { "Cost" }
            a href="#alert" { "Alert" }
        }
    }
}

/// The class that gives a verdict its colour.
const fn tone(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::TruePositive => "bad",
        Verdict::BenignPositive | Verdict::FalsePositive => "good",
        Verdict::Inconclusive => "open",
    }
}
