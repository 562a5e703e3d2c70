//! A report made by hand in which every text of others is hostile.

use casebook_protocol::RecordRef;
use casebook_protocol::journal::EntryDraft;
use casebook_protocol::report::{
    Disagreement, REPORT_VERSION, ReportCitation, ReportEvent, ReportFinding, ReportTimeline, ReportUsage, TaskUsage,
};
use casebook_protocol::{
    Alert, ArtifactId, Bearing, CallId, CallStatus, Citation, Coherence, Credibility, Domain, EntryKind, EventTime,
    Finding, FindingDraft, FindingId, FindingKind, Gap, GapKind, Guard, InvestigationId, JournalEntry, Locator, Phase,
    Player, Precision, Priority, Report, Rule, Ruling, Score, TaskId, TaskKind, TimeBasis, Timestamp, ToolCall, Usage,
    Verdict, Weight,
};
use serde_json::json;

/// Script, link, image, escape sequence, right-to-left override, zero width, tag character.
pub(crate) const HOSTILE: &str = "<script>alert(1)</script> [x](javascript:alert(2)) ![i](https://evil.example/i) \u{1b}[31mred\u{7} \u{202e}gpj.exe \u{200b}\u{e0041}@admin \"'>";

pub(crate) fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

pub(crate) fn score(value: f64) -> Score {
    Score::new(value).unwrap()
}

fn time(text: &str, basis: TimeBasis) -> EventTime {
    EventTime { at: at(text), until: None, precision: Precision::Millisecond, basis, field: "UtcTime".into() }
}

fn finding_id(domain: &str, n: usize) -> FindingId {
    FindingId::of(1, &Domain::new(domain).unwrap(), n)
}

fn call_id(domain: &str, n: u32) -> CallId {
    CallId::of(&TaskId::of(1, TaskKind::Investigate, Some(&Domain::new(domain).unwrap())), 1, n)
}

pub(crate) fn call(domain: &str, n: u32, arguments: &serde_json::Value) -> ToolCall {
    ToolCall {
        id: call_id(domain, n),
        domain: Some(Domain::new(domain).unwrap()),
        tool: "search".into(),
        arguments: casebook_protocol::hash::canonical_json(arguments),
        status: CallStatus::Answered,
        result: ArtifactId::of(format!("{domain} {n}").as_bytes()),
        bytes: 48_213,
        started: at("2026-03-02T09:00:01Z"),
        ended: at("2026-03-02T09:00:01.2Z"),
    }
}

fn quote(domain: &str, n: u32, file: &str, line: u64, text: &str, holds: bool) -> ReportCitation {
    let record = RecordRef { source: file.trim_end_matches(".ndjson").into(), file: file.into(), line };
    ReportCitation {
        citation: Citation::Literal {
            call: call_id(domain, n),
            at: Locator::Pointer("/records/0/text".into()),
            quote: text.into(),
        },
        holds,
        note: if holds { "quoted text found".into() } else { "the quoted text is not there".into() },
        artifact: Some(ArtifactId::of(format!("{domain} {n}").as_bytes())),
        records: if holds { vec![record] } else { vec![] },
    }
}

fn absence(domain: &str, n: u32) -> ReportCitation {
    ReportCitation {
        citation: Citation::Absence {
            call: call_id(domain, n),
            at: Locator::Pointer("/total".into()),
            from: Some(at("2026-03-01T02:00:00Z")),
            to: None,
            again: None,
        },
        holds: true,
        note: "nothing found, searched again".into(),
        artifact: Some(ArtifactId::of(format!("{domain} {n}").as_bytes())),
        records: vec![],
    }
}

struct Made {
    id: FindingId,
    claim: String,
    kind: FindingKind,
    bearing: Bearing,
    score: Option<f64>,
    citations: Vec<ReportCitation>,
}

