//! The API. [`ROUTES`] is the table from which it is built and described.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{FromRequestParts, RawPathParams, Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, get, on};
use casebook_hub::verify;
use casebook_index::Sort;
use casebook_protocol::{MAX_ALERT_BYTES, Recorded};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::pages::Asked;
use super::read::{self, Moment};
use super::{App, answer, backtests, feed, one, upload};
use crate::cases::Trouble;
use crate::model::limits::Limits;
use crate::model::verified::Verified;
use crate::openapi::openapi;
use crate::pages::fleet::Filter;
use crate::problem::{Kind, Problem};
use crate::routes::{Endpoint, ROUTES, Route, Verb};

const PAGE: u64 = 50;

/// A request with its parameters.
pub(super) struct Call {
    pub path: BTreeMap<String, String>,
    pub asked: Asked,
}

impl Call {
    pub(super) fn named(&self, name: &str) -> &str {
        self.path.get(name).map_or("", String::as_str)
    }

    fn limit(&self) -> Result<usize, Problem> {
        let wanted = read::number(&self.asked.query, "limit")?.unwrap_or(PAGE);
        Ok(usize::try_from(wanted).unwrap_or(usize::MAX))
    }

    pub(super) async fn moment(&self, app: &App) -> Result<Moment, Problem> {
        let at = read::number(&self.asked.query, "at")?;
        read::moment(app, read::id(self.named("id"))?, at).await
    }

    /// JSON that depends on the log alone.
    pub(super) fn of<T: Serialize>(&self, moment: &Moment, body: &T) -> Response {
        answer::tagged(&self.asked.headers, &moment.tag(), body)
    }
}

pub(super) fn router() -> Router<Arc<App>> {
    let mut router =
        Router::new().route("/api/v1/openapi.json", get(|| async { answer::json(StatusCode::OK, &openapi()) }));
    for route in ROUTES {
        let filter = match route.verb {
            Verb::Get => MethodFilter::GET,
            Verb::Post => MethodFilter::POST,
            Verb::Put => MethodFilter::PUT,
            Verb::Delete => MethodFilter::DELETE,
        };
        let handle = move |State(app): State<Arc<App>>, request: Request| handle(app, route, request);
        router = router.route(&format!("/api/v1{}", route.path), on(filter, handle));
    }
    router.method_not_allowed_fallback(not_allowed)
}

async fn not_allowed(State(app): State<Arc<App>>, request: Request) -> Response {
    let path = request.uri().path();
    let problem = Problem::new(Kind::Method, format!("{} is not allowed for this path", request.method()));
    answer::problem(&app, &problem, path, !path.starts_with("/api/"))
}

async fn handle(app: Arc<App>, route: &'static Route, request: Request) -> Response {
    let (mut parts, body) = request.into_parts();
    let path = parts.uri.path().to_owned();
    let answered = async {
        let named = RawPathParams::from_request_parts(&mut parts, &()).await;
        let named = named.map_err(|_| Problem::new(Kind::NotFound, "the path cannot be read"))?;
        let path = named.iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
        let Ok(asked) = Asked::from_request_parts(&mut parts, &()).await;
        known(route, &asked)?;
        dispatch(&app, route.endpoint, Call { path, asked }, body).await
    };
    answered.await.unwrap_or_else(|problem| answer::problem(&app, &problem, &path, false))
}

/// A parameter that does not exist, is missing, or has no value of its kind, is a mistake of the client.
fn known(route: &Route, asked: &Asked) -> Result<(), Problem> {
    let needed = route.query.iter().filter(|one| ["needed", "line"].contains(&one.kind));
    if let Some(missing) = needed.into_iter().find(|one| !asked.query.contains_key(one.name)) {
        return Err(Problem::new(Kind::Unreadable, format!("the parameter {} is missing", missing.name)));
    }
    for (name, text) in &asked.query {
        let Some(parameter) = route.query.iter().find(|one| one.name == name) else {
            let names: Vec<&str> = route.query.iter().map(|one| one.name).collect();
            let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            return Err(Problem::new(Kind::Unreadable, format!("a query parameter is not known; known: {names}")));
        };
        if text.is_empty() && matches!(parameter.kind, "needed" | "cursor" | "status" | "severity" | "verdict") {
            return Err(Problem::new(Kind::Unreadable, format!("expected a value in {}", parameter.name)));
        }
        if parameter.kind == "boolean" && !["true", "false"].contains(&text.as_str()) {
            return Err(Problem::new(Kind::Unreadable, format!("expected true or false in {}", parameter.name)));
        }
        if let Some((least, most)) = parameter.range()
            && !text.parse::<u64>().is_ok_and(|number| (least..=most).contains(&number))
        {
            let detail = format!("expected a whole number from {least} to {most} in {}", parameter.name);
            return Err(Problem::new(Kind::Unreadable, detail));
        }
    }
    Ok(())
}

