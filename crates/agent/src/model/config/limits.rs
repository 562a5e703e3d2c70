//! What a task may use.

use std::time::Duration;

use casebook_protocol::Allowance;
use casebook_runtime::config::{Check, Money, time};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};

/// What one task may use at most; what is not set is left to the investigation's defaults.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(try_from = "Written")]
pub struct Limits {
    /// Turns; the last one offers no tools.
    pub turns: Option<u32>,
    /// Model calls, the repair included.
    pub model_calls: Option<u32>,
    pub tool_calls: Option<u32>,
    /// Tokens, in and out.
    pub tokens: Option<u64>,
    /// Money, in millionths.
    pub cost_micros: Option<u64>,
    pub seconds: Option<u64>,
}

/// A map of what one task may use at most, such as { turns = 12, cost = "0.50", time = "10m" }.
#[derive(Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[derive(Default)]
struct Written {
    /// How many turns it may take; the last one offers no tools.
    #[schemars(range(min = 1, max = 1000))]
    turns: Option<u32>,
    /// How many calls of tools it may make.
    #[schemars(range(min = 0, max = 100_000))]
    tool_calls: Option<u32>,
    /// How many calls of a language model it may make.
    #[schemars(range(min = 1, max = 100_000))]
    model_calls: Option<u32>,
    /// How many tokens it may use, in and out.
    #[schemars(range(min = 1, max = 1_000_000_000_000_u64))]
    tokens: Option<u64>,
    /// What it may cost, an amount such as "2.50".
    cost: Option<Money>,
    /// How long it may work, from 1s to 24h, such as 90s or 10m.
    #[serde(deserialize_with = "some_time")]
    #[schemars(with = "Option<String>", regex(pattern = "^[0-9]{1,9}(s|m|h)$"))]
    time: Option<Duration>,
    /// How many seconds it may work, if it is not said by time.
    #[schemars(range(min = 1, max = 86_400))]
    seconds: Option<u64>,
}

fn some_time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    time(deserializer).map(Some)
}

impl TryFrom<Written> for Limits {
    type Error = &'static str;

    fn try_from(written: Written) -> Result<Self, &'static str> {
        let seconds = match (written.time, written.seconds) {
            (Some(_), Some(_)) => return Err("time and seconds are both set; leave one out"),
            (time, seconds) => time.map(|time| time.as_secs()).or(seconds),
        };
        if seconds.is_some_and(|seconds| !(1..=86_400).contains(&seconds)) {
            return Err("time: expected one from 1s to 24h; write one such as 10m");
        }
        Ok(Self {
            turns: written.turns,
            model_calls: written.model_calls,
            tool_calls: written.tool_calls,
            tokens: written.tokens,
            cost_micros: written.cost.map(|cost| cost.0),
            seconds,
        })
    }
}

impl Limits {
    /// These limits where they are set, `under` where they are not.
    #[must_use]
    pub fn over(self, under: Self) -> Self {
        Self {
            turns: self.turns.or(under.turns),
            model_calls: self.model_calls.or(under.model_calls),
            tool_calls: self.tool_calls.or(under.tool_calls),
            tokens: self.tokens.or(under.tokens),
            cost_micros: self.cost_micros.or(under.cost_micros),
            seconds: self.seconds.or(under.seconds),
        }
    }

    /// What a task may use that is `given` so much: more turns or time where these limits say so, and never
    /// more of the budget.
    pub fn held(&self, given: Allowance) -> Allowance {
        Allowance {
            turns: self.turns.unwrap_or(given.turns),
            seconds: self.seconds.unwrap_or(given.seconds),
            model_calls: self.model_calls.map_or(given.model_calls, |n| n.min(given.model_calls)),
            tool_calls: self.tool_calls.map_or(given.tool_calls, |n| n.min(given.tool_calls)),
            tokens: self.tokens.map_or(given.tokens, |n| n.min(given.tokens)),
            cost_micros: self.cost_micros.map_or(given.cost_micros, |n| n.min(given.cost_micros)),
            result_bytes: given.result_bytes,
        }
    }

    /// The numbers are such as make sense.
    pub fn check(&self, check: &mut Check) {
        check.number("turns", self.turns, 1..=1000);
        check.number("model_calls", self.model_calls, 1..=100_000);
        check.number("tool_calls", self.tool_calls, 0..=100_000);
        check.number("tokens", self.tokens, 1..=1_000_000_000_000);
    }
}
