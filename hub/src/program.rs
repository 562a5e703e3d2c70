//! The `casebook-hub` program: settings and main loop.

use std::path::PathBuf;
use std::time::Duration;

use casebook_protocol::Budget;
use casebook_runtime::config::micros;
use casebook_runtime::nats::streams::Keeping;
use casebook_runtime::nats::{self, NatsError};
use casebook_runtime::service::common::{number, seconds};
use casebook_runtime::service::work::{connected_with, options as connection_options, shown};
use casebook_runtime::service::{self as frame, Failure, Program};
use clap::Args;

use crate::service::{Service, Settings};

const USER: &str = "hub";
/// The pause before creating streams is tried again.
const AGAIN: Duration = Duration::from_secs(2);

pub const PROGRAM: Program = Program {
    name: "casebook-hub",
    about: "A Hub as a separate process: keeps the logs of all investigations and hands out their tasks. Start \
            as many as you like: they share the investigations, and if one stops, the others continue its work.",
};

#[derive(Debug, Clone, Args)]
pub struct Options {
    /// Investigations that run at once; further alerts wait in order of severity
    #[arg(long, value_name = "N", value_parser = number::<usize>(1, 100_000), default_value = "64")]
    pub at_once: usize,
    /// Servers that store each message: 3 for a cluster of three
    #[arg(long, value_name = "N", value_parser = number::<usize>(1, 5), default_value = "1")]
    pub replicas: usize,
    /// How long a worker may hold a job without a sign of life before another worker gets it. Use the same
    /// value for all Hubs; it cannot change while the streams exist
    #[arg(long, value_name = "SECONDS", value_parser = seconds(2, 3600), default_value = "30")]
    pub lease: Duration,
    /// How often to check for missed notifications
    #[arg(long, value_name = "SECONDS", value_parser = seconds(1, 3600), default_value = "15")]
    pub sweep: Duration,
    /// The file with the key that signs what Hubs write, the same for all Hubs. Only its owner may read it. What has
    /// no valid signature is ignored
    #[arg(long, value_name = "FILE")]
    pub mac_key_file: Option<PathBuf>,
    #[command(flatten)]
    pub limits: Limits,
}

#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Limits (at a limit the investigation concludes and reports the reason)")]
pub struct Limits {
    /// Rounds of an investigation; 50 unless set
    #[arg(long, value_name = "N", value_parser = number::<u32>(1, u32::MAX.into()))]
    pub budget_rounds: Option<u32>,
    /// Tool calls; 2000 unless set
    #[arg(long, value_name = "N", value_parser = number::<u64>(1, u64::MAX))]
    pub budget_tool_calls: Option<u64>,
    /// Model calls, including repairs; 1000 unless set
    #[arg(long, value_name = "N", value_parser = number::<u64>(1, u64::MAX))]
    pub budget_model_calls: Option<u64>,
    /// Model tokens, input (also cached) and output; 20000000 unless set
    #[arg(long, value_name = "N", value_parser = number::<u64>(1, u64::MAX))]
    pub budget_tokens: Option<u64>,
    /// Cost in the currency of the prices in the models file, such as 2.50; 50 unless set. A model without a
    /// price counts as free
    #[arg(long, value_name = "AMOUNT", value_parser = micros)]
    pub budget_cost: Option<u64>,
    /// Minutes of running time; 360 unless set
    #[arg(long, value_name = "N", value_parser = number::<u64>(1, u64::MAX))]
    pub budget_minutes: Option<u64>,
}

impl Limits {
    pub fn budget(&self) -> Budget {
        let usual = Budget::default();
        Budget {
            model_calls: self.budget_model_calls.unwrap_or(usual.model_calls),
            tool_calls: self.budget_tool_calls.unwrap_or(usual.tool_calls),
            tokens: self.budget_tokens.unwrap_or(usual.tokens),
            cost_micros: self.budget_cost.unwrap_or(usual.cost_micros),
            rounds: self.budget_rounds.unwrap_or(usual.rounds),
            seconds: self.budget_minutes.map_or(usual.seconds, |minutes| minutes.saturating_mul(60)),
        }
    }
}

impl From<&Options> for Settings {
    fn from(options: &Options) -> Self {
        Self {
            budget: options.limits.budget(),
            at_once: options.at_once,
            keeping: Keeping { replicas: options.replicas, lease: options.lease },
            sweep: options.sweep,
        }
    }
}

/// Serves until the process is asked to stop. Fails on errors that waiting cannot solve, such as an old server
/// or a stream with another configuration.
pub async fn serve(mut process: frame::Service, options: Options) -> Result<(), Failure> {
    process.health.queue(USER, |_| {});
    process.health.preparing(None);
    if options.mac_key_file.is_none() {
        tracing::warn!("no mac_key_file is set; forged entries of logs, reports and timelines are not detected");
    }
    let connecting =
        nats::Options { mac_key: options.mac_key_file.clone(), ..connection_options(&process.common, USER) };
    let Some(connection) = connected_with(&mut process, connecting).await? else { return Ok(()) };
    process.health.queue(USER, |queue| queue.connected = true);
    let hub = loop {
        match Service::start(connection.clone(), (&options).into()).await {
            Ok(hub) => break hub,
            Err(error @ NatsError::Failed { .. }) => {
                tracing::warn!(%error, "could not create streams; trying again");
                process.health.trouble(USER, Some(error.to_string()));
                if process.stop.within(AGAIN).await {
                    return Ok(());
                }
            }
            Err(error) => return Err(Failure::failed(error)),
        }
    };
    process.health.trouble(USER, None);
    process.health.queue(USER, |queue| queue.joined = true);
    tracing::info!("accepting alerts");
    let under_way = async || hub.under_way() as u64;
    let mut stop = process.stop.clone();
    tokio::select! {
        biased;
        () = stop.wait() => {}
        name = hub.deaf() => return Err(Failure::failed(format!("the Hub stopped {name}: start it again"))),
        () = shown(&process, &connection, USER, under_way) => {}
    }
    process.health.update(|standing| standing.draining = true);
    let draining = shown(&process, &connection, USER, under_way);
    tokio::select! {
        drained = tokio::time::timeout(process.common.drain, hub.drain()) => match drained {
            Ok(drained) => drained.map_err(Failure::failed)?,
            Err(_) => tracing::warn!("shutdown timed out before all decisions were recorded; another Hub repeats them"),
        },
        () = draining => {}
    }
    connection.flush().await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::FromArgMatches as _;

    use super::*;

    fn set(options: &str) -> Settings {
        let matches = Options::augment_args(clap::Command::new("hub")).get_matches_from(options.split(' '));
        (&Options::from_arg_matches(&matches).unwrap()).into()
    }

    #[test]
    fn options_that_are_not_set_have_their_defaults() {
        assert_eq!(set("hub"), Settings::default());
    }

    #[test]
    fn each_option_sets_its_own_value() {
        let all = "hub --budget-rounds 1 --budget-tool-calls 2 --budget-model-calls 3 --budget-tokens 4 \
                   --budget-cost 2.5 --budget-minutes 6 --at-once 7 --replicas 3 --lease 5 --sweep 9";
        let budget =
            Budget { model_calls: 3, tool_calls: 2, tokens: 4, cost_micros: 2_500_000, rounds: 1, seconds: 360 };
        let keeping = Keeping { replicas: 3, lease: Duration::from_secs(5) };
        let expect = Settings { budget, at_once: 7, keeping, sweep: Duration::from_secs(9) };
        assert_eq!(set(all), expect);
    }
}
