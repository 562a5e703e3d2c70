//! Runs many investigations in a team of processes over NATS, kills or pauses random processes, and repeats
//! alerts, jobs and notices. [`plan`] derives the strikes from a seed, [`run`] performs them, and [`books`] and
//! [`closing`] check the result.

use std::time::Duration;

use crate::model::brain::Brain;
use crate::team::{Part, Shape};

pub mod books;
pub mod closing;
pub mod each;
pub mod noise;
pub mod partition;
pub mod plan;
pub mod run;
pub mod scale;

#[derive(Debug, Clone)]
pub struct Order {
    pub shape: Shape,
    /// Number of alerts, spread over the first three quarters of `length`.
    pub investigations: usize,
    /// How long processes are killed and paused.
    pub length: Duration,
    /// How long the investigations may take after that.
    pub patience: Duration,
    pub seed: u64,
}

impl Order {
    /// One process of each part, a fast model, and the shortest lease.
    pub fn of_one_each(seed: u64) -> Self {
        let mut order = Self::small(seed);
        order.shape.parts = Part::ALL.map(|part| (part, 1)).to_vec();
        order.shape.lease = 2;
        order.shape.latency = Duration::from_millis(30);
        order
    }

    /// Two Hubs and a few other processes, small investigations, and a lease of three seconds.
    pub fn small(seed: u64) -> Self {
        let shape = Shape {
            parts: vec![(Part::Hub, 2), (Part::Director, 2), (Part::Critic, 1), (Part::Expert, 2)],
            lease: 3,
            sweep: 2,
            latency: Duration::from_millis(400),
            domain: None,
            at_once: None,
            replicas: 1,
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
