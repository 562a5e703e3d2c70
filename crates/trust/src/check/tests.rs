use serde_json::json;

use casebook_protocol::RecordRef;

use super::*;
use casebook_protocol::{Bearing, CallId, EventTime, Precision, Score, Weight};

fn id(text: &str) -> CallId {
    CallId::new(text).unwrap()
}

fn call(name: &str, tool: &str, arguments: &str, result: &[u8]) -> ToolCall {
    ToolCall {
        id: id(name),
        domain: None,
        tool: tool.into(),
        arguments: arguments.into(),
        status: CallStatus::Answered,
        result: ArtifactId::of(result),
        bytes: result.len() as u64,
        started: Timestamp::UNIX_EPOCH,
        ended: Timestamp::UNIX_EPOCH,
    }
}

const FROM: &str = "2024-01-01T00:00:00Z";
const TO: &str = "2024-01-02T00:00:00Z";

fn exhibits() -> Exhibits {
    let found = json!({"total": 2, "returned": 0, "total_is_exact": true, "window": {"from": null, "to": null}, "searched": ["auth", "edr"], "records": [
        {"source": "auth", "file": "auth.log", "line": 7, "time": "2024-01-01T10:00:00.5Z", "time_basis": "record", "raw": "sshd: Accepted publickey for mara from 10.1.2.3"},
        {"source": "flow", "file": "flow.csv", "line": 3, "time": "2024-01-01T10:00:00Z", "time_basis": "aggregation", "raw": "10.1.2.3,22,376"}]})
    .to_string();
    let none = json!({"total": 0, "total_is_exact": true, "window": {"from": FROM, "to": TO}, "searched": ["edr"], "records": []}).to_string();
    let mut all = Exhibits::default();
    let query = r#"{"terms":["mara"]}"#;
    let absent = r#"{"from":"2024-01-01T00:00:00Z","terms":["insmod"],"to":"2024-01-02T00:00:00Z"}"#;
    all.add(call("t.0", "search", query, found.as_bytes()), true, found.as_bytes());
    all.add(call("t.1", "search", query, found.as_bytes()), true, found.as_bytes());
    all.add(call("n.0", "search", absent, none.as_bytes()), true, none.as_bytes());
    all.add(call("n.1", "search", absent, none.as_bytes()), true, none.as_bytes());
    all
}

