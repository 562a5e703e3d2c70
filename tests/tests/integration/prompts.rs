//! Bytes of the prompts of whole investigations: linear in rounds, since every channel is bounded.

use casebook_agent::model::brief::{Brief, Briefing};
use casebook_agent::model::data::result;
use casebook_critic::brief::CriticBrief;
use casebook_director::brief::DirectorBrief;
use casebook_expert::brief::ExpertBrief;
use casebook_protocol::{
    Alert, Allowance, ArtifactId, Bearing, CallId, CallStatus, CheckedFinding, Citation, CitationCheck, Coherence,
    Credibility, DirectorView, Domain, DomainToolset, EntryDraft, EntryKind, EventTime, ExpertView, Finding,
    FindingDraft, FindingId, FindingKind, InvestigationId, JournalEntry, Locator, MemberState, Phase, Precision,
    Priority, Question, Review, ReviewView, Reviewed, Score, SourceInfo, Task, TaskId, TimeBasis, Timeline,
    TimelineEvent, TimelineView, Timestamp, ToolCall, Toolset, Usage, View, Weight,
};
use serde_json::json;

const DOMAINS: [&str; 4] = ["cloud", "endpoint", "identity", "network"];
/// Bytes of a prompt that a model with a window of 200,000 tokens takes.
const ROOM: usize = 192_000;
/// Bytes of the tools as they are offered in each request.
const EXPERT_TOOLS: usize = 10_500;
const CRITIC_TOOLS: usize = 2500;
const DIRECTOR_TOOLS: usize = 1000;

/// What an investigation has come to: every round adds as much as the round before.
struct Story {
    alert: Alert,
    journal: Vec<JournalEntry>,
    events: Vec<TimelineEvent>,
    review: Option<Review>,
    bytes: usize,
}

fn domain(name: &str) -> Domain {
    Domain::new(name).unwrap()
}

fn time(round: u32, n: usize) -> EventTime {
    let at = Timestamp::new(1_652_292_000 + i64::from(round) * 60 + n as i64, 0).unwrap();
    EventTime { at, until: None, precision: Precision::Second, basis: TimeBasis::Record, field: "UtcTime".into() }
}

fn findings(round: u32) -> Vec<CheckedFinding> {
    let one = |(n, name): (usize, &&str)| {
        let call = CallId::new(format!("r{round}.investigate.{name}.t1.0")).unwrap();
        let quote = format!("\"Image\":\"C:\\\\Windows\\\\System32\\\\tool{round}.exe\",\"User\":\"CORP\\\\admin\"");
        let sources = vec![(*name).to_owned()];
        let note = "quoted text found".to_owned();
        let check = CitationCheck { holds: true, note, artifact: None, records: vec![], sources, chosen: None };
        let draft = FindingDraft {
            kind: FindingKind::Occurrence,
            claim: format!(
                "at round {round} `C:\\Windows\\System32\\tool{round}.exe` was run by `CORP\\admin`, {name} says"
            ),
            time: Some(time(round, n)),
            entities: vec![],
            bearing: Bearing::Incriminating,
            weight: Weight::Strong,
            about_alert: false,
            technique: Some("T1059.001".into()),
            confidence: Score::clamped(0.8),
            citations: vec![Citation::Literal { call, at: Locator::Pointer("/records/0/raw".into()), quote }],
            look_next: None,
        };
        let id = FindingId::of(round, &domain(name), n + 1);
        CheckedFinding {
            finding: Finding { id, domain: domain(name), round, draft },
            checked: casebook_protocol::Checked { citations: vec![check], faults: vec![] },
        }
    };
    DOMAINS.iter().chain(&DOMAINS).enumerate().map(one).collect()
}

impl Story {
    fn new() -> Self {
        let alert = json!({"id": "a-1", "rule": {"title": "Suspicious tool", "level": "high"}, "host": "WORKSTATION5",
            "record": {"raw": "x".repeat(900)}});
        let alert = Alert::parse(alert.to_string().as_bytes()).unwrap();
        Self { alert, journal: Vec::new(), events: Vec::new(), review: None, bytes: 0 }
    }

    fn note(&mut self, round: u32, how_many: usize) {
        for n in 0..how_many {
            let text = format!(
                "Note {n} of round {round}: `tool{round}.exe` ran as `CORP\\admin` on `WORKSTATION5`; what started it, and did it reach another host?"
            );
            let priority = if n % 2 == 0 { Priority::Medium } else { Priority::High };
            let mut entry = EntryDraft::new(EntryKind::Observation, priority, text);
            entry.citations = vec![FindingId::of(round, &domain("endpoint"), 2)];
            let seq = u32::try_from(self.journal.len()).unwrap() + 1;
            self.journal.push(JournalEntry { seq, phase: Phase::Trace, round, at: Timestamp::UNIX_EPOCH, entry });
        }
    }

    fn timeline(&self, round: u32) -> Option<Timeline> {
        (!self.events.is_empty()).then(|| Timeline {
            version: round,
            round,
            narrative: "One program after another was run by the same account.".into(),
            events: self.events.clone(),
            gaps: vec![],
            score: Score::clamped(0.7),
            label: Coherence::HighlyPlausible,
        })
    }

    fn director(&self, round: u32) -> Box<DirectorView> {
        let member = |name: &&str| MemberState {
            domain: domain(name),
            description: format!("Logs of {name}: what ran, who logged on, what was reached."),
            trouble: None,
            limit: None,
            covers: vec![],
        };
        Box::new(DirectorView {
            accounting: None,
            alert: self.alert.clone(),
            journal: self.journal.clone(),
            review: self.review.clone(),
            timeline: self.timeline(round),
            roster: DOMAINS.iter().map(member).collect(),
            out_of_reach: vec![],
            notes: vec![],
            coverage: Vec::new(),
            leads: vec![],
            ranks: vec![],
            credible: vec![],
            used: Usage::default(),
            warning: None,
            stop_reason: None,
        })
    }

