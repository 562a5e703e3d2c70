//! Classifies a reply.

use casebook_protocol::{Purpose, one_line};
use serde_json::Value;

use crate::model::dialogue::MOST_CALLS;
use crate::model::{Called, Reply, Stop};
use crate::reasoner::CallRequest;

#[derive(Debug, PartialEq)]
pub(super) enum Reading {
    /// Tool calls alone.
    Calls,
    Object(Value),
    Nothing(String),
    Refused,
}

/// The tool calls of a reply, which are made before its answer is taken. `submit` is the tool for an answer.
pub(super) fn calls(reply: &Reply, purpose: Purpose, submit: &str) -> Vec<CallRequest> {
    let calls = reply.calls.iter().take(MOST_CALLS).filter(|call| call.tool != submit);
    if purpose == Purpose::Turn { calls.map(request).collect() } else { Vec::new() }
}

/// Reads the `reply` to a request for `purpose`.
pub(super) fn read(reply: &Reply, purpose: Purpose, submit: &str) -> Reading {
    if reply.stop == Stop::Refused {
        return Reading::Refused;
    }
    if let Some(call) = reply.calls.iter().find(|c| c.tool == submit) {
        return match serde_json::from_str(&call.arguments) {
            Ok(object) => Reading::Object(object),
            Err(error) => Reading::Nothing(unreadable(reply, &error)),
        };
    }
    let text = reply.text.trim();
    if !reply.calls.is_empty() {
        let object = serde_json::from_str(fenced(text).unwrap_or(text)).ok().filter(Value::is_object);
        return match (purpose, object) {
            (Purpose::Turn, Some(object)) => Reading::Object(object),
            (Purpose::Turn, None) => Reading::Calls,
            (Purpose::Last | Purpose::Repair, _) => {
                Reading::Nothing("tools can no longer be called; answer with what you have".into())
            }
        };
    }
    if text.is_empty() {
        return Reading::Nothing(match reply.stop {
            Stop::Length => cut(),
            _ => "your reply has no answer".into(),
        });
    }
    match serde_json::from_str(fenced(text).unwrap_or(text)) {
        Ok(object) => Reading::Object(object),
        Err(error) => Reading::Nothing(unreadable(reply, &error)),
    }
}

fn unreadable(reply: &Reply, error: &serde_json::Error) -> String {
    match reply.stop {
        Stop::Length => cut(),
        _ => format!("the answer is not one JSON object: {}", one_line(&error.to_string(), 200)),
    }
}

fn cut() -> String {
    "the answer was cut at the limit of tokens; give a shorter answer with the most important points".into()
}

/// The content of the only code fence in `text`.
fn fenced(text: &str) -> Option<&str> {
    let mut pieces = text.split("```");
    let (_, inner, _, None) = (pieces.next()?, pieces.next()?, pieces.next()?, pieces.next()) else { return None };
    Some(inner.strip_prefix("json").unwrap_or(inner).trim())
}

fn request(call: &Called) -> CallRequest {
    let arguments = if call.arguments.trim().is_empty() { "{}".to_owned() } else { call.arguments.clone() };
    CallRequest { tool: call.tool.clone(), arguments }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str, stop: Stop) -> Reply {
        Reply { text: text.into(), calls: vec![], stop, kept: None }
    }

    fn called(tools: &[(&str, &str)]) -> Reply {
        let calls = tools.iter().map(|(tool, arguments)| Called {
            id: "1".into(),
            tool: (*tool).into(),
            arguments: (*arguments).into(),
        });
        Reply { text: String::new(), calls: calls.collect(), stop: Stop::Done, kept: None }
    }

    #[test]
    fn an_object_counts_bare_in_one_fence_or_submitted() {
        let object = Reading::Object(serde_json::json!({"a": 1}));
        assert_eq!(read(&said(r#" {"a": 1} "#, Stop::Done), Purpose::Turn, "submit"), object);
        assert_eq!(read(&said("Here:\n```json\n{\"a\": 1}\n```\nDone.", Stop::Done), Purpose::Last, "submit"), object);
        assert_eq!(read(&called(&[("search", "{}"), ("submit", r#"{"a":1}"#)]), Purpose::Turn, "submit"), object);
    }

    #[test]
    fn what_is_no_answer_says_why() {
        let why = |reply: &Reply, purpose| match read(reply, purpose, "submit") {
            Reading::Nothing(why) => why,
            other => panic!("{other:?}"),
        };
        assert!(why(&said("", Stop::Done), Purpose::Turn).contains("no answer"));
        assert!(why(&said("I think it is fine.", Stop::Done), Purpose::Turn).contains("not one JSON object"));
        assert!(why(&said("{\"a\": [1, ", Stop::Length), Purpose::Turn).contains("cut at the limit"));
        assert!(why(&said("```{}``` or ```{}```", Stop::Done), Purpose::Turn).contains("not one JSON"));
        assert!(why(&called(&[("search", "{}")]), Purpose::Last).contains("can no longer be called"));
        assert!(why(&called(&[("submit", "{")]), Purpose::Turn).contains("not one JSON object"));
    }

    #[test]
    fn calls_count_while_tools_are_offered_and_a_refusal_always_does() {
        let asked = vec![CallRequest { tool: "search".into(), arguments: "{}".into() }];
        let one = called(&[("search", "")]);
        assert_eq!(
            (read(&one, Purpose::Turn, "submit"), calls(&one, Purpose::Turn, "submit")),
            (Reading::Calls, asked)
        );
        assert_eq!(read(&said("{}", Stop::Refused), Purpose::Turn, "submit"), Reading::Refused);
        let many: Vec<_> = std::iter::repeat_n(("search", "{}"), 1000).collect();
        assert_eq!(calls(&called(&many), Purpose::Turn, "submit").len(), MOST_CALLS);
    }

    #[test]
    fn calls_and_an_answer_may_stand_in_one_reply() {
        let object = Reading::Object(serde_json::json!({"a": 1}));
        let submitted = called(&[("journal", "{}"), ("submit", r#"{"a":1}"#), ("search", "{}")]);
        let native = Reply { text: r#"{"a":1}"#.into(), ..called(&[("journal", "{}"), ("search", "{}")]) };
        for reply in [submitted, native] {
            assert_eq!(read(&reply, Purpose::Turn, "submit"), object);
            let made = calls(&reply, Purpose::Turn, "submit");
            assert_eq!(made.iter().map(|c| c.tool.as_str()).collect::<Vec<_>>(), ["journal", "search"]);
            assert_eq!(calls(&reply, Purpose::Last, "submit"), []);
        }
        let prose = Reply { text: "I look.".into(), ..called(&[("search", "{}")]) };
        assert_eq!(read(&prose, Purpose::Turn, "submit"), Reading::Calls);
    }
}
