//! Changes the models of roles: to repeat a run with another model, to try one model alone, and to drop unused models.

use std::collections::BTreeSet;

use casebook_protocol::{Domain, Role};

use super::{ANALYST, Config, RoleChoice};

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected a model of the models file ({known}), got {name:?}")]
pub struct NoModel {
    pub name: String,
    pub known: String,
}

const ROLES: [Role; 3] = [Role::Director, Role::Expert, Role::Critic];

impl Config {
    /// Uses `model` (or [`ANALYST`]) in `role`, or in every role, for all tasks, phases and domains. Limits do not
    /// change.
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

    /// Uses `model` (or [`ANALYST`]) for the Expert of `domain`, for all tasks and phases.
    pub fn with_expert(mut self, domain: &Domain, model: &str) -> Result<Self, NoModel> {
        if model != ANALYST {
            self.known(model)?;
        }
        let expert = self.roles.entry(Role::Expert).or_default();
        expert.domains.entry(domain.clone()).or_default().model = Some(model.to_owned());
        Ok(self)
    }

    /// Uses `model` alone in every role, without the file's limits and fallbacks.
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

    /// Drops the models that no role uses, so that their keys are not needed.
    #[must_use]
    pub fn in_use(mut self) -> Self {
        let mut roles = self.roles.clone();
        let used = roles.values_mut().flat_map(choices).filter_map(|model| model.clone());
        let used: BTreeSet<String> =
            used.collect::<Vec<_>>().iter().flat_map(|name| self.chain(name)).map(|profile| profile.name).collect();
        self.models.retain(|name, _| used.contains(name));
        self
    }

    /// Keeps `role` and its models alone, for a process of this role.
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

/// Every model that a role names, its own first.
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
        assert_eq!(error, "expected a model of the models file (big, idle, small), got \"bigger\"");
        assert!(Config::default().alone("x").unwrap_err().to_string().contains("models file (none)"));
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
