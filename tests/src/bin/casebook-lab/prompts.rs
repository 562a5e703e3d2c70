//! Measures the bytes of all prompts of investigations by length. Compares our prompts with the whole Journal
//! in every prompt, and with each agent's message history in place of the three channels. Prints a table for
//! docs/performance.md, and asserts nothing.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use casebook_evidence::Catalog;
use casebook_protocol::{Budget, Report, TaskKind, journal};
use casebook_tests::lab::{FORMS, Lab};
use casebook_tests::model::brain::Brain;
use casebook_tests::model::capture::Captured;
use casebook_tests::model::prompt;
use casebook_tests::{Result, run};
use clap::Args;
use serde_json::Value;

const EXPERTS: usize = 4;
/// The channels that message history replaces.
const CHANNELS: [&str; 3] = ["journal", "review", "timeline"];

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Rounds of each investigation
    #[arg(default_values_t = [5, 20, 50])]
    rounds: Vec<u32>,
    /// The Director writes its notes in a turn before its question
    #[arg(long)]
    two_turns: bool,
    /// Write the request bodies into this folder
    #[arg(long)]
    keep: Option<PathBuf>,
}

pub(super) fn run(Arguments { rounds, two_turns, keep }: &Arguments) -> Result<ExitCode> {
    let case = tempfile::tempdir()?;
    four_experts(case.path())?;
    println!("rounds  calls  tools   ours MB  by cache   whole Journal MB   history MB   (bytes of request bodies)");
    for form in [FORMS[0], FORMS[2]] {
        println!("{}, {}", form.0, form.1);
        for &rounds in rounds {
            let captured = line(case.path(), rounds, form, !two_turns)?;
            keep.as_deref().map_or(Ok(()), |folder| kept(folder, rounds, form, &captured))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn four_experts(folder: &Path) -> Result<()> {
    let demo = run::demo();
    let mut catalog = Catalog::open(&demo.join("evidence"), &folder.join("index.db"), &mut |_| {})?;
    if let Some(team) = run::team(&demo.join("evidence"))? {
        catalog.declare(&team.declared)?;
    }
    let mut domains: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for source in catalog.sources() {
        domains.entry(source.domain.to_string()).or_default().push(source.file.clone());
    }
    std::fs::create_dir_all(folder.join("evidence"))?;
    std::fs::copy(demo.join("alert.json"), folder.join("alert.json"))?;
    // The last four in alphabetical order: the first domain has no times.
    for file in domains.values().rev().take(EXPERTS).flatten() {
        std::fs::copy(demo.join("evidence").join(file), folder.join("evidence").join(file))?;
    }
    Ok(())
}

fn kept(folder: &Path, rounds: u32, form: (&str, &str), captured: &[Captured]) -> Result<()> {
    let folder = folder.join(format!("{rounds}-{}", form.0));
    std::fs::create_dir_all(&folder)?;
    for c in captured {
        let name = format!("{:04}-{}.json", c.number, c.kind.map_or("other", TaskKind::name));
        std::fs::write(folder.join(name), &c.request.bytes)?;
    }
    Ok(())
}

fn line(case: &Path, rounds: u32, form: (&str, &str), one_turn: bool) -> Result<Vec<Captured>> {
    let brain = Brain { rounds, expert_calls: 3, critic_calls: 4, journal: 4, one_turn, ..Brain::default() };
    let lab = Lab::start(brain, form)?;
    let report = lab.investigate(case, Budget { rounds: rounds + 2, ..Budget::default() })?;
    run::no_task_failed(&report)?;
    let captured = lab.server.log().captured();
    let counts = lab.server.log().counts();
    let ours: usize = captured.iter().map(|c| c.request.bytes.len()).sum();
    println!(
        "{rounds:>6} {:>6} {:>6} {:>9.2} {:>8.0}% {:>18.2} {:>12.2}",
        captured.len(),
        report.usage.total.tool_calls,
        ours as f64 / 1e6,
        counts.prompt.read as f64 / counts.prompt.input as f64 * 100.0,
        (ours + unfolded(&captured, &report)) as f64 / 1e6,
        history(&captured) as f64 / 1e6,
    );
    parts(&captured);
    results(&captured);
    Ok(captured)
}

/// The bytes of each part of the prompts of each kind, by turn.
fn parts(captured: &[Captured]) {
    let mut all: BTreeMap<(&str, usize), [usize; 6]> = BTreeMap::new();
    for c in captured {
        let request = &c.request;
        let sum = all.entry((c.kind.map_or("other", TaskKind::name), c.place.1 + 1)).or_default();
        let body: Value = serde_json::from_slice(&request.bytes).unwrap_or_default();
        let [system, sections] = [std::slice::from_ref(&request.system), request.task_parts()]
            .map(|texts| texts.iter().map(|text| Value::from(text.as_str()).to_string().len()).sum::<usize>());
        let tools = body.get("tools").map_or(0, |tools| tools.to_string().len());
        let form = request.format.as_ref().map_or(0, |(_, schema)| schema.to_string().len());
        let rest = request.bytes.len().saturating_sub(system + tools + form + sections);
        let of = [1, system, tools, form, sections, rest];
        sum.iter_mut().zip(of).for_each(|(sum, of)| *sum += of);
    }
    println!("       task         turn calls   system    tools     form sections     rest  (bytes of a call)");
    for ((kind, turn), [calls, parts @ ..]) in all {
        let [system, tools, form, sections, rest] = parts.map(|bytes| bytes / calls.max(1));
        println!("       {kind:<12} {turn:>4} {calls:>5} {system:>8} {tools:>8} {form:>8} {sections:>8} {rest:>8}");
    }
}

/// The bytes in request bodies of the evidence tools' results, as recorded and as shown.
fn results(captured: &[Captured]) {
    let mut seen = std::collections::BTreeMap::new();
    for shown in captured.iter().flat_map(|c| prompt::all_shown(&c.request)).filter(|one| !one.failed) {
        let Some(json) = shown.json().filter(|json| json.get("records").is_some()) else { continue };
        let body = |text: &str| serde_json::Value::from(text).to_string().len();
        let _ = seen.insert(shown.call.to_owned(), (body(&json.to_string()), body(shown.data)));
    }
    let (recorded, shown) = seen.values().fold((0, 0), |(a, b), (x, y)| (a + x, b + y));
    println!("       {} results with records: {recorded} bytes as JSON, {shown} as shown", seen.len());
}

fn unfolded(captured: &[Captured], report: &Report) -> usize {
    let mut whole = vec![0];
    for n in 1..=report.journal.len() {
        whole.push(journal::render(report.journal.get(..n).unwrap_or_default(), usize::MAX).len());
    }
    let added = captured.iter().filter_map(|c| {
        let sections = prompt::task_sections(&c.request);
        let (_, shown) = sections.iter().find(|(name, _)| *name == "journal")?;
        let entry = |line: &str| line.strip_prefix('#')?.split(' ').next()?.parse::<usize>().ok();
        let last = shown.lines().filter_map(entry).max().unwrap_or(0);
        Some(whole.get(last).copied().unwrap_or(0).saturating_sub(shown.len()))
    });
    added.sum()
}

/// The bytes if each agent carried its earlier messages forward instead of the channels.
fn history(captured: &[Captured]) -> usize {
    let agents = agents(captured);
    let mut carried: HashMap<&str, usize> = HashMap::new();
    let mut grown: HashMap<(u64, &str), usize> = HashMap::new();
    let mut total = 0;
    for (c, agent) in captured.iter().zip(&agents) {
        let sections = prompt::task_sections(&c.request);
        let channels: usize =
            sections.iter().filter(|(name, _)| CHANNELS.contains(name)).map(|(_, text)| text.len()).sum();
        let fixed = c.request.system.len()
            + c.request.tools.iter().map(|t| t.schema.to_string().len()).sum::<usize>()
            + c.request.format.as_ref().map_or(0, |(_, schema)| schema.to_string().len());
        let messages = c.request.bytes.len().saturating_sub(fixed + channels);
        let before = grown
            .entry((c.place.0, agent.as_str()))
            .or_insert_with(|| carried.get(agent.as_str()).copied().unwrap_or(0));
        total += fixed + messages + *before;
        // Later invocations carry the messages of this one.
        let now = *before + messages;
        let most = carried.entry(agent.as_str()).or_default();
        *most = (*most).max(now);
    }
    total
}

/// The agent of each request: a role, or an Expert by its domain.
fn agents(captured: &[Captured]) -> Vec<String> {
    let known: HashMap<u64, &str> =
        captured.iter().filter_map(|c| Some((c.place.0, c.task.as_deref()?.rsplit('.').next()?))).collect();
    let name = |c: &Captured| match c.kind {
        Some(TaskKind::Investigate) => known.get(&c.place.0).map_or("expert", |domain| domain).to_owned(),
        Some(TaskKind::Review | TaskKind::Timeline) => "critic".to_owned(),
        _ => "director".to_owned(),
    };
    captured.iter().map(name).collect()
}
