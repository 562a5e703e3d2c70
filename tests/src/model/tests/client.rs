//! A plain client of the three formats.

use serde_json::{Value, json};

use crate::model::request::{Answer, Call, Provider, Turn};

/// A conversation as a client holds it.
#[derive(Debug, Clone)]
pub(crate) struct Talk {
    pub(crate) provider: Provider,
    pub(crate) stream: bool,
    pub(crate) system: String,
    pub(crate) turns: Vec<Turn>,
    /// Name and schema of each tool.
    pub(crate) tools: Vec<(String, Value)>,
    /// Name and schema of the provider's structured output.
    pub(crate) format: Option<(String, Value)>,
}

/// A reply as a client reads it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Got {
    pub(crate) text: String,
    pub(crate) calls: Vec<Call>,
    pub(crate) stop: String,
    /// Input with what is cached, of that cached, output.
    pub(crate) tokens: (u64, u64, u64),
}

impl Talk {
    pub(crate) fn new(provider: Provider, system: &str, prompt: &str) -> Self {
        let turns = vec![Turn::User(vec![prompt.to_owned()])];
        Self { provider, stream: false, system: system.to_owned(), turns, tools: Vec::new(), format: None }
    }

    /// The body of the request.
    pub(crate) fn body(&self) -> Value {
        match self.provider {
            Provider::Anthropic => self.anthropic(),
            Provider::Chat => self.chat(),
            Provider::Responses => self.responses(),
        }
    }

    fn anthropic(&self) -> Value {
        let messages = self.turns.iter().map(|turn| match turn {
            Turn::User(parts) => {
                let blocks: Vec<Value> = parts.iter().map(|text| json!({"type": "text", "text": text})).collect();
                json!({"role": "user", "content": blocks})
            }
            Turn::Assistant { text, calls } => {
                let text = (!text.is_empty()).then(|| json!({"type": "text", "text": text}));
                let input = |call: &Call| serde_json::from_str::<Value>(&call.arguments).unwrap();
                let calls = calls
                    .iter()
                    .map(|call| json!({"type": "tool_use", "id": call.id, "name": call.name, "input": input(call)}));
                json!({"role": "assistant", "content": text.into_iter().chain(calls).collect::<Vec<_>>()})
            }
            Turn::Results(answers) => {
                let blocks = answers
                    .iter()
                    .map(|one| json!({"type": "tool_result", "tool_use_id": one.id, "content": one.text}));
                json!({"role": "user", "content": blocks.collect::<Vec<_>>()})
            }
        });
        let mark = json!({"type": "ephemeral"});
        let mut body = json!({"model": "m-1", "max_tokens": 1000, "stream": self.stream,
            "system": [{"type": "text", "text": self.system, "cache_control": mark}], "messages": messages.collect::<Vec<_>>()});
        if !self.tools.is_empty() {
            let tools = self
                .tools
                .iter()
                .map(|(name, schema)| json!({"name": name, "description": "d", "input_schema": schema}));
            body["tools"] = tools.collect();
        }
        if let Some((_, schema)) = &self.format {
            body["output_config"] = json!({"format": {"type": "json_schema", "schema": schema}});
        }
        body
    }

