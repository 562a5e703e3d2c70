//! Replies of each format beside what is read, and what of them goes back.

use super::formats::{and, body, body_for, called, conversation, profile};
use super::*;
use crate::model::client::codec::{Codec, Decoded};
use crate::model::{Reply, Stop};

fn read(provider: &str, json: &Value) -> Result<Decoded, Failed> {
    let profile = profile(provider, "maker-1", "");
    Codec::of(profile.provider).decode(&profile, json)
}

fn reply(provider: &str, json: &Value) -> Reply {
    read(provider, json).unwrap_or_else(|error| panic!("{error:?}: {json}")).reply
}

fn anthropic(content: &Value, stop: &str) -> Value {
    json!({"type": "message", "model": "maker-1-0613", "content": content, "stop_reason": stop,
        "usage": {"input_tokens": 10, "cache_creation_input_tokens": 20, "cache_read_input_tokens": 70,
            "output_tokens": 5}})
}

fn chat(message: &Value, finish: &str) -> Value {
    json!({"object": "chat.completion", "model": "maker-1-0613",
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 5, "total_tokens": 105,
            "prompt_tokens_details": {"cached_tokens": 70}}})
}

fn responses(output: &Value, status: &str) -> Value {
    json!({"object": "response", "status": status, "model": "maker-1-0613", "error": null, "output": output,
        "usage": {"input_tokens": 100, "input_tokens_details": {"cached_tokens": 70}, "output_tokens": 5}})
}

#[test]
fn a_reply_is_read_the_same_from_each_format() {
    let arguments = "{\"text\": \"y\"}";
    let function = |id: &str| json!({"id": id, "function": {"name": "search", "arguments": arguments}});
    let item = |id: &str| json!({"type": "function_call", "call_id": id, "name": "search", "arguments": arguments});
    let block = |id: &str| json!({"type": "tool_use", "id": id, "name": "search", "input": arguments});
    let (text, said) = (json!({"type": "text", "text": "so"}), json!({"type": "output_text", "text": "so"}));
    let message = json!({"type": "message", "content": [said]});
    for (provider, json, cache_written) in [
        ("anthropic", anthropic(&json!([text, block("t1"), block("t2")]), "tool_use"), 20),
        ("openai", chat(&json!({"content": "so", "tool_calls": [function("t1"), function("t2")]}), "tool_calls"), 0),
        ("gemini", chat(&json!({"content": [text], "tool_calls": [function("t1"), function("t2")]}), "stop"), 0),
        ("openai-responses", responses(&json!([message, item("t1"), item("t2")]), "completed"), 0),
    ] {
        let Decoded { version, reply, tokens } = read(provider, &json).unwrap();
        let calls = vec![called("t1", arguments), called("t2", arguments)];
        assert_eq!(reply, Reply { text: "so".into(), calls, stop: Stop::Done, kept: None }, "{provider}");
        assert_eq!(version, "maker-1-0613");
        assert_eq!(tokens, Tokens { input: 100, cached: 70, cache_written, output: 5 }, "{provider}");
    }
}

#[test]
fn arguments_that_are_not_json_cost_nothing_else() {
    let call = |id: &str, arguments: Value| json!({"id": id, "function": {"name": "search", "arguments": arguments}});
    let calls = json!([call("t1", json!("{\"text\": ")), call("t2", json!("")), call("t3", json!("\"word\"")),
        {"function": {"name": "search", "arguments": {"text": "z"}}}]);
    let reply = reply("openai-compatible", &chat(&json!({"content": "both", "tool_calls": calls}), "tool_calls"));
    assert_eq!(reply.text, "both");
    let expected = [("t1", "{\"text\": "), ("t2", "{}"), ("t3", "\"word\""), ("call_3", "{\"text\":\"z\"}")];
    assert_eq!(reply.calls, expected.map(|(id, arguments)| called(id, arguments)));
}

