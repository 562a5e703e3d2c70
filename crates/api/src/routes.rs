//! The table of the API: the router is built from it, and `docs/openapi.json` is written from it.

use serde_json::{Map, Value, json};

use crate::problem::Kind;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    Get,
    Post,
    Put,
}

impl Verb {
    const fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Post => "post",
            Self::Put => "put",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Endpoint {
    Investigations,
    Launch,
    Investigation,
    Events,
    Event,
    Journal,
    Review,
    Timeline,
    Findings,
    Finding,
    Rounds,
    Guards,
    Usage,
    Tasks,
    Task,
    View,
    Reply,
    Calls,
    Call,
    Result,
    Context,
    Json,
    Markdown,
    Html,
    Compare,
    Insights,
    Sources,
    Settings,
    Uploads,
    Upload,
    Notices,
}

#[derive(Debug, Clone, Copy)]
pub struct Parameter {
    pub name: &'static str,
    kind: &'static str,
    about: &'static str,
}

const fn p(name: &'static str, kind: &'static str, about: &'static str) -> Parameter {
    Parameter { name, kind, about }
}

pub struct Route {
    pub verb: Verb,
    /// Below `/api/v1`.
    pub path: &'static str,
    pub endpoint: Endpoint,
    about: &'static str,
    pub query: &'static [Parameter],
    /// The schema of the answer, or the type of its content.
    answer: Answer,
    problems: &'static [Kind],
}

#[derive(Clone, Copy)]
enum Answer {
    One(&'static str),
    Page(&'static str),
    Other(&'static str),
}

const AT: Parameter = p("at", "integer", "as it was after this event");
const LIMIT: Parameter = p("limit", "integer", "at most so many items");
const CURSOR: Parameter = p("cursor", "string", "from `next` of the page before");
const FOUND: &[Kind] = &[Kind::NotFound, Kind::Unreadable];

use Answer::{One, Other, Page};
use Verb::{Get, Post, Put};

const fn route(
    verb: Verb,
    path: &'static str,
    endpoint: Endpoint,
    about: &'static str,
    query: &'static [Parameter],
    answer: Answer,
    problems: &'static [Kind],
) -> Route {
    Route { verb, path, endpoint, about, query, answer, problems }
}

pub const ROUTES: &[Route] = &[
    route(Get, "/investigations", Endpoint::Investigations, "Lists investigations, the newest first", &[
        p("status", "string", "open, running, stuck, closed or damaged"),
        p("severity", "string", "such as high"),
        p("verdict", "string", "such as true_positive; closed investigations alone"),
        p("q", "string", "a text in title, alert, id, host or user"),
        LIMIT,
        CURSOR,
    ], Page("Investigation"), &[Kind::Unreadable]),
    route(Post, "/investigations", Endpoint::Launch, "Investigates an alert; waits for nothing", &[], One("Launched"),
        &[Kind::Unreadable, Kind::NoTeam, Kind::TooLarge, Kind::Media, Kind::Invalid]),
    route(Get, "/investigations/{id}", Endpoint::Investigation, "How an investigation stands", &[AT], One("Investigation"), FOUND),
    route(Get, "/investigations/{id}/events", Endpoint::Events,
        "The log. With `Accept: text/event-stream`: from `from` or after `Last-Event-ID`, and then live", &[
        p("from", "integer", "the first event; 1 unless given"),
        LIMIT,
        p("type", "string", "events of this type alone"),
        p("task", "string", "events of this task alone"),
    ], Page("Event"), FOUND),
    route(Get, "/investigations/{id}/events/{seq}", Endpoint::Event, "One event with its hash", &[], One("Event"), FOUND),
    route(Get, "/investigations/{id}/journal", Endpoint::Journal, "The Director's Journal", &[AT, LIMIT, CURSOR], Page("Entry"), FOUND),
    route(Get, "/investigations/{id}/review", Endpoint::Review, "The Critic's latest Review", &[AT], One("Review"), FOUND),
    route(Get, "/investigations/{id}/timeline", Endpoint::Timeline, "The Critic's Timeline", &[AT], One("Timeline"), FOUND),
    route(Get, "/investigations/{id}/findings", Endpoint::Findings, "Findings with scores, citations and checks", &[
        AT,
        p("label", "string", "such as highly-plausible"),
        p("domain", "string", "of this Expert"),
        p("round", "integer", "of this round"),
        LIMIT,
        CURSOR,
    ], Page("Finding"), FOUND),
    route(Get, "/investigations/{id}/findings/{finding}", Endpoint::Finding, "One finding", &[AT], One("Finding"), FOUND),
    route(Get, "/investigations/{id}/rounds", Endpoint::Rounds, "Questions and decisions", &[AT], Page("Round"), FOUND),
    route(Get, "/investigations/{id}/guards", Endpoint::Guards, "What the rules changed", &[AT], Page("Guard"), FOUND),
    route(Get, "/investigations/{id}/usage", Endpoint::Usage, "What it used", &[AT], One("Usage"), FOUND),
    route(Get, "/investigations/{id}/tasks", Endpoint::Tasks, "Tasks with begin and end", &[AT, LIMIT, CURSOR], Page("Task"), FOUND),
    route(Get, "/investigations/{id}/tasks/{task}", Endpoint::Task, "One task", &[], One("Task"), FOUND),
    route(Get, "/investigations/{id}/tasks/{task}/view", Endpoint::View, "What the task was given", &[], One("View"), FOUND),
    route(Get, "/investigations/{id}/tasks/{task}/model-calls/{n}/reply", Endpoint::Reply, "The reply of a model, to download", &[],
        Other("application/octet-stream"), &[Kind::NotFound, Kind::NotKept]),
    route(Get, "/investigations/{id}/calls", Endpoint::Calls, "Tool calls", &[p("task", "string", "of this task alone"), LIMIT, CURSOR], Page("Call"), FOUND),
    route(Get, "/investigations/{id}/calls/{call}", Endpoint::Call, "One tool call", &[], One("Call"), FOUND),
    route(Get, "/investigations/{id}/calls/{call}/result", Endpoint::Result, "A part of the result, or the whole to download", &[
        p("pointer", "string", "a JSON pointer"),
        p("from_line", "integer", "the first line"),
        p("to_line", "integer", "the last line"),
        p("offset", "integer", "the first byte"),
        p("length", "integer", "bytes"),
        p("search", "string", "places of this text"),
        p("after", "integer", "search from this byte on"),
        p("count", "boolean", "count items, or hits of `search`"),
        p("by", "string", "count items by this field"),
    ], One("Part"), &[Kind::NotFound, Kind::Invalid]),
    route(Get, "/investigations/{id}/context", Endpoint::Context, "Records around a record of the evidence", &[
        p("file", "string", "the file of the record"),
        p("line", "integer", "its line"),
        p("seconds", "integer", "before and after it; 60 unless given"),
        LIMIT,
    ], One("Records"), &[Kind::NotFound, Kind::Invalid, Kind::NoTeam]),
    route(Get, "/investigations/{id}/report.json", Endpoint::Json, "The report", &[p("partial", "integer", "1: also before the end")], One("Report"), &[Kind::NotFound, Kind::NotClosed]),
    route(Get, "/investigations/{id}/report.md", Endpoint::Markdown, "The report as Markdown", &[p("partial", "integer", "1: also before the end")], Other("text/markdown"), &[Kind::NotFound, Kind::NotClosed]),
    route(Get, "/investigations/{id}/report.html", Endpoint::Html, "The report as one page, to download", &[p("partial", "integer", "1: also before the end")], Other("text/html"), &[Kind::NotFound, Kind::NotClosed]),
    route(Get, "/compare", Endpoint::Compare, "What differs between two investigations", &[p("a", "string", "the one"), p("b", "string", "the other")], One("Comparison"), FOUND),
    route(Get, "/insights", Endpoint::Insights, "Numbers over all investigations", &[], One("Insights"), &[]),
    route(Get, "/sources", Endpoint::Sources, "Evidence that an alert can be investigated with", &[], Page("Body"), &[]),
    route(Get, "/settings", Endpoint::Settings, "What holds in this server; no secret", &[], One("Settings"), &[]),
    route(Post, "/uploads", Endpoint::Uploads, "Begins an upload of evidence", &[], One("Upload"), &[Kind::NoTeam]),
    route(Put, "/uploads/{upload}/files/{*path}", Endpoint::Upload, "Stores one file, at most 256 MiB", &[], One("File"),
        &[Kind::NotFound, Kind::Invalid, Kind::TooLarge, Kind::NoTeam]),
    route(Get, "/events", Endpoint::Notices, "A stream with a notice for each change of any investigation", &[], Other("text/event-stream"), &[Kind::TooMany]),
];

impl Route {
    /// The path without the marks of the router.
    #[must_use]
    fn public(&self) -> String {
        self.path.replace("{*", "{")
    }
}

/// The description of the API.
#[must_use]
pub fn openapi() -> Value {
    let mut paths = Map::new();
    for route in ROUTES {
        let path = paths.entry(format!("/api/v1{}", route.public())).or_insert_with(|| json!({}));
        if let Value::Object(verbs) = path {
            verbs.insert(route.verb.name().to_owned(), operation(route));
        }
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Casebook",
            "version": "1",
            "description": "Investigations of security alerts. Times are UTC (RFC 3339), money is in millionths. Within version 1 fields are only added."
        },
        "servers": [{"url": "http://127.0.0.1:7420"}],
        "security": [{"key": []}, {"session": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {
                "key": {"type": "http", "scheme": "bearer", "description": "the key that `casebook serve` printed"},
                "session": {"type": "apiKey", "in": "cookie", "name": "casebook_7420"}
            },
            "schemas": schemas()
        }
    })
}

fn operation(route: &Route) -> Value {
    let mut parameters: Vec<Value> = Vec::new();
    let path = route.public();
    for name in path.split('{').skip(1).filter_map(|rest| rest.split('}').next()) {
        let kind = if matches!(name, "seq" | "n") { "integer" } else { "string" };
        parameters.push(json!({"name": name, "in": "path", "required": true, "schema": {"type": kind}}));
    }
    for one in route.query {
        parameters.push(json!({"name": one.name, "in": "query", "description": one.about, "schema": {"type": one.kind}}));
    }
    let refer = |name: &str| json!({"$ref": format!("#/components/schemas/{name}")});
    let content = match route.answer {
        One(name) => json!({"application/json": {"schema": refer(name)}}),
        Page(name) => json!({"application/json": {"schema": {"type": "object", "required": ["items", "next"], "properties": {
            "items": {"type": "array", "items": refer(name)}, "next": {"type": ["string", "null"]}}}}}),
        Other(kind) => json!({kind: {"schema": {"type": "string"}}}),
    };
    let good = if matches!((route.verb, route.endpoint), (Post, _) | (Put, _)) { "201" } else { "200" };
    let mut responses = Map::from_iter([(good.to_owned(), json!({"description": "the answer", "content": content}))]);
    if route.endpoint == Endpoint::Launch {
        responses.insert("200".into(), json!({"description": "the same alert was there", "content": content}));
    }
    for kind in [Kind::SignIn, Kind::Host, Kind::Store].iter().chain(route.problems) {
        let problem = json!({"description": kind.title(), "content": {"application/problem+json": {"schema": refer("Problem")}}});
        responses.entry(kind.status().to_string()).or_insert(problem);
    }
    let name = format!("{:?}", route.endpoint);
    let mut out = json!({"operationId": name, "summary": route.about, "parameters": parameters, "responses": responses});
    if route.endpoint == Endpoint::Launch {
        out["requestBody"] = json!({"required": true, "content": {"application/json": {"schema": refer("Launch")}}});
    }
    if route.endpoint == Endpoint::Upload {
        out["requestBody"] = json!({"required": true, "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}});
    }
    out
}

/// The fields that clients may rely on.
fn schemas() -> Value {
    let object = |required: &[(&str, Value)]| {
        let names: Vec<&str> = required.iter().map(|(name, _)| *name).collect();
        let properties: Map<String, Value> = required.iter().map(|(name, kind)| ((*name).to_owned(), kind.clone())).collect();
        json!({"type": "object", "required": names, "properties": properties})
    };
    let text = || json!({"type": "string"});
    let number = || json!({"type": "integer", "minimum": 0});
    let maybe = |kind: &str| json!({"type": [kind, "null"]});
    let score = || json!({"type": ["number", "null"], "minimum": 0, "maximum": 1});
    let time = || json!({"type": "string", "format": "date-time"});
    let list = || json!({"type": "array"});
    let any = || json!({"type": "object"});
    json!({
        "Problem": object(&[("type", text()), ("title", text()), ("status", number()), ("detail", text()), ("instance", text()), ("try", text())]),
        "Investigation": object(&[("id", text()), ("title", text()), ("alert", text()), ("severity", maybe("string")), ("opened", maybe("string")),
            ("closed", maybe("string")), ("seq", number()), ("phase", text()), ("round", number()), ("under_way", list()), ("findings", number()),
            ("score", score()), ("verdict", maybe("string")), ("usage", any())]),
        "Launch": object(&[("alert", any())]),
        "Launched": object(&[("investigation", text()), ("fresh", json!({"type": "boolean"}))]),
        "Event": object(&[("v", number()), ("investigation", text()), ("seq", number()), ("at", time()), ("prev", text()), ("hash", text()),
            ("event", object(&[("type", text())]))]),
        "Entry": object(&[("seq", number()), ("phase", text()), ("round", number()), ("at", time()), ("entry", any())]),
        "Review": object(&[("round", number()), ("summary", text()), ("findings", list())]),
        "Timeline": object(&[("version", number()), ("round", number()), ("narrative", text()), ("events", list()), ("gaps", list()), ("score", score()), ("label", text())]),
        "Finding": object(&[("finding", any()), ("score", score()), ("label", maybe("string")), ("capped_by", list()), ("rationale", text()), ("citations", list())]),
        "Round": object(&[("round", number()), ("phase", text()), ("question", json!({"type": ["object", "null"]})), ("decision", json!({"type": ["object", "null"]})), ("findings", number())]),
        "Guard": object(&[("rule", text()), ("subject", text()), ("effect", text())]),
        "Usage": object(&[("rounds", number()), ("total", any()), ("tasks", list())]),
        "Task": object(&[("task", text()), ("kind", text()), ("domain", maybe("string")), ("round", number()), ("from", time()), ("to", maybe("string")),
            ("failed", maybe("string")), ("usage", any()), ("findings", list())]),
        "View": any(),
        "Call": object(&[("id", text()), ("tool", text()), ("arguments", text()), ("status", text()), ("result", text()), ("bytes", number())]),
        "Part": any(),
        "Records": any(),
        "Report": object(&[("casebook_report", number()), ("investigation", text()), ("verdict", text()), ("summary", text()), ("findings", list())]),
        "Comparison": any(),
        "Insights": object(&[("investigations", number()), ("verdicts", any()), ("bands", list()), ("rules", any()), ("tools", any())]),
        "Body": object(&[("name", text()), ("about", text())]),
        "Settings": any(),
        "Upload": object(&[("upload", text())]),
        "File": object(&[("path", text()), ("bytes", number())]),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_description_in_the_docs_is_that_of_the_table() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/openapi.json");
        let written = serde_json::to_string_pretty(&openapi()).unwrap() + "\n";
        if std::env::var_os("CASEBOOK_WRITE").is_some() {
            std::fs::write(&path, &written).unwrap();
        }
        let kept = std::fs::read_to_string(&path).unwrap();
        assert!(kept == written, "docs/openapi.json differs; write it with CASEBOOK_WRITE=1");
    }

    #[test]
    fn every_schema_that_is_named_is_there() {
        let all = openapi();
        let text = all.to_string();
        let named = text.split("#/components/schemas/").skip(1).filter_map(|rest| rest.split('"').next());
        for name in named {
            assert!(all["components"]["schemas"].get(name).is_some(), "{name}");
        }
    }
}
