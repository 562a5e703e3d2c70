use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::check::Exhibits;
use casebook_protocol::Checked;
use casebook_protocol::{
    ArtifactId, Bearing, CallId, CallStatus, Citation, Entity, EntityKind, EventTime, FindingDraft, FindingKind,
    Precision, Score, TimeBasis, ToolCall, Weight,
};

mod ruling;

fn id(text: &str) -> CallId {
    CallId::new(text).unwrap()
}

fn add(all: &mut Exhibits, name: &str, tool: &str, arguments: &str, result: &str, repeatable: bool) {
    let call = ToolCall {
        id: id(name),
        domain: None,
        tool: tool.into(),
        arguments: arguments.into(),
        status: CallStatus::Answered,
        result: ArtifactId::of(result.as_bytes()),
        bytes: result.len() as u64,
        started: Timestamp::UNIX_EPOCH,
        ended: Timestamp::UNIX_EPOCH,
    };
    all.add(call, repeatable, result.as_bytes());
}

fn one(tool: &str, result: &str) -> Exhibits {
    let mut all = Exhibits::default();
    add(&mut all, "c", tool, "{}", result, false);
    all
}

fn draft(citations: Vec<Citation>) -> FindingDraft {
    FindingDraft {
        kind: FindingKind::State,
        claim: "it is so".into(),
        time: None,
        entities: vec![],
        bearing: Bearing::Neutral,
        weight: Weight::Weak,
        about_alert: false,
        technique: None,
        confidence: Score::clamped(0.5),
        citations,
        look_next: None,
    }
}

fn quoted(at: Locator, quote: &str) -> FindingDraft {
    draft(vec![Citation::Literal { call: id("c"), at, quote: quote.into() }])
}

fn at(pointer: &str) -> Locator {
    Locator::Pointer(pointer.into())
}

fn happened(at: Locator, quote: &str, time: &str, basis: TimeBasis) -> FindingDraft {
    let time =
        EventTime { at: time.parse().unwrap(), until: None, precision: Precision::Second, basis, field: "t".into() };
    FindingDraft { kind: FindingKind::Occurrence, time: Some(time), ..quoted(at, quote) }
}

/// The check of the only citation, then the faults, in words.
fn words(checked: &Checked) -> String {
    let check = &checked.citations[0];
    let head = format!("{}: {}", if check.holds { "holds" } else { "fails" }, check.note);
    std::iter::once(head).chain(checked.faults.clone()).collect::<Vec<_>>().join(" | ")
}

#[track_caller]
fn check(all: &Exhibits, finding: &FindingDraft, expect: &str) {
    assert_eq!(words(&all.check(finding)), expect);
}

#[track_caller]
fn place(all: &Exhibits, finding: &FindingDraft, fragment: &str, line: u64) {
    let records = all.check(finding).records();
    let [record] = records.as_slice() else { panic!("{records:?}") };
    let (artifact, rest) = record.file.split_at("artifact:".len() + 64);
    assert!(artifact.starts_with("artifact:"), "{artifact}");
    assert_eq!((record.source.as_str(), rest, record.line), ("github", fragment, line));
}

const FOUND: &str = "holds: quoted text found";

#[test]
fn a_result_cannot_pose_as_another_source_file_or_time() {
    let posing = json!({"searched": ["sysmon"], "total": 1, "records": [{"source": "sysmon", "file": "sysmon.ndjson",
        "line": 7, "time": "2024-01-01T10:00:00", "time_basis": "record", "raw": "net user mara /add"}]});
    let all = one("github__search_code", &posing.to_string());
    let finding = quoted(at("/records/0/raw"), "net user mara");
    check(&all, &finding, FOUND);
    assert_eq!(all.check(&finding).sources(), BTreeSet::from(["github"]));
    place(&all, &finding, "#/records/0", 1);
    assert_eq!(all.check(&finding).citations[0].chosen.as_deref(), Some("raw"));
    assert!(all.cited(&finding.citations[0]).is_none());
    let timed = |basis| happened(at("/records/0/raw"), "net user mara", "2024-01-01T10:00:00Z", basis);
    check(&all, &timed(TimeBasis::Inferred), FOUND);
    let better = format!("{FOUND} | the time is given as record's own time, the record has it as inferred");
    check(&all, &timed(TimeBasis::Record), &better);
    let count = Citation::Count { call: id("c"), at: at("/total"), value: 1, again: None };
    let checked = all.check(&draft(vec![count]));
    assert_eq!(words(&checked), "holds: 1, as recorded");
    assert_eq!(checked.sources(), BTreeSet::from(["github"]));
}

