//! What is asked beside the body of each format.

use super::*;
use crate::model::client::codec::Codec;
use crate::model::config::Profile;
use crate::model::{Called, Format, Reply, Stop, ToolAnswer};

pub(super) fn profile(provider: &str, name: &str, more: &str) -> Profile {
    let text = format!(
        "[models.m]\nprovider = \"{provider}\"\nmodel = \"{name}\"\nbase_url = \"http://h/v1\"\nwindow = 100000\n\
         key_env = \"KEY\"\n{more}\n"
    );
    Config::parse("models.toml", &text).expect("the file holds").model("m").unwrap().clone()
}

pub(super) fn body_for(profile: &Profile, ask: &Ask) -> Value {
    serde_json::from_slice(&Codec::of(profile.provider).encode(profile, ask).body).unwrap()
}

pub(super) fn body(provider: &str, more: &str, ask: &Ask) -> Value {
    body_for(&profile(provider, "maker-1", more), ask)
}

pub(super) fn called(id: &str, arguments: &str) -> Called {
    Called { id: id.into(), tool: "search".into(), arguments: arguments.into() }
}

fn with_call() -> Reply {
    let calls = vec![called("t1", "{\"text\": \"x\"}")];
    Reply { text: "let me look".into(), calls, stop: Stop::Done, kept: None }
}

const FAILED: &str = "call r1.plan.t1.0 (search) failed\nno such source";

/// A conversation in which `reply` is followed by a failed result.
pub(super) fn conversation(reply: Reply) -> Ask {
    let id = reply.calls.first().map(|call| call.id.clone()).unwrap_or_default();
    let answer = ToolAnswer { id, tool: "search".into(), text: FAILED.into(), failed: true };
    let mut ask = ask();
    ask.messages.extend([Message::Assistant(reply), Message::Results(vec![answer])]);
    ask
}

fn native(ask: Ask) -> Ask {
    Ask { format: Some(Format { name: "plan".into(), schema: offer("x").schema }), ..ask }
}

fn only(ask: Ask) -> Ask {
    Ask { choice: Choice::Only("search".into()), ..ask }
}

/// `first` with the fields of `second`.
pub(super) fn and(mut first: Value, second: &Value) -> Value {
    first.as_object_mut().unwrap().extend(second.as_object().unwrap().clone());
    first
}

