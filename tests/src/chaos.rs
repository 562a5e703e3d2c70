//! Chaos: many investigations under way in a team of processes over NATS, of which a random one is killed
//! or paused again and again, while alerts, jobs and notices come twice. What is struck when follows from
//! a seed ([`plan`]); [`run`] does it; at the end the books have to balance ([`books`], [`closing`]).

use std::time::Duration;

use crate::model::brain::Brain;
use crate::team::{Part, Shape};

pub mod books;
pub mod closing;
pub mod each;
pub mod noise;
pub mod plan;
pub mod run;

#[derive(Debug, Clone)]
pub struct Order {
    pub shape: Shape,
    /// How many alerts come in, spread over the first three quarters of `length`.
    pub investigations: usize,
    /// How long processes are struck.
    pub length: Duration,
    /// How long all may take to come to its end after that.
    pub patience: Duration,
    /// Decides what is struck when, and what comes twice.
    pub seed: u64,
}

impl Order {
    /// One process of each part, a model that answers at once, and the shortest lease.
    pub fn of_one_each(seed: u64) -> Self {
        let mut order = Self::small(seed);
        order.shape.parts = Part::ALL.map(|part| (part, 1)).to_vec();
        order.shape.lease = 2;
        order.shape.latency = Duration::from_millis(30);
        order
    }

    /// Two Hubs and a few others, small investigations, and a lease of three seconds.
    pub fn small(seed: u64) -> Self {
        let shape = Shape {
            parts: vec![(Part::Hub, 2), (Part::Director, 2), (Part::Critic, 1), (Part::Expert, 2)],
            lease: 3,
            sweep: 2,
            latency: Duration::from_millis(400),
            brain: Brain {
                rounds: 2,
                expert_calls: 2,
                critic_calls: 1,
                findings: 2,
                names_alert: true,
                ..Brain::default()
            },
        };
        Self { shape, investigations: 12, length: Duration::from_secs(35), patience: Duration::from_secs(90), seed }
    }
}
