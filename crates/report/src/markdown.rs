//! Renders a report as Markdown (`templates/report.md`), with what an on-call engineer needs first. [`Sentence`]
//! escapes every text.

mod escape;

use askama::Template;
use askama::filters::Safe;
use casebook_protocol::report::TaskUsage;
use casebook_protocol::{Citation, FindingId, RecordRef, Report};
use casebook_trust::Backing;
use escape::{cell, code};

pub(crate) use escape::Sentence;

use crate::{finished, words};

/// Reasons at the top of the page. The others follow below.
const REASONS: usize = 2;

pub fn render(report: &Report, backing: &Backing) -> String {
    finished(&Page { report, backing }.to_string())
}

#[derive(Template)]
#[template(path = "report.md")]
struct Page<'a> {
    report: &'a Report,
    backing: &'a Backing,
}

impl Page<'_> {
    fn code(&self, text: impl AsRef<str>) -> Safe<String> {
        Safe(code(text.as_ref()))
    }

    fn link(&self, id: &FindingId) -> Safe<String> {
        self.links(std::slice::from_ref(id))
    }

    /// Finding ids need no escaping: they are letters, digits and dashes.
    fn links(&self, ids: &[FindingId]) -> Safe<String> {
        let links: Vec<String> = ids.iter().map(|id| format!("[{id}](#{id})")).collect();
        Safe(links.join(", "))
    }

    fn records(&self, records: &[RecordRef]) -> Safe<String> {
        let records: Vec<String> = records.iter().map(|record| code(&words::record(record))).collect();
        Safe(records.join(" · "))
    }

    fn player(&self, task: &TaskUsage) -> Safe<String> {
        let player = task.player.as_ref().map_or_else(String::new, |p| format!(", {} {}", p.name, p.version));
        Safe(cell(&format!("{}{player}", words::role(task))))
    }
}
