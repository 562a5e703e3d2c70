use std::path::Path;
use std::sync::Arc;

use casebook_agent::model::client::Client;
use casebook_agent::model::config::{Config, KeySource, Profile};
use casebook_agent::model::{Model, secret};
use casebook_protocol::{CallStatus, Outcome, Purpose, Role, TaskKind, Usage};

use crate::args::Doctor;
use crate::doctor::advice::{advice, roles};
use crate::doctor::{Bench, Trial};
use crate::failure::{Exit, Failure};
use crate::live::spent;
use crate::models;
use crate::screen::{BOLD, DIM, GREEN, RED, Screen, YELLOW, paint, safe};
use crate::stop;
use casebook_report::words;

mod server;

pub(super) async fn run(args: &Doctor, screen: &mut Screen) -> Result<Exit, Failure> {
    if args.nats.nats.is_none() {
        return examine_models(args, screen).await;
    }
    let server = server::run(&args.nats, screen).await?;
    if args.models.is_none() && args.names.is_empty() {
        return Ok(server);
    }
    screen.line("");
    let models = examine_models(args, screen).await?;
    Ok(if server == Exit::Done { models } else { server })
}

async fn examine_models(args: &Doctor, screen: &mut Screen) -> Result<Exit, Failure> {
    let Some(file) = models::file(args.models.as_deref()) else { return without(args, screen) };
    let (config, _) = models::config(&file)?;
    screen.line(format_args!("{} {} is valid", paint(BOLD, "Models file"), file.display()));
    players(&config, screen);
    let chosen = chosen(&config, &args.names, &file)?;
    let mut stop = stop::listen()?;
    let bench = Bench::prepare(&mut stop).await?;
    let (mut all_fit, mut begun) = (true, 0);
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
        all_fit &= tokio::select! {
            biased;
            () = stop.wait() => return Err(Failure::unfinished("stopped before every model was tried", "")),
            fits = examine(&config, profile, &bench, args.trials, &mut begun, screen) => fits?,
        };
    }
    Ok(if all_fit { Exit::Done } else { Exit::Unfit })
}

fn without(args: &Doctor, screen: &mut Screen) -> Result<Exit, Failure> {
    if !args.names.is_empty() {
        return Err(Failure::usage(
            format!("{} cannot be found without a models file", safe(&args.names.join(", "), 120)),
            format!("name one with --models FILE or {}", models::MODELS_ENV),
        ));
    }
    screen.line("No models file: the built-in analyst plays every role, and nothing leaves this machine.");
    screen.line(format_args!(
        "To use a language model, write a models file (docs/models.md) and name it with --models FILE or {}.",
        models::MODELS_ENV
    ));
    Ok(Exit::Done)
}

fn chosen(config: &Config, names: &[String], file: &Path) -> Result<Vec<String>, Failure> {
    let known: Vec<String> = config.models().map(|m| m.name.clone()).collect();
    if let Some(unknown) = names.iter().find(|name| !known.contains(name)) {
        return Err(Failure::usage(
            format!("unknown model {:?} in {}", safe(unknown, 64), file.display()),
            format!("the models are {}", known.join(", ")),
        ));
    }
    Ok(if names.is_empty() { known } else { names.to_vec() })
}

fn players(config: &Config, screen: &mut Screen) {
    for kind in TaskKind::ALL {
        let selected = config.select(kind.role(), kind, casebook_protocol::Phase::Discovery, None);
        let who = selected.map_or_else(
            || "the built-in analyst".to_owned(),
            |selected| selected.chain.iter().map(|p| p.name.as_str()).collect::<Vec<_>>().join(", then "),
        );
        screen.line(paint(DIM, format_args!("  {:<9} {:<12} {}", kind.role().name(), kind.name(), safe(&who, 120))));
    }
}

/// Tries one model and shows the results. Returns true if it can be used.
async fn examine(
    config: &Config,
    profile: &Profile,
    bench: &Bench,
    trials: u32,
    begun: &mut u32,
    screen: &mut Screen,
) -> Result<bool, Failure> {
    if let Err(missing) = secret::key(profile, |name| std::env::var(name).ok()) {
        screen.line(paint(RED, format_args!("  key        {}", safe(&missing.fault, 300))));
        return Ok(false);
    }
    let key = match &profile.key {
        KeySource::Keyless => "needs none".to_owned(),
        KeySource::Env(name) => format!("found in the environment variable {}", safe(name, 80)),
        KeySource::File(path) => format!("found in the file {}", safe(path, 200)),
    };
    screen.line(format_args!("  key        {key}"));
    let alone = Arc::new(config.alone(&profile.name).map_err(Failure::defect)?);
    let client = Client::open(&alone).map_err(|e| Failure::failed(e, "correct its entry in the models file"))?;
    let client: Arc<dyn Model> = Arc::new(client);
    let mut made: Vec<Trial> = Vec::new();
    'all: for _ in 0..trials {
        for kind in TaskKind::ALL {
            *begun += 1;
            let trial = bench.try_on(&alone, &client, kind, *begun).await?;
            let version = trial.heard.iter().find_map(|h| h.result.as_ref().ok()).map(|answered| &answered.version);
            match version {
                Some(version) if made.is_empty() => {
                    screen.line(format_args!("  reachable  answers as {}", safe(version, 80)));
                }
                None if made.is_empty() => screen.line(paint(RED, "  reachable  it did not answer")),
                _ => {}
            }
            let answered = version.is_some();
            show(&trial, screen);
            made.push(trial);
            // A model that does not answer the first request is not asked again.
            if !answered && made.len() == 1 {
                break 'all;
            }
        }
    }
    let mut usage = Usage::default();
    made.iter().for_each(|trial| usage += trial.outcome.usage);
    screen.line(format_args!("  used       {}, {}", words::count(usage.model_calls, "model call"), spent(&usage)));
    for advice in advice(profile, &made) {
        screen.line(paint(YELLOW, format_args!("  advice     {}", safe(&advice, 600))));
    }
    let (can, cannot) = roles(&made);
    let listed = |roles: &[Role]| roles.iter().map(|role| role.name()).collect::<Vec<_>>().join(" and ");
    screen.line(match (can.is_empty(), cannot.is_empty()) {
        (_, true) => paint(GREEN, format_args!("  can be used in every role")),
        (true, false) => paint(RED, format_args!("  cannot be used as it is")),
        (false, false) => paint(
            YELLOW,
            format_args!("  can be used as {}, not as {}: set these in [roles]", listed(&can), listed(&cannot)),
        ),
    });
    Ok(cannot.is_empty())
}

fn show(trial: &Trial, screen: &mut Screen) {
    let Outcome { calls, asked, result, .. } = &trial.outcome;
    let refused = calls.iter().filter(|call| call.status == CallStatus::Failed).count();
    let took = trial.heard.iter().map(|heard| heard.took).sum();
    let used =
        format!("{} ({refused} refused), {}", words::count(calls.len() as u64, "tool call"), words::seconds(took));
    let name = trial.kind.name();
    screen.line(match result {
        Ok(_) if asked.iter().any(|call| call.purpose == Purpose::Repair) => {
            paint(YELLOW, format_args!("  {name:<12} passed after a repair, {used}"))
        }
        Ok(_) => format!("  {name:<12} passed at the first try, {used}"),
        Err(why) => paint(RED, format_args!("  {name:<12} failed: {}; {used}", safe(why, 600))),
    });
}
