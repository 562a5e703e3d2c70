//! The resources of one investigation.

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use casebook_agent::model::{Ask, kept, kept::KeptError};
use casebook_agent::results::{asked, tools};
use casebook_protocol::{ArtifactId, CallId, ModelCall, ToolCall};
use casebook_report::{Form, compare as comparing};
use serde_json::{Map, Value, json};

use super::api::{Call, page};
use super::read::{self, Moment};
use super::{App, answer};
use crate::model::spans::{Span, spans};
use crate::problem::{Kind, Problem};
use crate::routes::Endpoint;

fn missing(what: &str) -> Problem {
    Problem::new(Kind::NotFound, format!("this investigation has no such {what}"))
}

pub(super) async fn dispatch(app: &App, endpoint: Endpoint, call: &Call) -> Result<Response, Problem> {
    let moment = call.moment(app).await?;
    let state = moment.state();
    let report = &moment.report;
    match endpoint {
        Endpoint::Investigation => Ok(call.of(&moment, &moment.row)),
        Endpoint::Event => {
            let seq: u64 = call.named("seq").parse().map_err(|_| missing("event"))?;
            let entry = moment.log().iter().find(|entry| entry.seq == seq).ok_or_else(|| missing("event"))?;
            Ok(answer::tagged(&call.asked.headers, &entry.hash, entry))
        }
        Endpoint::Journal => page(call, &moment, &state.journal, |entry| entry.seq.to_string()),
        Endpoint::Review => {
            state.review.as_ref().map(|review| call.of(&moment, review)).ok_or_else(|| missing("Review yet"))
        }
        Endpoint::Timeline => {
            state.timeline.as_ref().map(|timeline| call.of(&moment, timeline)).ok_or_else(|| missing("Timeline yet"))
        }
        Endpoint::Findings => findings(call, &moment),
        Endpoint::Finding => {
            let found = report.findings.iter().find(|found| found.finding.id.as_str() == call.named("finding"));
            found.map(|found| call.of(&moment, found)).ok_or_else(|| missing("finding"))
        }
        Endpoint::Rounds => {
            let rounds: Vec<Value> = state
                .rounds
                .iter()
                .map(|(number, round)| json!({"round": number, "phase": round.phase, "question": round.question, "decision": round.decision, "reviewed": round.reviewed, "findings": round.findings.len()}))
                .collect();
            Ok(call.of(&moment, &json!({"items": rounds, "next": null})))
        }
        Endpoint::Guards => Ok(call.of(&moment, &json!({"items": report.guards, "next": null}))),
        Endpoint::Usage => Ok(call.of(&moment, &report.usage)),
        Endpoint::Tasks => page(call, &moment, &spans(moment.log()), |span| span.task.to_string()),
        Endpoint::Task => Ok(call.of(&moment, &span(&moment, call)?)),
        Endpoint::View => view(app, call, &moment).await,
        Endpoint::Request => {
            let ask = request(app, &moment, model_call(call, &moment)?).await?;
            // The bytes whose hash the log has.
            Ok(no_store(answer::written(ask.canonical().into_bytes())))
        }
        Endpoint::Reply => reply(app, call, &moment).await,
        Endpoint::Calls => {
            let task = call.asked.get("task");
            let of_task = |one: &&ToolCall| {
                task.is_empty() || state.calls.get(&one.id).is_some_and(|made| made.task.as_str() == task)
            };
            let calls: Vec<&ToolCall> = report.calls.iter().filter(of_task).collect();
            page(call, &moment, &calls, |one| one.id.to_string())
        }
        Endpoint::Call => Ok(call.of(&moment, &tool(&moment, call.named("call"))?)),
        Endpoint::Result => result(app, call, &moment).await,
        Endpoint::Context => context(app, call, &moment).await,
        Endpoint::Json => rendered(app, call, &moment, (Form::Json, "application/json")).await,
        Endpoint::Markdown => rendered(app, call, &moment, (Form::Md, "text/markdown; charset=utf-8")).await,
        Endpoint::Html => rendered(app, call, &moment, (Form::Html, "text/html; charset=utf-8")).await,
        _ => Err(missing("resource")),
    }
}

