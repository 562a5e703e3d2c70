//! Words and formats that all forms of a report share.

use casebook_protocol::report::{ReportFinding, TaskUsage};
use casebook_protocol::{
    AccountedAct, Bearing, CallId, Citation, Credibility, EventTime, FindingKind, GapKind, LeadState, Locator,
    Precision, Proof, RecordRef, Report, Rule, Ruling, Score, Snapshot, TaskKind, Timestamp, ToolCall, Usage, Verdict,
    Weight, one_line,
};
use casebook_trust::backing::{Backing, Search, Unfound};
use casebook_trust::headline;
use casebook_trust::rule::{CAP_SINGLE_SOURCE, TIMELINE_THRESHOLD};

mod pieces;

pub use pieces::{Piece, pieces};

use crate::record::flat;

pub const fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::TruePositive => "True positive",
        Verdict::BenignPositive => "Benign positive",
        Verdict::FalsePositive => "False positive",
        Verdict::Inconclusive => "Inconclusive",
    }
}

pub const fn meaning(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::TruePositive => "the evidence shows an attack",
        Verdict::BenignPositive => "the rule is right, the activity harmless",
        Verdict::FalsePositive => "the rule is wrong: what it says did not happen",
        Verdict::Inconclusive => "not shown either way: a person must look",
    }
}

/// Whom the alert is about, its time, how sure the report is, and since when. Names are in backquotes.
pub fn header(report: &Report) -> Vec<(&'static str, String)> {
    let name = |name: String| format!("`{}`", name.replace('`', "'"));
    let alert = &report.alert;
    let sure = headline::confidence(report);
    let facts = [
        ("Host", alert.host().map(name)),
        ("User", alert.user().map(name)),
        ("Time of the alert", alert.time().map(second)),
        (
            "Confidence",
            Some(sure.map_or_else(|| "none: no event".to_owned(), |(score, label)| format!("{score} {label}"))),
        ),
        ("First event", headline::since(report).map(moment)),
    ];
    facts.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

/// Names that a sentence lists.
const UNFOUND: usize = 30;
/// Bytes that the first sentences have at least.
const OPENING: usize = 120;
/// Items that are shown at once; the rest is folded.
pub const FIRST: usize = 3;

/// The proposed verdict, if the rules did not accept it.
pub fn overruled(ruling: &Ruling) -> Option<&'static str> {
    (ruling.proposed != ruling.verdict && !ruling.verdict.dismisses()).then(|| verdict(ruling.proposed))
}

pub fn acts(ruling: &Ruling) -> &[AccountedAct] {
    ruling.accounting.as_ref().map_or(&[], |accounting| &accounting.acts)
}

/// `accounted for: 14 of 14 acts`. None for an investigation without a list of acts.
pub fn accounted(ruling: &Ruling) -> Option<String> {
    let accounting = ruling.accounting.as_ref()?;
    Some(format!("accounted for: {} of {} acts", accounting.explained(), accounting.total()))
}

pub fn second(at: Timestamp) -> String {
    at.strftime("%Y-%m-%d %H:%M:%SZ").to_string()
}

pub fn moment(time: &EventTime) -> String {
    let format = match time.precision {
        Precision::Nanosecond => "%Y-%m-%d %H:%M:%S%.9fZ",
        Precision::Microsecond => "%Y-%m-%d %H:%M:%S%.6fZ",
        Precision::Millisecond => "%Y-%m-%d %H:%M:%S%.3fZ",
        Precision::Second => "%Y-%m-%d %H:%M:%SZ",
        Precision::Minute => "%Y-%m-%d %H:%MZ",
        Precision::Day => "%Y-%m-%d",
    };
    let at = time.at.strftime(format).to_string();
    match time.until {
        Some(until) => format!("{at} to {}", until.strftime(format)),
        None => at,
    }
}

pub fn gap(kind: GapKind) -> String {
    format!("{} gap", capital(kind.name()))
}

