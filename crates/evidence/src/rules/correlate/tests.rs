use super::*;

const SECOND: i64 = 1_000_000_000;

/// The hits of rules 0 and up, as `rule@second:value`, and what rule 9 finds, as `first-last xcount by group`.
fn found(kind: Kind, rules: &[usize], condition: Condition, hits: &str) -> Vec<String> {
    let counted = if kind == Kind::ValueCount { vec!["value".to_owned()] } else { Vec::new() };
    let group = vec![("by".to_owned(), vec!["by".to_owned(); rules.len()])];
    let plans =
        [Plan { rule: 9, kind, rules: rules.to_vec(), group, counted, span: 60 * SECOND, condition, pattern: None }];
    run(&plans, hits).iter().map(shown).collect()
}

fn run(plans: &[Plan], hits: &str) -> Vec<Episode> {
    let mut correlator = Correlator::new(plans);
    for hit in hits.split_whitespace() {
        let (rule, rest) = hit.split_once('@').unwrap();
        let (second, value) = rest.split_once(':').unwrap_or((rest, "x"));
        let (by, value) = value.split_once('/').unwrap_or((value, "x"));
        let second: i64 = second.parse().unwrap();
        let at = Place { source: 0, record: second, time: second * SECOND };
        let part = Part { rule: rule.parse().unwrap(), first: at, last: at, count: 1 };
        let values = [("by", by), ("value", value)].map(|(k, v)| (k, Cow::Borrowed(v))).into();
        correlator.add(Occurrence { part, values });
    }
    correlator.finish()
}

fn shown(episode: &Episode) -> String {
    let by: Vec<&str> = episode.group.iter().map(|(_, value)| value.as_str()).collect();
    format!("{}-{} x{} by {}", episode.first.record, episode.last.record, episode.count, by.join(","))
}

fn at_least(count: u64) -> Condition {
    Condition::Count(vec![(Operator::AtLeast, count)])
}

#[test]
fn many_hits_of_one_group_are_one_episode() {
    let of = |hits: &str| found(Kind::EventCount, &[0], at_least(3), hits);
    assert_eq!(of("0@1 0@2"), [""; 0]);
    assert_eq!(of("0@1 0@2 0@3"), ["1-3 x3 by x"]);
    assert_eq!(of("0@1 0@2 0@3 0@4 0@90 0@91"), ["1-4 x4 by x"]);
    assert_eq!(of("0@1:a 0@2:b 0@3:a 0@4:b 0@5:a"), ["1-5 x3 by a"]);
    assert_eq!(of("0@1 0@61 0@122 0@183"), [""; 0], "too far apart");
    assert_eq!(of("0@1 0@2 0@3 0@200 0@201 0@202"), ["1-3 x3 by x", "200-202 x3 by x"]);
}

#[test]
fn the_whole_number_is_counted_even_if_the_window_is_smaller() {
    let hits: Vec<String> = (0..147).map(|n| format!("0@{}", n * 4)).collect();
    assert_eq!(found(Kind::EventCount, &[0], at_least(10), &hits.join(" ")), ["0-584 x147 by x"]);
}

#[test]
fn different_values_are_counted_once() {
    let of = |hits: &str| found(Kind::ValueCount, &[0], at_least(3), hits);
    assert_eq!(of("0@1:a/u 0@2:a/u 0@3:a/v"), [""; 0]);
    assert_eq!(of("0@1:a/u 0@2:a/v 0@3:a/w"), ["1-3 x3 by a"]);
    assert_eq!(of("0@1:a/u 0@2:a/v 0@90:a/w"), [""; 0], "the first two are over");
    assert_eq!(of("0@1:a/u 0@2:b/v 0@3:c/w"), [""; 0], "of three groups");
}

