//! What a request asks for, read.

use std::collections::HashMap;
use std::sync::Arc;

use axum::http::Uri;
use axum::http::header::HeaderMap;
use casebook_hub::{State, archive, report};
use casebook_protocol::{InvestigationId, Recorded, Report};
use casebook_trust::Backing;

use super::{App, answer, guard};
use crate::cases::{Held, Trouble};
use crate::model::row::Row;
use crate::model::zone::Zone;
use crate::pages::case::Case;
use crate::pages::frame::{Frame, Theme};
use crate::problem::{Kind, Problem};

pub(super) type Query = HashMap<String, String>;

pub(super) fn frame(app: &App, headers: &HeaderMap, uri: &Uri, query: &Query) -> Frame {
    let cookie = |name: &str| guard::cookie(headers, name);
    let zone = query.get("tz").cloned().or_else(|| cookie("casebook_zone").map(|zone| zone.replace(':', "/")));
    Frame {
        theme: cookie("casebook_theme").map(|name| Theme::named(&name)).unwrap_or_default(),
        zone: zone.and_then(|name| Zone::named(&name)).unwrap_or_default(),
        keys: cookie("casebook_keys").is_none_or(|keys| keys != "off"),
        now: app.clock.now(),
        here: uri.path_and_query().map(|all| all.as_str().to_owned()).unwrap_or_else(|| "/".into()),
        investigates: app.investigates(),
        build: answer::build(),
    }
}

pub(super) fn number(query: &Query, name: &str) -> Result<Option<u64>, Problem> {
    let Some(text) = query.get(name).filter(|text| !text.is_empty()) else { return Ok(None) };
    let unreadable = |_| Problem::new(Kind::Unreadable, format!("expected a whole number in {name}"));
    text.parse().map(Some).map_err(unreadable)
}

pub(super) fn id(text: &str) -> Result<InvestigationId, Problem> {
    InvestigationId::new(text).map_err(|_| Problem::new(Kind::NotFound, "this is not the id of an investigation"))
}

/// An investigation at a moment.
pub(super) struct Moment {
    pub id: InvestigationId,
    pub whole: Arc<Held>,
    /// The state at the moment, if that is in the past.
    past: Option<State>,
    pub at: Option<u64>,
    pub report: Report,
    pub row: Row,
}

impl Moment {
    pub(super) fn log(&self) -> &[Recorded] {
        self.at.map_or(&self.whole.log, |at| self.whole.until(at))
    }

    pub(super) fn state(&self) -> &State {
        self.past.as_ref().unwrap_or(&self.whole.state)
    }

    /// The hash of the last event that it rests on.
    pub(super) fn tag(&self) -> String {
        self.state().last.as_ref().map(|(_, hash)| hash.clone()).unwrap_or_default()
    }

    pub(super) async fn backed(&self, app: &App, backing: Backing) -> Result<Backing, Trouble> {
        Ok(archive::backed(app.cases.store(), &self.report, backing).await?)
    }

    pub(super) fn case<'a>(&'a self, frame: &'a Frame) -> Case<'a> {
        let (last, present) = (self.whole.state.last_seq(), self.at.map(|_| &self.whole.state));
        let case = Case::new(frame, self.log(), self.state(), &self.report, &self.row);
        Case { last, at: self.at, present, ..case }
    }
}

/// # Errors
/// The investigation does not exist, or it has no event `at`.
pub(super) async fn moment(app: &App, id: InvestigationId, at: Option<u64>) -> Result<Moment, Problem> {
    let whole = app.cases.read(&id).await?;
    let last = whole.state.last_seq();
    let at = at.filter(|at| *at < last);
    if at == Some(0) {
        return Err(Problem::new(Kind::Unreadable, "events are counted from 1"));
    }
    let past = at.map(|at| State::replay(whole.until(at)));
    let state = past.as_ref().unwrap_or(&whole.state);
    let report = report::build(state).ok_or_else(|| Trouble::Unknown(id.to_string()))?;
    let row = Row::of(&id, state);
    Ok(Moment { id, past, at, report, row, whole })
}
