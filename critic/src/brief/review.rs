use std::collections::BTreeSet;

use casebook_agent::model::data::{section, text_section};
use casebook_agent::model::form::Faults;
use casebook_agent::model::prompt::{JOURNAL_READ, Section, Written, channels, scaled};
use casebook_agent::reasoner::Done;
use casebook_protocol::{
    Answer, CallId, CallStatus, CheckedFinding, Citation, CitationCheck, Domain, DomainToolset, FindingId, Judgement,
    LeadDraft, Locator, MAX_LEADS, ReviewDraft, ReviewView, Score, one_line,
};
use serde_json::{Map, Value, json};

use super::form::{LeadForm, ReviewForm};

/// Bytes of this round's findings, twice what a thorough round of four Experts needs. Beyond it, quotations are
/// shortened first, then other texts.
const FINDINGS: usize = 64 * 1024;
/// Bytes of findings from earlier rounds.
const EARLIER: usize = 12 * 1024;
/// Characters of each text, and of each quotation and note, longest first.
const DETAIL: [(usize, usize); 4] = [(1000, 1000), (600, 240), BRIEFLY, (240, 0)];
const BRIEFLY: (usize, usize) = (400, 80);

pub(super) fn sections(view: &ReviewView, room: usize) -> Vec<Section<'_>> {
    let mut sections = Vec::new();
    sections.extend(view.alert.as_ref().map(|alert| channels::alert(2, alert)));
    sections.push(toolsets(&view.toolsets).cached());
    sections.push(channels::journal(2, scaled(JOURNAL_READ, room), &view.journal).cached());
    let asked = view.question.as_ref().map(|q| json!({"text": one_line(&q.text, 4000), "follow": q.follow}));
    sections.extend(asked.map(|asked| Section::fixed(section("question", &asked))));
    if !view.limits.is_empty() {
        sections.push(Section::fixed(section("limits", &json!(view.limits))));
    }
    sections.extend(channels::notes(&view.notes));
    sections.extend(channels::coverage(0, &view.coverage));
    sections.extend(channels::out_of_reach(&view.out_of_reach));
    if !view.earlier.is_empty() {
        sections.push(earlier(1, &view.earlier));
    }
    sections.extend(view.accounting.as_ref().map(|accounting| channels::acts(1, accounting)));
    sections.push(findings(3, &view.findings));
    sections
}

/// Experts with the same tools stand together.
fn toolsets(toolsets: &[DomainToolset]) -> Section<'_> {
    let mut same: Vec<(&str, Vec<&str>, Vec<&Domain>)> = Vec::new();
    for one in toolsets {
        let tools: Vec<&str> = one.toolset.tools.iter().map(|tool| tool.name.as_str()).collect();
        match same.iter_mut().find(|(name, known, _)| *name == one.toolset.name && *known == tools) {
            Some((.., domains)) => domains.push(&one.domain),
            None => same.push((&one.toolset.name, tools, vec![&one.domain])),
        }
    }
    let line = |(name, tools, domains): &(&str, Vec<&str>, Vec<&Domain>)| {
        let domains: Vec<&str> = domains.iter().map(|domain| domain.as_str()).collect();
        format!("{name} of {}: {}", domains.join(", "), tools.join(", "))
    };
    Section::fixed(text_section("toolsets", &same.iter().map(line).collect::<Vec<_>>().join("\n")))
}

fn earlier(rank: u8, findings: &[CheckedFinding]) -> Section<'_> {
    Section::new(rank, EARLIER, move |limit| {
        let items = findings.iter().map(|f| (0, shown(f, BRIEFLY)));
        let (left, left_out) = channels::kept_values(items, usize::MAX, limit, |missing, all| {
            format!("earlier: {missing} of {all}, the oldest")
        });
        Written { text: section("earlier", &Value::Array(left)), left_out }
    })
}

/// Shortens texts but keeps every finding, because the Critic must judge each one.
fn findings(rank: u8, findings: &[CheckedFinding]) -> Section<'_> {
    Section::new(rank, FINDINGS, move |limit| {
        let mut written = Written::default();
        for (step, detail) in DETAIL.into_iter().enumerate() {
            let all: Vec<Value> = findings.iter().map(|f| shown(f, detail)).collect();
            let (texts, quotes) = detail;
            written.text = section("findings", &Value::Array(all));
            written.left_out = (step > 0).then(|| {
                format!("findings: texts beyond {texts} and quotations beyond {quotes} characters; get_tool_result has the whole")
            });
            if written.text.len() <= limit {
                break;
            }
        }
        written
    })
}

fn shown(checked: &CheckedFinding, (texts, quotes): (usize, usize)) -> Value {
    let (finding, draft) = (&checked.finding, &checked.finding.draft);
    let check = &checked.checked;
    let checks = check.citations.iter().map(Some).chain(std::iter::repeat(None));
    let citations = draft.citations.iter().zip(checks);
    let faults: Vec<String> = check.faults.iter().take(8).map(|f| one_line(f, 200)).collect();
    let mut shown = json!({
        "id": finding.id,
        "kind": draft.kind,
        "claim": one_line(&draft.claim, texts),
        "time": draft.time.as_ref().map(channels::time),
        "bearing": draft.bearing,
        "weight": draft.weight,
        "about_alert": draft.about_alert,
        "confidence": draft.confidence,
        "technique": draft.technique.as_ref().map(|technique| one_line(technique, 40)),
        "citations": citations.map(|(c, check)| cited(c, check, quotes)).collect::<Vec<_>>(),
        "faults": faults,
        "invalid": !check.valid(),
    });
    if let Some(map) = shown.as_object_mut() {
        map.retain(|_, value| said(value));
    }
    shown
}

