//! The models file as it is written, and the checks that make a [`Config`] of it.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use casebook_protocol::{Domain, Phase, Role, TaskKind};
use serde::Deserialize;
use serde::de::IgnoredAny;
use toml::Spanned;

use super::{ANALYST, Choice, Config, Effort, KeySource, Limits, Parameters, Profile, Provider, RoleChoice, Way};
use crate::model::price::{self, Price};

/// A fault at a byte of the file.
pub(super) struct Fault {
    pub(super) at: usize,
    pub(super) text: String,
}

fn fault<T>(span: Range<usize>, text: impl Into<String>) -> Result<T, Fault> {
    Err(Fault { at: span.start, text: text.into() })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    models: BTreeMap<Spanned<String>, Spanned<Model>>,
    #[serde(default)]
    roles: BTreeMap<Role, RoleTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Model {
    provider: Spanned<String>,
    model: Spanned<String>,
    base_url: Option<Spanned<String>>,
    key: Option<Spanned<IgnoredAny>>,
    key_env: Option<Spanned<String>>,
    key_file: Option<Spanned<String>>,
    window: Spanned<u32>,
    max_output: Option<Spanned<u32>>,
    answer: Option<Spanned<Way>>,
    temperature: Option<Spanned<f64>>,
    top_p: Option<Spanned<f64>>,
    effort: Option<Effort>,
    seed: Option<Spanned<u64>>,
    timeout_seconds: Option<Spanned<u64>>,
    concurrency: Option<Spanned<u32>>,
    price: Option<PriceTable>,
    #[serde(default)]
    fallback: Vec<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PriceTable {
    input: Spanned<f64>,
    cached: Option<Spanned<f64>>,
    cache_write: Option<Spanned<f64>>,
    output: Spanned<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RoleTable {
    model: Option<Spanned<String>>,
    limits: Option<LimitsTable>,
    #[serde(default)]
    phases: BTreeMap<Phase, ChoiceTable>,
    #[serde(default)]
    tasks: BTreeMap<TaskKind, Spanned<ChoiceTable>>,
    #[serde(default)]
    domains: BTreeMap<Domain, Spanned<ChoiceTable>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ChoiceTable {
    model: Option<Spanned<String>>,
    limits: Option<LimitsTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LimitsTable {
    turns: Option<Spanned<u32>>,
    model_calls: Option<Spanned<u32>>,
    tool_calls: Option<u32>,
    tokens: Option<Spanned<u64>>,
    cost: Option<Spanned<f64>>,
    seconds: Option<Spanned<u64>>,
}

/// Reads and checks the file.
pub(super) fn read(text: &str) -> Result<Config, Fault> {
    let file: File = toml::from_str(text).map_err(|error| Fault {
        at: error.span().map_or(0, |span| span.start),
        // The message alone: the error's own text would quote the line.
        text: error.message().to_owned(),
    })?;
    let mut models = BTreeMap::new();
    for (name, table) in &file.models {
        let profile = profile(name, table)?;
        models.insert(profile.name.clone(), profile);
    }
    for table in file.models.values() {
        for name in &table.get_ref().fallback {
            known(&models, name, "fallback")?;
        }
    }
    for (name, table) in &file.models {
        if let Some(path) = cycle(&models, name.get_ref(), &mut vec![name.get_ref().clone()]) {
            let text = format!("fallback goes in a circle ({path}): leave one of these names out");
            return fault(table.get_ref().fallback.first().map_or(name.span(), Spanned::span), text);
        }
    }
    let roles = file.roles.into_iter().map(|(role, table)| Ok((role, role_choice(&models, role, table)?)));
    Ok(Config { roles: roles.collect::<Result<_, Fault>>()?, models })
}

fn profile(name: &Spanned<String>, table: &Spanned<Model>) -> Result<Profile, Fault> {
    let (at, model) = (name.span(), table.get_ref());
    let id = name.get_ref();
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if id.is_empty() || id.len() > 64 || !id.chars().all(fits) {
        return fault(at, "a model's name has 1 to 64 of a-z, A-Z, 0-9, '-', '_' and '.': [models.fast]");
    }
    if id == ANALYST {
        return fault(at, "\"analyst\" names the built-in analyst: give the model another name");
    }
    let provider = provider(&model.provider)?;
    if model.model.get_ref().trim().is_empty() || model.model.get_ref().chars().any(char::is_control) {
        return fault(model.model.span(), "model: write the name that the provider gives this model");
    }
    if provider == Provider::Bedrock && model.model.get_ref().contains("anthropic.") {
        let text = "model: bedrock means OpenAI's format, in which Bedrock serves no Claude: write provider = \
                    \"anthropic\" and base_url = \"https://bedrock-mantle.REGION.api.aws/anthropic/v1\"";
        return fault(model.model.span(), text);
    }
    let window = *model.window.get_ref();
    if window < 1024 {
        return fault(model.window.span(), "window: write the tokens of the model's context window, 1024 or more");
    }
    let max_output = model.max_output.as_ref().map_or(8192.min(window / 2), |n| *n.get_ref());
    if max_output == 0 || max_output >= window {
        let at = model.max_output.as_ref().map_or(at, Spanned::span);
        return fault(at, format!("max_output: write 1 to {}: a reply must fit into the window", window - 1));
    }
    Ok(Profile {
        name: id.clone(),
        provider,
        provider_model: model.model.get_ref().clone(),
        base_url: base_url(provider, model)?,
        key: key(provider, name, model)?,
        window,
        max_output,
        way: way(provider, model)?,
        parameters: parameters(provider, model)?,
        timeout: Duration::from_secs(within(model.timeout_seconds.as_ref(), "timeout_seconds", 300, 3600)?),
        concurrency: within(model.concurrency.as_ref(), "concurrency", 8, 1024)?,
        price: model.price.as_ref().map(prices).transpose()?,
        fallback: model.fallback.iter().map(|name| name.get_ref().clone()).collect(),
    })
}

const PROVIDERS: [Provider; 6] = [
    Provider::Anthropic,
    Provider::Openai,
    Provider::OpenaiResponses,
    Provider::OpenaiCompatible,
    Provider::Gemini,
    Provider::Bedrock,
];

fn provider(name: &Spanned<String>) -> Result<Provider, Fault> {
    let text = name.get_ref().as_str();
    if let Some(provider) = PROVIDERS.into_iter().find(|provider| provider.name() == text) {
        return Ok(provider);
    }
    let hint = match text {
        "ollama" => "; for Ollama write \"openai-compatible\" with base_url = \"http://localhost:11434/v1\"",
        "vllm" => "; for vLLM write \"openai-compatible\" with base_url = \"http://HOST:8000/v1\"",
        _ => "",
    };
    let names = PROVIDERS.map(Provider::name).join(", ");
    fault(name.span(), format!("provider: write one of {names}{hint}"))
}

fn base_url(provider: Provider, model: &Model) -> Result<String, Fault> {
    let Some(text) = &model.base_url else {
        return match provider.base_url() {
            Some(url) => Ok(url.to_owned()),
            None => fault(
                model.provider.span(),
                format!(
                    "base_url is missing: {} needs the server's address, such as \"http://localhost:11434/v1\"",
                    provider.name()
                ),
            ),
        };
    };
    let wrong = |why: &str| fault(text.span(), format!("base_url: {why}"));
    let Ok(url) = reqwest::Url::parse(text.get_ref()) else {
        return wrong("write a whole address, such as \"https://gateway.example/v1\"");
    };
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return wrong("write an address that begins with http:// or https://");
    }
    if !url.username().is_empty() || url.password().is_some() {
        return wrong("leave user and password out: a key belongs in key_env or key_file");
    }
    if url.query().is_some() || url.fragment().is_some() {
        return wrong("leave out what follows '?' or '#'");
    }
    Ok(provider.chat_url(url.as_str().trim_end_matches('/')))
}

fn key(provider: Provider, name: &Spanned<String>, model: &Model) -> Result<KeySource, Fault> {
    if let Some(key) = &model.key {
        let text = "key: a key never stands in this file, since files are shared and committed: put it into an \
                    environment variable and write key_env = \"NAME\", or into a file of its own and write \
                    key_file = \"PATH\"";
        return fault(key.span(), text);
    }
    match (&model.key_env, &model.key_file) {
        (Some(env), Some(_)) => fault(env.span(), "key_env and key_file are both set: leave one out"),
        (Some(env), None) => {
            let text = env.get_ref();
            let name = |c: char| c.is_ascii_alphanumeric() || c == '_';
            // Not quoted: who writes the key itself here must not find it in a log.
            if text.is_empty()
                || text.len() > 128
                || !text.chars().all(name)
                || text.starts_with(|c: char| c.is_ascii_digit())
            {
                return fault(env.span(), "key_env: write the name of an environment variable, not the key itself");
            }
            Ok(KeySource::Env(text.clone()))
        }
        (None, Some(file)) if file.get_ref().trim().is_empty() => {
            fault(file.span(), "key_file: write the path of a file")
        }
        (None, Some(file)) => Ok(KeySource::File(file.get_ref().clone())),
        (None, None) if provider == Provider::OpenaiCompatible => Ok(KeySource::Keyless),
        (None, None) => fault(
            name.span(),
            format!(
                "key_env is missing: {} wants a key; write key_env = \"NAME\" or key_file = \"PATH\"",
                provider.name()
            ),
        ),
    }
}

fn way(provider: Provider, model: &Model) -> Result<Way, Fault> {
    match &model.answer {
        // Not every model behind this interface heeds a schema.
        Some(way) if *way.get_ref() == Way::Native && provider == Provider::Bedrock => {
            fault(way.span(), "answer: bedrock has no structured output of its own here: write \"submit_tool\"")
        }
        Some(way) => Ok(*way.get_ref()),
        None => Ok(provider.way()),
    }
}

fn parameters(provider: Provider, model: &Model) -> Result<Parameters, Fault> {
    if let Some(t) = model.temperature.as_ref().filter(|t| !(0.0..=2.0).contains(t.get_ref())) {
        return fault(t.span(), "temperature: write a number from 0 to 2");
    }
    if let Some(p) = model.top_p.as_ref().filter(|p| !(*p.get_ref() > 0.0 && *p.get_ref() <= 1.0)) {
        return fault(p.span(), "top_p: write a number above 0 and at most 1");
    }
    let seeds = matches!(provider, Provider::Openai | Provider::OpenaiCompatible);
    if let Some(seed) = model.seed.as_ref().filter(|_| !seeds) {
        return fault(seed.span(), format!("seed: {} has none: leave it out", provider.name()));
    }
    Ok(Parameters {
        temperature: model.temperature.as_ref().map(|t| *t.get_ref()),
        top_p: model.top_p.as_ref().map(|p| *p.get_ref()),
        effort: model.effort,
        seed: model.seed.as_ref().map(|seed| *seed.get_ref()),
    })
}

fn within<T: Copy + PartialOrd + Default + std::fmt::Display>(
    value: Option<&Spanned<T>>,
    key: &str,
    default: T,
    max: T,
) -> Result<T, Fault> {
    match value {
        None => Ok(default),
        Some(value) if *value.get_ref() > T::default() && *value.get_ref() <= max => Ok(*value.get_ref()),
        Some(value) => fault(value.span(), format!("{key}: write a whole number from 1 to {max}")),
    }
}

fn money(value: &Spanned<f64>, key: &str) -> Result<u64, Fault> {
    let wrong =
        || Fault { at: value.span().start, text: format!("{key}: write an amount from 0 to {}", price::MAX_PRICE) };
    price::micros(*value.get_ref()).ok_or_else(wrong)
}

fn prices(table: &PriceTable) -> Result<Price, Fault> {
    let input = money(&table.input, "price.input")?;
    let or_input = |value: &Option<Spanned<f64>>, key| value.as_ref().map_or(Ok(input), |value| money(value, key));
    Ok(Price {
        input,
        cached: or_input(&table.cached, "price.cached")?,
        cache_write: or_input(&table.cache_write, "price.cache_write")?,
        output: money(&table.output, "price.output")?,
    })
}

fn known(models: &BTreeMap<String, Profile>, name: &Spanned<String>, key: &str) -> Result<(), Fault> {
    if models.contains_key(name.get_ref()) {
        return Ok(());
    }
    let names = models.keys().cloned().collect::<Vec<_>>().join(", ");
    let names = if names.is_empty() { "none so far".to_owned() } else { names };
    fault(name.span(), format!("{key}: there is no such model in this file; write one of its [models.NAME] ({names})"))
}

/// The circle that leads from the last of `path` back to `start`, in words.
fn cycle(models: &BTreeMap<String, Profile>, start: &str, path: &mut Vec<String>) -> Option<String> {
    let next = models.get(path.last()?)?.fallback.clone();
    for name in next {
        if name == start {
            return Some(format!("{} -> {start}", path.join(" -> ")));
        }
        if !path.contains(&name) {
            path.push(name);
            if let Some(found) = cycle(models, start, path) {
                return Some(found);
            }
            path.pop();
        }
    }
    None
}

fn role_choice(models: &BTreeMap<String, Profile>, role: Role, table: RoleTable) -> Result<RoleChoice, Fault> {
    let base = choice(models, ChoiceTable { model: table.model, limits: table.limits })?;
    let phases = table.phases.into_iter().map(|(phase, t)| Ok((phase, choice(models, t)?)));
    let tasks = table.tasks.into_iter().map(|(kind, t)| {
        if kind.role() != role {
            let text = format!(
                "tasks.{}: this is a task of the {}: write it under [roles.{}]",
                kind.name(),
                kind.role().name(),
                kind.role().name()
            );
            return fault(t.span(), text);
        }
        Ok((kind, choice(models, t.into_inner())?))
    });
    let domains = table.domains.into_iter().map(|(domain, t)| {
        if role != Role::Expert {
            return fault(t.span(), "domains: only Experts have domains: write this under [roles.expert]");
        }
        Ok((domain, choice(models, t.into_inner())?))
    });
    Ok(RoleChoice {
        base,
        phases: phases.collect::<Result<_, Fault>>()?,
        tasks: tasks.collect::<Result<_, Fault>>()?,
        domains: domains.collect::<Result<_, Fault>>()?,
    })
}

fn choice(models: &BTreeMap<String, Profile>, table: ChoiceTable) -> Result<Choice, Fault> {
    if let Some(name) = table.model.as_ref().filter(|name| name.get_ref() != ANALYST) {
        known(models, name, "model")?;
    }
    let limits = table.limits.as_ref().map_or(Ok(Limits::default()), limits)?;
    Ok(Choice { model: table.model.map(Spanned::into_inner), limits })
}

fn limits(table: &LimitsTable) -> Result<Limits, Fault> {
    fn some<T: Copy + PartialOrd + Default>(value: Option<&Spanned<T>>, key: &str) -> Result<Option<T>, Fault> {
        match value {
            Some(value) if *value.get_ref() > T::default() => Ok(Some(*value.get_ref())),
            Some(value) => fault(value.span(), format!("limits.{key}: write 1 or more, or leave it out")),
            None => Ok(None),
        }
    }
    Ok(Limits {
        turns: some(table.turns.as_ref(), "turns")?,
        model_calls: some(table.model_calls.as_ref(), "model_calls")?,
        tool_calls: table.tool_calls,
        tokens: some(table.tokens.as_ref(), "tokens")?,
        cost_micros: table.cost.as_ref().map(|cost| money(cost, "limits.cost")).transpose()?,
        seconds: some(table.seconds.as_ref(), "seconds")?,
    })
}
