use super::*;
use crate::model::{Called, Format, Reply, Stop, ToolAnswer};

fn anthropic(content: &Value, stop: &str) -> Value {
    json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "maker-1-20260101",
        "content": content, "stop_reason": stop,
        "usage": {"input_tokens": 10, "cache_creation_input_tokens": 20, "cache_read_input_tokens": 70, "output_tokens": 5}
    })
}

fn chat(message: &Value, finish: &str) -> Value {
    json!({
        "id": "c", "object": "chat.completion", "model": "maker-1-0613",
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 5, "total_tokens": 105,
                  "prompt_tokens_details": {"cached_tokens": 70}}
    })
}

fn responses(output: &Value, status: &str) -> Value {
    json!({
        "id": "resp_1", "object": "response", "status": status, "model": "maker-1-0613", "error": null,
        "output": output,
        "usage": {"input_tokens": 100, "input_tokens_details": {"cached_tokens": 70}, "output_tokens": 5, "total_tokens": 105}
    })
}

fn said(text: &str) -> Value {
    chat(&json!({"role": "assistant", "content": text}), "stop")
}

fn called(id: &str, arguments: &str) -> Called {
    Called { id: id.into(), tool: "search".into(), arguments: arguments.into() }
}

/// A conversation with a call and its failed result.
fn conversation(reply: Reply) -> Ask {
    let mut ask = ask();
    let id = reply.calls.first().map(|call| call.id.clone()).unwrap_or_default();
    ask.messages.push(Message::Assistant(reply));
    let text = "call r1.plan.t1.0 (search) failed\nno such source".to_owned();
    ask.messages.push(Message::Results(vec![ToolAnswer { id, tool: "search".into(), text, failed: true }]));
    ask
}

fn reply(call: Called) -> Reply {
    Reply { text: "let me look".into(), calls: vec![call], stop: Stop::Done, kept: None }
}

#[tokio::test]
async fn anthropic_gets_its_form_with_cache_marks_and_flags() {
    let body = anthropic(&json!([{"type": "text", "text": "hello"}]), "end_turn");
    let (answered, request) =
        once("anthropic", "", &conversation(reply(called("t1", "{\"text\": \"x\"}"))), body).await;

    assert_eq!(request.path, "/v1/messages");
    assert_eq!(request.header("x-api-key"), Some(KEY));
    assert_eq!(request.header("anthropic-version"), Some("2023-06-01"));
    let mark = json!({"type": "ephemeral"});
    assert_eq!(
        request.body,
        json!({
            "model": "maker-1",
            "stream": false,
            "system": [{"type": "text", "text": "rules", "cache_control": mark}],
            "tools": [{"name": "search", "input_schema": offer("search").schema, "strict": true,
                       "description": "what search does"}],
            "messages": [
                {"role": "user", "content": [
                    {"type": "text", "text": "old", "cache_control": mark},
                    {"type": "text", "text": PROMPT}]},
                {"role": "assistant", "content": [
                    {"type": "text", "text": "let me look"},
                    {"type": "tool_use", "id": "t1", "name": "search", "input": {"text": "x"}}]},
                {"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": "t1", "is_error": true, "cache_control": mark,
                     "content": "call r1.plan.t1.0 (search) failed\nno such source"}]}
            ],
            "max_tokens": 1234
        })
    );
    assert_eq!(answered.reply, Reply { text: "hello".into(), calls: vec![], stop: Stop::Done, kept: None });
    assert_eq!(answered.version, "maker-1-20260101");
    assert_eq!(answered.tokens, Tokens { input: 100, cached: 70, cache_written: 20, output: 5 });
    assert_eq!(answered.attempts, 1);
}

