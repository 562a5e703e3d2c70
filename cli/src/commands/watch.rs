//! `casebook watch`

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use casebook_hub::archive;
use casebook_protocol::{Event, InvestigationId, Recorded};
use casebook_runtime::bus::{Message, Subscription};
use casebook_runtime::nats::{Connection, Refusals};
use casebook_runtime::store::Store;

use crate::args::Watch;
use crate::failure::{Exit, Failure};
use crate::home::{Home, hub_failure, store_failure};
use crate::live::Teller;
use crate::screen::{BOLD, DIM, Screen, of_verdict, paint, safe};
use crate::stop::{self, Stop};
use casebook_report::words;

/// The events of all investigations.
const EVENTS: &str = "casebook.events.>";
/// After so much silence the log is looked at.
const SILENCE: Duration = Duration::from_secs(3);

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
    let mut heard = env.bus.subscribe(EVENTS).await.map_err(|e| Failure::failed(e, ""))?;
    let home = Home { folder: data.to_path_buf(), store: env.store };
    let only = match &args.id {
        Some(text) => Some(home.find(text).await?),
        None => None,
    };
    let refusals = connection.refusals().clone();
    let mut watch = Watched { json: args.json, only: only.clone(), open: BTreeMap::new(), verdict: true, refusals };
    if let Some(id) = &only
        && watch.catch_up(id, u64::MAX, home.store.as_ref(), screen).await?
    {
        return Ok(Exit::Done);
    }
    if only.is_none() && !args.json {
        screen.line(paint(DIM, format_args!("every investigation at {}, from now on", connection.url())));
    }
    watch.listen(heard.as_mut(), home.store.as_ref(), screen, &mut stop).await
}

/// Watches one investigation, which may only just have been asked for, to its end.
pub(super) async fn follow(
    connection: &Connection,
    id: &InvestigationId,
    screen: &mut Screen,
    stop: &mut Stop,
) -> Result<Exit, Failure> {
    let env = connection.env();
    let mut heard = env.bus.subscribe(EVENTS).await.map_err(|e| Failure::failed(e, ""))?;
    let refusals = connection.refusals().clone();
    let only = Some(id.clone());
    let mut watch = Watched { json: false, only, open: BTreeMap::new(), verdict: false, refusals };
    if watch.catch_up(id, u64::MAX, env.store.as_ref(), screen).await? {
        return Ok(Exit::Done);
    }
    watch.listen(heard.as_mut(), env.store.as_ref(), screen, stop).await
}

/// What is watched, and how far.
struct Watched {
    json: bool,
    only: Option<InvestigationId>,
    /// The end of an investigation is told with its verdict.
    verdict: bool,
    /// Whoever may not listen hears nothing, and would wait for ever.
    refusals: Refusals,
    open: BTreeMap<InvestigationId, (u64, Teller)>,
}

impl Watched {
    fn is_next(&self, entry: &Recorded) -> bool {
        self.open.get(&entry.investigation).is_some_and(|(next, _)| *next == entry.seq)
            || (entry.seq == 1 && !self.open.contains_key(&entry.investigation))
    }

    /// Shows what is heard until the one investigation is over or someone asks to stop.
    async fn listen(
        &mut self,
        heard: &mut dyn Subscription,
        store: &dyn Store,
        screen: &mut Screen,
        stop: &mut Stop,
    ) -> Result<Exit, Failure> {
        loop {
            let message = tokio::select! {
                () = stop.wait() => return Ok(Exit::Done),
                message = tokio::time::timeout(SILENCE, heard.next()) => message,
            };
            if let (Err(_), Some(refused)) = (&message, self.refusals.of(EVENTS)) {
                return Err(Failure::failed(refused, "name the credentials of a user who may listen: `reader`"));
            }
            let message: Message = match (message, self.only.clone()) {
                (Ok(Some(message)), _) => message,
                (Ok(None), _) => return Err(Failure::failed("the connection is closed", "run the same command again")),
                // A message may be lost, and the last one is followed by no other.
                (Err(_), Some(id)) => {
                    if self.catch_up(&id, u64::MAX, store, screen).await? {
                        return Ok(Exit::Done);
                    }
                    continue;
                }
                (Err(_), None) => continue,
            };
            let Ok(told) = serde_json::from_slice::<Told>(&message.bytes) else { continue };
            if self.only.as_ref().is_some_and(|id| *id != told.investigation) {
                continue;
            }
            let over = match serde_json::from_slice::<Recorded>(&message.bytes) {
                Ok(entry) if self.is_next(&entry) => self.show(&entry, store, screen).await?,
                _ => self.catch_up(&told.investigation, told.seq, store, screen).await?,
            };
            if over && self.only.is_some() {
                return Ok(Exit::Done);
            }
        }
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
            if over && self.verdict {
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
