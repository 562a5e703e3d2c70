//! Rules that are broken or meant to do harm: a sentence for each, no panic, little time and memory.

use std::time::{Duration, Instant};

use casebook_table::expect_file;

use super::*;

const HEAD: &str = "title: T\nlogsource: {category: process_creation, product: linux}\nlevel: high\n";

fn detection(selection: &str) -> String {
    format!("{HEAD}detection:\n  selection:\n    {selection}\n  condition: selection\n")
}

fn condition(condition: &str) -> String {
    format!("{HEAD}detection:\n  selection:\n    Image: x\n  condition: {condition}\n")
}

fn correlation(body: &str) -> String {
    format!("{}---\ntitle: C\nid: c\ncorrelation:\n  {}\n", condition("selection"), body.replace('\n', "\n  "))
}

fn cases() -> Vec<(&'static str, String)> {
    let count = |more: &str| correlation(&format!("type: event_count\nrules: [T]\ntimespan: 5m\n{more}"));
    let bomb = {
        let level = |n: u32| format!("  a{n}: &a{n} [{}]\n", vec![format!("*a{}", n - 1); 9].join(","));
        format!("{HEAD}x:\n  a0: &a0 [x]\n{}", (1..12).map(level).collect::<String>())
    };
    let nested = |open: &str, close: &str, many: usize| open.repeat(many) + "selection" + &close.repeat(many);
    vec![
        ("a rule that is valid", condition("selection")),
        ("nothing", String::new()),
        ("a list", "- a\n- b\n".into()),
        ("broken YAML", "title: [\n".into()),
        ("a tab for indentation", "title: T\ndetection:\n\tx: y\n".into()),
        ("no title", "logsource: {product: linux}\ndetection: {s: {a: b}, condition: s}\n".into()),
        ("an empty title", condition("selection").replace("title: T", "title: ''")),
        ("no detection", HEAD.into()),
        ("no condition", format!("{HEAD}detection:\n  selection: {{Image: x}}\n")),
        ("no selection", format!("{HEAD}detection:\n  condition: selection\n")),
        ("no log source", "title: T\ndetection: {s: {a: b}, condition: s}\n".into()),
        ("a log source that is a list", "title: T\nlogsource: [linux]\ndetection: {s: {a: b}, condition: s}\n".into()),
        ("the same key twice", format!("{HEAD}title: U\ndetection: {{s: {{a: b}}, condition: s}}\n")),
        ("an unknown modifier", detection("CommandLine|containz: x")),
        ("a modifier that negates", detection("CommandLine|not: x")),
        ("modifiers that exclude each other", detection("CommandLine|re|base64: x")),
        ("a number that is none", detection("CommandLine|gt: many")),
        ("an unknown selection", condition("selection and filter")),
        ("a pattern that selects nothing", condition("1 of filter_*")),
        ("a condition that is none", condition("selection and and")),
        ("a condition of many brackets", condition(&nested("(", ")", 5_000))),
        ("a condition of many negations", condition(&nested("not ", "", 20_000))),
        ("a pipe from old Sigma", condition("selection | count() by User > 5")),
        ("a pattern that would backtrack", detection("CommandLine|re: '(a+)+$'")),
        ("a pattern with look-ahead", detection("CommandLine|re: '(?=a)b'")),
        ("a pattern that grows", detection("CommandLine|re: '((a{100}){100}){100}'")),
        ("a pattern of a megabyte", detection(&format!("CommandLine|re: '{}'", "a|".repeat(400_000)))),
        ("a pattern that is broken", detection("CommandLine|re: '(['")),
        ("an address range that is none", detection("SourceIp|cidr: 10.0.0.0/99")),
        ("aliases that multiply", bomb),
        ("deep nesting", format!("{HEAD}x: {}\n", "[".repeat(10_000))),
        (
            "deep nesting in a selection",
            format!("{HEAD}detection:\n  s: {}b{}\n  condition: s\n", "{a: ".repeat(90), "}".repeat(90)),
        ),
        ("a document for all others", format!("action: global\n{HEAD}---\ndetection: {{s: {{a: b}}, condition: s}}\n")),
        ("two rules of one id", format!("{0}---\n{0}", condition("selection"))),
        ("a filter", format!("{HEAD}filter:\n  rules: [T]\n  selection: {{User: root}}\n  condition: selection\n")),
        ("a correlation of nothing", count("condition: {gte: 3}").replace("rules: [T]", "rules: []")),
        ("a correlation of an unknown rule", count("condition: {gte: 3}").replace("rules: [T]", "rules: [U]")),
        ("a correlation of itself", count("condition: {gte: 3}").replace("rules: [T]", "rules: [c]")),
        (
            "correlations in a circle",
            count("condition: {gte: 3}").replace("rules: [T]", "rules: [d]")
                + "---\ntitle: D\nid: d\ncorrelation:\n  type: event_count\n  rules: [c]\n  timespan: 5m\n  condition: {gte: 3}\n",
        ),
        ("a correlation without a number", count("condition: {}")),
        ("a correlation of a huge number", count("condition: {gte: 9000000000}")),
        ("a correlation of a negative number", count("condition: {gte: -1}")),
        ("a correlation without end", count("condition: {gte: 3}").replace("5m", "9999999d")),
        ("a correlation of no time", count("condition: {gte: 3}").replace("5m", "0s")),
        ("a time that is none", count("condition: {gte: 3}").replace("5m", "soon")),
        ("an unknown correlation", count("condition: {gte: 3}").replace("event_count", "event_sum")),
        (
            "a correlation that is not supported",
            count("condition: {gte: 3, field: a}").replace("event_count", "value_avg"),
        ),
        ("values without a field", count("condition: {gte: 3}").replace("event_count", "value_count")),
        (
            "a rule that says all is well",
            condition("selection") + "casebook: {bearing: exonerating, strength: decisive}\n",
        ),
        ("a block that explains", condition("selection") + "casebook: {verdict: benign}\n"),
    ]
}

#[test]
fn each_hostile_rule_has_its_sentence() {
    let mut table = String::new();
    for (name, text) in cases() {
        let begun = Instant::now();
        let said = match RuleSet::read(&[user(&text)]) {
            Ok(set) => format!("{} rules", set.rules().len()),
            Err(faults) => faults.iter().map(ToString::to_string).collect::<Vec<_>>().join(" // "),
        };
        assert!(begun.elapsed() < Duration::from_secs(5), "{name} took {:?}", begun.elapsed());
        assert!(said.len() < 1000, "{name}: {said}");
        table.push_str(&format!("{name}\n    {said}\n"));
    }
    expect_file!["hostile.txt"].assert_eq(&table);
}

#[test]
fn a_slow_pattern_is_matched_in_linear_time() {
    let set = rules(&detection("CommandLine|re: '(a+)+$'"));
    let record = execve(1, &format!("{}!", "a".repeat(50_000))).repeat(50);
    let begun = Instant::now();
    assert_eq!(Loaded::new(&[("audit.log", record)]).hits(&set), [""; 0]);
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
}
