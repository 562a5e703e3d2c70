//! `casebook doctor`

use std::path::Path;
use std::sync::Arc;

use casebook_agent::model::client::Client;
use casebook_agent::model::config::{Config, KeySource, Profile};
use casebook_agent::model::{Model, secret};
use casebook_protocol::TaskKind;

use crate::args::Doctor;
use crate::doctor::rating::{Grade, Rating, Tally, rate};
use crate::doctor::{Bench, KINDS};
use crate::failure::{Exit, Failure};
use crate::models;
use crate::screen::{BOLD, DIM, GREEN, RED, Screen, YELLOW, paint, safe};
use crate::stop;
use casebook_report::words;

/// So many reasons of failures are told of a task.
const REASONS: usize = 3;

pub(super) async fn run(args: &Doctor, screen: &mut Screen) -> Result<Exit, Failure> {
    let Some(file) = models::file(args.models.as_deref()) else { return without(args, screen) };
    let (config, _) = models::config(&file)?;
    screen.line(format_args!("{} {} holds", paint(BOLD, "Models file"), file.display()));
    players(&config, screen);
    let chosen = chosen(&config, &args.names, &file)?;
    let mut stop = stop::listen()?;
    let bench = Bench::prepare(&mut stop).await?;
    let (mut worst, mut begun) = (Grade::Good, 0);
    for name in chosen {
        let Some(profile) = config.model(&name) else { continue };
        screen.line("");
        screen.line(format_args!(
            "{}  {} {} at {}",
            paint(BOLD, &name),
            profile.provider.name(),
            safe(&profile.provider_model, 80),
            safe(&profile.base_url, 120)
        ));
        let grade = tokio::select! {
            biased;
            () = stop.wait() => return Err(stopped()),
            grade = examine(&config, profile, &bench, args.trials, &mut begun, screen) => grade?,
        };
        worst = worst.min(grade);
    }
    Ok(if worst == Grade::Unfit { Exit::Unfit } else { Exit::Done })
}

fn stopped() -> Failure {
    Failure::unfinished("stopped before every model was tried", "")
}

fn without(args: &Doctor, screen: &mut Screen) -> Result<Exit, Failure> {
    if !args.names.is_empty() {
        return Err(Failure::usage(
            format!("there is no models file to find {} in", safe(&args.names.join(", "), 120)),
            format!("give one with --models FILE or {}", models::MODELS_ENV),
        ));
    }
    screen.line("No models file: the built-in analyst plays every role, and nothing leaves this machine.");
    screen.line(format_args!(
        "To let a language model play, write a models file (docs/models.md) and name it with --models FILE or {}.",
        models::MODELS_ENV
    ));
    Ok(Exit::Done)
}

/// The models to try, in the order asked for.
fn chosen(config: &Config, names: &[String], file: &Path) -> Result<Vec<String>, Failure> {
    let known: Vec<String> = config.models().map(|m| m.name.clone()).collect();
    if let Some(unknown) = names.iter().find(|name| !known.contains(name)) {
        return Err(Failure::usage(
            format!("there is no model {:?} in {}", safe(unknown, 64), file.display()),
            format!("there are: {}", known.join(", ")),
        ));
    }
    Ok(if names.is_empty() { known } else { names.to_vec() })
}

/// Who plays which role, first phase first.
fn players(config: &Config, screen: &mut Screen) {
    for kind in KINDS {
        let selected = config.select(kind.role(), kind, casebook_protocol::Phase::Discovery, None);
        let who = selected.map_or_else(
            || "the built-in analyst".to_owned(),
            |selected| selected.chain.iter().map(|p| p.name.as_str()).collect::<Vec<_>>().join(", then "),
        );
        screen.line(paint(DIM, format_args!("  {:<9} {:<12} {}", kind.role().name(), kind.name(), safe(&who, 120))));
    }
}

/// Everything about one model.
async fn examine(
    config: &Config,
    profile: &Profile,
    bench: &Bench,
    trials: u32,
    begun: &mut u32,
    screen: &mut Screen,
) -> Result<Grade, Failure> {
    if let Err(missing) = secret::key(profile, |name| std::env::var(name).ok()) {
        screen.line(paint(RED, format_args!("  key        {}", safe(&missing.fault, 300))));
        return Ok(Grade::Unfit);
    }
    let key = match &profile.key {
        KeySource::Keyless => "needs none".to_owned(),
        KeySource::Env(name) => format!("found in the environment variable {}", safe(name, 80)),
        KeySource::File(path) => format!("found in the file {}", safe(path, 200)),
    };
    screen.line(format_args!("  key        {key}"));
    let alone = Arc::new(config.alone(&profile.name).map_err(Failure::defect)?);
    let client = Client::open(&alone).map_err(|e| Failure::failed(e, "see to it that it can be used"))?;
    let client: Arc<dyn Model> = Arc::new(client);
    let mut made = Vec::new();
    'all: for _ in 0..trials {
        for kind in KINDS {
            *begun += 1;
            let trial = bench.try_on(&alone, &client, kind, *begun).await?;
            let answered = trial.heard.iter().any(|h| h.result.is_ok());
            made.push(trial);
            // A model that does not answer at all is not asked five more times.
            if !answered && made.len() == 1 {
                break 'all;
            }
        }
    }
    let rating = rate(profile, &made);
    tell(&rating, screen);
    Ok(rating.grade)
}

fn tell(rating: &Rating, screen: &mut Screen) {
    match &rating.version {
        Some(version) => screen.line(format_args!("  reachable  answers as {}", safe(version, 80))),
        None => screen.line(paint(RED, "  reachable  it did not answer")),
    }
    for task in &rating.tasks {
        told(task, screen);
    }
    if let Some([least, median, most]) = rating.latency {
        let [least, median, most] = [least, median, most].map(words::seconds);
        screen.line(format_args!("  latency    {least} to {most}, median {median}"));
    }
    let usage = &rating.usage;
    screen.line(format_args!(
        "  used       {}, {} tokens in ({} cached), {} out, cost {}",
        words::count(usage.model_calls, "model call"),
        usage.input_tokens,
        words::share(usage.cached_tokens, usage.input_tokens),
        usage.output_tokens,
        words::money(usage.cost_micros)
    ));
    for advice in &rating.advice {
        screen.line(paint(YELLOW, format_args!("  advice     {}", safe(advice, 600))));
    }
    screen.line(match rating.grade {
        Grade::Good => paint(GREEN, "  can be used: every answer held at the first try"),
        Grade::Poor => paint(YELLOW, "  can be used, with failures or repairs: see above"),
        Grade::Unfit => paint(RED, "  cannot be used as it is"),
    });
}

fn told(task: &Tally, screen: &mut Screen) {
    let tools = match task.kind {
        TaskKind::Timeline => String::new(),
        _ => format!(", {} ({} refused)", words::count(task.tool_calls as u64, "tool call"), task.refused_calls),
    };
    let line = format!(
        "  {:<12} {} of {} held at the first try, {} after a repair{tools}",
        task.kind.name(),
        task.at_once,
        task.trials,
        task.repaired
    );
    if task.at_once == task.trials {
        screen.line(line)
    } else {
        screen.line(paint(YELLOW, line))
    }
    for reason in task.failures.iter().take(REASONS) {
        screen.line(paint(RED, format_args!("      {}", safe(reason, 600))));
    }
}
