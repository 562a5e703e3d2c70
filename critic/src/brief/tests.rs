use casebook_agent::model::form::strict_faults;
use casebook_protocol::{
    Allowance, Bearing, CallId, CheckedFinding, Citation, CitationCheck, Coherence, Credibility, Domain, DomainToolset,
    EntryDraft, EntryKind, EventTime, Finding, FindingDraft, FindingId, FindingKind, InvestigationId, JournalEntry,
    Locator, Phase, Precision, Priority, Review, ReviewView, Reviewed, Score, TaskId, TaskKind, TimeBasis, Timeline,
    TimelineEvent, TimelineView, Toolset, Weight,
};
use proptest::prelude::*;
use serde_json::json;

use super::*;

const AMPLE: usize = 1 << 20;

fn id(round: u32, n: usize) -> FindingId {
    FindingId::of(round, &Domain::new("endpoint").unwrap(), n)
}

fn time() -> EventTime {
    EventTime {
        at: "2022-05-11T18:10:22Z".parse().unwrap(),
        until: None,
        precision: Precision::Second,
        basis: TimeBasis::Record,
        field: "FieldOfEvidence".into(),
    }
}

fn finding(round: u32, n: usize, hostile: &str) -> CheckedFinding {
    let call = CallId::new("r1.investigate.endpoint.t1.0").unwrap();
    let citation = Citation::Literal { call, at: Locator::Pointer("/records/0/raw".into()), quote: hostile.into() };
    let check = CitationCheck {
        holds: true,
        note: "quoted text found".into(),
        artifact: None,
        records: vec![],
        sources: vec!["sysmon".into()],
        chosen: None,
    };
    let draft = FindingDraft {
        kind: FindingKind::Occurrence,
        claim: format!("it ran {hostile}"),
        time: Some(time()),
        entities: vec![],
        bearing: Bearing::Incriminating,
        weight: Weight::Strong,
        about_alert: true,
        technique: None,
        confidence: Score::clamped(0.8),
        citations: vec![citation],
        look_next: None,
    };
    CheckedFinding {
        finding: Finding { id: id(round, n), domain: Domain::new("endpoint").unwrap(), round, draft },
        checked: casebook_protocol::Checked { citations: vec![check], faults: vec![] },
    }
}

fn journal(hostile: &str) -> Vec<JournalEntry> {
    vec![JournalEntry {
        seq: 1,
        phase: Phase::Discovery,
        round: 1,
        at: "2026-11-22T01:02:03Z".parse().unwrap(),
        entry: EntryDraft::new(EntryKind::Hypothesis, Priority::High, hostile),
    }]
}

fn task(view: View) -> Task {
    Task {
        id: TaskId::of(2, view.kind(), None),
        investigation: InvestigationId::new("0190-run-id").unwrap(),
        domain: None,
        phase: Phase::Trace,
        round: 2,
        view,
        allowance: Allowance::default(),
    }
}

