//! The state of the connection to the server. An outage is one line of the log, and so is its end.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use async_nats::{ClientError, Event, ServerError};

use super::outage::LOUD;
use super::{Refusals, advised};

const SILENT: &str =
    "the NATS server does not answer requests to JetStream; a cluster needs more than half of its servers";

#[derive(Debug, Default)]
struct State {
    known: bool,
    /// When the connection was lost.
    away: Option<Instant>,
    /// Why the server refuses us.
    refused: Option<String>,
    /// Since when the server does not answer requests, although we are connected.
    silent: Option<Instant>,
}

/// What an event means for people.
#[derive(Debug, PartialEq, Eq)]
enum News {
    First,
    Away,
    Refused(String),
    Back(Duration),
    Forbidden(String),
    Other(String),
    Nothing,
}

/// Clones share one state.
#[derive(Debug, Clone, Default)]
pub(crate) struct Link(Arc<Mutex<State>>);

impl Link {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Why the server does not work for us, with what to do; none if it does.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.trouble_at(Instant::now())
    }

    fn trouble_at(&self, now: Instant) -> Option<String> {
        let state = self.state();
        let silent = state.silent.is_some_and(|since| now.saturating_duration_since(since) >= LOUD);
        let silent = silent.then(|| SILENT.to_owned());
        state.refused.clone().or(silent.filter(|_| state.away.is_none()))
    }

    /// Notes whether the server answered a request.
    pub(crate) fn answered(&self, answered: bool) {
        self.answered_at(answered, Instant::now());
    }

    fn answered_at(&self, answered: bool, now: Instant) {
        let mut state = self.state();
        state.silent = if answered { None } else { state.silent.or(Some(now)) };
    }

    pub(crate) fn heard(&self, event: Event, refusals: &Refusals) {
        match self.news(event, Instant::now()) {
            News::First => tracing::info!("connected to NATS"),
            News::Away => tracing::warn!("no connection to the NATS server; work waits until it is back"),
            News::Refused(why) => tracing::error!(why, "the NATS server refuses this process; work waits"),
            News::Back(away) => tracing::info!(seconds = away.as_secs(), "connected to NATS again; work goes on"),
            News::Forbidden(text) => {
                tracing::error!(text, "the NATS server reports an error");
                refusals.note(text);
            }
            News::Other(event) => tracing::warn!(event, "NATS"),
            News::Nothing => {}
        }
    }

    fn news(&self, event: Event, now: Instant) -> News {
        let mut state = self.state();
        match event {
            Event::Connected => {
                state.refused = None;
                match (std::mem::replace(&mut state.known, true), state.away.take()) {
                    (true, Some(since)) => News::Back(now.saturating_duration_since(since)),
                    (true, None) => News::Nothing,
                    (false, _) => News::First,
                }
            }
            Event::Disconnected if state.away.is_some() => News::Nothing,
            Event::Disconnected => {
                state.away = Some(now);
                News::Away
            }
            Event::ServerError(error) if refusal(&error.to_string()) => state.refuse(&error.to_string()),
            Event::ServerError(ServerError::Other(text)) => News::Forbidden(text),
            Event::ClientError(ClientError::Other(text)) if refusal(&text) => state.refuse(&text),
            // Each attempt to connect again has one.
            Event::ClientError(_) if state.away.is_some() => News::Nothing,
            Event::Draining | Event::Closed => News::Nothing,
            event => News::Other(event.to_string()),
        }
    }
}

impl State {
    fn refuse(&mut self, words: &str) -> News {
        let why = advised(format!("the NATS server refuses the credentials ({})", words.trim_start_matches("nats: ")));
        let fresh = self.refused.is_none();
        self.refused = Some(why.clone());
        if fresh { News::Refused(why) } else { News::Nothing }
    }
}

/// Whether the words are about who we are, and not about one subject.
fn refusal(words: &str) -> bool {
    let words = words.to_lowercase();
    ["authorization violation", "authentication"].iter().any(|known| words.contains(known))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outage_is_told_once_and_its_end_once() {
        let (link, start) = (Link::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        let failed = |text: &str| Event::ClientError(ClientError::Other(text.into()));
        assert_eq!(link.news(Event::Connected, at(0)), News::First);
        assert_eq!(link.news(Event::Disconnected, at(1)), News::Away);
        for _ in 0..3 {
            assert_eq!(link.news(failed("IO error"), at(2)), News::Nothing);
            assert_eq!(link.news(Event::Disconnected, at(3)), News::Nothing);
        }
        assert_eq!(link.news(Event::Connected, at(9)), News::Back(Duration::from_secs(8)));
        let told = link.news(Event::ServerError(ServerError::Other("Permissions Violation for x".into())), at(9));
        assert_eq!(told, News::Forbidden("Permissions Violation for x".into()));
        assert_eq!(link.trouble(), None);
    }

    #[test]
    fn silent_server_is_trouble_after_five_seconds_until_it_answers() {
        let (link, start) = (Link::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        link.answered_at(false, at(0));
        link.answered_at(false, at(4));
        assert_eq!((link.trouble_at(at(4)), link.trouble_at(at(5))), (None, Some(SILENT.to_owned())));
        link.answered_at(true, at(6));
        assert_eq!(link.trouble_at(at(6)), None);
        link.answered_at(false, at(7));
        link.news(Event::Disconnected, at(8));
        assert_eq!(link.trouble_at(at(20)), None, "a lost connection has its own reason");
    }

    #[test]
    fn refused_password_is_known_until_a_connection_stands() {
        let (link, now) = (Link::default(), Instant::now());
        let refused = || Event::ClientError(ClientError::Other("authorization violation".into()));
        link.news(Event::Connected, now);
        link.news(Event::Disconnected, now);
        let News::Refused(why) = link.news(refused(), now) else { panic!("not a refusal") };
        assert!(why.contains("authorization violation") && why.contains("check that `credentials` names"), "{why}");
        assert_eq!(link.news(refused(), now), News::Nothing);
        assert_eq!(link.trouble(), Some(why));
        link.news(Event::Connected, now);
        assert_eq!(link.trouble(), None);
    }
}