#[tokio::test]
async fn anthropic_gets_at_most_four_marks_the_first_and_the_last() {
    let mut ask = ask();
    ask.messages = vec![Message::User((1..=6).map(|n| part(&format!("p{n}"), true)).collect())];
    let (_, request) = once("anthropic", "", &ask, anthropic(&json!([]), "end_turn")).await;
    let blocks = request.body["messages"][0]["content"].as_array().unwrap();
    let marked: Vec<_> =
        blocks.iter().filter(|b| b.get("cache_control").is_some()).map(|b| b["text"].as_str().unwrap()).collect();
    assert_eq!(marked, ["p5", "p6"], "one is kept for the end of the conversation, which p6 is");
    assert!(request.body["system"][0].get("cache_control").is_some());

    let mut talked = conversation(reply(called("t1", "{}")));
    talked.messages[0] = Message::User((1..=6).map(|n| part(&format!("p{n}"), true)).collect());
    let (_, request) = once("anthropic", "", &talked, anthropic(&json!([]), "end_turn")).await;
    let marks = request.body.to_string().matches("cache_control").count();
    assert_eq!(marks, 4, "the end of the conversation has one of them: {}", request.body);
}

#[tokio::test]
async fn anthropic_thoughts_go_back_as_they_came_and_to_no_one_else() {
    let thought = json!({"type": "thinking", "thinking": "hm", "signature": "sig=="});
    let sealed = json!({"type": "redacted_thinking", "data": "xyz"});
    let call = json!({"type": "tool_use", "id": "t1", "name": "search", "input": {"text": "x"}});
    let body = anthropic(&json!([thought, sealed, {"type": "text", "text": "so"}, call]), "tool_use");
    let (answered, _) = once("anthropic", "effort = \"high\"", &ask(), body).await;
    assert_eq!(answered.reply.text, "so");
    assert_eq!(answered.reply.calls, [called("t1", "{\"text\":\"x\"}")]);

    let next = conversation(answered.reply);
    let (_, request) = once("anthropic", "effort = \"high\"", &next, anthropic(&json!([]), "end_turn")).await;
    assert_eq!(request.body["messages"][1]["content"], json!([thought, sealed, {"type": "text", "text": "so"}, call]));

    let (_, other) = once("openai-responses", "effort = \"high\"", &next, responses(&json!([]), "completed")).await;
    assert!(!other.body.to_string().contains("sig=="), "a signature of one provider is poison to another");
}

#[tokio::test]
async fn anthropic_forced_calls_do_without_thoughts_and_schemas_go_natively() {
    let mut forced = ask();
    forced.choice = Choice::Only("search".into());
    let more = "effort = \"high\"";
    let (_, request) = once("anthropic", more, &forced, anthropic(&json!([]), "end_turn")).await;
    assert_eq!(request.body["tool_choice"], json!({"type": "tool", "name": "search"}));
    assert_eq!(request.body.get("thinking"), None);

    let mut native = ask();
    native.tools.clear();
    native.format = Some(Format { name: "plan".into(), schema: offer("x").schema });
    let (_, request) = once("anthropic", "", &native, anthropic(&json!([]), "end_turn")).await;
    assert_eq!(request.body["output_config"]["format"], json!({"type": "json_schema", "schema": offer("x").schema}));
    assert_eq!(request.body.get("tools"), None);
}

#[tokio::test]
async fn openai_chat_gets_its_form() {
    let mut ask = conversation(reply(called("t1", "{\"text\": \"x\"}")));
    ask.choice = Choice::Only("search".into());
    ask.format = Some(Format { name: "plan".into(), schema: offer("x").schema });
    let more = "temperature = 0.5\ntop_p = 0.9\nseed = 7\neffort = \"low\"";
    let message = json!({"role": "assistant", "content": null, "tool_calls": [
        {"id": "t2", "type": "function", "function": {"name": "search", "arguments": "{\"text\": \"y\"}"}}]});
    let (answered, request) = once("openai", more, &ask, chat(&message, "tool_calls")).await;

    assert_eq!(request.path, "/v1/chat/completions");
    assert_eq!(request.header("authorization"), Some(format!("Bearer {KEY}").as_str()));
    assert_eq!(
        request.body,
        json!({
            "model": "maker-1", "stream": false, "reasoning_effort": "low",
            "tools": [{"type": "function", "function": {"name": "search", "description": "what search does",
                       "parameters": offer("search").schema, "strict": true}}],
            "tool_choice": {"type": "function", "function": {"name": "search"}},
            "messages": [
                {"role": "system", "content": "rules"},
                {"role": "user", "content": format!("old\n{PROMPT}")},
                {"role": "assistant", "content": "let me look", "tool_calls": [
                    {"type": "function", "id": "t1", "function": {"name": "search", "arguments": "{\"text\":\"x\"}"}}]},
                {"role": "tool", "tool_call_id": "t1", "content": "call r1.plan.t1.0 (search) failed\nno such source"}
            ],
            "response_format": {"type": "json_schema",
                "json_schema": {"name": "plan", "strict": true, "schema": offer("x").schema}},
            "temperature": 0.5, "max_completion_tokens": 1234, "top_p": 0.9, "seed": 7,
            "prompt_cache_key": "casebook-plan-1"
        })
    );
    assert_eq!(answered.reply.calls, [called("t2", "{\"text\":\"y\"}")]);
    assert_eq!((answered.reply.stop, answered.version.as_str()), (Stop::Done, "maker-1-0613"));
    assert_eq!(answered.tokens, Tokens { input: 100, cached: 70, cache_written: 0, output: 5 });
}

