//! The cost of tokens. The models file has prices per million tokens; code uses whole millionths, so that sums are
//! exact.

use casebook_protocol::Tokens;

/// Prices of a million tokens, in millionths of the currency.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Price {
    /// Input tokens that are not cached.
    pub input: u64,
    /// Input tokens from the provider's cache.
    pub cached: u64,
    /// Input tokens that are written to the cache.
    pub cache_write: u64,
    /// Output tokens.
    pub output: u64,
}

impl Price {
    /// The cost of `tokens` in millionths, rounded up so that a limit on money is never exceeded by rounding.
    pub fn cost(&self, tokens: &Tokens) -> u64 {
        let plain = tokens.input.saturating_sub(tokens.cached).saturating_sub(tokens.cache_written);
        let sum: u128 = [
            (plain, self.input),
            (tokens.cached, self.cached),
            (tokens.cache_written, self.cache_write),
            (tokens.output, self.output),
        ]
        .into_iter()
        .map(|(count, price)| u128::from(count) * u128::from(price))
        .sum();
        u64::try_from(sum.div_ceil(1_000_000)).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_token_has_its_price_and_no_token_is_paid_twice() {
        let price = Price { input: 3_000_000, cached: 300_000, cache_write: 3_750_000, output: 15_000_000 };
        let tokens = Tokens { input: 1_000_000, cached: 600_000, cache_written: 100_000, output: 10_000 };
        assert_eq!(price.cost(&tokens), 900_000 + 180_000 + 375_000 + 150_000);
    }

    #[test]
    fn a_fraction_is_rounded_up_and_nothing_overflows() {
        let price = Price { input: 1, cached: 1, cache_write: 1, output: 1 };
        assert_eq!(price.cost(&Tokens { input: 1, ..Tokens::default() }), 1);
        assert_eq!(
            Price { output: u64::MAX, ..price }.cost(&Tokens { output: u64::MAX, ..Tokens::default() }),
            u64::MAX
        );
        let odd = Tokens { input: 1, cached: 5, cache_written: 5, output: 0 };
        assert_eq!(price.cost(&odd), 1, "counts that contradict each other do not underflow");
    }
}
