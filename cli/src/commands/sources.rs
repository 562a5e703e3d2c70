use std::path::Path;

use casebook_evidence::{Declared, Source};

use crate::args::ListSources;
use crate::embedded;
use crate::failure::{Exit, Failure};
use crate::progress::loaded;
use crate::screen::{BOLD, DIM, Screen, YELLOW, paint, safe};
use crate::stop;
use casebook_report::words;

mod draft;

pub(super) async fn run(data: &Path, args: &ListSources, screen: &mut Screen) -> Result<Exit, Failure> {
    let mut stop = stop::listen()?;
    if let Some(file) = &args.write {
        draft::check(file, &args.evidence)?;
        let catalog = loaded(&args.evidence, data, None, &Declared::default(), &mut stop).await?;
        draft::write(file, &catalog)?;
        screen.line(format_args!(
            "{} drafts {}",
            file.display(),
            words::count(catalog.sources().len() as u64, "source")
        ));
        screen.line("check each entry, set confirmed = true, and keep the file in the team folder");
        return Ok(Exit::Done);
    }
    let declared = embedded::given(None, args.team.as_deref(), &[])?.declared();
    let catalog = loaded(&args.evidence, data, None, &declared, &mut stop).await?;
    for source in catalog.sources() {
        describe(source, screen);
    }
    for skipped in catalog.skipped() {
        screen.line(paint(
            YELLOW,
            format_args!(
                "{}: {}: {}",
                safe(&skipped.file, 120),
                if skipped.in_part { "used in part" } else { "not used" },
                safe(&skipped.reason, 200)
            ),
        ));
    }
    Ok(Exit::Done)
}

/// What wrote the source, and whether that is a guess.
fn written_by(source: &Source) -> String {
    let sensor = safe(&source.sensor, 80);
    match (source.confirmed, source.written_on_subject_host) {
        (true, true) => format!("written by {sensor}, on the host that it describes"),
        (true, false) => format!("written by {sensor}, not on the host that it describes"),
        (false, true) => format!("a guess: written by {sensor}, on the host that it describes"),
        (false, false) => format!(
            "a guess: written by {sensor}, not on the host that it describes; counts as written there until confirmed"
        ),
    }
}

fn describe(source: &Source, screen: &mut Screen) {
    let period = match (source.first_time, source.last_time) {
        (Some(first), Some(last)) => format!("{} to {}", screen.time(first), screen.time(last)),
        _ => "no times".to_owned(),
    };
    screen.line(format_args!(
        "{}  {}, {}, {period}",
        paint(BOLD, safe(&source.file, 120)),
        source.format.words(),
        words::count(source.records, "record")
    ));
    let field = source.time_field.as_ref().map_or_else(String::new, |f| format!(" from {}", safe(f, 60)));
    screen.line(paint(
        DIM,
        format_args!(
            "    {}: {}; {}; {}{field}",
            source.domain,
            safe(&source.domain_reason, 160),
            written_by(source),
            source.time_basis.meaning()
        ),
    ));
    if !source.acts.is_empty() {
        let acts: Vec<&str> = source.acts.iter().map(|act| act.name()).collect();
        screen.line(paint(DIM, format_args!("    records in full: {}", acts.join(", "))));
    }
    for (count, what) in
        [(source.malformed, "malformed"), (source.oversize, "oversize"), (source.untimed, "without a time")]
    {
        if count > 0 {
            screen.line(paint(YELLOW, format_args!("    {} {what}", words::count(count, "record"))));
        }
    }
    for note in &source.notes {
        screen.line(paint(YELLOW, format_args!("    {}", safe(note, 300))));
    }
}