#[tokio::test]
async fn openai_responses_gets_its_form_and_its_sealed_thoughts_back() {
    let output = json!([
        {"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "sealed=="},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "so"}]},
        {"type": "function_call", "call_id": "t1", "name": "search", "arguments": "{\"text\": \"x\"}"}
    ]);
    let (answered, request) =
        once("openai-responses", "effort = \"medium\"", &ask(), responses(&output, "completed")).await;
    assert_eq!(request.path, "/v1/responses");
    assert_eq!(request.header("authorization"), Some(format!("Bearer {KEY}").as_str()));
    assert_eq!(
        request.body,
        json!({
            "store": false, "model": "maker-1", "stream": false, "reasoning": {"effort": "medium"},
            "tools": [{"type": "function", "name": "search", "parameters": offer("search").schema,
                       "description": "what search does", "strict": true}],
            "input": [{"role": "system", "content": "rules"}, {"role": "user", "content": format!("old\n{PROMPT}")}],
            "max_output_tokens": 1234, "prompt_cache_key": "casebook-plan-1",
            "include": ["reasoning.encrypted_content"]
        })
    );
    assert_eq!(
        (answered.reply.text.as_str(), &answered.reply.calls[..]),
        ("so", &[called("t1", "{\"text\":\"x\"}")][..])
    );
    assert_eq!(answered.tokens, Tokens { input: 100, cached: 70, cache_written: 0, output: 5 });

    let next = conversation(answered.reply);
    let (_, request) = once("openai-responses", "effort = \"medium\"", &next, responses(&json!([]), "completed")).await;
    assert_eq!(
        request.body["input"].as_array().unwrap()[2..],
        [
            json!({"type": "reasoning", "encrypted_content": "sealed==", "summary": []}),
            json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "so"}]}),
            json!({"type": "function_call", "call_id": "t1", "name": "search", "arguments": "{\"text\":\"x\"}"}),
            json!({"type": "function_call_output", "call_id": "t1",
                   "output": "call r1.plan.t1.0 (search) failed\nno such source"}),
        ]
    );
}

#[tokio::test]
async fn gemini_gets_its_form_and_its_signatures_back() {
    let body = json!({"modelVersion": "maker-1-001",
        "candidates": [{"finishReason": "STOP", "content": {"role": "model", "parts": [
            {"functionCall": {"name": "search", "args": {"text": "x"}}, "thoughtSignature": "sig=="}]}}],
        "usageMetadata": {"promptTokenCount": 100, "cachedContentTokenCount": 70, "candidatesTokenCount": 4,
                          "thoughtsTokenCount": 1, "totalTokenCount": 105}});
    let (answered, request) = once("gemini", "", &ask(), body.clone()).await;
    assert_eq!(request.path, "/v1/models/maker-1:generateContent");
    assert_eq!(request.header("x-goog-api-key"), Some(KEY));
    assert_eq!(request.body["generationConfig"]["maxOutputTokens"], 1234);
    assert_eq!(answered.version, "maker-1-001");
    assert_eq!(answered.reply.calls[0].arguments, "{\"text\":\"x\"}");
    assert_eq!(answered.tokens, Tokens { input: 100, cached: 70, cache_written: 0, output: 5 });

    let (_, request) = once("gemini", "", &conversation(answered.reply), body).await;
    assert!(request.body["contents"].to_string().contains("\"thoughtSignature\":\"sig==\""), "{}", request.body);

    let blocked = json!({"promptFeedback": {"blockReason": "SAFETY"}});
    let (answered, _) = once("gemini", "", &ask(), blocked).await;
    assert_eq!(answered.reply.stop, Stop::Refused);
}

