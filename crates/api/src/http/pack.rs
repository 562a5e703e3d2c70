//! Compression of answers. No page holds a secret beside a text of another person, so that lengths say nothing.

use std::io::Write;

use axum::body::{Body, HttpBody, to_bytes};
use axum::http::StatusCode;
use axum::http::header::{self, HeaderMap, HeaderValue};
use axum::response::{IntoResponse, Response};
use flate2::Compression;
use flate2::write::GzEncoder;

/// Smaller answers do not become shorter by much.
const LEAST: u64 = 1024;
const KINDS: [&str; 6] =
    ["text/html", "text/css", "text/javascript", "image/svg+xml", "application/json", "application/problem+json"];

/// True if the client accepts gzip.
pub(super) fn taken(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    let mut all = accepted.flat_map(|value| value.split(',')).map(|one| one.replace(' ', "").to_ascii_lowercase());
    all.any(|one| {
        one.split_once(";q=").map_or(one == "gzip", |(name, q)| name == "gzip" && q.parse().is_ok_and(|q: f32| q > 0.0))
    })
}

/// The answer, packed if that helps and the client takes it. A stream has no length, and stays as it is.
pub(super) async fn packed(takes: bool, mut response: Response) -> Response {
    let kind = response.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let short = response.body().size_hint().exact().is_none_or(|bytes| bytes < LEAST);
    if short || !KINDS.contains(&kind.split(';').next().unwrap_or_default()) {
        return response;
    }
    response.headers_mut().append(header::VARY, HeaderValue::from_static("accept-encoding"));
    if !takes {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let Ok(bytes) = to_bytes(body, usize::MAX).await else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    let Ok(packed) = encoder.write_all(&bytes).and_then(|()| encoder.finish()) else {
        return Response::from_parts(parts, Body::from(bytes));
    };
    parts.headers.remove(header::CONTENT_LENGTH);
    parts.headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    // The same content in other bytes: a weak tag.
    if let Some(tag) = parts.headers.get(header::ETAG).and_then(|tag| tag.to_str().ok())
        && let Ok(weak) = format!("W/{tag}").parse()
    {
        parts.headers.insert(header::ETAG, weak);
    }
    Response::from_parts(parts, Body::from(packed))
}