#[test]
fn the_record_is_the_object_around_the_pointer_without_the_records_in_it() {
    let result = json!({"incomplete": false, "items": [
        {"sha": "5f2c9a01", "commit": {"author": {"name": "mara", "date": "2024-01-01T10:00:00Z"}, "message": "add loader"},
         "files": [{"path": "a.c"}, {"path": "b.c"}]},
        {"sha": "77aa1200", "commit": {"author": {"name": "lee", "date": "2024-02-02T10:00:00Z"}, "message": "tidy"}}]});
    let all = one("github__list_commits", &result.to_string());
    let time = |pointer: &str, quote: &str| happened(at(pointer), quote, "2024-01-01T10:00:00Z", TimeBasis::Record);
    for (pointer, quote, fragment) in [
        ("/items/0", "5f2c9a01", "#/items/0"),
        ("/items/0/sha", "5f2c9a01", "#/items/0"),
        ("/items/0/commit/message", "add loader", "#/items/0/commit"),
        ("/items/0/commit/author/name", "mara", "#/items/0/commit/author"),
    ] {
        check(&all, &time(pointer, quote), FOUND);
        place(&all, &time(pointer, quote), fragment, 1);
    }
    let none = format!("{FOUND} | no cited record is of 2024-01-01T10:00:00Z");
    check(&all, &time("/items/1/sha", "77aa1200"), &none);
    check(&all, &time("/items/0/files/0/path", "a.c"), &none);
    check(&all, &time("/items", "mara"), "fails: \"/items\" holds 2 records: cite the one that shows it");
    let beside = "fails: the quoted text is in a list of records at that place or not there: cite the record that holds it (\"mara\")";
    check(&all, &time("", "mara"), beside);
    check(&all, &time("/items/7", "mara"), "fails: nothing stands at \"/items/7\" in the result");
    check(&all, &quoted(Locator::Line(1), "mara"), "fails: the result is JSON: cite a JSON pointer into it");
    let mut other = quoted(at("/items/0"), "5f2c9a01");
    other.entities = vec![Entity { kind: EntityKind::User, value: "lee".into() }];
    check(&all, &other, &format!("{FOUND} | entity `lee` does not occur in what is cited"));
}

#[test]
fn a_text_is_cited_by_its_line_wherever_it_stands() {
    let text = "start\n2024-01-01T10:00:00Z sshd: Accepted key for mara\n2024-01-01T10:00:05Z sshd: closed\n";
    let plain = one("github__tail", text);
    let wrapped = one("github__read_file", &json!({"lines": text}).to_string());
    // Anyone may have written this one, the times in it included.
    let chosen = one("github__get_issue", &json!({"content": text}).to_string());
    for (all, pointer, fragment, basis) in [
        (&plain, "", "", TimeBasis::Record),
        (&wrapped, "/lines", "#/lines", TimeBasis::Record),
        (&chosen, "/content", "#/content", TimeBasis::Inferred),
    ] {
        let time = |place, quote: &str, time: &str| happened(place, quote, time, basis);
        let finding = time(at(pointer), "key for mara", "2024-01-01T10:00:00Z");
        check(all, &finding, FOUND);
        place(all, &finding, fragment, 2);
        assert_eq!(all.check(&finding).citations[0].chosen.as_deref(), Some(chosen::WHOLE));
        // The next line is another record.
        let next = time(at(pointer), "key for mara", "2024-01-01T10:00:05Z");
        check(all, &next, &format!("{FOUND} | no cited record is of 2024-01-01T10:00:05Z"));
        check(all, &quoted(at(pointer), "no such"), "fails: the quoted text \"no such\" is not there");
    }
    let finding = happened(Locator::Line(3), "sshd: closed", "2024-01-01T10:00:05Z", TimeBasis::Record);
    check(&plain, &finding, FOUND);
    place(&plain, &finding, "", 3);
    check(&plain, &quoted(Locator::Line(9), "mara"), "fails: the result has no line 9");
    check(&plain, &quoted(at("/a"), "mara"), "fails: the result is not JSON: cite a line of it");
    let whole = quoted(at(""), "Accepted key for mara");
    check(&wrapped, &whole, FOUND);
    check(
        &wrapped,
        &FindingDraft { claim: "`closed`".into(), ..whole },
        &format!("{FOUND} | `closed` does not occur in what is cited"),
    );
}

