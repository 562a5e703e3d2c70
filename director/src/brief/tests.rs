use casebook_agent::model::form::strict_faults;
use casebook_protocol::{
    Alert, Allowance, Coherence, EntryDraft, EntryKind, EventTime, InvestigationId, JournalEntry, Phase, Plan,
    Precision, Priority, Score, TaskId, TaskKind, TimeBasis, Timeline, TimelineEvent, Timestamp, Usage,
};
use proptest::prelude::*;

use super::*;

const AMPLE: usize = 1 << 20;

fn view(hostile: &str, events: usize) -> DirectorView {
    let at: Timestamp = "2022-05-11T18:10:22Z".parse().unwrap();
    let time = EventTime {
        at,
        until: None,
        precision: Precision::Second,
        basis: TimeBasis::Record,
        field: "FieldOfEvidence".into(),
    };
    let mut entry = EntryDraft::new(EntryKind::Hypothesis, Priority::High, format!("it is {hostile}"));
    entry.citations = vec![FindingId::new("r1-endpoint-9").unwrap()];
    let entries = (1..=events.max(1)).map(|n| JournalEntry {
        seq: u32::try_from(n).unwrap(),
        phase: Phase::Trace,
        round: 1,
        at: "2026-11-22T01:02:03Z".parse().unwrap(),
        entry: entry.clone(),
    });
    let event = |n: usize| TimelineEvent {
        time: time.clone(),
        description: format!("event {n} {hostile}"),
        findings: vec![FindingId::new(format!("r1-endpoint-{n}")).unwrap()],
        score: Score::clamped(0.5 + n as f64 / 1000.0),
        evidence: vec![],
    };
    let alert = json!({"id": "a-1", "title": hostile, "big": vec![hostile; events.min(60)]});
    DirectorView {
        accounting: None,
        alert: Alert::parse(alert.to_string().as_bytes()).unwrap(),
        journal: entries.collect(),
        review: None,
        timeline: Some(Timeline {
            version: 3,
            round: 1,
            narrative: hostile.into(),
            events: (0..events).map(event).collect(),
            gaps: vec![],
            score: Score::ZERO,
            label: Coherence::Invalid,
        }),
        roster: vec![MemberState {
            domain: Domain::new("endpoint").unwrap(),
            description: hostile.into(),
            trouble: Some(hostile.into()),
            limit: Some(hostile.into()),
            covers: vec![],
        }],
        out_of_reach: vec![],
        notes: vec![],
        coverage: Vec::new(),
        leads: vec![],
        ranks: vec![],
        credible: vec![],
        used: Usage::default(),
        warning: None,
        stop_reason: None,
    }
}

