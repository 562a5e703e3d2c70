use std::path::Path;
use std::sync::Arc;

use casebook_expert::team::TeamFolder;
use casebook_hub::archive::Past;
use casebook_hub::{Branch, BranchError};
use casebook_protocol::Report;

use crate::args::Backtest;
use crate::commands::investigate::Watcher;
use crate::embedded;
use crate::failure::{Exit, Failure};
use crate::home::Home;
use crate::models;
use crate::reasoners::Reasoners;
use crate::screen::{BOLD, DIM, Screen, YELLOW, paint, safe};
use crate::stop;
use casebook_report::compare::{self, Pair};
use casebook_report::save;

/// Maximum number of changed findings to show; --json writes all.
const SHOWN: usize = 40;

pub(super) async fn run(data: &Path, args: &Backtest, screen: &mut Screen) -> Result<Exit, Failure> {
    let sources = args.sources.sources()?;
    let reasoners = reasoners(args, sources.team.as_deref())?;
    let home = Home::reading(data)?;
    let (id, Past { state, report: then, .. }) = home.read(&args.id).await?;
    if state.closed.is_none() {
        let what = format!("investigation {id} is not finished, so it cannot be compared");
        let advice = format!("finish it first: casebook resume {id}{}", super::investigate::data_option(data));
        return Err(Failure::unfinished(what, advice));
    }
    let branch = Branch::before_round(Arc::clone(&home.store), &id, args.from_round).await.map_err(failure)?;
    let again = Home::with(&home.folder, Arc::new(branch));
    let mut stop = stop::listen()?;
    let mut watcher = Watcher::again(screen, args.verbose, args.from_round);
    let now = embedded::resume(&again, &id, &sources, &reasoners, &mut watcher, &mut stop).await;
    watcher.end();
    let now = now.map_err(kept_nothing)?;
    show(&then, &now, screen);
    if let Some(file) = &args.json {
        save::whole(file, &format!("{:#}\n", compare::json(&then, &now, args.from_round)))?;
    }
    Ok(Exit::Done)
}

fn reasoners(args: &Backtest, team: Option<&TeamFolder>) -> Result<Reasoners, Failure> {
    let reasoners = match models::file(args.models.as_deref()) {
        Some(file) => {
            let (config, _) = models::config(&file)?;
            let config = models::with_models(models::of_team(config, team)?, &args.model)?;
            let client = models::client(&config)?;
            Reasoners::of(Arc::new(config), client)
        }
        None if args.model.is_empty() && args.prompts.is_none() => {
            models::without_file(team)?;
            Reasoners::analyst()
        }
        None => {
            return Err(Failure::usage(
                "--model and --prompts need a models file",
                format!("name one with --models FILE or {}", models::MODELS_ENV),
            ));
        }
    };
    match &args.prompts {
        Some(folder) => Ok(reasoners.with_prompts(models::prompts(folder)?)),
        None => Ok(reasoners),
    }
}

fn failure(error: BranchError) -> Failure {
    match error {
        BranchError::Original(error) => error.into(),
        BranchError::NoRound { .. } => Failure::usage(error, "choose one of these rounds with --from-round N"),
    }
}

/// A stopped backtest cannot be resumed, because its record is in memory.
pub(crate) fn kept_nothing(failure: Failure) -> Failure {
    match failure.exit {
        Exit::Unfinished => Failure {
            what: "the backtest was stopped and nothing of it is stored; the investigation is unchanged".into(),
            advice: "run the same command again".into(),
            ..failure
        },
        Exit::NotInvestigated => Failure {
            advice: "no log was read, and nothing is stored; correct this, then run the same command again".into(),
            ..failure
        },
        _ => failure,
    }
}

fn show(then: &Report, now: &Report, screen: &mut Screen) {
    screen.line("");
    screen.line(paint(BOLD, format_args!("{:<20} {:<34} now", "", "then")));
    for (name, before, after) in compare::rows(then, now) {
        let line = format!("{name:<20} {:<34} {}", safe(&before, 120), safe(&after, 120));
        if before == after { screen.line(line) } else { screen.line(paint(YELLOW, line)) }
    }
    let (pairs, gone, new) = compare::findings(then, now);
    let changed: Vec<&Pair<'_>> = pairs.iter().filter(|p| !p.same_claim() || p.then.score != p.now.score).collect();
    screen.line("");
    screen.line(paint(
        BOLD,
        format_args!(
            "Findings: {} in both, {} of them differ; {} only then, {} only now",
            pairs.len(),
            changed.len(),
            gone.len(),
            new.len()
        ),
    ));
    for pair in changed.iter().take(SHOWN) {
        let score = |score: Option<casebook_protocol::Score>| score.map_or_else(|| "none".into(), |s| s.to_string());
        let rose = pair.rose().map_or_else(String::new, |rose| format!("{rose:+.2}"));
        screen.line(format_args!(
            "  {} {} to {} {rose}",
            paint(BOLD, &pair.then.finding.id),
            score(pair.then.score),
            score(pair.now.score)
        ));
        if !pair.same_claim() {
            screen.line(paint(DIM, format_args!("      then {}", safe(&pair.then.finding.draft.claim, 160))));
            screen.line(paint(DIM, format_args!("      now  {}", safe(&pair.now.finding.draft.claim, 160))));
        }
    }
    if changed.len() > SHOWN {
        screen.line(format_args!("  and {} more; --json FILE writes all", changed.len() - SHOWN));
    }
}
