//! The alert and the three channels in prompts. They are bounded, so that late rounds cost no more than early ones.
//! They contain no clock times or ids of our own, so that a replay makes the same prompts.

use std::cmp::Reverse;

use casebook_protocol::{
    AccountedAct, Accounting, Act, Alert, Credibility, EventTime, FindingKind, JournalEntry, KEPT, LeadState, Review,
    Reviewed, Rule, Score, SourceCoverage, SourceNote, Timeline, TimelineEvent, journal, one_line,
    timeline::MAX_EVENTS,
};
use serde_json::{Value, json};

use super::{ALERT, Section, Written, scaled};
use crate::model::data::{fit, section, text_section};

/// The most events of the Timeline in a prompt of the Director, and their bytes.
const EVENTS: usize = 16;
const TIMELINE: usize = 4 * 1024;
/// Bytes of the events of the Timeline that the Critic rewrites: all that there may be, if they are short.
const REWRITTEN: usize = 12 * 1024;
/// Bytes of the Review, about thirty findings.
pub const REVIEW: usize = 16 * 1024;
/// Bytes of the acts, about sixty.
pub const ACTS: usize = 8 * 1024;
const SENTENCE: usize = 480;
const PARAGRAPH: usize = 1600;
/// Characters of the Critic's reasons, and of what to look at next.
const RATIONALE: usize = 320;
/// Characters of a finding in a list of all.
const LINE: usize = 240;
/// The most entities of a finding in a prompt.
const ENTITIES: usize = 12;
/// The most notes on sources in a prompt.
const NOTES: usize = 24;
/// The most leads in a prompt.
const LEADS: usize = 12;
/// Bytes of what the sources cover.
const COVERAGE: usize = 3 * 1024;

pub fn alert(rank: u8, alert: &Alert) -> Section<'_> {
    Section::new(rank, ALERT, move |limit| {
        let fitted = fit(&alert.json(), limit);
        let value: Value = serde_json::from_str(&fitted.text).unwrap_or(Value::Null);
        let left_out = (!fitted.notes.is_empty()).then(|| format!("alert: {}", fitted.notes.join("; ")));
        Written { text: section("alert", &value), left_out }
    })
}

/// The Journal in at most `most` bytes. Its text gives the number of omitted entries.
pub fn journal(rank: u8, most: usize, entries: &[JournalEntry]) -> Section<'_> {
    Section::new(rank, most, move |limit| {
        let text = if entries.is_empty() { "(no entry yet)".to_owned() } else { journal::render(entries, limit) };
        Written { text: text_section("journal", &text), left_out: None }
    })
}

/// The Timeline as the Director sees it. Of more events than fit, the earliest stays, then those with the best ranks.
pub fn timeline<'a>(rank: u8, room: usize, timeline: &'a Timeline, ranks: &'a [u64]) -> Section<'a> {
    let (events, bytes) = (scaled(EVENTS, room), scaled(TIMELINE, room));
    told(rank, bytes, timeline, move |limit| {
        let items = timeline.events.iter().enumerate().map(|(n, e)| (rank_at(ranks, n, e), event(e, None)));
        kept_values(items, events, limit, |missing, all| {
            format!("timeline: {missing} of {all} events, the least important")
        })
    })
}

/// The Timeline that the Critic rewrites, with a number for each event. `fate` ends the sentence about events that do not
/// fit.
pub fn rewritten<'a>(room: usize, timeline: &'a Timeline, ranks: &'a [u64], fate: &'a str) -> Section<'a> {
    let bytes = rewritten_bytes(room);
    let written = told(u8::MAX, bytes, timeline, move |_| {
        kept_values(numbered(timeline, ranks), MAX_EVENTS, bytes, |missing, all| {
            format!("timeline: {missing} of {all} events, the least important{fate}")
        })
    });
    written.whole()
}

/// Bytes of a prompt about the Timeline in its shortest form: the system text, narrative, gaps and summary.
const UNCUT: usize = 12_000;

/// It depends on the room of the prompt alone, because the answer is read with the same events.
fn rewritten_bytes(room: usize) -> usize {
    scaled(REWRITTEN, room).min(room.saturating_sub(UNCUT) / 3)
}

/// Which events of the Timeline the Critic is shown.
pub fn kept_events(room: usize, timeline: &Timeline, ranks: &[u64]) -> Vec<bool> {
    let items: Vec<(u64, usize)> =
        numbered(timeline, ranks).map(|(rank, event)| (rank, event.to_string().len())).collect();
    keep(&items, MAX_EVENTS, rewritten_bytes(room))
}

