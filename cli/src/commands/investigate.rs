//! `casebook investigate` and `casebook resume`

use std::collections::BTreeSet;
use std::io::Read;
use std::path::Path;

use casebook_evidence::Catalog;
use casebook_expert::team::Team;
use casebook_protocol::{Alert, InvestigationId, MAX_ALERT_BYTES, Recorded, Report};

use crate::args::{Investigate, Models, Resume};
use crate::embedded::{self, Begun, Observer, Options};
use crate::failure::{Exit, Failure};
use crate::home::Home;
use crate::live::{AgentLines, Summary, Teller};
use crate::loading::Loading;
use crate::models::Opened;
use crate::progress::Bar;
use crate::screen::{BOLD, DIM, Screen, YELLOW, paint, safe};
use crate::stop;
use casebook_report::words;

pub(super) async fn run(data: &Path, args: &Investigate, screen: &mut Screen) -> Result<Exit, Failure> {
    let alert = read_alert(&args.alert)?.1;
    let sources = args.sources.sources()?;
    let models = Opened::open(&args.models, sources.team.as_deref())?;
    let mut stop = stop::listen()?;
    let reasoners = models.reasoners.clone();
    let options = Options { alert, sources, data: data.to_path_buf(), budget: args.budget.budget(), reasoners };
    let mut watcher = Watcher::new(screen, args.verbose);
    let report = embedded::investigate(options, &mut watcher, &mut stop).await;
    watcher.end();
    let report = report.map_err(|failure| with_models(failure, &args.models, args.sources.team.as_deref()));
    conclude(report, args.out.as_deref(), data, &models, screen).await
}

/// What to type to go on needs the models, too: without them the built-in analyst would go on.
fn with_models(mut failure: Failure, models: &Models, team: Option<&Path>) -> Failure {
    if matches!(failure.exit, Exit::Unfinished | Exit::NotInvestigated) {
        let given = [
            ("--team", team),
            ("--models", models.models.as_deref()),
            ("--record", models.record.as_deref()),
            ("--replay", models.replay.as_deref()),
        ];
        for (option, path) in given {
            if let Some(path) = path {
                failure.advice.push_str(&format!(" {option} {}", quoted(&path.display().to_string())));
            }
        }
    }
    failure
}

pub(super) async fn resume(data: &Path, args: &Resume, screen: &mut Screen) -> Result<Exit, Failure> {
    let sources = args.sources.sources()?;
    let models = Opened::open(&args.models, sources.team.as_deref())?;
    let home = Home::existing(data)?;
    let id = home.find(&args.id).await?;
    let mut stop = stop::listen()?;
    let mut watcher = Watcher::new(screen, args.verbose);
    let report = embedded::resume(&home, &id, &sources, &models.reasoners, &mut watcher, &mut stop).await;
    watcher.end();
    let report = report.map_err(|failure| with_models(failure, &args.models, args.sources.team.as_deref()));
    conclude(report, args.out.as_deref(), data, &models, screen).await
}

/// The verdict, what it used, and where the report is.
async fn conclude(
    report: Result<Report, Failure>,
    out: Option<&Path>,
    data: &Path,
    models: &Opened,
    screen: &mut Screen,
) -> Result<Exit, Failure> {
    if matches!(&report, Err(failure) if failure.exit == Exit::NotInvestigated) {
        // A replay without the answers is the cause.
        models.replayed()?;
    }
    let report = &report?;
    super::show::conclusion(report, out, Home::reading(data)?.store.as_ref(), screen).await?;
    if out.is_none() {
        screen.line(format_args!(
            "{} casebook export {}{} --format html --output report.html",
            paint(BOLD, "Report"),
            report.investigation,
            data_option(data)
        ));
    }
    models.replayed()?;
    Ok(Exit::Done)
}

/// The option that leads to this data folder; nothing where it is found without.
pub fn data_option(data: &Path) -> String {
    let usual = std::env::var_os("CASEBOOK_DATA").map_or_else(|| Path::new(".casebook").to_path_buf(), Into::into);
    if data == usual { String::new() } else { format!(" --data {}", quoted(&data.display().to_string())) }
}

/// For a shell.
pub(crate) fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | '+' | ',' | ':' | '@' | '%');
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

/// Reads an alert from a file or, for `-`, from standard input; never more than one byte over what an
/// alert may have.
pub(super) fn read_alert(path: &Path) -> Result<(Vec<u8>, Alert), Failure> {
    const ADVICE: &str = "give one JSON object, the alert as the detection sent it";
    let mut bytes = Vec::new();
    let limit = MAX_ALERT_BYTES as u64 + 1;
    let (name, read) = if path == Path::new("-") {
        ("standard input".to_owned(), std::io::stdin().lock().take(limit).read_to_end(&mut bytes))
    } else {
        let read = std::fs::File::open(path).and_then(|file| file.take(limit).read_to_end(&mut bytes));
        (path.display().to_string(), read)
    };
    read.map_err(|e| Failure::usage(format!("cannot read the alert from {name}: {e}"), ADVICE))?;
    if bytes.len() > MAX_ALERT_BYTES {
        let what = format!("{name}: the alert is larger than {MAX_ALERT_BYTES} bytes");
        return Err(Failure::usage(what, "send the alert itself and leave the evidence in files"));
    }
    let alert = Alert::parse(&bytes).map_err(|e| Failure::usage(format!("{name}: {e}"), ADVICE))?;
    Ok((bytes, alert))
}

/// Shows an investigation as it happens.
pub(super) struct Watcher<'a> {
    screen: &'a mut Screen,
    bar: Bar,
    view: View,
    /// The round from which a past investigation is run again.
    again: Option<u32>,
}