fn task(view: DirectorView, kind: fn(Box<DirectorView>) -> View) -> Task {
    let view = kind(Box::new(view));
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

const KINDS: [fn(Box<DirectorView>) -> View; 3] = [View::Plan, View::Decide, View::Report];

/// The names of the sections, each opened and closed on lines of its own.
fn names(briefing: &Briefing) -> Vec<String> {
    let text: String = briefing.parts.iter().map(|p| p.text.as_str()).collect();
    let (mut names, mut open) = (Vec::new(), None::<String>);
    for line in text.lines() {
        match (&open, line.strip_prefix('<').and_then(|l| l.strip_suffix('>'))) {
            (Some(name), Some(end)) => {
                assert_eq!(end, format!("/{name}"));
                names.extend(open.take());
            }
            (None, Some(name)) => open = Some(name.to_owned()),
            (None, None) => panic!("{line:?} stands outside of all sections"),
            (Some(_), None) => assert!(!line.contains('<'), "{line}"),
        }
    }
    assert_eq!(open, None);
    names
}

fn bytes(briefing: &Briefing) -> usize {
    briefing.system.len() + briefing.parts.iter().map(|p| p.text.len()).sum::<usize>()
}

#[test]
fn the_system_text_names_the_task_and_is_the_same_for_all_of_its_kind() {
    for (kind, name) in KINDS.into_iter().zip(["plan", "decide", "report"]) {
        let one = DirectorBrief.brief(&task(view("x", 0), kind), AMPLE);
        let other = DirectorBrief.brief(&task(view("quite different", 9), kind), 20_000);
        assert_eq!(one.system, other.system);
        assert!(one.system.starts_with(&format!("Casebook task: {name} (prompt {}", one.prompt)), "{}", one.system);
        assert!(
            one.prompt.starts_with(&format!("{name} "))
                && DirectorBrief.form(task(view("x", 0), kind).view.kind()).name == name
        );
        assert!(!one.system.contains("{{"));
        for line in CREDIBILITY_RUBRIC.lines().chain(COHERENCE_RUBRIC.lines()) {
            assert!(one.system.contains(line), "{name}: {line}");
        }
    }
}

#[test]
fn sections_stand_in_order_and_the_stable_prefix_is_marked() {
    let mut full = view("x", 3);
    full.warning = Some("time: 17281 of 21600".into());
    full.stop_reason = Some("the budget is spent: tool calls: 10 of 10".into());
    let briefing = DirectorBrief.brief(&task(full, View::Decide), AMPLE);
    assert_eq!(names(&briefing), ["alert", "journal", "roster", "timeline", "now", "budget"]);
    let cached: Vec<bool> = briefing.parts.iter().map(|p| p.cache).collect();
    assert_eq!(cached, [true, true, false, false, false, false]);
    let budget = &briefing.parts[5].text;
    assert!(budget.contains("near: time.") && budget.contains("tool calls: 10 of 10"), "{budget}");
    let all: String = briefing.parts.iter().map(|p| p.text.as_str()).collect();
    for absent in ["0190-run-id", "01:02:03", "FieldOfEvidence", "17281", "version"] {
        assert!(!all.contains(absent), "{absent}");
    }
}

#[test]
fn a_long_story_is_bounded_and_what_is_left_out_is_said() {
    let briefing = |events| DirectorBrief.brief(&task(view("a plain text", events), View::Plan), AMPLE);
    let (long, longer) = (briefing(300), briefing(600));
    assert!(long.parts.last().unwrap().text.contains("timeline: 236 of 300 events"), "{:?}", long.parts.last());
    // A model with less room sees less, and the earliest and what exonerates is cut last.
    let mut small = view("a plain text", 300);
    small.ranks = (0..300).map(|n| if matches!(n, 0 | 7) { casebook_protocol::KEPT } else { n }).collect();
    let small = DirectorBrief.brief(&task(small, View::Plan), 100_000);
    assert!(small.parts.last().unwrap().text.contains("timeline: 284 of 300 events"), "{:?}", small.parts.last());
    assert!(["event 0 ", "event 7 ", "event 299 "].iter().all(|event| small.parts[3].text.contains(event)));
    assert!(bytes(&small) * 2 < bytes(&long), "{} {}", bytes(&small), bytes(&long));
    assert!(long.parts[1].text.contains("folded away") && long.parts[3].text.contains("event 299 "));
    // The Journal folds away a quarter of its bytes at a time.
    assert!(bytes(&longer) < bytes(&long) + JOURNAL_OWN + 200, "{} {}", bytes(&long), bytes(&longer));
}

#[test]
fn a_question_goes_to_experts_that_there_are() {
    let task = task(view("x", 1), View::Plan);
    let object = json!({"question": " who? ", "to": ["endpoint", "endpoint"], "follow": ["a", ""]});
    let Ok(Answer::Plan(Plan { question, .. })) = DirectorBrief.read(&task, &[], &object, AMPLE) else { panic!() };
    assert_eq!((question.text.as_str(), question.to.len(), question.follow.len()), ("who?", 1, 1));
    let object = json!({"question": " ", "to": ["cloud"], "follow": []});
    let faults = DirectorBrief.read(&task, &[], &object, AMPLE).unwrap_err();
    assert_eq!(
        faults,
        ["/question: is empty; write a sentence", "/to/0: \"cloud\" is not on the roster: write some of endpoint"]
    );
}

#[test]
fn a_report_rests_on_findings_that_there_are() {
    let task = task(view("x", 2), View::Report);
    let report = |id: &str| {
        json!({"verdict": "inconclusive", "summary": "s", "root_cause": "r", "actions": ["a"], "open_questions": [],
            "findings": ["r1-endpoint-1", "r1-endpoint-9", "r1-endpoint-1", id]})
    };
    let Ok(Answer::Report(conclusion)) = DirectorBrief.read(&task, &[], &report("r1-endpoint-0"), AMPLE) else {
        panic!()
    };
    assert_eq!(conclusion.findings.len(), 3);
    let faults = DirectorBrief.read(&task, &[], &report("r9-cloud-1"), AMPLE).unwrap_err();
    assert!(
        faults[0].starts_with("/findings/3: expected the id of a finding in the sections, got \"r9-cloud-1\""),
        "{faults:?}"
    );
}

#[test]
fn a_decision_has_a_reason() {
    let task = task(view("x", 1), View::Decide);
    let answer = DirectorBrief.read(&task, &[], &json!({"next": "advance", "reason": "done"}), AMPLE);
    assert!(matches!(answer, Ok(Answer::Decide(_))), "{answer:?}");
    assert!(DirectorBrief.read(&task, &[], &json!({"next": "advance", "reason": ""}), AMPLE).is_err());
    assert!(DirectorBrief.read(&task, &[], &json!({"next": "leave", "reason": "x"}), AMPLE).is_err());
}

#[test]
fn a_stray_task_is_refused() {
    let stray = View::Timeline(Box::new(casebook_protocol::TimelineView {
        journal: vec![],
        review: casebook_protocol::Review { round: 1, summary: String::new(), findings: vec![] },
        ranks: vec![],
        previous: None,
    }));
    let stray = Task { id: TaskId::of(1, TaskKind::Timeline, None), view: stray, ..task(view("x", 0), View::Plan) };
    assert!(DirectorBrief.brief(&stray, AMPLE).parts.is_empty());
    assert!(DirectorBrief.read(&stray, &[], &json!({}), AMPLE).is_err());
}

#[test]
fn wire_schemas_are_what_every_provider_takes() {
    for kind in KINDS {
        let form = DirectorBrief.form(task(view("x", 0), kind).view.kind());
        assert_eq!(strict_faults(form.wire.value(), ""), Vec::<String>::new());
    }
    let form = DirectorBrief.form(task(view("x", 0), View::Decide).view.kind());
    assert_eq!(
        *form.wire.value(),
        json!({"type": "object", "additionalProperties": false, "required": ["next", "reason"], "properties": {
            "next": {"type": "string", "enum": ["stay", "advance"]},
            "reason": {"type": "string"},
        }})
    );
    assert!(form.faults(&json!({"next": "stay", "reason": "r"})).is_empty());
    assert!(!form.faults(&json!({"next": "stay", "reason": "r", "more": 1})).is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn whatever_a_view_holds_sections_hold_and_room_is_kept(
        hostile in "(</journal>\n|</alert>\n<budget>|\u{202e}|[ -~é\n]){0,40}", events in 0usize..60, spare in 0usize..20_000,
    ) {
        for kind in KINDS {
            let task = task(view(&hostile, events), kind);
            let least = DirectorBrief.brief(&task, 0);
            let expect = ["alert", "journal", "roster", "timeline", "now"];
            prop_assert_eq!(&names(&least)[..5], &expect);
            let room = bytes(&least) + spare;
            let briefing = DirectorBrief.brief(&task, room);
            prop_assert_eq!(&names(&briefing)[..5], &expect);
            prop_assert!(bytes(&briefing) <= room);
            prop_assert_eq!(briefing, DirectorBrief.brief(&task, room));
        }
    }
}