#[test]
fn rules_together_and_in_order() {
    let together = |hits: &str| found(Kind::Temporal, &[0, 1], at_least(1), hits);
    let ordered = |hits: &str| found(Kind::TemporalOrdered, &[0, 1], at_least(1), hits);
    assert_eq!(together("1@1 0@2"), ["1-2 x1 by x"]);
    assert_eq!(ordered("1@1 0@2"), [""; 0]);
    assert_eq!(ordered("0@1 1@2"), ["1-2 x1 by x"]);
    assert_eq!(ordered("0@1 1@70"), [""; 0], "too late");
    assert_eq!(ordered("0@1:a 1@2:b"), [""; 0], "of two groups");
    assert_eq!(ordered("0@1 0@50 1@90"), ["50-90 x1 by x"], "the latest beginning counts");
    let three = |hits: &str| found(Kind::TemporalOrdered, &[0, 1, 2], at_least(1), hits);
    assert_eq!(three("0@1 1@2 0@3 2@4"), ["1-4 x1 by x"]);
    assert_eq!(three("1@1 0@2 2@3"), [""; 0]);
    let twice = |hits: &str| found(Kind::TemporalOrdered, &[0, 0], at_least(1), hits);
    assert_eq!(twice("0@1"), [""; 0]);
    assert_eq!(twice("0@1 0@2"), ["1-2 x1 by x"]);
}

#[test]
fn a_temporal_correlation_can_combine_rules() {
    let either = Joined::All(vec![Joined::Rule(0), Joined::Not(Box::new(Joined::Rule(1)))]);
    let of = |hits: &str| found(Kind::Temporal, &[0, 1], Condition::Rules(either.clone()), hits);
    assert_eq!(of("0@1"), ["1-1 x1 by x"]);
    assert_eq!(of("1@1 0@2"), [""; 0]);
}

#[test]
fn a_correlation_of_a_correlation_names_its_parts() {
    let group = || vec![("by".to_owned(), vec!["by".to_owned(); 2])];
    let span = 600 * SECOND;
    let many = Plan {
        rule: 8,
        kind: Kind::EventCount,
        rules: vec![0],
        group: group(),
        counted: Vec::new(),
        span,
        condition: at_least(3),
        pattern: None,
    };
    let then = Plan { rule: 9, kind: Kind::TemporalOrdered, rules: vec![8, 1], ..many.clone() };
    let found = run(&[many, then], "0@1:a 0@2:a 0@3:a 0@4:a 1@5:b 1@6:a");
    let found: Vec<&Episode> = found.iter().filter(|episode| episode.rule == 9).collect();
    assert_eq!(found.len(), 1);
    assert_eq!(shown(found[0]), "1-6 x1 by a");
    let parts: Vec<(usize, u64, i64, i64)> =
        found[0].parts.iter().map(|p| (p.rule, p.count, p.first.record, p.last.record)).collect();
    assert_eq!(parts, [(8, 4, 1, 4), (1, 1, 6, 6)]);
}

#[test]
fn memory_is_bounded_and_time_linear() {
    let plans = [Plan {
        rule: 9,
        kind: Kind::ValueCount,
        rules: vec![0],
        group: vec![("by".to_owned(), vec!["by".to_owned()])],
        counted: vec!["value".to_owned()],
        span: i64::MAX,
        condition: at_least(9_999),
        pattern: None,
    }];
    let mut correlator = Correlator::new(&plans);
    for n in 0..300_000i64 {
        let at = Place { source: 0, record: n, time: n };
        let values = [("by", if n % 2 == 0 { 0 } else { n }), ("value", n)];
        let values = values.map(|(k, v)| (k, Cow::Owned(v.to_string()))).into();
        correlator.add(Occurrence { part: Part { rule: 0, first: at, last: at, count: 1 }, values });
    }
    assert!(correlator.groups.len() <= GROUPS_MAX, "{}", correlator.groups.len());
    assert!(correlator.occurrences <= OCCURRENCES_MAX);
    assert!(correlator.forgot);
    assert_eq!(correlator.finish().len(), 1);
}