fn findings(call: &Call, moment: &Moment) -> Result<Response, Problem> {
    let (label, domain) = (call.asked.get("label"), call.asked.get("domain"));
    let round = read::number(&call.asked.query, "round")?;
    let labelled = |found: &casebook_protocol::report::ReportFinding| {
        serde_json::to_value(found.label).unwrap_or_default() == label
    };
    let kept: Vec<_> = moment
        .report
        .findings
        .iter()
        .filter(|found| label.is_empty() || labelled(found))
        .filter(|found| domain.is_empty() || found.finding.domain.as_str() == domain)
        .filter(|found| round.is_none_or(|round| u64::from(found.finding.round) == round))
        .collect();
    page(call, moment, &kept, |found| found.finding.id.to_string())
}

fn span(moment: &Moment, call: &Call) -> Result<Span, Problem> {
    let found = spans(moment.log()).into_iter().find(|span| span.task.as_str() == call.named("task"));
    found.ok_or_else(|| missing("task"))
}

pub(super) fn tool<'m>(moment: &'m Moment, id: &str) -> Result<&'m ToolCall, Problem> {
    let id = CallId::new(id).map_err(|_| missing("tool call"))?;
    moment.state().calls.get(&id).map(|made| &made.call).ok_or_else(|| missing("tool call"))
}

pub(super) async fn bytes(app: &App, id: &ArtifactId) -> Result<Vec<u8>, Problem> {
    app.cases.artifact(id).await?.ok_or_else(|| Problem::new(Kind::Store, "the bytes are not in the store"))
}

async fn view(app: &App, call: &Call, moment: &Moment) -> Result<Response, Problem> {
    Ok(no_store(answer::written(bytes(app, &span(moment, call)?.view).await?)))
}

/// What holds evidence is kept nowhere.
fn no_store(mut response: Response) -> Response {
    response.headers_mut().insert(header::CACHE_CONTROL, header::HeaderValue::from_static("no-store"));
    response
}

/// The request of a model call, put together from what its task sent before it.
pub(super) async fn request(app: &App, moment: &Moment, call: &ModelCall) -> Result<Ask, Problem> {
    let asked = &moment.state().asked;
    let task = asked.values().find(|made| made.call.id == call.id).map(|made| &made.task);
    let mut calls: Vec<&ModelCall> =
        asked.values().filter(|made| Some(&made.task) == task).map(|made| &made.call).collect();
    calls.sort_by_key(|one| one.started);
    let before = calls.iter().position(|one| one.id == call.id).map_or(0, |at| at + 1);
    calls.truncate(before);
    kept::request(app.cases.store(), &calls).await.map_err(|error| match error {
        KeptError::NotKept(_) => Problem::new(Kind::NotKept, error.to_string()),
        error => Problem::new(Kind::Store, error.to_string()),
    })
}

/// The model call with this number, from 1, of a task.
fn model_call<'m>(call: &Call, moment: &'m Moment) -> Result<&'m ModelCall, Problem> {
    let n: usize = call.named("n").parse().map_err(|_| missing("model call"))?;
    let mut asked: Vec<&ModelCall> = moment
        .state()
        .asked
        .values()
        .filter(|made| made.task.as_str() == call.named("task"))
        .map(|made| &made.call)
        .collect();
    asked.sort_by_key(|one| one.started);
    n.checked_sub(1).and_then(|n| asked.get(n).copied()).ok_or_else(|| missing("model call"))
}

async fn reply(app: &App, call: &Call, moment: &Moment) -> Result<Response, Problem> {
    let made = model_call(call, moment)?;
    let reply = made.reply.as_ref().ok_or_else(|| Problem::new(Kind::NotKept, "this call failed and has no reply"))?;
    Ok(answer::raw(&format!("{}.reply", made.id), "application/octet-stream", bytes(app, reply).await?))
}

