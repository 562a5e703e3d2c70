//! Load tests: many investigations at once with the scripted model in another process, compared with a bare
//! client that makes the same calls. Each run has its own process, to measure CPU and memory (`casebook-lab
//! load`).

pub mod calls;
pub mod embedded;
pub mod evidence;
pub mod floor;
pub mod measure;
pub mod nats;
pub mod table;

use std::path::PathBuf;

use casebook_evidence::Catalog;
use casebook_protocol::Report;
use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use crate::{Result, run};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// A bare client that makes the same calls and stores nothing
    Floor,
    /// Everything in one process with the durable store
    Embedded,
    /// The same with a store in memory; the difference is the cost of recording
    Memory,
    /// A team of processes over a NATS server that syncs each append
    Nats,
}

impl Mode {
    pub fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setting {
    pub mode: Mode,
    pub at: usize,
    /// Waves, one after the other: with few investigations at once, a single wave is too short to measure.
    pub waves: usize,
    /// Latency of the model in milliseconds.
    pub latency: u64,
    pub rounds: u32,
    pub url: String,
    /// The folder of all runs: the evidence with its index, the calls of a bare client, and the stored data of
    /// each run.
    pub folder: PathBuf,
}

impl Setting {
    pub const fn all(&self) -> usize {
        self.at * self.waves
    }

    /// The part of `bytes` that the measured investigations stored; one more investigation runs before them.
    pub const fn share(&self, bytes: u64) -> u64 {
        let all = self.all() as u64;
        bytes / (all + 1) * all
    }

    pub fn name(&self) -> String {
        format!("{}-{}-{}", self.mode.name(), self.at, self.latency)
    }

    pub fn data(&self) -> PathBuf {
        self.folder.join(self.name())
    }

    pub fn evidence(&self) -> PathBuf {
        self.folder.join("evidence")
    }

    /// The evidence, indexed on first use.
    pub fn catalog(&self) -> Result<Catalog> {
        Ok(Catalog::open(&self.evidence(), &self.folder.join("index.db"), &mut |_| {})?)
    }

    /// The file with the calls of a bare client ([`calls::Calls`]).
    pub fn calls(&self) -> PathBuf {
        self.folder.join("calls.json")
    }

    /// Runs the waves. `done` gets each result, which is not kept, because memory is measured.
    async fn in_waves<T, F>(&self, one: impl Fn(usize) -> F, mut done: impl FnMut(Result<T>))
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + Send + 'static,
    {
        for wave in 0..self.waves {
            let begun: Vec<_> = (wave * self.at..(wave + 1) * self.at).map(|n| tokio::spawn(one(n))).collect();
            for one in begun {
                done(one.await.unwrap_or_else(|error| Err(error.into())));
            }
        }
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Taken {
    /// CPU of the process or of all processes of the team, from the first investigation to the end of the last,
    /// in microseconds.
    pub cpu_micros: u64,
    /// CPU of the NATS server in that time, in microseconds.
    pub broker_cpu_micros: u64,
    /// The elapsed time, in microseconds.
    pub wall_micros: u64,
    /// Peak resident memory in KiB.
    pub peak_kib: u64,
    /// Peak resident memory before the first investigation, in KiB.
    pub before_kib: u64,
    pub stored: u64,
    pub model_calls: u64,
    pub tool_calls: u64,
    /// Messages over the bus; over NATS, messages that the server stored.
    pub messages: u64,
    pub failed: u64,
}

impl Taken {
    /// Adds the usage of a finished investigation. It failed if a task failed or a round is missing.
    fn add(&mut self, report: &Report, rounds: u32) {
        self.model_calls += report.usage.total.model_calls;
        self.tool_calls += report.usage.total.tool_calls;
        let whole = run::no_task_failed(report);
        if let Err(why) = &whole {
            eprintln!("load: {}: {why}", report.investigation);
        }
        self.failed += u64::from(whole.is_err() || report.usage.rounds < rounds);
    }
}
