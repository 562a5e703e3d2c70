use casebook_api::model::verified;
use casebook_hub::{Verification, verify};
use casebook_report::words::count;

use crate::args::Verify;
use crate::failure::{Exit, Failure};
use crate::home::Home;
use crate::screen::{GREEN, RED, Screen, YELLOW, paint, safe};

mod evidence;
mod kept;

/// What was compared, what was not, and what differs.
#[derive(Debug, Default)]
struct Told {
    checked: Vec<String>,
    unknown: Vec<String>,
    problems: Vec<String>,
}

pub(super) async fn run(home: &Home, args: &Verify, screen: &mut Screen) -> Result<Exit, Failure> {
    let id = home.find(&args.id).await?;
    // The files are read first: a wrong name should not wait for the store.
    let copy = args.report.as_deref().map(|file| kept::read(file, &id, args.public_key.as_deref())).transpose()?;
    let found = verify::verify(home.store.as_ref(), &id).await?;
    let mut told = Told {
        checked: verified::checked(&found),
        unknown: verified::unknown(&found),
        problems: verified::problems(&found),
    };
    match &copy {
        Some(copy) => copy.compare(&found, &mut told),
        None => told.unknown.push(
            "whether the log was written anew as a whole, or lost its last events together with the report: \
             give a report that was kept elsewhere (--report FILE)"
                .into(),
        ),
    }
    told.unknown
        .push("whether the evidence was changed before it was read, and whether a process that read it lied".into());
    match (&args.evidence, &found.built) {
        (Some(folder), Some(report)) => evidence::compare(report, folder, &home.folder, &mut told).await?,
        (Some(_), None) => told.unknown.push("whether the evidence is unchanged: the log is not intact".into()),
        (None, _) => told.unknown.push("whether the evidence is unchanged: name its folder (--evidence DIR)".into()),
    }
    Ok(show(&told, &found, screen))
}

fn show(told: &Told, found: &Verification, screen: &mut Screen) -> Exit {
    let intact = told.problems.is_empty();
    screen.line(if intact { "Checked:" } else { "Compared, with the differences below:" });
    told.checked.iter().for_each(|line| screen.line(format_args!("  {}", safe(line, 400))));
    screen.line("Not known:");
    told.unknown.iter().for_each(|line| screen.line(format_args!("  {}", safe(line, 400))));
    for foreign in &found.foreign {
        screen.line(paint(YELLOW, format_args!("  skipped: {}", safe(foreign, 400))));
    }
    if intact {
        let report = if found.report { "" } else { " (no report is recorded yet)" };
        screen.line(format_args!("{}{report}", paint(GREEN, "no difference was found")));
        return Exit::Done;
    }
    told.problems.iter().for_each(|problem| screen.line(paint(RED, format_args!("  {}", safe(problem, 400)))));
    let problems = count(told.problems.len() as u64, "problem");
    screen.line(paint(RED, format_args!("{problems}: do not rely on this investigation")));
    Exit::NotIntact
}
