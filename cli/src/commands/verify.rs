use std::collections::BTreeSet;
use std::path::Path;

use casebook_evidence::Declared;
use casebook_hub::{Verification, archive, verify};
use casebook_protocol::RecordRef;
use casebook_protocol::report::ReportCitation;
use casebook_protocol::{Citation, FindingId, Report};

use crate::args::Verify;
use crate::failure::{Exit, Failure};
use crate::home::Home;
use crate::progress::loaded;
use crate::screen::{GREEN, RED, Screen, YELLOW, paint, safe};
use crate::stop;
use casebook_report::words;

/// Maximum number of files to name if the folder contains none of them.
const NAMED: usize = 3;

pub(super) async fn run(home: &Home, args: &Verify, screen: &mut Screen) -> Result<Exit, Failure> {
    let id = home.find(&args.id).await?;
    let found = verify::verify(home.store.as_ref(), &id).await?;
    let Verification { events, artifacts, findings, citations, .. } = found;
    let counted = [(events, "event"), (artifacts, "artifact"), (findings, "finding"), (citations, "citation")];
    let counted = counted.map(|(number, thing)| words::count(number, thing));
    screen.line(format_args!("{} checked", counted.join(", ")));
    let mut problems: Vec<String> = found
        .problems
        .iter()
        .map(|p| p.seq.map_or_else(|| p.what.clone(), |seq| format!("event {seq}: {}", p.what)))
        .collect();
    for foreign in &found.foreign {
        screen.line(paint(YELLOW, format_args!("  skipped: {}", safe(foreign, 400))));
    }
    match &args.evidence {
        Some(evidence) if problems.is_empty() => {
            let report = archive::report(home.store.as_ref(), &id).await?;
            problems.extend(against_files(&report, evidence, &home.folder, screen).await?);
        }
        _ => {}
    }
    for problem in &problems {
        screen.line(paint(RED, format_args!("  {}", safe(problem, 400))));
    }
    if problems.is_empty() {
        let report = if found.report { "" } else { " (no report is recorded yet)" };
        screen.line(format_args!("{}{report}", paint(GREEN, "everything is unchanged since it was recorded")));
        return Ok(Exit::Done);
    }
    screen.line(paint(
        RED,
        format_args!("{}: do not rely on this investigation", words::count(problems.len() as u64, "problem")),
    ));
    Ok(Exit::NotIntact)
}

/// Compares each quotation with the line of the file that it cites.
async fn against_files(
    report: &Report,
    evidence: &Path,
    data: &Path,
    screen: &mut Screen,
) -> Result<Vec<String>, Failure> {
    let mut stop = stop::listen()?;
    let catalog = loaded(evidence, data, None, &Declared::default(), &mut stop).await?;
    let cited: BTreeSet<&str> = quoted(report).map(|(_, _, record)| record.file.as_str()).collect();
    let there: BTreeSet<&str> = catalog.sources().iter().map(|source| source.file.as_str()).collect();
    if !cited.is_empty() && cited.is_disjoint(&there) {
        let some: Vec<&str> = cited.into_iter().take(NAMED).collect();
        return Err(Failure::usage(
            format!("{} contains none of the cited files, such as {}", evidence.display(), some.join(", ")),
            "name the folder that was investigated; `casebook list` shows it",
        ));
    }
    let mut problems = Vec::new();
    for (finding, cited, record) in quoted(report) {
        let why = match catalog.record(&record.file, record.line) {
            Ok(there) if contains(cited, &there) => continue,
            Ok(_) => "that line does not contain the quotation".to_owned(),
            Err(error) => error.to_string(),
        };
        problems.push(format!("{finding} cites {}:{}: {why}", record.file, record.line));
    }
    screen.line(format_args!(
        "{} compared with the files in {}",
        words::count(quoted(report).count() as u64, "cited record"),
        evidence.display()
    ));
    Ok(problems)
}

/// Each record of a file that a valid citation leads to, with its finding. Results of tools are not in a file;
/// they were compared with the recorded result.
fn quoted(report: &Report) -> impl Iterator<Item = (&FindingId, &ReportCitation, &RecordRef)> {
    report
        .findings
        .iter()
        .flat_map(|found| found.citations.iter().map(|cited| (&found.finding.id, cited)))
        .filter(|(_, cited)| cited.holds)
        .flat_map(|(finding, cited)| cited.records.iter().map(move |record| (finding, cited, record)))
        .filter(|(_, _, record)| record.artifact().is_none())
}

/// The quotation occurs in the raw record or in one of its fields.
fn contains(cited: &ReportCitation, record: &casebook_evidence::Record) -> bool {
    let Citation::Literal { quote, .. } = &cited.citation else { return true };
    let quote = squeezed(quote.strip_suffix('…').unwrap_or(quote));
    squeezed(&record.text()).contains(&quote)
        || record.fields().iter().any(|(_, value)| squeezed(value).contains(&quote))
}

fn squeezed(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
