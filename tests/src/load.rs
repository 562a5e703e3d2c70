//! Load: many investigations at once against the scripted model as a process of its own, and beside
//! them a bare client that makes the same calls and keeps nothing. What is measured of a process is
//! measured by itself, so every run is a process of its own (`casebook-lab load`).

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

/// Who makes the calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// A bare client that makes the same calls and keeps nothing.
    Floor,
    /// Everything in one process over the durable store.
    Embedded,
    /// The same over a store in memory, which packs, writes and syncs nothing: what recording costs is the rest.
    Memory,
    /// A team of processes over a NATS server that syncs each append.
    Nats,
}

impl Mode {
    pub fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }
}

/// One run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setting {
    pub mode: Mode,
    pub at: usize,
    /// So many waves of them, one after the other: few at once are too soon over for a figure that holds.
    pub waves: usize,
    /// How long a reply of the model takes, in milliseconds.
    pub latency: u64,
    pub rounds: u32,
    /// Where the scripted model serves.
    pub url: String,
    /// The folder of all runs: the evidence with its index, the calls that a bare client makes, and what
    /// each run keeps.
    pub folder: PathBuf,
}

impl Setting {
    /// The investigations that are measured.
    pub const fn all(&self) -> usize {
        self.at * self.waves
    }

    /// Of `bytes` that are stored, those of the investigations that are measured: one like them comes before.
    pub const fn share(&self, bytes: u64) -> u64 {
        let all = self.all() as u64;
        bytes / (all + 1) * all
    }

    pub fn name(&self) -> String {
        format!("{}-{}-{}", self.mode.name(), self.at, self.latency)
    }

    /// What the run keeps.
    pub fn data(&self) -> PathBuf {
        self.folder.join(self.name())
    }

    pub fn evidence(&self) -> PathBuf {
        self.folder.join("evidence")
    }

    /// The evidence with its index, which is made by the first who opens it.
    pub fn catalog(&self) -> Result<Catalog> {
        Ok(Catalog::open(&self.evidence(), &self.folder.join("index.db"), &mut |_| {})?)
    }

    /// The file with the calls that a bare client makes ([`calls::Calls`]).
    pub fn calls(&self) -> PathBuf {
        self.folder.join("calls.json")
    }

    /// Runs the waves. `done` gets what became of each, which is not kept: memory is measured.
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

/// What one run took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Taken {
    /// CPU of the process, or of all processes of the team, from the first investigation to the end of
    /// the last, in microseconds.
    pub cpu_micros: u64,
    /// CPU of the NATS server in that time, in microseconds.
    pub broker_cpu_micros: u64,
    /// The time of that, in microseconds.
    pub wall_micros: u64,
    /// Peak resident memory of the process, in KiB.
    pub peak_kib: u64,
    /// The same before the first investigation.
    pub before_kib: u64,
    /// Bytes that are stored at the end.
    pub stored: u64,
    pub model_calls: u64,
    pub tool_calls: u64,
    /// Messages over the bus; over NATS, those that the server stored.
    pub messages: u64,
    /// Investigations that did not come to the end that they should.
    pub failed: u64,
}

impl Taken {
    /// Adds what a finished investigation used. It failed if a task did, or if it ended before its last round.
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