#[tokio::test]
async fn bedrock_gets_its_form() {
    let body = json!({"output": {"message": {"role": "assistant", "content": [{"text": "hello"}]}},
        "stopReason": "end_turn", "usage": {"inputTokens": 10, "outputTokens": 5, "totalTokens": 15}});
    let (answered, request) = once("bedrock", "", &ask(), body).await;
    assert_eq!(request.path, "/v1/model/maker-1/converse");
    assert_eq!(request.header("authorization"), Some(format!("Bearer {KEY}").as_str()));
    assert_eq!(request.body["inferenceConfig"]["maxTokens"], 1234);
    assert_eq!((answered.reply.text.as_str(), answered.tokens.input), ("hello", 10));
}

#[tokio::test]
async fn a_keyless_server_gets_no_key_and_the_plain_name_of_the_limit() {
    let (answered, request) = once("openai-compatible", "# keyless", &ask(), said("hello")).await;
    assert_eq!(request.header("authorization"), None);
    assert_eq!(request.body["max_tokens"], 1234);
    assert_eq!(answered.reply.text, "hello");
}

#[tokio::test]
async fn thoughts_of_a_compatible_server_go_back_with_their_calls() {
    let message = json!({"role": "assistant", "content": "", "reasoning_content": "hm", "tool_calls": [
        {"id": "t1", "type": "function", "function": {"name": "search", "arguments": "{}"}}]});
    let (answered, _) = once("openai-compatible", "", &ask(), chat(&message, "tool_calls")).await;
    let (_, request) = once("openai-compatible", "", &conversation(answered.reply), said("ok")).await;
    assert_eq!(request.body["messages"][2]["reasoning_content"], "hm");
}

#[tokio::test]
async fn a_name_is_sent_exactly_and_no_effort_is_made_of_it() {
    let bodies = [
        ("openai", chat(&json!({"role": "assistant", "content": "x"}), "stop"), "reasoning_effort"),
        ("anthropic", anthropic(&json!([]), "end_turn"), "thinking"),
        ("openai-responses", responses(&json!([]), "completed"), "reasoning"),
    ];
    for (provider, body, effort) in bodies {
        for name in ["gpt-oss-high", "maker-low", "m-none", "org::model", "ns::model-max"] {
            let server = Server::start([server::ok(&body)]).await;
            let mut client = client(provider, &server, "");
            let wired = client.models.get_mut("m").unwrap();
            Arc::get_mut(wired).unwrap().profile.provider_model = name.into();
            client.ask(&ask(), TIME).await.unwrap();
            let request = &server.requests()[0].body;
            assert_eq!((request["model"].as_str(), request.get(effort)), (Some(name), None), "{provider}");
        }
    }
    let server = Server::start([server::ok(&json!({"promptFeedback": {"blockReason": "SAFETY"}}))]).await;
    let mut client = client("gemini", &server, "");
    Arc::get_mut(client.models.get_mut("m").unwrap()).unwrap().profile.provider_model = "flash-high".into();
    let answered = client.ask(&ask(), TIME).await.unwrap();
    assert_eq!(server.requests()[0].path, "/v1/models/flash-high:generateContent");
    assert_eq!(answered.version, "flash-high");
}

#[tokio::test]
async fn a_limit_is_always_sent_and_never_above_the_models_own() {
    let mut ask = ask();
    ask.max_output = 9999;
    let (_, request) = once("anthropic", "max_output = 500", &ask, anthropic(&json!([]), "end_turn")).await;
    assert_eq!(request.body["max_tokens"], 500);
}

