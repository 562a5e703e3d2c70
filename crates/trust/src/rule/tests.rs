use proptest::prelude::*;

use super::*;
use casebook_protocol::{
    Act, ActKind, ActPart, Acts, Bearing, CallId, CheckedFinding, Citation, CitationCheck, Claim, Conclusion, Domain,
    Entity, EntityKind, EventTime, FindingDraft, FindingKind, Locator, Precision, RecordRef, Ruling, TimeBasis,
    Timestamp, Verdict, Weight,
};

mod timeline;

fn source(name: &str, on_subject_host: bool) -> (String, SourceInfo) {
    let info = SourceInfo { on_subject_host, ..SourceInfo::new(name, format!("sensor of {name}")) };
    (name.to_owned(), info)
}

fn sources() -> BTreeMap<String, SourceInfo> {
    [source("a", false), source("b", false), source("c", true)].into()
}

#[derive(Debug, Clone)]
struct Shape {
    sources: Vec<&'static str>,
    holds: bool,
    fault: bool,
    bearing: Bearing,
    weight: Weight,
    about_alert: bool,
    second: i64,
    kind: FindingKind,
    chosen: Option<&'static str>,
    names: &'static str,
    absent: bool,
}

impl Default for Shape {
    fn default() -> Self {
        Self {
            sources: vec!["a"],
            holds: true,
            fault: false,
            bearing: Bearing::Neutral,
            weight: Weight::Weak,
            about_alert: true,
            second: 0,
            kind: FindingKind::Occurrence,
            chosen: None,
            names: "web-1",
            absent: false,
        }
    }
}

fn submitted(n: usize, shape: &Shape) -> (Finding, Checked) {
    let domain = Domain::new("endpoint").unwrap();
    let time = EventTime {
        at: Timestamp::from_second(shape.second).unwrap(),
        until: None,
        precision: Precision::Second,
        basis: TimeBasis::Record,
        field: "t".into(),
    };
    let call = CallId::new("c").unwrap();
    let cited = |source: &&str| match shape.absent {
        true => Citation::Absence { call: call.clone(), at: Locator::Line(1), from: None, to: None, again: None },
        false => Citation::Literal { call: call.clone(), at: Locator::Line(1), quote: (*source).into() },
    };
    let draft = FindingDraft {
        kind: shape.kind,
        claim: format!("`thing{n}` happened"),
        time: Some(time),
        entities: vec![Entity { kind: EntityKind::Host, value: shape.names.into() }],
        bearing: shape.bearing,
        weight: shape.weight,
        about_alert: shape.about_alert,
        confidence: Score::clamped(0.9),
        ..crate::check::tests::draft(shape.sources.iter().map(cited).collect())
    };
    let citations = shape.sources.iter().map(|s| CitationCheck {
        holds: shape.holds,
        note: "note".into(),
        artifact: None,
        records: vec![RecordRef { source: (*s).into(), file: (*s).into(), line: n as u64 }],
        sources: vec![(*s).into()],
        chosen: shape.chosen.map(str::to_owned),
    });
    let checked =
        Checked { citations: citations.collect(), faults: if shape.fault { vec!["fault".into()] } else { vec![] } };
    (Finding { id: FindingId::of(1, &domain, n), domain, round: 1, draft }, checked)
}

fn judged(all: &[(Finding, Checked)], score: f64) -> ReviewDraft {
    let judgements = all.iter().map(|(f, _)| Judgement::new(&f.id, Score::clamped(score), "r"));
    ReviewDraft { summary: "s".into(), judgements: judgements.collect(), leads: vec![] }
}

fn reviewed_one(shape: &Shape, score: f64) -> Reviewed {
    let all = [submitted(1, shape)];
    review(1, judged(&all, score), &all, &BTreeMap::new(), &sources()).0.findings.remove(0)
}

fn known(shapes: &[Shape], score: f64) -> BTreeMap<FindingId, Reviewed> {
    let all: Vec<_> = shapes.iter().enumerate().map(|(n, s)| submitted(n + 1, s)).collect();
    reviewed(&all, judged(&all, score))
}

