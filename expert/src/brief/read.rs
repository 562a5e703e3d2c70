//! Turns an Expert's answer into findings, and says what is wrong with the form of each.

use casebook_agent::model::data::recorded_quote;
use casebook_agent::model::form::{Faults, moment};
use casebook_agent::reasoner::Done;
use casebook_protocol::tool::RESULT_TOOLS;
use casebook_protocol::{CallStatus, Citation, Entity, FindingDraft, Locator, Score, Timestamp, one_line};

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
    let time = form.time.and_then(|time| time.read("time", &mut faults));
    let citations = form
        .citations
        .into_iter()
        .zip(1..)
        .filter_map(|(form, n)| citation(done, &format!("citation {n}"), form, &mut faults))
        .collect();
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
