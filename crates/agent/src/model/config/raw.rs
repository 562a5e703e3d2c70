//! The format of the models file, and the checks of its values.

use std::collections::BTreeMap;
use std::time::Duration;

use casebook_protocol::Role;
use casebook_runtime::config::{Check, Money, is_variable};
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::{ANALYST, Choice, Config, Effort, KeySource, Parameters, Profile, Provider, RoleChoice, Way};
use crate::model::price::Price;

/// The language models, their assignment to roles, and the limits of tasks.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "models file")]
pub(super) struct File {
    /// Store each request to a model with the investigation: true or false; default: true.
    #[serde(default = "kept")]
    #[schemars(with = "bool")]
    keep_requests: bool,
    /// The models, by name: [models.NAME].
    #[serde(default)]
    models: BTreeMap<String, Model>,
    /// The models of the roles: [roles.director], [roles.expert], [roles.critic].
    #[serde(default)]
    roles: Roles,
}

fn kept() -> bool {
    true
}

/// Roles: director, expert and critic.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct Roles {
    director: Option<RoleChoice>,
    expert: Option<RoleChoice>,
    critic: Option<RoleChoice>,
}

/// A model.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Model {
    /// The service of the model; for Ollama write "openai-compatible" with base_url = "http://localhost:11434/v1", for
    /// vLLM with base_url = "http://HOST:8000/v1".
    provider: Provider,
    /// The name that the provider gives this model.
    #[schemars(length(min = 1))]
    model: String,
    /// The address of the server; needed for openai-compatible and bedrock.
    #[schemars(regex(pattern = "^[hH][tT][tT][pP][sS]?://[^/?#@]+(/[^?#]*)?$"))]
    base_url: Option<String>,
    /// Read only to report that it must not be here.
    #[schemars(skip)]
    key: Option<IgnoredAny>,
    /// The environment variable that holds the key. The key itself is never in this file.
    #[schemars(regex(pattern = "^[A-Za-z_][A-Za-z0-9_]{0,127}$"))]
    key_env: Option<String>,
    /// The file that holds the key.
    #[schemars(length(min = 1))]
    key_file: Option<String>,
    /// The most tokens of prompt and reply together, 1024 or more.
    #[schemars(range(min = 1024))]
    window: u32,
    /// The most tokens of one reply; fewer than window.
    #[schemars(range(min = 1))]
    max_output: Option<u32>,
    /// The way of answering: native or submit_tool.
    answer: Option<Way>,
    /// A number from 0 to 2.
    #[schemars(range(min = 0.0, max = 2.0))]
    temperature: Option<f64>,
    /// A number above 0 and at most 1.
    #[schemars(extend("exclusiveMinimum" = 0, "maximum" = 1))]
    top_p: Option<f64>,
    /// How much the model thinks.
    effort: Option<Effort>,
    /// A whole number, for providers that can repeat a reply: openai, openai-compatible.
    seed: Option<u64>,
    /// The time limit of one attempt in seconds, from 1 to 3600.
    #[schemars(range(min = 1, max = 3600))]
    timeout_seconds: Option<u64>,
    /// The most calls at once, from 1 to 1024.
    #[schemars(range(min = 1, max = 1024))]
    concurrency: Option<u32>,
    /// Prices, in one currency; without them cost counts as zero.
    price: Option<PriceTable>,
    /// A list of models of this file to use in order if this one fails.
    #[serde(default)]
    fallback: Vec<String>,
}

/// Prices of a million tokens.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PriceTable {
    /// Of a million input tokens.
    input: Money,
    /// Of a million cached input tokens; default: input.
    cached: Option<Money>,
    /// Of a million tokens written to the cache; default: input.
    cache_write: Option<Money>,
    /// Of a million output tokens.
    output: Money,
}