    fn chat(&self) -> Value {
        let mut messages = vec![json!({"role": "system", "content": self.system})];
        for turn in &self.turns {
            match turn {
                Turn::User(parts) => {
                    let parts: Vec<Value> = parts.iter().map(|text| json!({"type": "text", "text": text})).collect();
                    messages.push(json!({"role": "user", "content": parts}));
                }
                Turn::Assistant { text, calls } => {
                    let mut message = json!({"role": "assistant", "content": text});
                    if !calls.is_empty() {
                        let calls = calls.iter().map(|call| json!({"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}));
                        message["tool_calls"] = calls.collect();
                    }
                    messages.push(message);
                }
                Turn::Results(answers) => messages.extend(
                    answers.iter().map(|one| json!({"role": "tool", "tool_call_id": one.id, "content": one.text})),
                ),
            }
        }
        let mut body =
            json!({"model": "m-1", "max_completion_tokens": 1000, "stream": self.stream, "messages": messages});
        if self.stream {
            body["stream_options"] = json!({"include_usage": true});
        }
        if !self.tools.is_empty() {
            let tools = self.tools.iter().map(|(name, schema)| json!({"type": "function", "function": {"name": name, "description": "d", "parameters": schema, "strict": false}}));
            body["tools"] = tools.collect();
        }
        if let Some((name, schema)) = &self.format {
            body["response_format"] =
                json!({"type": "json_schema", "json_schema": {"name": name, "strict": true, "schema": schema}});
        }
        body
    }

    fn responses(&self) -> Value {
        let mut input = Vec::new();
        for turn in &self.turns {
            match turn {
                Turn::User(parts) => {
                    let parts: Vec<Value> =
                        parts.iter().map(|text| json!({"type": "input_text", "text": text})).collect();
                    input.push(json!({"role": "user", "content": parts}));
                }
                Turn::Assistant { text, calls } => {
                    if !text.is_empty() {
                        let part = json!({"type": "output_text", "text": text});
                        input.push(json!({"type": "message", "role": "assistant", "content": [part]}));
                    }
                    input.extend(calls.iter().map(|call| json!({"type": "function_call", "call_id": call.id, "name": call.name, "arguments": call.arguments})));
                }
                Turn::Results(answers) => input.extend(
                    answers
                        .iter()
                        .map(|one| json!({"type": "function_call_output", "call_id": one.id, "output": one.text})),
                ),
            }
        }
        let mut body = json!({"model": "m-1", "max_output_tokens": 1000, "stream": self.stream, "store": false,
            "instructions": self.system, "input": input});
        if !self.tools.is_empty() {
            let tools = self.tools.iter().map(|(name, schema)| json!({"type": "function", "name": name, "description": "d", "parameters": schema, "strict": false}));
            body["tools"] = tools.collect();
        }
        if let Some((name, schema)) = &self.format {
            body["text"] = json!({"format": {"type": "json_schema", "name": name, "strict": true, "schema": schema}});
        }
        body
    }

    /// Sends the conversation and reads the reply, which must be one.
    pub(crate) fn ask(&self, url: &str) -> Got {
        let (status, text) = post(url, self.provider, "key-1", &self.body());
        assert_eq!(status, 200, "{text}");
        self.read(&text)
    }

    /// Reads a reply.
    pub(crate) fn read(&self, text: &str) -> Got {
        if self.stream {
            return streamed(self.provider, text);
        }
        whole(self.provider, &serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}")))
    }

    /// The reply and the results of its calls become part of the conversation.
    pub(crate) fn go_on(&mut self, got: &Got, results: Vec<String>) {
        self.turns.push(Turn::Assistant { text: got.text.clone(), calls: got.calls.clone() });
        assert_eq!(got.calls.len(), results.len());
        let answer = |(call, text): (&Call, String)| Answer { id: call.id.clone(), text };
        self.turns.push(Turn::Results(got.calls.iter().zip(results).map(answer).collect()));
    }
}

/// Posts a body with a key; status and text of the answer.
pub(crate) fn post(url: &str, provider: Provider, key: &str, body: &Value) -> (u16, String) {
    run(async {
        let response = request(url, provider, key, body).send().await.unwrap();
        (response.status().as_u16(), response.text().await.unwrap())
    })
}

/// The request, ready to be sent.
pub(crate) fn request(url: &str, provider: Provider, key: &str, body: &Value) -> reqwest::RequestBuilder {
    casebook_runtime::tls::install();
    let request = reqwest::Client::new().post(format!("{url}{}", provider.path())).body(body.to_string());
    match provider {
        Provider::Anthropic => request.header("x-api-key", key).header("anthropic-version", "2023-06-01"),
        _ => request.header("authorization", format!("Bearer {key}")),
    }
}

/// Runs a future to its end.
pub(crate) fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

fn number(value: &Value, pointer: &str) -> u64 {
    value.pointer(pointer).and_then(Value::as_u64).unwrap_or_else(|| panic!("no number at {pointer} in {value}"))
}

fn text(value: &Value, pointer: &str) -> String {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn list(value: &Value, pointer: &str) -> Vec<Value> {
    value.pointer(pointer).and_then(Value::as_array).cloned().unwrap_or_default()
}

fn whole(provider: Provider, body: &Value) -> Got {
    let mut got = Got::default();
    match provider {
        Provider::Anthropic => {
            got.stop = text(body, "/stop_reason");
            for block in list(body, "/content") {
                match block["type"].as_str().unwrap() {
                    "text" => got.text.push_str(&text(&block, "/text")),
                    _ => got.calls.push(call(&block, "/id", "/name", block["input"].to_string())),
                }
            }
            got.tokens = anthropic_tokens(&body["usage"]);
        }
        Provider::Chat => {
            let choice = &body["choices"][0];
            got.stop = text(choice, "/finish_reason");
            got.text = text(choice, "/message/content") + &text(choice, "/message/refusal");
            for one in list(choice, "/message/tool_calls") {
                let arguments = text(&one, "/function/arguments");
                got.calls.push(call(&one, "/id", "/function/name", arguments));
            }
            got.tokens = chat_tokens(&body["usage"]);
        }
        Provider::Responses => {
            got.stop = text(body, "/status");
            for item in list(body, "/output") {
                match item["type"].as_str().unwrap() {
                    "message" => {
                        got.text.push_str(&(text(&item, "/content/0/text") + &text(&item, "/content/0/refusal")));
                    }
                    _ => got.calls.push(call(&item, "/call_id", "/name", text(&item, "/arguments"))),
                }
            }
            let usage = &body["usage"];
            let cached = number(usage, "/input_tokens_details/cached_tokens");
            got.tokens = (number(usage, "/input_tokens"), cached, number(usage, "/output_tokens"));
        }
    }
    got
}

fn call(value: &Value, id: &str, name: &str, arguments: String) -> Call {
    Call { id: text(value, id), name: text(value, name), arguments }
}

fn anthropic_tokens(usage: &Value) -> (u64, u64, u64) {
    let cached = number(usage, "/cache_read_input_tokens");
    let input = number(usage, "/input_tokens") + cached + number(usage, "/cache_creation_input_tokens");
    (input, cached, number(usage, "/output_tokens"))
}

fn chat_tokens(usage: &Value) -> (u64, u64, u64) {
    let cached = number(usage, "/prompt_tokens_details/cached_tokens");
    (number(usage, "/prompt_tokens"), cached, number(usage, "/completion_tokens"))
}

/// Puts a stream of events together again.
fn streamed(provider: Provider, stream: &str) -> Got {
    let mut got = Got::default();
    let events = stream.split("\n\n").filter(|event| !event.is_empty()).map(|event| {
        let data = event.lines().find_map(|line| line.strip_prefix("data: ")).unwrap();
        let name = event.lines().find_map(|line| line.strip_prefix("event: ")).unwrap_or_default();
        let data = if data == "[DONE]" { json!({"type": "done"}) } else { serde_json::from_str(data).unwrap() };
        assert!(name.is_empty() || data["type"] == name, "{name} {data}");
        data
    });
    let events: Vec<Value> = events.collect();
    match provider {
        Provider::Anthropic => anthropic_events(&events, &mut got),
        Provider::Chat => chat_events(&events, &mut got),
        Provider::Responses => {
            let kinds = ["response.output_text.delta", "response.refusal.delta"];
            let deltas = events.iter().filter(|event| kinds.iter().any(|kind| event["type"] == *kind));
            let told: String = deltas.map(|event| text(event, "/delta")).collect();
            got = whole(provider, &events.last().unwrap()["response"]);
            assert_eq!(told, got.text);
            let numbers: Vec<u64> = events.iter().map(|event| number(event, "/sequence_number")).collect();
            assert_eq!(numbers, (0..events.len() as u64).collect::<Vec<_>>());
        }
    }
    got
}

fn anthropic_events(events: &[Value], got: &mut Got) {
    got.tokens = anthropic_tokens(&events[0]["message"]["usage"]);
    for event in events {
        match event["type"].as_str().unwrap() {
            "content_block_start" if event["content_block"]["type"] == "tool_use" => {
                got.calls.push(call(&event["content_block"], "/id", "/name", String::new()));
            }
            "content_block_delta" => {
                got.text.push_str(&text(event, "/delta/text"));
                if let Some(last) = got.calls.last_mut() {
                    last.arguments.push_str(&text(event, "/delta/partial_json"));
                }
            }
            "message_delta" => {
                got.stop = text(event, "/delta/stop_reason");
                got.tokens.2 = number(event, "/usage/output_tokens");
            }
            _ => {}
        }
    }
    assert_eq!(events.last().unwrap()["type"], "message_stop");
}

fn chat_events(events: &[Value], got: &mut Got) {
    for event in events {
        let Some(choice) = event.pointer("/choices/0") else {
            if event["usage"].is_object() {
                got.tokens = chat_tokens(&event["usage"]);
            }
            continue;
        };
        got.text.push_str(&(text(choice, "/delta/content") + &text(choice, "/delta/refusal")));
        for one in list(choice, "/delta/tool_calls") {
            if one["id"].is_string() {
                got.calls.push(call(&one, "/id", "/function/name", String::new()));
            }
            let at = usize::try_from(number(&one, "/index")).unwrap();
            got.calls[at].arguments.push_str(&text(&one, "/function/arguments"));
        }
        got.stop += &text(choice, "/finish_reason");
    }
    assert_eq!(events.last().unwrap()["type"], "done");
}
