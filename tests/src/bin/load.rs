//! Measures many investigations at once: CPU, time, memory, bytes stored and messages, beside a bare
//! client that makes the same calls and keeps nothing. The scripted model is a process of its own, and
//! so is every run. Prints a table and, where asked, the same as JSON; asserts nothing.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio};

use casebook_evidence::Catalog;
use casebook_hub::SqliteStore;
use casebook_protocol::Budget;
use casebook_tests::lab::{FORMS, Lab};
use casebook_tests::load::score::Score;
use casebook_tests::load::table::{HEAD, Run, line};
use casebook_tests::load::{Mode, Setting, Taken, embedded, evidence, floor, measure, nats};
use casebook_tests::model::brain::Brain;
use clap::Parser;

#[derive(Debug, Parser)]
#[command(about = "Many investigations at once against a scripted model, beside a bare client")]
struct Arguments {
    /// Investigations at once.
    #[arg(long, value_delimiter = ',', default_value = "1,16,128,1000")]
    at: Vec<usize>,
    /// Waves of so many, one after the other: the figures are the mean.
    #[arg(long, default_value = "1")]
    waves: std::num::NonZeroUsize,
    /// Latency of the model in milliseconds.
    #[arg(long, value_delimiter = ',', default_value = "0,200")]
    latency: Vec<u64>,
    /// Who makes the calls.
    #[arg(long, value_delimiter = ',', default_value = "floor,embedded,nats")]
    modes: Vec<Mode>,
    /// Rounds of an investigation.
    #[arg(long, default_value_t = 5)]
    rounds: u32,
    /// Threads of the scripted model.
    #[arg(long, default_value_t = 1)]
    model_threads: usize,
    /// A file for the figures as JSON.
    #[arg(long)]
    json: Option<PathBuf>,
    /// Keep what is stored in this folder.
    #[arg(long)]
    keep: Option<PathBuf>,
    /// One run, in this process: how this program calls itself.
    #[arg(long, hide = true)]
    run: Option<PathBuf>,
}

fn main() -> ExitCode {
    let told = Arguments::parse();
    let done = match &told.run {
        Some(setting) => run(setting),
        None => all(&told),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("load: {error}");
            ExitCode::FAILURE
        }
    }
}

