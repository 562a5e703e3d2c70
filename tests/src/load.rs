//! Load: many investigations at once against the scripted model as a process of its own, and beside
//! them a bare client that makes the same calls and keeps nothing. What is measured of a process is
//! measured by itself, so every run is a process of its own (`--bin load`).

pub mod embedded;
pub mod evidence;
pub mod floor;
pub mod measure;
pub mod nats;
pub mod score;
pub mod table;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Who makes the calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
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
    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Floor => "floor",
            Self::Embedded => "embedded",
            Self::Memory => "memory",
            Self::Nats => "nats",
        }
    }
}

/// One run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setting {
    /// Who makes the calls.
    pub mode: Mode,
    /// Investigations at once.
    pub at: usize,
    /// So many waves of them, one after the other: few at once are too soon over for a figure that holds.
    pub waves: usize,
    /// How long a reply of the model takes, in milliseconds.
    pub latency: u64,
    /// Rounds of an investigation.
    pub rounds: u32,
    /// Where the scripted model serves.
    pub url: String,
    /// The folder of the evidence.
    pub evidence: PathBuf,
    /// The index of the evidence, made before.
    pub index: PathBuf,
    /// A folder for what the run keeps.
    pub data: PathBuf,
    /// The file with the calls that a bare client makes ([`score::Score`]).
    pub score: PathBuf,
}

impl Setting {
    /// The investigations that are measured.
    #[must_use]
    pub const fn all(&self) -> usize {
        self.at * self.waves
    }

    /// Of `bytes` that are stored, those of the investigations that are measured: one like them comes before.
    #[must_use]
    pub const fn share(&self, bytes: u64) -> u64 {
        let all = self.all() as u64;
        bytes / (all + 1) * all
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
    /// Calls of the model.
    pub model_calls: u64,
    /// Calls of tools.
    pub tool_calls: u64,
    /// Messages over the bus; over NATS, those that the server stored.
    pub messages: u64,
    /// Investigations that did not come to the end that they should.
    pub failed: u64,
}

/// The models file for the scripted model behind `url`, with the key in a file.
#[must_use]
pub fn models_file(url: &str, key: &std::path::Path) -> String {
    format!(
        "[models.scripted]\nprovider = \"anthropic\"\nmodel = \"scripted-1\"\nbase_url = \"{url}/v1/\"\nkey_file = \"{}\"\nwindow = 200000\nmax_output = 8000\nconcurrency = 1024\n[roles.director]\nmodel = \"scripted\"\n[roles.expert]\nmodel = \"scripted\"\n[roles.critic]\nmodel = \"scripted\"\n",
        key.display()
    )
}
