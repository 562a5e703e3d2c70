//! Filters that say in which blocks a term may be.

use super::{Term, each, only_reading};
use crate::fields::Shape;

/// A Bloom filter with one hash over the four-byte sequences of a block. It skips most blocks without a term and
/// never skips a block that contains one.
#[derive(Debug)]
pub(crate) struct Grams {
    words: Vec<u64>,
}

const BITS: usize = 1 << 18;

impl Grams {
    pub(crate) fn new() -> Self {
        Self { words: vec![0; BITS / 64] }
    }

    pub(crate) fn add(&mut self, lower: &[u8]) {
        let words = &mut self.words;
        each_gram(lower, &mut |gram| {
            let at = gram as usize & (BITS - 1);
            if let Some(word) = words.get_mut(at / 64) {
                *word |= 1 << (at % 64);
            }
        });
    }

    /// Adds all readings of the records in `raw`, each of which ends at one of `ends`.
    pub(crate) fn add_all(&mut self, shape: &Shape, raw: &[u8], ends: impl Iterator<Item = usize>) {
        let plain = only_reading(raw).then(|| raw.to_ascii_lowercase());
        let mut from = 0;
        for end in ends {
            match &plain {
                Some(lower) => self.add(lower.get(from..end).unwrap_or_default()),
                None => each(shape, raw.get(from..end).unwrap_or_default(), &mut |lower| {
                    self.add(lower);
                    false
                }),
            }
            from = end;
        }
    }

    /// Returns the filter, as small as possible while still sparse, and starts an empty one.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        let mut words = std::mem::take(&mut self.words);
        self.words = vec![0; BITS / 64];
        let mut set: usize = words.iter().map(|w| w.count_ones() as usize).sum();
        while words.len() > 16 && set * 8 <= words.len() * 64 {
            let half = words.len() / 2;
            let (low, high) = words.split_at_mut(half);
            low.iter_mut().zip(high).for_each(|(a, b)| *a |= *b);
            words.truncate(half);
            set = words.iter().map(|w| w.count_ones() as usize).sum();
        }
        words.iter().flat_map(|w| w.to_le_bytes()).collect()
    }
}

pub(crate) fn may_hold(filter: &[u8], term: &Term) -> bool {
    let bits = filter.len() * 8;
    if !bits.is_power_of_two() {
        return true;
    }
    term.grams.iter().all(|gram| {
        let at = *gram as usize & (bits - 1);
        filter.get(at / 8).is_none_or(|byte| byte >> (at % 8) & 1 == 1)
    })
}

pub(super) fn each_gram(lower: &[u8], sink: &mut dyn FnMut(u32)) {
    for window in lower.windows(4) {
        if let [a, b, c, d] = window {
            let mut hash = u32::from_le_bytes([*a, *b, *c, *d]).wrapping_mul(0x9e37_79b1);
            hash ^= hash >> 15;
            sink(hash.wrapping_mul(0x85eb_ca77) >> 3);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_hides_most_of_what_is_not_there() {
        let mut grams = Grams::new();
        for i in 0..500 {
            grams.add(format!("{{\"user\":\"bob{i}\",\"ip\":\"10.0.{i}.1\"}}").as_bytes());
        }
        let filter = grams.take();
        assert!(filter.len() <= 16 << 10);
        let hit = (0..200).filter(|i| may_hold(&filter, &Term::new(&format!("alice-{i}-nowhere")))).count();
        assert!(hit < 4, "{hit}");
    }
}
