//! The pages.

use std::sync::Arc;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Path, Query as Pairs, Request, State};
use axum::http::header::{self, HeaderMap};
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use casebook_agent::model::kept;
use casebook_hub::verify;
use casebook_protocol::MAX_ALERT_BYTES;
use casebook_trust::Backing;

use serde_json::{Map, Value, json};

use super::read::{self, Query};
use super::{App, answer, backtests, forms};
use casebook_index::{Sort, Wanted};

use crate::cases::Trouble;
use crate::model::insights::Insights;
use crate::model::row::Row;
use crate::pages::evidence::{self as evidence_page, Wanted as Looked};
use crate::pages::{
    call, case, compare as compare_page, fleet, insights as insights_page, model, problem, settings as settings_page,
    task, verified as verified_page,
};
use crate::problem::{Kind, Problem};
use crate::team::Team;

pub(super) const STYLE: &str = include_str!("../../assets/style.css");
pub(super) const SCRIPT: &str = include_str!("../../assets/app.js");
/// A form may need three bytes for each of the alert.
const FORM: usize = 3 * MAX_ALERT_BYTES + 4096;
const ICON: &str = include_str!("../../assets/icon.svg");

pub(super) fn router() -> Router<Arc<App>> {
    Router::new()
        .route("/", get(home))
        .route("/i/{id}", get(investigation))
        .route("/i/{id}/verify", post(verified))
        .route("/i/{id}/t/{task}", get(invocation))
        .route("/i/{id}/c/{call}", get(tool_call))
        .route("/i/{id}/m/{call}", get(model_call))
        .route("/evidence", get(evidence))
        .route("/compare", get(compare))
        .route("/compare/backtest", post(backtests::begun))
        .route("/backtests/{n}", get(backtests::shown))
        .route("/insights", get(insights))
        .route("/launch", get(forms::launch).post(forms::launched).layer(DefaultBodyLimit::max(FORM)))
        .route("/launch/remove", post(forms::removed))
        .route("/settings", get(settings))
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
        let unknown = |name| Problem::new(Kind::Unreadable, format!("{name} has a value that does not exist"));
        let wanted = filter.wanted(Sort::Urgent, fleet::PAGE).map_err(unknown)?;
        let listed = app.cases.list(&wanted, app.clock.now()).await?;
        let (all, newest) = app.cases.newest(fleet::NEWEST)?;
        Ok(fleet::page(&asked.frame(&app), &newest, &listed, all, &filter))
    };
    shown(&app, &asked, page.await)
}

async fn investigation(State(app): State<Arc<App>>, Path(id): Path<String>, asked: Asked) -> Response {
    let page = async {
        let at = read::number(&asked.query, "at")?;
        let upto = read::number(&asked.query, "upto")?;
        let have = read::number(&asked.query, "have")?;
        let moment = read::moment(&app, read::id(&id)?, at).await?;
        let frame = asked.frame(&app);
        let usual = if moment.at.is_some() { "channels" } else { "timeline" };
        let tab = Some(asked.get("tab")).filter(|tab| !tab.is_empty()).unwrap_or(usual);
        let backing = match tab {
            "findings" => Backing::of_numbers(&moment.report),
            // While it runs, the page is made again with each event.
            "evidence" if moment.state().closed.is_some() && moment.report.calls.len() <= case::evidence::MANY => {
                Backing::of(&moment.report)
            }
            _ => Backing::default(),
        };
        let backing = moment.backed(&app, backing).await?;
        let from = read::number(&asked.query, "from")?.and_then(|from| usize::try_from(from).ok());
        let (group, finding) = (asked.get("group"), asked.get("finding"));
        let case = case::Case { upto, have, group, from, finding, backing, ..moment.case(&frame) };
        Ok(case::page(&case, tab))
    };
    shown(&app, &asked, page.await)
}

async fn verified(State(app): State<Arc<App>>, Path(id): Path<String>, asked: Asked) -> Response {
    let page = async {
        let moment = read::moment(&app, read::id(&id)?, None).await?;
        let found = verify::verify(app.cases.store(), &moment.id).await.map_err(Trouble::from)?;
        Ok(verified_page::page(&moment.case(&asked.frame(&app)), &found))
    };
    shown(&app, &asked, page.await)
}

