//! Bodies that a provider takes, and one change each for which it refuses them.

use serde_json::{Value, json};

use super::*;
use crate::model::request::{Answer, Call, Turn};

/// A conversation with two calls, in each form.
fn good(provider: Provider) -> Value {
    let text = match provider {
        Provider::Anthropic => include_str!("examples/anthropic.json"),
        Provider::Chat => include_str!("examples/chat.json"),
        Provider::Responses => include_str!("examples/responses.json"),
    };
    serde_json::from_str(text).unwrap()
}

fn taken(provider: Provider, body: &Value) -> Result<Request, Refused> {
    let bytes = Bytes::from(body.to_string());
    read(provider, &Incoming { key: Some("k".into()), version: Some("2023-06-01".into()), bytes })
}

#[test]
fn the_same_conversation_is_read_from_each_form() {
    let call = |id: &str| Call { id: id.into(), name: "search".into(), arguments: "{}".into() };
    let answer = |id: &str, text: &str| Answer { id: id.into(), text: text.into() };
    let turns = [
        Turn::User(vec!["Hello".into()]),
        Turn::Assistant { text: "Look.".into(), calls: vec![call("c1"), call("c2")] },
        Turn::Results(vec![answer("c1", "one"), answer("c2", "two")]),
        Turn::User(vec!["Go on.".into(), "Please.".into()]),
    ];
    for provider in Provider::ALL {
        let request = taken(provider, &good(provider)).unwrap();
        assert_eq!(request.turns, turns, "{provider:?}");
        assert_eq!((request.system.as_str(), request.model.as_str()), ("You are a test.", "m-1"), "{provider:?}");
        assert_eq!((request.tools.len(), request.max_output), (1, Some(1000)), "{provider:?}");
        assert!(request.tools[0].strict && request.tools[0].schema == request.format.unwrap().1, "{provider:?}");
    }
}

/// The body after `value` was put at `pointer`; null takes the field away.
fn changed(mut body: Value, pointer: &str, value: Value) -> Value {
    let (place, key) = pointer.rsplit_once('/').unwrap();
    match body.pointer_mut(place).unwrap() {
        Value::Object(map) if value.is_null() => drop(map.remove(key)),
        Value::Object(map) => drop(map.insert(key.to_owned(), value)),
        Value::Array(items) if value.is_null() => drop(items.remove(key.parse().unwrap())),
        Value::Array(items) => items.insert(key.parse().unwrap(), value),
        _ => panic!("nothing at {place}"),
    }
    body
}

#[test]
fn a_body_with_one_fault_is_refused_with_its_place() {
    use Provider::{Anthropic, Chat, Responses};
    let text = |text: &str| json!({"type": "text", "text": text});
    let mark = json!({"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}});
    let long = json!({"type": "string", "minLength": 1});
    let user = json!({"role": "user", "content": "again"});
    let cases = [
        (Anthropic, "/banana", json!(1), "('banana' was unexpected)"),
        (Chat, "/banana", json!(1), "('banana' was unexpected)"),
        (Responses, "/response_format", json!({}), "('response_format' was unexpected)"),
        (Anthropic, "/model", Value::Null, "\"model\" is a required property"),
        (Anthropic, "/max_tokens", Value::Null, "\"max_tokens\" is a required property"),
        (Chat, "/max_tokens", json!(5), ": {"),
        (Responses, "/max_output_tokens", json!(15), "/max_output_tokens: value is less than the minimum of 16"),
        (Responses, "/input", Value::Null, "\"input\" is a required property"),
        (Anthropic, "/stream", json!(true), "/stream: "),
        (Anthropic, "/messages/0/content/0/colour", json!("red"), "/messages/0/content/0: Additional properties"),
        (Chat, "/tools/0/function/colour", json!("red"), "/tools/0/function: Additional properties"),
        (Responses, "/input/0/role", json!("teacher"), "/input/0"),
        (Anthropic, "/messages/0/content/0", text(""), "/messages/0/content/0/text: value is shorter than 1"),
        (Anthropic, "/messages/2/content/0", text("first"), "call c1 does not have one result in turn 2"),
        (Anthropic, "/messages/1", user, "turn 1 cannot come here"),
        (Anthropic, "/system", json!([mark, mark, mark, mark, mark]), "at most 4 blocks"),
        (Anthropic, "/tools", Value::Null, "must define tools"),
        (Anthropic, "/messages/2/content/1", Value::Null, "call c2 does not have one result in turn 2"),
        (Chat, "/messages/4", Value::Null, "call c2 does not have one result in turn 2"),
        (Responses, "/input/4", Value::Null, "call c1 does not have one result in turn 2"),
        (Chat, "/messages/2/tool_calls/1", Value::Null, "the result of c2 in turn 2 has no call before it"),
        (Responses, "/input/3", Value::Null, "the result of c2 in turn 2 has no call before it"),
        (Anthropic, "/output_config/format/schema/properties/a", long.clone(), "cannot be enforced: /properties/a"),
        (Chat, "/response_format/json_schema/schema/properties/a", long.clone(), "cannot be enforced: /properties/a"),
        (Responses, "/text/format/schema/properties/a", long, "cannot be enforced: /properties/a"),
        (Responses, "/tools/0/parameters/required", json!([]), "tool search cannot be strict: field a is not required"),
        (Responses, "/tools/0/parameters/properties/b", json!({"type": "array"}), "\"items\" is a required property"),
        (
            Chat,
            "/tools/0/function/parameters/additionalProperties",
            Value::Null,
            "\"additionalProperties\" is a required",
        ),
        (
            Anthropic,
            "/tool_choice",
            json!({"type": "tool", "name": "submit"}),
            "tool_choice names submit, no such tool",
        ),
        (Chat, "/tools", json!([]), "/tools: value has less than 1 item"),
    ];
    for (provider, pointer, value, expect) in cases {
        let refused = taken(provider, &changed(good(provider), pointer, value)).unwrap_err();
        assert!(refused.message.contains(expect), "{provider:?} {pointer}: {}", refused.message);
        assert_eq!(refused.status, 400);
    }
}
