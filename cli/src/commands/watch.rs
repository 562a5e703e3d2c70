//! `casebook watch`

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use casebook_hub::{HubError, archive};
use casebook_protocol::{Event, InvestigationId, Recorded};
use casebook_runtime::bus::{Message, Subscription};
use casebook_runtime::nats::{Connection, Refusals};
use casebook_runtime::store::{News, Store, StoreError};

use crate::args::Watch;
use crate::failure::{Exit, Failure};
use crate::home::{self, Home};
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
struct EventLabel {
    investigation: InvestigationId,
    seq: u64,
}

pub(super) async fn run(data: &Path, args: &Watch, screen: &mut Screen) -> Result<Exit, Failure> {
    let mut stop = stop::listen()?;
    let (mut watch, place) = match args.nats.nats.is_some() {
        true => {
            let connection = args.nats.connect("reader").await?;
            (Watched::at(&connection).await?, connection.url().to_owned())
        }
        false => (Watched::folder(&Home::reading(data)?).await?, data.display().to_string()),
    };
    watch.json = args.json;
    match &args.id {
        Some(text) => watch.only = Some(home::find(watch.store.as_ref(), text).await?),
        None if !args.json => {
            screen.line(paint(DIM, format_args!("every investigation at {place}, from now on")));
        }
        None => {}
    }
    watch.listen(screen, &mut stop).await
}

/// Watches one investigation, which may only just have been asked for, to its end. Fails if no model answers from now
/// on, though the team tries again.
pub(super) async fn follow(
    connection: &Connection,
    id: &InvestigationId,
    screen: &mut Screen,
    stop: &mut Stop,
) -> Result<Exit, Failure> {
    let watch = Watched::at(connection).await?;
    let known = watch.store.log(id, 1).await?.len() as u64;
    Watched { only: Some(id.clone()), verdict: false, known: Some(known), ..watch }.listen(screen, stop).await
}

/// The feed of a store as messages.
struct Fed {
    store: Arc<dyn Store>,
    news: Box<dyn News>,
    position: u64,
    waiting: VecDeque<Message>,
}

impl Fed {
    async fn from_now(store: Arc<dyn Store>) -> Result<Self, StoreError> {
        let news = store.news().await?;
        let position = store.end().await?;
        Ok(Self { store, news, position, waiting: VecDeque::new() })
    }

    async fn more(&mut self) -> Result<(), StoreError> {
        let feed = self.store.feed(self.position).await?;
        let entries = feed.appended.into_iter().filter_map(|one| one.entries.ok()).flatten();
        self.waiting.extend(entries.filter_map(|entry| {
            let bytes = serde_json::to_vec(&entry).ok()?;
            Some(Message { subject: format!("casebook.events.{}", entry.investigation), bytes })
        }));
        self.position = feed.position;
        Ok(())
    }
}

#[async_trait]
impl Subscription for Fed {
    async fn next(&mut self) -> Option<Message> {
        loop {
            if let Some(message) = self.waiting.pop_front() {
                return Some(message);
            }
            let before = self.position;
            let read = match self.more().await {
                Ok(()) if self.position == before => self.news.wait().await,
                read => read,
            };
            if let Err(error) = read {
                tracing::warn!(%error, "cannot watch the data folder any longer");
                return None;
            }
        }
    }
}

/// What is watched, and how far.
struct Watched {
    store: Arc<dyn Store>,
    heard: Box<dyn Subscription>,
    /// A user who may not listen hears nothing, and would wait without end.
    refusals: Refusals,
    json: bool,
    only: Option<InvestigationId>,
    /// The verdict is shown at the end of an investigation.
    verdict: bool,
    /// A pause after so many events ends the watch; none never does.
    known: Option<u64>,
    open: BTreeMap<InvestigationId, (u64, Teller)>,
}

impl Watched {
    /// Listens from now on. The log is read after that, so that no event falls between.
    async fn at(connection: &Connection) -> Result<Self, Failure> {
        let env = connection.env();
        let heard = env.bus.subscribe(EVENTS).await.map_err(|e| Failure::failed(e, ""))?;
        let (refusals, open) = (connection.refusals().clone(), BTreeMap::new());
        Ok(Self { store: env.store, heard, refusals, json: false, only: None, verdict: true, known: None, open })
    }

