//! The mechanical check of a finding against the recorded bytes, before any Critic runs
//! (rule 3.2). Pure: it sees only what the caller put among the exhibits.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::chosen;
use crate::claim::{self, Corpus};
use crate::{
    ArtifactId, CallId, CallStatus, Citation, FindingDraft, FindingKind, Locator, TimeBasis, Timestamp, ToolCall,
};

/// A record of evidence: file and line, from 1.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RecordRef {
    /// The source that it belongs to.
    pub source: String,
    /// The file within the evidence, or `artifact:<id>` for a tool that returns no files.
    pub file: String,
    /// The line, from 1.
    pub line: u64,
}

/// What the check of one citation found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CitationCheck {
    /// It holds.
    pub holds: bool,
    /// What was found; why not, where it does not hold.
    pub note: String,
    /// The artifact that it leads to.
    pub artifact: Option<ArtifactId>,
    /// The records that it leads to.
    pub records: Vec<RecordRef>,
    /// The sources that it speaks of: those of its records, or those that its query searched.
    pub sources: Vec<String>,
    /// The field of the record whose text is quoted, where whoever is recorded chooses what stands
    /// there ([`chosen`]): it proves that it was written, not that it is so.
    #[serde(default)]
    pub chosen: Option<String>,
}

/// What the check of a finding found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checked {
    /// One for each citation, in order.
    pub citations: Vec<CitationCheck>,
    /// What the claim states and its evidence does not, in words.
    pub faults: Vec<String>,
}

impl Checked {
    /// There is a citation, every citation holds, and the claim states nothing that its evidence
    /// does not.
    #[must_use]
    pub fn valid(&self) -> bool {
        !self.citations.is_empty() && self.citations.iter().all(|c| c.holds) && self.faults.is_empty()
    }

    /// The sources of the citations that hold.
    #[must_use]
    pub fn sources(&self) -> BTreeSet<&str> {
        self.citations.iter().filter(|c| c.holds).flat_map(|c| c.sources.iter().map(String::as_str)).collect()
    }

    /// The records of the citations that hold, each once, in the order cited.
    #[must_use]
    pub fn records(&self) -> Vec<RecordRef> {
        let mut seen = BTreeSet::new();
        let all = self.citations.iter().filter(|c| c.holds).flat_map(|c| &c.records);
        all.filter(|r| seen.insert(*r)).cloned().collect()
    }
}

/// One recorded call with its result.
#[derive(Debug, Clone)]
pub struct Exhibit {
    call: ToolCall,
    repeatable: bool,
    text: String,
    json: Option<Value>,
}

/// The recorded calls that a check may look at.
#[derive(Debug, Clone, Default)]
pub struct Exhibits(BTreeMap<CallId, Exhibit>);

impl Exhibits {
    /// Adds a recorded call with the bytes of its result. Bytes that are not the artifact that the
    /// call names are left out, so that nothing can be cited from them.
    pub fn add(&mut self, call: ToolCall, repeatable: bool, bytes: &[u8]) {
        if ArtifactId::of(bytes) != call.result {
            return;
        }
        let text = String::from_utf8_lossy(bytes).into_owned();
        let json = serde_json::from_str(&text).ok();
        self.0.insert(call.id.clone(), Exhibit { call, repeatable, text, json });
    }