impl File {
    pub(super) fn config(self, check: &mut Check) -> Config {
        let mut models = BTreeMap::new();
        for (name, model) in &self.models {
            check.at(&["models", name], |check| {
                check_name(name, check);
                model.check(check);
                models.insert(name.clone(), model.profile(name, check));
                for (n, other) in model.fallback.iter().enumerate() {
                    self.check_known(&["fallback", &n.to_string()], other, check);
                }
                if let Some(path) = self.circle(name, &mut vec![name]) {
                    let what = format!("goes in a circle ({path}); remove one of these names");
                    check.wrong(&["fallback"], what);
                }
            });
        }
        let roles = [
            (Role::Director, &self.roles.director),
            (Role::Expert, &self.roles.expert),
            (Role::Critic, &self.roles.critic),
        ];
        let roles: BTreeMap<Role, RoleChoice> =
            roles.into_iter().filter_map(|(role, choice)| Some((role, choice.clone()?))).collect();
        for (role, choice) in &roles {
            check.at(&["roles", role.name()], |check| self.check_role(*role, choice, check));
        }
        Config { models, roles, keep_requests: self.keep_requests }
    }

    fn check_role(&self, role: Role, choice: &RoleChoice, check: &mut Check) {
        for kind in choice.tasks.keys().filter(|kind| kind.role() != role) {
            let other = kind.role().name();
            let what = format!("this is a task of the {other}; write it under [roles.{other}]");
            check.wrong(&["tasks", kind.name()], what);
        }
        if role != Role::Expert && !choice.domains.is_empty() {
            check.wrong(&["domains"], "only Experts have domains; write this under [roles.expert]");
        }
        self.check_choice(&choice.base(), check);
        for (phase, choice) in &choice.phases {
            check.at(&["phases", phase.name()], |check| self.check_choice(choice, check));
        }
        for (kind, choice) in &choice.tasks {
            check.at(&["tasks", kind.name()], |check| self.check_choice(choice, check));
        }
        for (domain, choice) in &choice.domains {
            check.at(&["domains", domain.as_str()], |check| self.check_choice(choice, check));
        }
    }

    fn check_choice(&self, choice: &Choice, check: &mut Check) {
        if let Some(model) = choice.model.as_ref().filter(|model| *model != ANALYST) {
            self.check_known(&["model"], model, check);
        }
        check.at(&["limits"], |check| choice.limits.check(check));
    }

    fn check_known(&self, key: &[&str], name: &str, check: &mut Check) {
        if !self.models.contains_key(name) {
            let names = self.models.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
            let names = if names.is_empty() { "none so far" } else { &names };
            check.wrong(key, format!("expected a model of this file; write one of its [models.NAME] ({names})"));
        }
    }

    fn circle<'a>(&'a self, start: &str, path: &mut Vec<&'a str>) -> Option<String> {
        for name in &self.models.get(*path.last()?)?.fallback {
            if name == start {
                return Some(format!("{} -> {start}", path.join(" -> ")));
            }
            if !path.contains(&name.as_str()) {
                path.push(name);
                if let Some(found) = self.circle(start, path) {
                    return Some(found);
                }
                path.pop();
            }
        }
        None
    }
}

fn check_name(name: &str, check: &mut Check) {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if !(1..=64).contains(&name.len()) || !name.chars().all(fits) {
        check.wrong(
            &[],
            "expected a model's name of 1 to 64 of a-z, A-Z, 0-9, '-', '_' and '.'; write one such as [models.fast]",
        );
    }
    if name == ANALYST {
        check.wrong(&[], "\"analyst\" names the built-in analyst; give the model another name");
    }
}

impl Model {
    fn check(&self, check: &mut Check) {
        if self.model.trim().is_empty() || self.model.chars().any(char::is_control) {
            check.wrong(&["model"], "expected the name that the provider gives this model");
        }
        if self.provider == Provider::Bedrock && self.model.contains("anthropic.") {
            let what = "bedrock means OpenAI's format, in which Bedrock serves no Claude; write provider = \"anthropic\" \
                        and base_url = \"https://bedrock-mantle.REGION.api.aws/anthropic/v1\"";
            check.wrong(&["model"], what);
        }
        if self.window < 1024 {
            check.wrong(&["window"], "expected the tokens of the model's context window, 1024 or more");
        } else {
            check.number("max_output", self.max_output, 1..=self.window - 1);
        }
        check.number("temperature", self.temperature, 0.0..=2.0);
        if self.top_p.is_some_and(|p| !(p > 0.0 && p <= 1.0)) {
            check.wrong(&["top_p"], "expected a number above 0 and at most 1");
        }
        check.number("timeout_seconds", self.timeout_seconds, 1..=3600);
        check.number("concurrency", self.concurrency, 1..=1024);
        let name = self.provider.name();
        // Some models of Bedrock ignore a schema.
        if self.answer == Some(Way::Native) && self.provider == Provider::Bedrock {
            check.wrong(&["answer"], "bedrock has no structured output; write \"submit_tool\"");
        }
        let seeds = matches!(self.provider, Provider::Openai | Provider::OpenaiCompatible);
        if self.seed.is_some() && !seeds {
            check.wrong(&["seed"], format!("{name} does not support a seed; leave it out"));
        }
    }