    /// Watches what another process writes into a data folder.
    async fn folder(home: &Home) -> Result<Self, Failure> {
        let store = Arc::clone(&home.store);
        let heard = Box::new(Fed::from_now(Arc::clone(&store)).await?);
        let (refusals, open) = (Refusals::default(), BTreeMap::new());
        Ok(Self { store, heard, refusals, json: false, only: None, verdict: true, known: None, open })
    }

    fn is_next(&self, entry: &Recorded) -> bool {
        self.open.get(&entry.investigation).is_some_and(|(next, _)| *next == entry.seq)
            || (entry.seq == 1 && !self.open.contains_key(&entry.investigation))
    }

    /// Shows what is recorded and what is heard until the one investigation is over or a person asks to stop.
    async fn listen(&mut self, screen: &mut Screen, stop: &mut Stop) -> Result<Exit, Failure> {
        let mut message = None;
        loop {
            let over = match (message, self.only.clone()) {
                (Some(message), _) => self.take(&message, screen).await?,
                // A message may be lost, and the last one is followed by no other.
                (None, Some(id)) => self.catch_up(&id, u64::MAX, screen).await?,
                (None, None) => false,
            };
            if over && self.only.is_some() {
                return Ok(Exit::Done);
            }
            let heard = tokio::select! {
                () = stop.wait() => return Ok(Exit::Done),
                heard = tokio::time::timeout(SILENCE, self.heard.next()) => heard,
            };
            if let (Err(_), Some(refused)) = (&heard, self.refusals.of(EVENTS)) {
                return Err(Failure::failed(refused, "name the credentials of a user who may listen: `reader`"));
            }
            message = match heard {
                Ok(None) => {
                    return Err(Failure::failed("the source of events has ended", "run the same command again"));
                }
                Ok(Some(message)) => Some(message),
                Err(_) => None,
            };
        }
    }

    /// Shows the event of a message. True when its investigation is over.
    async fn take(&mut self, message: &Message, screen: &mut Screen) -> Result<bool, Failure> {
        let Ok(told) = serde_json::from_slice::<EventLabel>(&message.bytes) else { return Ok(false) };
        if self.only.as_ref().is_some_and(|id| *id != told.investigation) {
            return Ok(false);
        }
        match serde_json::from_slice::<Recorded>(&message.bytes) {
            Ok(entry) if self.is_next(&entry) => self.show(&entry, screen).await,
            _ => self.catch_up(&told.investigation, told.seq, screen).await,
        }
    }

    /// Shows what the log has and was not shown, if it has as much as `seq`: what was missed, what is too
    /// large for a message, and the beginning. True when the investigation is over.
    async fn catch_up(&mut self, id: &InvestigationId, seq: u64, screen: &mut Screen) -> Result<bool, Failure> {
        let next = self.open.get(id).map_or(1, |(next, _)| *next);
        if seq < next {
            return Ok(false);
        }
        let mut over = false;
        for entry in self.store.log(id, next).await? {
            over |= self.show(&entry, screen).await?;
        }
        Ok(over)
    }

    async fn show(&mut self, entry: &Recorded, screen: &mut Screen) -> Result<bool, Failure> {
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
                let report = archive::report(self.store.as_ref(), id).await?;
                let verdict = paint(of_verdict(report.verdict), words::verdict(report.verdict));
                screen.line(format_args!("{prefix}{verdict}  {}", safe(&report.summary, 400)));
            }
        }
        if let (Event::NotInvestigated { reason }, Some(known)) = (&entry.event, self.known)
            && entry.seq > known
        {
            let (investigation, reason) = (id.clone(), reason.clone());
            let error = HubError::NotInvestigated { investigation, reason, rounds: 1 };
            return Err(Failure::not_investigated(error, "the same command"));
        }
        if over {
            self.open.remove(id);
        }
        Ok(over)
    }
}
