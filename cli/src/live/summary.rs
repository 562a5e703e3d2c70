//! An investigation for a person who waits for its end: what each agent does now, and what each round brought.

use std::collections::BTreeMap;

use casebook_agent::worker::JOURNAL_TOOL;
use casebook_protocol::{Domain, Event, FindingKind, Phase, Review, Role, TaskId, TaskKind, Timeline, ToolCall};
use casebook_report::words;
use casebook_trust::rule::TIMELINE_THRESHOLD;

use super::{REASON, WIDTH, arguments, labelled, scored};
use crate::screen::{BOLD, DIM, RED, YELLOW, paint, safe};

/// What one agent does.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Agent {
    /// `director`, `critic` or the Expert's domain.
    pub name: String,
    /// What it does now, or what came of its last task.
    pub doing: String,
    /// It works on a task.
    pub busy: bool,
    calls: u64,
    findings: u64,
    /// It has answered a question in this round.
    answered: bool,
}

impl Agent {
    fn answer(&self) -> String {
        format!("{} from {}", words::count(self.findings, "finding"), words::count(self.calls, "tool call"))
    }
}

#[derive(Debug, Default)]
struct Round {
    number: u32,
    phase: Option<Phase>,
    findings: u64,
    credible: Option<usize>,
    timeline: Option<String>,
}

/// Folds events into one line for each agent and one line for each round.
#[derive(Debug, Default)]
pub struct Summary {
    agents: Vec<Agent>,
    tasks: BTreeMap<TaskId, (String, TaskKind)>,
    round: Round,
    /// Nothing changes in place, so the end of each task is a line.
    plain: bool,
}

impl Summary {
    /// One for a pipe or a file: the end of each task gives a line.
    pub fn plain() -> Self {
        Self { plain: true, ..Self::default() }
    }

    /// The agents in the order in which they take turns.
    pub fn agents(&self) -> &[Agent] {
        &self.agents
    }

    /// Takes `event` in and returns the lines that stay on the screen.
    pub fn take(&mut self, event: &Event) -> Vec<String> {
        match event {
            Event::Opened { alert, roster, .. } => {
                let domains: Vec<&str> = roster.iter().map(|member| member.domain.as_str()).collect();
                for name in ["director"].iter().chain(&domains).chain(&["critic"]) {
                    self.agent(name);
                }
                vec![
                    format!("{}     {}", paint(BOLD, "Alert"), safe(&alert.title, WIDTH)),
                    format!("{}   {}", paint(BOLD, "Experts"), safe(&domains.join(", "), WIDTH)),
                ]
            }
            Event::RoundStarted { phase, round } => {
                self.agents.iter_mut().for_each(|agent| agent.answered = false);
                self.round = Round { number: *round, phase: Some(*phase), ..Round::default() };
                Vec::new()
            }
            Event::TaskRequested { task, kind, domain, .. } => self.requested(task, *kind, domain.as_ref()),
            Event::CallRecorded { task, call } => self.called(task, call),
            Event::ModelCalled { call, .. } => {
                super::thinking::call(call, false).into_iter().map(|line| labelled("model", &line)).collect()
            }
            Event::FindingSubmitted { finding } => {
                self.round.findings += 1;
                // An Expert's findings follow the end of its task in the log.
                let agent = self.agent(finding.domain.as_str());
                agent.findings += 1;
                agent.doing = agent.answer();
                let planted = finding.draft.kind == FindingKind::Instruction;
                let text = || format!("{} {}", finding.id, safe(&finding.draft.claim, WIDTH));
                planted.then(|| labelled(finding.domain.as_str(), &paint(YELLOW, text()))).into_iter().collect()
            }
            Event::TaskAnswered { task, .. } => self.ended(task, None),
            Event::TaskFailed { task, reason, .. } => self.ended(task, Some(reason)),
            Event::Reviewed { review } => self.reviewed(review),
            Event::TimelineRewritten { timeline } => self.rewritten(timeline),
            Event::Decided { .. } => vec![self.result()],
            _ => super::trouble(event),
        }
    }

