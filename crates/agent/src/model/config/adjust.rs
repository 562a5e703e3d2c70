//! The same models file with other models in its roles: to run something again with another model, to try one model
//! alone, and to leave out what nobody uses.

use std::collections::BTreeSet;

use casebook_protocol::{Domain, Role};

use super::{ANALYST, Config, RoleChoice};

/// The file has no such model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no model {name:?} in the models file, which has {known}")]
pub struct NoModel {
    /// The name asked for.
    pub name: String,
    /// The names that there are.
    pub known: String,
}

/// All roles.
const ROLES: [Role; 3] = [Role::Director, Role::Expert, Role::Critic];

impl Config {
    /// This file with `model` (or [`ANALYST`]) in `role`, whatever the task, the phase and the domain;
    /// in every role where none is named. Limits stay as they are.
    ///
    /// # Errors
    /// [`NoModel`] when the file does not have it.
    pub fn with_model(mut self, role: Option<Role>, model: &str) -> Result<Self, NoModel> {
        if model != ANALYST {
            self.known(model)?;
        }
        for role in ROLES.into_iter().filter(|r| role.is_none_or(|asked| asked == *r)) {
            let choice = self.roles.entry(role).or_default();
            for over in choices(choice) {
                *over = None;
            }
            choice.model = Some(model.to_owned());
        }
        Ok(self)
    }

    /// This file with `model` (or [`ANALYST`]) as the Expert of `domain`, whatever the task and the phase.
    ///
    /// # Errors
    /// [`NoModel`] when the file does not have it.
    pub fn with_expert(mut self, domain: &Domain, model: &str) -> Result<Self, NoModel> {
        if model != ANALYST {
            self.known(model)?;
        }
        let expert = self.roles.entry(Role::Expert).or_default();
        expert.domains.entry(domain.clone()).or_default().model = Some(model.to_owned());
        Ok(self)
    }

    /// `model` alone: in every role, without limits of its own and with nobody to fall back on.
    ///
    /// # Errors
    /// [`NoModel`] when the file does not have it.
    pub fn alone(&self, model: &str) -> Result<Self, NoModel> {
        self.known(model)?;
        let mut only = Self::default();
        only.models.extend(self.models.get(model).map(|profile| {
            let mut profile = profile.clone();
            profile.fallback.clear();
            (model.to_owned(), profile)
        }));
        only.with_model(None, model)
    }

    /// This file without the models that no role uses: their keys are not needed.
    #[must_use]
    pub fn in_use(mut self) -> Self {
        let mut roles = self.roles.clone();
        let used = roles.values_mut().flat_map(choices).filter_map(|model| model.clone());
        let used: BTreeSet<String> =
            used.collect::<Vec<_>>().iter().flat_map(|name| self.chain(name)).map(|profile| profile.name).collect();
        self.models.retain(|name, _| used.contains(name));
        self
    }

    /// This file for a process that plays `role` alone: other roles and their models are left out.
    #[must_use]
    pub fn of_role(mut self, role: Role) -> Self {
        self.roles.retain(|other, _| *other == role);
        self.in_use()
    }

    fn known(&self, name: &str) -> Result<(), NoModel> {
        if self.models.contains_key(name) {
            return Ok(());
        }
        let known: Vec<&str> = self.models.keys().map(String::as_str).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        Err(NoModel { name: casebook_protocol::one_line(name, 64), known })
    }
}

/// Every model that a role may name, its own first.
fn choices(role: &mut RoleChoice) -> impl Iterator<Item = &mut Option<String>> {
    let over = role.phases.values_mut().chain(role.tasks.values_mut()).chain(role.domains.values_mut());
    std::iter::once(&mut role.model).chain(over.map(|choice| &mut choice.model))
}

#[cfg(test)]
mod tests {
    use casebook_protocol::{Domain, Phase, TaskKind};

    use super::*;

    const FILE: &str = r#"
[models.big]
provider = "anthropic"
model = "b"
key_env = "A"
window = 200000
fallback = ["small"]
[models.small]
provider = "openai-compatible"
model = "s"
base_url = "http://localhost:1/v1"
window = 32768
[models.idle]
provider = "openai"
model = "i"
key_env = "B"
window = 32768
[roles.director]
model = "small"
[roles.expert]
model = "small"
limits = { turns = 8 }
[roles.expert.phases.trace]
model = "big"
[roles.expert.domains.cloud]
model = "analyst"
"#;

    fn config() -> Config {
        Config::parse("models.toml", FILE).unwrap()
    }

    fn player(config: &Config, role: Role, kind: TaskKind, domain: &str) -> Option<String> {
        let selected = config.select(role, kind, Phase::Trace, Some(&Domain::new(domain).unwrap()));
        selected.map(|selected| selected.chain.iter().map(|p| p.name.as_str()).collect::<Vec<_>>().join(","))
    }

    #[test]
    fn a_model_replaces_one_role_or_all_and_limits_stay() {
        let expert = |config: &Config| player(config, Role::Expert, TaskKind::Investigate, "cloud");
        let one = config().with_model(Some(Role::Expert), "idle").unwrap();
        assert_eq!(expert(&one).as_deref(), Some("idle"));
        assert_eq!(player(&one, Role::Director, TaskKind::Plan, "x").as_deref(), Some("small"));
        assert_eq!(player(&one, Role::Critic, TaskKind::Review, "x"), None);
        let selected = one.select(Role::Expert, TaskKind::Investigate, Phase::Trace, None).unwrap();
        assert_eq!(selected.limits.turns, Some(8));
        let all = config().with_model(None, "big").unwrap();
        assert_eq!(player(&all, Role::Critic, TaskKind::Review, "x").as_deref(), Some("big,small"));
        assert_eq!(expert(&config().with_model(None, ANALYST).unwrap()), None);
    }

    #[test]
    fn a_model_that_is_not_there_is_named_with_those_that_are() {
        let error = config().with_model(None, "bigger").unwrap_err().to_string();
        assert_eq!(error, "there is no model \"bigger\" in the models file, which has big, idle, small");
        assert!(Config::default().alone("x").unwrap_err().to_string().contains("which has none"));
    }

    #[test]
    fn alone_has_nobody_to_fall_back_on_and_what_nobody_uses_is_left_out() {
        let alone = config().alone("big").unwrap();
        assert_eq!(player(&alone, Role::Critic, TaskKind::Timeline, "x").as_deref(), Some("big"));
        assert_eq!(alone.models().count(), 1);
        let names = |config: Config| config.models().map(|m| m.name.clone()).collect::<Vec<_>>();
        assert_eq!(names(config().in_use()), ["big", "small"]);
        assert_eq!(names(config().with_model(None, "small").unwrap().in_use()), ["small"]);
    }
}
