//! Measures many investigations at once: CPU, time, memory, stored bytes and messages, compared with a bare
//! client that makes the same calls and stores nothing. The scripted model and each run have their own process.
//! Prints a table, and asserts nothing.

use std::io::{BufRead, BufReader, Write};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio};

use casebook_hub::SqliteStore;
use casebook_protocol::Budget;
use casebook_tests::lab::{FORMS, Lab};
use casebook_tests::load::calls::Calls;
use casebook_tests::load::table::{HEAD, Run, line};
use casebook_tests::load::{Mode, Setting, Taken, embedded, evidence, floor, measure, nats};
use casebook_tests::model::brain::Brain;
use casebook_tests::{Result, run as programs};
use clap::Args;

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Investigations at once
    #[arg(long, value_delimiter = ',', default_value = "1,16,128,1000")]
    at: Vec<usize>,
    /// Waves of investigations, one after the other; the figures are means
    #[arg(long, default_value = "1")]
    waves: NonZeroUsize,
    /// Latency of the model in milliseconds
    #[arg(long, value_delimiter = ',', default_value = "0,200")]
    latency: Vec<u64>,
    /// Who makes the calls
    #[arg(long, value_delimiter = ',', default_value = "floor,embedded,nats")]
    modes: Vec<Mode>,
    /// Rounds of an investigation
    #[arg(long, default_value_t = 5)]
    rounds: u32,
    /// Threads of the scripted model
    #[arg(long, default_value_t = 1)]
    model_threads: usize,
    /// Write the figures as JSON to this file
    #[arg(long)]
    json: Option<PathBuf>,
    /// Keep the stored data in this folder
    #[arg(long)]
    keep: Option<PathBuf>,
    /// One run in this process; used internally
    #[arg(long, hide = true)]
    run: Option<PathBuf>,
}

pub(super) fn run(arguments: &Arguments) -> Result<ExitCode> {
    match &arguments.run {
        Some(setting) => one(setting)?,
        None => all(arguments)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn one(setting: &Path) -> Result<()> {
    let setting: Setting = serde_json::from_slice(&std::fs::read(setting)?)?;
    let taken = match setting.mode {
        Mode::Floor => floor::run(&setting)?,
        Mode::Embedded | Mode::Memory => embedded::run(&setting)?,
        Mode::Nats => nats::run(&setting)?,
    };
    println!("{}", serde_json::to_string(&taken)?);
    Ok(())
}

fn all(arguments: &Arguments) -> Result<()> {
    let temporary = tempfile::tempdir()?;
    let setting = Setting {
        mode: Mode::Floor,
        at: 1,
        waves: arguments.waves.get(),
        latency: 0,
        rounds: arguments.rounds,
        url: String::new(),
        folder: arguments.keep.clone().unwrap_or_else(|| temporary.path().to_path_buf()),
    };
    evidence::write(&setting.evidence())?;
    let calls = recorded(&setting)?;
    let (model_calls, depth, rounds) = (calls.model_calls(), calls.depth(), arguments.rounds);
    println!("an investigation: {model_calls} model calls, {depth} of them one after the other; {rounds} rounds");
    println!("{HEAD}");
    let mut runs: Vec<Run> = Vec::new();
    for &latency in &arguments.latency {
        for &at in &arguments.at {
            for &mode in &arguments.modes {
                let run = measured(arguments, Setting { mode, at, latency, ..setting.clone() }, depth)?;
                println!("{}", line(&run, runs.iter().find(|floor| floor.is_floor_of(&run.setting))));
                runs.push(run);
            }
        }
    }
    if let Some(file) = &arguments.json {
        std::fs::write(file, serde_json::to_vec_pretty(&runs)?)?;
    }
    Ok(())
}

fn recorded(setting: &Setting) -> Result<Calls> {
    setting.catalog()?;
    std::fs::write(setting.folder.join("alert.json"), evidence::alert_text(0))?;
    let brain = Brain { rounds: setting.rounds, ..Brain::named("benchmark").unwrap_or_default() };
    let lab = Lab::start(brain, FORMS[0])?;
    let budget = Budget { rounds: setting.rounds + 2, ..Budget::default() };
    let report = lab.investigate(&setting.folder, budget)?;
    programs::no_task_failed(&report)?;
    let calls = Calls::of(&lab.server.log().captured(), &report);
    std::fs::write(setting.calls(), serde_json::to_vec(&calls)?)?;
    Ok(calls)
}

fn measured(arguments: &Arguments, setting: Setting, depth: u64) -> Result<Run> {
    let mut model = Model::start(arguments, setting.latency)?;
    let setting = Setting { url: model.url.clone(), ..setting };
    let file = setting.folder.join(format!("{}.json", setting.name()));
    std::fs::write(&file, serde_json::to_vec(&setting)?)?;
    let before = measure::cpu_of(model.child.id());
    let mut lab = Command::new(std::env::current_exe()?);
    let output = lab.args(["load", "--run"]).arg(&file).stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        return Err(format!("the run {} ended with {}", setting.name(), output.status).into());
    }
    let mut taken: Taken = serde_json::from_slice(&output.stdout)?;
    if setting.mode == Mode::Embedded {
        // The first process that opens the file merges the journal of an ended process.
        drop(SqliteStore::open(setting.data())?);
        taken.stored = setting.share(measure::bytes_under(&setting.data()));
    }
    let model_cpu_micros = setting.share(measure::cpu_of(model.child.id()).saturating_sub(before));
    let counts = model.counts()?;
    let count = |name: &str| counts.get(name).and_then(serde_json::Value::as_u64).unwrap_or(0);
    if arguments.keep.is_none() {
        let _ = std::fs::remove_dir_all(setting.data());
    }
    let (requests, answered_again) = (setting.share(count("requests")), count("answered_again"));
    Ok(Run { setting, taken, model_cpu_micros, requests, answered_again, depth })
}

/// The scripted model as a child process, killed on drop.
struct Model {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    url: String,
}

impl Model {
    fn start(arguments: &Arguments, latency: u64) -> Result<Self> {
        let mut child = Command::new(programs::program("scripted-model"))
            .args(["--script", "benchmark", "--end-with-input"])
            .args(["--rounds", &arguments.rounds.to_string()])
            .args(["--latency-ms", &latency.to_string()])
            .args(["--threads", &arguments.model_threads.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("the scripted model has no pipes".into());
        };
        let mut model = Self { child, input, output: BufReader::new(output), url: String::new() };
        model.url = model.line()?;
        Ok(model)
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        Ok(line.trim_end().to_owned())
    }

    fn counts(&mut self) -> Result<serde_json::Value> {
        writeln!(self.input).and_then(|()| self.input.flush())?;
        Ok(serde_json::from_str(&self.line()?)?)
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