    #[allow(clippy::expect_used, reason = "the index was found in, or just added to, the same list")]
    fn agent(&mut self, name: &str) -> &mut Agent {
        let known = self.agents.iter().position(|agent| agent.name == name);
        let at = known.unwrap_or_else(|| {
            self.agents.push(Agent { name: name.to_owned(), doing: "waits".to_owned(), ..Agent::default() });
            self.agents.len() - 1
        });
        self.agents.get_mut(at).expect("it was found or just added")
    }

    fn requested(&mut self, task: &TaskId, kind: TaskKind, domain: Option<&Domain>) -> Vec<String> {
        let name = domain.map_or_else(|| kind.role().name().to_owned(), ToString::to_string);
        let findings = words::count(self.round.findings, "finding");
        let doing = match kind {
            TaskKind::Plan => "plans what to ask".to_owned(),
            TaskKind::Investigate => "begins".to_owned(),
            TaskKind::Review => format!("reviews {findings}"),
            TaskKind::Timeline => "writes the Timeline".to_owned(),
            TaskKind::Decide => "decides what to do next".to_owned(),
            TaskKind::Report => "concludes".to_owned(),
        };
        let agent = self.agent(&name);
        (agent.doing, agent.busy, agent.calls, agent.findings) = (doing, true, 0, 0);
        self.tasks.insert(task.clone(), (name, kind));
        if !self.plain || kind != TaskKind::Review {
            return Vec::new();
        }
        let answered = self.agents.iter().filter(|agent| agent.answered);
        answered.map(|agent| labelled(&agent.name, &paint(DIM, agent.answer()))).collect()
    }

    fn called(&mut self, task: &TaskId, call: &ToolCall) -> Vec<String> {
        if let Some((name, kind)) = self.tasks.get(task).cloned()
            && call.tool != JOURNAL_TOOL
        {
            let agent = self.agent(&name);
            agent.calls += 1;
            let calls = words::count(agent.calls, "tool call");
            let last = format!("{} {}", safe(&call.tool, 40), arguments(&call.arguments));
            agent.doing = match kind.role() {
                Role::Critic => format!("checks citations, {calls}"),
                Role::Director | Role::Expert => format!("{calls}, {last}"),
            };
        }
        Vec::new()
    }

    fn ended(&mut self, task: &TaskId, failed: Option<&String>) -> Vec<String> {
        let Some((name, kind)) = self.tasks.remove(task) else { return Vec::new() };
        let agent = self.agent(&name);
        agent.busy = false;
        agent.answered = kind == TaskKind::Investigate && failed.is_none();
        agent.doing = match failed {
            Some(_) => "failed".to_owned(),
            None if agent.answered => agent.answer(),
            None => "waits".to_owned(),
        };
        let reason = failed.map(|reason| paint(RED, format_args!("{task} failed: {}", safe(reason, REASON))));
        reason.map(|reason| labelled(&name, &reason)).into_iter().collect()
    }

    fn reviewed(&mut self, review: &Review) -> Vec<String> {
        self.round.credible = Some(
            review
                .findings
                .iter()
                .filter(|f| f.finding.round == review.round && f.score.get() >= TIMELINE_THRESHOLD)
                .count(),
        );
        Vec::new()
    }

    fn rewritten(&mut self, timeline: &Timeline) -> Vec<String> {
        let score = scored(timeline.score, timeline.label.name());
        let events = words::count(timeline.events.len() as u64, "event");
        let gaps = match timeline.gaps.len() {
            0 => String::new(),
            gaps => format!(", {}", words::count(gaps as u64, "gap")),
        };
        self.round.timeline = Some(format!("Timeline {}, {events}{gaps}", score.trim_end()));
        Vec::new()
    }

    fn result(&self) -> String {
        let Round { number, phase, findings, credible, timeline } = &self.round;
        let phase = phase.map_or("", Phase::name);
        let findings = match (findings, credible) {
            (0, _) => "no new findings".to_owned(),
            (new, None) => words::count(*new, "new finding"),
            (new, Some(credible)) => format!("{}, {credible} credible", words::count(*new, "new finding")),
        };
        let timeline = timeline.as_deref().map_or_else(String::new, |timeline| format!("; {timeline}"));
        format!("{}   {phase}: {findings}{timeline}", paint(BOLD, format_args!("Round {number}")))
    }
}

#[cfg(test)]
mod tests;