fn numbered<'a>(timeline: &'a Timeline, ranks: &'a [u64]) -> impl Iterator<Item = (u64, Value)> + 'a {
    timeline.events.iter().enumerate().map(|(n, e)| (rank_at(ranks, n, e), event(e, Some(n + 1))))
}

fn rank_at(ranks: &[u64], n: usize, event: &TimelineEvent) -> u64 {
    ranks.get(n).copied().unwrap_or_else(|| rank_of(event.score))
}

fn told<'a>(
    rank: u8,
    most: usize,
    timeline: &'a Timeline,
    events: impl Fn(usize) -> (Vec<Value>, Option<String>) + 'a,
) -> Section<'a> {
    Section::new(rank, most, move |limit| {
        let (events, left_out) = events(limit);
        let gaps: Vec<Value> = timeline
            .gaps
            .iter()
            .map(|g| json!({"kind": g.kind, "description": one_line(&g.description, SENTENCE)}))
            .collect();
        let shown = json!({
            "narrative": one_line(&timeline.narrative, PARAGRAPH),
            "score": timeline.score,
            "events": events,
            "gaps": gaps,
        });
        Written { text: section("timeline", &shown), left_out }
    })
}

/// The limits that the sources set to every finding and verdict; none if there are none.
pub fn out_of_reach(lines: &[String]) -> Option<Section<'_>> {
    (!lines.is_empty()).then(|| Section::fixed(text_section("out_of_reach", &lines.join("\n"))))
}

/// The Critic's leads and what became of them; nothing if there are none.
pub fn leads(leads: &[LeadState]) -> Option<Section<'_>> {
    let shown = |state: &LeadState| {
        let lead = &state.lead;
        json!({
            "id": lead.id,
            "expert": lead.domain,
            "what": lead.draft.what,
            "why": lead.draft.why,
            "fate": state.fate,
        })
    };
    let latest = leads.iter().skip(leads.len().saturating_sub(LEADS));
    (!leads.is_empty()).then(|| Section::fixed(section("leads", &latest.map(shown).collect())))
}

/// A line for each credible finding of all rounds.
pub fn credible(rank: u8, most: usize, findings: &[Reviewed]) -> Option<Section<'_>> {
    (!findings.is_empty()).then(|| {
        Section::new(rank, most, move |limit| {
            let line = |f: &Reviewed| {
                let draft = &f.finding.draft;
                let at = draft.time.as_ref().map(|time| format!(" {}", time.at)).unwrap_or_default();
                let claim = one_line(&draft.claim, LINE);
                json!(format!("{} {} {}{at}: {claim}", f.finding.id, f.score, draft.bearing.name()))
            };
            let items = findings.iter().map(|f| (rank_among(findings, f), line(f)));
            let (shown, left_out) = kept_values(items, usize::MAX, limit, |missing, all| {
                format!("credible: {missing} of {all} findings, the least important")
            });
            Written { text: text_section("credible", &lines(&shown)), left_out }
        })
    })
}

/// Notes on the sources that findings rest on; nothing if there are none.
pub fn notes(notes: &[SourceNote]) -> Option<Section<'_>> {
    let mut same: Vec<(&str, Vec<&str>)> = Vec::new();
    for note in notes.iter().take(NOTES) {
        match same.iter_mut().find(|(known, _)| *known == note.note) {
            Some((_, sources)) => sources.push(&note.source),
            None => same.push((&note.note, vec![&note.source])),
        }
    }
    let lines: Vec<String> =
        same.iter().map(|(note, sources)| format!("{}: {}", one_line(note, SENTENCE), named(sources))).collect();
    (!lines.is_empty()).then(|| Section::fixed(text_section("source_notes", &lines.join("\n"))))
}

/// At most this many sources of one note are named.
const NAMED: usize = 8;

fn named(sources: &[&str]) -> String {
    let shown: Vec<String> = sources.iter().take(NAMED).map(|source| one_line(source, LINE)).collect();
    let more = sources.len().saturating_sub(NAMED);
    if more > 0 { format!("{} and {more} more", shown.join(", ")) } else { shown.join(", ") }
}

