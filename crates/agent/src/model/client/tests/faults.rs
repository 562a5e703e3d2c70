use std::io::Write;
use std::sync::Mutex;

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
        status(429, "retry-after: 0\r\n", "{}"),
        status(429, "retry-after: Wed, 21 Oct 2015 07:28:00 GMT\r\n", "{}"),
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
async fn what_does_not_pass_ends_after_its_attempts() {
    let (fault, message, requests) =
        failure(vec![status(529, "", "{\"error\": {\"message\": \"Overloaded\"}}")], "").await;
    assert_eq!((fault, requests), (Fault::Unavailable, 4));
    assert!(message.contains("HTTP 529: Overloaded"), "{message}");
}

#[tokio::test]
async fn a_wait_that_does_not_fit_is_not_begun() {
    let (fault, message, requests) = failure(vec![status(429, "retry-after: 900\r\n", "{}")], "").await;
    assert_eq!((fault, requests), (Fault::Unavailable, 1));
    assert!(message.contains("it asks to wait 900 s"), "{message}");
}

#[tokio::test]
async fn what_is_refused_is_not_tried_again() {
    for (code, body, want) in [
        (400, "{\"error\": {\"message\": \"unknown parameter\"}}", "HTTP 400: unknown parameter"),
        (
            401,
            "{\"error\": {\"message\": \"Incorrect API key: sk-planted-hunter2\"}}",
            "HTTP 401: Incorrect API key: [key]",
        ),
        (403, "{\"message\": \"no\"}", "HTTP 403: no"),
        (404, "{\"detail\": \"Not Found\"}", "HTTP 404: Not Found (check model and base_url)"),
        (422, "<html>", "HTTP 422"),
        (302, "", "redirects are not followed"),
        (429, "{\"error\": {\"code\": \"insufficient_quota\", \"message\": \"pay\"}}", "HTTP 429: pay"),
        (
            400,
            "{\"error\": {\"message\": \"bad: the secret of the prompt is the blue heron at dawn\"}}",
            "quotes the request",
        ),
    ] {
        let (fault, message, requests) =
            failure(vec![status(code, "location: http://127.0.0.1:9/\r\n", body)], "").await;
        assert_eq!((fault, requests), (Fault::Rejected, 1), "{message}");
        assert!(message.contains(want), "{want:?} is not in {message:?}");
    }
}

#[tokio::test]
async fn a_providers_message_is_one_short_line() {
    let long = format!("{{\"error\": {{\"message\": \"a\\u001b[31m\\n{}\"}}}}", "é".repeat(5000));
    let (_, message, _) = failure(vec![status(400, "", &long)], "").await;
    assert!(message.chars().count() < 400 && !message.contains('\n') && !message.contains('\u{1b}'), "{message}");
}

#[tokio::test]
async fn what_cannot_be_read_is_said_so_and_not_tried_again() {
    for body in ["<html>busy</html>", "{}", "[]", "null", "{\"choices\": []}", "{\"choices\": [{\"message\": 1}]}"] {
        let (fault, _, requests) = failure(vec![status(200, "", body)], "").await;
        assert_eq!((fault, requests), (Fault::Unreadable, 1), "{body}");
    }
    // The library fails here, with the whole prompt in its message.
    let odd = json!({"choices": [{"message": {"role": "assistant", "content": null, "tool_calls": [{"id": "t", "function": 7}]}}]});
    let (fault, message, _) = failure(vec![ok(&odd)], "").await;
    assert_eq!(fault, Fault::Unreadable, "{message}");
}

/// Every place of a good reply, in turn, holds something that does not belong there.
#[tokio::test]
async fn no_reply_however_odd_makes_a_panic() {
    let call = json!({"id": "t", "type": "function", "function": {"name": "f", "arguments": "{}"}});
    let chat = json!({"model": "m", "choices": [{"message": {"content": "x", "refusal": "no", "tool_calls": [call]},
        "finish_reason": "stop"}], "usage": {"prompt_tokens": 1, "prompt_tokens_details": {"cached_tokens": 1}}});
    let blocks = json!([{"type": "text", "text": "x"}, {"type": "thinking", "thinking": "x", "signature": "x"},
        {"type": "tool_use", "id": "t", "name": "f", "input": {}}]);
    let messages = json!({"model": "m", "content": blocks, "stop_reason": "end_turn", "usage": {"input_tokens": 1}});
    let items = json!([{"type": "message", "content": [{"type": "refusal", "refusal": "no"}]},
        {"type": "function_call", "call_id": "t", "name": "f", "arguments": "{}"}]);
    let responses = json!({"id": "r", "status": "completed", "model": "m", "output": items,
        "incomplete_details": {"reason": "x"}, "usage": {"input_tokens": 1}});
    let gemini = json!({"candidates": [{"content": {"parts": [{"text": "x"}]}, "finishReason": "STOP"}],
        "promptFeedback": {"blockReason": "x"}, "usageMetadata": {"promptTokenCount": 1}});
    let bedrock = json!({"output": {"message": {"content": [{"text": "x"}]}}, "stopReason": "end_turn", "usage": {"inputTokens": 1}});
    for (provider, good) in [
        ("openai", chat),
        ("anthropic", messages),
        ("openai-responses", responses),
        ("gemini", gemini),
        ("bedrock", bedrock),
    ] {
        for odd in [json!(null), json!(7), json!("x"), json!([7]), json!({"x": 7}), json!(-9e99)] {
            for place in places(&good, "") {
                let mut body = good.clone();
                *body.pointer_mut(&place).unwrap() = odd.clone();
                let server = Server::start([ok(&body)]).await;
                let _ = client(provider, &server, "").ask(&ask(), TIME).await;
                assert!(!server.requests().is_empty(), "{provider} {place}");
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

/// What a subscriber writes.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// What this process logs, all of it. The subscriber is everyone's: one of this thread alone would
/// miss spans that another thread's test came to first.
fn log() -> Log {
    static LOG: std::sync::OnceLock<Log> = std::sync::OnceLock::new();
    let start = || {
        let log = Log::default();
        let writer = log.clone();
        tracing_subscriber::fmt()
            .with_ansi(false)
            .with_env_filter(casebook_runtime::telemetry::filter("trace"))
            .with_span_events(tracing_subscriber::fmt::format::FmtSpan::CLOSE)
            .with_writer(move || writer.clone())
            .init();
        log
    };
    LOG.get_or_init(start).clone()
}

#[tokio::test]
async fn logs_have_names_and_counts_and_no_key_prompt_or_reply() {
    let log = log();
    let server = Server::start([status(500, "", "{\"error\": {\"message\": \"sk-planted-hunter2\"}}"), hello()]).await;
    let client = client("openai", &server, "");
    let id = casebook_protocol::ModelCallId::new("r7.plan.m7").unwrap();
    client.ask(&Ask { id, ..ask() }, TIME).await.unwrap();
    let debug = format!("{client:?}");
    let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    let closed = log.lines().find(|line| line.contains("r7.plan.m7") && line.contains("close time")).expect("a span");
    for want in
        ["chat{", "gen_ai.provider.name=\"openai\"", "maker-1", "gen_ai.usage.input_tokens=0", "casebook.attempts=2"]
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
