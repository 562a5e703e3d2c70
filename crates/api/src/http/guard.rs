//! What every request passes before routing: host, origin, sign-in; and the headers of every answer.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use axum::http::{Method, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::access::{Known, Tried};
use super::{App, answer, pack};
use crate::problem::{Kind, Problem};

/// A request that takes longer is given up. Streams begin in time and then go on.
const PATIENCE: Duration = Duration::from_secs(30);

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
form-action 'self'; frame-ancestors 'none'; base-uri 'none'; require-trusted-types-for 'script'; trusted-types casebook";

const HEADERS: [(HeaderName, &str); 5] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

pub(super) async fn guard(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let path = request.uri().path().to_owned();
    let wants_page = !path.starts_with("/api/");
    let takes_gzip = pack::taken(request.headers());
    let (mut response, session) = match checked(&app, &request) {
        // An upload has a limit of time for each part.
        Ok(Passed::On(session)) if *request.method() == Method::PUT => (next.run(request).await, session),
        Ok(Passed::On(session)) => match tokio::time::timeout(PATIENCE, next.run(request)).await {
            Ok(response) => (named(&app, response, &path, wants_page), session),
            Err(_) => {
                (answer::problem(&app, &Problem::new(Kind::Slow, "the answer took too long"), &path, wants_page), None)
            }
        },
        Ok(Passed::Answered(response)) => (*response, None),
        Err(problem) => (answer::problem(&app, &problem, &path, wants_page), None),
    };
    let headers = response.headers_mut();
    if let Some(cookie) = session.and_then(|session| set_cookie(&app, &session).parse().ok()) {
        headers.append(header::SET_COOKIE, cookie);
    }
    for (name, value) in HEADERS {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
    // What holds evidence is kept nowhere.
    let evidence = ["/evidence", "/launch"].contains(&path.as_str())
        || ["/c/", "/m/", "/t/"].iter().any(|part| path.contains(part));
    let cache = if evidence || path.contains("/report.") { "no-store" } else { "private, no-cache" };
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static(cache));
    pack::packed(takes_gzip, response).await
}

/// A refusal of the HTTP library, as a problem.
fn named(app: &App, response: Response, path: &str, wants_page: bool) -> Response {
    let plain = response.headers().get(header::CONTENT_TYPE).is_none_or(|kind| kind == "text/plain; charset=utf-8");
    let file = response.headers().contains_key(header::CONTENT_DISPOSITION);
    let (kind, detail) = match response.status() {
        _ if !plain || file => return response,
        StatusCode::BAD_REQUEST => (Kind::Unreadable, "the address or the form cannot be read"),
        StatusCode::NOT_FOUND => (Kind::NotFound, "this page does not exist"),
        StatusCode::METHOD_NOT_ALLOWED => (Kind::Method, "this method is not allowed for this path"),
        StatusCode::PAYLOAD_TOO_LARGE => (Kind::TooLarge, "the form is too large"),
        StatusCode::UNSUPPORTED_MEDIA_TYPE => (Kind::Media, "expected a form"),
        StatusCode::UNPROCESSABLE_ENTITY => (Kind::Invalid, "a field of the form is missing or wrong"),
        _ => return response,
    };
    answer::problem(app, &Problem::new(kind, detail), path, wants_page)
}

enum Passed {
    /// With what the browser keeps as its session from now on, if that changes.
    On(Option<String>),
    /// The request goes no further, such as a sign-in.
    Answered(Box<Response>),
}