/// Of which hosts, kinds and times the sources have records; nothing if that is not known.
pub fn coverage(rank: u8, coverage: &[SourceCoverage]) -> Option<Section<'_>> {
    (!coverage.is_empty()).then(|| {
        Section::new(rank, COVERAGE, move |limit| {
            let of = |source: &SourceCoverage| {
                let id = one_line(&source.source, LINE);
                source
                    .hosts
                    .iter()
                    .map(move |one| (one.records, json!(format!("{id}: {}", one.words()))))
                    .collect::<Vec<_>>()
            };
            let (shown, left_out) = kept_values(coverage.iter().flat_map(of), usize::MAX, limit, |missing, all| {
                format!("coverage: {missing} of {all} hosts of a source, those with the fewest records")
            });
            Written { text: text_section("coverage", &lines(&shown)), left_out }
        })
    })
}

/// One text a line. Texts of the evidence cannot begin another one.
fn lines(texts: &[Value]) -> String {
    texts.iter().filter_map(Value::as_str).map(|text| one_line(text, 2 * SENTENCE)).collect::<Vec<_>>().join("\n")
}

/// The acts that a dismissal must account for. Beyond the limit, explained acts are only counted.
pub fn acts(rank: u8, accounting: &Accounting) -> Section<'_> {
    Section::new(rank, ACTS, move |limit| {
        let place = |act: &Act| format!("{}:{}", one_line(&act.record.file, 120), act.record.line);
        let act = |a: &AccountedAct| {
            let by = a.by.as_ref().map_or_else(|| "unexplained".to_owned(), |id| format!("explained by {id}"));
            let (act, what) = (&a.act, one_line(&a.act.what, SENTENCE));
            json!(format!("{} {} {} {by}: {what}", place(act), act.kind.name(), act.part.name()))
        };
        let items = accounting.acts.iter().map(|a| (u64::from(a.by.is_none()), act(a)));
        let (shown, left_out) = kept_values(items, usize::MAX, limit, |missing, all| {
            format!("acts: {missing} of {all}, explained ones first")
        });
        let claim = accounting.claim.as_ref().map(|claim| {
            let watched =
                if claim.watched_by.is_empty() { "no sensor".to_owned() } else { claim.watched_by.join(", ") };
            format!("claim: {} records of {}, which {watched} records in full\n", claim.found, claim.kind.name())
        });
        let (explained, all) = (accounting.explained(), accounting.total());
        let text = format!("{explained} of {all} explained\n{}{}", claim.unwrap_or_default(), lines(&shown));
        Written { text: text_section("acts", &text), left_out }
    })
}

fn event(event: &TimelineEvent, number: Option<usize>) -> Value {
    let mut shown = json!({
        "time": time(&event.time),
        "description": one_line(&event.description, SENTENCE),
        "score": event.score,
        "findings": event.findings,
    });
    if let (Some(n), Some(map)) = (number, shown.as_object_mut()) {
        map.insert("n".to_owned(), n.into());
    }
    shown
}

/// The Review without citations. Of more than fit into `most` bytes, what exonerates, the earliest, and what is about the
/// alert stay longest.
pub fn review(rank: u8, most: usize, review: &Review) -> Section<'_> {
    Section::new(rank, most, move |limit| {
        let single = single_source(review);
        let items = review.findings.iter().map(|f| (rank_among(&review.findings, f), reviewed(f, single)));
        let (findings, left_out) = kept_values(items, usize::MAX, limit, |missing, all| {
            format!("review: {missing} of {all} findings, the least important")
        });
        let mut shown = json!({"summary": one_line(&review.summary, PARAGRAPH), "findings": findings});
        if let (true, Some(map)) = (single, shown.as_object_mut()) {
            let all = "single_source caps every finding that was scored higher: no two sensors agree yet";
            map.insert("capped".to_owned(), all.into());
        }
        Written { text: section("review", &shown), left_out }
    })
}

/// The earliest finding is kept as long as anything is.
fn rank_among(findings: &[Reviewed], finding: &Reviewed) -> u64 {
    let at = |f: &Reviewed| f.finding.draft.time.as_ref().map(|time| time.at);
    let first = findings.iter().filter_map(at).min();
    finding.rank() + if first.is_some() && at(finding) == first { KEPT } else { 0 }
}

/// True if the cap of a single source keeps every finding below the highest band, so that one line can say it.
fn single_source(review: &Review) -> bool {
    let capped = review.findings.iter().filter(|f| f.capped_by.contains(&Rule::SingleSource)).count();
    capped > 1 && review.findings.iter().all(|f| f.label != Credibility::Trustworthy)
}