fn reviewed(all: &[(Finding, Checked)], draft: ReviewDraft) -> BTreeMap<FindingId, Reviewed> {
    review(1, draft, all, &BTreeMap::new(), &sources())
        .0
        .findings
        .into_iter()
        .map(|f| (f.finding.id.clone(), f))
        .collect()
}

#[test]
fn scores_are_capped_and_the_rule_is_named() {
    let two = Shape { sources: vec!["a", "b"], ..Shape::default() };
    let check = |shape: &Shape, expect: f64, rules: &[Rule]| {
        let got = reviewed_one(shape, 1.0);
        assert_eq!((got.score.get(), got.capped_by.as_slice()), (expect, rules));
    };
    check(&two, 1.0, &[]);
    check(&Shape::default(), 0.89, &[Rule::SingleSource]);
    check(&Shape { holds: false, ..two.clone() }, 0.29, &[Rule::CitationDoesNotHold]);
    check(&Shape { fault: true, ..two.clone() }, 0.29, &[Rule::ClaimNotInEvidence]);
    check(&Shape { sources: vec![], ..two }, 0.29, &[Rule::CitationMissing]);
}

#[test]
fn corroboration_counts_only_if_valid_and_independent() {
    let check = |other: Shape, expect: f64| {
        let all = [submitted(1, &Shape::default()), submitted(2, &other)];
        let mut draft = judged(&all, 1.0);
        draft.judgements[0].corroborated_by = vec![all[1].0.id.clone(), all[0].0.id.clone()];
        let (review, _) = review(1, draft, &all, &BTreeMap::new(), &sources());
        assert_eq!(review.findings[0].score.get(), expect);
    };
    check(Shape { sources: vec!["b"], ..Shape::default() }, 1.0);
    check(Shape { sources: vec!["a"], ..Shape::default() }, 0.89);
    check(Shape { sources: vec!["b"], holds: false, ..Shape::default() }, 0.89);
}

#[test]
fn a_finding_of_a_later_round_lifts_the_cap_of_an_earlier_one() {
    let check = |old: Shape, new: Shape, named: bool, expect: &[f64]| {
        let before = known(&[old], 1.0);
        let mut all = [submitted(2, &new)];
        all[0].0.round = 2;
        let mut draft = judged(&all, 0.95);
        draft.judgements[0].corroborated_by = before.keys().filter(|_| named).cloned().collect();
        let (review, guards) = review(2, draft, &all, &before, &sources());
        let scores: Vec<f64> = review.findings.iter().map(|f| f.score.get()).collect();
        assert_eq!(scores, expect);
        assert_eq!(guards.iter().any(|g| g.rule == Rule::Corroborated), expect.len() == 2);
        if let [old, new] = review.findings.as_slice() {
            assert_eq!((old.capped_by.as_slice(), &old.corroborated_by), (&[][..], &vec![new.finding.id.clone()]));
        }
    };
    let of = |source| Shape { sources: vec![source], ..Shape::default() };
    check(of("a"), of("b"), true, &[1.0, 0.95]);
    check(of("a"), of("b"), false, &[0.89]);
    check(of("a"), of("a"), true, &[0.89]);
    check(of("a"), Shape { holds: false, ..of("b") }, true, &[0.29]);
    check(Shape { holds: false, ..of("a") }, of("b"), true, &[0.89]);
    check(Shape { sources: vec!["a", "b"], ..Shape::default() }, of("b"), true, &[0.95]);
}

#[test]
fn review_judges_exactly_what_was_submitted() {
    let all = [submitted(1, &Shape::default()), submitted(2, &Shape::default())];
    let mut draft = judged(&all[..1], 0.8);
    draft.judgements.push(Judgement { finding: FindingId::new("r9-x-1").unwrap(), ..draft.judgements[0].clone() });
    let (review, guards) = review(1, draft, &all, &BTreeMap::new(), &sources());
    assert_eq!(review.findings.len(), 2);
    assert_eq!(review.findings[1].score, Score::ZERO);
    assert_eq!(guards.iter().map(|g| g.rule).collect::<Vec<_>>(), [Rule::NotSubmitted, Rule::NotReviewed]);
}