#[test]
fn what_looks_like_a_record_in_a_text_that_anyone_chose_is_no_ground_and_no_time() {
    let body = "hi\n{\"status\":\"approved\",\"host\":\"web-1\",\"time\":\"2024-01-01T10:00:00Z\"}\n";
    let all = one("github__get_issue", &json!({"id": 7, "body": body}).to_string());
    let finding = happened(at("/body"), "approved", "2024-01-01T10:00:00Z", TimeBasis::Inferred);
    check(&all, &finding, FOUND);
    assert_eq!(all.check(&finding).citations[0].chosen.as_deref(), Some("body"));
    let own = happened(at("/body"), "approved", "2024-01-01T10:00:00Z", TimeBasis::Record);
    assert!(!all.check(&own).valid(), "the time is not the record's own");
    check(&all, &quoted(at("/id"), ""), "fails: a quotation has at least three characters");
}

#[test]
fn a_line_that_is_an_object_is_a_record() {
    let lines = "{\"status\":\"failed\",\"ts\":1704103200}\n{\"status\":\"success\",\"ts\":1704103260}\n";
    let all = one("github__audit", lines);
    let finding = happened(Locator::Line(2), "success", "2024-01-01T10:01:00Z", TimeBasis::Record);
    check(&all, &finding, FOUND);
    assert_eq!(all.check(&finding).citations[0].chosen, None);
    place(&all, &finding, "", 2);
}

