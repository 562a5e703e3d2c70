//! One line for each event.

use casebook_protocol::{Event, closed, one_sentence};
use casebook_report::words;

const TEXT: usize = 240;

closed! {
    pub enum Group {
        Flow = "flow";
        Call = "tool call";
        Model = "model call";
        Journal = "journal";
        Finding = "finding";
        Review = "review";
        Timeline = "timeline";
        Rule = "rule";
        End = "end";
    }
}

impl Group {
    #[must_use]
    pub const fn of(event: &Event) -> Self {
        match event {
            Event::CallRecorded { .. } => Self::Call,
            Event::ModelCalled { .. } => Self::Model,
            Event::Journaled { .. } | Event::Decided { .. } | Event::Asked { .. } => Self::Journal,
            Event::FindingSubmitted { .. } | Event::FindingChecked { .. } | Event::ActsListed { .. } => Self::Finding,
            Event::Reviewed { .. } | Event::LeadsGiven { .. } => Self::Review,
            Event::TimelineRewritten { .. } => Self::Timeline,
            Event::Guarded { .. } | Event::BudgetNear { .. } => Self::Rule,
            Event::TaskFailed { .. } | Event::Stopping { .. } | Event::Concluded { .. } | Event::Closed {} => Self::End,
            _ => Self::Flow,
        }
    }
}

/// What happened, as a title and a text. Names from the evidence are in `backquotes`.
#[must_use]
pub fn told(event: &Event) -> (String, String) {
    let line = |text: &str| one_sentence(text, TEXT);
    let (title, text) = match event {
        Event::Opened { alert, roster, .. } => (
            "Opened".to_owned(),
            format!("{}; {} on the team", line(&alert.title), words::count(roster.len() as u64, "Expert")),
        ),
        Event::RoundStarted { phase, round } => (format!("Round {round} begins"), format!("phase {}", phase.name())),
        Event::TaskRequested { task, .. } => ("Task requested".to_owned(), format!("`{task}`")),
        Event::CallRecorded { call, .. } => {
            (format!("Tool {}", call.tool), format!("`{}`, {} B", line(&call.arguments), call.bytes))
        }
        Event::ModelCalled { call, .. } => (
            format!("Model {}", line(&call.model)),
            format!(
                "{} tokens in, {} out, prompt {}",
                call.usage.input_tokens,
                call.usage.output_tokens,
                line(&call.prompt)
            ),
        ),
        Event::TaskAnswered { task, player, .. } => {
            ("Task answered".to_owned(), format!("`{task}` by {}", line(&player.name)))
        }
        Event::TaskFailed { task, reason, .. } => ("Task failed".to_owned(), format!("`{task}`: {}", line(reason))),
        Event::Journaled { entry } => {
            (format!("Journal #{}, {}", entry.seq, entry.entry.kind.name()), line(&entry.entry.text))
        }
        Event::Asked { question, .. } => {
            let to: Vec<&str> = question.to.iter().map(casebook_protocol::Domain::as_str).collect();
            let to = if to.is_empty() { "everyone".to_owned() } else { to.join(", ") };
            (format!("Question to {to}"), line(&question.text))
        }
        Event::ActsListed { domain, acts } => (
            format!("Acts listed by {domain}"),
            format!("{} that a dismissal must account for", words::count(acts.listed.len() as u64 + acts.more, "act")),
        ),
        Event::FilesListed { domain, files } => (
            format!("Evidence files of {domain}"),
            format!("{} with their hashes", words::count(files.listed.len() as u64, "file")),
        ),
        Event::FindingSubmitted { finding } => (format!("Finding {}", finding.id), line(&finding.draft.claim)),
        Event::FindingChecked { finding, checked, .. } => {
            let held = checked.citations.iter().filter(|c| c.holds).count();
            let faults = if checked.faults.is_empty() {
                String::new()
            } else {
                format!("; not in the evidence: {}", line(&checked.faults.join("; ")))
            };
            (format!("Citations of {finding} checked"), format!("{held} of {} hold{faults}", checked.citations.len()))
        }
        Event::Guarded { guard } => {
            (format!("Rule {}", guard.rule.name()), format!("{}: {}", line(&guard.subject), line(&guard.effect)))
        }
        Event::Reviewed { review } => (format!("Review of round {}", review.round), line(&review.summary)),
        Event::LeadsGiven { leads, .. } => {
            let what: Vec<&str> = leads.iter().map(|lead| lead.draft.what.as_str()).collect();
            (words::count(leads.len() as u64, "lead"), line(&what.join("; ")))
        }
        Event::TimelineRewritten { timeline } => (
            format!("Timeline, version {}", timeline.version),
            format!(
                "{}, {}, coherence {} {}",
                words::count(timeline.events.len() as u64, "event"),
                words::count(timeline.gaps.len() as u64, "gap"),
                timeline.score,
                timeline.label.name()
            ),
        ),
        Event::Decided { decision, .. } => (format!("Decision: {}", decision.next.name()), line(&decision.reason)),
        Event::BudgetNear { limit } => ("Limit near".to_owned(), line(limit)),
        Event::Attendance { domain, gone: Some(why) } => (format!("Expert {domain} left"), line(why)),
        Event::Attendance { domain, gone: None } => (format!("Expert {domain} is back"), String::new()),
        Event::NotInvestigated { reason } => ("Not investigated".to_owned(), line(reason)),
        Event::Stopping { reason } => ("Stopping".to_owned(), line(reason)),
        Event::Concluded { conclusion, ruling } => {
            (format!("Verdict: {}", words::verdict(ruling.verdict)), line(&conclusion.summary))
        }
        Event::Closed {} => ("Closed".to_owned(), String::new()),
    };
    (title, text)
}