fn finding(made: Made) -> ReportFinding {
    let domain = Domain::new(made.id.as_str().split('-').nth(1).unwrap()).unwrap();
    let draft = FindingDraft {
        kind: made.kind,
        claim: made.claim,
        time: (made.kind == FindingKind::Occurrence).then(|| time("2026-03-01T02:14:07.120Z", TimeBasis::Record)),
        entities: vec![],
        bearing: made.bearing,
        weight: Weight::Strong,
        about_alert: true,
        technique: Some("T1547.006".into()),
        confidence: score(0.8),
        citations: made.citations.iter().map(|c| c.citation.clone()).collect(),
        look_next: Some("who owns the session that installed the package".into()),
    };
    ReportFinding {
        finding: Finding { id: made.id, domain, round: 1, draft },
        score: made.score.map(score),
        label: made.score.map(|s| Credibility::of(score(s))),
        capped_by: made.score.filter(|s| *s < 0.3).map(|_| Rule::CitationDoesNotHold).into_iter().collect(),
        rationale: "The cited record is there and says so; `auth.log` agrees on the session.".into(),
        corroborated_by: vec![finding_id("identity", 1)],
        contradicted_by: vec![],
        faults: made
            .score
            .filter(|s| *s < 0.3)
            .map(|_| "entity `10.9.9.9` does not occur in what is cited".into())
            .into_iter()
            .collect(),
        citations: made.citations,
    }
}

fn findings() -> Vec<ReportFinding> {
    let line = r#"{"UtcTime":"2026-03-01 02:14:07.120","Image":"/usr/sbin/modprobe","CommandLine":"modprobe --show-depends overlay","ParentImage":"/usr/bin/dpkg"}"#;
    vec![
        finding(Made {
            id: finding_id("endpoint", 1),
            claim: "`/usr/bin/dpkg` started `modprobe --show-depends overlay`, which loads nothing.".into(),
            kind: FindingKind::Occurrence,
            bearing: Bearing::Exonerating,
            score: Some(0.93),
            citations: vec![quote("endpoint", 0, "endpoint_process.ndjson", 4_812, line, true), absence("endpoint", 1)],
        }),
        finding(Made {
            id: finding_id("identity", 1),
            claim: "`deploy` opened the session in which the package was installed.".into(),
            kind: FindingKind::Occurrence,
            bearing: Bearing::Neutral,
            score: Some(0.74),
            citations: vec![quote(
                "identity",
                0,
                "auth.log",
                231,
                "Mar  1 02:13:59 web-03 sshd[811]: Accepted publickey for deploy from 10.0.4.17 port 51122",
                true,
            )],
        }),
        finding(Made {
            id: finding_id("endpoint", 2),
            claim: format!("A user agent carried {HOSTILE} to the server."),
            kind: FindingKind::Instruction,
            bearing: Bearing::Incriminating,
            score: Some(0.21),
            citations: vec![quote("endpoint", 0, "proxy_access.log", 9, HOSTILE, false)],
        }),
    ]
}

fn event(text: &str, domain: &str, file: &str, line: u64, moment: &str, basis: TimeBasis, value: f64) -> ReportEvent {
    ReportEvent {
        time: at(moment),
        when: time(moment, basis),
        description: text.into(),
        score: score(value),
        findings: vec![finding_id(domain, 1)],
        evidence: vec![RecordRef { source: file.into(), file: file.into(), line }],
    }
}

fn timeline() -> ReportTimeline {
    ReportTimeline {
        narrative: "A package was installed by an administrator's session, and its hook asked for the dependencies of a kernel module. No module was loaded.".into(),
        score: score(0.82),
        label: Coherence::of(score(0.82)),
        events: vec![
            event("`deploy` logged in to `web-03` from `10.0.4.17`.", "identity", "auth.log", 231, "2026-03-01T02:13:59Z", TimeBasis::Inferred, 0.74),
            event("`/usr/bin/dpkg` started `modprobe --show-depends overlay`.", "endpoint", "endpoint_process.ndjson", 4_812, "2026-03-01T02:14:07.120Z", TimeBasis::Record, 0.93),
        ],
        gaps: vec![
            Gap { kind: GapKind::Evidential, description: "Nothing shows the kernel's own log: `dmesg` would say whether a module was loaded.".into() },
            Gap { kind: GapKind::Temporal, description: format!("Between 02:13:59 and 02:14:07 the session did something that no source records. {HOSTILE}") },
        ],
    }
}

