//! Backtests: a finished investigation is repeated, and what differs is shown. Pages and API use the same functions.

use std::sync::Arc;

use axum::Form;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use casebook_report::compare;
use serde::Deserialize;
use serde_json::{Value, json};

use super::api::{self, Call};
use super::pages::{self, Asked};
use super::read::{self, Moment};
use super::{App, answer};
use crate::model::limits::number;
use crate::pages::backtest as page;
use crate::pages::compare::Side;
use crate::problem::{Kind, Problem};
use crate::team::{Backtest, Outcome, Refused, Repeat};

/// The fields of a request.
const FIELDS: [&str; 3] = ["investigation", "from_round", "model"];
const MOST: usize = 4096;

#[derive(Deserialize)]
pub(super) struct Wanted {
    investigation: String,
    #[serde(default)]
    from_round: String,
    #[serde(default)]
    model: String,
}

/// Begins a backtest of a closed investigation, and gives its number.
async fn open(app: &App, id: &str, from_round: u32, model: Option<String>) -> Result<u64, Problem> {
    let moment = read::moment(app, read::id(id)?, None).await?;
    let Some(team) = app.team.as_ref().filter(|_| app.investigates()) else {
        return Err(Problem::new(Kind::NoTeam, "this server has no evidence to repeat an investigation with"));
    };
    if moment.row.closed.is_none() {
        return Err(Problem::new(Kind::NotClosed, "only a closed investigation can be repeated"));
    }
    let rounds = moment.row.round;
    if rounds == 0 {
        return Err(Problem::new(Kind::NotFound, "it has no round to repeat: it ended before the first"));
    }
    if !(1..=rounds).contains(&from_round) {
        return Err(Problem::new(
            Kind::NotFound,
            format!("it has no round {from_round}: its rounds are 1 to {rounds}"),
        ));
    }
    let models = team.models();
    if let Some(name) = model.as_ref().filter(|name| !models.contains(name)) {
        return Err(Problem::new(
            Kind::NotFound,
            format!("no model has the name {name:?}; known: {}", models.join(", ")),
        ));
    }
    tracing::info!(investigation = %moment.id, from_round, model, "backtest from a page or the API");
    let repeat = Repeat { investigation: moment.id, from_round, model };
    team.repeat(repeat).await.map_err(|refused| match refused {
        Refused::TooMany => Problem::new(Kind::TooMany, "two backtests are running; wait until one ends"),
        Refused::Unusable(why) => Problem::new(Kind::Invalid, why),
        Refused::Stopping => Problem::new(Kind::Slow, "the server is stopping"),
    })
}

fn known(app: &App) -> Vec<Backtest> {
    app.team.as_ref().map(|team| team.backtests()).unwrap_or_default()
}

fn found(app: &App, n: &str) -> Result<Backtest, Problem> {
    let n: Option<u64> = n.parse().ok();
    let found = known(app).into_iter().find(|one| Some(one.n) == n);
    found.ok_or_else(|| Problem::new(Kind::NotFound, "no backtest has this number; a restart forgets them"))
}

/// `then` is the investigation that it repeats; without it the comparison is left out.
fn body(one: &Backtest, then: Option<&Moment>) -> Value {
    let Backtest { n, repeat, round, events, outcome } = one;
    let (state, why) = match outcome {
        Outcome::Running => ("running", None),
        Outcome::Done(_) => ("done", None),
        Outcome::Failed(why) => ("failed", Some(why)),
    };
    let comparison = match (then, outcome) {
        (Some(then), Outcome::Done(now)) => Some(compare::json(&then.report, now, repeat.from_round)),
        _ => None,
    };
    json!({"n": n, "investigation": repeat.investigation, "from_round": repeat.from_round, "model": repeat.model,
        "state": state, "round": round, "events": events, "why": why, "comparison": comparison})
}

pub(super) fn all(app: &App) -> Response {
    let items: Vec<Value> = known(app).iter().map(|one| body(one, None)).collect();
    answer::json(StatusCode::OK, &json!({"items": items, "next": null}))
}

pub(super) async fn one(app: &App, call: &Call) -> Result<Response, Problem> {
    let one = found(app, call.named("n"))?;
    let then = read::moment(app, one.repeat.investigation.clone(), None).await?;
    Ok(answer::json(StatusCode::OK, &body(&one, Some(&then))))
}

pub(super) async fn begin(app: &App, call: &Call, body: Body) -> Result<Response, Problem> {
    let fields = api::object(call, body, MOST, &FIELDS).await?;
    let wrong = |name: &str, what: &str| Problem::new(Kind::Invalid, format!("/{name}: expected {what}"));
    let text = |name: &str| match fields.get(name) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(wrong(name, "a string")),
    };
    let id = text("investigation")?.ok_or_else(|| wrong("investigation", "the id of a closed investigation"))?;
    let from_round = fields.get("from_round").map_or(Ok(Some(1)), |round| number(round.clone()));
    let from_round = from_round.map_err(|e| Problem::new(Kind::Invalid, format!("/from_round: {e}")))?.unwrap_or(1);
    let n = open(app, &id, from_round, text("model")?).await?;
    Ok(answer::json(StatusCode::ACCEPTED, &self::body(&found(app, &n.to_string())?, None)))
}

/// The form of the page Compare.
pub(super) async fn begun(State(app): State<Arc<App>>, asked: Asked, Form(wanted): Form<Wanted>) -> Response {
    let begun = async {
        let round = Some(wanted.from_round.trim()).filter(|text| !text.is_empty()).unwrap_or("1");
        let round = round.parse().map_err(|_| Problem::new(Kind::Invalid, "expected a whole number as the round"))?;
        open(&app, &wanted.investigation, round, Some(wanted.model).filter(|name| !name.is_empty())).await
    };
    match begun.await {
        Ok(n) => answer::see_other(&format!("/backtests/{n}")),
        Err(problem) => answer::problem(&app, &problem, asked.uri.path(), true),
    }
}

pub(super) async fn shown(State(app): State<Arc<App>>, Path(n): Path<String>, asked: Asked) -> Response {
    let page = async {
        let one = found(&app, &n)?;
        let then = read::moment(&app, one.repeat.investigation.clone(), None).await?;
        let side = Side { row: Some(&then.row), report: &then.report };
        Ok(page::page(&asked.frame(&app), &one, &side))
    };
    pages::shown(&app, &asked, page.await)
}
