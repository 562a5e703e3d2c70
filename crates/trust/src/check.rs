//! Checks a finding against the recorded bytes, before a Critic sees it (citation check). It is pure: it sees
//! only the calls that the caller added as exhibits.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::claim::{self, Corpus};
use casebook_protocol::{
    ArtifactId, CallId, CallStatus, Checked, Citation, CitationCheck, FindingDraft, FindingKind, Locator, RecordRef,
    TimeBasis, Timestamp, ToolCall, tool,
};

mod cite;
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
        let mut corpus = Corpus::default();
        let mut times = Vec::new();
        let citations: Vec<_> =
            finding.citations.iter().map(|c| self.citation(c, finding, &mut corpus, &mut times)).collect();
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

    /// What the rules would cap the finding or drop its time for; empty if it stands as it is.
    pub fn objections(&self, finding: &FindingDraft) -> Vec<String> {
        let checked = self.check(finding);
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
        finding: &FindingDraft,
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
        finding: &FindingDraft,
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
                    exhibit.nothing(&finding.claim, window, times)?;
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
                exhibit.nothing(&finding.claim, [*from, *to], times)?;
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
        if let Some(false) = exhibit.json.as_ref().and_then(|j| j.get("total_is_exact")).and_then(Value::as_bool) {
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

impl Exhibit {
    /// The result comes from an MCP server, so nothing that it says about itself is believed.
    fn served(&self) -> bool {
        tool::server_of(&self.call.tool).is_some()
    }

    /// Checks that a query that found nothing covers the window, and that the claim is about what it searched for.
    fn nothing(&self, claim: &str, window: [Option<Timestamp>; 2], times: &mut Vec<CitedTime>) -> Result<(), String> {
        if self.call.tool == SQL {
            return Err(
                "code cannot know what a query in SQL would have found: cite a `search` or a `count_by`".to_owned()
            );
        }
        // A search with a limit of 0 returns no records even if it found some, so check the total.
        let total = self.json.as_ref().and_then(|json| json.get("total")).and_then(Value::as_u64);
        if let Some(total) = total.filter(|total| *total > 0 && !self.served()) {
            return Err(format!("the citation says that nothing is there, the query found {total} records"));
        }
        if self.served() {
            served::window(self, window, times)?;
        } else {
            covers(self, window[0], window[1])?;
            let edges = window.into_iter().flatten();
            times.extend(edges.map(|at| CitedTime { at, basis: TimeBasis::Record }));
        }
        asked_for(self, claim)
    }

    /// Adds what a number is about: the query, the edges of its window, and the group that the number is of.
    fn counted(
        &self,
        at: &Locator,
        corpus: &mut Corpus,
        times: &mut Vec<CitedTime>,
        check: &mut CitationCheck,
    ) -> Result<(), String> {
        queried(self, corpus, check)?;
        if self.served() {
            served::asked(self, times);
            return Ok(());
        }
        let edges = ["from", "to"].into_iter().filter_map(|key| edge(self, key));
        times.extend(edges.map(|at| CitedTime { at, basis: TimeBasis::Aggregation }));
        if let Locator::Pointer(pointer) = at
            && let Some(group) = self.group(pointer)
        {
            cite::group(group, corpus, times, check);
        }
        Ok(())
    }

    /// True if the quotation is the whole value of a field of one record. An item of a list that an MCP server returned
    /// is a record.
    fn is_whole_value(&self, at: &Locator, quote: &str) -> bool {
        let (Locator::Pointer(pointer), Some(json)) = (at, &self.json) else { return false };
        let text = match json.pointer(pointer) {
            Some(Value::String(text)) => text.trim().to_owned(),
            Some(value @ (Value::Number(_) | Value::Bool(_))) => value.to_string(),
            _ => return false,
        };
        let in_record = if self.served() { served::in_item(json, pointer) } else { self.record(pointer).is_some() };
        in_record && !quote.trim().is_empty() && text == quote.trim()
    }

    /// The group of a `count_by` around `pointer`.
    fn group(&self, pointer: &str) -> Option<&Value> {
        let number = pointer.strip_prefix("/groups/").filter(|_| self.call.tool == COUNT_BY)?.split('/').next()?;
        self.json.as_ref()?.pointer(&format!("/groups/{number}"))
    }

    /// Rejects a citation of a call that only read the result of another call.
    fn looked_into(&self) -> Option<String> {
        let tool = tool::RESULT_TOOLS.contains(&self.call.tool.as_str()).then_some(&self.call.tool)?;
        let arguments: Option<Value> = serde_json::from_str(&self.call.arguments).ok();
        let text = |key: &str| arguments.as_ref().and_then(|a| a.get(key)?.as_str());
        let call = text("call").map_or_else(|| "the call".to_owned(), |call| casebook_protocol::one_line(call, 80));
        let at = text("pointer")
            .map_or_else(|| "the place that it names".to_owned(), |p| casebook_protocol::one_line(p, 80));
        Some(format!("{tool} looked into another result: cite the call itself, {call} at {at}"))
    }

    /// For a list that an MCP server returned, its length.
    fn number(&self, found: &Value) -> Option<u64> {
        if self.served() { served::number(found) } else { found.as_u64() }
    }

    /// The value for a message, cut if an MCP server chose its length.
    fn shown(&self, found: &Value) -> String {
        match found {
            Value::Array(items) if self.served() => format!("{} items", items.len()),
            other if self.served() => casebook_protocol::one_line(&other.to_string(), 80),
            other => other.to_string(),
        }
    }

    fn as_recorded(&self) -> bool {
        self.served() && !self.repeatable
    }

    fn computed(&self, value: impl std::fmt::Display) -> String {
        if self.as_recorded() { format!("{value}, as recorded") } else { format!("{value}, recomputed") }
    }

    fn searched(&self) -> String {
        if self.as_recorded() { "nothing found, as recorded" } else { "nothing found, searched again" }.to_owned()
    }

    fn value(&self, at: &Locator) -> Result<&Value, String> {
        match at {
            Locator::Pointer(pointer) => {
                let json = self.json.as_ref().ok_or("the result is not JSON: cite a line of it")?;
                json.pointer(pointer).ok_or_else(|| format!("there is nothing at {pointer:?} in the result"))
            }
            Locator::Line(_) => Err("a number is cited by JSON pointer".to_owned()),
        }
    }

    /// The records of a query that returned all that it found.
    fn rows(&self) -> Vec<RecordRef> {
        let json = self.json.as_ref().filter(|_| !self.served());
        let Some(records) = json.and_then(|json| json.get("records")?.as_array()) else { return Vec::new() };
        let total = json.and_then(|json| json.get("total")?.as_u64());
        if total != Some(records.len() as u64) {
            return Vec::new();
        }
        let text = |record: &Value, key: &str| record.get(key).and_then(Value::as_str).map(str::to_owned);
        let row = |record: &Value| {
            Some(RecordRef {
                source: text(record, "source")?,
                file: text(record, "file")?,
                line: record.get("line")?.as_u64()?,
            })
        };
        records.iter().filter_map(row).collect()
    }

    /// The innermost object around `pointer` that has a file and a line, and its pointer. Of `sql` it is a row that the
    /// tool found to be one record, since a query can name its columns as it likes.
    fn record(&self, pointer: &str) -> Option<(String, &Value)> {
        let json = self.json.as_ref().filter(|_| !self.served())?;
        if self.call.tool == SQL {
            let number = pointer.strip_prefix("/rows/")?.split('/').next()?;
            let path = format!("/rows/{number}");
            let row = json.pointer(&path).filter(|row| row.get(OF_RECORD) == Some(&Value::Bool(true)))?;
            return Some((path, row));
        }
        let mut path = pointer;
        loop {
            let value = json.pointer(path)?;
            if value.get("file").is_some_and(Value::is_string) && value.get("line").is_some_and(Value::is_u64) {
                return Some((path.to_owned(), value));
            }
            path = path.get(..path.rfind('/')?)?;
        }
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

fn check_time(finding: &FindingDraft, times: &[CitedTime], faults: &mut Vec<String>) {
    let Some(time) = &finding.time else {
        if finding.kind == FindingKind::Occurrence {
            faults.push("an occurrence needs a time".to_owned());
        }
        return;
    };
    match times.iter().filter(|t| time.precision.shows(t.at, time.at)).map(|t| t.basis).max() {
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