async fn result(app: &App, call: &Call, moment: &Moment) -> Result<Response, Problem> {
    let made = tool(moment, call.named("call"))?;
    let whole = bytes(app, &made.result).await?;
    if call.asked.query.is_empty() {
        return Ok(answer::raw(&format!("{}.txt", made.id), "text/plain; charset=utf-8", whole));
    }
    let invalid = |why: String| Problem::new(Kind::Invalid, why);
    let numbers = ["from_line", "to_line", "offset", "length", "after"];
    let mut arguments = Map::new();
    for (name, text) in &call.asked.query {
        let value = match name.as_str() {
            "count" => json!(text == "true"),
            name if numbers.contains(&name) => json!(read::number(&call.asked.query, name)?),
            _ => json!(text),
        };
        arguments.insert(name.clone(), value);
    }
    let arguments = Value::Object(arguments).to_string();
    let (_, wanted) = asked::Asked::read::<Value>(&arguments, &[]).map_err(|e| invalid(e.to_string()))?;
    let text = String::from_utf8_lossy(&whole).into_owned();
    let seen = tools::looked(text, wanted.look().map_err(invalid)?).await.map_err(invalid)?;
    Ok(no_store(answer::json(StatusCode::OK, &seen)))
}

async fn context(app: &App, call: &Call, moment: &Moment) -> Result<Response, Problem> {
    let line = read::number(&call.asked.query, "line")?;
    let seconds = read::number(&call.asked.query, "seconds")?.unwrap_or(60);
    let limit = read::number(&call.asked.query, "limit")?.unwrap_or(20);
    let around = json!({"file": call.asked.get("file"), "line": line, "before_seconds": seconds, "after_seconds": seconds, "limit": limit});
    let team = app.team.as_ref().ok_or_else(|| Problem::new(Kind::NoTeam, "this server has no evidence"))?;
    let seen = super::pages::near(team.as_ref(), &moment.row.evidence, &around).await;
    Ok(no_store(answer::json(StatusCode::OK, &seen.map_err(|why| Problem::new(Kind::NotFound, why))?)))
}

async fn rendered(
    app: &App,
    call: &Call,
    moment: &Moment,
    (form, kind): (Form, &'static str),
) -> Result<Response, Problem> {
    if moment.state().closed.is_none() && call.asked.get("partial") != "1" {
        return Err(Problem::new(Kind::NotClosed, "its report is complete when it is closed"));
    }
    let backing = moment.backed(app, form.backing(&moment.report)).await?;
    let text = form.render(&moment.report, &backing).map_err(|e| Problem::new(Kind::Store, e.to_string()))?;
    if form == Form::Json {
        return Ok(([(header::CONTENT_TYPE, kind)], text).into_response());
    }
    Ok(answer::raw(form.file_name(), kind, text.into_bytes()))
}

pub(super) async fn compare(app: &App, call: &Call) -> Result<Response, Problem> {
    let a = read::moment(app, read::id(call.asked.get("a"))?, None).await?;
    let b = read::moment(app, read::id(call.asked.get("b"))?, None).await?;
    let rows: Vec<Value> = comparing::rows(&a.report, &b.report)
        .into_iter()
        .map(|(name, a, b)| json!({"name": name.trim(), "a": a, "b": b}))
        .collect();
    let (pairs, only_a, only_b) = comparing::findings(&a.report, &b.report);
    let pairs: Vec<Value> = pairs.iter().map(|pair| json!({"finding": pair.then.finding.id, "a": pair.then.score, "b": pair.now.score, "same_claim": pair.same_claim()})).collect();
    Ok(answer::json(
        StatusCode::OK,
        &json!({"a": a.id, "b": b.id, "rows": rows, "findings": {"in_both": pairs, "only_a": only_a, "only_b": only_b}}),
    ))
}
