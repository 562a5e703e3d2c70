use std::sync::Arc;

use hyper::body::Bytes;
use serde_json::json;

use super::*;
use crate::model::cache::{Counted, Prefix};
use crate::model::request::{Answer, Call, Tool};

const SECRET: &str = "sk-planted-\"1\"";

/// A change that breaks a rule.
type Break = Box<dyn FnOnce(&mut Request)>;

/// A request of a kind of task as it should be.
fn good(kind: TaskKind) -> Request {
    let sections = match kind {
        TaskKind::Investigate => {
            "<alert>\n{}\n</alert>\n<sources>\n[]\n</sources>\n<journal>\n</journal>\n<question>\n{}\n</question>"
        }
        TaskKind::Review => {
            "<alert>\n{}\n</alert>\n<question>\n{}\n</question>\n<journal>\n</journal>\n<toolsets>\n[]\n</toolsets>\n<findings>\n[{\"id\":\"r1-net-1\"}]\n</findings>"
        }
        TaskKind::Timeline => "<journal>\n</journal>\n<review>\n{}\n</review>",
        _ => {
            "<alert>\n{\"raw\":\"the sender's\"}\n</alert>\n<journal>\n#1 x\n</journal>\n<roster>\n[]\n</roster>\n<review>\n{}\n</review>"
        }
    };
    let name = kind.name();
    let mut request = Request::of(Provider::Anthropic, &json!({"model": "m"}), Prefix::new(false));
    request.system = format!("Casebook task: {name} (prompt {name} 1)\nrules");
    request.turns = vec![Turn::User(vec![sections.to_owned()])];
    request
}

fn violations(requests: Vec<Request>) -> Vec<String> {
    let wrap = |(number, request): (u64, Request)| Captured {
        number,
        kind: prompt::kind(&request.system),
        task: None,
        place: request.place(),
        attempt: 1,
        prompt: Counted::default(),
        request: Arc::new(request),
    };
    let captured: Vec<Captured> = (1..).zip(requests).map(wrap).collect();
    let found = check(&captured, &[SECRET.to_owned()]);
    found.iter().map(|v| format!("{} {}: {}", v.number, v.rule, v.detail)).collect()
}

/// Adds to the prompt.
fn part(text: &'static str) -> Break {
    Box::new(move |request| request.turns.insert(1, Turn::User(vec![text.to_owned()])))
}

fn section(name: &'static str, content: &'static str) -> Break {
    Box::new(move |request| {
        if let Some(Turn::User(parts)) = request.turns.first_mut() {
            parts.push(if name.is_empty() { content.into() } else { format!("<{name}>\n{content}\n</{name}>\n") });
        }
    })
}

fn tool(name: &'static str) -> Break {
    Box::new(|request| request.tools.push(Tool { name: name.into(), schema: json!({}), strict: false }))
}

/// Adds calls and their results, by our own ids.
fn calls(results: &'static [(&'static str, &'static str)]) -> Break {
    Box::new(|request| {
        let name = |tool: &str| Call { id: tool.into(), name: tool.into(), arguments: "{}".into() };
        let calls = results.iter().map(|(_, tool)| name(tool)).collect();
        request.turns.push(Turn::Assistant { text: String::new(), calls });
        let answers = results.iter().map(|(call, tool)| Answer {
            id: (*tool).into(),
            text: format!("result of call {call} ({tool}), 2 bytes, whole\n<data-0>\n{{}}\n</data-0>"),
        });
        request.turns.push(Turn::Results(answers.collect()));
    })
}

#[test]
fn a_request_as_it_should_be_passes() {
    for kind in TaskKind::ALL {
        assert_eq!(violations(vec![good(kind)]), [""; 0]);
    }
    let mut plan = good(TaskKind::Plan);
    for change in [tool("journal"), tool("submit"), calls(&[("r1.plan.t1.0", "journal")])] {
        change(&mut plan);
    }
    assert_eq!(violations(vec![plan]), [""; 0]);
}