#[tokio::test]
async fn arguments_that_are_not_json_cost_nothing_else() {
    let call = |id: &str, arguments: Value| json!({"id": id, "type": "function", "function": {"name": "search", "arguments": arguments}});
    let message = json!({"role": "assistant", "content": "both", "tool_calls": [
        call("t1", json!("{\"text\": ")), call("t2", json!("{\"text\": \"y\"}")), call("t3", json!("")),
        call("t4", json!("\"word\"")), {"function": {"name": "search", "arguments": {"text": "z"}}}]});
    let (answered, _) = once("openai-compatible", "", &ask(), chat(&message, "tool_calls")).await;
    assert_eq!(answered.reply.text, "both");
    assert_eq!(
        answered.reply.calls,
        [
            called("t1", "{\"text\": "),
            called("t2", "{\"text\":\"y\"}"),
            called("t3", "{}"),
            called("t4", "\"word\""),
            called("call_4", "{\"text\":\"z\"}")
        ]
    );

    let (_, request) = once("openai-compatible", "", &conversation(answered.reply), said("ok")).await;
    let back =
        |n: usize| request.body["messages"][2]["tool_calls"][n]["function"]["arguments"].as_str().unwrap().to_owned();
    assert_eq!(back(0), json!({"unreadable_arguments": "{\"text\": "}).to_string());
    assert_eq!(back(1), "{\"text\":\"y\"}");

    let output = json!([{"type": "function_call", "call_id": "t1", "name": "search", "arguments": "{oops"}]);
    let (answered, _) = once("openai-responses", "", &ask(), responses(&output, "completed")).await;
    assert_eq!(answered.reply.calls, [called("t1", "{oops")]);
}

#[tokio::test]
async fn why_a_model_stopped_is_told_the_same_for_all() {
    let text = json!({"role": "assistant", "content": "x"});
    let block = json!([{"type": "text", "text": "x"}]);
    let item = json!([{"type": "message", "content": [{"type": "output_text", "text": "x"}]}]);
    let mut filtered = responses(&item, "incomplete");
    filtered["incomplete_details"] = json!({"reason": "content_filter"});
    for (provider, body, stop) in [
        ("openai", chat(&text, "stop"), Stop::Done),
        ("openai", chat(&text, "length"), Stop::Length),
        ("openai", chat(&text, "content_filter"), Stop::Refused),
        ("openai", chat(&text, "weather"), Stop::Other("weather".into())),
        ("openai", chat(&json!({"role": "assistant", "content": null, "refusal": "x"}), "stop"), Stop::Refused),
        ("anthropic", anthropic(&block, "max_tokens"), Stop::Length),
        ("anthropic", anthropic(&block, "refusal"), Stop::Refused),
        ("anthropic", anthropic(&block, "pause_turn"), Stop::Other("pause_turn".into())),
        ("openai-responses", responses(&item, "incomplete"), Stop::Length),
        ("openai-responses", filtered, Stop::Refused),
        (
            "openai-responses",
            responses(&json!([{"type": "message", "content": [{"type": "refusal", "refusal": "x"}]}]), "completed"),
            Stop::Refused,
        ),
    ] {
        let (answered, _) = once(provider, "", &ask(), body.clone()).await;
        assert_eq!((answered.reply.stop, answered.reply.text.as_str()), (stop, "x"), "{body}");
    }
}

#[tokio::test]
async fn a_price_makes_a_cost() {
    let more = "price = { input = 3, cached = 0.3, cache_write = 3.75, output = 15 }";
    let (answered, _) = once("anthropic", more, &ask(), anthropic(&json!([]), "end_turn")).await;
    assert_eq!(answered.cost_micros, 10 * 3 + 70 * 3 / 10 + 75 + 5 * 15);
}

#[tokio::test]
async fn counts_that_no_call_can_have_are_bounded() {
    let mut body = anthropic(&json!([]), "end_turn");
    body["usage"] = json!({"input_tokens": i32::MAX, "cache_read_input_tokens": i32::MAX, "output_tokens": u64::MAX});
    let (answered, _) = once("anthropic", "", &ask(), body).await;
    assert_eq!(
        answered.tokens,
        Tokens { input: 1_000_000_000, cached: 500_000_000, cache_written: 0, output: 500_000_000 }
    );
}