    fn profile(&self, name: &str, check: &mut Check) -> Profile {
        Profile {
            name: name.to_owned(),
            provider: self.provider,
            provider_model: self.model.clone(),
            base_url: self.base_url(check),
            key: self.key(check),
            window: self.window,
            max_output: self.max_output.unwrap_or(8192.min(self.window / 2)),
            way: self.answer.unwrap_or(self.provider.way()),
            parameters: Parameters {
                temperature: self.temperature,
                top_p: self.top_p,
                effort: self.effort,
                seed: self.seed,
            },
            timeout: Duration::from_secs(self.timeout_seconds.unwrap_or(300)),
            concurrency: self.concurrency.unwrap_or(8),
            price: self.price.map(|price| Price {
                input: price.input.0,
                cached: price.cached.unwrap_or(price.input).0,
                cache_write: price.cache_write.unwrap_or(price.input).0,
                output: price.output.0,
            }),
            fallback: self.fallback.clone(),
        }
    }

    fn base_url(&self, check: &mut Check) -> String {
        let Some(text) = &self.base_url else {
            if self.provider.base_url().is_none() {
                let name = self.provider.name();
                let what = format!("{name} needs the server's address; write base_url = \"http://localhost:11434/v1\"");
                check.wrong(&["base_url"], what);
            }
            return self.provider.base_url().unwrap_or_default().to_owned();
        };
        let wrong = match reqwest::Url::parse(text) {
            Err(_) => "expected a whole address; write one such as \"https://gateway.example/v1\"",
            Ok(url) if !matches!(url.scheme(), "http" | "https") || !url.has_host() => {
                "expected an address that begins with http:// or https://"
            }
            Ok(url) if !url.username().is_empty() || url.password().is_some() => {
                "leave user and password out; a key belongs in key_env or key_file"
            }
            Ok(url) if url.query().is_some() || url.fragment().is_some() => "leave out what follows '?' or '#'",
            Ok(url) => return self.provider.chat_url(url.as_str().trim_end_matches('/')),
        };
        check.wrong(&["base_url"], wrong);
        String::new()
    }

    fn key(&self, check: &mut Check) -> KeySource {
        if self.key.is_some() {
            let what = "a key is never in this file, since files are shared and committed; put it into an environment \
                        variable and write key_env = \"NAME\", or into a file of its own and write key_file = \"PATH\"";
            check.wrong(&["key"], what);
            return KeySource::Keyless;
        }
        match (&self.key_env, &self.key_file) {
            (Some(_), Some(_)) => check.wrong(&["key_env"], "key_env and key_file are both set; leave one out"),
            // The value is not quoted, since it may be the key itself.
            (Some(env), None) if !is_variable(env) => {
                check.wrong(&["key_env"], "expected the name of an environment variable, not the key itself");
            }
            (Some(env), None) => return KeySource::Env(env.clone()),
            (None, Some(file)) if file.trim().is_empty() => check.wrong(&["key_file"], "expected the path of a file"),
            (None, Some(file)) => return KeySource::File(file.clone()),
            (None, None) if self.provider == Provider::OpenaiCompatible => {}
            (None, None) => {
                let name = self.provider.name();
                let what = format!("is missing; {name} needs a key: write key_env = \"NAME\" or key_file = \"PATH\"");
                check.wrong(&["key_env"], what);
            }
        }
        KeySource::Keyless
    }
}