fn reviewed(reviewed: &Reviewed, single: bool) -> Value {
    let draft = &reviewed.finding.draft;
    let caps = reviewed.capped_by.iter().copied().filter(|rule| !(single && *rule == Rule::SingleSource));
    let caps: Vec<Rule> = caps.collect();
    let mut shown = json!({
        "id": reviewed.finding.id,
        "score": reviewed.score,
        "claim": one_line(&draft.claim, SENTENCE),
        "bearing": draft.bearing,
        "weight": draft.weight,
        "rationale": one_line(&reviewed.rationale, RATIONALE),
    });
    let mut add = |key: &str, value: Value| {
        if let Some(map) = shown.as_object_mut() {
            map.insert(key.to_owned(), value);
        }
    };
    if draft.kind != FindingKind::Occurrence {
        add("kind", json!(draft.kind));
    }
    if draft.about_alert {
        add("about_alert", true.into());
    }
    if let Some(at) = &draft.time {
        add("time", time(at));
    }
    if !draft.entities.is_empty() {
        let entities = draft.entities.iter().take(ENTITIES);
        add("entities", entities.map(|e| format!("{} {}", e.kind.name(), one_line(&e.value, 160))).collect());
    }
    for (key, value) in [("technique", &draft.technique), ("look_next", &draft.look_next)] {
        if let Some(text) = value {
            add(key, one_line(text, RATIONALE).into());
        }
    }
    if reviewed.label == Credibility::CitationIncomplete {
        add("label", reviewed.label.name().into());
    }
    if !reviewed.checked.valid() {
        add("evidence_holds", false.into());
    }
    if !caps.is_empty() {
        add("proposed", json!(reviewed.proposed));
        add("capped_by", json!(caps));
    }
    if caps.iter().any(|rule| rule.is_of_form()) {
        let bad = reviewed.checked.citations.iter().zip(1..).filter(|(check, _)| !check.holds);
        let bad = bad.map(|(check, n)| format!("citation {n}: {}", check.note));
        let faults: Vec<String> = bad.chain(reviewed.checked.faults.iter().cloned()).take(3).collect();
        add("fault", one_line(&faults.join("; "), SENTENCE).into());
    }
    for (key, ids) in [("corroborated_by", &reviewed.corroborated_by), ("contradicted_by", &reviewed.contradicted_by)] {
        if !ids.is_empty() {
            add(key, json!(ids));
        }
    }
    shown
}

/// A time as in prompts and answers. The name of its field is omitted, since it is text of the evidence.
pub fn time(time: &EventTime) -> Value {
    let until = time.until.map(|until| format!(" to {until}")).unwrap_or_default();
    format!("{}{until} ({}, {})", time.at, time.precision.name(), time.basis.name()).into()
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a score is between 0 and 1")]
fn rank_of(score: Score) -> u64 {
    (score.get() * 1000.0).round() as u64
}

/// The items that [`keep`] selects, and `about` with the number of missing items and of all.
pub fn kept_values(
    items: impl Iterator<Item = (u64, Value)>,
    count: usize,
    limit: usize,
    about: impl FnOnce(usize, usize) -> String,
) -> (Vec<Value>, Option<String>) {
    let items: Vec<(u64, Value)> = items.collect();
    let sizes: Vec<(u64, usize)> = items.iter().map(|(rank, value)| (*rank, value.to_string().len())).collect();
    let kept = keep(&sizes, count, limit);
    let shown: Vec<Value> = items.into_iter().zip(&kept).filter(|(_, kept)| **kept).map(|((_, v), _)| v).collect();
    let missing = kept.len() - shown.len();
    (shown, (missing > 0).then(|| about(missing, kept.len())))
}

/// Which items are kept, given their importance and bytes: at most `count` in at most `limit` bytes, the most
/// important first, of equal ones the later first.
pub fn keep(items: &[(u64, usize)], count: usize, limit: usize) -> Vec<bool> {
    let mut order: Vec<usize> = (0..items.len()).collect();
    order.sort_by_key(|i| (Reverse(items.get(*i).map_or(0, |item| item.0)), Reverse(*i)));
    let mut kept = vec![false; items.len()];
    let mut used = 0;
    for place in order.into_iter().take(count) {
        let bytes = items.get(place).map_or(0, |item| item.1);
        if used + bytes > limit {
            break;
        }
        used += bytes;
        if let Some(slot) = kept.get_mut(place) {
            *slot = true;
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_important_are_kept_and_of_equal_ones_the_later() {
        let items = [(500, 10), (900, 10), (500, 10), (700, 10)];
        assert_eq!(keep(&items, 9, 30), [false, true, true, true]);
        assert_eq!(keep(&items, 1, 30), [false, true, false, false]);
        assert_eq!(keep(&items, 9, 9), [false; 4]);
    }
}
