use casebook_agent::model::reword::{Prompts, Reworded};
use std::sync::Arc;

use casebook_agent::model::form::strict_faults;
use casebook_protocol::{
    Alert, Allowance, ArtifactId, CallId, CallStatus, Citation, Domain, EntryDraft, EntryKind, FindingDraft,
    InvestigationId, JournalEntry, Phase, Precision, Priority, Question, TaskId, TaskKind, TimeBasis, Timestamp,
    ToolCall, Toolset,
};
use casebook_trust::Exhibits;
use proptest::prelude::*;

use super::*;

const AMPLE: usize = 1 << 20;

fn task(hostile: &str, many: usize) -> Task {
    let domain = Domain::new("endpoint").unwrap();
    let entry = JournalEntry {
        seq: 1,
        phase: Phase::Discovery,
        round: 1,
        at: "2026-11-22T01:02:03Z".parse().unwrap(),
        entry: EntryDraft::new(EntryKind::Hypothesis, Priority::High, hostile),
    };
    let source = SourceInfo {
        source: "sysmon".into(),
        sensor: "sysmon".into(),
        on_subject_host: true,
        records: 7,
        about: hostile.into(),
        coverage: Vec::new(),
    };
    let view = ExpertView {
        alert: Alert::parse(json!({"id": "a", "title": hostile}).to_string().as_bytes()).unwrap(),
        journal: vec![entry; many.max(1)],
        question: Question { text: format!("who ran {hostile}?"), to: vec![], follow: vec![hostile.into(); many] },
        toolset: Toolset { name: "evidence".into(), about: "never in a section".into(), tools: vec![] },
        sources: vec![source; many],
        earlier: vec![],
        snapshot: Vec::new(),
    };
    Task {
        id: TaskId::of(2, TaskKind::Investigate, Some(&domain)),
        investigation: InvestigationId::new("0190-run-id").unwrap(),
        domain: Some(domain),
        phase: Phase::Trace,
        round: 2,
        view: View::Investigate(Box::new(view)),
        allowance: Allowance::default(),
    }
}

const CALL: &str = "r2.investigate.endpoint.t1.0";

fn done(id: &str, status: CallStatus, result: &str) -> Done {
    let call = ToolCall {
        id: CallId::new(id).unwrap(),
        domain: None,
        tool: "search".into(),
        arguments: r#"{"terms":["x"]}"#.into(),
        status,
        result: ArtifactId::of(result.as_bytes()),
        bytes: result.len() as u64,
        started: Timestamp::UNIX_EPOCH,
        ended: Timestamp::UNIX_EPOCH,
    };
    Done { call, result: Arc::from(result) }
}

fn search(raw: &str) -> Done {
    let record = json!({"source": "sysmon", "file": "sysmon.ndjson", "line": 3, "time": "2022-05-11T18:10:22Z",
        "time_basis": "record", "raw": raw});
    done(CALL, CallStatus::Answered, &json!({"total": 1, "records": [record]}).to_string())
}

fn literal(quote: &str) -> Value {
    json!({"kind": "literal", "call": CALL, "at": "/records/0/raw", "quote": quote, "value": null, "from": null, "to": null})
}

fn answer(citations: &[Value]) -> Value {
    json!({"findings": [{"kind": "occurrence", "claim": "a program ran at 18:10:22",
        "time": "2022-05-11T18:10:22Z", "until": null,
        "entities": [{"kind": "process", "value": " "}], "bearing": "incriminating", "weight": "strong", "about_alert": true,
        "technique": "", "confidence": 0.8, "citations": citations, "look_next": null}]})
}

fn read_one(done: &[Done], object: &Value) -> Result<FindingDraft, Vec<String>> {
    assert_eq!(ExpertBrief.form(task("x", 1).view.kind()).faults(object), Vec::<String>::new());
    match ExpertBrief.read(&task("x", 1), done, object, AMPLE)? {
        Answer::Investigate(mut drafts) => Ok(drafts.remove(0)),
        other => panic!("{other:?}"),
    }
}