async fn dispatch(app: &Arc<App>, endpoint: Endpoint, call: Call, body: Body) -> Result<Response, Problem> {
    match endpoint {
        Endpoint::Investigations => investigations(app, &call).await,
        Endpoint::Launch => launch(app, &call, body).await,
        Endpoint::Events => events(app, &call).await,
        Endpoint::Notices => feed::all(app),
        Endpoint::Insights => Ok(answer::json(StatusCode::OK, &super::pages::numbers(app).await?)),
        Endpoint::Sources => {
            let items = app.team.as_ref().map(|team| team.bodies()).unwrap_or_default();
            Ok(answer::json(StatusCode::OK, &json!({"items": items, "next": null})))
        }
        Endpoint::Settings => {
            let all: BTreeMap<String, String> =
                app.team.as_ref().map(|team| team.settings()).unwrap_or_default().into_iter().collect();
            Ok(answer::json(StatusCode::OK, &all))
        }
        Endpoint::Uploads => upload::begin(app),
        Endpoint::Upload => upload::file(app, &call, body).await,
        Endpoint::Uploaded => upload::shown(app, call.named("upload")),
        Endpoint::Remove => upload::remove(app, call.named("upload")).await,
        Endpoint::Verify => verified(app, &call).await,
        Endpoint::Compare => one::compare(app, &call).await,
        Endpoint::Backtests => Ok(backtests::all(app)),
        Endpoint::Repeat => backtests::begin(app, &call, body).await,
        Endpoint::Backtest => backtests::one(app, &call).await,
        endpoint => one::dispatch(app, endpoint, &call).await,
    }
}

async fn investigations(app: &App, call: &Call) -> Result<Response, Problem> {
    let get = |name: &str| call.asked.get(name).to_owned();
    let filter = Filter {
        status: get("status"),
        severity: get("severity"),
        verdict: get("verdict"),
        q: get("q"),
        after: get("cursor"),
    };
    let limit = u32::try_from(call.limit()?).unwrap_or(u32::MAX);
    let unknown = |name| Problem::new(Kind::Unreadable, format!("{name} has a value that does not exist"));
    let listed = app.cases.list(&filter.wanted(Sort::Newest, limit).map_err(unknown)?, app.clock.now()).await?;
    Ok(answer::json(StatusCode::OK, &json!({"items": listed.rows, "next": listed.next})))
}

/// A page of things that are in order, after the one with the id of the cursor.
pub(super) fn page<T: Serialize>(
    call: &Call,
    moment: &Moment,
    all: &[T],
    id: impl Fn(&T) -> String,
) -> Result<Response, Problem> {
    let limit = if call.asked.get("limit").is_empty() { all.len().max(1) } else { call.limit()? };
    let after = call.asked.get("cursor");
    let start = match after {
        "" => 0,
        after => {
            let place = all.iter().position(|one| id(one) == after);
            place.ok_or_else(|| Problem::new(Kind::NotFound, "this list has nothing with the id of the cursor"))? + 1
        }
    };
    let items: Vec<&T> = all.iter().skip(start).take(limit).collect();
    let next = items.last().filter(|_| start + items.len() < all.len()).map(|last| id(last));
    Ok(call.of(moment, &json!({"items": items, "next": next})))
}

