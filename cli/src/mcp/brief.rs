//! Short forms of long answers, in pages: a model's window is small.

use casebook_protocol::report::ReportFinding;
use casebook_protocol::{Report, one_line};
use casebook_report::words;
use serde_json::{Value, json};

/// The most bytes of an answer in its short form.
pub const MOST: usize = 8 * 1024;
/// What is left for the items or the text of a page.
const ROOM: usize = 7 * 1024;

/// The items from `cursor`, at most `limit`, as many as fit into a page, and the cursor of the next page.
pub fn page(
    items: &[ReportFinding],
    cursor: usize,
    limit: usize,
    show: impl Fn(&ReportFinding) -> Value,
    room: usize,
) -> (Vec<Value>, Option<usize>) {
    let (mut shown, mut bytes) = (Vec::new(), 0);
    for item in items.iter().skip(cursor).take(limit) {
        let value = show(item);
        bytes += value.to_string().len() + 1;
        if bytes > room && !shown.is_empty() {
            break;
        }
        shown.push(value);
    }
    let next = cursor + shown.len();
    (shown, (next < items.len()).then_some(next))
}

/// As many findings as fit into a short answer.
pub fn findings(items: &[ReportFinding], cursor: usize, limit: usize) -> (Vec<Value>, Option<usize>) {
    page(items, cursor, limit, finding, ROOM)
}

fn finding(found: &ReportFinding) -> Value {
    let draft = &found.finding.draft;
    let citation = |one: &casebook_protocol::report::ReportCitation| {
        let records: Vec<String> = one.records.iter().take(3).map(|r| one_line(&words::record(r), 120)).collect();
        json!({"call": one.citation.call(), "holds": one.holds, "records": records})
    };
    json!({
        "id": found.finding.id,
        "claim": one_line(&draft.claim, 400),
        "score": found.score,
        "label": found.label,
        "bearing": draft.bearing,
        "time": draft.time.as_ref().map(|time| time.at),
        "citations": found.citations.iter().take(3).map(citation).collect::<Vec<_>>(),
        "faults": found.faults.iter().take(2).map(|fault| one_line(fault, 160)).collect::<Vec<_>>(),
    })
}

/// The text from byte `cursor` to the last whole line that fits, and the cursor of the next page.
pub fn lines(text: &str, cursor: usize) -> Result<(&str, Option<usize>), String> {
    let rest = text.get(cursor..).ok_or_else(|| format!("`cursor` {cursor} is not one that an answer gave"))?;
    // In JSON a line end, a quotation mark and a control character take more than one byte.
    let cost = |c: char| if c.is_control() || matches!(c, '"' | '\\') { 2 } else { c.len_utf8() };
    let mut bytes = 0;
    let fits = rest.char_indices().find(|(_, c)| {
        bytes += cost(*c);
        bytes > ROOM
    });
    let Some((end, _)) = fits else { return Ok((rest, None)) };
    let head = rest.get(..end).unwrap_or(rest);
    let end = head.rfind('\n').map_or(end, |at| at + 1);
    Ok((rest.get(..end).unwrap_or(rest), Some(cursor + end)))
}

/// What a reader asks first. Texts are cut to half and to a quarter of their length, and then left out, until the
/// answer fits.
pub fn report(report: &Report) -> Value {
    let tries = [4, 2, 1].map(|quarters| shortened(report, quarters));
    tries.into_iter().find(|one| one.to_string().len() <= ROOM).unwrap_or_else(|| shortened(report, 0))
}

/// With so many quarters of the characters that each text may have.
fn shortened(report: &Report, quarters: usize) -> Value {
    let short = |text: &str, most: usize| one_line(text, most * quarters / 4);
    let few = |all: &[String]| all.iter().take(5).map(|text| short(text, 200)).collect::<Vec<_>>();
    json!({
        "headline": short(&report.headline, 400),
        "verdict": report.verdict,
        "proposed": report.ruling.proposed,
        "stop_reason": report.stop_reason.as_ref().map(|text| short(text, 200)),
        "summary": short(&report.summary, 1_000),
        "root_cause": short(&report.root_cause, 400),
        "missing": few(&report.ruling.missing),
        "actions": few(&report.actions),
        "open_questions": few(&report.open_questions),
        "blind_spots": few(&report.blind_spots),
        "rests_on": report.rests_on.iter().take(20).collect::<Vec<_>>(),
        "findings": report.findings.len(),
        "timeline_events": report.timeline.events.len(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_a_text_are_whole_lines_and_give_all_of_it() {
        let text: String = (0..2_000).map(|n| format!("line {n} \"é\"\n")).collect();
        let (mut cursor, mut all) = (0, String::new());
        loop {
            let (part, next) = lines(&text, cursor).unwrap();
            assert!(json!(part).to_string().len() < MOST && part.ends_with('\n'));
            all.push_str(part);
            let Some(next) = next else { break };
            cursor = next;
        }
        assert_eq!(all, text);
        assert!(lines(&text, text.len() + 1).is_err() && lines("é", 1).is_err());
        let (part, next) = lines(&"x".repeat(20_000), 0).map(|(part, next)| (part.len(), next)).unwrap();
        assert_eq!(Some(part), next, "a line without an end is cut");
    }

    #[test]
    fn answer_fits_whatever_its_texts() {
        let mut full: Report = serde_json::from_str(include_str!("../../../hub/fixtures/report-v1.json")).unwrap();
        for (text, kept) in [("short", true), ("\u{1f512}", false), ("\"\\", false)] {
            let text = if kept { text.to_owned() } else { text.repeat(2_000) };
            let many = || vec![text.clone(); 9];
            (full.headline, full.summary, full.root_cause) = (text.clone(), text.clone(), text.clone());
            (full.actions, full.open_questions, full.blind_spots) = (many(), many(), many());
            (full.ruling.missing, full.stop_reason) = (many(), Some(text.clone()));
            let brief = report(&full);
            assert!(brief.to_string().len() <= ROOM, "{}", brief.to_string().len());
            assert_eq!(brief["headline"] == text, kept, "{brief}");
        }
    }
}
