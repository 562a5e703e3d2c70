//! A process that serves: its settings ([`settings`], [`environment`]), how it is ([`health`], [`http`]),
//! how it is asked to stop ([`signals`]), the frame in which it runs ([`run`]), and how it works on
//! queues over NATS ([`work`]).

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

pub mod common;
pub mod environment;
pub mod health;
pub mod http;
pub mod settings;
pub mod signals;
pub mod work;

pub use common::Common;
pub use health::Health;
pub use settings::Program;
pub use signals::Stop;

use clap::Args;

use crate::{process, telemetry, tls};
use settings::Asked;

/// What a process still gets once its time to drain is over: to hand back what is left.
const LAST_WORDS: Duration = Duration::from_secs(5);
/// How often the actors are shown to run.
const BEAT: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    Done = 0,
    /// The machine or the server did not let it.
    Failed = 1,
    /// A setting is wrong, or the Hub refuses this version.
    Usage = 2,
    /// Stopped before what was under way had ended.
    Unfinished = 3,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct Failure {
    pub exit: Exit,
    /// What was wrong, where, and what to do.
    pub what: String,
}

impl Failure {
    /// A setting is wrong, or this process is the wrong one.
    pub fn usage(what: impl ToString) -> Self {
        Self { exit: Exit::Usage, what: what.to_string() }
    }

    /// The machine or the server did not let it.
    pub fn failed(what: impl ToString) -> Self {
        Self { exit: Exit::Failed, what: what.to_string() }
    }
}

/// What a process has once it runs.
#[derive(Clone)]
pub struct Service {
    pub common: Common,
    pub health: Health,
    pub stop: Stop,
}

/// Runs a program that serves: reads what is asked for, prints it or serves by `serve`, which ends when
/// it was asked to stop and has drained. `role` says who it is; `T` are the settings of its own.
pub fn run<T, F, S>(program: &Program, role: &str, serve: F) -> ExitCode
where
    T: Args,
    F: FnOnce(Service, T) -> S,
    S: Future<Output = Result<(), Failure>>,
{
    process::abort_on_panic();
    let asked = program.asked(std::env::args_os(), |name| std::env::var(name).ok());
    let (common, options, own) = match asked {
        Ok(Asked::Serve(common, options, own)) => (*common, options, own),
        Ok(Asked::Print(text)) => {
            // Who closed it does not want to read it.
            let _ = write!(std::io::stdout(), "{text}");
            return ExitCode::SUCCESS;
        }
        Err(failure) => return complain(program, &failure),
    };
    tls::install();
    if let Err(why) = telemetry::start(common.log, program.name, common.otlp.as_deref()) {
        return complain(program, &Failure::usage(why));
    }
    environment::warn();
    let health = Health::new(role);
    let ended = process::run(async {
        let stop = Stop::listen_with(Exit::Unfinished as i32, own.until_eof)
            .map_err(|e| Failure::failed(format!("cannot listen for signals: {e}")))?;
        let service = Service { common, health, stop };
        announced(program, &service).await?;
        tokio::select! {
            ended = serve(service.clone(), options) => ended,
            ended = watched(service) => ended,
        }
    });
    telemetry::export::end();
    match ended {
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(failure)) => complain(program, &failure),
        Err(error) => complain(program, &Failure::failed(format!("cannot start: {error}"))),
    }
}

fn complain(program: &Program, failure: &Failure) -> ExitCode {
    eprintln!("{}: {failure}", program.name);
    ExitCode::from(failure.exit as u8)
}

/// Answers health where that is set, and says where.
async fn announced(program: &Program, service: &Service) -> Result<(), Failure> {
    let Some(address) = service.common.health else { return Ok(()) };
    let bound = http::serve(address, service.health.clone())
        .await
        .map_err(|e| Failure::usage(format!("cannot answer health at {address}: {e}; name another with --health")))?;
    // On standard output, where nothing else goes: whoever gave port 0 reads it there.
    // Whether anyone does is not our concern.
    let _ = writeln!(std::io::stdout(), "{} health http://{bound}", program.name);
    Ok(())
}

/// Runs where the actors do: while it does, they do. Ends when draining took longer than it may.
async fn watched(mut service: Service) -> Result<(), Failure> {
    while !service.stop.within(BEAT).await {
        service.health.beat();
    }
    service.health.update(|standing| standing.draining = true);
    let drain = service.common.drain;
    let end = tokio::time::Instant::now() + drain + LAST_WORDS;
    while tokio::time::Instant::now() < end {
        service.health.beat();
        tokio::time::sleep(BEAT).await;
    }
    Err(Failure {
        exit: Exit::Unfinished,
        what: format!(
            "what was under way had not ended after {} s: another does it again (--drain gives it longer)",
            drain.as_secs()
        ),
    })
}