pub const fn kind(kind: FindingKind) -> &'static str {
    match kind {
        FindingKind::Instruction => "text that addresses the analyst",
        kind => kind.name(),
    }
}

pub const ADDRESSED: &str = "Text that addresses the analyst";
pub const ADDRESSED_MEANS: &str = "These log entries try to give instructions to the investigator. They were ignored, and they prevent automatic dismissal.";

/// Findings about text that addresses the investigator, at any score.
pub fn addressed(report: &Report) -> Vec<&ReportFinding> {
    report.findings.iter().filter(|f| f.finding.draft.kind == FindingKind::Instruction).collect()
}

pub const fn bearing(bearing: Bearing, weight: Weight) -> &'static str {
    match (bearing, weight) {
        (Bearing::Neutral, _) => "points neither way",
        (Bearing::Incriminating, Weight::Weak) => "points weakly to an attack",
        (Bearing::Incriminating, Weight::Moderate) => "points to an attack",
        (Bearing::Incriminating, Weight::Strong) => "points strongly to an attack",
        (Bearing::Incriminating, Weight::Decisive) => "points decisively to an attack",
        (Bearing::Exonerating, Weight::Weak) => "points weakly to a harmless cause",
        (Bearing::Exonerating, Weight::Moderate) => "points to a harmless cause",
        (Bearing::Exonerating, Weight::Strong) => "points strongly to a harmless cause",
        (Bearing::Exonerating, Weight::Decisive) => "points decisively to a harmless cause",
    }
}

pub fn credible(finding: &ReportFinding) -> bool {
    finding.score.is_some_and(|score| score.get() >= TIMELINE_THRESHOLD)
}

pub fn label(score: Score) -> &'static str {
    Credibility::of(score).name()
}

pub fn searched(search: &Search) -> String {
    capital(&search.to_string())
}

/// What was searched without a hit, and in how many sources.
pub fn unfound(backing: &Backing) -> Option<String> {
    let all = backing.unfound();
    let sources = many(all.iter().map(|one| one.sources).max()?, "source");
    let (listed, own): (Vec<_>, Vec<_>) = all.iter().partition(|one| one.listed);
    let name = |one: &&Unfound<'_>| format!("`{}`", one_line(&one.name.replace('`', "'"), 80));
    let mut names: Vec<String> = own.iter().take(UNFOUND).map(name).collect();
    let beyond = own.len().saturating_sub(UNFOUND);
    names.extend((beyond > 0).then(|| format!("{beyond} more")));
    names.extend((!listed.is_empty()).then(|| format!("{} from lists of known names", listed.len())));
    Some(format!("{}, in up to {sources}", names.join(", ")))
}

/// The first sentences, and the rest.
pub fn opening(text: &str) -> (&str, &str) {
    let ends = text.match_indices(". ").map(|(at, _)| at + 1).filter(|at| *at >= OPENING);
    // A full stop in a name of the evidence ends no sentence.
    let mut ends = ends.filter(|at| text.get(..*at).is_some_and(|text| text.matches('`').count().is_multiple_of(2)));
    ends.next().map_or((text, ""), |at| text.split_at(at))
}

/// The score with its label, and the Critic's score if a rule capped it.
pub fn scored(finding: &ReportFinding) -> String {
    let Some(score) = finding.score else { return "not reviewed".to_owned() };
    let capped = critics(finding).map(|critics| format!(" ({critics})")).unwrap_or_default();
    format!("{score} {}{capped}", labelled(finding))
}

pub fn labelled(finding: &ReportFinding) -> &'static str {
    finding.label.map_or("", Credibility::name)
}

/// The Critic's own score, if the rules changed it.
pub fn critics(finding: &ReportFinding) -> Option<String> {
    let proposed = finding.proposed.filter(|proposed| finding.score.is_some_and(|score| score != *proposed));
    proposed.map(|proposed| format!("the Critic's score: {proposed}"))
}

