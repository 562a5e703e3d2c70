//! Streams of server-sent events. A stream reads the log, and notices only wake it, so that nothing is lost or
//! doubled.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use casebook_protocol::{InvestigationId, Recorded};
use futures_util::stream::{self, Stream};
use serde_json::json;
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::broadcast::{self, error::RecvError};
use tokio::time::Instant;

use super::App;
use crate::cases::Notice;
use crate::problem::{Kind, Problem};

const BEAT: Duration = Duration::from_secs(15);
const AGAIN: Duration = Duration::from_millis(1000);
/// A browser needs several processes for each notice, and a fast investigation records hundreds of events a second.
const PACE: Duration = Duration::from_millis(50);

fn answer(stream: impl Stream<Item = Result<Event, Infallible>> + Send + 'static) -> Response {
    let mut response = Sse::new(stream).keep_alive(KeepAlive::new().interval(BEAT).text("beat")).into_response();
    response.headers_mut().insert("x-accel-buffering", axum::http::HeaderValue::from_static("no"));
    response
}

fn permit(app: &App) -> Result<OwnedSemaphorePermit, Problem> {
    let permit = Arc::clone(&app.streams).try_acquire_owned();
    permit.map_err(|_| Problem::new(Kind::TooMany, "too many open streams"))
}

struct All {
    notices: broadcast::Receiver<Notice>,
    /// The client may have missed something, as at the beginning.
    missed: bool,
    /// The last event of each investigation that the client has not heard of.
    changed: BTreeMap<InvestigationId, u64>,
    /// When the client may hear more.
    calm: Instant,
    _permit: OwnedSemaphorePermit,
}

impl All {
    async fn step(&mut self) -> Option<Event> {
        if self.changed.is_empty() && !self.missed {
            self.hear().await?;
            tokio::time::sleep_until(self.calm).await;
            while !self.notices.is_empty() {
                self.hear().await?;
            }
            self.calm = Instant::now() + PACE;
        }
        if std::mem::take(&mut self.missed) {
            self.changed.clear();
            return Some(Event::default().retry(AGAIN).event("begin").data("{}"));
        }
        let (investigation, seq) = self.changed.pop_first()?;
        Some(Event::default().event("notice").data(json!({"investigation": investigation, "seq": seq}).to_string()))
    }

    async fn hear(&mut self) -> Option<()> {
        match self.notices.recv().await {
            Ok(Notice { investigation, seq }) => drop(self.changed.insert(investigation, seq)),
            Err(RecvError::Lagged(_)) => self.missed = true,
            Err(RecvError::Closed) => return None,
        }
        Some(())
    }
}

/// Notices of all investigations. The first comes at once, and then one of each investigation in [`PACE`]. A listener
/// that reads the pages when the stream opens has missed nothing.
pub(super) fn all(app: &App) -> Result<Response, Problem> {
    let (notices, calm) = (app.notices.subscribe(), Instant::now());
    let state = All { notices, missed: true, changed: BTreeMap::new(), calm, _permit: permit(app)? };
    Ok(answer(stream::unfold(state, |mut all| async move { all.step().await.map(|event| (Ok(event), all)) })))
}

struct One {
    app: Arc<App>,
    id: InvestigationId,
    /// The next event that the client gets.
    next: u64,
    ready: std::vec::IntoIter<Recorded>,
    notices: broadcast::Receiver<Notice>,
    ended: bool,
    _permit: OwnedSemaphorePermit,
}

impl One {
    async fn step(&mut self) -> Option<Event> {
        loop {
            if let Some(entry) = self.ready.next() {
                self.next = entry.seq + 1;
                let data = serde_json::to_string(&entry).ok()?;
                return Some(Event::default().id(entry.seq.to_string()).event("event").retry(AGAIN).data(data));
            }
            if self.ended {
                return None;
            }
            let held = self.app.cases.read(&self.id).await.ok()?;
            let fresh: Vec<Recorded> = held.log.iter().filter(|entry| entry.seq >= self.next).cloned().collect();
            self.ended = held.state.closed.is_some();
            if fresh.is_empty() && !self.ended {
                self.wait().await?;
            }
            self.ready = fresh.into_iter();
        }
    }

    async fn wait(&mut self) -> Option<()> {
        loop {
            match self.notices.recv().await {
                Ok(notice) if notice.investigation != self.id => {}
                Ok(_) | Err(RecvError::Lagged(_)) => return Some(()),
                Err(RecvError::Closed) => return None,
            }
        }
    }
}

/// The events of an investigation from `from` on, first the recorded ones and then live. Ends after the last event of
/// a closed one.
pub(super) fn one(app: &Arc<App>, id: &InvestigationId, from: u64) -> Result<Response, Problem> {
    let state = One {
        // Subscribed before the log is read: what is recorded in between wakes it.
        notices: app.notices.subscribe(),
        app: Arc::clone(app),
        id: id.clone(),
        next: from,
        ready: Vec::new().into_iter(),
        ended: false,
        _permit: permit(app)?,
    };
    Ok(answer(stream::unfold(state, |mut one| async move { one.step().await.map(|event| (Ok(event), one)) })))
}
