//! The pages.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, Query as Pairs, Request, State};
use axum::http::header::{self, HeaderMap};
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};

use super::read::{self, Query};
use super::{App, answer, forms};
use crate::pages::{case, fleet, problem};
use crate::problem::{Kind, Problem};

const STYLE: &str = include_str!("../../assets/style.css");
const SCRIPT: &str = include_str!("../../assets/app.js");
const ICON: &str = include_str!("../../assets/icon.svg");

pub(super) fn router() -> Router<Arc<App>> {
    Router::new()
        .route("/", get(home))
        .route("/i/{id}", get(investigation))
        .route("/problems/{name}", get(about))
        .route("/preferences", post(forms::preferences))
        .route("/static/{name}", get(file))
        .route("/favicon.ico", get(|| async { answer::see_other("/static/icon.svg") }))
}

/// What a page needs of its request.
pub(super) struct Asked {
    pub headers: HeaderMap,
    pub uri: Uri,
    pub query: Query,
}

impl Asked {
    pub(super) fn frame(&self, app: &App) -> crate::pages::frame::Frame {
        read::frame(app, &self.headers, &self.uri, &self.query)
    }

    pub(super) fn get(&self, name: &str) -> &str {
        self.query.get(name).map_or("", String::as_str)
    }
}

impl<S: Send + Sync> axum::extract::FromRequestParts<S> for Asked {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut axum::http::request::Parts, _: &S) -> Result<Self, Self::Rejection> {
        let query = Pairs::<Query>::try_from_uri(&parts.uri).map(|Pairs(query)| query).unwrap_or_default();
        Ok(Self { headers: parts.headers.clone(), uri: parts.uri.clone(), query })
    }
}

pub(super) fn shown(app: &App, asked: &Asked, page: Result<String, Problem>) -> Response {
    match page {
        Ok(page) => answer::html(page),
        Err(problem) => answer::problem(app, &problem, asked.uri.path(), true),
    }
}

async fn home(State(app): State<Arc<App>>, asked: Asked) -> Response {
    let page = async {
        let filter = Pairs::<fleet::Filter>::try_from_uri(&asked.uri);
        let Pairs(filter) = filter.map_err(|_| Problem::new(Kind::Unreadable, "the filter cannot be read"))?;
        let rows = app.cases.rows().await?;
        Ok(fleet::page(&asked.frame(&app), &rows, &filter))
    };
    shown(&app, &asked, page.await)
}

async fn investigation(State(app): State<Arc<App>>, Path(id): Path<String>, asked: Asked) -> Response {
    let page = async {
        let at = read::number(&asked.query, "at")?;
        let upto = read::number(&asked.query, "upto")?;
        let moment = read::moment(&app, read::id(&id)?, at).await?;
        let frame = asked.frame(&app);
        let case = case::Case { upto, group: asked.get("group"), ..moment.case(&frame) };
        let usual = if moment.at.is_some() { "channels" } else { "timeline" };
        let tab = asked.get("tab");
        Ok(case::page(&case, if tab.is_empty() { usual } else { tab }))
    };
    shown(&app, &asked, page.await)
}

async fn about(State(app): State<Arc<App>>, Path(name): Path<String>, asked: Asked) -> Response {
    let kind = Kind::ALL.iter().find(|kind| kind.name() == name);
    let page = kind.map(|kind| problem::about(&asked.frame(&app), *kind));
    shown(&app, &asked, page.ok_or_else(|| Problem::new(Kind::NotFound, "there is no such kind of problem")))
}

async fn file(Path(name): Path<String>) -> Response {
    let (kind, text) = match name.as_str() {
        "style.css" => ("text/css; charset=utf-8", STYLE),
        "app.js" => ("text/javascript; charset=utf-8", SCRIPT),
        "icon.svg" => ("image/svg+xml", ICON),
        _ => return StatusCode::NOT_FOUND.into_response(),
    };
    ([(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, "private, max-age=3600")], text).into_response()
}

pub(super) async fn missing(State(app): State<Arc<App>>, request: Request) -> Response {
    let path = request.uri().path();
    answer::problem(&app, &Problem::new(Kind::NotFound, "there is no such page"), path, !path.starts_with("/api/"))
}