#[test]
fn each_provider_gets_its_body() {
    let schema = offer("search").schema;
    let user = format!("old\n{PROMPT}");
    let function = json!({"name": "search", "description": "what search does", "parameters": schema, "strict": true});
    let chat = |result: &Value, more: &Value| {
        let call = json!({"type": "function", "id": "t1",
            "function": {"name": "search", "arguments": "{\"text\":\"x\"}"}});
        let result = and(json!({"role": "tool", "tool_call_id": "t1", "content": FAILED}), result);
        let common = json!({"model": "maker-1", "stream": false,
            "tools": [{"type": "function", "function": function}],
            "messages": [{"role": "system", "content": "rules"}, {"role": "user", "content": user},
                {"role": "assistant", "content": "let me look", "tool_calls": [call]}, result]});
        and(common, more)
    };
    let (none, mark) = (json!({}), json!({"type": "ephemeral"}));
    let talk = conversation(with_call());
    for (provider, more, ask, expected) in [
        (
            "anthropic",
            "temperature = 0.5\ntop_p = 0.9",
            talk.clone(),
            json!({"model": "maker-1", "stream": false, "max_tokens": 1234, "temperature": 0.5, "top_p": 0.9,
                "system": [{"type": "text", "text": "rules", "cache_control": mark}],
                "tools": [{"name": "search", "description": "what search does", "input_schema": schema, "strict": true}],
                "messages": [
                    {"role": "user", "content": [{"type": "text", "text": "old", "cache_control": mark},
                        {"type": "text", "text": PROMPT}]},
                    {"role": "assistant", "content": [{"type": "text", "text": "let me look"},
                        {"type": "tool_use", "id": "t1", "name": "search", "input": {"text": "x"}}]},
                    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": FAILED,
                        "is_error": true, "cache_control": mark}]}]}),
        ),
        (
            "openai",
            "temperature = 0.5\ntop_p = 0.9\nseed = 7\neffort = \"low\"",
            only(native(talk.clone())),
            chat(
                &none,
                &json!({"temperature": 0.5, "top_p": 0.9, "seed": 7, "reasoning_effort": "low",
                    "max_completion_tokens": 1234, "prompt_cache_key": "casebook-plan-1",
                    "tool_choice": {"type": "function", "function": {"name": "search"}},
                    "response_format": {"type": "json_schema",
                        "json_schema": {"name": "plan", "strict": true, "schema": schema}}}),
            ),
        ),
        (
            "openai-responses",
            "effort = \"medium\"",
            only(native(talk.clone())),
            json!({"model": "maker-1", "stream": false, "store": false, "max_output_tokens": 1234,
                "reasoning": {"effort": "medium"}, "include": ["reasoning.encrypted_content"],
                "prompt_cache_key": "casebook-plan-1", "tool_choice": {"type": "function", "name": "search"},
                "tools": [and(json!({"type": "function"}), &function)],
                "text": {"format": {"type": "json_schema", "name": "plan", "strict": true, "schema": schema}},
                "input": [{"role": "system", "content": "rules"}, {"role": "user", "content": user},
                    {"type": "message", "role": "assistant",
                        "content": [{"type": "output_text", "text": "let me look"}]},
                    {"type": "function_call", "call_id": "t1", "name": "search", "arguments": "{\"text\":\"x\"}"},
                    {"type": "function_call_output", "call_id": "t1", "output": FAILED}]}),
        ),
        ("openai-compatible", "", talk.clone(), chat(&none, &json!({"max_tokens": 1234}))),
        (
            "gemini",
            "effort = \"max\"",
            talk.clone(),
            chat(&json!({"name": "search"}), &json!({"max_tokens": 1234, "reasoning_effort": "high"})),
        ),
        ("bedrock", "", talk, chat(&none, &json!({"max_completion_tokens": 1234}))),
    ] {
        assert_eq!(body(provider, more, &ask), expected, "{provider}");
    }
}

#[test]
fn parts_of_a_request_have_their_place_in_each_format() {
    let no_tools = Ask { tools: vec![], ..native(ask()) };
    let nothing = Ask { choice: Choice::Nothing, ..ask() };
    let long = Ask { max_output: 9999, ..ask() };
    let (forced, empty) = (only(ask()), Reply { text: " ".into(), calls: vec![], ..with_call() });
    let broken = conversation(Reply { calls: vec![called("t1", "{oops")], ..with_call() });
    let unreadable = json!({"unreadable_arguments": "{oops"});
    let mut mute = conversation(with_call());
    mute.messages.pop();
    mute.messages.push(Message::Results(vec![ToolAnswer {
        id: "t1".into(),
        tool: "search".into(),
        text: "no".into(),
        failed: true,
    }]));
    let silent = conversation(empty);
    for (provider, ask, pointer, expected) in [
        ("anthropic", &no_tools, "/output_config/format/schema", json!(offer("x").schema)),
        ("anthropic", &no_tools, "/tools", Value::Null),
        ("openai", &no_tools, "/tools", Value::Null),
        ("openai-responses", &no_tools, "/tools", Value::Null),
        ("anthropic", &forced, "/tool_choice", json!({"type": "tool", "name": "search"})),
        ("anthropic", &nothing, "/tool_choice", json!({"type": "none"})),
        ("openai", &nothing, "/tool_choice", json!("none")),
        ("openai-responses", &nothing, "/tool_choice", json!("none")),
        ("openai-responses", &nothing, "/include", Value::Null),
        ("anthropic", &long, "/max_tokens", json!(8192)),
        ("openai", &long, "/max_completion_tokens", json!(8192)),
        ("openai-responses", &long, "/max_output_tokens", json!(8192)),
        ("anthropic", &broken, "/messages/1/content/1/input", unreadable.clone()),
        ("openai", &broken, "/messages/2/tool_calls/0/function/arguments", json!(unreadable.to_string())),
        ("openai-responses", &broken, "/input/3/arguments", json!(unreadable.to_string())),
        ("anthropic", &silent, "/messages/1/content/0/text", json!("(no answer)")),
        ("openai", &silent, "/messages/2/content", json!("(no answer)")),
        ("openai-responses", &silent, "/input/2/content/0/text", json!("(no answer)")),
        ("anthropic", &mute, "/messages/2/content/0/content", json!("no")),
        ("openai", &mute, "/messages/3/content", json!("call of search failed\nno")),
        ("openai-responses", &mute, "/input/4/output", json!("call of search failed\nno")),
    ] {
        let body = body(provider, "", ask);
        assert_eq!(body.pointer(pointer).cloned().unwrap_or_default(), expected, "{provider} {pointer}");
    }
}

