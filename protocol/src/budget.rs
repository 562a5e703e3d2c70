//! The limits of an investigation, and what it has used (rule "hard budgets").

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    pub model_calls: u64,
    pub tool_calls: u64,
    /// Includes cached tokens.
    pub input_tokens: u64,
    /// Input tokens that the provider served from its cache.
    pub cached_tokens: u64,
    pub output_tokens: u64,
    /// Millionths of the currency in which prices are given.
    pub cost_micros: u64,
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

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    pub model_calls: u64,
    pub tool_calls: u64,
    /// Input and output tokens.
    pub tokens: u64,
    /// Money, in millionths.
    pub cost_micros: u64,
    /// Stops a Director that never concludes.
    pub rounds: u32,
    /// Counted only while the investigation is worked on.
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

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Headroom {
    Enough,
    /// Four fifths of the named limit are used. The Director gets a warning.
    Near(String),
    /// The named limit is reached. The investigation concludes.
    Spent(String),
}

impl Budget {
    /// What may be used before the report. A twentieth of the model limits and at least two calls are kept, so that an
    /// investigation can still report at its limit.
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
        let describe = |(name, used, _, limit): &(&str, u64, u64, u64)| match *name {
            // In the unit in which people set it.
            "cost" => format!("cost: {:.4} of {:.2}", *used as f64 / 1e6, *limit as f64 / 1e6),
            name => format!("{name}: {used} of {limit}"),
        };
        match (spent, near) {
            (Some(limit @ (_, used, usable, most)), _) => {
                let kept = if usable < most && used < most { " (the rest is kept for the report)" } else { "" };
                Headroom::Spent(format!("{}{kept}", describe(limit)))
            }
            (None, Some(limit)) => Headroom::Near(describe(limit)),
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
        assert_eq!(at(0), Headroom::Enough, "two calls are for the report, and no model was asked yet");
        assert_eq!(at(949), Headroom::Near("tokens: 949 of 1000".into()));
        assert_eq!(at(950), Headroom::Spent("tokens: 950 of 1000 (the rest is kept for the report)".into()));
    }
}
