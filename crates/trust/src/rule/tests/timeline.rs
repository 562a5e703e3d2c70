use casebook_protocol::timeline::MAX_GAPS;
use casebook_protocol::{EventDraft, Gap, GapKind, Timeline, TimelineDraft, TimelineEvent};

use super::*;

fn draft(events: &[(&str, &[usize])]) -> TimelineDraft {
    let domain = Domain::new("endpoint").unwrap();
    let events = events.iter().map(|(text, ids)| EventDraft {
        description: (*text).into(),
        findings: ids.iter().map(|n| FindingId::of(1, &domain, *n)).collect(),
    });
    TimelineDraft { narrative: "n".into(), events: events.collect(), gaps: vec![], score: Score::clamped(0.8) }
}

#[test]
fn timeline_text_with_a_new_fact_is_replaced() {
    let known = known(&[Shape::default()], 0.8);
    let (timeline, guards) = timeline(1, 1, draft(&[("`thing1` happened from 10.0.0.1", &[1])]), &known, &untied());
    assert_eq!(timeline.events[0].description, "`thing1` happened");
    assert_eq!(guards[0].rule, Rule::NewFact);
}

fn untied() -> Ties<'static> {
    Ties { acts: None, alert: "" }
}

#[test]
fn events_that_share_a_name_with_the_alert_stay_before_better_scored_ones() {
    let shapes: Vec<Shape> = (0..100)
        .map(|second| Shape { names: if second % 10 == 0 { "web-42" } else { "n1" }, second, ..Shape::default() })
        .collect();
    let mut known = known(&shapes, 0.9);
    for finding in known.values_mut().filter(|f| f.finding.draft.entities.iter().any(|e| e.value == "web-42")) {
        finding.score = Score::clamped(0.6);
    }
    let events: Vec<(String, [usize; 1])> = (1..=100).map(|n| (format!("`thing{n}` happened"), [n])).collect();
    let events: Vec<(&str, &[usize])> = events.iter().map(|(text, ids)| (text.as_str(), &ids[..])).collect();
    let (timeline, guards) =
        timeline(1, 1, draft(&events), &known, &Ties { acts: None, alert: r#"{"host":"web-42"}"# });
    let kept = |timeline: &Timeline| {
        let of = |e: &&TimelineEvent| known[&e.findings[0]].finding.draft.entities[0].value == "web-42";
        timeline.events.iter().filter(of).count()
    };
    assert_eq!((timeline.events.len(), kept(&timeline)), (60, 10));
    assert!(timeline.events.is_sorted_by_key(|e| e.time.at));
    assert_eq!(guards.iter().map(|g| g.rule).collect::<Vec<_>>(), [Rule::TooManyEvents]);
}

/// A finding of a record in `file`, with its time in milliseconds.
fn stamped(n: usize, file: &str, line: u64, ms: i64, precision: Precision) -> Reviewed {
    let (mut finding, mut checked) = submitted(n, &Shape::default());
    let time = finding.draft.time.as_mut().unwrap();
    (time.at, time.precision) = (Timestamp::from_millisecond(ms).unwrap(), precision);
    checked.citations[0].records = vec![RecordRef { source: file.into(), file: file.into(), line }];
    let (reviewed, _) = review(
        1,
        judged(&[(finding.clone(), checked.clone())], 0.8),
        &[(finding, checked)],
        &BTreeMap::new(),
        &sources(),
    );
    reviewed.findings[0].clone()
}

/// The first finding of each event, in the order of the Timeline.
fn order(findings: Vec<Reviewed>, events: &[&[usize]]) -> Vec<usize> {
    let number = |id: &FindingId| id.as_str().rsplit('-').next().unwrap().parse().unwrap();
    let known = findings.into_iter().map(|f| (f.finding.id.clone(), f)).collect();
    let events: Vec<(&str, &[usize])> = events.iter().map(|ids| ("", *ids)).collect();
    let (timeline, _) = timeline(1, 1, draft(&events), &known, &untied());
    timeline.events.iter().map(|event| number(&event.findings[0])).collect()
}

#[test]
fn events_of_one_second_keep_the_order_of_records_then_the_critics() {
    let second = |n, file, line| stamped(n, file, line, 5000, Precision::Second);
    let all = || vec![second(1, "a", 9), second(2, "a", 3), second(3, "b", 1)];
    assert_eq!(order(all(), &[&[3], &[1], &[2]]), [3, 2, 1]);
    assert_eq!(order(all(), &[&[1], &[2], &[3]]), [2, 1, 3]);
    let finer = stamped(4, "b", 2, 5400, Precision::Millisecond);
    let mixed = || vec![second(1, "a", 9), finer.clone(), stamped(5, "b", 3, 6000, Precision::Millisecond)];
    for critic in [[5, 4, 1], [5, 1, 4]] {
        let events = critic.map(|n| [n]);
        let events: Vec<&[usize]> = events.iter().map(|event| event.as_slice()).collect();
        assert_eq!(order(mixed(), &events), [1, 4, 5], "the shown times never go back");
    }
}

#[test]
fn joined_event_keeps_the_order_that_one_clock_gives() {
    // The clock of b is three seconds late; it shows milliseconds.
    let (a, b) = (Precision::Second, Precision::Millisecond);
    let all = || {
        vec![
            stamped(1, "a", 1, 10_000, a),
            stamped(2, "a", 2, 12_000, a),
            stamped(3, "b", 7, 9_123, b),
            stamped(4, "b", 6, 9_001, b),
        ]
    };
    assert_eq!(order(all(), &[&[1], &[2, 3], &[4]]), [4, 1, 2], "2 has the time of a, the clock of more events");
    assert_eq!(order(all(), &[&[3, 2], &[1]]), [1, 3]);
    // Both clocks have one other event: the finer time is shown, and the shared clocks give the order.
    let later = || [all(), vec![stamped(5, "b", 8, 9_500, b)]].concat();
    assert_eq!(order(later(), &[&[5], &[3, 2], &[1]]), [1, 3, 5]);
}

#[test]
fn gaps_over_three_are_dropped() {
    let gap = Gap { kind: GapKind::Evidential, description: "x".into() };
    let proposal = TimelineDraft { gaps: vec![gap; 5], ..draft(&[]) };
    let (timeline, guards) = timeline(1, 1, proposal, &BTreeMap::new(), &untied());
    assert_eq!((timeline.gaps.len(), timeline.score.get()), (3, 0.29));
    assert_eq!(guards.iter().map(|g| g.rule).collect::<Vec<_>>(), [Rule::TooManyGaps, Rule::EmptyTimeline]);
}

proptest! {
    #[test]
    fn timeline_is_ordered_and_names_each_finding_once(all in shapes(), picks in proptest::collection::vec(proptest::collection::vec(1..8usize, 0..4), 0..8)) {
        let known = known(&all, 0.8);
        let events: Vec<(&str, &[usize])> = picks.iter().map(|p| ("", p.as_slice())).collect();
        let (timeline, _) = timeline(1, 1, draft(&events), &known, &untied());
        prop_assert!(timeline.events.is_sorted_by_key(|e| e.time.at.as_second()));
        let mut seen = BTreeSet::new();
        for event in &timeline.events {
            prop_assert!(!event.findings.is_empty());
            for id in &event.findings {
                prop_assert!(seen.insert(id.clone()));
                prop_assert!(credible(&known[id]));
            }
        }
        prop_assert!(timeline.gaps.len() <= MAX_GAPS);
    }
}