    /// Asks for a task in `turns` turns, each but the last with a tool result of `size` bytes.
    fn ask(&mut self, brief: &dyn Brief, round: u32, name: Option<&str>, view: View, turns: usize, size: usize) {
        let domain = name.map(domain);
        let task = Task {
            id: TaskId::of(round, view.kind(), domain.as_ref()),
            investigation: InvestigationId::new("i").unwrap(),
            domain,
            phase: Phase::Trace,
            round,
            view,
            allowance: Allowance::default(),
        };
        let tools = match task.view {
            View::Investigate(_) => EXPERT_TOOLS,
            View::Review(_) => CRITIC_TOOLS,
            View::Timeline(_) => 0,
            View::Plan(_) | View::Decide(_) | View::Report(_) => DIRECTOR_TOOLS,
        };
        let Briefing { system, parts, .. } = brief.brief(&task, ROOM);
        let form = brief.form(task.view.kind());
        let stable = system.len() + tools + form.wire.text().len();
        let first = stable + parts.iter().map(|p| p.text.len()).sum::<usize>();
        assert!(first < ROOM);
        let text = json!({"total": 1, "records": [{"file": "f", "line": 1, "raw": "y".repeat(size)}]}).to_string();
        let call = ToolCall {
            id: CallId::of(&task.id, 1, 0),
            domain: None,
            tool: "search".into(),
            arguments: "{}".into(),
            status: CallStatus::Answered,
            result: ArtifactId::of(text.as_bytes()),
            bytes: text.len() as u64,
            started: Timestamp::UNIX_EPOCH,
            ended: Timestamp::UNIX_EPOCH,
        };
        let looks = matches!(task.view, View::Investigate(_));
        let result = result(&call, &text, 16 * 1024, looks).len();
        self.bytes += (0..turns).map(|turn| first + turn * result).sum::<usize>();
    }

    fn round(&mut self, round: u32) {
        self.ask(&DirectorBrief, round, None, View::Plan(self.director(round)), 2, 20);
        self.note(round, 3);
        for name in DOMAINS {
            let source = SourceInfo {
                source: name.into(),
                sensor: name.into(),
                on_subject_host: false,
                records: 1000,
                about: "records of what happened".into(),
                coverage: Vec::new(),
            };
            let view = ExpertView {
                alert: self.alert.clone(),
                journal: self.journal.clone(),
                question: Question {
                    text: "What started it, and what did it reach?".into(),
                    to: vec![],
                    follow: vec![],
                },
                toolset: Toolset { name: "evidence".into(), about: String::new(), tools: vec![] },
                sources: vec![source],
                earlier: vec![],
                snapshot: Vec::new(),
            };
            self.ask(&ExpertBrief, round, Some(name), View::Investigate(Box::new(view)), 4, 3000);
        }
        let toolset = Toolset { name: "evidence".into(), about: String::new(), tools: vec![] };
        let view = ReviewView {
            accounting: None,
            journal: self.journal.clone(),
            findings: findings(round),
            earlier: vec![],
            toolsets: DOMAINS.iter().map(|n| DomainToolset { domain: domain(n), toolset: toolset.clone() }).collect(),
            limits: vec![],
            alert: Some(self.alert.clone()),
            question: Some(Question {
                text: "What started it, and what did it reach?".into(),
                to: vec![],
                follow: vec![],
            }),
            out_of_reach: vec![],
            notes: vec![],
            coverage: Vec::new(),
        };
        self.ask(&CriticBrief, round, None, View::Review(Box::new(view)), 5, 2000);
        let reviewed = |CheckedFinding { finding, checked }| Reviewed {
            finding,
            checked,
            score: Score::clamped(0.8),
            label: Credibility::HighlyPlausible,
            proposed: Score::clamped(0.8),
            capped_by: vec![],
            rationale: "the quotation holds, the arguments were sensible, another source agrees".into(),
            corroborated_by: vec![],
            contradicted_by: vec![],
        };
        let findings = findings(round).into_iter().map(reviewed).collect();
        let review = Review { round, summary: "One program was run again.".into(), findings };
        let view = TimelineView {
            journal: self.journal.clone(),
            review: review.clone(),
            ranks: vec![],
            previous: self.timeline(round),
        };
        self.ask(&CriticBrief, round, None, View::Timeline(Box::new(view)), 1, 0);
        for finding in review.findings.iter().take(4) {
            self.events.push(TimelineEvent {
                time: finding.finding.draft.time.clone().unwrap(),
                description: finding.finding.draft.claim.clone(),
                findings: vec![finding.finding.id.clone()],
                score: finding.score,
                evidence: vec![],
            });
        }
        self.review = Some(review);
        self.ask(&DirectorBrief, round, None, View::Decide(self.director(round)), 2, 20);
        self.note(round, 3);
    }
}

fn bytes(rounds: u32) -> usize {
    let mut story = Story::new();
    (1..=rounds).for_each(|round| story.round(round));
    story.ask(&DirectorBrief, rounds, None, View::Report(story.director(rounds)), 1, 0);
    story.bytes
}

#[test]
fn ten_times_the_rounds_take_ten_times_the_bytes() {
    let [five, twenty, fifty] = [5, 20, 50].map(bytes);
    let told = format!("5 rounds {five}, 20 rounds {twenty}, 50 rounds {fifty}: {:.2}", fifty as f64 / five as f64);
    assert!(fifty * 10 <= five * 105, "{told}");
    assert!(twenty * 10 <= five * 42, "{told}");
    println!("{told}");
}
