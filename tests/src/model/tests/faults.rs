//! Each fault on the wire, in each format.

use std::time::Duration;

use casebook_protocol::TaskKind;
use serde_json::json;

use super::client::{Got, Talk, post, request, run};
use crate::model::brain::Brain;
use crate::model::faults::{Fault, Faulty, When};
use crate::model::{Options, Provider, Server};

fn talk(provider: Provider) -> Talk {
    let schema = json!({"type": "object", "properties": {"next": {"type": "string", "enum": ["stay", "advance"]}, "reason": {"type": "string"}},
        "required": ["next", "reason"], "additionalProperties": false});
    let prompt = "<alert>\n{}\n</alert>\n<journal>\n</journal>\n<roster>\n[]\n</roster>";
    let mut talk = Talk::new(provider, "Casebook task: decide (prompt decide 1)", prompt);
    talk.format = Some(("decide".into(), schema));
    talk
}

fn serve(fault: Fault, when: When) -> Server {
    Server::start(Faulty::new(Brain::default(), fault, when), Options::default()).unwrap()
}

/// The replies of each format to a fault.
fn replies(fault: &Fault) -> [Got; 3] {
    let server = serve(fault.clone(), When::default());
    Provider::ALL.map(|provider| talk(provider).ask(&server.url()))
}

fn right(text: &str) -> bool {
    serde_json::from_str::<serde_json::Value>(text).is_ok_and(|object| object["next"] == "advance")
}

