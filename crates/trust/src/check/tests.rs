//! Citations and what the check says of them, in a text file. A case has its calls, each with its result, then a line for
//! each finding: the kind of citation, the call and the place, `|` and what stands there, and what else the finding says.

use std::collections::BTreeSet;

use casebook_protocol::{CallId, Entity, EntityKind, EventTime, FindingKind, Precision};
use casebook_table::{blocks, expect_file};

use super::*;

pub(crate) fn id(text: &str) -> CallId {
    CallId::new(text).unwrap()
}

fn call(name: &str, tool: &str, arguments: &str, result: &str) -> ToolCall {
    ToolCall::answered(id(name), tool, arguments, result.as_bytes())
}

pub(crate) fn add(all: &mut Exhibits, name: &str, tool: &str, arguments: &str, result: &str, repeatable: bool) {
    all.add(call(name, tool, arguments, result), repeatable, result.as_bytes());
}

pub(crate) fn draft(citations: Vec<Citation>) -> FindingDraft {
    FindingDraft { about_alert: false, citations, ..FindingDraft::neutral(FindingKind::State, "it is so".into()) }
}

/// `name tool arguments` and whether it is made again, then the result, in which `⏎` is a line end.
fn exhibit(all: &mut Exhibits, text: &str) {
    let (head, result) = text.split_once('\n').unwrap();
    let (head, repeatable) = head.strip_suffix(" repeatable").map_or((head, false), |head| (head, true));
    let [name, tool, arguments] = head.splitn(3, ' ').collect::<Vec<_>>()[..] else { panic!("{head}") };
    add(all, name, tool, arguments, &result.replace('⏎', "\n"), repeatable);
}

fn finding(text: &str) -> FindingDraft {
    let mut parts = text.split(" | ");
    let [kind, call, place] = parts.next().unwrap().splitn(3, ' ').collect::<Vec<_>>()[..] else { panic!("{text}") };
    let (call, value) = (id(call), parts.next().unwrap());
    let line = place.strip_prefix("line ").map(|n| Locator::Line(n.parse().unwrap()));
    let at = line.unwrap_or_else(|| Locator::Pointer(place.trim_start_matches("whole").into()));
    let mut finding = draft(vec![]);
    let mut again = None;
    for part in parts {
        let (what, said) = part.split_once(' ').unwrap();
        match what {
            "claim" => finding.claim = said.into(),
            "again" => again = Some(id(said)),
            "user" => finding.entities.push(Entity { kind: EntityKind::User, value: said.into() }),
            "occurred" | "period" => {
                let (at, until, basis, precision) = match said.split(' ').collect::<Vec<_>>()[..] {
                    [at, basis, precision] => (at, None, basis, precision),
                    [at, until, basis, precision] => (at, Some(until.parse().unwrap()), basis, precision),
                    _ => panic!("{said}"),
                };
                let basis = serde_json::from_value(basis.into()).unwrap();
                let precision: Precision = serde_json::from_value(precision.into()).unwrap();
                finding.kind = if what == "period" { FindingKind::Aggregate } else { FindingKind::Occurrence };
                let field = String::new();
                finding.time = Some(EventTime { at: at.parse().unwrap(), until, precision, basis, field });
            }
            _ => panic!("{part}"),
        }
    }
    let edge = |text: &str| (text != "-").then(|| text.parse().unwrap());
    finding.citations.push(match kind {
        "literal" => Citation::Literal { call, at, quote: value.into() },
        "count" => Citation::Count { call, at, value: value.parse().unwrap(), again },
        "aggregate" => Citation::Aggregate { call, at, value: value.into(), again },
        "absence" => {
            let (from, to) = value.split_once(" to ").unwrap();
            Citation::Absence { call, at, from: edge(from), to: edge(to), again }
        }
        _ => panic!("{kind}"),
    });
    finding
}

/// Whether the citation holds and why, the faults, the records with their sources, and the field that anyone may choose.
fn words(checked: &Checked) -> String {
    let check = &checked.citations[0];
    let head = format!("{}: {}", if check.holds { "holds" } else { "fails" }, check.note);
    let mut all: Vec<String> = std::iter::once(head).chain(checked.faults.clone()).collect();
    all.extend(checked.records().iter().map(|record| {
        let file = record.file.split_at_checked("artifact:".len() + 64).map_or(record.file.as_str(), |(_, rest)| rest);
        format!("in {} {file}:{}", record.source, record.line)
    }));
    let sources = checked.sources();
    if checked.records().is_empty() && !sources.is_empty() {
        all.push(format!(
            "of {}",
            sources.into_iter().collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>().join(" ")
        ));
    }
    all.extend(check.chosen.as_ref().map(|field| format!("chosen: {field}")));
    all.join(" | ")
}

#[test]
fn each_finding_is_checked_as_on_file() {
    blocks(&expect_file!["cases.txt"], |_, text| {
        let mut all = Exhibits::default();
        let (calls, findings) = text.rsplit_once("\n\n").unwrap();
        calls.split("\n\n").for_each(|text| exhibit(&mut all, text));
        findings.lines().map(|line| words(&all.check(&finding(line))) + "\n").collect()
    });
}

#[test]
fn bytes_of_another_artifact_cannot_be_cited() {
    let mut all = Exhibits::default();
    all.add(call("t.0", "search", "{}", "one"), true, b"two");
    let cited = Citation::Literal { call: id("t.0"), at: Locator::Line(1), quote: "two".into() };
    assert!(!all.check(&draft(vec![cited])).valid());
}

#[test]
fn quotation_may_contain_ellipses_of_the_record() {
    let mut corpus = crate::claim::Corpus::default();
    corpus.add_text(r#"payload "0...B" at 3"#);
    for quote in [r#"load "0...B"#, r#"…load "0...B…"#, r#"...load "0...B..."#, r#"…"0...B" at…"#] {
        assert!(corpus.has_quote(quote), "{quote}");
    }
    assert!(!corpus.has_quote("…0...C…"));
}
