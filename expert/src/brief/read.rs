//! Turns an Expert's answer into findings, and says what is wrong with the form of each.

use casebook_agent::model::data::recorded_quote;
use casebook_agent::model::form::{Faults, moment};
use casebook_agent::reasoner::Done;
use casebook_protocol::tool::RESULT_TOOLS;
use casebook_protocol::{
    CallStatus, Citation, Entity, EventTime, FindingDraft, FindingKind, Locator, Precision, Score, TimeBasis,
    Timestamp, one_line,
};
use serde_json::{Value, json};

use super::form::{CitationForm, CitationKind, FindingForm, InvestigateForm};

/// A finding, and what is wrong with its form. A citation that cannot be used is left out.
pub(super) struct Taken {
    pub(super) draft: FindingDraft,
    pub(super) faults: Vec<String>,
}

/// # Errors
/// A finding without a claim, with its place.
pub(super) fn findings(done: &[Done], form: InvestigateForm) -> Result<Vec<Taken>, Vec<String>> {
    let mut faults = Faults::default();
    let named = |(i, form): (usize, FindingForm)| {
        let claim = faults.text(format!("/findings/{i}/claim"), &form.claim);
        finding(done, claim, form)
    };
    let all = form.findings.into_iter().enumerate().map(named).collect();
    faults.or(all)
}

fn finding(done: &[Done], claim: String, form: FindingForm) -> Taken {
    let mut faults = Faults::default();
    let citations: Vec<Citation> = form
        .citations
        .into_iter()
        .zip(1..)
        .filter_map(|(form, n)| citation(done, &format!("citation {n}"), form, &mut faults))
        .collect();
    let time = time(done, (form.kind, &citations), [form.time, form.until], &mut faults);
    let nonempty = |text: Option<String>| text.map(|t| t.trim().to_owned()).filter(|t| !t.is_empty());
    let entities = form.entities.into_iter().map(|e| Entity { kind: e.kind, value: e.value.trim().to_owned() });
    let draft = FindingDraft {
        kind: form.kind,
        claim,
        time,
        entities: entities.filter(|e| !e.value.is_empty()).collect(),
        bearing: form.bearing,
        weight: form.weight,
        about_alert: form.about_alert,
        technique: nonempty(form.technique),
        confidence: Score::clamped(form.confidence),
        citations,
        look_next: nonempty(form.look_next),
    };
    Taken { draft, faults: faults.or(()).err().unwrap_or_default() }
}

/// The time of a finding. What is cited says how precise it is, what it rests on, and from which field it was read.
fn time(
    done: &[Done],
    (kind, citations): (FindingKind, &[Citation]),
    [at, until]: [Option<String>; 2],
    faults: &mut Faults,
) -> Option<EventTime> {
    let mut read = |place: &str, text: Option<String>| {
        let text = text.filter(|text| !text.trim().is_empty());
        text.map(|text| moment(place, &text, faults)).map_or(Some(None), |read| read.map(Some))
    };
    let (at, until) = (read("time", at)??, read("until", until)?);
    let dated = citations.iter().find_map(|citation| dated(done, citation, at)).unwrap_or_default();
    let known = |key: &str| dated.get(key).cloned().unwrap_or_default();
    let precision = serde_json::from_value(known("precision")).unwrap_or(match at.subsec_nanosecond() {
        0 => Precision::Second,
        n if n % 1_000_000 == 0 => Precision::Millisecond,
        n if n % 1_000 == 0 => Precision::Microsecond,
        _ => Precision::Nanosecond,
    });
    let computed = |c: &Citation| matches!(c, Citation::Count { .. } | Citation::Aggregate { .. });
    let basis = serde_json::from_value(known("time_basis")).unwrap_or({
        // The check lowers the basis of a time that is in no record of ours, but not to that of an aggregate.
        match kind == FindingKind::Aggregate || citations.iter().all(computed) {
            true => TimeBasis::Aggregation,
            false => TimeBasis::Record,
        }
    });
    let field = known("time_field").as_str().unwrap_or_default().to_owned();
    Some(EventTime { at, until, precision, basis, field })
}

