//! Limits an Expert to the sources that it announced and to its definition. A task of an investigation that
//! began with sources that are no longer there is rejected. Logs may have grown: the tools read the snapshot of the
//! investigation.

use std::sync::Arc;

use async_trait::async_trait;
use casebook_agent::model::Model;
use casebook_agent::model::config::Limits;
use casebook_agent::reasoner::{Action, Past, Reasoner, Turn};
use casebook_protocol::{Allowance, FindingDraft, Member, Player, SourceInfo, Task, Usage, View};

pub struct ScopedToSources {
    pub reasoner: Arc<dyn Reasoner>,
    /// The announced roster entry. Without one, every task is accepted.
    pub member: Option<Member>,
    pub limits: Limits,
}

impl ScopedToSources {
    /// Why `task` does not match the sources of this Expert.
    fn astray(&self, task: &Task) -> Option<String> {
        let (View::Investigate(view), Some(member)) = (&task.view, &self.member) else { return None };
        let same = |a: &SourceInfo, b: &SourceInfo| {
            (&a.source, &a.sensor, a.on_subject_host) == (&b.source, &b.sensor, b.on_subject_host)
        };
        let sources = view.sources.iter().all(|began| member.sources.iter().any(|now| same(began, now)));
        // A missing tool shows up as a failed call. A changed tool would not.
        let now = &member.toolset.tools;
        let tools = view.toolset.tools.iter().all(|t| now.iter().find(|n| n.name == t.name).is_none_or(|n| n == t));
        if sources && tools {
            return None;
        }
        let had = |sources: &[SourceInfo]| {
            let all: Vec<String> = sources.iter().map(|s| format!("{} (by {})", s.source, s.sensor)).collect();
            if all.is_empty() { "nothing".to_owned() } else { all.join(", ") }
        };
        Some(format!(
            "the evidence or the tools of this Expert are not those that the investigation began with: it had {} and \
             has {}; put the evidence back, or open the alert again under another id",
            had(&view.sources),
            had(&member.sources)
        ))
    }
}

#[async_trait]
impl Reasoner for ScopedToSources {
    fn player(&self, task: &Task, past: &Past) -> Player {
        self.reasoner.player(task, past)
    }

    async fn next(&self, task: &Arc<Task>, past: &Past, turn: &Turn) -> Action {
        match self.astray(task) {
            Some(why) => Action::GiveUp(why),
            None => self.reasoner.next(task, past, turn).await,
        }
    }

    fn allowance(&self, task: &Task) -> Allowance {
        self.limits.held(self.reasoner.allowance(task))
    }

    async fn raised(&self, task: &Arc<Task>, past: &Past) -> Vec<FindingDraft> {
        self.reasoner.raised(task, past).await
    }

    fn one_call(&self, member: &Member) -> Option<Usage> {
        self.reasoner.one_call(member)
    }

    async fn ready(&self) {
        self.reasoner.ready().await;
    }

    fn keeps_requests(&self) -> bool {
        self.reasoner.keeps_requests()
    }

    fn models(&self) -> Option<&dyn Model> {
        self.reasoner.models()
    }
}

#[cfg(test)]
mod tests {
    use casebook_agent::reasoner::{Analyst, CallRequest};
    use casebook_protocol::{Alert, Domain, ExpertView, InvestigationId, Phase, Question, TaskId, TaskKind, Toolset};

    use super::*;

    fn member(records: u64) -> Member {
        let source = SourceInfo {
            source: "sysmon".into(),
            sensor: "sysmon".into(),
            on_subject_host: true,
            records,
            about: "a log".into(),
            coverage: Vec::new(),
        };
        Member {
            domain: Domain::new("endpoint").unwrap(),
            description: "reads".into(),
            sources: vec![source],
            toolset: Toolset { name: "evidence".into(), about: "logs".into(), tools: vec![] },
            covers: vec![],
            one_call: None,
        }
    }

    #[tokio::test]
    async fn a_task_over_other_evidence_is_not_performed() {
        let began = member(7);
        let view = ExpertView {
            alert: Alert::parse(b"{}").unwrap(),
            journal: vec![],
            question: Question { text: "what ran?".into(), to: vec![], follow: vec![] },
            toolset: began.toolset.clone(),
            sources: began.sources.clone(),
            earlier: vec![],
            snapshot: Vec::new(),
        };
        let task = Arc::new(Task {
            id: TaskId::of(1, TaskKind::Investigate, Some(&began.domain)),
            investigation: InvestigationId::new("i").unwrap(),
            domain: Some(began.domain.clone()),
            phase: Phase::Discovery,
            round: 1,
            view: View::Investigate(Box::new(view)),
            allowance: Allowance::default(),
        });
        let calls = Action::Call(vec![CallRequest { tool: "list_sources".into(), arguments: "{}".into() }]);
        let turn = Turn {
            toolset: Arc::new(began.toolset.clone()),
            last: false,
            prompt_cache: casebook_agent::reasoner::PromptCache::default(),
        };
        let next = async |member: Member| {
            let reasoner = Arc::new(Analyst(|_, _, _| {
                Action::Call(vec![CallRequest { tool: "list_sources".into(), arguments: "{}".into() }])
            }));
            let scoped = ScopedToSources { reasoner, member: Some(member), limits: Limits::default() };
            scoped.next(&task, &Past::default(), &turn).await
        };
        assert_eq!(next(began.clone()).await, calls);
        assert_eq!(next(member(8)).await, calls, "the log has grown");
        let mut other = member(7);
        other.sources[0].sensor = "forged".into();
        let Action::GiveUp(why) = next(other).await else { panic!() };
        assert!(why.contains("had sysmon (by sysmon) and has sysmon (by forged)"), "{why}");
    }
}