/// False for what the prompt says is left out.
fn said(value: &Value) -> bool {
    !(value.is_null() || *value == Value::Bool(false) || value.as_array().is_some_and(Vec::is_empty))
}

fn cited(citation: &Citation, check: Option<&CitationCheck>, quotes: usize) -> Value {
    let place = |at: &Locator| match at {
        Locator::Pointer(pointer) => one_line(pointer, 200),
        Locator::Line(line) => format!("line {line}"),
    };
    let cut = |text: &str| one_line(text, quotes.max(1));
    let mut shown = Map::new();
    let mut add = |key: &str, value: Value| shown.insert(key.to_owned(), value);
    add("call", json!(citation.call()));
    let (kind, at) = match citation {
        Citation::Literal { at, quote, .. } => {
            add("quote", cut(quote).into());
            ("literal", at)
        }
        Citation::Count { at, value, .. } => {
            add("value", value.to_string().into());
            ("count", at)
        }
        Citation::Aggregate { at, value, .. } => {
            add("value", cut(value).into());
            ("aggregate", at)
        }
        Citation::Absence { at, from, to, .. } => {
            add("from", json!(from));
            add("to", json!(to));
            ("absence", at)
        }
    };
    add("kind", kind.into());
    add("at", place(at).into());
    if let Some(check) = check {
        add("fails", (!check.holds).into());
        add("check", one_line(&check.note, quotes.max(80)).into());
        add("sources", json!(check.sources));
    }
    shown.retain(|_, value| said(value));
    Value::Object(shown)
}

pub(super) fn judged(view: &ReviewView, done: &[Done], form: ReviewForm) -> Result<Answer, Vec<String>> {
    let submitted: BTreeSet<FindingId> = view.findings.iter().map(|f| f.finding.id.clone()).collect();
    let known: BTreeSet<FindingId> =
        submitted.iter().cloned().chain(view.earlier.iter().map(|f| f.finding.id.clone())).collect();
    let mut faults = Faults::default();
    let mut seen = BTreeSet::new();
    let mut judgements = Vec::new();
    for (i, one) in form.findings.iter().enumerate() {
        let place = format!("/findings/{i}");
        let Some(finding) = submitted.iter().find(|id| id.as_str() == one.finding.trim()) else {
            let what = format!("{:?} was not submitted in this round: leave it out", one_line(&one.finding, 80));
            faults.add(format!("{place}/finding"), what);
            continue;
        };
        if !seen.insert(finding.clone()) {
            faults.add(format!("{place}/finding"), format!("{finding} is judged twice: judge it once"));
        }
        judgements.push(Judgement {
            finding: finding.clone(),
            score: Score::clamped(one.score),
            rationale: faults.text(format!("{place}/rationale"), &one.rationale),
            corroborated_by: faults.findings(&format!("{place}/corroborated_by"), &one.corroborated_by, &known),
            contradicted_by: faults.findings(&format!("{place}/contradicted_by"), &one.contradicted_by, &known),
        });
    }
    let missing: Vec<&str> = submitted.difference(&seen).map(FindingId::as_str).collect();
    if !missing.is_empty() {
        faults.add("/findings", format!("no judgement of {}: judge each submitted finding", missing.join(", ")));
    }
    let summary = faults.text("/summary", &form.summary);
    let leads = leads(view, done, &form.leads).into_iter().filter_map(Result::ok).take(MAX_LEADS).collect();
    faults.or(Answer::Review(ReviewDraft { summary, judgements, leads }))
}

/// Each lead as it can be checked, or what is wrong with it. A fault in a lead never costs the Review.
fn leads(view: &ReviewView, done: &[Done], forms: &[LeadForm]) -> Vec<Result<LeadDraft, Vec<String>>> {
    let cited = view.findings.iter().flat_map(|f| &f.finding.draft.citations).map(|c| c.call().as_str());
    let cited: BTreeSet<&str> = cited.collect();
    let seen = |call: &str| cited.contains(call) || done.iter().any(|d| asked_for(d, call));
    let lead = |(form, n): (&LeadForm, usize)| {
        let mut faults = Faults::default();
        let place = format!("lead {n}");
        let what = faults.text(format!("{place}/what"), &form.what);
        let why = faults.text(format!("{place}/why"), &form.why);
        let call = CallId::new(form.call.trim()).ok().filter(|call| seen(call.as_str()));
        if call.is_none() {
            let call = one_line(&form.call, 80);
            faults.add(
                format!("{place}/call"),
                format!("expected the id of a call of an Expert that you saw, got {call:?}"),
            );
        }
        let at = faults.place(format!("{place}/at"), &form.at);
        let draft = call.zip(at).map(|(call, at)| LeadDraft { what, why, call, at });
        faults.or(()).and_then(|()| draft.ok_or_else(Vec::new))
    };
    forms.iter().zip(1..).map(lead).collect()
}

fn asked_for(done: &Done, call: &str) -> bool {
    let arguments: Option<Value> = serde_json::from_str(&done.call.arguments).ok();
    let asked = arguments.as_ref().and_then(|a| a.get("call")).and_then(Value::as_str);
    done.call.status == CallStatus::Answered && asked == Some(call)
}

/// What to say about leads that cannot be checked; empty if there are none.
pub(super) fn returned(view: &ReviewView, done: &[Done], form: &ReviewForm) -> String {
    let faults: Vec<String> = leads(view, done, &form.leads).into_iter().filter_map(Result::err).flatten().collect();
    if faults.is_empty() {
        return String::new();
    }
    let list = faults.join("\n- ");
    format!(
        "Leads that code cannot check are dropped:\n- {list}\nGive the whole answer again with them corrected or left out. This is the only second chance."
    )
}
