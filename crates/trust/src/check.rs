//! Checks a finding against the recorded bytes, before a Critic sees it (citation check). It is pure: it sees
//! only the calls that the caller added as exhibits.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::claim::{self, Corpus};
use casebook_protocol::{
    ArtifactId, CallId, CallStatus, Checked, Citation, CitationCheck, EventTime, FindingDraft, FindingKind, Locator,
    RecordRef, TimeBasis, Timestamp, ToolCall, tool,
};

mod cite;
mod coverage;
mod exhibit;
mod hash;
pub mod place;
mod query;
mod served;
mod when;

use cite::literal;
use query::{asked_for, covers, edge, queried};

const SQL: &str = "sql";
const COUNT_BY: &str = "count_by";
/// Its hits are judgements of rules over the records that it lists.
const RULE_HITS: &str = "rule_hits";
/// The mark that the tool `sql` sets in a row whose cells are all of the record at its file and line.
const OF_RECORD: &str = "of_record";

#[derive(Debug, Clone)]
pub struct Exhibit {
    call: ToolCall,
    repeatable: bool,
    text: String,
    json: Option<Value>,
}

/// Cloning is cheap: clones share the bytes.
#[derive(Debug, Clone, Default)]
pub struct Exhibits(BTreeMap<CallId, Arc<Exhibit>>);

impl Exhibits {
    /// Skips bytes that do not match the hash in the call, so that no citation can use them.
    pub fn add(&mut self, call: ToolCall, repeatable: bool, bytes: &[u8]) {
        if ArtifactId::of(bytes) != call.result {
            return;
        }
        let text = String::from_utf8_lossy(bytes).into_owned();
        let json = serde_json::from_str(&text).ok();
        self.0.insert(call.id.clone(), Arc::new(Exhibit { call, repeatable, text, json }));
    }

    /// The record that a citation points into, and its JSON pointer. None if it does not point into exactly one
    /// record.
    pub fn cited(&self, citation: &Citation) -> Option<(String, &Value)> {
        let Citation::Literal { call, at: Locator::Pointer(pointer), .. } = citation else { return None };
        self.0.get(call)?.record(pointer)
    }

    /// What a quotation is from: the record, or else the value or the line that it points to.
    pub fn whole(&self, citation: &Citation) -> Option<Value> {
        let Citation::Literal { call, at, .. } = citation else { return None };
        let exhibit = self.0.get(call)?;
        match at {
            Locator::Line(line) => {
                let index = usize::try_from(line.checked_sub(1)?).ok()?;
                exhibit.text.lines().nth(index).map(Value::from)
            }
            Locator::Pointer(pointer) => {
                if let Some((_, record)) = exhibit.record(pointer) {
                    return Some(record.clone());
                }
                let Some(json) = &exhibit.json else { return Some(Value::from(exhibit.text.as_str())) };
                let value = json.pointer(pointer)?;
                match cite::records_in(value).as_slice() {
                    [record] if !exhibit.served() => Some((*record).clone()),
                    _ => Some(value.clone()),
                }
            }
        }
    }

    /// The records at a place of a call's result; none if nothing is there. A value that is not a record has no records.
    pub fn place(&self, call: &CallId, at: &Locator) -> Option<Vec<RecordRef>> {
        let citation = Citation::Literal { call: call.clone(), at: at.clone(), quote: String::new() };
        let value = self.whole(&citation)?;
        let of = |record: &Value| {
            let text = |key: &str| record.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
            RecordRef {
                source: text("source"),
                file: text("file"),
                line: record.get("line").and_then(Value::as_u64).unwrap_or(1),
            }
        };
        Some(cite::records_in(&value).into_iter().map(of).collect())
    }

    pub fn text(&self, call: &CallId) -> Option<&str> {
        self.0.get(call).map(|exhibit| exhibit.text.as_str())
    }

    pub fn check(&self, finding: &FindingDraft) -> Checked {
        self.check_on(finding, None)
    }