fn journal() -> Vec<JournalEntry> {
    let mut entries = vec![
        EntryDraft::new(EntryKind::Question, Priority::High, "Who started modprobe, and did it load anything?"),
        EntryDraft::new(EntryKind::Hypothesis, Priority::Medium, format!("A package hook did. {HOSTILE}")),
        EntryDraft::new(EntryKind::Decision, Priority::Critical, "Conclude: the rest cannot be seen from here."),
    ];
    entries[1].citations = vec![finding_id("endpoint", 1)];
    entries[1].follow_ups = vec!["look at dpkg.log for the package".into()];
    entries[2].supersedes = Some(2);
    let stamped = entries.into_iter().zip(1..);
    stamped
        .map(|(entry, seq)| JournalEntry {
            seq,
            phase: Phase::Discovery,
            round: 1,
            at: at("2026-03-02T09:00:00Z"),
            entry,
        })
        .collect()
}

fn usage() -> ReportUsage {
    let used = |tool_calls, bytes| Usage { tool_calls, result_bytes: bytes, ..Usage::default() };
    let player = Some(Player { name: "built-in analyst".into(), version: "0.1.0".into(), built_in: true });
    let task = |kind, domain: Option<&str>, tool_calls| {
        let domain = domain.map(|d| Domain::new(d).unwrap());
        TaskUsage {
            task: TaskId::of(1, kind, domain.as_ref()),
            kind,
            domain,
            phase: Phase::Discovery,
            player: player.clone(),
            failed: None,
            usage: used(tool_calls, 1000),
        }
    };
    let mut tasks = vec![
        task(TaskKind::Plan, None, 2),
        task(TaskKind::Investigate, Some("endpoint"), 14),
        task(TaskKind::Investigate, Some("identity"), 9),
        task(TaskKind::Review, None, 3),
    ];
    tasks[2].failed = Some(format!("lost its tools: {HOSTILE}"));
    ReportUsage { rounds: 1, total: used(28, 1_204_331), tasks }
}

/// The report.
pub(crate) fn report() -> Report {
    let alert = json!({"id": "kmod-1", "rule": {"title": format!("Kernel module tool used {HOSTILE}"), "level": "high"}, "host": "web-03", "message": HOSTILE});
    Report {
        casebook_report: REPORT_VERSION,
        investigation: InvestigationId::new("0195-kmod").unwrap(),
        opened: at("2026-03-02T09:00:00Z"),
        closed: at("2026-03-02T09:00:04Z"),
        alert: Alert::parse(alert.to_string().as_bytes()).unwrap(),
        verdict: Verdict::Inconclusive,
        ruling: Ruling {
            verdict: Verdict::Inconclusive,
            proposed: Verdict::BenignPositive,
            grounds: vec!["r1-endpoint-1 explains the alerted activity from auditd@web-03, which its subject does not control".into()],
            missing: vec!["two independent checked sources that the alert's subject does not control and that explain the activity: there is 1 (auditd@web-03)".into()],
        },
        stop_reason: Some("tool calls: 30 of 30".into()),
        summary: "A package hook ran `modprobe --show-depends`, which only lists dependencies. One source that the host cannot change says so; a second is missing, so a person must look.".into(),
        root_cause: "The hook of a package that was installed by `deploy`.".into(),
        actions: vec!["Ask the owner of `deploy` whether the installation was planned.".into(), format!("Look at {HOSTILE}")],
        open_questions: vec!["Was a module loaded after 02:14:07?".into()],
        rests_on: vec![finding_id("endpoint", 1)],
        timeline: timeline(),
        findings: findings(),
        disagreements: vec![Disagreement { findings: vec![finding_id("endpoint", 2)], about: "The Expert is confident (0.80), the Critic is not (0.21): the quotation is not in the record.".into() }],
        blind_spots: vec!["No source records what the kernel did.".into(), format!("network: {HOSTILE}")],
        journal: journal(),
        guards: vec![Guard { rule: Rule::DismissalUnsupported, subject: "verdict".into(), effect: "benign_positive becomes inconclusive".into() }],
        calls: vec![
            call("endpoint", 0, &json!({"text": "modprobe", "from": "2026-03-01T02:00:00Z"})),
            call("endpoint", 1, &json!({"text": "insmod", "note": HOSTILE})),
            call("identity", 0, &json!({"text": "deploy"})),
        ],
        usage: usage(),
    }
}