#[test]
fn errors_have_their_status_header_and_form() {
    for (fault, status, form) in [
        (Fault::RateLimited(Some(3)), 429, "rate_limit"),
        (Fault::Overloaded, 529, "overloaded_error"),
        (Fault::Broken, 500, "api_error"),
    ] {
        let server = serve(fault.clone(), When::default());
        let talk = talk(Provider::Anthropic);
        let (code, retry, text) = run(async {
            let response = request(&server.url(), talk.provider, "k", &talk.body()).send().await.unwrap();
            let retry = response.headers().get("retry-after").map(|value| value.to_str().unwrap().to_owned());
            (response.status().as_u16(), retry, response.text().await.unwrap())
        });
        assert_eq!(code, status);
        assert_eq!(retry, (fault == Fault::RateLimited(Some(3))).then(|| "3".to_owned()));
        assert!(text.contains(form) && text.contains(r#""type":"error""#), "{text}");
        assert_eq!(server.log().counts().answered, 0);
    }
    let server = serve(Fault::Overloaded, When::default());
    let (code, text) = post(&server.url(), Provider::Chat, "k", &talk(Provider::Chat).body());
    assert!(code == 503 && text.contains("server_error"), "{code} {text}");
}

#[test]
fn a_page_of_a_gateway_is_no_json() {
    for (fault, status) in [(Fault::Gateway, 502), (Fault::NoJsonBody, 200)] {
        let server = serve(fault, When::default());
        let (code, text) = post(&server.url(), Provider::Responses, "k", &talk(Provider::Responses).body());
        assert_eq!(code, status);
        assert!(text.starts_with("<html>"), "{text}");
    }
}

#[test]
fn a_connection_ends_in_mid_body() {
    let server = serve(Fault::Cut, When::default());
    for provider in Provider::ALL {
        for stream in [false, true] {
            let mut talk = talk(provider);
            talk.stream = stream;
            let read = run(async {
                let response = request(&server.url(), provider, "k", &talk.body()).send().await.unwrap();
                assert_eq!(response.status().as_u16(), 200);
                response.bytes().await
            });
            assert!(read.is_err(), "{provider:?} {stream} {read:?}");
        }
    }
}

#[test]
fn a_slow_answer_is_the_right_one_and_no_one_has_to_wait_for_it() {
    let server = serve(Fault::Slow(Duration::from_secs(3600)), When::default());
    let talk = talk(Provider::Chat);
    let error = run(async {
        let request = request(&server.url(), talk.provider, "k", &talk.body());
        request.timeout(Duration::from_millis(200)).send().await.unwrap_err()
    });
    assert!(error.is_timeout());
    assert_eq!(server.log().counts().answered, 0, "a reply that no one waited for is not answered");
    let server = serve(Fault::Slow(Duration::from_millis(1)), When::default());
    assert!(right(&talk.ask(&server.url()).text));
}

#[test]
fn replies_that_go_wrong() {
    for (got, stop) in replies(&Fault::Truncated).iter().zip(["max_tokens", "length", "incomplete"]) {
        assert_eq!(got.stop, stop);
        assert!(got.text.starts_with('{') && !right(&got.text), "{}", got.text);
    }
    for (got, stop) in replies(&Fault::Refusal).iter().zip(["refusal", "stop", "completed"]) {
        assert_eq!((got.stop.as_str(), got.text.as_str()), (stop, "I cannot help with this request."));
    }
    for got in replies(&Fault::Prose) {
        assert!(!got.text.contains('{'));
    }
    for got in replies(&Fault::Fenced) {
        let inner = got.text.split_once("```json\n").unwrap().1.split_once("\n```").unwrap().0;
        assert!(right(inner), "{}", got.text);
    }
    for got in replies(&Fault::WrongTypes) {
        assert_eq!(got.text, r#"{"next":7,"reason":7}"#);
    }
    for got in replies(&Fault::UnknownTool) {
        assert_eq!(got.calls[0].name, "delete_everything");
    }
    for got in replies(&Fault::BadArguments) {
        assert!(!right(&got.calls[0].arguments) && got.calls[0].arguments.contains("unquoted"), "{got:?}");
    }
    for got in replies(&Fault::EndlessCalls) {
        assert_eq!(got.calls.len(), 1, "also where no tool is offered");
    }
    for got in replies(&Fault::Empty) {
        assert!(got.text.is_empty() && got.calls.is_empty());
    }
}

#[test]
fn a_huge_answer_is_sent_piece_by_piece() {
    const SIZE: u64 = 100_000_000;
    let server = serve(Fault::Huge(SIZE), When::default());
    let before = resident();
    for provider in Provider::ALL {
        for stream in [false, true] {
            let mut talk = talk(provider);
            talk.stream = stream;
            let (total, ends) = run(async {
                let mut response = request(&server.url(), provider, "k", &talk.body()).send().await.unwrap();
                let (mut total, mut ends) = (0, b' ');
                while let Some(piece) = response.chunk().await.unwrap() {
                    total += piece.len() as u64;
                    ends = *piece.last().unwrap_or(&ends);
                }
                (total, ends)
            });
            assert!(total > SIZE && total < SIZE + 10_000, "{provider:?} {total}");
            assert_eq!(ends, if stream { b'\n' } else { b'}' });
        }
    }
    let grown = resident().saturating_sub(before);
    assert!(grown < 50_000, "{grown} kB more than before");
}

/// Resident memory of this process in kB; 0 where the system does not tell.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().trim_end_matches("kB").trim().parse().ok()).unwrap_or(0)
}

#[test]
fn a_fault_strikes_where_it_is_told_to() {
    let ask = |server: &Server, system: &str, note: &str| {
        let mut talk = talk(Provider::Chat);
        talk.system = system.to_owned();
        talk.turns = vec![crate::model::request::Turn::User(vec![note.to_owned()])];
        post(&server.url(), talk.provider, "k", &talk.body()).0
    };
    let (decide, report) = ("Casebook task: decide (prompt decide 1)", "Casebook task: report (prompt report 1)");
    let when = When { kind: Some(TaskKind::Decide), nth: Some(2), attempts: Some(2), ..When::default() };
    let server = serve(Fault::Broken, when);
    let told: Vec<u16> =
        [(decide, "a"), (report, "b"), (decide, "c"), (decide, "c"), (decide, "c"), (decide, "d"), (decide, "a")]
            .into_iter()
            .map(|(system, note)| ask(&server, system, note))
            .collect();
    assert_eq!(told, [200, 200, 500, 500, 200, 200, 200]);
    assert_eq!(server.log().counts().answered_again, 1, "a was answered twice");
}

#[test]
fn a_fault_on_answers_spares_the_calls_before() {
    let when = When { answers: true, ..When::default() };
    let server = serve(Fault::Prose, when);
    let mut plan = talk(Provider::Anthropic);
    plan.system = "Casebook task: plan (prompt plan 1)".into();
    plan.tools = vec![("journal".into(), json!({"type": "object"}))];
    let first = plan.ask(&server.url());
    assert_eq!(first.calls[0].name, "journal");
    plan.go_on(&first, vec!["result of call r1.plan.t1.0 (journal), 1 bytes, whole\n<data-0>\n1\n</data-0>".into()]);
    assert!(plan.ask(&server.url()).text.starts_with("It looks harmless"));
}
