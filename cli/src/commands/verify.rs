//! `casebook verify`

use std::path::Path;

use casebook_hub::{Verification, archive, verify};
use casebook_protocol::{Citation, Report, report::ReportCitation};

use crate::args::Verify;
use crate::failure::{Exit, Failure};
use crate::home::hub_failure;
use crate::loading::load;
use crate::progress::Bar;
use crate::screen::{GREEN, RED, Screen, paint, safe};
use crate::stop;

pub(super) async fn run(data: &Path, args: &Verify, screen: &mut Screen) -> Result<Exit, Failure> {
    let home = args.nats.home(data).await?;
    let id = home.find(&args.id).await?;
    let found = verify::verify(home.store.as_ref(), &id).await.map_err(|e| hub_failure(&e))?;
    let Verification { events, artifacts, findings, citations, .. } = found;
    screen.line(format_args!(
        "{events} events, {artifacts} artifacts, {findings} findings, {citations} citations checked"
    ));
    let mut problems: Vec<String> = found
        .problems
        .iter()
        .map(|p| p.seq.map_or_else(|| p.what.clone(), |seq| format!("event {seq}: {}", p.what)))
        .collect();
    match &args.evidence {
        Some(evidence) if problems.is_empty() => {
            let report = archive::report(home.store.as_ref(), &id).await.map_err(|e| hub_failure(&e))?;
            problems.extend(against_files(&report, evidence, data, screen).await?);
        }
        _ => {}
    }
    for problem in &problems {
        screen.line(paint(RED, format_args!("  {}", safe(problem, 400))));
    }
    if problems.is_empty() {
        let report = if found.report { "" } else { " (no report is recorded yet)" };
        screen.line(format_args!("{}{report}", paint(GREEN, "everything is as it was recorded")));
        return Ok(Exit::Done);
    }
    screen.line(paint(RED, format_args!("{} problems: do not rely on this investigation", problems.len())));
    Ok(Exit::NotIntact)
}

/// Each quotation with the line of the file that it was taken from.
async fn against_files(
    report: &Report,
    evidence: &Path,
    data: &Path,
    screen: &mut Screen,
) -> Result<Vec<String>, Failure> {
    let mut stop = stop::listen()?;
    let mut bar = Bar::stderr();
    let catalog = load(evidence, data, &mut stop, &mut |loading| bar.show(loading)).await;
    bar.end();
    let catalog = catalog?;
    let (mut compared, mut problems) = (0, Vec::new());
    for found in &report.findings {
        for cited in found.citations.iter().filter(|c| c.holds) {
            for record in &cited.records {
                compared += 1;
                let why = match catalog.record(&record.file, record.line) {
                    Ok(there) => {
                        (!stands(cited, &there)).then(|| "what is quoted does not stand in that line".to_owned())
                    }
                    Err(error) => Some(error.to_string()),
                };
                problems.extend(
                    why.map(|why| format!("{} cites {}:{}: {why}", found.finding.id, record.file, record.line)),
                );
            }
        }
    }
    screen.line(format_args!("{compared} cited records compared with the files in {}", evidence.display()));
    Ok(problems)
}

/// The quotation stands in the record as it is written, or in one of its fields as it is read.
fn stands(cited: &ReportCitation, record: &casebook_expert::evidence::Record) -> bool {
    let Citation::Literal { quote, .. } = &cited.citation else { return true };
    let quote = squeezed(quote.strip_suffix('…').unwrap_or(quote));
    squeezed(&record.text()).contains(&quote)
        || record.fields().iter().any(|(_, value)| squeezed(value).contains(&quote))
}

fn squeezed(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
