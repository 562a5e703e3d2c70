//! What a provider refuses, in its own words.

use serde_json::{Value, json};

use super::client::{Talk, post};
use crate::model::brain::Brain;
use crate::model::request::{Call, Turn};
use crate::model::{Options, Provider, Server};

fn server() -> Server {
    Server::start(Brain::default(), Options { keys: vec!["key-1".into()], window: Some(8000), ..Options::default() })
        .unwrap()
}

fn good(provider: Provider) -> Talk {
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": false});
    let mut talk = Talk::new(provider, "You are a test.", "Hello");
    talk.tools = vec![("search".into(), schema.clone())];
    talk.format = Some(("plan".into(), schema));
    talk
}

/// The status and message that a request gets after `change`.
fn check(provider: Provider, change: impl FnOnce(&mut Value), expect: &str) {
    let server = server();
    let mut body = good(provider).body();
    change(&mut body);
    let (status, text) = post(&server.url(), provider, "key-1", &body);
    let answer: Value = serde_json::from_str(&text).unwrap();
    let message = answer.pointer("/error/message").and_then(Value::as_str).unwrap_or("no error");
    assert_eq!(format!("{status} {message}"), expect, "{text}");
    assert_eq!(answer.get("type") == Some(&json!("error")), provider == Provider::Anthropic, "the form of {text}");
    assert_eq!(server.log().counts().rejected, 1);
    assert_eq!(server.log().rejected()[0].message, message);
}

#[test]
fn keys_are_checked_in_the_providers_form() {
    let server = server();
    for (provider, wrong) in Provider::ALL.into_iter().zip([
        r#"{"error":{"message":"invalid x-api-key","type":"authentication_error"},"request_id""#,
        r#"{"error":{"code":"invalid_api_key","message":"Incorrect API key provided.","param":null,"type":"invalid_request_error"}}"#,
        r#"{"error":{"code":"invalid_api_key","message":"Incorrect API key provided.","param":null,"type":"invalid_request_error"}}"#,
    ]) {
        let body = good(provider).body();
        let (status, text) = post(&server.url(), provider, "key-2", &body);
        let sorted = casebook_protocol::hash::canonical_json(&serde_json::from_str(&text).unwrap());
        assert!(status == 401 && sorted.starts_with(wrong), "{status} {sorted}");
        assert_eq!(post(&server.url(), provider, "", &body).0, 401);
        assert_eq!(post(&server.url(), provider, "key-1", &body).0, 200);
    }
}

#[test]
fn unknown_and_missing_fields_are_refused() {
    let unknown = |body: &mut Value| body["banana"] = json!(1);
    check(Provider::Anthropic, unknown, "400 banana: Extra inputs are not permitted");
    check(Provider::Chat, unknown, "400 Unknown parameter: 'banana'.");
    check(Provider::Responses, unknown, "400 Unknown parameter: 'banana'.");
    let no_model = |body: &mut Value| drop(body.as_object_mut().unwrap().remove("model"));
    check(Provider::Anthropic, no_model, "400 model: Field required");
    check(Provider::Chat, no_model, "400 Missing required parameter: 'model'.");
    check(
        Provider::Anthropic,
        |body| drop(body.as_object_mut().unwrap().remove("max_tokens")),
        "400 max_tokens: Field required",
    );
    check(
        Provider::Anthropic,
        |body| body["messages"][0]["content"][0]["colour"] = json!("red"),
        "400 messages.0.content.0.colour: Extra inputs are not permitted",
    );
    check(
        Provider::Chat,
        |body| body["tools"][0]["function"]["colour"] = json!("red"),
        "400 Unknown parameter: 'tools[0].function.colour'.",
    );
    check(Provider::Responses, |body| body["response_format"] = json!({}), "400 Unknown parameter: 'response_format'.");
    check(
        Provider::Anthropic,
        |body| body["messages"][0]["content"][0]["text"] = json!(""),
        "400 messages.0.content.0: text content blocks must be non-empty",
    );
}