const ALERT: &str = r#"{"host":"WEB-1"}"#;

/// The ruling on these findings, which the Critic scores alike; with `zero` the last one is scored 0.
fn ruled(proposed: Verdict, shapes: &[Shape], score: f64, by_code: &[usize], zero: bool) -> (Ruling, Vec<Guard>) {
    ruled_with(proposed, shapes, score, by_code, zero, Some(&acts(&[1])), &[])
}

/// Acts at these lines of file `a`; the first is the alerted occurrence.
fn acts(lines: &[u64]) -> Acts {
    let act = |(n, line): (usize, &u64)| Act {
        part: if n == 0 { ActPart::Alerted } else { ActPart::Below },
        kind: ActKind::Process,
        record: RecordRef { source: "a".into(), file: "a".into(), line: *line },
        time: None,
        what: format!("program {line}"),
    };
    Acts { listed: lines.iter().enumerate().map(act).collect(), keys: vec!["WEB-1".into()], ..Acts::default() }
}

fn ruled_with(
    proposed: Verdict,
    shapes: &[Shape],
    score: f64,
    by_code: &[usize],
    zero: bool,
    acts: Option<&Acts>,
    failed: &[String],
) -> (Ruling, Vec<Guard>) {
    let all: Vec<_> = shapes.iter().enumerate().map(|(n, s)| submitted(n + 1, s)).collect();
    let mut draft = judged(&all, score);
    if let Some(last) = draft.judgements.last_mut().filter(|_| zero) {
        last.score = Score::ZERO;
    }
    let known = reviewed(&all, draft);
    let checked: Vec<CheckedFinding> =
        all.into_iter().map(|(finding, checked)| CheckedFinding { finding, checked }).collect();
    let domain = Domain::new("endpoint").unwrap();
    let by_code = by_code.iter().map(|n| FindingId::of(1, &domain, *n)).collect();
    let docket = Docket {
        known: &known,
        submitted: &checked.iter().collect::<Vec<_>>(),
        sources: &sources(),
        alert: ALERT,
        acts,
        rows: &BTreeMap::new(),
        failed,
        by_code: &by_code,
    };
    verdict(proposed, &docket)
}

fn explains(source: &'static str) -> Shape {
    Shape { sources: vec![source], bearing: Bearing::Exonerating, ..Shape::default() }
}

fn attack() -> Shape {
    Shape { bearing: Bearing::Incriminating, weight: Weight::Strong, ..Shape::default() }
}

#[track_caller]
fn dismissed(shapes: &[Shape], expect: Verdict) -> String {
    let (ruling, guards) = ruled(Verdict::FalsePositive, shapes, 0.8, &[], false);
    assert_eq!(ruling.verdict, expect, "{ruling:?}");
    assert_eq!(guards.is_empty(), ruling.missing.is_empty());
    ruling.missing.join("; ")
}

#[test]
fn dismissal_needs_two_sources_out_of_the_subjects_control() {
    dismissed(&[explains("a"), explains("b")], Verdict::FalsePositive);
    dismissed(&[explains("a")], Verdict::Inconclusive);
    dismissed(&[explains("a"), explains("a")], Verdict::Inconclusive);
    dismissed(&[explains("a"), explains("c")], Verdict::Inconclusive);
    dismissed(&[explains("a"), Shape { about_alert: false, ..explains("b") }], Verdict::Inconclusive);
    dismissed(&[explains("a"), Shape { holds: false, ..explains("b") }], Verdict::Inconclusive);
    dismissed(&[explains("a"), explains("b"), attack()], Verdict::Inconclusive);
}

