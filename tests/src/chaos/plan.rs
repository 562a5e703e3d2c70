//! What is struck when: a pure function of the seed.

use std::time::Duration;

use crate::generate::Chance;
use crate::team::Part;

/// What is struck.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Target {
    /// A process of the team, by its place.
    Member(usize),
    /// The NATS server.
    Server,
}

/// How it is struck.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Blow {
    /// `kill -9`, and started again later.
    Kill,
    /// Stopped, and let go on later.
    Pause,
}

/// One strike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Strike {
    /// When, from the beginning.
    pub at: Duration,
    /// What.
    pub target: Target,
    /// How.
    pub blow: Blow,
    /// For how long it is away.
    pub away: Duration,
}

/// Strikes for `length`, about one every 1.3 s: every part of the team and the server, killed and paused, in
/// an order by chance, before any comes a second time. A process is paused for longer than `lease`
/// as often as not.
#[must_use]
pub fn plan(seed: u64, parts: &[Part], lease: Duration, length: Duration) -> Vec<Strike> {
    let mut chance = Chance(seed);
    let mut strikes: Vec<Strike> = Vec::new();
    let mut kinds = Vec::new();
    let mut at = Duration::ZERO;
    loop {
        at += Duration::from_millis(400 + chance.next(1_800));
        if at >= length {
            return strikes;
        }
        if kinds.is_empty() {
            kinds = all_kinds(parts);
        }
        let kind = kinds.swap_remove(usize::try_from(chance.next(kinds.len() as u64)).unwrap_or_default());
        let (part, blow) = kind;
        let target = match part {
            None => Target::Server,
            Some(part) => {
                let these: Vec<usize> = (0..parts.len()).filter(|i| parts.get(*i) == Some(&part)).collect();
                let chosen = usize::try_from(chance.next(these.len() as u64)).unwrap_or_default();
                these.get(chosen).map_or(Target::Server, |i| Target::Member(*i))
            }
        };
        let away = away(&mut chance, target, blow, lease);
        let busy = strikes.iter().any(|s| s.target == target && s.at + s.away > at);
        if busy {
            kinds.push(kind);
            continue;
        }
        strikes.push(Strike { at, target, blow, away });
    }
}

fn all_kinds(parts: &[Part]) -> Vec<(Option<Part>, Blow)> {
    let there = Part::ALL.into_iter().filter(|part| parts.contains(part)).map(Some);
    there.chain([None]).flat_map(|part| [(part, Blow::Kill), (part, Blow::Pause)]).collect()
}

fn away(chance: &mut Chance, target: Target, blow: Blow, lease: Duration) -> Duration {
    let lease = u64::try_from(lease.as_millis()).unwrap_or(u64::MAX);
    Duration::from_millis(match (target, blow) {
        (_, Blow::Kill) => 50 + chance.next(1_000),
        (Target::Server, Blow::Pause) => 200 + chance.next(2_000),
        (Target::Member(_), Blow::Pause) => lease / 2 + chance.next(lease * 3 / 2),
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