#[test]
fn anthropic_gets_four_marks_at_most_the_first_and_the_last() {
    let parts = || Message::User((1..=6).map(|n| part(&format!("p{n}"), true)).collect());
    let marked = |ask: &Ask| {
        let body = body("anthropic", "", ask);
        let blocks = body["messages"].as_array().unwrap().iter().flat_map(|m| m["content"].as_array().unwrap());
        let blocks = body["system"].as_array().unwrap().iter().chain(blocks);
        let marked = blocks.filter(|block| block.get("cache_control").is_some());
        marked.map(|block| block["text"].as_str().unwrap_or("result").to_owned()).collect::<Vec<_>>()
    };
    let mut ask = ask();
    ask.messages = vec![parts()];
    assert_eq!(marked(&ask), ["rules", "p5", "p6"], "one is kept for the end of the conversation, which is p6");
    assert_eq!(marked(&only(ask)), ["rules", "p4", "p5", "p6"]);
    let mut talk = conversation(with_call());
    talk.messages[0] = parts();
    assert_eq!(marked(&talk), ["rules", "p5", "p6", "result"]);
}

#[test]
fn claude_thinks_as_its_version_can() {
    let adaptive = json!({"type": "adaptive"});
    let budget = |tokens: u32| json!({"type": "enabled", "budget_tokens": tokens});
    let (off, none) = (json!({"type": "disabled"}), Value::Null);
    for (name, effort, thinking, level) in [
        ("claude-sonnet-4-5-20250929", "low", budget(1024), none.clone()),
        ("claude-haiku-4-5", "medium", budget(8000), none.clone()),
        ("claude-opus-4-20250514", "high", budget(10_000), none.clone()),
        ("claude-3-7-sonnet-latest", "max", budget(10_000), none.clone()),
        ("some-proxy", "none", none.clone(), none.clone()),
        ("claude-opus-4-5", "high", none.clone(), json!("high")),
        ("claude-opus-4-6", "medium", adaptive.clone(), json!("medium")),
        ("claude-sonnet-4-6", "xhigh", adaptive.clone(), json!("high")),
        ("anthropic.claude-opus-4.8", "xhigh", adaptive.clone(), json!("xhigh")),
        ("claude-sonnet-5", "max", adaptive.clone(), json!("max")),
        ("claude-sonnet-5", "none", off.clone(), none.clone()),
        ("claude-mythos-preview", "minimal", adaptive, json!("low")),
        ("claude-mythos-preview", "none", none.clone(), none.clone()),
    ] {
        let profile = profile("anthropic", name, &format!("effort = \"{effort}\"\nmax_output = 20000"));
        let body = body_for(&profile, &Ask { max_output: 20_000, ..ask() });
        let got = ["/thinking", "/output_config/effort"].map(|at| body.pointer(at).cloned().unwrap_or_default());
        assert_eq!(got, [thinking, level], "{name} {effort}");
        let forced = body_for(&profile, &only(ask()));
        assert!(
            forced.get("thinking").is_none_or(|thinking| *thinking == off),
            "a forced call has no thoughts: {name}"
        );
    }
    assert_eq!(body_for(&profile("anthropic", "claude-opus-4-6", ""), &ask()).get("thinking"), None);
}

#[test]
fn a_name_is_sent_as_it_is() {
    for provider in ["openai", "anthropic", "openai-responses", "gemini", "bedrock"] {
        for name in ["gpt-oss-high", "maker-low", "m-none", "org::model", "ns/model-max"] {
            let body = body_for(&profile(provider, name, ""), &ask());
            assert_eq!(body["model"], name, "{provider}");
            let effort = ["reasoning_effort", "reasoning", "thinking"].map(|key| body.get(key).cloned());
            assert_eq!(effort, [None, None, None], "{provider} {name}");
        }
    }
}