#[test]
fn each_broken_rule_is_found() {
    use TaskKind::{Decide, Investigate, Plan, Report, Review, Timeline};
    let system = |text: &'static str| -> Break { Box::new(move |request| request.system = text.to_owned()) };
    let secret: Break = Box::new(|request| request.bytes = Bytes::from(json!({"x": SECRET}).to_string()));
    let no_review: Break = Box::new(|request| request.turns = vec![Turn::User(vec!["<journal>\n</journal>".into()])]);
    let two_rounds: Break = Box::new(|request| {
        let Some(Turn::User(parts)) = request.turns.first_mut() else { return };
        parts[0] = parts[0].replace("[{", "[{\"id\":\"r2-net-1\"},{");
    });
    let cases = [
        (Plan, section("findings", "[]"), "view: plan may not see a section findings"),
        (Investigate, section("review", "{}"), "view: investigate may not see a section review"),
        (Investigate, section("timeline", "{}"), "view: investigate may not see a section timeline"),
        (Review, section("roster", "{}"), "view: review may not see a section roster"),
        (Decide, section("journal", "x"), "view: section journal comes twice"),
        (Timeline, no_review, "view: timeline has no section review"),
        (
            Report,
            section("timeline", r#"{"events":[{"quote":"bytes"}]}"#),
            "view: section timeline shows the Director bytes of evidence under \"quote\"",
        ),
        (Review, two_rounds, "view: findings of more than one round: {\"r1\", \"r2\"}"),
        (Timeline, tool("list_toolsets"), "tools: timeline may not be offered list_toolsets"),
        (Plan, tool("search"), "tools: plan may not be offered search"),
        (Investigate, tool("journal"), "tools: investigate may not be offered journal"),
        (Review, tool("search"), "tools: review may not be offered search"),
        (Decide, calls(&[("r1.decide.t1.0", "search")]), "view: decide may not see a result of search"),
        (Timeline, section("timeline", r#"{"a":"<b>"}"#), "escape: section timeline holds a bare <"),
        (
            Plan,
            section("timeline", "{} {}"),
            "escape: section timeline is not one JSON document: trailing characters at line 1 column 4",
        ),
        (Plan, part("<alert>\n{}\n</alert>"), "history: turn 1 holds another prompt"),
        (
            Investigate,
            calls(&[("r1.investigate.net.t1.0", "search"), ("r2.investigate.net.t1.0", "sql")]),
            "history: results of r1.investigate.net and of r2.investigate.net in one task",
        ),
        (Plan, calls(&[("r1.report.t1.0", "journal")]), "history: results of task r1.report in a task of kind plan"),
        (
            Plan,
            section("", "result of call r1.investigate.net.t1.0 (search)"),
            "history: part 1 of the prompt holds a tool result: result of call r1.investigate.net.t1.0 (search)",
        ),
        (Plan, secret, "secret: planted secret 0 is in the body"),
        (Plan, system("You are helpful"), "kind: the system prompt does not begin with the kind of task"),
    ];
    for (kind, change, expect) in cases {
        let mut request = good(kind);
        change(&mut request);
        assert_eq!(violations(vec![request]), [format!("1 {expect}")]);
    }
}

#[test]
fn two_requests_that_share_what_they_must_not_are_found() {
    let [mut first, mut second] = [(); 2].map(|()| good(TaskKind::Investigate));
    calls(&[("r1.investigate.net.t1.0", "search")])(&mut first);
    section("", "another task")(&mut second);
    calls(&[("r1.investigate.net.t1.0", "search")])(&mut second);
    let expect = "2 history: call search belongs to the conversation of request 1";
    assert_eq!(violations(vec![first, second]), [expect]);
    let mut other = good(TaskKind::Plan);
    other.system.push_str(" of today");
    let expect = "2 system: the system prompt is not that of request 1, of the same kind and model";
    assert_eq!(violations(vec![good(TaskKind::Plan), other]), [expect]);
}
