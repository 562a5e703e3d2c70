//! What the server counts and keeps, and the program around it.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::client::{Talk, post, request, run};
use crate::model::brain::Brain;
use crate::model::{Options, Provider, Server};

fn serve(options: Options) -> Server {
    Server::start(Brain::default(), options).unwrap()
}

fn talk(provider: Provider, system: usize, prompt: usize) -> Talk {
    Talk::new(provider, &"s".repeat(system), &"p".repeat(prompt))
}

#[test]
fn cached_tokens_are_those_that_came_before() {
    let server = serve(Options::default());
    let url = server.url();
    for provider in [Provider::Chat, Provider::Responses] {
        let first = talk(provider, 20_000, 100).ask(&url);
        assert_eq!(first.tokens.1, 0, "{provider:?}");
        let (input, cached, _) = talk(provider, 20_000, 900).ask(&url).tokens;
        assert!(cached % 128 == 0 && cached > 4_900 && cached < input, "{provider:?} {cached} of {input}");
        assert_eq!(talk(provider, 19_000, 100).ask(&url).tokens.1 / 128, 19_000 / 4 / 128, "{provider:?}");
    }
    let anthropic = |prompt: usize| talk(Provider::Anthropic, 20_000, prompt).ask(&url).tokens;
    assert_eq!(anthropic(100).1, 0, "another format is another prompt");
    let (input, cached, _) = anthropic(20_000);
    assert!((5_000..5_100).contains(&cached) && input > 10_000, "only up to the mark: {cached} of {input}");
    let counts = server.log().counts();
    assert_eq!((counts.requests, counts.answered, counts.rejected), (8, 8, 0));
    assert!(counts.prompt.read > 0 && counts.prompt.written >= 5_000 && counts.prompt.read < counts.prompt.input);
}

#[test]
fn the_same_request_gets_the_same_bytes() {
    let (one, two) = (serve(Options::default()), serve(Options::default()));
    for provider in Provider::ALL {
        let body = talk(provider, 10, 10).body();
        let first = post(&one.url(), provider, "k", &body);
        assert_eq!(first, post(&two.url(), provider, "k", &body), "{provider:?}");
    }
}

#[test]
fn requests_under_way_are_counted() {
    let latency = Duration::from_millis(300);
    let server = serve(Options { latency, ..Options::default() });
    let url = Arc::new(server.url());
    run(async {
        let ask = |n: usize| {
            let url = Arc::clone(&url);
            async move {
                let body = talk(Provider::Chat, 10, n).body();
                request(&url, Provider::Chat, "k", &body).send().await.unwrap().status().as_u16()
            }
        };
        let all: Vec<_> = (1..=8).map(|n| tokio::spawn(ask(n))).collect();
        for one in all {
            assert_eq!(one.await.unwrap(), 200);
        }
    });
    let counts = server.log().counts();
    assert_eq!((counts.requests, counts.answered, counts.answered_again), (8, 8, 0));
    assert!(counts.most_at_once > 1 && counts.most_at_once <= 8, "{counts:?}");
}

#[test]
fn requests_are_written_down_as_they_came_and_keys_are_not() {
    let folder = tempfile::tempdir().unwrap();
    let server = serve(Options { record: Some(folder.path().join("new")), keep: false, ..Options::default() });
    let body = talk(Provider::Chat, 10, 10).body();
    let (_, reply) = post(&server.url(), Provider::Chat, "very-secret", &body);
    let read = |name: &str| std::fs::read_to_string(folder.path().join("new").join(name)).unwrap();
    assert_eq!(read("000001-unknown.request.json"), body.to_string());
    assert_eq!(read("000001-unknown.reply"), reply);
    assert!(!read("000001-unknown.request.json").contains("very-secret"));
    assert!(server.log().captured().is_empty(), "nothing is kept in memory");
}

#[test]
fn counts_can_be_read_by_other_programs() {
    let server = serve(Options::default());
    talk(Provider::Chat, 10, 10).ask(&server.url());
    let counts: Value = serde_json::to_value(server.log().counts()).unwrap();
    assert_eq!(counts["answered"], 1);
    assert_eq!(counts["by_kind"]["?"], 1);
}
