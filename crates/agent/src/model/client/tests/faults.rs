use std::sync::Mutex;

use tracing_subscriber::fmt::MakeWriter;

use super::server::{Serve, ok, status};
use super::*;

fn hello_body() -> Value {
    let choice = json!({"message": {"role": "assistant", "content": "hello"}, "finish_reason": "stop"});
    json!({"model": "maker-1", "choices": [choice]})
}

fn hello() -> Serve {
    ok(&hello_body())
}

/// Asks a server of `replies`: the result, and how many requests came.
async fn run(replies: Vec<Serve>, more: &str, time: Duration) -> (Result<Answered, AskError>, usize) {
    let server = Server::start(replies).await;
    let result = client("openai", &server, more).ask(&ask(), time).await;
    (result, server.requests().len())
}

/// The failure of a server of `replies`, with no key and no prompt in it.
async fn failure(replies: Vec<Serve>, more: &str) -> (Fault, String, usize) {
    let (result, requests) = run(replies, more, TIME).await;
    let error = result.expect_err("there is no answer");
    for text in [error.to_string(), format!("{error:?}")] {
        assert!(!text.contains("hunter2") && !text.contains("heron"), "{text}");
        assert!(text.contains("model m (openai)"), "{text}");
    }
    assert_eq!(usize::try_from(error.attempts).unwrap(), requests, "attempts are counted");
    (error.fault, error.message, requests)
}

#[tokio::test]
async fn what_passes_is_tried_again() {
    for fault in [
        status(429, "retry-after: 0", "{}"),
        status(429, "retry-after: Wed, 21 Oct 2015 07:28:00 GMT", "{}"),
        status(529, "", "{\"error\": {\"message\": \"Overloaded\"}}"),
        status(500, "", "oops"),
        status(503, "", ""),
        status(408, "", ""),
        status(409, "", ""),
        Serve::Cut(b"{\"choices\": [".to_vec()),
        ok(&json!({"error": {"code": 502, "message": "upstream"}})),
    ] {
        let (result, requests) = run(vec![fault.clone(), fault.clone(), hello()], "", TIME).await;
        let answered = result.unwrap_or_else(|error| panic!("{fault:?}: {error}"));
        assert_eq!((answered.reply.text.as_str(), answered.attempts, requests), ("hello", 3, 3));
    }
}

#[tokio::test]
async fn what_does_not_pass_ends_with_the_providers_reason() {
    use Fault::{Rejected, Unavailable, Unreadable};
    let error = |message: &str| json!({"error": {"message": message}}).to_string();
    let of = |body: &str| body.to_owned();
    for (code, body, fault, requests, want) in [
        (529, error("Overloaded"), Unavailable, 4, "HTTP 529: Overloaded"),
        (400, error("unknown parameter"), Rejected, 1, "HTTP 400: unknown parameter"),
        (401, error("Incorrect API key: sk-planted-hunter2"), Rejected, 1, "HTTP 401: Incorrect API key: [key]"),
        (403, of("{\"message\": \"no\"}"), Rejected, 1, "HTTP 403: no"),
        (404, of("{\"detail\": \"Not Found\"}"), Rejected, 1, "404: Not Found (check model and base_url)"),
        (400, format!("[{}]", error("Unknown name")), Rejected, 1, "HTTP 400: Unknown name"),
        (422, of("<html>"), Rejected, 1, "HTTP 422"),
        (302, of(""), Rejected, 1, "redirects are not followed"),
        (429, of("{\"error\": {\"code\": \"insufficient_quota\", \"message\": \"pay\"}}"), Rejected, 1, "429: pay"),
        (400, error(&format!("bad: {PROMPT}")), Rejected, 1, "quotes the request"),
        (200, of("<html>busy</html>"), Unreadable, 1, "not JSON"),
        (200, of("{}"), Unreadable, 1, "this provider's form"),
    ] {
        let (got, message, made) = failure(vec![status(code, "location: http://127.0.0.1:9/", &body)], "").await;
        assert_eq!((got, made), (fault, requests), "{message}");
        assert!(message.contains(want), "{want:?} is not in {message:?}");
    }
    let (fault, message, requests) = failure(vec![status(429, "retry-after: 900", "{}")], "").await;
    assert_eq!((fault, requests), (Unavailable, 1), "a wait that does not fit is not begun");
    assert!(message.contains("retry after 900 s"), "{message}");
}

