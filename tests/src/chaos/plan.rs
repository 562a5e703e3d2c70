//! Derives the kills and pauses from a seed.

use std::time::Duration;

use rand::seq::IteratorRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::team::Part;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Target {
    Member(usize),
    Server,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Blow {
    /// `kill -9`, and a start later.
    Kill,
    /// Stop, and continue later.
    Pause,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Strike {
    pub at: Duration,
    pub target: Target,
    pub blow: Blow,
    /// How long until the target runs again.
    pub away: Duration,
}

/// Kills and pauses for `length`, about one every 1.3 s. Every part and the server is killed and paused once,
/// in random order, before any is repeated. Half of the pauses of a process exceed `lease`.
pub fn plan(seed: u64, parts: &[Part], lease: Duration, length: Duration) -> Vec<Strike> {
    let mut dice = ChaCha8Rng::seed_from_u64(seed);
    let mut strikes: Vec<Strike> = Vec::new();
    let mut kinds = Vec::new();
    let mut at = Duration::ZERO;
    loop {
        at += Duration::from_millis(dice.random_range(400..2_200));
        if at >= length {
            return strikes;
        }
        if kinds.is_empty() {
            kinds = all_kinds(parts);
        }
        let (part, blow) = kinds.swap_remove(dice.random_range(0..kinds.len()));
        let members = (0..parts.len()).filter(|i| parts.get(*i).copied() == part);
        let target = members.choose(&mut dice).map_or(Target::Server, Target::Member);
        let away = away(&mut dice, target, blow, lease);
        if strikes.iter().any(|strike| strike.target == target && strike.at + strike.away > at) {
            kinds.push((part, blow));
        } else {
            strikes.push(Strike { at, target, blow, away });
        }
    }
}

fn all_kinds(parts: &[Part]) -> Vec<(Option<Part>, Blow)> {
    let there = Part::ALL.into_iter().filter(|part| parts.contains(part)).map(Some);
    there.chain([None]).flat_map(|part| [(part, Blow::Kill), (part, Blow::Pause)]).collect()
}

fn away(dice: &mut ChaCha8Rng, target: Target, blow: Blow, lease: Duration) -> Duration {
    let lease = u64::try_from(lease.as_millis()).unwrap_or(u64::MAX);
    Duration::from_millis(match (target, blow) {
        (_, Blow::Kill) => dice.random_range(50..1_050),
        (Target::Server, Blow::Pause) => dice.random_range(200..2_200),
        (Target::Member(_), Blow::Pause) => dice.random_range(lease / 2..lease * 2),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARTS: [Part; 5] = [Part::Hub, Part::Hub, Part::Director, Part::Critic, Part::Expert];

    fn made(seed: u64, seconds: u64) -> Vec<Strike> {
        plan(seed, &PARTS, Duration::from_secs(3), Duration::from_secs(seconds))
    }

    #[test]
    fn the_same_seed_gives_the_same_plan_and_another_gives_another() {
        assert_eq!(made(1, 60), made(1, 60));
        assert_ne!(made(1, 60), made(2, 60));
    }

    #[test]
    fn within_half_a_minute_everything_is_killed_and_nothing_is_struck_while_it_is_away() {
        for seed in 0..200 {
            let strikes = made(seed, 35);
            let killed = |of: &dyn Fn(Target) -> bool| strikes.iter().any(|s| s.blow == Blow::Kill && of(s.target));
            assert!(killed(&|t| t == Target::Server), "seed {seed}");
            for part in Part::ALL {
                let of = |t: Target| matches!(t, Target::Member(i) if PARTS[i] == part);
                assert!(killed(&of), "seed {seed}: no {part:?} is killed");
            }
            for (n, strike) in strikes.iter().enumerate() {
                let later = &strikes[n + 1..];
                assert!(later.iter().all(|s| s.target != strike.target || s.at >= strike.at + strike.away));
            }
        }
    }
}
