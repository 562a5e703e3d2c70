//! Answers: pages, JSON with its tag, problems, raw bytes.

use std::sync::OnceLock;

use axum::body::Body;
use axum::http::header::{self, HeaderMap};
use axum::http::{Response as HttpResponse, StatusCode};
use axum::response::{IntoResponse, Response};
use casebook_protocol::hash::sha256_hex;
use serde::Serialize;

use super::App;
use crate::pages;
use crate::pages::frame::{Frame, Theme};
use crate::problem::{Kind, Problem};

/// Changes with the script and the style, so that a browser does not use those of an old program.
pub(super) fn build() -> &'static str {
    static BUILD: OnceLock<String> = OnceLock::new();
    BUILD.get_or_init(|| {
        let text = [env!("CARGO_PKG_VERSION"), super::pages::STYLE, super::pages::SCRIPT].concat();
        sha256_hex(text.as_bytes()).chars().take(12).collect()
    })
}

pub(super) fn html(page: String) -> Response {
    ([(header::CONTENT_TYPE, "text/html; charset=utf-8")], page).into_response()
}

/// A frame for a problem before anything is known of the request.
fn plain(app: &App) -> Frame {
    Frame {
        theme: Theme::System,
        zone: crate::model::zone::Zone::default(),
        now: app.clock.now(),
        keys: true,
        here: "/".into(),
        investigates: app.investigates(),
        build: build(),
    }
}

pub(super) fn problem(app: &App, problem: &Problem, path: &str, page: bool) -> Response {
    let status = StatusCode::from_u16(problem.kind.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    if page {
        return (status, html(pages::problem::page(&plain(app), problem))).into_response();
    }
    let retry = matches!(problem.kind, Kind::TooMany).then_some((header::RETRY_AFTER, "60"));
    let mut response =
        (status, [(header::CONTENT_TYPE, "application/problem+json")], problem.json(path)).into_response();
    if let Some((name, value)) = retry {
        response.headers_mut().insert(name, axum::http::HeaderValue::from_static(value));
    }
    response
}

const CACHE: &str = "private, no-cache";

/// JSON that depends on nothing but `tag`: answered with 304 if the client has it. The tag is a hash of the log, since
/// two data folders may have an investigation with the same id.
pub(super) fn tagged<T: Serialize>(headers: &HeaderMap, tag: &str, body: &T) -> Response {
    let tag = format!("\"{tag}.{}\"", build());
    let known = headers.get(header::IF_NONE_MATCH).and_then(|value| value.to_str().ok());
    if known.is_some_and(|known| known.split(',').any(|one| one.trim().trim_start_matches("W/") == tag)) {
        return (StatusCode::NOT_MODIFIED, [(header::ETAG, tag), (header::CACHE_CONTROL, CACHE.to_owned())])
            .into_response();
    }
    match serde_json::to_vec(body) {
        Ok(bytes) => {
            let headers = [
                (header::CONTENT_TYPE, "application/json".to_owned()),
                (header::ETAG, tag),
                (header::CACHE_CONTROL, CACHE.to_owned()),
            ];
            (headers, bytes).into_response()
        }
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

pub(super) fn json<T: Serialize>(status: StatusCode, body: &T) -> Response {
    match serde_json::to_vec(body) {
        Ok(bytes) => (status, written(bytes)).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

/// JSON of ours that is written already.
pub(super) fn written(bytes: Vec<u8>) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], bytes).into_response()
}

/// Bytes from evidence or a model: downloaded, never shown as a page.
pub(super) fn raw(name: &str, kind: &'static str, bytes: Vec<u8>) -> Response {
    let plain: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() || matches!(c, '-' | '.') { c } else { '-' }).collect();
    let built = HttpResponse::builder()
        .header(header::CONTENT_TYPE, kind)
        .header(header::CONTENT_DISPOSITION, format!("attachment; filename=\"{plain}\""))
        .header(header::CONTENT_SECURITY_POLICY, "sandbox")
        .header(header::CACHE_CONTROL, "no-store")
        .body(Body::from(bytes));
    built.unwrap_or_else(|_| StatusCode::INTERNAL_SERVER_ERROR.into_response())
}

pub(super) fn see_other(place: &str) -> Response {
    (StatusCode::SEE_OTHER, [(header::LOCATION, place.to_owned())]).into_response()
}

/// A path of this server, or `/`.
pub(super) fn local(path: &str) -> &str {
    let plain = path.chars().all(|c| c.is_ascii_graphic() && c != '\\');
    if path.starts_with('/') && !path.starts_with("//") && plain { path } else { "/" }
}
