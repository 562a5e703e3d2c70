//! The parts of the page that a reader turns to for the reasons.

use casebook_protocol::report::{ReportCitation, ReportFinding};
use casebook_protocol::{Citation, Credibility, Report, ToolCall};

use super::escape::{code, sentence};
use super::{Page, links, words};

pub(super) fn ruling(page: &mut Page, report: &Report) {
    let ruling = &report.ruling;
    page.heading("How the verdict came about");
    page.line(format!(
        "Proposed: {}. Counts: {}.",
        words::verdict(ruling.proposed).to_lowercase(),
        words::verdict(ruling.verdict).to_lowercase()
    ));
    page.blank();
    for ground in &ruling.grounds {
        page.line(format!("- Ground: {}", sentence(ground)));
    }
    for missing in &ruling.missing {
        page.line(format!("- Missing: {}", sentence(missing)));
    }
    if !report.rests_on.is_empty() {
        page.line(format!("- It rests on {}", links(&report.rests_on)));
    }
}

pub(super) fn finding(page: &mut Page, report: &Report, found: &ReportFinding) {
    let draft = &found.finding.draft;
    page.blank();
    page.line(format!("### {}", found.finding.id));
    page.blank();
    page.line(format!(
        "**{}** · {}",
        words::scored(found.score, found.label.map(Credibility::name)),
        sentence(&draft.claim)
    ));
    page.blank();
    let about = if draft.about_alert { ", about the alerted activity" } else { "" };
    page.line(format!(
        "- {}, {}{about}; Expert {} in round {}, confidence {}",
        words::kind(draft.kind),
        words::bearing(draft.bearing, draft.weight),
        found.finding.domain,
        found.finding.round,
        draft.confidence
    ));
    if let Some(time) = &draft.time {
        page.line(format!("- Time: {} ({})", words::moment(time), words::basis(time).0));
    }
    if let Some(technique) = &draft.technique {
        page.line(format!("- Technique: {}", code(technique)));
    }
    for (what, text) in
        [("The Critic", &found.rationale)].into_iter().chain(draft.look_next.iter().map(|text| ("Look next", text)))
    {
        if !text.is_empty() {
            page.line(format!("- {what}: {}", sentence(text)));
        }
    }
    for (what, ids) in [("Supported by", &found.corroborated_by), ("Contradicted by", &found.contradicted_by)] {
        if !ids.is_empty() {
            page.line(format!("- {what} {}", links(ids)));
        }
    }
    for rule in &found.capped_by {
        page.line(format!("- Capped by rule {}", code(&rule.name())));
    }
    for fault in &found.faults {
        page.line(format!("- **Not in the evidence:** {}", sentence(fault)));
    }
    for cited in &found.citations {
        citation(page, report, cited);
    }
    if found.citations.is_empty() {
        page.line("- Cites nothing.");
    }
}

fn citation(page: &mut Page, report: &Report, cited: &ReportCitation) {
    let mark = if cited.holds { "Holds" } else { "**Does not hold**" };
    let shown = match &cited.citation {
        Citation::Literal { quote, .. } => code(quote),
        other => sentence(&words::cited(other)),
    };
    page.line(format!("- {mark}: {shown}"));
    let records: Vec<String> = cited.records.iter().map(|r| code(&words::record(r))).collect();
    if !records.is_empty() {
        page.line(format!("  - Where: {}", records.join(" · ")));
    }
    page.line(format!("  - Check: {}", sentence(&cited.note)));
    page.line(format!("  - From: {}", origin(report, cited)));
}

/// The call and the artifact that a citation leads to.
fn origin(report: &Report, cited: &ReportCitation) -> String {
    let id = cited.citation.call();
    let call = report.calls.iter().find(|call| call.id == *id);
    let how = call
        .map_or_else(String::new, |ToolCall { tool, arguments, .. }| format!(" {} {}", code(tool), code(arguments)));
    let artifact = cited.artifact.as_ref().map_or_else(String::new, |a| format!(", artifact {}", code(a.short())));
    format!("call {}{how}, at {}{artifact}", code(id.as_str()), code(&words::place(&cited.citation)))
}

/// Texts that somebody wrote for whoever investigates, whatever the Critic made of them.
pub(super) fn addressed(page: &mut Page, report: &Report) {
    let mut raised = words::addressed(report).peekable();
    if raised.peek().is_none() {
        return;
    }
    page.heading(words::ADDRESSED);
    page.line(words::ADDRESSED_MEANS);
    page.blank();
    for found in raised {
        let claim = sentence(&found.finding.draft.claim);
        page.line(format!("- {}: {claim}", links(std::slice::from_ref(&found.finding.id))));
        for cited in &found.citations {
            if let Citation::Literal { quote, .. } = &cited.citation {
                let places: Vec<String> = cited.records.iter().map(|r| code(&words::record(r))).collect();
                page.line(format!("  - {} {}", places.join(" · "), code(quote)));
            }
        }
    }
}

pub(super) fn doubts(page: &mut Page, report: &Report) {
    if !report.disagreements.is_empty() {
        page.heading("Where Experts and Critic differ");
        for difference in &report.disagreements {
            page.line(format!("- {}: {}", links(&difference.findings), sentence(&difference.about)));
        }
    }
    page.items("What no Expert could see", &report.blind_spots);
    if !report.guards.is_empty() {
        page.heading("What the rules changed");
        for guard in &report.guards {
            page.line(format!(
                "- {} on {}: {}",
                code(&guard.rule.name()),
                code(&guard.subject),
                sentence(&guard.effect)
            ));
        }
    }
}

pub(super) fn journal(page: &mut Page, report: &Report) {
    page.heading("Journal of the Director");
    for entry in &report.journal {
        let draft = &entry.entry;
        let priority = draft.priority.map_or_else(String::new, |p| format!(", {}", format!("{p:?}").to_lowercase()));
        let corrects = draft.supersedes.map_or_else(String::new, |old| format!(", corrects {old}"));
        let cites = if draft.citations.is_empty() { String::new() } else { format!(" ({})", links(&draft.citations)) };
        page.line(format!(
            "{}. _{} {}, {}{priority}{corrects}:_ {}{cites}",
            entry.seq,
            words::phase(entry.phase),
            entry.round,
            draft.kind.name(),
            sentence(&draft.text)
        ));
        for follow in &draft.follow_ups {
            page.line(format!("   - Follow up: {}", sentence(follow)));
        }
    }
}