    /// Checks one finding.
    #[must_use]
    pub fn check(&self, finding: &FindingDraft) -> Checked {
        let mut corpus = Corpus::default();
        let mut times = Vec::new();
        let citations: Vec<_> = finding.citations.iter().map(|c| self.citation(c, &mut corpus, &mut times)).collect();
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

    fn citation(&self, citation: &Citation, corpus: &mut Corpus, times: &mut Vec<CitedTime>) -> CitationCheck {
        let mut check = CitationCheck {
            holds: false,
            note: String::new(),
            artifact: None,
            records: Vec::new(),
            sources: Vec::new(),
            chosen: None,
        };
        match self.examine(citation, corpus, times, &mut check) {
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
        match citation {
            Citation::Literal { at, quote, .. } => literal(exhibit, at, quote, corpus, times, check),
            Citation::Count { at, value, again, .. } => {
                let found = self.recomputed(exhibit, at, again.as_ref())?;
                if found.as_u64() != Some(*value) {
                    return Err(format!("the citation says {value}, the result says {found}"));
                }
                queried(exhibit, corpus, check)?;
                corpus.add_number(*value);
                Ok(format!("{value}, recomputed"))
            }
            Citation::Aggregate { at, value, again, .. } => {
                let found = self.recomputed(exhibit, at, again.as_ref())?;
                let text = found.as_str().map_or_else(|| found.to_string(), str::to_owned);
                if text != *value {
                    return Err(format!("the citation says {value:?}, the result says {text:?}"));
                }
                queried(exhibit, corpus, check)?;
                corpus.add_value(found);
                Ok(format!("{value}, recomputed"))
            }
            Citation::Absence { at, from, to, again, .. } => {
                let found = self.recomputed(exhibit, at, again.as_ref())?;
                if found.as_u64() != Some(0) {
                    return Err(format!("the citation says that nothing is there, the result says {found}"));
                }
                covers(exhibit, *from, *to)?;
                queried(exhibit, corpus, check)?;
                times.extend([*from, *to].into_iter().flatten().map(|at| CitedTime { at, basis: TimeBasis::Record }));
                Ok("nothing found, searched again".to_owned())
            }
        }
    }

    /// The value at `at`, the same in the call made again. A tool that is not repeatable is taken at
    /// its recorded word (issue: Experts are configuration).
    fn recomputed<'a>(
        &'a self,
        exhibit: &'a Exhibit,
        at: &Locator,
        again: Option<&CallId>,
    ) -> Result<&'a Value, String> {
        let found = exhibit.value(at)?;
        if let Some(false) = exhibit.json.as_ref().and_then(|j| j.get("total_is_exact")).and_then(Value::as_bool) {
            return Err("the result says itself that its total is not exact".to_owned());
        }
        if !exhibit.repeatable {
            return Ok(found);
        }
        let again = again.ok_or("the query was not made again")?;
        let second = self.0.get(again).ok_or_else(|| format!("no tool call {again} is on record"))?;
        if second.call.tool != exhibit.call.tool || second.call.arguments != exhibit.call.arguments {
            return Err(format!("tool call {again} is another query"));
        }
        if again == &exhibit.call.id {
            return Err("the query was not made again".to_owned());
        }
        let recomputed = second.value(at)?;
        if recomputed != found {
            return Err(format!("recomputed, the result is {recomputed}, not {found}"));
        }
        Ok(found)
    }
}

impl Exhibit {
    fn value(&self, at: &Locator) -> Result<&Value, String> {
        match at {
            Locator::Pointer(pointer) => {
                let json = self.json.as_ref().ok_or("the result is not JSON: cite a line of it")?;
                json.pointer(pointer).ok_or_else(|| format!("nothing stands at {pointer:?} in the result"))
            }
            Locator::Line(_) => Err("a number is cited by JSON pointer".to_owned()),
        }
    }

    /// The innermost object around `pointer` that names a file and a line.
    fn record(&self, pointer: &str) -> Option<&Value> {
        let json = self.json.as_ref()?;
        let mut path = pointer;
        loop {
            let value = json.pointer(path)?;
            if value.get("file").is_some_and(Value::is_string) && value.get("line").is_some_and(Value::is_u64) {
                return Some(value);
            }
            path = path.get(..path.rfind('/')?)?;
        }
    }
}

struct CitedTime {
    at: Timestamp,
    basis: TimeBasis,
}

fn literal(
    exhibit: &Exhibit,
    at: &Locator,
    quote: &str,
    corpus: &mut Corpus,
    times: &mut Vec<CitedTime>,
    check: &mut CitationCheck,
) -> Result<String, String> {
    if quote.trim().chars().count() < 3 {
        return Err("a quotation has at least three characters".to_owned());
    }
    let mut local = Corpus::default();
    match at {
        Locator::Line(line) => {
            let index = usize::try_from(line.saturating_sub(1)).unwrap_or(usize::MAX);
            let text = exhibit.text.lines().nth(index).filter(|_| *line > 0);
            local.add_text(text.ok_or_else(|| format!("the result has no line {line}"))?);
            check.records.push(RecordRef {
                source: exhibit.call.tool.clone(),
                file: format!("artifact:{}", exhibit.call.result),
                line: *line,
            });
            check.sources.push(exhibit.call.tool.clone());
            check.chosen = Some(chosen::WHOLE.to_owned());
        }
        Locator::Pointer(pointer) => {
            if exhibit.json.is_none() && pointer.is_empty() {
                local.add_text(&exhibit.text);
            } else {
                local.add_value(exhibit.value(at)?);
            }
            match exhibit.record(pointer) {
                Some(record) => {
                    local.add_value(record);
                    check.chosen = chosen::field(record, quote);
                    cite_record(exhibit, record, times, check);
                }
                None => {
                    check.sources.push(exhibit.call.tool.clone());
                    check.chosen = Some(chosen::WHOLE.to_owned());
                }
            }
        }
    }
    if !local.has_quote(quote) {
        return Err(format!("the quoted text {:?} is not there", crate::one_line(quote, 80)));
    }
    corpus.join(local);
    Ok("quoted text found".to_owned())
}

