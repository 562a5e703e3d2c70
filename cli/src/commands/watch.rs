//! `casebook watch`

use std::collections::BTreeMap;
use std::path::Path;

use casebook_agent::bus::Message;
use casebook_agent::store::Store;
use casebook_hub::archive;
use casebook_protocol::{Event, InvestigationId, Recorded};

use crate::args::Watch;
use crate::failure::{Exit, Failure};
use crate::home::{Home, hub_failure, store_failure};
use crate::live::Teller;
use crate::render::words;
use crate::screen::{BOLD, DIM, Screen, of_verdict, paint, safe};
use crate::stop;

/// What a message on the events' subject always has, also when the event itself is too large for it.
#[derive(serde::Deserialize)]
struct Told {
    investigation: InvestigationId,
    seq: u64,
}

pub(super) async fn run(data: &Path, args: &Watch, screen: &mut Screen) -> Result<Exit, Failure> {
    let mut stop = stop::listen()?;
    let connection = args.nats.connect("reader").await?;
    let env = connection.env();
    // Heard first and read after: nothing falls between.
    let mut heard = env.bus.subscribe("casebook.events.>").await.map_err(|e| Failure::failed(e, ""))?;
    let home = Home { folder: data.to_path_buf(), store: env.store };
    let only = match &args.id {
        Some(text) => Some(home.find(text).await?),
        None => None,
    };
    let mut watch = Watched { json: args.json, only: only.clone(), open: BTreeMap::new() };
    if let Some(id) = &only
        && watch.catch_up(id, u64::MAX, home.store.as_ref(), screen).await?
    {
        return Ok(Exit::Done);
    }
    if only.is_none() && !args.json {
        screen.line(paint(DIM, format_args!("every investigation at {}, from now on", connection.url())));
    }
    loop {
        let message: Message = tokio::select! {
            () = stop.wait() => return Ok(Exit::Done),
            message = heard.next() => match message {
                Some(message) => message,
                None => return Err(Failure::failed("the connection is closed", "run the same command again")),
            },
        };
        let Ok(told) = serde_json::from_slice::<Told>(&message.bytes) else { continue };
        if only.as_ref().is_some_and(|id| *id != told.investigation) {
            continue;
        }
        let over = match serde_json::from_slice::<Recorded>(&message.bytes) {
            Ok(entry) if watch.is_next(&entry) => watch.show(&entry, home.store.as_ref(), screen).await?,
            _ => watch.catch_up(&told.investigation, told.seq, home.store.as_ref(), screen).await?,
        };
        if over && only.is_some() {
            return Ok(Exit::Done);
        }
    }
}

/// What is watched, and how far.
struct Watched {
    json: bool,
    only: Option<InvestigationId>,
    open: BTreeMap<InvestigationId, (u64, Teller)>,
}

impl Watched {
    fn is_next(&self, entry: &Recorded) -> bool {
        self.open.get(&entry.investigation).is_some_and(|(next, _)| *next == entry.seq)
            || (entry.seq == 1 && !self.open.contains_key(&entry.investigation))
    }

    /// Shows what the log has and was not shown, if it has as much as `seq`: what was missed, what is too
    /// large for a message, and the beginning. True when the investigation is over.
    async fn catch_up(
        &mut self,
        id: &InvestigationId,
        seq: u64,
        store: &dyn Store,
        screen: &mut Screen,
    ) -> Result<bool, Failure> {
        let next = self.open.get(id).map_or(1, |(next, _)| *next);
        if seq < next {
            return Ok(false);
        }
        let mut over = false;
        for entry in store.log(id, next).await.map_err(|e| store_failure(&e))? {
            over |= self.show(&entry, store, screen).await?;
        }
        Ok(over)
    }

    async fn show(&mut self, entry: &Recorded, store: &dyn Store, screen: &mut Screen) -> Result<bool, Failure> {
        let id = &entry.investigation;
        let (next, teller) = self.open.entry(id.clone()).or_insert_with(|| (1, Teller::new(false)));
        *next = entry.seq + 1;
        let over = matches!(entry.event, Event::Closed {});
        if self.json {
            screen.line(serde_json::to_string(entry).map_err(Failure::defect)?);
        } else {
            let prefix = match self.only {
                Some(_) => String::new(),
                None => format!("{} ", paint(DIM, id.as_str().get(..8).unwrap_or(id.as_str()))),
            };
            if let Event::Opened { alert, .. } = &entry.event {
                screen.line(format_args!("{prefix}{}", paint(BOLD, safe(&alert.title, 160))));
            }
            teller.tell(&entry.event).into_iter().for_each(|line| screen.line(format_args!("{prefix}{line}")));
            if over {
                let report = archive::report(store, id).await.map_err(|e| hub_failure(&e))?;
                let verdict = paint(of_verdict(report.verdict), words::verdict(report.verdict));
                screen.line(format_args!("{prefix}{verdict}  {}", safe(&report.summary, 400)));
            }
        }
        if over {
            self.open.remove(id);
        }
        Ok(over)
    }
}
