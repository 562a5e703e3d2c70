//! Variables of the environment that were meant for Casebook and are read by nobody, since they are
//! misspelled.

use crate::near::nearest;

/// With what every name of ours begins.
const PREFIX: &str = "CASEBOOK_";

/// What stands after [`PREFIX`] in every variable that some program of Casebook reads: one file of
/// variables may serve several of them.
pub const NAMES: [&str; 28] = [
    "AT_ONCE",
    "BUDGET_COST",
    "BUDGET_MINUTES",
    "BUDGET_MODEL_CALLS",
    "BUDGET_ROUNDS",
    "BUDGET_TOKENS",
    "BUDGET_TOOL_CALLS",
    "CACHE",
    "CASES",
    "CONFIG",
    "DATA",
    "DRAIN",
    "HEALTH",
    "LEASE",
    "LOG",
    "LOG_FORM",
    "MODELS",
    "NATS",
    "NATS_CA",
    "NATS_CERT",
    "NATS_CREDENTIALS",
    "NATS_KEY",
    "NATS_SERVER",
    "OTLP",
    "PROFILE",
    "REPLICAS",
    "SWEEP",
    "TEAM",
];

/// What to say of those variables of `given` that nobody reads and whose name is almost that of one that
/// is read. Others are left alone, and none is refused: secrets of tools have names of their owner's
/// choice, and whoever runs Casebook under a name of his own gets variables with it from his platform.
pub fn misspelled<'a>(given: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let suggestion = |name: &str| {
        let rest = name.strip_prefix(PREFIX).filter(|rest| !NAMES.contains(rest))?;
        let meant = nearest(rest, NAMES)?;
        Some(format!("the environment variable {name} is read by nobody; is {PREFIX}{meant} meant?"))
    };
    given.into_iter().filter_map(suggestion).collect()
}

/// Tells the log of such variables of this process.
pub fn warn() {
    let names: Vec<String> = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()).collect();
    for said in misspelled(names.iter().map(String::as_str)) {
        tracing::warn!("{said}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelled_variable_is_told_and_what_others_own_is_not() {
        let told = misspelled(["CASEBOOK_REPLICA", "CASEBOOK_NATS", "CASEBOOK_GITHUB_TOKEN", "PATH", "CASEBOOK_"]);
        let expected =
            ["the environment variable CASEBOOK_REPLICA is read by nobody; is CASEBOOK_REPLICAS meant?".to_owned()];
        assert_eq!(told, expected);
    }
}
