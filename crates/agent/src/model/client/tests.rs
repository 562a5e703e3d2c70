//! The client against real HTTP on loopback: what goes over the wire, and what comes of what comes
//! back.

mod faults;
mod formats;
mod replies;
mod server;

use super::*;
use crate::model::{Choice, Message, Offer, Part};
use casebook_protocol::Purpose;
use serde_json::{Value, json};
use server::Server;

const KEY: &str = "sk-planted-hunter2";
const PROMPT: &str = "the secret of the prompt is the blue heron at dawn";

/// A client for one model `m`, served by `server`, with `more` lines in its table.
fn client(provider: &str, server: &Server, more: &str) -> Client {
    let text = format!(
        "[models.m]\nprovider = \"{provider}\"\nmodel = \"maker-1\"\nbase_url = \"{}/v1\"\nwindow = 100000\n{more}\n",
        server.url()
    );
    let text = if more.contains("# keyless") { text } else { format!("{text}key_env = \"KEY\"\n") };
    let config = Config::parse("models.toml", &text).expect("the file holds");
    let pace =
        Pace { first: Duration::from_millis(1), longest: Duration::from_millis(2), attempts: 4, ..Pace::default() };
    Client::with(&config, |name| (name == "KEY").then(|| KEY.to_owned()), pace).expect("the client opens")
}

fn part(text: &str, cache: bool) -> Part {
    Part { text: text.into(), cache }
}

fn offer(name: &str) -> Offer {
    Offer {
        name: name.into(),
        description: format!("what {name} does"),
        schema: json!({
            "type": "object",
            "properties": {"text": {"type": "string"}},
            "required": ["text"],
            "additionalProperties": false
        })
        .into(),
        strict: true,
    }
}

fn ask() -> Ask {
    Ask {
        id: casebook_protocol::ModelCallId::new("r1.plan.m1").unwrap(),
        model: "m".into(),
        prompt: "plan 1".into(),
        purpose: Purpose::Turn,
        system: vec![part("rules", true)],
        messages: vec![Message::User(vec![part("old", true), part(PROMPT, false)])],
        tools: vec![offer("search")],
        choice: Choice::Free,
        format: None,
        max_output: 1234,
    }
}

const TIME: Duration = Duration::from_secs(60);

#[tokio::test]
async fn each_provider_is_reached_at_its_path_with_its_key() {
    let chat = json!({"choices": [{"message": {"content": "x"}, "finish_reason": "stop"}]});
    let responses = json!({"output": [], "status": "completed"});
    let bearer = format!("Bearer {KEY}");
    for (provider, more, reply, path, header, key) in [
        ("anthropic", "", json!({"content": []}), "/v1/messages", "x-api-key", Some(KEY)),
        ("openai", "", chat.clone(), "/v1/chat/completions", "authorization", Some(&*bearer)),
        ("openai-responses", "", responses, "/v1/responses", "authorization", Some(&*bearer)),
        ("gemini", "", chat.clone(), "/v1/chat/completions", "authorization", Some(&*bearer)),
        ("bedrock", "", chat.clone(), "/v1/chat/completions", "authorization", Some(&*bearer)),
        ("openai-compatible", "# keyless", chat, "/v1/chat/completions", "authorization", None),
    ] {
        let server = Server::start([server::ok(&reply)]).await;
        let answered = client(provider, &server, more).ask(&ask(), TIME).await.expect("there is an answer");
        assert_eq!((answered.version.as_str(), answered.attempts), ("maker-1", 1));
        let [request] = &server.requests()[..] else { panic!("there is one request") };
        assert_eq!((request.path.as_str(), request.header(header)), (path, key), "{provider}");
        assert_eq!(request.header("anthropic-version"), (provider == "anthropic").then_some("2023-06-01"));
        assert_eq!(request.header("content-type"), Some("application/json"));
        assert_eq!(request.body["model"], "maker-1");
    }
}

#[tokio::test]
async fn a_count_that_is_not_reported_is_estimated_and_costs() {
    let text = "x".repeat(1_000);
    let reply = |usage: Value| json!({"content": [{"type": "text", "text": text}], "usage": usage});
    let more = "price = { input = 1, output = 10 }";
    for (usage, output, estimated) in [
        (json!({"input_tokens": 7, "output_tokens": 5}), 5, false),
        (json!({"input_tokens": 7}), 400, true),
        (Value::Null, 400, true),
    ] {
        let server = Server::start([server::ok(&reply(usage.clone()))]).await;
        let answered = client("anthropic", &server, more).ask(&ask(), TIME).await.unwrap();
        let sent = server.requests()[0].body.to_string().len() as u64;
        assert_eq!((answered.tokens.output, answered.estimated), (output, estimated), "{usage}");
        let input = if usage["input_tokens"] == 7 { 7..8 } else { sent / 4..sent / 2 };
        assert!(input.contains(&answered.tokens.input), "{} of {sent} bytes", answered.tokens.input);
        assert_eq!(answered.cost_micros, answered.tokens.input + 10 * output, "an estimate has its price");
    }
}

#[tokio::test]
async fn a_price_makes_a_cost() {
    let usage = json!({"input_tokens": 10, "cache_creation_input_tokens": 20, "cache_read_input_tokens": 70,
        "output_tokens": 5});
    let server = Server::start([server::ok(&json!({"content": [], "usage": usage}))]).await;
    let more = "price = { input = 3, cached = 0.3, cache_write = 3.75, output = 15 }";
    let answered = client("anthropic", &server, more).ask(&ask(), TIME).await.unwrap();
    assert_eq!(answered.cost_micros, 10 * 3 + 70 * 3 / 10 + 75 + 5 * 15);
}
