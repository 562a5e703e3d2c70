//! The description of the API (OpenAPI 3.1), from the table of routes and the fields that clients may rely on.

use casebook_index::Status;
use casebook_protocol::{Severity, Verdict};
use serde_json::{Map, Value, json};

use crate::problem::Kind;
use crate::routes::{Answer, Endpoint, MOST, Parameter, ROUTES, Route, Verb};
use Answer::{Done, One, Other, Page};
use Verb::{Delete, Post, Put};

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
                "key": {"type": "http", "scheme": "bearer", "description": "the key that `casebook serve` printed, or that is in the key file of `casebook-api`"},
                "session": {"type": "apiKey", "in": "cookie", "name": "casebook_7420"}
            },
            "schemas": schemas()
        }
    })
}

fn schema(parameter: &Parameter) -> Value {
    let names = |all: Vec<&str>| json!({"type": "string", "enum": all});
    if let Some((least, most)) = parameter.range() {
        return json!({"type": "integer", "minimum": least, "maximum": most});
    }
    match parameter.kind {
        "needed" => json!({"type": "string", "minLength": 1}),
        "path" => json!({"type": "string", "pattern": file_path()}),
        "cursor" => json!({"type": "string", "pattern": "^newest:[0-9]{1,18},[0-9]{1,18}$"}),
        "status" => names(Status::ALL.iter().map(|one| one.name()).collect()),
        "severity" => names(Severity::ALL.iter().map(|one| one.name()).collect()),
        "verdict" => names(Verdict::ALL.iter().map(|one| one.name()).collect()),
        kind => json!({"type": kind}),
    }
}

/// The names that [`crate::model::upload`] accepts for certain: at most 50 characters a part.
fn file_path() -> String {
    let never = "/\\\\:\\u0000-\\u001f\\u007f-\\u009f\\u00ad\\u061c\\u200b-\\u200f\\u202a-\\u202e\\u2060-\\u206f\\ufeff\\ufff9-\\ufffb\u{e0000}-\u{e007f}";
    let part = format!("[^.{never}][^{never}]{{0,49}}");
    format!("^{part}(/{part}){{0,7}}$")
}

