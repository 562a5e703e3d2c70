use std::path::Path;

use casebook_evidence::Source;

use crate::args::ListSources;
use crate::failure::{Exit, Failure};
use crate::progress::loaded;
use crate::screen::{BOLD, DIM, Screen, YELLOW, paint, safe};
use crate::stop;
use casebook_report::words;

pub(super) async fn run(data: &Path, args: &ListSources, screen: &mut Screen) -> Result<Exit, Failure> {
    let mut stop = stop::listen()?;
    let catalog = loaded(&args.evidence, data, None, &mut stop).await?;
    for source in catalog.sources() {
        describe(source, screen);
    }
    for skipped in catalog.skipped() {
        screen.line(paint(
            YELLOW,
            format_args!("{}: not used: {}", safe(&skipped.file, 120), safe(&skipped.reason, 200)),
        ));
    }
    Ok(Exit::Done)
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
            "    {}: {}; written by {}{}; {}{field}",
            source.domain,
            safe(&source.domain_reason, 160),
            safe(&source.sensor, 80),
            if source.written_on_subject_host { ", on the host that it describes" } else { "" },
            source.time_basis.meaning()
        ),
    ));
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
