//! What we write without the library is what the library writes.

use super::*;
use crate::model::client::{anthropic, encode, relay};
use crate::model::{Called, Format, Reply, Stop, ToolAnswer};

async fn by_the_library(profile: &Profile, ask: &Ask) -> Value {
    let forms = relay::forms().unwrap();
    let mut body = Value::Null;
    let send = async |draft: Draft| {
        assert_eq!(draft.path, "messages");
        body = serde_json::from_slice(&draft.body).unwrap();
        Err(Failed::final_(Fault::Unavailable, "enough"))
    };
    relay::through(&forms, profile, encode::request(profile, ask), send).await.map(|_| ()).unwrap_err();
    body
}

fn call(id: &str, arguments: &str) -> Called {
    Called { id: id.into(), tool: "search".into(), arguments: arguments.into() }
}

fn answer(id: &str, failed: bool) -> ToolAnswer {
    ToolAnswer { id: id.into(), tool: "search".into(), text: "line \"one\"\n\u{1}é".into(), failed }
}

/// Requests of all sorts that are plain.
fn asks() -> Vec<Ask> {
    let mut all = vec![ask()];
    let said = |text: &str, calls: Vec<Called>| {
        Message::Assistant(Reply { text: text.into(), calls, stop: Stop::Done, kept: None })
    };
    let mut with = |change: &dyn Fn(&mut Ask)| {
        let mut one = ask();
        change(&mut one);
        all.push(one);
    };
    with(&|ask| ask.tools.clear());
    with(&|ask| ask.choice = Choice::Nothing);
    with(&|ask| ask.system = vec![part("a", false), part("", true), part("b", false)]);
    with(&|ask| ask.system.clear());
    with(&|ask| ask.tools.push(Offer { strict: false, ..offer("count_by") }));
    with(&|ask| ask.format = Some(Format { name: "plan".into(), schema: offer("x").schema }));
    with(&|ask| ask.max_output = 1_000_000);
    with(&|ask| ask.messages = vec![Message::User((1..=6).map(|n| part(&format!("p{n}"), true)).collect())]);
    with(&|ask| {
        ask.messages.push(said("so", vec![call("t1", "{\"text\": \"x\"}"), call("t2", "{oops")]));
        ask.messages.push(Message::Results(vec![answer("t1", false), answer("t2", true)]));
    });
    with(&|ask| {
        ask.messages.push(said(" ", vec![call("t1", "[1]")]));
        ask.messages.push(Message::Results(vec![answer("t1", true)]));
        ask.messages.push(said("an answer", vec![]));
        ask.messages.push(Message::User(vec![part("again", false)]));
        ask.messages.push(said("", vec![]));
        ask.messages.push(Message::User(vec![part("and again", true)]));
        ask.choice = Choice::Nothing;
        ask.purpose = Purpose::Repair;
    });
    all
}

#[tokio::test]
async fn a_plain_body_is_what_the_library_would_have_written() {
    let server = Server::start([]).await;
    for more in ["", "temperature = 0.5\ntop_p = 0.9\nmax_output = 500"] {
        let client = client("anthropic", &server, more);
        let profile = &client.models["m"].profile;
        for ask in asks() {
            assert!(anthropic::plain(profile, &ask));
            let ours: Value = serde_json::from_slice(&anthropic::draft(profile, &ask).body).unwrap();
            assert_eq!(ours, by_the_library(profile, &ask).await);
        }
    }
}

#[tokio::test]
async fn what_has_to_do_with_thoughts_is_left_to_the_library() {
    let server = Server::start([]).await;
    let plain = |more: &str, ask: &Ask| {
        let client = client("anthropic", &server, more);
        anthropic::plain(&client.models["m"].profile, ask)
    };
    assert!(plain("", &ask()) && !plain("effort = \"high\"", &ask()));
    assert!(!plain("", &Ask { choice: Choice::Only("search".into()), ..ask() }));
    let kept = Reply { text: "x".into(), calls: vec![], stop: Stop::Done, kept: Some("{}".into()) };
    assert!(!plain("", &Ask { messages: vec![ask().messages.remove(0), Message::Assistant(kept)], ..ask() }));
}

#[tokio::test]
async fn thoughts_that_come_unasked_are_kept_as_the_library_keeps_them() {
    let thought = json!({"type": "thinking", "thinking": "hm", "signature": "sig=="});
    let sealed = json!({"type": "redacted_thinking", "data": "xyz"});
    let call = json!({"type": "tool_use", "id": "t1", "name": "search", "input": {"text": "x"}});
    let body = json!({"type": "message", "model": "maker-1", "stop_reason": "tool_use", "usage": {},
        "content": [thought, sealed, {"type": "text", "text": "so"}, call]});
    let (unasked, _) = once("anthropic", "", &ask(), body.clone()).await;
    let (asked, _) = once("anthropic", "effort = \"high\"", &ask(), body).await;
    assert_eq!(unasked.reply, asked.reply);
    assert!(unasked.reply.kept.is_some_and(|kept| kept.contains("sig==") && kept.contains("xyz")));
}
