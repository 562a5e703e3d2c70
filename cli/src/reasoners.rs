//! The reasoner of each role: models, recorded or replayed if requested, or the built-in analyst.

use std::sync::Arc;

use casebook_agent::model::Model;
use casebook_agent::model::brief::Brief;
use casebook_agent::model::config::{ANALYST, Config};
use casebook_agent::model::open::Models;
use casebook_agent::model::reasoner::assign;
use casebook_agent::model::reword::Prompts;
use casebook_agent::reasoner::{Analyst, Reasoner};
use casebook_critic::brief::CriticBrief;
use casebook_director::brief::DirectorBrief;
use casebook_expert::brief::ExpertBrief;
use casebook_expert::definition::Definition;
use casebook_expert::team::{Team, TeamFolder};
use casebook_protocol::Member;

use crate::failure::Failure;
use crate::models;

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

    /// Uses the models of `config` through `models`, and the built-in analyst for roles without one.
    #[must_use]
    pub fn of(config: Arc<Config>, models: Arc<dyn Model>) -> Self {
        Self { models: Some(Models { config, models }), prompts: None }
    }

    /// Uses `prompts` instead of the built-in ones.
    #[must_use]
    pub fn with_prompts(self, prompts: Prompts) -> Self {
        Self { prompts: Some(Arc::new(prompts)), ..self }
    }

    /// The same models file with the model `name`, or the built-in analyst, in every role.
    pub fn with_model(&self, name: &str, team: Option<&TeamFolder>) -> Result<Self, Failure> {
        match &self.models {
            Some(models) => {
                let config = models::with_models((*models.config).clone(), &[name.to_owned()])?;
                let client = models::client(&config)?;
                Ok(Self { models: Some(Models { config: Arc::new(config), models: client }), ..self.clone() })
            }
            None if name == ANALYST => models::without_file(team).map(|()| Self::analyst()),
            None => Err(Failure::usage(
                format!("model {name:?} is unknown, because no models file is given"),
                "start with --models FILE",
            )),
        }
    }

    /// The names that [`Self::with_model`] knows.
    pub fn names(&self) -> Vec<String> {
        let of_file = self.models.iter().flat_map(|models| models.config.models());
        [ANALYST.to_owned()].into_iter().chain(of_file.map(|profile| profile.name.clone())).collect()
    }

    /// Whether a model may play a role.
    pub const fn has_models(&self) -> bool {
        self.models.is_some()
    }

    pub fn director(&self) -> Arc<dyn Reasoner> {
        self.reasoner(Arc::new(DirectorBrief), Analyst(casebook_director::analyst::think))
    }

    pub fn expert(&self) -> Arc<dyn Reasoner> {
        self.reasoner(Arc::new(ExpertBrief), Analyst(casebook_expert::analyst::think))
    }

    /// An Expert that follows `definition`. If `member` is given, it sees only the evidence of that member.
    pub fn expert_of(&self, definition: Option<&Definition>, member: Option<Member>) -> Arc<dyn Reasoner> {
        casebook_expert::reasoner::of(definition, member, self.models.as_ref(), self.prompts.as_ref())
    }

    /// What of the team's files the built-in analyst does not use, if it plays an Expert.
    pub fn unused(&self, team: &Team) -> Option<String> {
        let config = self.models.as_ref().map(|models| models.config.as_ref());
        casebook_expert::reasoner::unused(config, &team.members)
    }

    pub fn critic(&self) -> Arc<dyn Reasoner> {
        self.reasoner(Arc::new(CriticBrief), Analyst(casebook_critic::analyst::think))
    }

    /// Prepares what each role computes once, so that no task waits for it.
    pub async fn ready(&self) {
        let (director, expert, critic) = (self.director(), self.expert(), self.critic());
        tokio::join!(director.ready(), expert.ready(), critic.ready());
    }

    fn reasoner(&self, brief: Arc<dyn Brief>, analyst: Analyst) -> Arc<dyn Reasoner> {
        assign(self.models.as_ref(), self.prompts.as_ref(), "", brief, analyst)
    }
}
