//! What an investigation may cost, and what it has cost (rule 3.6).

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    pub model_calls: u64,
    pub tool_calls: u64,
    /// Tokens sent to models, cached ones included.
    pub input_tokens: u64,
    /// Of those, tokens that the provider served from its cache.
    pub cached_tokens: u64,
    /// Tokens that models wrote.
    pub output_tokens: u64,
    /// Money, in millionths of the currency that prices are given in.
    pub cost_micros: u64,
    /// Bytes of tool results.
    pub result_bytes: u64,
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.model_calls = self.model_calls.saturating_add(other.model_calls);
        self.tool_calls = self.tool_calls.saturating_add(other.tool_calls);
        self.input_tokens = self.input_tokens.saturating_add(other.input_tokens);
        self.cached_tokens = self.cached_tokens.saturating_add(other.cached_tokens);
        self.output_tokens = self.output_tokens.saturating_add(other.output_tokens);
        self.cost_micros = self.cost_micros.saturating_add(other.cost_micros);
        self.result_bytes = self.result_bytes.saturating_add(other.result_bytes);
    }
}

/// The hard limits of an investigation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    pub model_calls: u64,
    pub tool_calls: u64,
    /// Tokens, in and out.
    pub tokens: u64,
    /// Money, in millionths.
    pub cost_micros: u64,
    /// Rounds. There is no preset limit in the seeds; this one stops a Director that never concludes.
    pub rounds: u32,
    /// Seconds from opening, counted only while the investigation is worked on.
    pub seconds: u64,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            model_calls: 1_000,
            tool_calls: 2_000,
            tokens: 20_000_000,
            cost_micros: 50_000_000,
            rounds: 50,
            seconds: 6 * 3600,
        }
    }
}

/// How near a limit is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Headroom {
    Enough,
    /// Four fifths of the named limit are used: the Director is told.
    Near(String),
    /// The named limit is reached: the flow goes to `conclude`.
    Spent(String),
}

impl Budget {
    /// What may be used before the report: a twentieth of what models cost is kept for it, and two
    /// calls, so that an investigation that stops at a limit can still say what it found.
    #[must_use]
    pub fn before_the_report(&self) -> Self {
        let most = |limit: u64| limit.saturating_sub(limit.div_ceil(20));
        Self {
            model_calls: self.model_calls.saturating_sub(self.model_calls.div_ceil(20).max(2)),
            tokens: most(self.tokens),
            cost_micros: most(self.cost_micros),
            ..*self
        }
    }

    /// How near `usage`, `rounds` finished and `seconds` worked are to the limits; the nearest one is
    /// named.
    pub fn headroom(&self, usage: &Usage, rounds: u32, seconds: u64) -> Headroom {
        let usable = self.before_the_report();
        let tokens = usage.input_tokens.saturating_add(usage.output_tokens);
        let limits = [
            ("model calls", usage.model_calls, usable.model_calls, self.model_calls),
            ("tool calls", usage.tool_calls, self.tool_calls, self.tool_calls),
            ("tokens", tokens, usable.tokens, self.tokens),
            ("cost", usage.cost_micros, usable.cost_micros, self.cost_micros),
            ("rounds", u64::from(rounds), u64::from(self.rounds), u64::from(self.rounds)),
            ("time", seconds, self.seconds, self.seconds),
        ];
        let spent = limits.iter().find(|(_, used, usable, limit)| used >= usable && (*used > 0 || *limit == 0));
        let near =
            limits.iter().find(|(_, used, _, limit)| *used > 0 && used.saturating_mul(5) >= limit.saturating_mul(4));
        let say = |(name, used, _, limit): &(&str, u64, u64, u64)| match *name {
            // In the unit that people set it in.
            "cost" => format!("cost: {:.4} of {:.2}", *used as f64 / 1e6, *limit as f64 / 1e6),
            name => format!("{name}: {used} of {limit}"),
        };
        match (spent, near) {
            (Some(limit @ (_, used, usable, most)), _) => {
                let kept = if usable < most && used < most { " (the rest is kept for the report)" } else { "" };
                Headroom::Spent(format!("{}{kept}", say(limit)))
            }
            (None, Some(limit)) => Headroom::Near(say(limit)),
            (None, None) => Headroom::Enough,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_then_spent_and_the_limit_is_named() {
        let budget = Budget { tool_calls: 10, ..Budget::default() };
        let at = |tool_calls| budget.headroom(&Usage { tool_calls, ..Usage::default() }, 0, 0);
        assert_eq!(at(7), Headroom::Enough);
        assert_eq!(at(8), Headroom::Near("tool calls: 8 of 10".into()));
        assert_eq!(at(10), Headroom::Spent("tool calls: 10 of 10".into()));
    }

    #[test]
    fn a_part_of_what_models_cost_is_kept_for_the_report() {
        let budget = Budget { tokens: 1000, model_calls: 2, ..Budget::default() };
        let at = |input_tokens| budget.headroom(&Usage { input_tokens, ..Usage::default() }, 0, 0);
        assert_eq!(at(0), Headroom::Enough, "two calls are for the report, and nobody has asked a model yet");
        assert_eq!(at(949), Headroom::Near("tokens: 949 of 1000".into()));
        assert_eq!(at(950), Headroom::Spent("tokens: 950 of 1000 (the rest is kept for the report)".into()));
    }
}
