//! Replies in each format, whole and streamed, say the same.

use serde_json::json;

use super::client::{Got, Talk};
use crate::model::play::{Ask, Play, Reply, Script, Stop};
use crate::model::request::Turn;
use crate::model::{Options, Provider, Request, Server};

/// Always the same reply.
struct Always(Reply);

impl Script for Always {
    fn reply(&self, _: &Request) -> Play {
        Play::Reply(self.0.clone())
    }
}

fn schema() -> serde_json::Value {
    json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": false})
}

/// What each format gives for a reply, whole and streamed.
fn check(reply: Reply, stops: [&str; 3]) {
    let server = Server::start(Always(reply.clone()), Options::default()).unwrap();
    for (provider, stop) in Provider::ALL.into_iter().zip(stops) {
        let mut talk = Talk::new(provider, "You are a test.", "Hello");
        talk.tools = vec![("search".into(), schema())];
        let mut seen: Vec<Got> = Vec::new();
        for stream in [false, true] {
            talk.stream = stream;
            let got = talk.ask(&server.url());
            assert_eq!(got.text, reply.text, "{provider:?} {stream}");
            assert_eq!(got.stop, stop, "{provider:?} {stream}");
            let calls: Vec<Ask> =
                got.calls.iter().map(|c| Ask { name: c.name.clone(), arguments: c.arguments.clone() }).collect();
            assert_eq!(calls, reply.calls, "{provider:?} {stream}");
            seen.push(got);
        }
        let (input, _, output) = seen[0].tokens;
        assert!(input > 0 && output > 0, "{provider:?} {:?}", seen[0]);
        assert_eq!(seen[1].tokens.2, output, "{provider:?}");
    }
}

#[test]
fn a_text() {
    check(Reply::text("é".repeat(2000)), ["end_turn", "stop", "completed"]);
}

#[test]
fn tool_calls() {
    let call =
        |n: u32| Ask { name: "search".into(), arguments: format!("{{\"a\":\"{}\"}}", n.to_string().repeat(700)) };
    check(Reply::calls(vec![call(1), call(2)]), ["tool_use", "tool_calls", "completed"]);
}

#[test]
fn a_text_with_a_tool_call() {
    let calls = vec![Ask { name: "search".into(), arguments: "{}".into() }];
    check(Reply { text: "Let me look.".into(), calls, stop: Stop::Done }, ["tool_use", "tool_calls", "completed"]);
}

#[test]
fn a_reply_cut_at_the_limit() {
    check(Reply { stop: Stop::Length, ..Reply::text("{\"a\":") }, ["max_tokens", "length", "incomplete"]);
}

#[test]
fn a_refusal() {
    check(Reply { stop: Stop::Refusal, ..Reply::text("I cannot.") }, ["refusal", "stop", "completed"]);
}

#[test]
fn what_is_sent_is_what_the_script_reads() {
    let server = Server::start(Always(Reply::text("ok")), Options::default()).unwrap();
    for provider in Provider::ALL {
        let mut talk = Talk::new(provider, "You are a test.", "Hello");
        talk.tools = vec![("search".into(), schema())];
        talk.format = Some(("plan".into(), schema()));
        let call =
            |id: &str| crate::model::request::Call { id: id.into(), name: "search".into(), arguments: "{}".into() };
        let got = Got { text: "Look.".into(), calls: vec![call("c1"), call("c2")], ..Got::default() };
        talk.go_on(&got, vec!["one".into(), "two".into()]);
        talk.turns.push(Turn::User(vec!["Go on.".into(), "Please.".into()]));
        talk.ask(&server.url());
        let captured = server.log().captured();
        let request = &captured.last().unwrap().request;
        assert_eq!((request.provider, request.model.as_str(), request.key.as_str()), (provider, "m-1", "key-1"));
        assert_eq!((request.system.as_str(), request.max_output), ("You are a test.", Some(1000)));
        assert_eq!(request.turns, talk.turns, "{provider:?}");
        assert_eq!(request.tools.iter().map(|t| (&*t.name, &t.schema)).collect::<Vec<_>>(), [("search", &schema())]);
        assert_eq!(request.format.as_ref().map(|(_, schema)| schema), Some(&schema()));
        assert_eq!(request.bytes, talk.body().to_string().as_bytes());
    }
}
