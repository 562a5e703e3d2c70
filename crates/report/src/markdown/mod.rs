//! A report as Markdown: what an on-call engineer needs comes in the first lines, what it rests on
//! after it.

mod escape;
mod parts;

use casebook_protocol::{FindingId, Report};
use escape::{cell, code, sentence};

use super::{visible, words};

/// The report as Markdown.
#[must_use]
pub fn render(report: &Report) -> String {
    let mut page = Page::default();
    head(&mut page, report);
    story(&mut page, report);
    timeline(&mut page, report);
    parts::ruling(&mut page, report);
    parts::addressed(&mut page, report);
    page.heading("Findings");
    if report.findings.is_empty() {
        page.line("No Expert submitted a finding.");
    }
    for finding in &report.findings {
        parts::finding(&mut page, report, finding);
    }
    parts::doubts(&mut page, report);
    parts::journal(&mut page, report);
    cost(&mut page, report);
    visible(&page.0)
}

/// The text as far as it is written.
#[derive(Debug, Default)]
struct Page(String);

impl Page {
    fn line(&mut self, text: impl AsRef<str>) {
        self.0.push_str(text.as_ref());
        self.0.push('\n');
    }

    fn blank(&mut self) {
        self.line("");
    }

    fn heading(&mut self, text: &str) {
        self.blank();
        self.line(format!("## {text}"));
        self.blank();
    }

    fn items<'a>(&mut self, title: &str, items: impl IntoIterator<Item = &'a String>) {
        let mut items = items.into_iter().peekable();
        if items.peek().is_none() {
            return;
        }
        self.heading(title);
        for item in items {
            self.line(format!("- {}", sentence(item)));
        }
    }
}

/// So many reasons stand at the head of the page; the rest follows further down.
const REASONS: usize = 2;

fn head(page: &mut Page, report: &Report) {
    let ruling = &report.ruling;
    page.line(format!("# {}: {}", words::verdict(report.verdict), sentence(&report.alert.title)));
    page.blank();
    page.line(format!(
        "**{}** means: {}. {}",
        words::verdict(report.verdict),
        words::meaning(report.verdict),
        sentence(&report.summary)
    ));
    page.blank();
    if let Some(reason) = &report.stop_reason {
        page.line(format!("- **Stopped before its end:** {}", sentence(reason)));
    }
    if let Some(proposed) = words::overruled(ruling) {
        page.line(format!("- Proposed was {}; what is missing for it did not let it stand.", proposed.to_lowercase()));
    }
    for missing in ruling.missing.iter().take(REASONS) {
        page.line(format!("- **Missing:** {}", sentence(missing)));
    }
    for ground in ruling.grounds.iter().take(REASONS) {
        page.line(format!("- **Ground:** {}", sentence(ground)));
    }
    if let Some(first) = report.actions.first() {
        page.line(format!("- **Do first:** {}", sentence(first)));
    }
    page.blank();
    let asked =
        format!("alert {}, severity {}", code(report.alert.id.as_str()), words::severity(report.alert.severity));
    let run = format!(
        "investigation {}, {} to {}",
        code(report.investigation.as_str()),
        words::second(report.opened),
        words::second(report.closed)
    );
    page.line(format!("_{}; {run}._", words::capital(&asked)));
}

fn story(page: &mut Page, report: &Report) {
    if report.actions.len() > 1 {
        page.heading("What to do");
    }
    for (number, action) in (1..).zip(report.actions.iter().filter(|_| report.actions.len() > 1)) {
        page.line(format!("{number}. {}", sentence(action)));
    }
    page.heading("Root cause");
    page.line(if report.root_cause.is_empty() { "Not established.".to_owned() } else { sentence(&report.root_cause) });
    page.items("Open questions", &report.open_questions);
}

fn timeline(page: &mut Page, report: &Report) {
    let timeline = &report.timeline;
    page.heading("Timeline");
    page.line(format!("Coherence **{} {}**. {}", timeline.score, timeline.label.name(), sentence(&timeline.narrative)));
    page.blank();
    if timeline.events.is_empty() {
        page.line("No event is supported well enough to stand here.");
    }
    for (number, event) in (1..).zip(&timeline.events) {
        let (basis, field) = words::basis(&event.when);
        let label = casebook_protocol::Credibility::of(event.score).name();
        let evidence: Vec<String> = event.evidence.iter().map(|r| code(&words::record(r))).collect();
        page.line(format!("{number}. **{}** {}", words::moment(&event.when), sentence(&event.description)));
        page.line(format!(
            "   - {} {label} · {}{} · {}",
            event.score,
            basis,
            field.map_or_else(String::new, |f| format!(" {}", code(f))),
            links(&event.findings)
        ));
        if !evidence.is_empty() {
            page.line(format!("   - {}", evidence.join(" · ")));
        }
    }
    page.blank();
    page.line(if timeline.gaps.is_empty() { "No gap was named." } else { "Gaps:" });
    page.blank();
    for gap in &timeline.gaps {
        page.line(format!("- **{}:** {}", words::gap(gap.kind), sentence(&gap.description)));
    }
}

/// Links to findings: their ids are plain letters, digits and dashes by type.
fn links(findings: &[FindingId]) -> String {
    let links: Vec<String> = findings.iter().map(|id| format!("[{id}](#{id})")).collect();
    links.join(", ")
}

fn cost(page: &mut Page, report: &Report) {
    let total = &report.usage.total;
    page.heading("Cost");
    page.line(format!("{} rounds in {}.", report.usage.rounds, words::took(report)));
    page.blank();
    page.line("| task | by | tool calls | model calls | tokens in | of them cached | tokens out | cost |");
    page.line("|---|---|--:|--:|--:|--:|--:|--:|");
    let row = |page: &mut Page, name: &str, by: &str, used: &casebook_protocol::Usage| {
        let numbers = [used.tool_calls, used.model_calls, used.input_tokens, used.cached_tokens, used.output_tokens]
            .map(|n| n.to_string())
            .join(" | ");
        page.line(format!("| {name} | {} | {numbers} | {} |", cell(by), words::money(used.cost_micros)));
    };
    for task in &report.usage.tasks {
        let player = task.player.as_ref().map_or_else(String::new, |p| format!(", {} {}", p.name, p.version));
        row(page, task.task.as_str(), &format!("{}{player}", words::role(task)), &task.usage);
    }
    row(page, "**all**", "", total);
    let failed: Vec<_> =
        report.usage.tasks.iter().filter_map(|task| task.failed.as_ref().map(|why| (task, why))).collect();
    if !failed.is_empty() {
        page.blank();
    }
    for (task, why) in failed {
        page.line(format!("- {} failed: {}", task.task, sentence(why)));
    }
}