#[test]
fn calls_without_results_and_results_without_calls_are_refused() {
    let mut talk = good(Provider::Anthropic);
    let call = Call { id: "c1".into(), name: "search".into(), arguments: "{}".into() };
    talk.turns.push(Turn::Assistant { text: String::new(), calls: vec![call] });
    talk.turns.push(Turn::User(vec!["And?".into()]));
    let server = server();
    for (provider, expect) in Provider::ALL.into_iter().zip([
        "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: c1.",
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: c1",
        "No tool output found for function call c1.",
    ]) {
        talk.provider = provider;
        let (status, text) = post(&server.url(), provider, "key-1", &talk.body());
        assert!(status == 400 && text.contains(expect), "{provider:?} {text}");
    }
    let answer = crate::model::request::Answer { id: "c9".into(), text: "x".into() };
    talk.turns.truncate(1);
    talk.turns.push(Turn::Results(vec![answer]));
    for (provider, expect) in Provider::ALL.into_iter().zip([
        "messages.1.content: unexpected `tool_use_id` found in `tool_result` blocks: c9.",
        "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.",
        "No tool call found for function call output with call_id c9.",
    ]) {
        talk.provider = provider;
        let (status, text) = post(&server.url(), provider, "key-1", &talk.body());
        assert!(status == 400 && text.contains(expect), "{provider:?} {text}");
    }
}

#[test]
fn anthropic_wants_tools_defined_where_they_were_used() {
    let mut talk = good(Provider::Anthropic);
    let calls = vec![Call { id: "c1".into(), name: "search".into(), arguments: "{}".into() }];
    talk.turns.push(Turn::Assistant { text: String::new(), calls });
    talk.turns.push(Turn::Results(vec![crate::model::request::Answer { id: "c1".into(), text: "x".into() }]));
    talk.tools.clear();
    let server = server();
    let expect = "Requests which include `tool_use` or `tool_result` blocks must define tools.";
    let (status, text) = post(&server.url(), Provider::Anthropic, "key-1", &talk.body());
    assert!(status == 400 && text.contains(expect), "{text}");
    talk.provider = Provider::Chat;
    assert_eq!(post(&server.url(), Provider::Chat, "key-1", &talk.body()).0, 200);
}

#[test]
fn schemas_to_be_enforced_are_in_the_strict_subset() {
    let fault = "In context=(properties, a), 'minLength' is not permitted";
    let limited = json!({"type": "string", "minLength": 1});
    check(
        Provider::Anthropic,
        |body| body["output_config"]["format"]["schema"]["properties"]["a"] = limited.clone(),
        &format!("400 output_config.format.schema: {fault}"),
    );
    check(
        Provider::Chat,
        |body| body["response_format"]["json_schema"]["schema"]["properties"]["a"] = limited.clone(),
        &format!("400 Invalid schema for response_format 'plan': {fault}"),
    );
    check(
        Provider::Responses,
        |body| body["text"]["format"]["schema"]["properties"]["a"] = limited.clone(),
        &format!("400 Invalid schema for response_format 'plan': {fault}"),
    );
    check(
        Provider::Responses,
        |body| {
            body["tools"][0]["strict"] = json!(true);
            body["tools"][0]["parameters"]["properties"]["a"] = limited.clone();
        },
        &format!("400 Invalid schema for function 'search': {fault}"),
    );
}

#[test]
fn a_choice_needs_the_tool_that_it_names() {
    check(
        Provider::Anthropic,
        |body| body["tool_choice"] = json!({"type": "tool", "name": "submit"}),
        "400 tool_choice: Tool 'submit' not found in provided tools",
    );
    check(
        Provider::Chat,
        |body| body["tool_choice"] = json!({"type": "function", "function": {"name": "submit"}}),
        "400 Tool choice 'function' 'submit' not found in 'tools' parameter.",
    );
    check(
        Provider::Chat,
        |body| {
            body["tool_choice"] = json!("none");
            body.as_object_mut().unwrap().remove("tools");
        },
        "400 Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified.",
    );
}

#[test]
fn a_prompt_beyond_the_window_is_refused() {
    let long = "x".repeat(40_000);
    let system = long.clone();
    check(
        Provider::Anthropic,
        |body| body["system"][0]["text"] = json!(system),
        "400 prompt is too long: 11053 tokens > 8000 maximum",
    );
    let server = server();
    let mut talk = good(Provider::Chat);
    talk.system = long;
    let (status, text) = post(&server.url(), Provider::Chat, "key-1", &talk.body());
    assert!(status == 400 && text.contains("context_length_exceeded"), "{text}");
}

#[test]
fn too_many_marks_and_what_is_no_request_are_refused() {
    check(
        Provider::Anthropic,
        |body| {
            let block = json!({"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}});
            body["system"] = json!([block, block, block, block, block]);
        },
        "400 A maximum of 4 blocks with cache_control may be provided. Found 5.",
    );
    check(Provider::Chat, |body| *body = json!([]), "400 Input should be an object");
    let server = server();
    let (status, _) = super::client::run(async {
        casebook_runtime::tls::install();
        let response = reqwest::Client::new().get(format!("{}/v1/messages", server.url())).send().await.unwrap();
        (response.status().as_u16(), ())
    });
    assert_eq!(status, 404);
}