enum View {
    /// Each step is a line.
    Steps(Teller),
    /// One line for each agent, if they can change in place, and one for each round.
    Summary(Summary, Option<AgentLines>),
}

impl<'a> Watcher<'a> {
    /// `verbose` counts: 0 shows agents and rounds, 1 each step, 2 every call of a tool or a model.
    pub(super) fn new(screen: &'a mut Screen, verbose: u8) -> Self {
        let view = match (verbose, AgentLines::stdout()) {
            (0, Some(lines)) => View::Summary(Summary::default(), Some(lines)),
            (0, None) => View::Summary(Summary::plain(), None),
            _ => View::Steps(Teller::new(verbose > 1)),
        };
        Self { screen, bar: Bar::stderr(), view, again: None }
    }

    /// One of a past investigation that is run again from `round`.
    pub(super) fn again(screen: &'a mut Screen, verbose: u8, round: u32) -> Self {
        Self { again: Some(round), ..Self::new(screen, verbose) }
    }

    /// Removes what changes in place.
    pub(super) fn end(&mut self) {
        self.bar.end();
        if let View::Summary(_, Some(lines)) = &mut self.view {
            lines.end();
        }
    }
}

impl Observer for Watcher<'_> {
    fn loading(&mut self, loading: &Loading) {
        self.bar.show(loading);
    }

    fn loaded(&mut self, catalog: &Catalog) {
        self.bar.end();
        loaded(catalog, self.screen);
    }

    fn gathered(&mut self, team: &Team) {
        self.bar.end();
        gathered(team, self.screen);
    }

    fn without_models(&mut self, played: &BTreeSet<String>) {
        if self.again.is_none() {
            let names = safe(&played.iter().map(String::as_str).collect::<Vec<_>>().join(", "), 200);
            let said = format!("so far {names} played; without --models FILE the built-in analyst goes on");
            self.screen.line(paint(YELLOW, said));
        }
    }

    fn begun(&mut self, id: &InvestigationId, how: Begun) {
        if let Some(round) = self.again {
            self.screen.line(paint(DIM, format_args!("investigation {id} again, from round {round}")));
            return;
        }
        match how {
            Begun::Fresh => self.screen.line(paint(DIM, format_args!("investigation {id}"))),
            Begun::Continued => self.screen.line(paint(
                YELLOW,
                format_args!(
                    "continues investigation {id}, which was stopped before its end, with the limits it began with"
                ),
            )),
        }
    }

    fn earlier(&mut self, entry: &Recorded) {
        match &mut self.view {
            View::Steps(teller) => drop(teller.tell(&entry.event)),
            View::Summary(summary, _) => drop(summary.take(&entry.event)),
        }
    }

    fn recorded(&mut self, entry: &Recorded) {
        let screen = &mut *self.screen;
        match &mut self.view {
            View::Steps(teller) => teller.tell(&entry.event).into_iter().for_each(|line| screen.line(line)),
            View::Summary(summary, None) => summary.take(&entry.event).into_iter().for_each(|line| screen.line(line)),
            View::Summary(summary, Some(lines)) => {
                let stay = summary.take(&entry.event);
                if !stay.is_empty() {
                    lines.above(|| stay.into_iter().for_each(|line| screen.line(line)));
                }
                lines.show(summary.agents());
            }
        }
    }
}

/// Says what is worth knowing of the Experts and their servers.
pub(super) fn gathered(team: &Team, screen: &mut Screen) {
    if let Some(server) = &team.evidence_server {
        let sources: usize = team.members.iter().map(|team_member| team_member.member.sources.len()).sum();
        screen.line(format_args!(
            "{}  {} from server {}",
            paint(BOLD, "Evidence"),
            words::count(sources as u64, "source"),
            safe(server, 80)
        ));
    }
    for notice in &team.notices {
        screen.line(paint(YELLOW, format_args!("  {}", safe(notice, 600))));
    }
}

/// Says what the evidence is, and what of it is not used or damaged.
pub(super) fn loaded(catalog: &Catalog, screen: &mut Screen) {
    let records: u64 = catalog.sources().iter().map(|s| s.records).sum();
    screen.line(format_args!(
        "{}  {}, {}",
        paint(BOLD, "Evidence"),
        words::count(catalog.sources().len() as u64, "source"),
        words::count(records, "record")
    ));
    for skipped in catalog.skipped() {
        screen.line(paint(
            YELLOW,
            format_args!(
                "  {} is {}: {}",
                safe(&skipped.file, 120),
                if skipped.in_part { "used in part" } else { "not used" },
                safe(&skipped.reason, 200)
            ),
        ));
    }
    let guessed = catalog.sources().iter().filter(|s| !s.confirmed).count();
    if guessed > 0 {
        screen.line(paint(
            YELLOW,
            format_args!(
                "  {guessed} of {} not confirmed in sources.toml: they count as written on the alerted host",
                words::count(catalog.sources().len() as u64, "source")
            ),
        ));
    }
    for source in catalog.sources().iter().filter(|s| s.malformed > 0) {
        screen.line(paint(
            YELLOW,
            format_args!(
                "  {}: {} of {} records are malformed; they are kept as text",
                safe(&source.file, 120),
                source.malformed,
                source.records
            ),
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_reaches_the_shell_as_it_is() {
        assert_eq!(quoted("/var/lib/casebook"), "/var/lib/casebook");
        assert_eq!(quoted("it's here"), r"'it'\''s here'");
        assert_eq!(quoted(""), "''");
    }
}
