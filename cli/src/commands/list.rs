use casebook_index::{Index, Page, Row, Wanted};
use casebook_protocol::Timestamp;

use super::investigate::quoted;
use crate::args::List;
use crate::failure::{Exit, Failure};
use crate::home::Home;
use crate::screen::{DIM, RED, Screen, YELLOW, of_verdict, paint, safe};
use casebook_report::words;

pub(super) async fn run(home: &Home, args: &List, screen: &mut Screen) -> Result<Exit, Failure> {
    let index = Index::open(&home.index_folder())?;
    index.catch_up(home.store.as_ref()).await?;
    let page = index.page(&wanted(args), Timestamp::now())?;
    if args.json {
        screen.line(serde_json::to_string_pretty(&page).map_err(Failure::defect)?);
        return Ok(Exit::Done);
    }
    if page.items.is_empty() {
        let all = index.counts()?.all;
        screen.line(match all {
            0 => format!("no investigations in {}", home.place()),
            _ => format!("none of {} matches", words::count(all, "investigation")),
        });
    }
    page.items.iter().for_each(|row| show(row, screen));
    if let Page { next: Some(next), .. } = &page {
        screen.line(paint(DIM, format_args!("there are more: add --cursor {next}")));
    }
    cluster(home, screen);
    Ok(Exit::Done)
}

fn wanted(args: &List) -> Wanted {
    Wanted {
        statuses: args.status.clone(),
        severities: args.severity.clone(),
        verdicts: args.verdict.clone(),
        source: args.source.clone(),
        search: args.search.clone(),
        opened_since: args.since,
        sort: args.sort,
        limit: args.limit,
        cursor: args.cursor.clone(),
        ..Wanted::default()
    }
}

fn show(row: &Row, screen: &mut Screen) {
    let opened = opened(row, screen);
    screen.line(format_args!("{}  {opened}  {}  {}", row.investigation, state(row), safe(&row.title, 100)));
    screen.line(paint(DIM, format_args!("    alert {}  evidence {}", safe(&alert(row), 80), evidence(row))));
    if let Some(trouble) = row.trouble.as_ref().or(row.not_investigated.as_ref()) {
        screen.line(format_args!("    {}", paint(RED, safe(trouble, 200))));
    }
}

fn cluster(home: &Home, screen: &mut Screen) {
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
}

fn evidence(row: &Row) -> String {
    if row.evidence.is_empty() { "with its Experts".to_owned() } else { safe(&row.evidence, 160) }
}

fn alert(row: &Row) -> String {
    row.alert.as_ref().map_or_else(|| "unknown".to_owned(), ToString::to_string)
}

fn opened(row: &Row, screen: &Screen) -> String {
    row.opened.map_or_else(|| " ".repeat("2026-01-01 00:00:00 UTC".len()), |at| screen.time(at))
}

fn state(row: &Row) -> String {
    match row.verdict {
        _ if row.trouble.is_some() => paint(RED, format_args!("{:<15}", "not intact")),
        Some(verdict) if row.closed.is_some() => {
            paint(of_verdict(verdict), format_args!("{:<15}", words::verdict(verdict)))
        }
        _ if row.not_investigated.is_some() => paint(RED, format_args!("{:<15}", "not investigated")),
        _ => paint(YELLOW, format_args!("{:<15}", format!("{} {}", row.phase.name(), row.round))),
    }
}
