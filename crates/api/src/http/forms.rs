//! Forms of the pages. Each works without JavaScript and leads back with 303.

use std::sync::Arc;

use axum::Form;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;

use super::pages::Asked;
use super::{App, answer};
use crate::model::zone::Zone;
use crate::pages::frame::Theme;
use crate::pages::launch as launch_page;
use crate::problem::{Kind, Problem};
use crate::team::Launched;

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
    body: Option<String>,
}

/// Opens an investigation of `alert` over the evidence with this name, or over the first.
pub(super) async fn open(app: &App, alert: &[u8], body: &str) -> Result<Launched, Problem> {
    let parsed = casebook_protocol::Alert::parse(alert).map_err(|e| Problem::new(Kind::Invalid, e.to_string()))?;
    let bodies = app.team.as_ref().map(|team| team.bodies()).unwrap_or_default();
    let (Some(team), Some(first)) = (&app.team, bodies.first()) else {
        return Err(Problem::new(Kind::NoTeam, "this server has no evidence to investigate with"));
    };
    let body = if body.is_empty() { &first.name } else { body };
    if !bodies.iter().any(|known| known.name == body) {
        return Err(Problem::new(Kind::NotFound, "no evidence has this name; choose one of /api/v1/sources"));
    }
    tracing::info!(alert = %parsed.id, body, "alert from a page or the API");
    team.open(alert, body).await.map_err(|why| Problem::new(Kind::Invalid, why))
}

pub(super) async fn launch(State(app): State<Arc<App>>, asked: Asked) -> Response {
    let bodies = app.team.as_ref().map(|team| team.bodies()).unwrap_or_default();
    let draft = launch_page::Draft { body: asked.get("body"), ..launch_page::Draft::default() };
    answer::html(launch_page::page(&asked.frame(&app), &bodies, &draft))
}

pub(super) async fn launched(State(app): State<Arc<App>>, asked: Asked, Form(wanted): Form<Alert>) -> Response {
    let body = wanted.body.as_deref().unwrap_or_default();
    match open(&app, wanted.alert.as_bytes(), body).await {
        Ok(launched) => answer::see_other(&format!("/i/{}", launched.investigation)),
        Err(problem) => {
            let bodies = app.team.as_ref().map(|team| team.bodies()).unwrap_or_default();
            let draft = launch_page::Draft { alert: &wanted.alert, body, wrong: Some(&problem.detail) };
            let page = answer::html(launch_page::page(&asked.frame(&app), &bodies, &draft));
            (axum::http::StatusCode::UNPROCESSABLE_ENTITY, page).into_response()
        }
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