    /// `alerted` is the host of the alert, which an absence about the alert means if it names no host.
    pub fn check_on(&self, finding: &FindingDraft, alerted: Option<&str>) -> Checked {
        let mut corpus = Corpus::default();
        let mut times = Vec::new();
        let citations: Vec<_> =
            finding.citations.iter().map(|c| self.citation(c, (finding, alerted), &mut corpus, &mut times)).collect();
        let mut faults = Vec::new();
        if citations.iter().any(|c| c.holds) {
            check_time(finding, &times, &mut faults);
            let moments: Vec<Timestamp> = times.iter().map(|t| t.at).collect();
            faults.extend(claim::faults(&finding.claim, &corpus, &moments));
            for entity in &finding.entities {
                if !corpus.has_name(&entity.value) {
                    faults.push(format!("entity `{}` does not occur in what is cited", entity.value));
                }
            }
        }
        Checked { citations, faults }
    }

    /// The finding with the basis of its time as the cited records have it, if the finding claims a stronger one. The
    /// time of an aggregate is never that of an event.
    pub fn based(&self, finding: &FindingDraft) -> FindingDraft {
        let mut finding = finding.clone();
        let (mut corpus, mut times) = (Corpus::default(), Vec::new());
        for citation in &finding.citations {
            self.citation(citation, (&finding, None), &mut corpus, &mut times);
        }
        if let Some(time) = &mut finding.time {
            let cited = basis_of(time, &times).filter(|basis| *basis != TimeBasis::Aggregation);
            time.basis = cited.map_or(time.basis, |basis| basis.min(time.basis));
        }
        finding
    }

    /// What the rules would cap the finding or drop its time for; empty if it stands as it is.
    pub fn objections(&self, finding: &FindingDraft, alerted: Option<&str>) -> Vec<String> {
        let checked = self.check_on(finding, alerted);
        let none = finding.citations.is_empty().then(|| "it cites nothing: cite a tool call".to_owned());
        let bad = checked.citations.iter().zip(1..).filter(|(check, _)| !check.holds);
        let bad = bad.map(|(check, n)| format!("citation {n}: {}", check.note));
        none.into_iter().chain(bad).chain(checked.faults.iter().cloned()).collect()
    }

    /// The records of the queries whose number the finding cites, if the queries returned all that they found.
    pub fn rows(&self, finding: &FindingDraft) -> Vec<RecordRef> {
        let counted = finding.citations.iter().filter(|citation| matches!(citation, Citation::Count { .. }));
        counted.filter_map(|citation| self.0.get(citation.call())).flat_map(|exhibit| exhibit.rows()).collect()
    }

    fn citation(
        &self,
        citation: &Citation,
        finding: (&FindingDraft, Option<&str>),
        corpus: &mut Corpus,
        times: &mut Vec<CitedTime>,
    ) -> CitationCheck {
        let mut check = CitationCheck {
            holds: false,
            note: String::new(),
            artifact: None,
            records: Vec::new(),
            sources: Vec::new(),
            chosen: None,
        };
        match self.examine(citation, finding, corpus, times, &mut check) {
            Ok(note) => {
                check.holds = true;
                check.note = note;
            }
            Err(why) => check.note = why,
        }
        check
    }

