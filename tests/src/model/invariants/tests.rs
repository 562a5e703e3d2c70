use std::sync::Arc;

use hyper::body::Bytes;
use serde_json::json;

use super::*;
use crate::model::cache::{Counted, Prefix};
use crate::model::request::{Answer, Choice, Tool};

const SECRET: &str = "sk-planted-\"1\"";

fn request(kind: &str, sections: &[(&str, &str)]) -> Request {
    let text: String = sections.iter().map(|(name, content)| format!("<{name}>\n{content}\n</{name}>\n")).collect();
    let mut prefix = Prefix::new(false);
    prefix.add(&text, false);
    Request {
        provider: Provider::Anthropic,
        path: "/v1/messages".into(),
        key: "k".into(),
        model: "m".into(),
        system: format!("Casebook task: {kind} (prompt {kind} 1)\nrules"),
        turns: vec![Turn::User(vec![text])],
        tools: Vec::new(),
        choice: Choice::Auto,
        format: None,
        max_output: Some(100),
        stream: false,
        stream_usage: true,
        bytes: Bytes::from(json!({"some": "body"}).to_string()),
        prefix,
    }
}

fn good(kind: &str) -> Request {
    let sections: &[(&str, &str)] = match kind {
        "investigate" => &[("alert", "{}"), ("sources", "[]"), ("journal", ""), ("question", "{}")],
        "review" => &[("journal", ""), ("toolsets", "[]"), ("findings", r#"[{"id":"r1-net-1"}]"#)],
        "timeline" => &[("journal", ""), ("review", "{}")],
        _ => &[("alert", r#"{"raw":"the sender's"}"#), ("journal", "#1 x"), ("roster", "[]"), ("review", "{}")],
    };
    request(kind, sections)
}

fn calls(request: &mut Request, results: &[(&str, &str, &str)]) {
    let calls = results
        .iter()
        .map(|(id, _, tool)| Call { id: (*id).into(), name: (*tool).into(), arguments: "{}".into() })
        .collect();
    request.turns.push(Turn::Assistant { text: String::new(), calls });
    let answers = results.iter().map(|(id, call, tool)| Answer {
        id: (*id).into(),
        text: format!("result of call {call} ({tool}), 2 bytes, whole\n<data-0>\n{{}}\n</data-0>"),
    });
    request.turns.push(Turn::Results(answers.collect()));
}

fn captured(requests: Vec<Request>) -> Vec<Captured> {
    let wrap = |(number, request): (u64, Request)| Captured {
        number,
        kind: prompt::kind(&request.system),
        task: None,
        place: request.place(),
        attempt: 1,
        prompt: Counted::default(),
        request: Arc::new(request),
    };
    (1..).zip(requests).map(wrap).collect()
}

/// Each violation as `number rule: detail`.
fn check_all(requests: Vec<Request>, expect: &[&str]) {
    let known = Known { secrets: vec![SECRET.into()], window: Some(1000) };
    let found = check(&captured(requests), &known);
    let lines: Vec<String> = found.iter().map(|v| format!("{} {}: {}", v.number, v.rule, v.detail)).collect();
    assert_eq!(lines, expect);
}

fn broken(kind: &str, breaking: impl FnOnce(&mut Request), expect: &[&str]) {
    let mut request = good(kind);
    breaking(&mut request);
    check_all(vec![request], expect);
}

fn section(request: &mut Request, name: &str, content: &str) {
    if let Some(Turn::User(parts)) = request.turns.first_mut() {
        parts.push(format!("<{name}>\n{content}\n</{name}>\n"));
    }
}

fn tool(request: &mut Request, name: &str) {
    request.tools.push(Tool { name: name.into(), schema: json!({"type": "object"}), strict: false });
}

#[test]
fn what_is_right_passes() {
    for kind in prompt::KINDS {
        check_all(vec![good(kind.name())], &[]);
    }
    let mut plan = good("plan");
    tool(&mut plan, "journal");
    tool(&mut plan, "submit");
    calls(&mut plan, &[("a", "r1.plan.t1.0", "journal")]);
    let mut expert = good("investigate");
    calls(&mut expert, &[("b", "r1.investigate.net.t1.0", "search"), ("c", "r1.investigate.net.t1.1", "sql")]);
    expert.turns.push(Turn::User(vec!["The answer has 1 error: …".into()]));
    check_all(vec![plan, expert], &[]);
}

#[test]
fn forbidden_parts_of_a_view_are_found() {
    broken("plan", |r| section(r, "findings", "[]"), &["1 view: plan may not see a section findings"]);
    broken("investigate", |r| section(r, "review", "{}"), &["1 view: investigate may not see a section review"]);
    broken("investigate", |r| section(r, "timeline", "{}"), &["1 view: investigate may not see a section timeline"]);
    broken("review", |r| section(r, "alert", "{}"), &["1 view: review may not see a section alert"]);
    broken("decide", |r| section(r, "journal", "x"), &["1 view: section journal comes twice"]);
    check_all(vec![request("timeline", &[("journal", "")])], &["1 view: timeline has no section review"]);
    broken(
        "report",
        |r| section(r, "timeline", r#"{"events":[{"quote":"bytes"}]}"#),
        &["1 view: section timeline shows the Director bytes of evidence under \"quote\""],
    );
    check_all(
        vec![request(
            "review",
            &[("journal", ""), ("toolsets", "[]"), ("findings", r#"[{"id":"r1-net-1"},{"id":"r2-net-1"}]"#)],
        )],
        &["1 view: findings of more than one round: {\"r1\", \"r2\"}"],
    );
}

#[test]
fn forbidden_tools_and_results_are_found() {
    broken("timeline", |r| tool(r, "list_toolsets"), &["1 tools: timeline may not be offered list_toolsets"]);
    broken("plan", |r| tool(r, "search"), &["1 tools: plan may not be offered search"]);
    broken("investigate", |r| tool(r, "journal"), &["1 tools: investigate may not be offered journal"]);
    broken("review", |r| tool(r, "search"), &["1 tools: review may not be offered search"]);
    broken(
        "decide",
        |r| calls(r, &[("a", "r1.decide.t1.0", "search")]),
        &["1 view: decide may not see a result of search"],
    );
}

#[test]
fn text_that_could_close_a_section_is_found() {
    broken("timeline", |r| section(r, "timeline", r#"{"a":"<b>"}"#), &["1 escape: section timeline holds a bare <"]);
    broken(
        "plan",
        |r| section(r, "timeline", "{} {}"),
        &["1 escape: section timeline is not one JSON document: trailing characters at line 1 column 4"],
    );
}

#[test]
fn calls_without_results_and_the_reverse_are_found() {
    broken(
        "investigate",
        |r| {
            calls(r, &[("a", "r1.investigate.net.t1.0", "search")]);
            if let Some(Turn::Results(answers)) = r.turns.last_mut() {
                answers[0].id = "z".into();
            }
        },
        &["1 pairs: turn 1: call a of search has no result", "1 pairs: turn 2: result of z has no call before it"],
    );
    broken(
        "investigate",
        |r| {
            calls(r, &[("a", "r1.investigate.net.t1.0", "search")]);
            if let Some(Turn::Results(answers)) = r.turns.last_mut() {
                answers.push(answers[0].clone());
            }
        },
        &["1 pairs: turn 2: call a has two results"],
    );
}

#[test]
fn wrong_roles_are_found() {
    broken("plan", |r| r.turns.push(Turn::User(vec!["x".into()])), &["1 roles: turns 0 and 1 are of the same side"]);
    broken(
        "plan",
        |r| r.turns.push(Turn::Assistant { text: "x".into(), calls: Vec::new() }),
        &["1 roles: the last turn is the model's own"],
    );
    broken(
        "plan",
        |r| {
            r.turns.insert(0, Turn::Assistant { text: "hello".into(), calls: Vec::new() });
        },
        &[
            "1 history: turn 1 holds another prompt",
            "1 roles: the first turn is not the prompt of the task",
            "1 view: plan has no section alert",
            "1 view: plan has no section journal",
            "1 view: plan has no section roster",
        ],
    );
}

#[test]
fn anything_of_an_earlier_invocation_is_found() {
    broken(
        "investigate",
        |r| calls(r, &[("a", "r1.investigate.net.t1.0", "search"), ("b", "r2.investigate.net.t1.0", "search")]),
        &["1 history: results of r1.investigate.net and of r2.investigate.net in one task"],
    );
    broken(
        "plan",
        |r| calls(r, &[("a", "r1.report.t1.0", "journal")]),
        &["1 history: results of task r1.report in a task of kind plan"],
    );
    broken(
        "plan",
        |r| {
            if let Some(Turn::User(parts)) = r.turns.first_mut() {
                parts.push("result of call r1.investigate.net.t1.0 (search), 2 bytes, whole".into());
            }
        },
        &[
            "1 history: part 1 of the prompt holds a tool result: result of call r1.investigate.net.t1.0 (search), 2 bytes, whole",
        ],
    );
    let mut first = good("investigate");
    calls(&mut first, &[("a", "r1.investigate.net.t1.0", "search")]);
    let mut second = good("investigate");
    section(&mut second, "question", "{\"other\":1}");
    calls(&mut second, &[("a", "r1.investigate.net.t1.0", "search")]);
    check_all(
        vec![first, second],
        &["2 history: call a belongs to the conversation of request 1", "2 view: section question comes twice"],
    );
}

#[test]
fn secrets_size_and_changed_systems_are_found() {
    broken(
        "plan",
        |r| r.bytes = Bytes::from(json!({"x": SECRET}).to_string()),
        &["1 secret: planted secret 0 is in the body"],
    );
    broken("plan", |r| r.max_output = Some(2000), &["1 window: 2028 tokens with the reply, the window has 1000"]);
    broken(
        "plan",
        |r| r.system = "You are helpful".into(),
        &["1 kind: the system prompt does not begin with the kind of task"],
    );
    let mut other = good("plan");
    other.system.push_str(" of today");
    check_all(
        vec![good("plan"), other],
        &["2 system: the system prompt is not that of request 1, of the same kind and model"],
    );
}
