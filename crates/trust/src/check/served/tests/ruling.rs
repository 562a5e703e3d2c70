//! What the rules make of findings that rest on what servers returned.

use std::collections::BTreeMap;

use super::*;
use crate::rule::{self, Docket};
use casebook_protocol::{
    Act, ActKind, ActPart, Acts, CheckedFinding, Domain, Finding, FindingId, Judgement, ReviewDraft, SourceInfo,
};
use casebook_protocol::{Rule, Verdict};

fn reviewed(
    all: &Exhibits,
    findings: Vec<FindingDraft>,
    sources: &BTreeMap<String, SourceInfo>,
) -> casebook_protocol::Ruling {
    let domain = Domain::new("cloud").unwrap();
    let submitted: Vec<(Finding, Checked)> = (1..)
        .zip(findings)
        .map(|(n, draft)| {
            let checked = all.check(&draft);
            (Finding { id: FindingId::of(1, &domain, n), domain: domain.clone(), round: 1, draft }, checked)
        })
        .collect();
    assert!(submitted.iter().all(|(_, checked)| checked.valid()), "{submitted:?}");
    let ids = || submitted.iter().map(|(f, _)| f.id.clone());
    let judged = |id| Judgement { corroborated_by: ids().collect(), ..Judgement::new(&id, Score::clamped(1.0), "") };
    let judgements = ids().map(judged);
    let review = ReviewDraft { summary: String::new(), leads: vec![], judgements: judgements.collect() };
    let (review, _) = rule::review(1, review, &submitted, &BTreeMap::new(), sources);
    let known = review.findings.into_iter().map(|f| (f.finding.id.clone(), f)).collect();
    let checked: Vec<CheckedFinding> =
        submitted.into_iter().map(|(finding, checked)| CheckedFinding { finding, checked }).collect();
    let first = checked.iter().flat_map(|finding| finding.checked.records()).next();
    let alerted =
        |record| Act { part: ActPart::Alerted, kind: ActKind::Process, record, time: None, what: String::new() };
    let acts = Acts { listed: first.map(alerted).into_iter().collect(), keys: vec!["web-1".into()], ..Acts::default() };
    let docket = Docket {
        known: &known,
        submitted: &checked.iter().collect::<Vec<_>>(),
        sources,
        alert: r#"{"host":"web-1"}"#,
        acts: Some(&acts),
        rows: &BTreeMap::new(),
        failed: &[],
        by_code: &BTreeSet::new(),
    };
    let (ruling, guards) = rule::verdict(Verdict::BenignPositive, &docket);
    assert_eq!(ruling.verdict == Verdict::Inconclusive, guards.iter().any(|g| g.rule == Rule::DismissalUnsupported));
    ruling
}

fn explains(citation: Citation) -> FindingDraft {
    let entity = Entity { kind: EntityKind::Host, value: "web-1".into() };
    let (bearing, weight) = (Bearing::Exonerating, Weight::Strong);
    FindingDraft { bearing, weight, about_alert: true, entities: vec![entity], ..draft(vec![citation]) }
}

fn outside(names: &[&str]) -> BTreeMap<String, SourceInfo> {
    let info = |name: &&str| SourceInfo::new(*name, format!("sensor of {name}"));
    names.iter().map(|name| ((*name).to_owned(), info(name))).collect()
}

#[test]
fn absence_that_is_not_asked_again_explains_nothing() {
    let mut all = Exhibits::default();
    let arguments = r#"{"host":"web-1"}"#;
    add(&mut all, "a", "siem__query", arguments, r#"{"hits":[],"searched":["edr","auth"]}"#, false);
    add(&mut all, "b", "edr__query", arguments, r#"{"hits":0}"#, false);
    let absence = |call: &str| Citation::Absence { call: id(call), at: at("/hits"), from: None, to: None, again: None };
    let ruling = reviewed(&all, vec![explains(absence("a")), explains(absence("b"))], &outside(&["siem", "edr"]));
    assert_eq!(ruling.verdict, Verdict::Inconclusive);
    assert!(ruling.missing.iter().any(|m| m.contains("rests on a number or on nothing found")), "{ruling:?}");
}

#[test]
fn server_that_is_not_on_the_roster_explains_nothing() {
    let mut all = Exhibits::default();
    let result = r#"{"host":"web-1","outcome":"SUCCESS"}"#;
    add(&mut all, "a", "siem__query", "{}", result, false);
    add(&mut all, "b", "edr__query", "{}", result, false);
    let quote = |call: &str| {
        let citation = Citation::Literal { call: id(call), at: at("/outcome"), quote: "SUCCESS".into() };
        explains(citation)
    };
    let ruling = |known: &[&str]| reviewed(&all, vec![quote("a"), quote("b")], &outside(known));
    assert_eq!(ruling(&["siem", "edr"]).verdict, Verdict::BenignPositive);
    for known in [&["siem"][..], &[]] {
        let ruling = ruling(known);
        assert_eq!(ruling.verdict, Verdict::Inconclusive);
        assert!(ruling.missing.iter().any(|m| m.contains("it is unknown what wrote them")), "{ruling:?}");
    }
}