#[test]
fn why_a_model_stopped_is_the_same_for_all() {
    let text = json!({"content": "x"});
    let block = json!([{"type": "text", "text": "x"}]);
    let item = json!([{"type": "message", "content": [{"type": "output_text", "text": "x"}]}]);
    let refused = json!([{"type": "message", "content": [{"type": "refusal", "refusal": "x"}]}]);
    let filtered = and(responses(&item, "incomplete"), &json!({"incomplete_details": {"reason": "content_filter"}}));
    let malformed = "function_call_filter: MALFORMED_FUNCTION_CALL";
    for (provider, json, stop) in [
        ("openai", chat(&text, "stop"), Stop::Done),
        ("openai", chat(&text, "length"), Stop::Length),
        ("openai", chat(&text, "content_filter"), Stop::Refused),
        ("openai", chat(&text, "weather"), Stop::Other("weather".into())),
        ("openai", chat(&json!({"content": null, "refusal": "x"}), "stop"), Stop::Refused),
        ("gemini", chat(&text, "content_filter: RECITATION"), Stop::Refused),
        ("gemini", chat(&text, malformed), Stop::Other(malformed.into())),
        ("anthropic", anthropic(&block, "max_tokens"), Stop::Length),
        ("anthropic", anthropic(&block, "refusal"), Stop::Refused),
        ("anthropic", anthropic(&block, "pause_turn"), Stop::Other("pause_turn".into())),
        ("openai-responses", responses(&item, "incomplete"), Stop::Length),
        ("openai-responses", filtered, Stop::Refused),
        ("openai-responses", responses(&refused, "completed"), Stop::Refused),
    ] {
        let reply = reply(provider, &json);
        assert_eq!((reply.stop, reply.text.as_str()), (stop, "x"), "{json}");
    }
    let blocked = json!({"choices": [{"index": 0, "finish_reason": "content_filter: PROHIBITED_CONTENT"}]});
    assert_eq!(reply("gemini", &blocked).stop, Stop::Refused, "Gemini leaves the message out");
}

#[test]
fn thoughts_go_back_as_they_came_and_to_no_other_model() {
    let arguments = "{\"text\":\"x\"}";
    let blocks = json!([{"type": "thinking", "thinking": "hm", "signature": "sig=="},
        {"type": "redacted_thinking", "data": "sig=="}, {"type": "text", "text": "so"},
        {"type": "tool_use", "id": "t1", "name": "search", "input": {"text": "x"}}]);
    let function = json!({"name": "search", "arguments": arguments});
    let call = json!({"type": "function", "id": "t1", "function": function});
    let signed = and(call.clone(), &json!({"extra_content": {"google": {"thought_signature": "sig=="}}}));
    let message = |more: Value| and(json!({"role": "assistant", "content": "so", "tool_calls": [call]}), &more);
    let sealed = |more: &Value| and(json!({"type": "reasoning", "encrypted_content": "sig==", "summary": []}), more);
    let said = json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "so"}]});
    let item = json!({"type": "function_call", "call_id": "t1", "name": "search", "arguments": arguments});
    let (thought, signature) =
        (message(json!({"reasoning_content": "sig=="})), message(json!({"tool_calls": [signed]})));
    for (provider, json, at, back) in [
        ("anthropic", anthropic(&blocks, "tool_use"), "/messages/1/content", vec![blocks.clone()]),
        ("openai-compatible", chat(&thought, "tool_calls"), "/messages/2", vec![thought.clone()]),
        ("gemini", chat(&signature, "stop"), "/messages/2", vec![signature.clone()]),
        (
            "openai-responses",
            responses(&json!([sealed(&json!({"id": "rs"})), said, item]), "completed"),
            "/input/2",
            vec![sealed(&json!({})), said.clone(), item.clone()],
        ),
    ] {
        let reply = reply(provider, &json);
        assert_eq!((reply.text.as_str(), &reply.calls[..]), ("so", &[called("t1", arguments)][..]), "{provider}");
        let talk = conversation(reply);
        let body = body(provider, "", &talk);
        let (list, first) = at.rsplit_once('/').unwrap();
        for (n, expected) in back.iter().enumerate() {
            let at = first.parse::<usize>().map_or_else(|_| at.to_owned(), |first| format!("{list}/{}", first + n));
            assert_eq!(body.pointer(&at), Some(expected), "{provider} {at}");
        }
        for other in ["anthropic", "openai", "openai-responses", "gemini"].into_iter().filter(|o| *o != provider) {
            assert!(!self::body(other, "", &talk).to_string().contains("sig=="), "{provider} to {other}");
        }
        let sibling = body_for(&profile(provider, "maker-2", ""), &talk);
        assert!(!sibling.to_string().contains("sig=="), "{provider}: another model would refuse a signature");
    }
    let plain = reply("openai", &chat(&thought, "tool_calls"));
    assert_eq!(plain.kept, None, "OpenAI refuses fields that it does not know");
}

