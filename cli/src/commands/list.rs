use casebook_hub::Summary;
use casebook_hub::archive;

use super::investigate::quoted;
use crate::failure::{Exit, Failure};
use crate::home::Home;
use crate::screen::{DIM, RED, Screen, YELLOW, of_verdict, paint, safe};
use casebook_report::words;

pub(super) async fn run(home: &Home, screen: &mut Screen) -> Result<Exit, Failure> {
    let all = archive::summaries(home.store.as_ref()).await?;
    if all.is_empty() {
        screen.line(format_args!("no investigations in {}", home.place()));
    }
    for summary in &all {
        let opened = opened(summary, screen);
        screen.line(format_args!(
            "{}  {opened}  {}  {}",
            summary.investigation,
            state(summary),
            safe(&summary.title, 100)
        ));
        screen
            .line(paint(DIM, format_args!("    alert {}  evidence {}", safe(&alert(summary), 80), evidence(summary))));
        if let Some(trouble) = &summary.trouble {
            screen.line(format_args!("    {}", paint(RED, safe(trouble, 200))));
        }
    }
    let reader = home.folder.join("cluster/users/reader");
    if home.is_local() && reader.exists() {
        screen.line(paint(
            DIM,
            format_args!(
                "the server of `casebook cluster` stores its investigations; while it runs, list them with `casebook list --nats \
                 URL --credentials {}`",
                quoted(&reader.display().to_string())
            ),
        ));
    }
    Ok(Exit::Done)
}

fn evidence(summary: &Summary) -> String {
    if summary.evidence.is_empty() { "with its Experts".to_owned() } else { safe(&summary.evidence, 160) }
}

fn alert(summary: &Summary) -> String {
    summary.alert.as_ref().map_or_else(|| "unknown".to_owned(), ToString::to_string)
}

fn opened(summary: &Summary, screen: &Screen) -> String {
    summary.opened.map_or_else(|| " ".repeat("2026-01-01 00:00:00 UTC".len()), |at| screen.time(at))
}

fn state(summary: &Summary) -> String {
    match summary.verdict {
        Some(verdict) if summary.closed.is_some() => {
            paint(of_verdict(verdict), format_args!("{:<15}", words::verdict(verdict)))
        }
        _ if summary.trouble.is_some() => paint(RED, format_args!("{:<15}", "not intact")),
        _ => paint(YELLOW, format_args!("{:<15}", format!("{} {}", summary.phase.name(), summary.round))),
    }
}
