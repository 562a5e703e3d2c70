//! Forms of the pages. Each works without JavaScript and leads back with 303.

use std::sync::Arc;

use axum::Form;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;

use super::pages::Asked;
use super::{App, answer, upload};
use crate::model::limits::Limits;
use crate::model::zone::Zone;
use crate::pages::frame::Theme;
use crate::pages::launch as launch_page;
use crate::problem::{Kind, Problem};
use crate::team::{Launched, Wanted};

#[derive(Deserialize)]
pub(super) struct Preferences {
    back: Option<String>,
    theme: Option<String>,
    zone: Option<String>,
    keys: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct Alert {
    alert: String,
    #[serde(default)]
    body: String,
    #[serde(default)]
    cost: String,
    #[serde(default)]
    minutes: String,
    again: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct Removed {
    upload: String,
}

/// Opens an investigation of `alert` over the evidence with the name `body`, or over the first.
pub(super) async fn open(
    app: &App,
    alert: &[u8],
    body: &str,
    again: bool,
    limits: &Limits,
) -> Result<Launched, Problem> {
    let parsed = casebook_protocol::Alert::parse(alert).map_err(|e| Problem::new(Kind::Invalid, e.to_string()))?;
    let bodies = app.team.as_ref().map(|team| team.bodies()).unwrap_or_default();
    let (Some(team), Some(first)) = (&app.team, bodies.first()) else {
        return Err(Problem::new(Kind::NoTeam, "this server has no evidence to investigate with"));
    };
    let body = if body.is_empty() { &first.name } else { body };
    if !bodies.iter().any(|known| known.name == body) {
        return Err(Problem::new(Kind::NotFound, "no evidence has this name; choose one of /api/v1/sources"));
    }
    let budget = limits.within(&team.budget()).map_err(|why| Problem::new(Kind::OverLimit, why))?;
    let budget = (*limits != Limits::default()).then_some(budget);
    tracing::info!(alert = %parsed.id, body, again, "alert from a page or the API");
    team.open(alert, Wanted { body: body.to_owned(), again, budget })
        .await
        .map_err(|why| Problem::new(Kind::Invalid, why))
}

pub(super) async fn launch(State(app): State<Arc<App>>, asked: Asked) -> Response {
    let draft = launch_page::Draft { body: asked.get("body"), ..launch_page::Draft::default() };
    form(&app, &asked, &draft)
}

fn form(app: &App, asked: &Asked, draft: &launch_page::Draft<'_>) -> Response {
    let offered = app.team.as_ref().map(|team| (team.bodies(), team.budget()));
    let (bodies, budget) = offered.unwrap_or_default();
    answer::html(launch_page::page(&asked.frame(app), &bodies, &budget, draft))
}

pub(super) async fn launched(State(app): State<Arc<App>>, asked: Asked, Form(wanted): Form<Alert>) -> Response {
    let again = wanted.again.is_some();
    let opened = async {
        let limits = Limits::of_form(&wanted.cost, &wanted.minutes);
        let limits = limits.map_err(|why| Problem::new(Kind::Invalid, why))?;
        open(&app, wanted.alert.as_bytes(), &wanted.body, again, &limits).await
    };
    match opened.await {
        Ok(launched) => answer::see_other(&format!("/i/{}", launched.investigation)),
        Err(problem) => {
            let draft = launch_page::Draft {
                alert: &wanted.alert,
                body: &wanted.body,
                cost: &wanted.cost,
                minutes: &wanted.minutes,
                again,
                wrong: Some(&problem.detail),
            };
            (axum::http::StatusCode::UNPROCESSABLE_ENTITY, form(&app, &asked, &draft)).into_response()
        }
    }
}

pub(super) async fn removed(State(app): State<Arc<App>>, asked: Asked, Form(wanted): Form<Removed>) -> Response {
    match upload::remove(&app, &wanted.upload).await {
        Ok(_) => answer::see_other("/launch"),
        Err(problem) => answer::problem(&app, &problem, asked.uri.path(), true),
    }
}

const YEAR: &str = "Max-Age=31536000; SameSite=Lax; Path=/";

pub(super) async fn preferences(State(_): State<Arc<App>>, Form(wanted): Form<Preferences>) -> Response {
    let mut response = answer::see_other(answer::local(wanted.back.as_deref().unwrap_or("/")));
    let mut set = |cookie: String| {
        if let Ok(value) = cookie.parse() {
            response.headers_mut().append(header::SET_COOKIE, value);
        }
    };
    if let Some(name) = wanted.theme {
        set(format!("casebook_theme={}; {YEAR}", Theme::named(&name).name()));
    }
    if let Some(keys) = wanted.keys {
        set(format!("casebook_keys={}; {YEAR}", if keys == "off" { "off" } else { "on" }));
    }
    if let Some(zone) = wanted.zone.and_then(|name| Zone::named(name.trim())) {
        // A slash is not a character of a cookie's value.
        set(format!("casebook_zone={}; {YEAR}", zone.name.replace('/', ":")));
    }
    response.into_response()
}