#[tokio::test]
async fn a_providers_message_is_one_short_line() {
    let long = format!("{{\"error\": {{\"message\": \"a\\u001b[31m\\n{}\"}}}}", "é".repeat(5000));
    let (_, message, _) = failure(vec![status(400, "", &long)], "").await;
    assert!(message.chars().count() < 400 && !message.contains('\n') && !message.contains('\u{1b}'), "{message}");
}

#[tokio::test]
async fn a_hundred_megabytes_are_not_read() {
    let hundred = 100 * 1024 * 1024;
    for reply in [Serve::Flood(hundred), Serve::Announced(hundred)] {
        let server = Server::start([reply]).await;
        let error = client("openai", &server, "").ask(&ask(), TIME).await.expect_err("too large");
        assert_eq!((error.fault, error.attempts), (Fault::Unreadable, 1), "{error}");
        // What the system's buffers take is not ours, and far less than the rest.
        assert!(server.sent() < send::MAX_REPLY + 24 * 1024 * 1024, "{} bytes were taken", server.sent());
    }
    // An error's body is held to less.
    let (fault, _, _) = failure(vec![status(400, "", &" ".repeat(1024 * 1024))], "").await;
    assert_eq!(fault, Fault::Rejected);
}

#[tokio::test]
async fn a_compressed_reply_is_not_asked_for() {
    let server = Server::start([hello()]).await;
    client("openai", &server, "").ask(&ask(), TIME).await.unwrap();
    assert_eq!(server.requests()[0].header("accept-encoding"), None);
}

#[tokio::test]
async fn no_answer_in_time_is_told_from_no_answer() {
    let (result, requests) = run(vec![Serve::Hang], "", Duration::from_secs(2)).await;
    let error = result.expect_err("there is no answer");
    assert_eq!((error.fault, error.attempts, requests), (Fault::TimedOut, 1, 1), "{error}");

    let (result, requests) = run(vec![Serve::Hang, hello()], "timeout_seconds = 1", TIME).await;
    assert!(result.unwrap().attempts >= 2 && requests >= 2, "an attempt has its own time");
}

#[tokio::test]
async fn no_server_is_unavailable() {
    let server = Server::start([hello()]).await;
    let client = client("openai", &server, "");
    drop(server);
    let error = client.ask(&ask(), TIME).await.expect_err("no one listens");
    assert_eq!((error.fault, error.attempts), (Fault::Unavailable, 4), "{error}");
    assert!(error.message.contains("check base_url"), "{error}");
}

#[tokio::test]
async fn a_provider_that_refuses_the_key_is_left_alone_until_one_attempt_succeeds() {
    let refused = status(401, "", "{\"error\": {\"message\": \"bad key\"}}");
    let server = Server::start([refused.clone(), refused.clone(), refused, hello()]).await;
    let client = client("openai", &server, "");
    let asked = ask();
    let mut errors = Vec::new();
    // The pauses of the tests are a few milliseconds.
    while errors.len() < 10_000 && server.requests().len() < 4 {
        errors.extend(client.ask(&asked, TIME).await.err());
    }
    assert_eq!(errors.iter().filter(|error| error.attempts == 1).count(), 3, "the others are not sent");
    let last = &errors.last().unwrap();
    assert_eq!((last.fault, last.attempts), (Fault::Unavailable, 0), "{last}");
    assert!(last.message.contains("not asked, after 3 failures in a row; the last one: HTTP 401: bad key"), "{last}");
    assert!(client.ask(&asked, TIME).await.is_ok());
    let log = String::from_utf8(log().lock().unwrap().clone()).unwrap();
    assert!(!log.contains("hunter2"));
}

#[tokio::test]
async fn a_request_that_is_refused_by_itself_stops_no_other() {
    let (bad, off) = (status(400, "", "{}"), status(500, "", "{}"));
    let server = Server::start([off.clone(), off.clone(), bad.clone(), off.clone(), off, hello()]).await;
    let client = client("openai", &server, "");
    assert_eq!(client.ask(&ask(), TIME).await.unwrap_err().fault, Fault::Rejected);
    assert_eq!(client.ask(&ask(), TIME).await.unwrap().attempts, 3);
}

