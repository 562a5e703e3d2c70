//! A role played by language models: the task's prompt from the role, the models from the models
//! file, the conversation from [`crate::model::dialogue`].

use std::sync::Arc;

use async_trait::async_trait;
use casebook_protocol::{Allowance, FindingDraft, Player, Task};
use casebook_runtime::process::blocking;

use crate::model::Model;
use crate::model::brief::Brief;
use crate::model::config::{Config, ModelSelection};
use crate::model::dialogue::Dialogue;
use crate::model::open::Models;
use crate::model::reword::{Prompts, Reworded};
use crate::reasoner::{Action, Analyst, Past, Reasoner, Turn};

/// Who plays a role: its models in the models file, with `prompts` if there are some and `added` at the
/// end of each, and `analyst` if the role has no model.
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

/// What thinks where the models file names a model, and the built-in analyst where it does not.
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
            // The analyst raises by itself what it sees.
            return Vec::new();
        }
        let (brief, task, done) = (Arc::clone(&self.brief), Arc::clone(task), Arc::clone(&past.done));
        blocking(move || brief.raised(&task, &done)).await.unwrap_or_else(|error| {
            tracing::error!(%error, "what the results of a task hold could not be looked through");
            Vec::new()
        })
    }

    async fn ready(&self) {
        let brief = Arc::clone(&self.brief);
        if let Err(error) = tokio::task::spawn_blocking(move || brief.ready()).await {
            tracing::warn!(%error, "what is made once is made with the first task");
        }
    }

    fn models(&self) -> Option<&dyn Model> {
        Some(self.models.as_ref())
    }
}