#[test]
fn counts_that_no_call_can_have_are_bounded() {
    let usage = json!({"usage": {"input_tokens": u64::MAX, "cache_read_input_tokens": i32::MAX, "output_tokens": -1}});
    let tokens = read("anthropic", &and(anthropic(&json!([]), "end_turn"), &usage)).unwrap().tokens;
    assert_eq!(tokens, Tokens { input: 1_000_000_000, cached: 500_000_000, cache_written: 0, output: 0 });
    let usage = json!({"usage": {"prompt_tokens": 100, "completion_tokens": 5, "total_tokens": 200}});
    let tokens = read("gemini", &and(chat(&json!({}), "stop"), &usage)).unwrap().tokens;
    assert_eq!(tokens.output, 100, "thoughts count");
}

#[test]
fn a_reply_in_another_form_is_unreadable() {
    let odd = json!({"choices": [{"message": {"tool_calls": [{"id": "t", "function": 7}]}}]});
    let all = [json!({}), json!([]), json!(null), json!({"choices": []}), json!({"choices": [{"message": 1}]}), odd];
    for provider in ["openai", "anthropic", "openai-responses", "gemini"] {
        for json in &all {
            assert_eq!(read(provider, json).err().map(|e| e.fault), Some(Fault::Unreadable), "{provider} {json}");
        }
    }
}

/// Every place of a good reply, in turn, has something that does not belong there.
#[test]
fn no_reply_however_odd_makes_a_panic() {
    let call = json!({"id": "t", "type": "function", "function": {"name": "f", "arguments": "{}"}});
    let message = json!({"content": "x", "refusal": "no", "reasoning": "hm", "tool_calls": [call]});
    let blocks = json!([{"type": "text", "text": "x"}, {"type": "thinking", "thinking": "x", "signature": "x"},
        {"type": "tool_use", "id": "t", "name": "f", "input": {}}]);
    let items = json!([{"type": "message", "content": [{"type": "refusal", "refusal": "no"}]},
        {"type": "reasoning", "encrypted_content": "x"},
        {"type": "function_call", "call_id": "t", "name": "f", "arguments": "{}"}]);
    let details = json!({"incomplete_details": {"reason": "x"}});
    for (provider, good) in [
        ("openai-compatible", chat(&message, "stop")),
        ("anthropic", anthropic(&blocks, "end_turn")),
        ("openai-responses", and(responses(&items, "incomplete"), &details)),
    ] {
        for odd in [json!(null), json!(7), json!("x"), json!([7]), json!({"x": 7}), json!(-9e99)] {
            for place in places(&good, "") {
                let mut json = good.clone();
                *json.pointer_mut(&place).unwrap() = odd.clone();
                if let Ok(decoded) = read(provider, &json) {
                    body(provider, "", &conversation(decoded.reply));
                }
            }
        }
    }
}

fn places(json: &Value, at: &str) -> Vec<String> {
    let inner: Vec<_> = match json {
        Value::Object(map) => map.iter().flat_map(|(key, value)| places(value, &format!("{at}/{key}"))).collect(),
        Value::Array(all) => {
            all.iter().enumerate().flat_map(|(n, value)| places(value, &format!("{at}/{n}"))).collect()
        }
        _ => vec![],
    };
    std::iter::once(at.to_owned()).chain(inner).collect()
}
