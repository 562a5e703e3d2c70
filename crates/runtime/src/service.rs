//! Long-running processes: settings ([`settings`], [`environment`]), health ([`health`], [`http`], [`healthy`]), shutdown
//! ([`signals`]), start and end ([`run`]), and work on queues over NATS ([`work`]).

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

pub mod common;
pub mod environment;
pub mod health;
pub mod healthy;
pub mod http;
pub mod settings;
pub mod signals;
pub mod work;

pub use common::Common;
pub use health::Health;
pub use settings::Program;
pub use signals::{Hangups, Stop};

use clap::Args;

use crate::{process, telemetry, tls};
use settings::Asked;

/// Extra time after the drain period, in which unfinished jobs are returned.
const LAST_WORDS: Duration = Duration::from_secs(5);
/// How often the actors prove that they run.
const BEAT: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    Done = 0,
    Failed = 1,
    Usage = 2,
    Unfinished = 3,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct Failure {
    pub exit: Exit,
    /// What is wrong, where, and what to do.
    pub what: String,
}

impl Failure {
    pub fn usage(what: impl ToString) -> Self {
        Self { exit: Exit::Usage, what: what.to_string() }
    }

    pub fn failed(what: impl ToString) -> Self {
        Self { exit: Exit::Failed, what: what.to_string() }
    }
}

#[derive(Clone)]
pub struct Service {
    pub common: Common,
    pub health: Health,
    pub stop: Stop,
    pub hangups: Hangups,
}

/// Runs a service: reads the settings, prints what was asked for or calls `serve`, which ends after a request to stop.
/// `T` are the settings of this program alone.
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
            // An error here means that the reader has closed the pipe.
            let _ = write!(std::io::stdout(), "{text}");
            return ExitCode::SUCCESS;
        }
        Ok(Asked::Healthy(address)) => {
            return match healthy::ask(address) {
                Ok(()) => ExitCode::SUCCESS,
                Err(why) => complain(program, &Failure::failed(format!("not healthy: {why}"))),
            };
        }
        Err(failure) => return complain(program, &failure),
    };
    tls::install();
    if let Err(why) = telemetry::start(common.log, program.name, common.otlp.as_deref(), common.health.is_some()) {
        return complain(program, &Failure::usage(why));
    }
    environment::warn();
    let health = Health::new(role);
    telemetry::lines::instance(health.name());
    let ended = process::run(async {
        let stop = Stop::listen_with(Exit::Unfinished as i32, own.until_eof)
            .map_err(|e| Failure::failed(format!("cannot listen for signals: {e}")))?;
        let hangups = Hangups::listen().map_err(|e| Failure::failed(format!("cannot listen for signals: {e}")))?;
        let service = Service { common, health, stop, hangups };
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

async fn announced(program: &Program, service: &Service) -> Result<(), Failure> {
    let Some(address) = service.common.health else { return Ok(()) };
    let bound = http::serve(address, service.health.clone()).await.map_err(|e| {
        Failure::usage(format!("cannot serve health checks at {address}: {e}; set another address with --health"))
    })?;
    // On standard output, so that a caller that gave port 0 can read the port. The output may be closed.
    let _ = writeln!(std::io::stdout(), "{} health http://{bound}", program.name);
    Ok(())
}

/// Runs on the threads of the actors, so its beats prove that they run. Ends if draining takes too long.
async fn watched(mut service: Service) -> Result<(), Failure> {
    while !service.stop.within(BEAT).await {
        service.health.beat();
    }
    service.health.update(|status| status.draining = true);
    let drain = service.common.drain;
    let end = tokio::time::Instant::now() + drain + LAST_WORDS;
    while tokio::time::Instant::now() < end {
        service.health.beat();
        tokio::time::sleep(BEAT).await;
    }
    Err(Failure {
        exit: Exit::Unfinished,
        what: format!(
            "work was unfinished after {} s; another process will repeat it (--drain allows more time)",
            drain.as_secs()
        ),
    })
}
