use std::time::Duration;

use casebook_protocol::Allowance;
use casebook_runtime::config::{Check, Money, time};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};

/// The limits of one task. Unset ones have the defaults of the investigation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(try_from = "Written")]
pub struct Limits {
    /// The last turn offers no tools.
    pub turns: Option<u32>,
    /// Includes the repair.
    pub model_calls: Option<u32>,
    pub tool_calls: Option<u32>,
    /// Input and output tokens.
    pub tokens: Option<u64>,
    pub cost_micros: Option<u64>,
    pub seconds: Option<u64>,
}

/// A map of the limits of one task, such as { turns = 12, cost = "0.50", time = "10m" }.
#[derive(Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[derive(Default)]
struct Written {
    /// The most turns; the last one offers no tools.
    #[schemars(range(min = 1, max = 1000))]
    turns: Option<u32>,
    /// The most calls of tools.
    #[schemars(range(min = 0, max = 100_000))]
    tool_calls: Option<u32>,
    /// The most calls of a language model.
    #[schemars(range(min = 1, max = 100_000))]
    model_calls: Option<u32>,
    /// The most tokens, input and output.
    #[schemars(range(min = 1, max = 1_000_000_000_000_u64))]
    tokens: Option<u64>,
    /// The most money, an amount such as "2.50".
    cost: Option<Money>,
    /// The longest time of work, from 1s to 24h, such as 90s or 10m.
    #[serde(deserialize_with = "some_time")]
    #[schemars(with = "Option<String>", regex(pattern = "^[0-9]{1,9}(s|m|h)$"))]
    time: Option<Duration>,
    /// The longest time of work in seconds, instead of time.
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

    /// The allowance of a task with these limits. They may raise its turns and time, but never its share of the
    /// budget.
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

    pub fn check(&self, check: &mut Check) {
        check.number("turns", self.turns, 1..=1000);
        check.number("model_calls", self.model_calls, 1..=100_000);
        check.number("tool_calls", self.tool_calls, 0..=100_000);
        check.number("tokens", self.tokens, 1..=1_000_000_000_000);
    }
}
