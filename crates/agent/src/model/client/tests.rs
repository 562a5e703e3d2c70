//! The client against real HTTP on loopback: what goes over the wire, and what comes of what comes
//! back.

mod faults;
mod formats;
mod parity;
mod server;

use super::*;
use crate::model::{Choice, Message, Offer, Part};
use casebook_protocol::Purpose;
use serde_json::{Value, json};
use server::{Request, Server};

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
    let pace = Pace { first: Duration::from_millis(1), longest: Duration::from_millis(2), attempts: 4 };
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

/// Asks once and returns the reply with the one request that was made for it.
async fn once(provider: &str, more: &str, ask: &Ask, reply: Value) -> (Answered, Request) {
    let server = Server::start([server::ok(&reply)]).await;
    let answered = client(provider, &server, more).ask(ask, TIME).await.expect("there is an answer");
    let mut requests = server.requests();
    assert_eq!(requests.len(), 1);
    (answered, requests.remove(0))
}
