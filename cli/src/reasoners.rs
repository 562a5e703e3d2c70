//! Who thinks in each role: the models of a models file, recorded or replayed where asked for, and the
//! built-in analyst where no model is set.

use std::sync::Arc;

use casebook_agent::model::Model;
use casebook_agent::model::brief::Brief;
use casebook_agent::model::config::Config;
use casebook_agent::model::open::Models;
use casebook_agent::model::reasoner::assign;
use casebook_agent::model::reword::Prompts;
use casebook_agent::reasoner::{Analyst, Reasoner};
use casebook_critic::brief::CriticBrief;
use casebook_director::brief::DirectorBrief;
use casebook_expert::brief::ExpertBrief;
use casebook_expert::definition::Definition;
use casebook_protocol::Member;

#[derive(Clone, Default)]
pub struct Reasoners {
    models: Option<Models>,
    prompts: Option<Arc<Prompts>>,
}

impl Reasoners {
    #[must_use]
    pub fn analyst() -> Self {
        Self::default()
    }

    /// The models of `config`, asked through `models`, and the built-in analyst where it names none.
    #[must_use]
    pub fn of(config: Arc<Config>, models: Arc<dyn Model>) -> Self {
        Self { models: Some(Models { config, models }), prompts: None }
    }

    /// The same, told `prompts` instead of the built-in ones.
    #[must_use]
    pub fn told(self, prompts: Prompts) -> Self {
        Self { prompts: Some(Arc::new(prompts)), ..self }
    }

    /// Some role may be played by a model.
    pub const fn has_models(&self) -> bool {
        self.models.is_some()
    }

    pub fn director(&self) -> Arc<dyn Reasoner> {
        self.reasoner(Arc::new(DirectorBrief), Analyst(casebook_director::analyst::think))
    }

    pub fn expert(&self) -> Arc<dyn Reasoner> {
        self.reasoner(Arc::new(ExpertBrief), Analyst(casebook_expert::analyst::think))
    }

    /// Who investigates as `definition` says, over the evidence of `member` alone where there is one.
    pub fn expert_of(&self, definition: Option<&Definition>, member: Option<Member>) -> Arc<dyn Reasoner> {
        casebook_expert::reasoner::of(definition, member, self.models.as_ref(), self.prompts.as_ref())
    }

    /// Who reviews and tells the story.
    pub fn critic(&self) -> Arc<dyn Reasoner> {
        self.reasoner(Arc::new(CriticBrief), Analyst(casebook_critic::analyst::think))
    }

    /// Makes now what each role makes once and takes time, so that no task waits for it.
    pub async fn ready(&self) {
        let (director, expert, critic) = (self.director(), self.expert(), self.critic());
        tokio::join!(director.ready(), expert.ready(), critic.ready());
    }

    fn reasoner(&self, brief: Arc<dyn Brief>, analyst: Analyst) -> Arc<dyn Reasoner> {
        assign(self.models.as_ref(), self.prompts.as_ref(), "", brief, analyst)
    }
}