    fn examine(
        &self,
        citation: &Citation,
        (finding, alerted): (&FindingDraft, Option<&str>),
        corpus: &mut Corpus,
        times: &mut Vec<CitedTime>,
        check: &mut CitationCheck,
    ) -> Result<String, String> {
        let id = citation.call();
        let exhibit = self.0.get(id).ok_or_else(|| format!("no tool call {id} is on record"))?;
        check.artifact = Some(exhibit.call.result.clone());
        if exhibit.call.status == CallStatus::Failed {
            return Err(format!("tool call {id} failed and shows nothing"));
        }
        if let Some(why) = exhibit.looked_into() {
            return Err(why);
        }
        match citation {
            Citation::Literal { at, quote, .. }
                if quote.trim().chars().count() < 3 && !exhibit.is_whole_value(at, quote) =>
            {
                Err("expected a quotation of at least three characters, or a whole value at the pointer of its field"
                    .to_owned())
            }
            Citation::Literal { at, quote, .. } if exhibit.served() => {
                served::literal(exhibit, at, quote, corpus, times, check)
            }
            Citation::Literal { at, quote, .. } => literal(exhibit, at, quote, corpus, times, check),
            Citation::Count { at, value, again, .. } => {
                let found = self.recomputed(exhibit, at, again.as_ref())?;
                if exhibit.number(found) != Some(*value) {
                    return Err(format!("the citation says {value}, the result says {}", exhibit.shown(found)));
                }
                if *value == 0 {
                    let window = finding.time.as_ref().map(|time| [Some(time.at), time.until]).unwrap_or_default();
                    exhibit.nothing((finding, alerted), window, times)?;
                }
                exhibit.counted(at, corpus, times, check)?;
                corpus.add_number(*value);
                Ok(exhibit.computed(value))
            }
            Citation::Aggregate { at, value, again, .. } => {
                let found = self.recomputed(exhibit, at, again.as_ref())?;
                let text = found.as_str().map_or_else(|| found.to_string(), str::to_owned);
                if text != *value {
                    return Err(format!("the citation says {value:?}, the result says {text:?}"));
                }
                exhibit.counted(at, corpus, times, check)?;
                corpus.add_value(found);
                Ok(exhibit.computed(value))
            }
            Citation::Absence { at, from, to, again, .. } => {
                let found = self.recomputed(exhibit, at, again.as_ref())?;
                if exhibit.number(found) != Some(0) {
                    let shown = exhibit.shown(found);
                    return Err(format!("the citation says that nothing is there, the result says {shown}"));
                }
                exhibit.nothing((finding, alerted), [*from, *to], times)?;
                queried(exhibit, corpus, check)?;
                Ok(exhibit.searched())
            }
        }
    }

    /// The value at `at`. If the tool is repeatable, the repeated call must give the same value.
    fn recomputed<'a>(
        &'a self,
        exhibit: &'a Exhibit,
        at: &Locator,
        again: Option<&CallId>,
    ) -> Result<&'a Value, String> {
        let found = exhibit.value(at)?;
        if !exhibit.is_exact(at) {
            return Err("the result says that its total is not exact".to_owned());
        }
        if !exhibit.repeatable {
            return Ok(found);
        }
        let again = again.ok_or("the query was not repeated")?;
        let second = self.0.get(again).ok_or_else(|| format!("no tool call {again} is on record"))?;
        if second.call.tool != exhibit.call.tool || second.call.arguments != exhibit.call.arguments {
            return Err(format!("tool call {again} made another query"));
        }
        if again == &exhibit.call.id {
            return Err("the query was not repeated".to_owned());
        }
        let recomputed = second.value(at)?;
        if recomputed != found {
            let (now, then) = (second.shown(recomputed), exhibit.shown(found));
            return Err(format!("recomputed, the result is {now}, not {then}"));
        }
        Ok(found)
    }
}

struct CitedTime {
    at: Timestamp,
    basis: TimeBasis,
}

/// The finding without its time, for one whose time alone is faulty. Without a time it is not an occurrence.
pub fn timeless(finding: &FindingDraft) -> Option<FindingDraft> {
    let occurred = finding.kind == FindingKind::Occurrence;
    let kind = if occurred { FindingKind::State } else { finding.kind };
    (occurred || finding.time.is_some()).then(|| FindingDraft { time: None, kind, ..finding.clone() })
}

/// The strongest basis of the cited times that are this time.
fn basis_of(time: &EventTime, times: &[CitedTime]) -> Option<TimeBasis> {
    times.iter().filter(|cited| time.precision.shows(cited.at, time.at)).map(|cited| cited.basis).max()
}

fn check_time(finding: &FindingDraft, times: &[CitedTime], faults: &mut Vec<String>) {
    let Some(time) = &finding.time else {
        if finding.kind == FindingKind::Occurrence {
            faults.push("an occurrence needs a time".to_owned());
        }
        return;
    };
    match basis_of(time, times) {
        None => faults.push(format!("no cited record has the time {}", time.at)),
        Some(basis) if time.basis > basis => {
            faults.push(format!(
                "the time is given as {}, the record has it as {}",
                time.basis.meaning(),
                basis.meaning()
            ));
        }
        Some(_) => {}
    }
    if let Some(until) = time.until {
        if until < time.at {
            faults.push("the period ends before it begins".to_owned());
        } else if !times.iter().any(|t| time.precision.shows(t.at, until)) {
            faults.push(format!("no cited record has the time {until}"));
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