fn review(hostile: &str, many: usize) -> Task {
    let toolset = Toolset { name: "evidence".into(), about: "not here".into(), tools: vec![] };
    task(View::Review(Box::new(ReviewView {
        accounting: None,
        alert: Some(casebook_protocol::Alert::parse(br#"{"id":"a"}"#).unwrap()),
        question: Some(casebook_protocol::Question { text: hostile.into(), to: vec![], follow: vec![] }),
        out_of_reach: vec![],
        notes: vec![],
        coverage: Vec::new(),
        journal: journal(hostile),
        findings: (1..=many).map(|n| finding(2, n, hostile)).collect(),
        earlier: (1..=many / 2).map(|n| finding(1, n, hostile)).collect(),
        toolsets: vec![DomainToolset { domain: Domain::new("endpoint").unwrap(), toolset }],
        limits: vec!["endpoint: 120 tool calls".into()],
    })))
}

fn timeline(hostile: &str, before: usize, many: usize) -> Task {
    let event = |n: usize| TimelineEvent {
        time: time(),
        description: format!("event {n} {hostile}"),
        findings: vec![id(1, n)],
        score: Score::clamped(0.5 + n as f64 / 1000.0),
        evidence: vec![],
    };
    let reviewed = |n: usize| {
        let CheckedFinding { finding, checked } = finding(2, n, hostile);
        Reviewed {
            finding,
            checked,
            score: Score::clamped(0.8),
            label: Credibility::HighlyPlausible,
            proposed: Score::clamped(0.8),
            capped_by: vec![],
            rationale: hostile.into(),
            corroborated_by: vec![],
            contradicted_by: vec![],
        }
    };
    task(View::Timeline(Box::new(TimelineView {
        journal: journal(hostile),
        ranks: vec![],
        review: Review { round: 2, summary: hostile.into(), findings: (1..=many).map(reviewed).collect() },
        previous: Some(Timeline {
            version: 1,
            round: 1,
            narrative: hostile.into(),
            events: (1..=before).map(event).collect(),
            gaps: vec![],
            score: Score::ZERO,
            label: Coherence::Invalid,
        }),
    })))
}

fn bytes(briefing: &Briefing) -> usize {
    briefing.system.len() + briefing.parts.iter().map(|p| p.text.len()).sum::<usize>()
}

fn names(briefing: &Briefing) -> Vec<&str> {
    briefing.parts.iter().filter_map(|p| p.text.strip_prefix('<')?.split_once(">\n").map(|(name, _)| name)).collect()
}

fn content(briefing: &Briefing, name: &str) -> Value {
    let part = briefing.parts.iter().find(|p| p.text.starts_with(&format!("<{name}>"))).unwrap();
    serde_json::from_str(part.text.lines().nth(1).unwrap()).unwrap()
}

#[test]
fn both_prompts_hold_their_rubric_and_rules() {
    for (task, rubric, name) in
        [(review("x", 1), CREDIBILITY_RUBRIC, "review"), (timeline("x", 1, 1), COHERENCE_RUBRIC, "timeline")]
    {
        let briefing = CriticBrief.brief(&task, AMPLE);
        assert!(briefing.system.starts_with(&format!("Casebook task: {name} (prompt {}", briefing.prompt)));
        assert!(rubric.lines().all(|line| briefing.system.contains(line)) && !briefing.system.contains("{{"));
    }
    let system = CriticBrief.brief(&timeline("x", 1, 1), AMPLE).system;
    assert!(system.contains(CONSOLIDATION_RULES) && system.contains("At most 3,"));
    assert!(CriticBrief.brief(&review("x", 1), AMPLE).system.contains("Judge only the submitted findings"));
    assert_eq!(system, CriticBrief.brief(&timeline("other", 30, 30), 40_000).system);
}

#[test]
fn sections_stand_in_order_and_say_nothing_of_the_run() {
    let briefing = CriticBrief.brief(&review("x", 2), AMPLE);
    assert_eq!(names(&briefing), ["alert", "toolsets", "journal", "question", "limits", "earlier", "findings"]);
    assert_eq!(
        briefing.parts.iter().map(|p| p.cache).collect::<Vec<_>>(),
        [false, true, true, false, false, false, false]
    );
    assert_eq!(
        names(&CriticBrief.brief(&review("x", 1), AMPLE)),
        ["alert", "toolsets", "journal", "question", "limits", "findings"]
    );
    let story = CriticBrief.brief(&timeline("x", 2, 2), AMPLE);
    assert_eq!(names(&story), ["journal", "timeline", "review"]);
    for text in briefing.parts.iter().chain(&story.parts).map(|p| &p.text) {
        for absent in ["0190-run-id", "01:02:03", "FieldOfEvidence", "not here"] {
            assert!(!text.contains(absent), "{absent}");
        }
    }
    let shown = &content(&briefing, "findings")[0];
    assert_eq!(
        shown["citations"][0],
        json!({"kind": "literal", "call": "r1.investigate.endpoint.t1.0", "at": "/records/0/raw", "quote": "x",
            "check": "quoted text found", "sources": ["sysmon"]})
    );
    assert_eq!((shown.get("invalid"), shown.get("faults")), (None, None));
    assert_eq!(content(&story, "review")["findings"][0]["id"], "r2-endpoint-1");
}

#[test]
fn each_submitted_finding_is_always_shown_however_little_room_there_is() {
    let long = "a long text ".repeat(200);
    let task = review(&long, 40);
    let (whole, least) = (CriticBrief.brief(&task, AMPLE), CriticBrief.brief(&task, 0));
    assert!(bytes(&least) < bytes(&whole));
    for briefing in [&whole, &least] {
        assert_eq!(content(briefing, "findings").as_array().unwrap().len(), 40);
        assert!(names(briefing).contains(&"left_out"), "texts over the cap are cut, and it is said");
    }
}

#[test]
fn a_review_judges_each_submitted_finding_once_and_no_other() {
    let task = review("x", 2);
    let judgement = |finding: &str, against: &[&str]| json!({"finding": finding, "score": 0.75, "rationale": "r", "corroborated_by": [], "contradicted_by": against});
    let read = |findings: &[Value]| {
        let object = json!({"summary": "s", "findings": findings});
        assert_eq!(CriticBrief.form(task.view.kind()).faults(&object), Vec::<String>::new());
        CriticBrief.read(&task, &[], &object, AMPLE)
    };
    let good = [judgement("r2-endpoint-1", &["r1-endpoint-1"]), judgement("r2-endpoint-2", &[])];
    let Ok(Answer::Review(draft)) = read(&good) else { panic!() };
    assert_eq!((draft.judgements.len(), draft.judgements[0].score.get()), (2, 0.75));
    let faults = read(&[judgement("r1-endpoint-1", &[]), judgement("r2-endpoint-1", &["r9-x-1"])]).unwrap_err();
    assert_eq!(
        faults,
        [
            "/findings/0/finding: \"r1-endpoint-1\" was not submitted in this round: leave it out",
            "/findings/1/contradicted_by/0: expected the id of a finding in the sections, got \"r9-x-1\"",
            "/findings: no judgement of r2-endpoint-2: judge each submitted finding",
        ]
    );
    let twice = [good[0].clone(), good[1].clone(), good[0].clone()];
    assert_eq!(read(&twice).unwrap_err(), ["/findings/2/finding: r2-endpoint-1 is judged twice: judge it once"]);
}

#[test]
fn events_stand_on_findings_that_there_are() {
    let task = timeline("x", 2, 2);
    let event = |ids: &[&str]| json!({"description": "d", "findings": ids});
    let read = |events: &[Value]| {
        let gap = json!({"kind": "temporal", "description": "a silence"});
        let object = json!({"narrative": "n", "events": events, "gaps": [gap], "score": 0.8});
        assert_eq!(CriticBrief.form(task.view.kind()).faults(&object), Vec::<String>::new());
        CriticBrief.read(&task, &[], &object, AMPLE)
    };
    let Ok(Answer::Timeline(draft)) = read(&[event(&["r1-endpoint-1", "r2-endpoint-2"])]) else { panic!() };
    assert_eq!((draft.events.len(), draft.events[0].findings.len(), draft.gaps.len()), (1, 2, 1));
    let faults = read(&[event(&[]), event(&["r3-endpoint-1"])]).unwrap_err();
    assert_eq!(faults.len(), 2, "{faults:?}");
    assert!(faults[1].starts_with("/events/1/findings/0: expected the id of a finding"), "{faults:?}");
}

#[test]
fn event_is_kept_by_its_number_and_one_that_there_is_not_is_a_fault() {
    let task = timeline("x", 2, 1);
    assert_eq!(content(&CriticBrief.brief(&task, AMPLE), "timeline")["events"][1]["n"], json!(2));
    let read = |keep: &[usize], narrative: &str| {
        let event = json!({"description": "d", "findings": ["r2-endpoint-1"]});
        let object = json!({"narrative": narrative, "keep": keep, "events": [event], "gaps": [], "score": 0.8});
        assert_eq!(CriticBrief.form(task.view.kind()).faults(&object), Vec::<String>::new());
        (CriticBrief.read(&task, &[], &object, AMPLE), CriticBrief.returned(&task, &[], &object))
    };
    let (Ok(Answer::Timeline(draft)), told) = read(&[2], "2 events, and then nothing.") else { panic!() };
    let kept: Vec<(&str, &str)> =
        draft.events.iter().map(|e| (e.description.as_str(), e.findings[0].as_str())).collect();
    assert_eq!((kept, told.as_str()), (vec![("event 2 x", "r1-endpoint-2"), ("d", "r2-endpoint-1")], ""));
    assert_eq!(read(&[0, 3], "n").0.unwrap_err().len(), 2);
    let (_, told) = read(&[], "`eve` came from 10.9.9.9 at 04:05:06.");
    assert!(told.contains("`eve`") && told.contains("10.9.9.9") && told.contains("04:05:06"), "{told}");
}

#[test]
fn events_that_a_prompt_had_no_room_for_stay_on_the_timeline() {
    let shown = |task: &Task, room: usize| {
        content(&CriticBrief.brief(task, room), "timeline")["events"].as_array().unwrap().len()
    };
    assert_eq!(shown(&timeline("x", 30, 1), AMPLE), 30, "short events fit, all that there may be");
    let task = timeline(&"x".repeat(300), 60, 1);
    let event = json!({"description": "d", "findings": ["r1-endpoint-1", "r2-endpoint-1"]});
    let object = json!({"narrative": "n", "events": [event], "gaps": [], "score": 0.8});
    let rooms = [20_000, 200_000, 600_000];
    let missing = rooms.map(|room| 60 - shown(&task, room));
    assert!(missing[0] > missing[1] + 3 && missing[1] > 10 && missing[2] == 0, "{missing:?}");
    for (room, missing) in rooms.into_iter().zip(missing).take(2) {
        let note = CriticBrief.brief(&task, room).parts.pop().unwrap().text;
        assert!(note.contains(&format!("{missing} of 60 events")), "{note}");
        let Ok(Answer::Timeline(draft)) = CriticBrief.read(&task, &[], &object, room) else { panic!() };
        let kept: Vec<&str> = draft.events.iter().map(|e| e.findings[0].as_str()).collect();
        // The first ones have the lowest scores and were not shown; one of them is on the new Timeline, and what was
        // shown and is not told is dropped.
        assert_eq!(kept.len(), missing, "{kept:?}");
        let [last, next] = [missing, missing + 1].map(|n| format!("r1-endpoint-{n}"));
        assert!(kept.contains(&last.as_str()) && !kept.contains(&next.as_str()), "{kept:?}");
    }
}

#[test]
fn wire_schemas_are_what_every_provider_takes() {
    for task in [review("x", 1), timeline("x", 1, 1)] {
        assert_eq!(strict_faults(CriticBrief.form(task.view.kind()).wire.value(), ""), Vec::<String>::new());
    }
}

#[test]
fn a_stray_task_is_refused() {
    let mut stray = review("x", 1);
    let question = casebook_protocol::Question { text: "q".into(), to: vec![], follow: vec![] };
    stray.view = View::Investigate(Box::new(casebook_protocol::ExpertView {
        alert: casebook_protocol::Alert::parse(b"{}").unwrap(),
        journal: vec![],
        question,
        toolset: Toolset { name: "t".into(), about: "a".into(), tools: vec![] },
        sources: vec![],
        earlier: vec![],
        snapshot: Vec::new(),
    }));
    stray.id = TaskId::of(1, TaskKind::Investigate, None);
    assert!(CriticBrief.brief(&stray, AMPLE).parts.is_empty());
    assert!(CriticBrief.read(&stray, &[], &json!({}), AMPLE).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn whatever_a_view_holds_sections_hold_and_room_is_kept(
        hostile in "(</journal>\n|</findings>\n|\u{202e}|[ -~é\n]){0,40}", many in 0usize..40, spare in 0usize..20_000,
    ) {
        for task in [review(&hostile, many), timeline(&hostile, many, many)] {
            let room = bytes(&CriticBrief.brief(&task, 0)) + spare;
            let briefing = CriticBrief.brief(&task, room);
            prop_assert!(bytes(&briefing) <= room);
            for part in &briefing.parts {
                prop_assert_eq!(part.text.matches('<').count(), 2, "{}", part.text);
                prop_assert!(part.text.ends_with(">\n"));
            }
        }
    }
}