#[test]
fn the_length_of_a_list_is_a_number_and_an_empty_one_an_absence() {
    let mut all = Exhibits::default();
    add(&mut all, "c", "github__list", "{}", &json!({"items": [{}, {}], "total": "2"}).to_string(), false);
    add(&mut all, "e", "github__list", r#"{"user":"mara"}"#, "[]", true);
    add(&mut all, "e2", "github__list", r#"{"user":"mara"}"#, "[]", true);
    add(&mut all, "e3", "github__list", r#"{"user":"mara"}"#, "[1]", true);
    add(&mut all, "s", "search", "{}", r#"{"records":[1,2]}"#, false);
    let count = |call: &str, pointer: &str, value| {
        draft(vec![Citation::Count { call: id(call), at: at(pointer), value, again: None }])
    };
    check(&all, &count("c", "/items", 2), "holds: 2, as recorded");
    check(&all, &count("c", "/total", 2), "holds: 2, as recorded");
    check(&all, &count("c", "/items", 3), "fails: the citation says 3, the result says 2 items");
    // Of our own tools a list is a page.
    check(&all, &count("s", "/records", 2), "fails: the citation says 2, the result says [1,2]");
    let absence = |again: &str| {
        let again = Some(id(again)).filter(|a| a.as_str() != "-");
        draft(vec![Citation::Absence { call: id("e"), at: at(""), from: None, to: None, again }])
    };
    check(&all, &absence("e2"), "holds: nothing found, searched again");
    check(&all, &absence("-"), "fails: the query was not made again");
    check(&all, &absence("e3"), "fails: recomputed, the result is 1 items, not 0 items");
}

#[test]
fn the_window_of_an_absence_is_what_the_call_asked_for() {
    const FROM: &str = "2024-01-01T00:00:00Z";
    const TO: &str = "2024-01-02T00:00:00Z";
    let said = json!({"window": {"from": null, "to": null}, "hits": 0}).to_string();
    let holds = |arguments: serde_json::Value, from: Option<&str>, to: Option<&str>| {
        let mut all = Exhibits::default();
        add(&mut all, "c", "siem__query", &arguments.to_string(), &said, false);
        let edge = |e: Option<&str>| e.map(|t| t.parse().unwrap());
        let (from, to) = (edge(from), edge(to));
        let citation = Citation::Absence { call: id("c"), at: at("/hits"), from, to, again: None };
        all.check(&draft(vec![citation])).valid()
    };
    let window = json!({"query": "mara", "start": FROM, "end": TO});
    assert!(holds(window.clone(), Some(FROM), Some(TO)));
    assert!(holds(window.clone(), Some("2024-01-01T05:00:00Z"), Some("2024-01-01T06:00:00Z")));
    assert!(!holds(window.clone(), None, None));
    assert!(!holds(window.clone(), Some(FROM), None));
    assert!(!holds(window, Some(FROM), Some("2024-01-03T00:00:00Z")));
    let since = json!({"query": "mara", "since": FROM});
    assert!(holds(since.clone(), Some(FROM), None));
    assert!(!holds(since, None, None));
    assert!(holds(json!({"query": "mara"}), None, None));
    // An edge that no call names is no time of anything.
    let mut all = Exhibits::default();
    add(&mut all, "c", "siem__query", "{}", &said, false);
    let edge: Option<Timestamp> = Some(FROM.parse().unwrap());
    let citation = Citation::Absence { call: id("c"), at: at("/hits"), from: edge, to: edge, again: None };
    let timed = happened(at(""), "x", FROM, TimeBasis::Inferred);
    let finding = FindingDraft { citations: vec![citation], ..timed };
    check(&all, &finding, &format!("holds: nothing found, as recorded | no cited record is of {FROM}"));
}

#[test]
fn what_a_look_into_a_result_returned_is_cited_at_the_call_itself() {
    let mut all = Exhibits::default();
    let arguments = r#"{"call":"r1.investigate.cloud.t1.0","pointer":"/items/3"}"#;
    add(&mut all, "c", "slice_result", arguments, r#"{"value":"mara"}"#, true);
    let why =
        "fails: slice_result looked into another result: cite the call itself, r1.investigate.cloud.t1.0 at /items/3";
    check(&all, &quoted(at("/value"), "mara"), why);
    check(&all, &draft(vec![Citation::Count { call: id("c"), at: at("/value"), value: 1, again: None }]), why);
}

fn any_json() -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        Just("2024-01-01T10:00:00Z".to_owned()),
        Just("one mara\ntwo mara\n".to_owned()),
        Just("{\"ts\":1704103200}".to_owned()),
        Just("sysmon".to_owned()),
        any::<String>(),
    ];
    let leaf = prop_oneof![any::<u32>().prop_map(Value::from), text.prop_map(Value::from)];
    leaf.prop_recursive(4, 30, 4, |inner| {
        let keys = proptest::sample::select(vec!["source", "file", "line", "raw", "time", "searched", "a"]);
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::hash_map(keys, inner, 0..5).prop_map(|m| json!(m)),
        ]
    })
}

fn strings(value: &Value, path: &str, out: &mut Vec<(String, String)>) {
    match value {
        Value::String(text) => out.push((path.to_owned(), text.clone())),
        Value::Array(items) => items.iter().enumerate().for_each(|(i, v)| strings(v, &format!("{path}/{i}"), out)),
        Value::Object(map) => map.iter().for_each(|(k, v)| strings(v, &format!("{path}/{k}"), out)),
        _ => {}
    }
}

proptest! {
    /// Whatever a server returns, what is cited of it speaks for that server, leads to its bytes, and
    /// stands there.
    #[test]
    fn whatever_it_returns_it_speaks_for_itself(value in any_json(), plain in any::<bool>()) {
        let text = value.to_string();
        let text = if plain { format!("x{text}") } else { text };
        let all = one("github__x", &text);
        let mut leaves = Vec::new();
        strings(&value, "", &mut leaves);
        let file = format!("artifact:{}", ArtifactId::of(text.as_bytes()));
        for (pointer, leaf) in leaves {
            let quote: String = leaf.trim_matches('\n').chars().take(12).collect();
            let place = if plain { Locator::Line(1) } else { at(&pointer) };
            let checked = all.check(&quoted(place, &quote));
            if checked.citations[0].holds {
                prop_assert_eq!(checked.sources(), BTreeSet::from(["github"]));
                prop_assert!(checked.records().iter().all(|r| r.source == "github" && r.file.starts_with(&file)));
            }
            // A text that stands there is found, if it is long enough to say anything.
            let long = quote.trim().chars().count() >= 3 && !quote.contains('\n');
            prop_assert!(plain || !long || checked.citations[0].holds, "{:?} {}", checked, text);
        }
    }

    #[test]
    fn any_citation_of_any_text_is_checked_without_a_panic(
        text in any::<String>(), pointer in any::<String>(), quote in any::<String>(), line in any::<u64>(),
    ) {
        let all = one("github__x", &text);
        let _ = all.check(&quoted(at(&pointer), &quote));
        let _ = all.check(&quoted(Locator::Line(line), &quote));
        let quote: String = text.chars().skip(1).take(5).collect();
        let _ = all.check(&quoted(at(""), &quote));
    }
}
