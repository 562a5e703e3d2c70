//! A Hub as a process of its own: what may be set, and how it serves until it is asked to stop.

use std::time::Duration;

use casebook_protocol::Budget;
use casebook_runtime::nats::NatsError;
use casebook_runtime::nats::streams::Keeping;
use casebook_runtime::service::key::{Key, Kind};
use casebook_runtime::service::work::{connected, shown};
use casebook_runtime::service::{self as frame, Failure, Program, common};

use crate::service::{Service, Settings};

/// The user that a Hub is at the server.
const USER: &str = "hub";
/// The pause before streams that could not be made are tried again.
const AGAIN: Duration = Duration::from_secs(2);

const fn number(name: &'static str, env: &'static str, usual: Option<&'static str>, help: &'static str) -> Key {
    Key { name, env, kind: Kind::Number(1, u64::MAX), usual, value: "N", help }
}

static ROUNDS: Key = Key {
    kind: Kind::Number(1, u32::MAX as u64),
    ..number("budget_rounds", "CASEBOOK_BUDGET_ROUNDS", None, "passes through a phase, for each investigation")
};
static TOOL_CALLS: Key = number("budget_tool_calls", "CASEBOOK_BUDGET_TOOL_CALLS", None, "calls of tools");
static MODEL_CALLS: Key =
    number("budget_model_calls", "CASEBOOK_BUDGET_MODEL_CALLS", None, "calls of language models, repairs included");
static TOKENS: Key =
    number("budget_tokens", "CASEBOOK_BUDGET_TOKENS", None, "tokens of language models, in (cached ones too) and out");
static COST: Key = Key {
    kind: Kind::Amount,
    value: "AMOUNT",
    ..number("budget_cost", "CASEBOOK_BUDGET_COST", None, "money, in the currency of the prices in the models file")
};
static MINUTES: Key = number("budget_minutes", "CASEBOOK_BUDGET_MINUTES", None, "minutes of work");
static AT_ONCE: Key = Key {
    kind: Kind::Number(1, 100_000),
    ..number("at_once", "CASEBOOK_AT_ONCE", Some("64"), "investigations at once; more alerts wait in order of severity")
};
static REPLICAS: Key = Key {
    kind: Kind::Number(1, 5),
    ..number("replicas", "CASEBOOK_REPLICAS", Some("1"), "servers that hold each message: 3 for a cluster of three")
};
static LEASE: Key = Key {
    kind: Kind::Number(2, 3600),
    value: "SECONDS",
    ..number(
        "lease",
        "CASEBOOK_LEASE",
        Some("30"),
        "how long a job may be held without a sign of life before another gets it; the same for all Hubs, and for as \
         long as the streams are there",
    )
};
static SWEEP: Key = Key {
    kind: Kind::Number(1, 3600),
    value: "SECONDS",
    ..number("sweep", "CASEBOOK_SWEEP", Some("15"), "how often it looks for what nobody told it of")
};

static KEYS: [&Key; 19] = [
    &common::NATS,
    &common::CREDENTIALS,
    &common::CA,
    &common::CERT,
    &common::TLS_KEY,
    &common::HEALTH,
    &common::DRAIN,
    &common::LOG,
    &common::OTLP,
    &ROUNDS,
    &TOOL_CALLS,
    &MODEL_CALLS,
    &TOKENS,
    &COST,
    &MINUTES,
    &AT_ONCE,
    &REPLICAS,
    &LEASE,
    &SWEEP,
];

/// The program.
pub const PROGRAM: Program = Program {
    name: "casebook-hub",
    about: "A Hub as a process of its own: it keeps the logs of all investigations and hands out their tasks. Start \
            as many as you like; they share the investigations, and each goes on with those of one that is gone.",
    keys: &KEYS,
};

/// What `settings` say, the usual where they say nothing.
#[must_use]
pub fn settings(settings: &frame::Settings) -> Settings {
    let usual = Settings::default();
    let of = |key: &Key, usual: u64| settings.number(key).unwrap_or(usual);
    let small = |key: &Key, usual: usize| of(key, 0).try_into().ok().filter(|n| *n > 0).unwrap_or(usual);
    let budget = Budget {
        model_calls: of(&MODEL_CALLS, usual.budget.model_calls),
        tool_calls: of(&TOOL_CALLS, usual.budget.tool_calls),
        tokens: of(&TOKENS, usual.budget.tokens),
        cost_micros: of(&COST, usual.budget.cost_micros),
        rounds: of(&ROUNDS, usual.budget.rounds.into()).try_into().unwrap_or(usual.budget.rounds),
        seconds: settings.number(&MINUTES).map_or(usual.budget.seconds, |minutes| minutes.saturating_mul(60)),
    };
    Settings {
        budget,
        at_once: small(&AT_ONCE, usual.at_once),
        keeping: Keeping {
            replicas: small(&REPLICAS, usual.keeping.replicas),
            lease: Duration::from_secs(of(&LEASE, usual.keeping.lease.as_secs())),
        },
        sweep: Duration::from_secs(of(&SWEEP, usual.sweep.as_secs())),
    }
}

/// Serves until the process is asked to stop, and hands back what is not finished.
///
/// # Errors
/// What cannot be mended by waiting: a file that cannot be used, a server that is too old, a stream that
/// is there with another configuration.
pub async fn serve(mut process: frame::Service) -> Result<(), Failure> {
    process.health.queue(USER, |_| {});
    process.health.preparing(None);
    let Some(connection) = connected(&mut process, USER).await? else { return Ok(()) };
    process.health.queue(USER, |queue| queue.connected = true);
    let settings = settings(&process.settings);
    let hub = loop {
        match Service::start(connection.clone(), settings).await {
            Ok(hub) => break hub,
            Err(error @ NatsError::Failed { .. }) => {
                tracing::warn!(%error, "the streams are not there yet: tried again");
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
    tracing::info!("takes alerts");
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
            Err(_) => tracing::warn!("not all that was decided is recorded: another Hub decides it again"),
        },
        () = draining => {}
    }
    connection.flush().await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(text: &str) -> Settings {
        let file = frame::settings::File { path: "hub.toml".into(), text: text.into() };
        settings(&frame::Settings::gather(PROGRAM.keys, Some(&file), |_| None, &[]).unwrap())
    }

    #[test]
    fn what_is_not_set_is_the_usual() {
        assert_eq!(set(""), Settings::default());
    }

    #[test]
    fn each_key_sets_what_it_says() {
        let all = "budget_rounds = 1\nbudget_tool_calls = 2\nbudget_model_calls = 3\nbudget_tokens = 4\n\
                   budget_cost = 2.5\nbudget_minutes = 6\nat_once = 7\nreplicas = 3\nlease = 5\n\
                   sweep = 9\n";
        let budget =
            Budget { model_calls: 3, tool_calls: 2, tokens: 4, cost_micros: 2_500_000, rounds: 1, seconds: 360 };
        let keeping = Keeping { replicas: 3, lease: Duration::from_secs(5) };
        let expect = Settings { budget, at_once: 7, keeping, sweep: Duration::from_secs(9) };
        assert_eq!(set(all), expect);
    }
}
