//! A report as Markdown: what an on-call engineer needs comes in the first lines, what it rests on
//! after it. The page itself is `templates/report.md`, in which every text is escaped by [`Sentence`].

mod escape;

use askama::Template;
use askama::filters::Safe;
use casebook_protocol::report::TaskUsage;
use casebook_protocol::{Citation, FindingId, RecordRef, Report};
use escape::{cell, code};

pub(crate) use escape::Sentence;

use crate::{finished, words};

/// How many reasons the head of the page has. The rest follows further down.
const REASONS: usize = 2;

#[must_use]
pub fn render(report: &Report) -> String {
    finished(&Page { report }.to_string())
}

#[derive(Template)]
#[template(path = "report.md")]
struct Page<'a> {
    report: &'a Report,
}

impl Page<'_> {
    fn code(&self, text: impl AsRef<str>) -> Safe<String> {
        Safe(code(text.as_ref()))
    }

    fn link(&self, id: &FindingId) -> Safe<String> {
        self.links(std::slice::from_ref(id))
    }

    /// Links to findings: their ids are plain letters, digits and dashes by type.
    fn links(&self, ids: &[FindingId]) -> Safe<String> {
        let links: Vec<String> = ids.iter().map(|id| format!("[{id}](#{id})")).collect();
        Safe(links.join(", "))
    }

    fn records(&self, records: &[RecordRef]) -> Safe<String> {
        let records: Vec<String> = records.iter().map(|record| code(&words::record(record))).collect();
        Safe(records.join(" · "))
    }

    /// Who did a task, for a table.
    fn player(&self, task: &TaskUsage) -> Safe<String> {
        let player = task.player.as_ref().map_or_else(String::new, |p| format!(", {} {}", p.name, p.version));
        Safe(cell(&format!("{}{player}", words::role(task))))
    }
}