async fn invocation(State(app): State<Arc<App>>, Path((id, task)): Path<(String, String)>, asked: Asked) -> Response {
    let page = async {
        let moment = read::moment(&app, read::id(&id)?, None).await?;
        let frame = asked.frame(&app);
        let case = moment.case(&frame);
        let span = case.spans.iter().find(|span| span.task.as_str() == task);
        let span = span.ok_or_else(|| Problem::new(Kind::NotFound, "this investigation has no such task"))?;
        let view = super::one::bytes(&app, &span.view).await?;
        Ok(task::page(&case, span, &view))
    };
    shown(&app, &asked, page.await)
}

async fn tool_call(State(app): State<Arc<App>>, Path((id, call)): Path<(String, String)>, asked: Asked) -> Response {
    let page = async {
        let moment = read::moment(&app, read::id(&id)?, None).await?;
        let frame = asked.frame(&app);
        let case = moment.case(&frame);
        let made = super::one::tool(&moment, &call)?;
        let result = super::one::bytes(&app, &made.result).await?;
        let cited = cited(&case, asked.get("cite"));
        let record =
            cited.as_ref().and_then(|one| one.cited.records.first()).filter(|record| record.artifact().is_none());
        let around = match (record, &app.team) {
            (Some(record), Some(team)) => {
                let around = json!({"file": record.file, "line": record.line, "sources": [record.source], "before_seconds": 3600, "after_seconds": 3600, "limit": 200});
                near(team.as_ref(), &moment.row.evidence, &around).await.ok()
            }
            _ => None,
        };
        Ok(call::page(&case, made, &String::from_utf8_lossy(&result), cited.as_ref(), around.as_ref()))
    };
    shown(&app, &asked, page.await)
}

async fn model_call(State(app): State<Arc<App>>, Path((id, call)): Path<(String, String)>, asked: Asked) -> Response {
    let page = async {
        let moment = read::moment(&app, read::id(&id)?, None).await?;
        let asked_of = &moment.state().asked;
        let made = asked_of.iter().find(|(id, _)| id.as_str() == call).map(|(_, made)| made);
        let made = made.ok_or_else(|| Problem::new(Kind::NotFound, "this investigation has no such model call"))?;
        let ask = super::one::request(&app, &moment, &made.call).await.map_err(|problem| problem.detail);
        let reply = match kept::reply(app.cases.store(), &made.call).await {
            Ok(Ok(reply)) => Ok(reply),
            Ok(Err(fault)) => Err(format!("the call failed: {fault:?}")),
            Err(error) => Err(error.to_string()),
        };
        let frame = asked.frame(&app);
        let (ask, reply) = (ask.as_ref().map_err(String::as_str), reply.as_deref().map_err(String::as_str));
        Ok(model::page(&moment.case(&frame), &made.task, &made.call, ask, reply))
    };
    shown(&app, &asked, page.await)
}

/// Lines before and after a record without a time.
const LINES: u64 = 8;

/// The records around one in time, or in its file if it has no time.
pub(super) async fn near(team: &dyn Team, evidence: &str, around: &Value) -> Result<Value, String> {
    let found = team.look(evidence, "around", around).await;
    let (Err(why), Some(file), Some(line)) = (&found, around.get("file"), around.get("line").and_then(Value::as_u64))
    else {
        return found;
    };
    let mut records = Vec::new();
    for line in line.saturating_sub(LINES).max(1)..=line.saturating_add(LINES) {
        // A line that begins no record has none.
        records.extend(team.look(evidence, "get_record", &json!({"file": file, "line": line})).await.ok());
    }
    if records.is_empty() { Err(why.clone()) } else { Ok(json!({"records": records})) }
}

/// The citation that `FINDING.NUMBER` names.
fn cited<'c>(case: &'c case::Case<'_>, text: &str) -> Option<call::Cited<'c>> {
    let (finding, number) = text.rsplit_once('.')?;
    let number: usize = number.parse().ok()?;
    let found = case.report.findings.iter().find(|found| found.finding.id.as_str() == finding)?;
    Some(call::Cited { found, cited: found.citations.get(number.checked_sub(1)?)? })
}