fn words(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// One run in this process.
fn run(setting: &Path) -> Result<(), String> {
    let setting: Setting = serde_json::from_slice(&std::fs::read(setting).map_err(words)?).map_err(words)?;
    let taken = match setting.mode {
        Mode::Floor => floor::run(&setting)?,
        Mode::Embedded | Mode::Memory => embedded::run(&setting)?,
        Mode::Nats => nats::run(&setting)?,
    };
    println!("{}", serde_json::to_string(&taken).map_err(words)?);
    Ok(())
}

fn all(told: &Arguments) -> Result<(), String> {
    let temporary = tempfile::tempdir().map_err(words)?;
    let folder = told.keep.clone().unwrap_or_else(|| temporary.path().to_path_buf());
    std::fs::create_dir_all(&folder).map_err(words)?;
    evidence::write(&folder.join("evidence")).map_err(words)?;
    let score = written(&folder, told.rounds)?;
    println!(
        "an investigation: {} model calls, {} of them one after the other; {} rounds",
        score.model_calls(),
        score.depth(),
        told.rounds
    );
    println!("{HEAD}");
    let mut runs: Vec<Run> = Vec::new();
    for &latency in &told.latency {
        for &at in &told.at {
            for &mode in &told.modes {
                let one = measured(told, &folder, mode, at, latency, score.depth())?;
                let beside = |r: &&Run| r.mode == Mode::Floor && (r.at, r.latency) == (at, latency);
                println!("{}", line(&one, runs.iter().find(beside).filter(|_| mode != Mode::Floor)));
                runs.push(one);
            }
        }
    }
    match &told.json {
        Some(file) => std::fs::write(file, serde_json::to_vec_pretty(&runs).map_err(words)?).map_err(words),
        None => Ok(()),
    }
}

/// The score of an investigation, from an embedded one in this process, in its file.
fn written(folder: &Path, rounds: u32) -> Result<Score, String> {
    Catalog::open(&folder.join("evidence"), &folder.join("index.db"), &mut |_| {}).map_err(words)?;
    std::fs::write(folder.join("alert.json"), evidence::alert_text(0)).map_err(words)?;
    let brain = Brain { rounds, ..Brain::named("benchmark").unwrap_or_default() };
    let lab = Lab::start(brain, FORMS[0])?;
    let report = lab.investigate(folder, Budget { rounds: rounds + 2, ..Budget::default() })?;
    if let Some(failed) = report.usage.tasks.iter().find(|task| task.failed.is_some()) {
        return Err(format!("task {} failed: {:?}", failed.task, failed.failed));
    }
    let score = Score::of(&lab.server.log().captured(), &report);
    std::fs::write(folder.join("score.json"), serde_json::to_vec(&score).map_err(words)?).map_err(words)?;
    Ok(score)
}

fn measured(told: &Arguments, folder: &Path, mode: Mode, at: usize, latency: u64, depth: u64) -> Result<Run, String> {
    let mut model = Model::start(told, latency)?;
    let name = format!("{}-{at}-{latency}", mode.name());
    let setting = Setting {
        mode,
        at,
        waves: told.waves.get(),
        latency,
        rounds: told.rounds,
        url: model.url.clone(),
        evidence: folder.join("evidence"),
        index: folder.join("index.db"),
        data: folder.join(&name),
        score: folder.join("score.json"),
    };
    let file = folder.join(format!("{name}.json"));
    std::fs::write(&file, serde_json::to_vec(&setting).map_err(words)?).map_err(words)?;
    let before = measure::cpu_of(model.child.id());
    let program = std::env::current_exe().map_err(words)?;
    let output = Command::new(program).arg("--run").arg(&file).stderr(Stdio::inherit()).output().map_err(words)?;
    if !output.status.success() {
        return Err(format!("the run {name} ended with {}", output.status));
    }
    let mut taken: Taken = serde_json::from_slice(&output.stdout).map_err(words)?;
    if mode == Mode::Embedded {
        // The first to open the file after a process that ended takes its journal in.
        drop(SqliteStore::open(&setting.data).map_err(words)?);
        taken.stored = setting.share(measure::bytes_under(&setting.data));
    }
    let model_cpu_micros = setting.share(measure::cpu_of(model.child.id()).saturating_sub(before));
    let counts = model.counts()?;
    let count = |name: &str| counts.get(name).and_then(serde_json::Value::as_u64).unwrap_or(0);
    if told.keep.is_none() {
        let _ = std::fs::remove_dir_all(&setting.data);
    }
    Ok(Run {
        mode,
        at,
        waves: told.waves.get(),
        latency,
        taken,
        model_cpu_micros,
        requests: setting.share(count("requests")),
        answered_again: count("answered_again"),
        depth,
    })
}

/// The scripted model as a process, ended when it is dropped.
struct Model {
    child: Child,
    said: BufReader<ChildStdout>,
    told: ChildStdin,
    url: String,
}

impl Model {
    fn start(told: &Arguments, latency: u64) -> Result<Self, String> {
        let program = std::env::current_exe().map_err(words)?.with_file_name("scripted-model");
        let mut child = Command::new(&program)
            .args(["--script", "benchmark", "--end-with-input"])
            .args(["--rounds", &told.rounds.to_string()])
            .args(["--latency-ms", &latency.to_string()])
            .args(["--threads", &told.model_threads.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|e| format!("{}: {e}: build it with --bins", program.display()))?;
        let (Some(said), Some(to)) = (child.stdout.take(), child.stdin.take()) else {
            return Err("the scripted model has no pipes".into());
        };
        let mut model = Self { child, said: BufReader::new(said), told: to, url: String::new() };
        model.url = model.line()?;
        Ok(model)
    }

    fn line(&mut self) -> Result<String, String> {
        let mut line = String::new();
        self.said.read_line(&mut line).map_err(words)?;
        Ok(line.trim_end().to_owned())
    }

    fn counts(&mut self) -> Result<serde_json::Value, String> {
        writeln!(self.told).and_then(|()| self.told.flush()).map_err(words)?;
        serde_json::from_str(&self.line()?).map_err(words)
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