fn operation(route: &Route) -> Value {
    let mut parameters: Vec<Value> = Vec::new();
    let path = route.public();
    for name in path.split('{').skip(1).filter_map(|rest| rest.split('}').next()) {
        let kind = match name {
            "seq" | "n" => "integer",
            "path" => "path",
            _ => "needed",
        };
        let schema = schema(&Parameter { name: "", kind, about: "" });
        parameters.push(json!({"name": name, "in": "path", "required": true, "schema": schema}));
    }
    for one in route.query {
        let required = matches!(one.kind, "needed" | "line");
        parameters.push(json!({
            "name": one.name, "in": "query", "required": required, "description": one.about, "schema": schema(one)
        }));
    }
    let refer = |name: &str| json!({"$ref": format!("#/components/schemas/{name}")});
    let content = match route.answer {
        // Without parameters the whole result, to download.
        One(name) if route.endpoint == Endpoint::Result => {
            json!({"application/json": {"schema": refer(name)}, "text/plain": {"schema": {"type": "string"}}})
        }
        One(name) => json!({"application/json": {"schema": refer(name)}}),
        Page(name) => {
            let mut content = json!({"application/json": {"schema": {"type": "object", "required": ["items", "next"], "properties": {
            "items": {"type": "array", "items": refer(name)}, "next": {"type": ["string", "null"]}}}}});
            if let (Endpoint::Events, Value::Object(kinds)) = (route.endpoint, &mut content) {
                kinds.insert("text/event-stream".into(), json!({"schema": {"type": "string"}}));
            }
            content
        }
        Other(kind) => json!({kind: {"schema": {"type": "string"}}}),
        Done(_) => json!({}),
    };
    let good = match route.verb {
        Post if route.endpoint == Endpoint::Repeat => "202",
        Post | Put => "201",
        Delete => "204",
        Verb::Get => "200",
    };
    let answer = match route.answer {
        Done(what) => json!({"description": what}),
        _ => json!({"description": "the answer", "content": content}),
    };
    let mut responses = Map::from_iter([(good.to_owned(), answer)]);
    if route.endpoint == Endpoint::Launch {
        responses.insert("200".into(), json!({"description": "the same alert was there", "content": content}));
    }
    if route.endpoint == Endpoint::Events {
        responses.insert("204".into(), json!({"description": "a stream was asked for, and nothing follows"}));
    }
    for kind in [Kind::Unreadable, Kind::SignIn, Kind::Origin, Kind::Host, Kind::TooMany, Kind::Store]
        .iter()
        .chain(route.problems)
    {
        let problem =
            json!({"description": kind.title(), "content": {"application/problem+json": {"schema": refer("Problem")}}});
        responses.entry(kind.status().to_string()).or_insert(problem);
    }
    let name = format!("{:?}", route.endpoint);
    let mut out = Map::from_iter([
        ("operationId".to_owned(), json!(name)),
        ("summary".to_owned(), json!(route.about)),
        ("parameters".to_owned(), json!(parameters)),
        ("responses".to_owned(), json!(responses)),
    ]);
    let body = match route.endpoint {
        Endpoint::Launch => json!({"application/json": {"schema": refer("Launch")}}),
        Endpoint::Repeat => json!({"application/json": {"schema": refer("Repeat")}}),
        Endpoint::Upload => json!({"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}),
        _ => return Value::Object(out),
    };
    out.insert("requestBody".to_owned(), json!({"required": route.endpoint != Endpoint::Upload, "content": body}));
    Value::Object(out)
}

/// The fields that clients may rely on.
fn schemas() -> Value {
    let object = |required: &[(&str, Value)]| {
        let names: Vec<&str> = required.iter().map(|(name, _)| *name).collect();
        let properties: Map<String, Value> =
            required.iter().map(|(name, kind)| ((*name).to_owned(), kind.clone())).collect();
        json!({"type": "object", "required": names, "properties": properties})
    };
    let text = || json!({"type": "string"});
    let flag = || json!({"type": "boolean"});
    let number = || json!({"type": "integer", "minimum": 0});
    let positive = |most: u64| json!({"type": "integer", "minimum": 1, "maximum": most});
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
        "Launch": {"type": "object", "required": ["alert"], "additionalProperties": false,
            "properties": {
                "alert": {"type": "object", "properties": {"id": {"maxLength": 256, "pattern": "^[^\\u0000-\\u001f\\u007f-\\u009f]*$", "description": "a text without control characters, or another value"}}},
                "source": {"type": "string", "description": "a name of /sources; the first unless given"},
                "again": {"type": "boolean", "description": "also if this alert was investigated and that investigation has closed"},
                "limits": {"type": "object", "additionalProperties": false, "description": "each at most the limit of the server",
                    "properties": {"cost_micros": positive(MOST), "seconds": positive(MOST), "rounds": positive(u32::MAX.into())}}}},
        "Launched": object(&[("investigation", text()), ("fresh", flag())]),
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
        "Repeat": {"type": "object", "required": ["investigation"], "additionalProperties": false,
            "properties": {
                "investigation": {"type": "string", "description": "the id of a closed investigation"},
                "from_round": {"type": "integer", "minimum": 1, "maximum": u32::MAX, "description": "rounds before this one stay as they were; 1 unless given"},
                "model": {"type": "string", "description": "a model of the models file, or analyst, for every role; those of the server unless given"}}},
        "Backtest": object(&[("n", number()), ("investigation", text()), ("from_round", number()), ("model", maybe("string")),
            ("state", json!({"enum": ["running", "done", "failed"]})), ("round", number()), ("events", number()), ("why", maybe("string")), ("comparison", maybe("object"))]),
        "Insights": object(&[("investigations", number()), ("verdicts", any()), ("bands", list()), ("rules", any()), ("tools", any())]),
        "Body": object(&[("name", text()), ("about", text()), ("removable", flag())]),
        "Settings": any(),
        "Upload": object(&[("upload", text())]),
        "Uploaded": object(&[("upload", text()), ("files", number()), ("bytes", number()), ("used", flag())]),
        "Verification": object(&[("intact", flag()), ("events", number()), ("artifacts", number()), ("results", number()), ("findings", number()),
            ("citations", number()), ("unhashed", number()), ("closed", flag()), ("report", flag()), ("problems", list()), ("foreign", list())]),
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