fn checked(app: &App, request: &Request) -> Result<Passed, Problem> {
    let headers = request.headers();
    host(app, headers)?;
    let safe = matches!(*request.method(), Method::GET | Method::HEAD);
    let bearer = text(headers, &header::AUTHORIZATION).and_then(|value| value.strip_prefix("Bearer "));
    if !safe && bearer.is_none() {
        origin(headers)?;
    }
    if request.uri().path().starts_with("/static/") || request.uri().path() == "/api/v1/openapi.json" {
        return Ok(Passed::On(None));
    }
    if safe && let Some(key) = key(request.uri()) {
        return signed_in(app, &key, request.uri()).map(Passed::Answered);
    }
    let known = match bearer {
        Some(key) if tried(app, key)? => Known::Yes,
        Some(_) => Known::No,
        None => {
            cookie(headers, &app.cookie()).map_or(Known::No, |session| app.access().knows(&session, app.clock.now()))
        }
    };
    match known {
        Known::Yes => Ok(Passed::On(None)),
        Known::Renewed(session) => Ok(Passed::On(Some(session))),
        Known::No => Err(Problem::new(Kind::SignIn, "this browser has no session here, or it has ended")),
    }
}

fn text<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// Against DNS rebinding: a page of another site that resolves to this machine names its own host.
fn host(app: &App, headers: &HeaderMap) -> Result<(), Problem> {
    let host = text(headers, &header::HOST).unwrap_or_default();
    let allowed = ["127.0.0.1", "localhost"].map(|name| format!("{name}:{}", app.port));
    if allowed.iter().any(|name| name.eq_ignore_ascii_case(host)) {
        return Ok(());
    }
    Err(Problem::new(Kind::Host, "the request names another host"))
}

/// A request that changes something comes from a page of this server.
fn origin(headers: &HeaderMap) -> Result<(), Problem> {
    let foreign = || Problem::new(Kind::Origin, "the request does not come from a page of this server");
    match (text(headers, &header::ORIGIN), text(headers, &HeaderName::from_static("sec-fetch-site"))) {
        (Some(origin), _) => {
            // The host was checked.
            let own = format!("http://{}", text(headers, &header::HOST).unwrap_or_default());
            // A sandboxed or referrer-less form of our own page sends `null`; the fetch metadata decides then.
            let same = text(headers, &HeaderName::from_static("sec-fetch-site")) == Some("same-origin");
            if own.eq_ignore_ascii_case(origin) || (origin == "null" && same) { Ok(()) } else { Err(foreign()) }
        }
        (None, Some("same-origin")) => Ok(()),
        (None, _) => Err(foreign()),
    }
}

pub(super) fn cookie(headers: &HeaderMap, name: &str) -> Option<String> {
    let all = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = all.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(key, _)| *key == name).map(|(_, value)| value.to_owned())
}

fn key(uri: &Uri) -> Option<String> {
    uri.query()?.split('&').find_map(|pair| pair.strip_prefix("k=")).map(str::to_owned)
}

fn tried(app: &App, key: &str) -> Result<bool, Problem> {
    match app.access().tried(key, app.clock.now()) {
        Tried::Right => Ok(true),
        Tried::Wrong => Ok(false),
        Tried::TooOften => Err(Problem::new(Kind::TooMany, "too many wrong keys in the last minute")),
    }
}

/// Sets the session cookie and leads to the same place without the key.
fn signed_in(app: &App, key: &str, uri: &Uri) -> Result<Box<Response>, Problem> {
    if !tried(app, key)? {
        return Err(Problem::new(Kind::SignIn, "this key is not the one that the server printed"));
    }
    let session = app.access().begin(app.clock.now());
    let rest: Vec<&str> = uri.query().unwrap_or_default().split('&').filter(|pair| !pair.starts_with("k=")).collect();
    // Two slashes would lead to another host.
    let path = format!("/{}", uri.path().trim_start_matches('/'));
    let place = if rest.is_empty() { path } else { format!("{path}?{}", rest.join("&")) };
    let cookie = set_cookie(app, &session);
    Ok(Box::new((StatusCode::SEE_OTHER, [(header::LOCATION, place), (header::SET_COOKIE, cookie)]).into_response()))
}

fn set_cookie(app: &App, session: &str) -> String {
    format!("{}={session}; HttpOnly; SameSite=Lax; Path=/", app.cookie())
}