/// What to say once instead of at each finding, if evidence of a single source caps all of them.
pub fn single_source(report: &Report) -> Option<String> {
    let capped = report.findings.iter().filter(|f| f.capped_by.contains(&Rule::SingleSource)).count();
    let above = report.findings.iter().any(|f| f.label == Some(Credibility::Trustworthy));
    (capped > 1 && !above).then(|| {
        format!("A single source caps {} at {CAP_SINGLE_SOURCE}: no two sensors agree.", many(capped, "finding"))
    })
}

/// The rules that capped a finding, without the one that is said once for all.
pub fn caps(report: &Report, finding: &ReportFinding) -> Vec<Rule> {
    let once = single_source(report).is_some();
    finding.capped_by.iter().copied().filter(|rule| !(once && *rule == Rule::SingleSource)).collect()
}

/// Where a lead is from, and what became of it.
pub fn lead(state: &LeadState) -> (String, String) {
    let (lead, draft) = (&state.lead, &state.lead.draft);
    let at = match &draft.at {
        Locator::Pointer(pointer) if pointer.is_empty() => "the whole result".to_owned(),
        Locator::Pointer(pointer) => format!("`{pointer}`"),
        Locator::Line(line) => format!("line {line}"),
    };
    let overlooked =
        format!("Expert {} had it in the result of call `{}` at {at} and did not mention it.", lead.domain, draft.call);
    let became = match (state.fate, state.round, state.entry) {
        (_, Some(round), _) => format!("taken up in round {round}"),
        (_, _, Some(entry)) => format!("not followed; Journal entry {entry} says why"),
        (fate, ..) => fate.meaning().to_owned(),
    };
    (overlooked, became)
}

pub fn call<'r>(report: &'r Report, id: &CallId) -> Option<&'r ToolCall> {
    report.calls.iter().find(|call| call.id == *id)
}

/// A line for each argument.
pub fn arguments(call: &ToolCall) -> String {
    let Ok(arguments) = serde_json::from_str(&call.arguments) else { return call.arguments.clone() };
    let lines: Vec<String> = flat(&arguments).into_iter().map(|(name, value)| format!("{name}: {value}")).collect();
    lines.join("\n")
}

/// The first `most` characters, and the number of the rest.
pub fn cut(text: &str, most: usize) -> (&str, usize) {
    match text.char_indices().nth(most) {
        None => (text, 0),
        Some((end, _)) => {
            let (shown, rest) = text.split_at(end);
            (shown, rest.chars().count())
        }
    }
}

pub fn cited(citation: &Citation) -> String {
    match citation {
        Citation::Literal { .. } => "quotation".to_owned(),
        Citation::Count { value, .. } => format!("count: {value}"),
        Citation::Aggregate { value, .. } => format!("value: {value}"),
        Citation::Absence { from, to, .. } => {
            let edge = |at: &Option<Timestamp>, open: &str| at.map_or_else(|| open.to_owned(), second);
            format!("nothing found from {} to {}", edge(from, "the beginning"), edge(to, "the end"))
        }
    }
}

pub fn place(citation: &Citation) -> String {
    let (Citation::Literal { at, .. }
    | Citation::Count { at, .. }
    | Citation::Aggregate { at, .. }
    | Citation::Absence { at, .. }) = citation;
    match at {
        Locator::Pointer(pointer) if pointer.is_empty() => "the whole result".to_owned(),
        Locator::Pointer(pointer) => pointer.clone(),
        Locator::Line(line) => format!("line {line}"),
    }
}

pub fn role(task: &TaskUsage) -> String {
    match (&task.domain, task.kind) {
        (Some(domain), TaskKind::Investigate) => format!("Expert {domain}"),
        (_, kind) => capital(kind.role().name()),
    }
}

pub fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

