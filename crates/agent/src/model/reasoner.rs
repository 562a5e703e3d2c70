//! A role that language models play.

use std::sync::Arc;

use async_trait::async_trait;
use casebook_protocol::{
    Alert, Allowance, ExpertView, FindingDraft, InvestigationId, Member, Phase, Player, Question, Task, TaskId,
    TaskKind, Usage, View,
};
use casebook_runtime::process::blocking;

use crate::model::Model;
use crate::model::brief::Brief;
use crate::model::config::{Config, ModelSelection};
use crate::model::dialogue::Dialogue;
use crate::model::open::Models;
use crate::model::reword::{Prompts, Reworded};
use crate::reasoner::{Action, Analyst, Past, PromptCache, Reasoner, Turn};

/// The reasoner of a role: its models in the models file, or `analyst` if it has none. `prompts` replace the built-in
/// ones, and `added` is appended to each.
pub fn assign(
    models: Option<&Models>,
    prompts: Option<&Arc<Prompts>>,
    added: &str,
    brief: Arc<dyn Brief>,
    analyst: Analyst,
) -> Arc<dyn Reasoner> {
    let brief: Arc<dyn Brief> = Arc::new(Reworded { brief, prompts: prompts.cloned(), added: added.to_owned() });
    match models.cloned() {
        None => Arc::new(analyst),
        Some(Models { config, models }) => Arc::new(ModelOrAnalyst { config, models, brief, analyst }),
    }
}

/// Uses the model that the models file assigns to a task, and otherwise the built-in analyst.
pub struct ModelOrAnalyst {
    pub config: Arc<Config>,
    pub models: Arc<dyn Model>,
    pub brief: Arc<dyn Brief>,
    pub analyst: Analyst,
}

impl ModelOrAnalyst {
    fn selected(&self, task: &Task) -> Option<ModelSelection> {
        let kind = task.view.kind();
        self.config.select(kind.role(), kind, task.phase, task.domain.as_ref())
    }
}

#[async_trait]
impl Reasoner for ModelOrAnalyst {
    fn player(&self, task: &Task, past: &Past) -> Player {
        let model = |name: &str, version: &str| Player { name: name.into(), version: version.into(), built_in: false };
        let Some(selected) = self.selected(task) else { return self.analyst.player(task, past) };
        match past.asked.iter().rev().find(|e| e.result.is_ok()) {
            Some(last) => model(&last.call.model, &last.call.version),
            None => match selected.chain.first() {
                Some(first) => model(&first.name, &first.provider_model),
                None => self.analyst.player(task, past),
            },
        }
    }

    async fn next(&self, task: &Arc<Task>, past: &Past, turn: &Turn) -> Action {
        match self.selected(task) {
            Some(selected) => Dialogue { task, selected: &selected, brief: self.brief.as_ref(), past, turn }.next(),
            None => self.analyst.next(task, past, turn).await,
        }
    }

    fn allowance(&self, task: &Task) -> Allowance {
        self.selected(task).map_or(task.allowance, |selected| selected.limits.held(task.allowance))
    }

    async fn raised(&self, task: &Arc<Task>, past: &Past) -> Vec<FindingDraft> {
        if self.selected(task).is_none() {
            // The analyst includes such findings in its answer.
            return Vec::new();
        }
        let (brief, task, done) = (Arc::clone(&self.brief), Arc::clone(task), Arc::clone(&past.done));
        blocking(move || brief.raised(&task, &done)).await.unwrap_or_else(|error| {
            tracing::error!(%error, "could not search the results of a task for findings");
            Vec::new()
        })
    }

    fn one_call(&self, member: &Member) -> Option<Usage> {
        let task = first_task(member)?;
        let (selected, past) = (self.selected(&task)?, Past::default());
        let turn =
            Turn { toolset: Arc::new(member.toolset.clone()), last: false, prompt_cache: PromptCache::default() };
        let first = Dialogue { task: &task, selected: &selected, brief: self.brief.as_ref(), past: &past, turn: &turn };
        match first.next() {
            Action::Ask(asking) => Some(asking.most),
            Action::Call(_) | Action::Answer(_) | Action::Corrected(..) | Action::GiveUp(_) => None,
        }
    }

    async fn ready(&self) {
        let brief = Arc::clone(&self.brief);
        if let Err(error) = tokio::task::spawn_blocking(move || brief.ready()).await {
            tracing::warn!(%error, "preparations failed; the first task will repeat them");
        }
    }

    fn keeps_requests(&self) -> bool {
        self.config.keep_requests
    }

    fn models(&self) -> Option<&dyn Model> {
        Some(self.models.as_ref())
    }
}

/// The first task of an Expert, with an alert and a question that could not be shorter.
fn first_task(member: &Member) -> Option<Task> {
    let view = ExpertView {
        alert: Alert::parse(b"{}").ok()?,
        journal: Vec::new(),
        question: Question { text: String::new(), to: Vec::new(), follow: Vec::new() },
        toolset: member.toolset.clone(),
        sources: member.sources.clone(),
        earlier: vec![],
        snapshot: Vec::new(),
    };
    Some(Task {
        id: TaskId::of(1, TaskKind::Investigate, Some(&member.domain)),
        investigation: InvestigationId::new("start").ok()?,
        domain: Some(member.domain.clone()),
        phase: Phase::Discovery,
        round: 1,
        view: View::Investigate(Box::new(view)),
        allowance: Allowance::default(),
    })
}