async fn evidence(State(app): State<Arc<App>>, asked: Asked) -> Response {
    let page = async {
        let moment = read::moment(&app, read::id(asked.get("id"))?, None).await?;
        let frame = asked.frame(&app);
        let get = |name: &str| asked.get(name).to_owned();
        let line = read::number(&asked.query, "line")?;
        let wanted =
            Looked { q: get("q"), source: get("source"), from: get("from"), to: get("to"), file: get("file"), line };
        let (tool, arguments) = looked_for(&wanted);
        let found = match &app.team {
            Some(team) if tool == "around" => near(team.as_ref(), &moment.row.evidence, &arguments).await,
            Some(team) => team.look(&moment.row.evidence, tool, &arguments).await,
            None => Err("this server has no evidence".to_owned()),
        };
        Ok(evidence_page::page(&moment.case(&frame), &wanted, &found))
    };
    shown(&app, &asked, page.await)
}

fn looked_for(wanted: &Looked) -> (&'static str, Value) {
    if let Some(line) = wanted.line {
        return (
            "around",
            json!({"file": wanted.file, "line": line, "before_seconds": 300, "after_seconds": 300, "limit": 100}),
        );
    }
    let mut arguments = Map::from_iter([("limit".to_owned(), json!(100))]);
    for (name, text) in [("from", &wanted.from), ("to", &wanted.to)] {
        if !text.trim().is_empty() {
            arguments.insert(name.into(), json!(text.trim()));
        }
    }
    for (name, text) in [("terms", &wanted.q), ("sources", &wanted.source)] {
        if !text.is_empty() {
            arguments.insert(name.into(), json!([text]));
        }
    }
    ("search", Value::Object(arguments))
}

async fn compare(State(app): State<Arc<App>>, asked: Asked) -> Response {
    let page = async {
        let rows = recent(&app, 200).await?;
        let frame = asked.frame(&app);
        let chosen = [asked.get("a"), asked.get("b")];
        let models = app.team.as_ref().map(|team| team.models()).unwrap_or_default();
        if chosen.iter().any(|id| id.is_empty()) {
            return Ok(compare_page::page(&frame, &rows, chosen, None, &models));
        }
        let a = read::moment(&app, read::id(chosen[0])?, None).await?;
        let b = read::moment(&app, read::id(chosen[1])?, None).await?;
        let sides = [&a, &b].map(|one| compare_page::Side { row: Some(&one.row), report: &one.report });
        Ok(compare_page::page(&frame, &rows, chosen, Some(sides), &models))
    };
    shown(&app, &asked, page.await)
}

/// The newest investigations.
async fn recent(app: &App, limit: u32) -> Result<Vec<Row>, Problem> {
    let wanted = Wanted { limit, ..Wanted::default() };
    Ok(app.cases.list(&wanted, app.clock.now()).await?.rows)
}

/// Cases whose coherence the insights show.
const NEWEST: u32 = 300;

pub(super) async fn numbers(app: &App) -> Result<Insights, Problem> {
    let newest = recent(app, NEWEST).await?;
    let (figures, verdicts, counts) = app.cases.numbers()?;
    Ok(Insights::of(figures, verdicts, counts.all, &newest))
}

async fn insights(State(app): State<Arc<App>>, asked: Asked) -> Response {
    let page = numbers(&app).await.map(|all| insights_page::page(&asked.frame(&app), &all));
    shown(&app, &asked, page)
}

async fn settings(State(app): State<Arc<App>>, asked: Asked) -> Response {
    let all = app.team.as_ref().map(|team| team.settings()).unwrap_or_default();
    shown(&app, &asked, Ok(settings_page::page(&asked.frame(&app), &all)))
}

async fn about(State(app): State<Arc<App>>, Path(name): Path<String>, asked: Asked) -> Response {
    let kind = Kind::ALL.iter().find(|kind| kind.name() == name);
    let page = kind.map(|kind| problem::about(&asked.frame(&app), *kind));
    shown(&app, &asked, page.ok_or_else(|| Problem::new(Kind::NotFound, "this kind of problem does not exist")))
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
    answer::problem(&app, &Problem::new(Kind::NotFound, "this page does not exist"), path, !path.starts_with("/api/"))
}