fn finding(claim: &str, citations: Vec<Citation>) -> FindingDraft {
    FindingDraft {
        kind: FindingKind::State,
        claim: claim.into(),
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

fn literal(pointer: &str, quote: &str) -> Citation {
    Citation::Literal { call: id("t.0"), at: Locator::Pointer(pointer.into()), quote: quote.into() }
}

fn at(pointer: &str) -> Locator {
    Locator::Pointer(pointer.into())
}

#[track_caller]
fn check(draft: &FindingDraft, expect: &str) {
    let checked = exhibits().check(draft);
    let mut words: Vec<String> =
        checked.citations.iter().map(|c| format!("{}: {}", if c.holds { "holds" } else { "fails" }, c.note)).collect();
    words.extend(checked.faults.clone());
    assert_eq!(words.join(" | "), expect);
}

#[test]
fn a_literal_citation_must_stand_in_the_recorded_bytes() {
    check(
        &finding("`mara` came from 10.1.2.3", vec![literal("/records/0", "Accepted publickey for mara")]),
        "holds: quoted text found",
    );
    check(
        &finding("x", vec![literal("/records/0", "Accepted password")]),
        "fails: the quoted text \"Accepted password\" is not there",
    );
    check(&finding("x", vec![literal("/records/9", "mara")]), "fails: nothing stands at \"/records/9\" in the result");
    check(&finding("x", vec![literal("/records/0", "a")]), "fails: a quotation has at least three characters");
    let other = Citation::Literal { call: id("made-up"), at: at(""), quote: "mara".into() };
    check(&finding("x", vec![other]), "fails: no tool call made-up is on record");
}

#[test]
fn a_literal_citation_leads_to_file_and_line() {
    let checked = exhibits().check(&finding("x", vec![literal("/records/0/raw", "mara")]));
    assert_eq!(checked.records(), [RecordRef { source: "auth".into(), file: "auth.log".into(), line: 7 }]);
    assert_eq!(checked.sources().into_iter().collect::<Vec<_>>(), ["auth"]);
}

#[test]
fn a_claim_may_not_say_more_than_its_evidence() {
    check(
        &finding("from 10.1.2.4", vec![literal("/records/0", "mara")]),
        "holds: quoted text found | the address 10.1.2.4 does not occur in what is cited",
    );
    let mut draft = finding("x", vec![literal("/records/0", "mara")]);
    draft.entities.push(casebook_protocol::Entity { kind: casebook_protocol::EntityKind::User, value: "root".into() });
    check(&draft, "holds: quoted text found | entity `root` does not occur in what is cited");
}

#[test]
fn counts_are_recomputed() {
    let count =
        |value, again: Option<&str>| Citation::Count { call: id("t.0"), at: at("/total"), value, again: again.map(id) };
    check(&finding("2 records name `mara`", vec![count(2, Some("t.1"))]), "holds: 2, recomputed");
    check(&finding("x", vec![count(3, Some("t.1"))]), "fails: the citation says 3, the result says 2");
    check(&finding("x", vec![count(2, None)]), "fails: the query was not made again");
    check(&finding("x", vec![count(2, Some("t.0"))]), "fails: the query was not made again");
    check(&finding("x", vec![count(2, Some("n.1"))]), "fails: tool call n.1 is another query");
}

#[test]
fn an_absence_holds_only_over_the_window_that_was_searched() {
    let absence = |from: Option<&str>, to: &str| Citation::Absence {
        call: id("n.0"),
        at: at("/total"),
        from: from.map(|t| t.parse().unwrap()),
        to: Some(to.parse().unwrap()),
        again: Some(id("n.1")),
    };
    check(&finding("no `insmod`", vec![absence(Some(FROM), TO)]), "holds: nothing found, searched again");
    let beyond = "fails: the absence is claimed over a window that was not searched";
    check(&finding("no `insmod`", vec![absence(Some(FROM), "2024-01-03T00:00:00Z")]), beyond);
    check(&finding("no `insmod`", vec![absence(None, TO)]), beyond);
    let found = Citation::Absence { call: id("t.0"), at: at("/total"), from: None, to: None, again: Some(id("t.1")) };
    check(&finding("x", vec![found]), "fails: the citation says that nothing is there, the result says 2");
    // A search that was asked for no records returns none.
    let none = Citation::Absence { call: id("t.0"), at: at("/returned"), from: None, to: None, again: Some(id("t.1")) };
    check(&finding("x", vec![none]), "fails: the citation says that nothing is there, the query found 2 records");
}

#[test]
fn the_time_of_an_occurrence_is_the_time_of_a_cited_record_on_no_better_basis() {
    let occurrence = |time: &str, basis, pointer: &str| {
        let mut draft = finding("x", vec![literal(pointer, "10.1.2.3")]);
        draft.kind = FindingKind::Occurrence;
        draft.time = Some(EventTime {
            at: time.parse().unwrap(),
            until: None,
            precision: Precision::Second,
            basis,
            field: String::new(),
        });
        draft
    };
    check(&occurrence("2024-01-01T10:00:00.5Z", TimeBasis::Record, "/records/0"), "holds: quoted text found");
    check(
        &occurrence("2024-01-01T10:00:01Z", TimeBasis::Record, "/records/0"),
        "holds: quoted text found | no cited record is of 2024-01-01T10:00:01Z",
    );
    check(
        &occurrence("2024-01-01T10:00:00Z", TimeBasis::Record, "/records/1"),
        "holds: quoted text found | the time is given as record's own time, the record has it as time of an aggregate",
    );
}

#[test]
fn bytes_that_are_not_the_artifact_named_cannot_be_cited() {
    let mut all = Exhibits::default();
    all.add(call("t.0", "search", "{}", b"one"), true, b"two");
    let checked = all
        .check(&finding("x", vec![Citation::Literal { call: id("t.0"), at: Locator::Line(1), quote: "two".into() }]));
    assert!(!checked.valid());
}

#[test]
fn a_quotation_leads_to_one_record() {
    let check = |pointer: &str, expect: &str| check(&finding("x", vec![literal(pointer, "mara")]), expect);
    check("/records", "fails: \"/records\" holds 2 records, not one: cite the one that shows it");
    check("", "fails: \"\" holds 2 records, not one: cite the one that shows it");
}

#[test]
fn a_quotation_may_be_cut_where_it_says_so() {
    check(&finding("x", vec![literal("/records/0", "…Accepted ... for mara…")]), "holds: quoted text found");
    check(
        &finding("x", vec![literal("/records/0", "for mara … Accepted")]),
        "fails: the quoted text \"for mara … Accepted\" is not there",
    );
}

#[test]
fn a_quotation_may_have_points_of_its_own() {
    let mut corpus = crate::claim::Corpus::default();
    corpus.add_text(r#"payload "0...B" at 3"#);
    for quote in [r#"load "0...B"#, r#"…load "0...B…"#, r#"...load "0...B..."#, r#"…"0...B" at…"#] {
        assert!(corpus.has_quote(quote), "{quote}");
    }
    assert!(!corpus.has_quote("…0...C…"));
}

#[test]
fn an_absence_is_of_all_that_was_asked_for_together() {
    let none = json!({"total": 0, "total_is_exact": true, "window": {"from": null, "to": null}, "searched": ["edr"], "records": []}).to_string();
    let query = r#"{"terms":["insmod","nothing"],"where":[{"field":"user","op":"eq","value":"root"}]}"#;
    let mut all = Exhibits::default();
    all.add(call("a.0", "search", query, none.as_bytes()), true, none.as_bytes());
    all.add(call("a.1", "search", query, none.as_bytes()), true, none.as_bytes());
    let absence = Citation::Absence { call: id("a.0"), at: at("/total"), from: None, to: None, again: Some(id("a.1")) };
    let holds = |claim: &str| all.check(&finding(claim, vec![absence.clone()])).valid();
    assert!(!holds("no record names `insmod`"));
    assert!(!holds("no record names `insmod` and `nothing`"));
    assert!(holds("no record of `root` names both `insmod` and `nothing`"));
}

#[test]
fn a_time_may_be_cut_to_the_precision_that_is_stated() {
    let cut = |time: &str, precision| {
        let mut draft = finding("x", vec![literal("/records/0", "10.1.2.3")]);
        let at = time.parse().unwrap();
        draft.time = Some(EventTime { at, until: None, precision, basis: TimeBasis::Record, field: String::new() });
        exhibits().check(&draft).valid()
    };
    assert!(cut("2024-01-01T10:00:00Z", Precision::Second));
    assert!(cut("2024-01-01T10:00:00Z", Precision::Minute));
    assert!(!cut("2024-01-01T10:00:00Z", Precision::Millisecond));
    assert!(!cut("2024-01-01T10:00:01Z", Precision::Second));
}