/// Tool calls, model calls, input tokens, cached input tokens, output tokens.
pub const fn numbers(used: &Usage) -> [u64; 5] {
    [used.tool_calls, used.model_calls, used.input_tokens, used.cached_tokens, used.output_tokens]
}

pub fn money(micros: u64) -> String {
    format!("{}.{:04}", micros / 1_000_000, micros % 1_000_000 / 100)
}

/// Whole percent; none if `whole` is 0.
pub fn share(part: u64, whole: u64) -> String {
    let percent = part.saturating_mul(100).checked_div(whole).unwrap_or(0);
    format!("{percent} %")
}

pub fn seconds(time: std::time::Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

/// Groups digits by thousands.
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push('\u{202f}');
        }
        out.push(digit);
    }
    out
}

pub fn count(number: u64, thing: &str) -> String {
    match thing.strip_suffix('y').filter(|stem| !stem.ends_with(['a', 'e', 'o', 'u'])) {
        _ if number == 1 => format!("1 {thing}"),
        Some(stem) => format!("{number} {stem}ies"),
        None => format!("{number} {thing}s"),
    }
}

pub fn many(number: usize, thing: &str) -> String {
    count(number as u64, thing)
}

/// Items beyond those that are shown at once.
pub fn beyond(all: usize, thing: &str) -> String {
    many(all.saturating_sub(FIRST), thing)
}

/// The findings that Experts corrected after code returned them; none if there are none.
pub fn corrected(report: &Report) -> Option<String> {
    let all: u64 = report.usage.tasks.iter().map(|task| u64::from(task.corrected)).sum();
    (all > 0).then(|| format!("{} corrected", count(all, "finding")))
}

/// From opening to closing.
pub fn took(report: &Report) -> String {
    let seconds = report.closed.duration_since(report.opened).as_secs();
    match seconds {
        0 => "less than a second".to_owned(),
        1..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

/// What the report says about the log and the evidence, without the hash.
pub fn proof(proof: &Proof) -> String {
    let (records, files) = (many(proof.records.len(), "cited record"), many(proof.files.len(), "evidence file"));
    let read = |snapshot: &Snapshot| {
        let id: String = snapshot.id.chars().take(12).collect();
        format!("at {} (snapshot {id})", snapshot.read.strftime("%Y-%m-%d %H:%M:%SZ"))
    };
    let read: Vec<String> = proof.snapshots.iter().map(read).collect();
    let read = if read.is_empty() { String::new() } else { format!(" The evidence was read {}.", read.join(" and ")) };
    format!(
        "Made from {}.{read} The hashes of {records} and {files} are in report.json. The last event has the hash",
        count(proof.head.seq, "event")
    )
}

/// File and line, or, for a tool result of a server: the server, the start of the result's hash, and the place.
pub fn record(record: &RecordRef) -> String {
    match record.artifact() {
        None => format!("{}:{}", record.file, record.line),
        Some((hash, place)) => {
            let hash: String = hash.chars().take(12).collect();
            format!("{} {hash}{place}:{}", record.source, record.line)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_shown_as_exactly_as_it_is_known() {
        let check = |precision, expect| {
            let at: Timestamp = "2026-03-01T02:03:04.5678Z".parse().unwrap();
            let time = EventTime {
                at,
                until: None,
                precision,
                basis: casebook_protocol::TimeBasis::Record,
                field: String::new(),
            };
            assert_eq!(moment(&time), expect);
        };
        check(Precision::Microsecond, "2026-03-01 02:03:04.567800Z");
        check(Precision::Second, "2026-03-01 02:03:04Z");
        check(Precision::Minute, "2026-03-01 02:03Z");
        check(Precision::Day, "2026-03-01");
    }

    #[test]
    fn numbers_can_be_read() {
        assert_eq!(thousands(1_234_567), "1\u{202f}234\u{202f}567");
        assert_eq!(thousands(999), "999");
        assert_eq!(money(1_234_567), "1.2345");
    }
}