fn cite_record(exhibit: &Exhibit, record: &Value, times: &mut Vec<CitedTime>, check: &mut CitationCheck) {
    let text = |key: &str| record.get(key).and_then(Value::as_str);
    let source = text("source").unwrap_or(&exhibit.call.tool).to_owned();
    let file = text("file").unwrap_or_default().to_owned();
    let line = record.get("line").and_then(Value::as_u64).unwrap_or_default();
    check.sources.push(source.clone());
    check.records.push(RecordRef { source, file, line });
    let basis =
        record.get("time_basis").and_then(|b| serde_json::from_value(b.clone()).ok()).unwrap_or(TimeBasis::Inferred);
    if let Some(at) = text("time").and_then(|t| t.parse().ok()) {
        times.push(CitedTime { at, basis });
    }
}

/// What was asked belongs to what a count or an absence shows: its arguments and the sources that the
/// tool says it searched.
fn queried(exhibit: &Exhibit, corpus: &mut Corpus, check: &mut CitationCheck) -> Result<(), String> {
    match serde_json::from_str::<Value>(&exhibit.call.arguments) {
        Ok(arguments) => corpus.add_value(&arguments),
        Err(_) => corpus.add_text(&exhibit.call.arguments),
    }
    let searched = exhibit.json.as_ref().and_then(|j| j.get("searched")).and_then(Value::as_array);
    match searched {
        Some(sources) if sources.is_empty() => return Err("no source was searched".to_owned()),
        Some(sources) => check.sources.extend(sources.iter().filter_map(Value::as_str).map(str::to_owned)),
        None => check.sources.push(exhibit.call.tool.clone()),
    }
    Ok(())
}

/// The window that the tool searched covers the window that is claimed.
fn covers(exhibit: &Exhibit, from: Option<Timestamp>, to: Option<Timestamp>) -> Result<(), String> {
    let edge =
        |key: &str| -> Option<Timestamp> { exhibit.json.as_ref()?.get("window")?.get(key)?.as_str()?.parse().ok() };
    let early_enough = match (edge("from"), from) {
        (None, _) => true,
        (Some(searched), Some(claimed)) => searched <= claimed,
        (Some(_), None) => false,
    };
    let late_enough = match (edge("to"), to) {
        (None, _) => true,
        (Some(searched), Some(claimed)) => searched >= claimed,
        (Some(_), None) => false,
    };
    if early_enough && late_enough {
        Ok(())
    } else {
        Err("the absence is claimed over a window that was not searched".to_owned())
    }
}

fn check_time(finding: &FindingDraft, times: &[CitedTime], faults: &mut Vec<String>) {
    let Some(time) = &finding.time else {
        if finding.kind == FindingKind::Occurrence {
            faults.push("an occurrence needs a time".to_owned());
        }
        return;
    };
    match times.iter().filter(|t| t.at == time.at).map(|t| t.basis).max() {
        None => faults.push(format!("no cited record is of {}", time.at)),
        Some(basis) if time.basis > basis => {
            faults.push(format!("the time is given as {}, the record has it as {}", time.basis.words(), basis.words()));
        }
        Some(_) => {}
    }
    if let Some(until) = time.until {
        if until < time.at {
            faults.push("the period ends before it begins".to_owned());
        } else if !times.iter().any(|t| t.at == until) {
            faults.push(format!("no cited record is of {until}"));
        }
    }
}

#[cfg(test)]
mod tests;
