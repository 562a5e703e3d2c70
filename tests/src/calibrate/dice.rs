//! Chance from a seed: the same seed gives the same trials on every machine and in every version, for
//! which no crate of random numbers vouches.

/// `SplitMix64` (Steele, Lea, Flood 2014): a counter and a mixing function, no state besides.
#[derive(Debug, Clone)]
pub struct Dice {
    state: u64,
    serial: u32,
}

impl Dice {
    /// Dice that fall the same way for the same seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self { state: seed, serial: 0 }
    }

    /// The next 64 bits.
    pub const fn roll(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `end`; 0 where `end` is 0.
    pub fn below(&mut self, end: usize) -> usize {
        let end = u64::try_from(end).unwrap_or(u64::MAX).max(1);
        usize::try_from(self.roll() % end).unwrap_or(0)
    }

    /// One of `all`; none of nothing.
    pub fn pick<'a, T>(&mut self, all: &'a [T]) -> Option<&'a T> {
        let place = self.below(all.len());
        all.get(place)
    }

    /// A number that was not given before: keeps the ids of made-up calls apart.
    pub const fn serial(&mut self) -> u32 {
        self.serial += 1;
        self.serial
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_numbers_for_ever() {
        let mut dice = Dice::new(1);
        let rolls = [dice.roll(), dice.roll()];
        assert_eq!(rolls, [0x910A_2DEC_8902_5CC1, 0xBEEB_8DA1_658E_EC67]);
        assert_eq!(Dice::new(7).pick::<u8>(&[]), None);
    }
}