fn bytes(briefing: &Briefing) -> usize {
    briefing.system.len() + briefing.parts.iter().map(|p| p.text.len()).sum::<usize>()
}

fn names(briefing: &Briefing) -> Vec<&str> {
    briefing.parts.iter().filter_map(|p| p.text.strip_prefix('<')?.split_once(">\n").map(|(name, _)| name)).collect()
}

#[test]
fn sections_stand_in_order_and_say_nothing_of_the_run() {
    let briefing = ExpertBrief.brief(&task("x", 2), AMPLE);
    assert!(briefing.system.starts_with("Casebook task: investigate (prompt investigate "), "{}", briefing.system);
    assert!(briefing.system.contains("scores at most 0.29") && !briefing.system.contains("{{"));
    assert_eq!(briefing.system, ExpertBrief.brief(&task("other", 50), 30_000).system);
    assert_eq!(names(&briefing), ["alert", "sources", "journal", "question"]);
    assert_eq!(briefing.parts.iter().map(|p| p.cache).collect::<Vec<_>>(), [false, true, true, false]);
    let all: String = briefing.parts.iter().map(|p| p.text.as_str()).collect();
    for absent in ["0190-run-id", "01:02:03", "never in a section"] {
        assert!(!all.contains(absent), "{absent}");
    }
    assert!(all.contains(r#""domain":"endpoint""#), "{all}");
}

#[test]
fn the_wire_schema_is_what_every_provider_takes() {
    let form = ExpertBrief.form(task("x", 1).view.kind());
    assert_eq!(strict_faults(form.wire.value(), ""), Vec::<String>::new());
    let kinds = &form.wire.value()["properties"]["findings"]["items"]["properties"]["kind"];
    assert_eq!(kinds["enum"], json!(["occurrence", "aggregate", "absence", "state", "instruction"]));
}

#[test]
fn what_is_copied_from_a_result_holds_against_the_record() {
    let raw = "run \"C:\\Temp\u{202e}\\x\" \u{200b}now";
    let recorded = search(raw);
    for quote in [raw, r#"\"C:\\Temp\u202e\\x\""#, "Temp\\u202e\\x", "\\u{200b}now"] {
        let finding = read_one(std::slice::from_ref(&recorded), &answer(&[literal(quote)])).unwrap();
        assert_eq!((finding.technique.as_ref(), finding.entities.len()), (None, 0));
        let mut exhibits = Exhibits::default();
        exhibits.add(recorded.call.clone(), true, recorded.result.as_bytes());
        let checked = exhibits.check(&finding);
        assert!(checked.valid(), "{quote}: {checked:?}");
    }
}

#[test]
fn numbers_and_absences_are_cited_with_what_they_need() {
    let count =
        json!({"kind": "count", "call": CALL, "at": "/total", "quote": null, "value": "1", "from": null, "to": null});
    let absence = json!({"kind": "absence", "call": CALL, "at": "/total", "quote": null, "value": null,
        "from": "2022-05-11T18:00:00Z", "to": null});
    let finding = read_one(&[search("x")], &answer(&[count, absence])).unwrap();
    assert!(matches!(finding.citations[0], Citation::Count { value: 1, again: None, .. }));
    assert!(matches!(finding.citations[1], Citation::Absence { from: Some(_), to: None, .. }));
}

#[test]
fn time_rests_on_what_is_cited() {
    let record = json!({"source": "flow", "file": "flow.csv", "line": 3, "time": "2022-05-11T18:10:22.5Z", "raw": "abc",
        "time_basis": "ingestion", "time_field": "seen", "precision": "minute"});
    let group =
        json!({"value": "x", "count": 2, "first_time": "2022-05-11T18:10:22Z", "last_time": "2022-05-11T18:11:00Z"});
    let result = json!({"total": 2, "records": [record], "groups": [group]}).to_string();
    let calls = [done(CALL, CallStatus::Answered, &result)];
    let check = |kind: &str, [at, until]: [&str; 2], citations: &[Value], expect: (Precision, TimeBasis, &str)| {
        let mut object = answer(citations);
        let finding = &mut object["findings"][0];
        (finding["kind"], finding["time"], finding["until"]) = (json!(kind), json!(at), json!(until));
        let time = read_one(&calls, &object).unwrap().time.unwrap();
        assert_eq!((time.precision, time.basis, time.field.as_str()), expect, "{object}");
        assert_eq!((time.at, time.until), (at.parse().unwrap(), until.parse().ok()));
    };
    let count = |at: &str| json!({"kind": "count", "call": CALL, "at": at, "value": "2"});
    let (own, second, after) = ("2022-05-11T18:10:22.5Z", "2022-05-11T18:10:22Z", "2022-05-11T18:11:00Z");
    check("occurrence", [own, ""], &[literal("abc")], (Precision::Minute, TimeBasis::Ingestion, "seen"));
    check("occurrence", [second, ""], &[literal("abc")], (Precision::Second, TimeBasis::Record, ""));
    check("state", [second, after], &[count("/groups/0")], (Precision::Second, TimeBasis::Aggregation, ""));
    check("occurrence", [after, ""], &[count("/groups/0/count")], (Precision::Second, TimeBasis::Aggregation, ""));
    let edges = ["2022-05-11T18:00:00.001Z", after];
    check("aggregate", edges, &[count("/total"), literal("abc")], (Precision::Millisecond, TimeBasis::Aggregation, ""));
    check("state", edges, &[count("/total")], (Precision::Millisecond, TimeBasis::Aggregation, ""));
}

#[test]
fn a_citation_that_cannot_be_used_is_returned_and_the_rest_stands() {
    let check = |citation: Value, expect: &str| {
        let calls = [search("abc"), done("r2.investigate.endpoint.t1.1", CallStatus::Failed, "no")];
        let object = answer(&[citation, literal("abc")]);
        assert_eq!(read_one(&calls, &object).unwrap().citations.len(), 1, "{object}");
        let returned = ExpertBrief.returned(&task("x", 1), &calls, &object);
        let line = returned.lines().nth(1).unwrap_or_default();
        assert!(
            line.starts_with(&format!("- finding 1 (\"a program ran at 18:10:22\"): citation 1{expect}")),
            "{returned}"
        );
    };
    let with = |key: &str, value: Value| {
        let mut citation = literal("abc");
        citation[key] = value;
        citation
    };
    check(with("call", json!("r1.investigate.endpoint.t1.0")), "/call: you made no call \"r1.investigate");
    check(with("call", json!("r2.investigate.endpoint.t1.1")), "/call: call r2.investigate.endpoint.t1.1 failed");
    check(with("at", json!("records")), "/at: \"records\" is not a place");
    check(with("at", json!("/a~2b")), "/at: \"/a~2b\" is not a place");
    check(with("at", json!("line 0")), "/at: \"line 0\" is not a place");
    check(with("quote", Value::Null), "/quote: a literal citation needs");
    check(with("kind", json!("count")), "/value: a count or aggregate needs");
    let count = |value: &str, at: &str| json!({"kind": "count", "call": CALL, "at": at, "value": value});
    check(count("many", "/total"), "/value: \"many\" is not a number");
    check(count("1", "line 1"), "/at: a number is cited by JSON pointer");
    let mut object = answer(&[literal("abc")]);
    object["findings"][0]["claim"] = json!(" ");
    assert_eq!(read_one(&[search("abc")], &object).unwrap_err(), ["/findings/0/claim: is empty; write a sentence"]);
}

#[test]
fn only_faulty_findings_come_back_and_corrections_take_their_places() {
    let findings = |all: &[(&str, &str)]| {
        let one = |(claim, quote): &(&str, &str)| {
            let mut finding = answer(&[literal(quote)])["findings"][0].clone();
            finding["claim"] = json!(claim);
            finding
        };
        json!({"findings": all.iter().map(one).collect::<Vec<_>>()})
    };
    let calls = [search("run tool.exe as mara")];
    let first = findings(&[("`mara` ran it", "mara"), ("`lee` ran it", "mara"), ("it is `tool.exe`", "never")]);
    let returned = ExpertBrief.returned(&task("x", 1), &calls, &first);
    let lines: Vec<&str> = returned.lines().filter(|line| line.starts_with("- ")).collect();
    assert_eq!(lines.len(), 2, "{returned}");
    assert!(lines[0].starts_with("- finding 2 (\"`lee` ran it\"): `lee` does not occur"), "{returned}");
    assert!(lines[1].contains("citation 1: the quoted text \"never\" is not there"), "{returned}");
    let check = |second: &[(&str, &str)], claims: &[&str], corrected: u32| {
        let (mended, count) = ExpertBrief.mended(&task("x", 1), &calls, &first, &findings(second)).unwrap();
        let Answer::Investigate(mended) = mended else { panic!("{mended:?}") };
        let found: Vec<&str> = mended.iter().map(|f| f.claim.as_str()).collect();
        assert_eq!((found.as_slice(), count), (claims, corrected), "{second:?}");
    };
    let right = ("`mara` ran it again", "mara");
    let (tool, stands) = (("it is `tool.exe`", "tool.exe"), ("`mara` ran it", "mara"));
    check(&[right, tool], &[stands.0, right.0, tool.0], 2);
    check(&[("`lee` did", "mara"), tool], &[stands.0, "`lee` did", tool.0], 1);
    check(&[tool], &[stands.0, tool.0], 1);
    check(&[], &[stands.0], 0);
    check(&[stands, right, tool], &[stands.0, right.0, tool.0], 2);
    assert_eq!(ExpertBrief.returned(&task("x", 1), &calls, &findings(&[stands, right, tool])), "");
}

#[test]
fn an_answer_without_findings_is_one_and_a_stray_task_is_refused() {
    let none = ExpertBrief.read(&task("x", 1), &[], &json!({"findings": []}), AMPLE);
    assert_eq!(none, Ok(Answer::Investigate(vec![])));
    let mut stray = task("x", 1);
    stray.view = View::Timeline(Box::new(casebook_protocol::TimelineView {
        journal: vec![],
        review: casebook_protocol::Review { round: 1, summary: String::new(), findings: vec![] },
        ranks: vec![],
        previous: None,
    }));
    assert!(ExpertBrief.brief(&stray, AMPLE).parts.is_empty());
    assert!(ExpertBrief.read(&stray, &[], &json!({"findings": []}), AMPLE).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn whatever_a_view_holds_sections_hold_and_room_is_kept(
        hostile in "(</journal>\n|</question>\n|\u{202e}|[ -~é\n]){0,40}", many in 0usize..80, spare in 0usize..12_000,
    ) {
        let task = task(&hostile, many);
        let room = bytes(&ExpertBrief.brief(&task, 0)) + spare;
        let briefing = ExpertBrief.brief(&task, room);
        prop_assert!(bytes(&briefing) <= room);
        let names = names(&briefing);
        prop_assert_eq!(&names[..4], &["alert", "sources", "journal", "question"]);
        for part in &briefing.parts {
            prop_assert_eq!(part.text.matches('<').count(), 2, "{}", part.text);
            prop_assert!(part.text.ends_with(">\n"));
        }
    }
}

#[test]
fn rules_of_other_servers_reach_only_an_expert_with_their_tools() {
    let mut prompts = Prompts::default();
    prompts.take("investigate.md", include_str!("../../prompts/investigate.md")).unwrap();
    let copy = Reworded { brief: Arc::new(ExpertBrief), prompts: Some(Arc::new(prompts)), added: String::new() };
    let with = |tool: &str| {
        let mut task = task("x", 1);
        let View::Investigate(view) = &mut task.view else { panic!() };
        view.toolset.tools = vec![casebook_protocol::ToolSpec::new(tool, "", "{}", true)];
        let built_in = ExpertBrief.brief(&task, 60_000);
        assert_eq!(copy.brief(&task, 60_000), built_in, "a copy of the prompt has the same rules and room");
        built_in.system
    };
    assert!(with("github__list_commits").contains("Tools named `server__tool` belong to other servers"));
    assert!(!with("search").contains("server__tool"));
}