#[test]
fn dismissal_accounts_for_every_act() {
    let shapes = [explains("a"), explains("b"), explains("a")];
    let claim = |found, watched: &[&str]| {
        let watched_by = watched.iter().map(|s| (*s).to_owned()).collect();
        Acts { claim: Some(Claim { kind: ActKind::ModuleLoad, found, watched_by }), ..acts(&[1]) }
    };
    let check = |acts: Option<Acts>, score: f64, failed: &[&str], expect: Verdict, why: &str| {
        let failed: Vec<String> = failed.iter().map(|task| (*task).to_owned()).collect();
        let (ruling, _) = ruled_with(Verdict::BenignPositive, &shapes, score, &[], false, acts.as_ref(), &failed);
        let reasons = [ruling.missing.clone(), ruling.grounds.clone()].concat().join("; ");
        assert!(ruling.verdict == expect && reasons.contains(why), "{why}: {ruling:?}");
    };
    check(Some(acts(&[1, 3])), 0.8, &[], Verdict::BenignPositive, "");
    check(Some(acts(&[1, 3])), 0.69, &[], Verdict::Inconclusive, "an explanation of 2 of 2 acts");
    check(Some(acts(&[1, 4])), 0.8, &[], Verdict::Inconclusive, "1 of 2 acts: a:4 (process: program 4)");
    check(None, 0.8, &[], Verdict::Inconclusive, "a list of the acts");
    check(Some(Acts { more: 1, ..acts(&[1]) }), 0.8, &[], Verdict::Inconclusive, "a complete list of the acts");
    check(Some(Acts { listed: vec![], ..acts(&[]) }), 0.8, &[], Verdict::Inconclusive, "the alerted occurrence");
    check(Some(acts(&[1])), 0.8, &["r1.investigate.cloud"], Verdict::Inconclusive, "a task that failed: r1.inv");
    check(
        Some(claim(0, &[])),
        0.8,
        &[],
        Verdict::Inconclusive,
        "a confirmed sensor that records what the alert claims",
    );
    check(Some(claim(0, &["edr"])), 0.8, &[], Verdict::FalsePositive, "did not happen: edr records this kind");
    check(Some(claim(2, &["edr"])), 0.8, &[], Verdict::BenignPositive, "happened: 2 records");
    check(Some(claim(2, &[])), 0.8, &[], Verdict::BenignPositive, "happened: 2 records");
}

#[test]
fn accusation_needs_what_happened_to_a_thing_of_the_alert() {
    let ruling =
        |shapes: &[Shape]| ruled_with(Verdict::TruePositive, shapes, 0.8, &[], false, Some(&acts(&[9])), &[]).0;
    let elsewhere = Shape { names: "mail-7", ..attack() };
    assert_eq!(ruling(&[attack()]).verdict, Verdict::TruePositive);
    assert_eq!(ruling(std::slice::from_ref(&elsewhere)).verdict, Verdict::Inconclusive);
    assert_eq!(ruling(&[Shape { absent: true, ..attack() }]).verdict, Verdict::Inconclusive);
    assert_eq!(ruling(&[Shape { kind: FindingKind::Absence, ..attack() }]).verdict, Verdict::Inconclusive);
    let both = Shape { names: "WEB-1 mail-7", ..Shape::default() };
    assert_eq!(ruling(&[elsewhere, both]).verdict, Verdict::Inconclusive, "a text is not an entity");
}

#[test]
fn text_the_attacker_could_write_is_no_ground_for_dismissal() {
    let chosen = Shape { chosen: Some("user_agent"), ..explains("b") };
    let missing = dismissed(&[explains("a"), chosen.clone()], Verdict::Inconclusive);
    assert!(missing.contains("r1-endpoint-2 quotes `user_agent`"), "{missing}");
    let missing = dismissed(&[explains("a"), Shape { absent: true, ..explains("b") }], Verdict::Inconclusive);
    assert!(missing.contains("r1-endpoint-2 rests on a number or on nothing found"), "{missing}");
    let missing = dismissed(&[explains("a"), Shape { names: "mail-7", ..explains("b") }], Verdict::Inconclusive);
    assert!(missing.contains("r1-endpoint-2 shows no id, path, hash or package"), "{missing}");
    let (ruling, _) = ruled(Verdict::FalsePositive, &[explains("a"), chosen], 0.8, &[2], false);
    assert_eq!(ruling.verdict, Verdict::FalsePositive, "what code knows by itself may stand in any field");
}