async fn events(app: &Arc<App>, call: &Call) -> Result<Response, Problem> {
    let id = read::id(call.named("id"))?;
    let from = read::number(&call.asked.query, "from")?.unwrap_or(1).max(1);
    let header = |name| call.asked.headers.get(name).and_then(|value| value.to_str().ok());
    if header(header::ACCEPT.as_str()).is_some_and(|accept| accept.contains("text/event-stream")) {
        let held = app.cases.read(&id).await?;
        let seen = header("last-event-id").and_then(|seen| seen.parse::<u64>().ok());
        let from = seen.map_or(from, |seen| seen.saturating_add(1));
        if held.state.closed.is_some() && from > held.state.last_seq() {
            // With this status a browser does not ask again.
            return Ok(StatusCode::NO_CONTENT.into_response());
        }
        return feed::one(app, &id, from);
    }
    let limit = call.limit()?;
    let moment = read::moment(app, id, None).await?;
    let (kind, task) = (call.asked.get("type"), call.asked.get("task"));
    let kept = |entry: &&Recorded| {
        let value = if kind.is_empty() && task.is_empty() {
            return true;
        } else {
            serde_json::to_value(&entry.event).unwrap_or_default()
        };
        let is = |name: &str, wanted: &str| wanted.is_empty() || value.get(name).is_some_and(|value| value == wanted);
        is("type", kind) && is("task", task)
    };
    let mut all = moment.log().iter().filter(|entry| entry.seq >= from).filter(kept);
    let items: Vec<&Recorded> = all.by_ref().take(limit).collect();
    let next = all.next().map(|entry| entry.seq.to_string());
    Ok(call.of(&moment, &json!({"items": items, "next": next})))
}

async fn verified(app: &App, call: &Call) -> Result<Response, Problem> {
    let id = read::id(call.named("id"))?;
    let found = verify::verify(app.cases.store(), &id).await.map_err(Trouble::from)?;
    Ok(answer::json(StatusCode::CREATED, &Verified::of(&found)))
}

/// The fields of a launch.
const LAUNCH: [&str; 4] = ["alert", "source", "again", "limits"];

/// The JSON object of a request, with fields that are known.
pub(super) async fn object(
    call: &Call,
    body: Body,
    most: usize,
    known: &[&str],
) -> Result<Map<String, Value>, Problem> {
    let kind = call.asked.headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if !kind.starts_with("application/json") {
        return Err(Problem::new(Kind::Media, "expected a body of type application/json"));
    }
    let bytes = to_bytes(body, most).await;
    let bytes = bytes.map_err(|_| Problem::new(Kind::TooLarge, format!("expected at most {most} bytes")))?;
    let body: Value = serde_json::from_slice(&bytes)
        .map_err(|e| Problem::new(Kind::Unreadable, format!("the body is not JSON: {e}")))?;
    let Value::Object(fields) = body else {
        let first = known.first().copied().unwrap_or_default();
        return Err(Problem::new(Kind::Invalid, format!("expected an object with `{first}`")));
    };
    if let Some(name) = fields.keys().find(|name| !known.contains(&name.as_str())) {
        return Err(Problem::new(Kind::Invalid, format!("/{name}: unknown field; known: {}", known.join(", "))));
    }
    Ok(fields)
}

async fn launch(app: &App, call: &Call, body: Body) -> Result<Response, Problem> {
    // The alert, and what names the evidence.
    let fields = object(call, body, MAX_ALERT_BYTES + 4096, &LAUNCH).await?;
    let alert = fields.get("alert").filter(|alert| alert.is_object());
    let alert = alert.ok_or_else(|| Problem::new(Kind::Invalid, "/alert: expected an object"))?;
    let source = match fields.get("source") {
        None => "",
        Some(Value::String(name)) => name,
        Some(_) => return Err(Problem::new(Kind::Invalid, "/source: expected a string")),
    };
    let again = match fields.get("again") {
        None => false,
        Some(Value::Bool(again)) => *again,
        Some(_) => return Err(Problem::new(Kind::Invalid, "/again: expected true or false")),
    };
    let limits = fields.get("limits").map(Limits::deserialize).transpose();
    let limits = limits.map_err(|e| Problem::new(Kind::Invalid, format!("/limits: {e}")))?.unwrap_or_default();
    let launched = super::forms::open(app, alert.to_string().as_bytes(), source, again, &limits).await?;
    let status = if launched.fresh { StatusCode::CREATED } else { StatusCode::OK };
    Ok(answer::json(status, &launched))
}
