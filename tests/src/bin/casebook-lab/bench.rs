//! Measures loading and investigating of generated mixed logs, each step in a separate process, beside `grep` over
//! the same files; and the cost of a recorded event. Asserts nothing, because timings vary.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use casebook_evidence::{Catalog, Declared};
use casebook_expert::rules;
use casebook_hub::SqliteStore;
use casebook_protocol::{Event, InvestigationId, Recorded, Timestamp};
use casebook_runtime::process;
use casebook_runtime::store::Store;
use casebook_tests::generate::{self, mixed};
use casebook_tests::load::Taken;
use casebook_tests::load::measure::{self, Meter};
use casebook_tests::{Result, run};
use clap::{Args, ValueEnum};

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Size of the logs in megabytes
    #[arg(default_value_t = 1000)]
    megabytes: u64,
    /// The folder of the logs; they are generated if it does not exist [default: a temporary folder]
    folder: Option<PathBuf>,
    /// How many further rules to measure with
    #[arg(long, default_value_t = 2400)]
    further: usize,
    /// Measure only this step, and print its figures
    #[arg(long, hide = true)]
    step: Option<Step>,
    #[arg(long, hide = true, requires = "step")]
    scratch: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Step {
    Load,
    Rules,
    Further,
    First,
    Again,
}

impl Step {
    const ALL: [(Self, &str); 5] = [
        (Self::Load, "load without rules"),
        (Self::Rules, "load with our rules"),
        (Self::Further, "load with further rules"),
        (Self::First, "load and investigate"),
        (Self::Again, "investigate, index there"),
    ];

    fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }
}

pub(super) fn run(arguments: Arguments) -> Result<ExitCode> {
    if let (Some(step), Some(folder)) = (arguments.step, &arguments.folder) {
        return one(step, folder, &arguments.scratch.unwrap_or_default(), arguments.further);
    }
    let temporary = tempfile::tempdir()?;
    let folder = arguments.folder.unwrap_or_else(|| temporary.path().join("logs"));
    if !folder.is_dir() {
        mixed::write(&folder, arguments.megabytes * 1_000_000, 42)?;
    }
    let size = measure::bytes_under(&folder) as f64;
    println!(
        "{:.1} MB of logs, {} rules of Casebook, {} further rules",
        size / 1e6,
        rules_of_ours(),
        arguments.further
    );
    println!("{:<26} {:>8} {:>8} {:>8} {:>9} {:>9} {:>7}", "", "s", "MB/s", "CPU s", "x grep", "peak MB", "index");
    let mut unit = None;
    for program in ["grep", "rg"] {
        // The first run fills the page cache.
        let Some(seconds) = search(program, &folder).and_then(|_| search(program, &folder)) else { continue };
        unit = unit.or(Some(seconds));
        println!("{:<26} {seconds:>8.2} {:>8.0}", format!("{program} -c"), size / 1e6 / seconds);
    }
    for (step, name) in Step::ALL {
        let mut program = Command::new(std::env::current_exe()?);
        program.args(["bench", "0"]).arg(&folder).args(["--step", &step.name(), "--scratch"]).arg(temporary.path());
        let output = program.arg("--further").arg(arguments.further.to_string()).stderr(Stdio::inherit()).output()?;
        let figures: Vec<f64> =
            String::from_utf8_lossy(&output.stdout).split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let &[seconds, cpu, peak, index] = figures.as_slice() else {
            return Err(format!("{name}: {}", output.status).into());
        };
        let times = unit.map_or_else(String::new, |unit| format!("{:.1}", seconds / unit));
        println!(
            "{name:<26} {seconds:>8.2} {:>8.1} {cpu:>8.1} {times:>9} {peak:>9.0} {:>6.1}%",
            size / 1e6 / seconds,
            index / size * 100.0
        );
    }
    process::run(events(&temporary.path().join("events")))??;
    Ok(ExitCode::SUCCESS)
}

fn rules_of_ours() -> usize {
    rules::declared().rule_set.map_or(0, |set| set.rules().len())
}

/// Seconds that the program needs to count the lines with a text; none if it is not there.
fn search(program: &str, folder: &Path) -> Option<f64> {
    let files = std::fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path());
    let begun = Instant::now();
    let status = Command::new(program).args(["-c", "powershell"]).args(files).stdout(Stdio::null()).status().ok()?;
    status.code().filter(|code| *code < 2).map(|_| begun.elapsed().as_secs_f64())
}

/// Prints seconds, seconds of CPU, megabytes of peak memory, and bytes of the index.
fn one(step: Step, folder: &Path, scratch: &Path, further: usize) -> Result<ExitCode> {
    let declared = match step {
        Step::Rules => rules::declared(),
        Step::Further => {
            Declared { rule_set: Some(rules::set(generate::rules::further(further))?), ..Declared::default() }
        }
        Step::Load | Step::First | Step::Again => Declared::default(),
    };
    let place = scratch.join(if step == Step::Again { Step::First.name() } else { step.name() });
    let meter = Meter::start();
    if matches!(step, Step::First | Step::Again) {
        let alert = scratch.join("alert.json");
        std::fs::write(&alert, mixed::ALERT)?;
        run::investigate_in(&alert, folder, &place)?;
    } else {
        Catalog::declared_in(folder, &place, None, &declared, &mut |_| {})?;
    }
    let taken = meter.stop(Taken::default());
    println!(
        "{} {} {} {}",
        taken.wall_micros as f64 / 1e6,
        taken.cpu_micros as f64 / 1e6,
        taken.peak_kib as f64 / 1024.0,
        measure::bytes_under(&place)
    );
    Ok(ExitCode::SUCCESS)
}

async fn events(folder: &Path) -> Result<()> {
    const EVENTS: u32 = 2000;
    const AT_ONCE: u32 = 16;
    let store: Arc<dyn Store> = Arc::new(SqliteStore::open(folder)?);
    let micros = |took: Duration, events: u32| took.as_secs_f64() * 1e6 / f64::from(events);
    let alone = append(Arc::clone(&store), "alone".into(), EVENTS).await?;
    let started = Instant::now();
    let many = (0..AT_ONCE).map(|n| tokio::spawn(append(Arc::clone(&store), format!("many-{n}"), EVENTS)));
    for one in many.collect::<Vec<_>>() {
        one.await??;
    }
    println!(
        "recorded event       {:>10.1} µs alone   {:.1} µs with {AT_ONCE} investigations at once, each event durable",
        micros(alone, EVENTS),
        micros(started.elapsed(), EVENTS * AT_ONCE)
    );
    Ok(())
}

async fn append(store: Arc<dyn Store>, name: String, events: u32) -> Result<Duration> {
    let id = InvestigationId::new(name)?;
    let started = Instant::now();
    let mut last: Option<Recorded> = None;
    for n in 0..events {
        let event = Event::BudgetNear { limit: format!("limit {n}") };
        let entry = Recorded::next(&id, last.as_ref(), Timestamp::now(), event);
        store.append(&id, u64::from(n), std::slice::from_ref(&entry)).await?;
        last = Some(entry);
    }
    Ok(started.elapsed())
}