/// The record or the group around the cited place that has this time.
fn dated(done: &[Done], citation: &Citation, at: Timestamp) -> Option<Value> {
    let Locator::Pointer(pointer) = citation.at() else { return None };
    let cited = done.iter().find(|done| done.call.id == *citation.call())?;
    let result: Value = serde_json::from_str(&cited.result).ok()?;
    let mut path = pointer.as_str();
    loop {
        let around = result.pointer(path)?;
        let has = |key: &str| around.get(key).and_then(Value::as_str).and_then(|time| time.parse().ok()) == Some(at);
        if has("time") {
            return Some(around.clone());
        }
        if has("first_time") || has("last_time") {
            return Some(json!({"time_basis": TimeBasis::Aggregation}));
        }
        path = path.get(..path.rfind('/')?)?;
    }
}

fn citation(done: &[Done], place: &str, form: CitationForm, faults: &mut Faults) -> Option<Citation> {
    let cited = called(done, place, &form.call, faults);
    let at = faults.place(format!("{place}/at"), &form.at);
    if form.kind != CitationKind::Literal && matches!(at, Some(Locator::Line(_))) {
        faults.add(format!("{place}/at"), "a number is cited by JSON pointer, such as /total");
        return None;
    }
    let from = edge(&format!("{place}/from"), &form, form.from.as_deref(), faults);
    let to = edge(&format!("{place}/to"), &form, form.to.as_deref(), faults);
    let value = form.value.as_deref().map(str::trim).filter(|v| !v.is_empty());
    let text = match form.kind {
        CitationKind::Literal => {
            let quote = form.quote.filter(|q| !q.trim().is_empty());
            if quote.is_none() {
                faults.add(format!("{place}/quote"), "a literal citation needs the text at that place");
            }
            quote
        }
        CitationKind::Count | CitationKind::Aggregate => {
            if value.is_none() {
                faults.add(format!("{place}/value"), "a count or aggregate needs the value at that place");
            }
            value.map(str::to_owned)
        }
        CitationKind::Absence => Some(String::new()),
    };
    let (cited, at, text) = (cited?, at?, text?);
    let (call, again) = (cited.call.id.clone(), None);
    Some(match form.kind {
        CitationKind::Literal => {
            let quote = recorded_quote(&cited.result, &at, &text).unwrap_or(text);
            Citation::Literal { call, at, quote }
        }
        CitationKind::Count => match text.parse() {
            Ok(value) => Citation::Count { call, at, value, again },
            Err(_) => {
                let what = format!("{:?} is not a number of records; write digits alone", one_line(&text, 40));
                faults.add(format!("{place}/value"), what);
                return None;
            }
        },
        CitationKind::Aggregate => Citation::Aggregate { call, at, value: text, again },
        CitationKind::Absence => Citation::Absence { call, at, from, to, again },
    })
}

fn called<'d>(done: &'d [Done], place: &str, text: &str, faults: &mut Faults) -> Option<&'d Done> {
    let place = format!("{place}/call");
    let Some(cited) = done.iter().find(|d| d.call.id.as_str() == text.trim()) else {
        let what = format!("you made no call {:?}: write the id in the first line of a result", one_line(text, 80));
        faults.add(place, what);
        return None;
    };
    if cited.call.status == CallStatus::Failed {
        faults.add(place, format!("call {} failed and shows nothing: cite another, or leave it out", cited.call.id));
        return None;
    }
    if RESULT_TOOLS.contains(&cited.call.tool.as_str()) {
        let what = format!(
            "call {} only looked into another result: cite the call that it looked into, at the pointer or `line N` that it showed",
            cited.call.id
        );
        faults.add(place, what);
        return None;
    }
    Some(cited)
}

/// An edge of the window of an absence. Other citations ignore it.
fn edge(place: &str, form: &CitationForm, text: Option<&str>, faults: &mut Faults) -> Option<Timestamp> {
    let text = text.map(str::trim).filter(|t| !t.is_empty() && form.kind == CitationKind::Absence)?;
    moment(place, text, faults)
}