#[tokio::test]
async fn an_unknown_model_is_rejected() {
    let server = Server::start([hello()]).await;
    let asked = Ask { model: "other".into(), ..ask() };
    let error = client("openai", &server, "").ask(&asked, TIME).await.expect_err("no such model");
    assert_eq!((error.fault, error.attempts), (Fault::Rejected, 0));
    assert!(error.message.contains("\"other\""));
}

#[tokio::test]
async fn no_more_calls_than_allowed_run_at_once() {
    let server = Server::start([Serve::Slow(hello_body())]).await;
    let client = client("openai", &server, "concurrency = 2");
    let asked = ask();
    let all = futures_util::future::join_all((0..8).map(|_| client.ask(&asked, TIME))).await;
    assert!(all.iter().all(Result::is_ok));
    assert!(server.most_at_once() <= 2, "{} ran at once", server.most_at_once());
}

#[test]
fn a_missing_key_is_named_at_the_start() {
    let text = "[models.m]\nprovider = \"openai\"\nmodel = \"x\"\nkey_env = \"NO_SUCH_KEY\"\nwindow = 4096\n";
    let config = Config::parse("f", text).unwrap();
    let error = Client::with(&config, |_| None, Pace::default()).expect_err("there is no key").to_string();
    assert!(error.contains("\"m\"") && error.contains("NO_SUCH_KEY"), "{error}");
}

/// What this process logs, all of it. The subscriber is everyone's: one of this thread alone would
/// miss spans that another thread's test came to first.
fn log() -> &'static Mutex<Vec<u8>> {
    static LOG: Mutex<Vec<u8>> = Mutex::new(Vec::new());
    static START: std::sync::Once = std::sync::Once::new();
    START.call_once(|| {
        tracing_subscriber::fmt()
            .with_ansi(false)
            .with_env_filter(casebook_runtime::telemetry::filter("trace"))
            .with_span_events(tracing_subscriber::fmt::format::FmtSpan::CLOSE)
            .with_writer(|| LOG.make_writer())
            .init();
    });
    &LOG
}

#[tokio::test]
async fn logs_have_names_and_counts_and_no_key_prompt_or_reply() {
    let log = log();
    let server = Server::start([status(500, "", "{\"error\": {\"message\": \"sk-planted-hunter2\"}}"), hello()]).await;
    let client = client("openai", &server, "");
    let id = casebook_protocol::ModelCallId::new("r7.plan.m7").unwrap();
    client.ask(&Ask { id, ..ask() }, TIME).await.unwrap();
    let debug = format!("{client:?}");
    let log = String::from_utf8(log.lock().unwrap().clone()).unwrap();
    let closed = log.lines().find(|line| line.contains("r7.plan.m7") && line.contains("close time")).expect("a span");
    for want in
        ["chat{", "gen_ai.provider.name=\"openai\"", "maker-1", "gen_ai.usage.input_tokens=", "casebook.attempts=2"]
    {
        assert!(closed.contains(want), "{want:?} is not in {closed}");
    }
    for secret in ["hunter2", "heron", "hello"] {
        assert!(!log.contains(secret) && !debug.contains(secret), "{secret:?} is in {log} {debug}");
    }
}

#[test]
fn tls_is_rustls_with_ring_and_nothing_else() {
    let lock = include_str!("../../../../../../Cargo.lock");
    assert!(lock.contains("name = \"ring\""));
    for other in ["aws-lc", "openssl-sys", "native-tls"] {
        assert!(!lock.contains(&format!("name = \"{other}")), "{other} came in with a dependency's feature");
    }
}

/// HTTPS is set up without a panic: the client finds its provider of cryptography.
#[tokio::test]
async fn https_to_a_server_without_it_is_an_error() {
    let server = Server::start([hello()]).await;
    let client = client("openai", &server, "");
    let secure = server.url().replace("http://", "https://");
    let error = client.http.get(secure).send().await.expect_err("it speaks no TLS");
    assert!(error.is_connect(), "{error:?}");
}
