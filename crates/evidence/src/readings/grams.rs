//! Filters that say in which blocks a term may be.

use super::{Marks, Term, each_other};
use crate::fields::Shape;

/// A Bloom filter with one hash over the four-byte sequences of a block. It skips most blocks without a term and
/// never skips a block that contains one.
#[derive(Debug)]
pub(crate) struct Grams {
    words: Box<[u64; WORDS]>,
    /// The bytes of a block in lower case.
    lower: Vec<u8>,
}

const BITS: usize = 1 << 18;
const WORDS: usize = BITS / 64;

impl Grams {
    pub(crate) fn new() -> Self {
        Self { words: Box::new([0; WORDS]), lower: Vec::new() }
    }

    pub(crate) fn add(&mut self, lower: &[u8]) {
        each_gram(lower, |gram| {
            if let Some(word) = self.words.get_mut(gram as usize / 64 % WORDS) {
                *word |= 1 << (gram % 64);
            }
        });
    }

    /// Adds all readings of the records in `raw`, each of which ends at one of `ends`.
    pub(crate) fn add_all(&mut self, shape: &Shape, raw: &[u8], ends: impl Iterator<Item = usize>) {
        let marks = Marks::of(raw);
        let mut lower = std::mem::take(&mut self.lower);
        lower.clear();
        lower.extend_from_slice(raw);
        lower.make_ascii_lowercase();
        let mut from = 0;
        for end in ends {
            self.add(lower.get(from..end).unwrap_or_default());
            if !marks.none() {
                each_other(shape, raw.get(from..end).unwrap_or_default(), marks, &mut |lower| {
                    self.add(lower);
                    false
                });
            }
            from = end;
        }
        self.lower = lower;
    }

    /// Returns the filter, as small as possible while still sparse, and starts an empty one.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        let mut words: &mut [u64] = self.words.as_mut();
        let mut set: usize = words.iter().map(|w| w.count_ones() as usize).sum();
        while words.len() > 16 && set * 8 <= words.len() * 64 {
            let (low, high) = words.split_at_mut(words.len() / 2);
            low.iter_mut().zip(high).for_each(|(a, b)| *a |= *b);
            words = low;
            set = words.iter().map(|w| w.count_ones() as usize).sum();
        }
        let mut filter = Vec::with_capacity(words.len() * 8);
        words.iter().for_each(|word| filter.extend_from_slice(&word.to_le_bytes()));
        self.words.fill(0);
        filter
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

#[inline]
pub(super) fn each_gram(lower: &[u8], mut sink: impl FnMut(u32)) {
    for gram in lower.array_windows::<4>() {
        let mut hash = u32::from_le_bytes(*gram).wrapping_mul(0x9e37_79b1);
        hash ^= hash >> 15;
        sink(hash.wrapping_mul(0x85eb_ca77) >> 3);
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
