//! Warnings about misspelled environment variables.

use crate::near::nearest;

const PREFIX: &str = "CASEBOOK_";

/// The rest of the name of every variable that a program of Casebook reads. Several programs may share one set of
/// variables.
pub const NAMES: [&str; 33] = [
    "ACCESS_KEY_FILE",
    "API_ADDRESS",
    "API_DATA",
    "API_PORT",
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
    "MAC_KEY_FILE",
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

/// A warning for each variable that looks like a misspelled one of ours. Other unknown names are accepted, since they
/// may be secrets of tools or come from the platform.
pub fn misspelled<'a>(given: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let suggestion = |name: &str| {
        let rest = name.strip_prefix(PREFIX).filter(|rest| !NAMES.contains(rest))?;
        let meant = nearest(rest, NAMES)?;
        Some(format!("no program reads the environment variable {name}; did you mean {PREFIX}{meant}?"))
    };
    given.into_iter().filter_map(suggestion).collect()
}

pub fn warn() {
    let names: Vec<String> = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()).collect();
    for warning in misspelled(names.iter().map(String::as_str)) {
        tracing::warn!("{warning}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelled_variable_is_told_and_what_others_own_is_not() {
        let told = misspelled(["CASEBOOK_REPLICA", "CASEBOOK_NATS", "CASEBOOK_GITHUB_TOKEN", "PATH", "CASEBOOK_"]);
        let expected =
            ["no program reads the environment variable CASEBOOK_REPLICA; did you mean CASEBOOK_REPLICAS?".to_owned()];
        assert_eq!(told, expected);
    }
}