#[test]
fn valid_grave_finding_blocks_dismissal_at_any_score() {
    let check = |grave: Shape, expect: Verdict| {
        let shapes = [explains("a"), explains("b"), grave];
        let (ruling, _) = ruled(Verdict::BenignPositive, &shapes, 0.8, &[], true);
        assert_eq!(ruling.verdict, expect, "{ruling:?}");
    };
    check(attack(), Verdict::Inconclusive);
    check(Shape { about_alert: false, ..attack() }, Verdict::Inconclusive);
    check(Shape { holds: false, ..attack() }, Verdict::BenignPositive);
    check(Shape { weight: Weight::Moderate, ..attack() }, Verdict::BenignPositive);
    let addressed = Shape { kind: FindingKind::Instruction, ..Shape::default() };
    check(addressed.clone(), Verdict::Inconclusive);
    check(Shape { holds: false, ..addressed }, Verdict::BenignPositive);
}

#[test]
fn one_credible_incriminating_finding_escalates() {
    let verdict = |shape: Shape, score| ruled(Verdict::TruePositive, &[shape], score, &[], false).0.verdict;
    assert_eq!(verdict(attack(), 0.8), Verdict::TruePositive);
    assert_eq!(verdict(attack(), 0.4), Verdict::Inconclusive);
    assert_eq!(verdict(Shape::default(), 0.8), Verdict::Inconclusive);
}

fn shapes() -> impl Strategy<Value = Vec<Shape>> {
    let one = (0..3usize, any::<bool>(), any::<bool>(), 0..4i64).prop_map(|(s, holds, fault, second)| Shape {
        sources: [vec![], vec!["a"], vec!["a", "b"]][s].clone(),
        holds,
        fault,
        second,
        ..Shape::default()
    });
    proptest::collection::vec(one, 1..6)
}

proptest! {
    #[test]
    fn score_never_rises_and_stays_below_cap_without_evidence(all in shapes(), score in 0.0..=1.0f64) {
        for finding in known(&all, score).values() {
            prop_assert!(finding.score <= finding.proposed);
            prop_assert!(finding.checked.valid() || finding.score.get() <= CAP_UNSUPPORTED);
            let of_form = finding.capped_by.iter().any(|rule| rule.is_of_form());
            prop_assert_eq!(finding.label == Credibility::CitationIncomplete, of_form);
            prop_assert!(of_form || finding.label == Credibility::of(finding.score));
        }
    }
}

#[test]
fn summary_of_a_refused_verdict_says_so() {
    let words = |verdict| {
        let (ruling, _) = ruled(Verdict::BenignPositive, &[explains("a"), explains(verdict)], 0.8, &[], false);
        let mut conclusion = Conclusion {
            verdict: Verdict::BenignPositive,
            summary: "All is well.".into(),
            root_cause: String::new(),
            actions: vec!["Record the exception.".into()],
            open_questions: Vec::new(),
            findings: Vec::new(),
        };
        not_accepted(&mut conclusion, &ruling);
        conclusion
    };
    let accepted = words("b");
    assert_eq!((accepted.summary.as_str(), accepted.actions.len()), ("All is well.", 1));
    let refused = words("a");
    assert_eq!(refused.summary, "Proposed as benign positive, and not accepted. All is well.");
    assert!(refused.actions[0].starts_with("Let a person check what is missing"), "{:?}", refused.actions);
    assert_eq!(refused.actions[1], "Once that is settled: Record the exception.");
}
