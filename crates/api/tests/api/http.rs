//! The server over real HTTP.

use std::collections::BTreeSet;
use std::io::Read as _;
use std::time::Duration;

use casebook_api::http::access::{Access, Known};
use casebook_api::openapi::openapi;
use casebook_api::routes::{ROUTES, Verb};
use casebook_protocol::Timestamp;
use casebook_runtime::clock::Clock as _;
use casebook_runtime::store::Store;
use futures_util::StreamExt;
use reqwest::{Client, StatusCode, header, redirect};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::kit::{KEY, Noon, Served, served, served_with};

fn client() -> Client {
    casebook_runtime::tls::install();
    Client::builder().redirect(redirect::Policy::none()).timeout(Duration::from_secs(20)).build().unwrap()
}

impl Served {
    async fn get(&self, path: &str) -> reqwest::Response {
        client().get(format!("{}{path}", self.base)).bearer_auth(KEY).send().await.unwrap()
    }

    async fn json(&self, path: &str) -> Value {
        let answer = self.get(path).await;
        assert_eq!(answer.status(), 200, "{path}");
        serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap()
    }

    fn one(&self, path: &str) -> String {
        format!("/api/v1/investigations/{}{path}", self.id)
    }
}

async fn problem(answer: reqwest::Response) -> (u16, String) {
    assert_eq!(answer.headers()[header::CONTENT_TYPE], "application/problem+json");
    let status = answer.status().as_u16();
    let body: Value = serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap();
    assert_eq!(body["status"], status);
    assert!(!body["try"].as_str().unwrap().is_empty());
    (status, body["type"].as_str().unwrap().to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_printed_address_signs_in_and_nothing_else_does() {
    let server = served(usize::MAX).await;
    let client = client();
    let without = client.get(&server.base).send().await.unwrap();
    assert_eq!(without.status(), 401);
    let signed = client.get(format!("{}/launch?k={KEY}&x=1", server.base)).send().await.unwrap();
    assert_eq!(signed.status(), 303);
    assert_eq!(signed.headers()[header::LOCATION], "/launch?x=1");
    let cookie = signed.headers()[header::SET_COOKIE].to_str().unwrap().to_owned();
    assert!(cookie.starts_with(&format!("casebook_{}=", server.address.port())), "{cookie}");
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Lax"), "{cookie}");
    let session = cookie.split(';').next().unwrap();
    let page = client.get(&server.base).header(header::COOKIE, session).send().await.unwrap();
    assert_eq!(page.status(), 200);
    let policy = page.headers()[header::CONTENT_SECURITY_POLICY].to_str().unwrap();
    assert!(policy.contains("default-src 'none'") && policy.contains("require-trusted-types-for 'script'"), "{policy}");
    for header in
        ["x-content-type-options", "referrer-policy", "cross-origin-opener-policy", "cross-origin-resource-policy"]
    {
        assert!(page.headers().contains_key(header), "{header}");
    }
    // Two slashes after the host lead to this host as well.
    let elsewhere = client.get(format!("{}//example.org/?k={KEY}", server.base)).send().await.unwrap();
    assert_eq!(elsewhere.headers()[header::LOCATION], "/example.org/");
    for n in 0..6 {
        let wrong = client.get(format!("{}/?k=wrong{n}", server.base)).send().await.unwrap();
        assert_eq!(wrong.status(), if n < 5 { 401 } else { 429 }, "try {n}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_in_use_is_renewed_and_an_old_one_is_refused() {
    let (server, access) = (served(usize::MAX).await, Access::new(KEY));
    let since = |seconds: i64| access.begin(Timestamp::from_second(Noon.now().as_second() - seconds).unwrap());
    let name = format!("casebook_{}", server.address.port());
    let ask = async |session: &str| {
        let request = client().get(&server.base).header(header::COOKIE, format!("{name}={session}"));
        let answer = request.send().await.unwrap();
        let set = answer.headers().get(header::SET_COOKIE).map(|set| set.to_str().unwrap().to_owned());
        (answer.status().as_u16(), set)
    };
    assert_eq!(ask(&since(30)).await, (200, None));
    let (status, set) = ask(&since(3_000)).await;
    let set = set.unwrap();
    let renewed = set.strip_prefix(&format!("{name}=")).unwrap().split(';').next().unwrap();
    assert!(status == 200 && set.contains("HttpOnly") && set.contains("SameSite=Lax"), "{status} {set}");
    let later = Timestamp::from_second(Noon.now().as_second() + 3_000).unwrap();
    assert!(matches!(access.knows(renewed, later), Known::Renewed(_)), "an hour counts from the last use");
    assert_eq!(ask(renewed).await, (200, None));
    assert_eq!(ask(&since(3_600)).await, (401, None));
    assert_eq!(ask(&Access::new("another key").begin(Noon.now())).await, (401, None));
}

#[tokio::test(flavor = "multi_thread")]
async fn another_host_and_another_site_are_refused_before_anything_else() {
    let server = served(usize::MAX).await;
    let port = server.address.port();
    let ask =
        |host: String| client().get(format!("{}/", server.base)).bearer_auth(KEY).header(header::HOST, host).send();
    for host in
        ["evil.example".to_owned(), format!("127.0.0.1.evil.example:{port}"), "127.0.0.1:1".into(), String::new()]
    {
        assert_eq!(ask(host.clone()).await.unwrap().status(), 421, "{host:?}");
    }
    assert_eq!(ask(format!("localhost:{port}")).await.unwrap().status(), 200);
    let session = client().get(format!("{}/?k={KEY}", server.base)).send().await.unwrap();
    let session = session.headers()[header::SET_COOKIE].to_str().unwrap().split(';').next().unwrap().to_owned();
    let send = |extra: Vec<(&'static str, String)>| {
        let mut request = client().post(format!("{}/preferences", server.base)).header(header::COOKIE, &session);
        for (name, value) in extra {
            request = request.header(name, value);
        }
        request
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body("theme=dark&back=//evil.example")
            .send()
    };
    let refused = [
        vec![],
        vec![("origin", "http://evil.example".to_owned())],
        vec![("origin", format!("http://127.0.0.1:{}", port.wrapping_add(1)))],
        vec![("sec-fetch-site", "same-site".to_owned())],
        vec![("origin", "null".to_owned()), ("sec-fetch-site", "cross-site".to_owned())],
    ];
    for extra in refused {
        assert_eq!(send(extra.clone()).await.unwrap().status(), 403, "{extra:?}");
    }
    let done = send(vec![("origin", format!("http://127.0.0.1:{port}"))]).await.unwrap();
    assert_eq!((done.status(), done.headers()[header::LOCATION].to_str().unwrap()), (StatusCode::SEE_OTHER, "/"));
    assert!(done.headers()[header::SET_COOKIE].to_str().unwrap().contains("casebook_theme=dark"));
}

#[tokio::test(flavor = "multi_thread")]
async fn every_resource_answers_as_the_description_says() {
    let server = served(usize::MAX).await;
    let described = openapi();
    let report = server.json(&server.one("/report.json")).await;
    let call = report["calls"][0]["id"].as_str().unwrap().to_owned();
    let finding = report["findings"][0]["finding"]["id"].as_str().unwrap().to_owned();
    let task = report["usage"]["tasks"][0]["task"].as_str().unwrap().to_owned();
    let mut seen = 0;
    for route in ROUTES.iter().filter(|route| route.verb == Verb::Get) {
        let path = route
            .path
            .replace("{id}", server.id.as_str())
            .replace("{seq}", "1")
            .replace("{finding}", &finding)
            .replace("{task}", &task)
            .replace("{call}", &call);
        if ["/events", "/context", "/compare"].contains(&route.path)
            || path.contains('{')
            || path.ends_with("/result")
            || path.ends_with("/view")
            || path.ends_with("/context")
        {
            continue;
        }
        let answer = server.get(&format!("/api/v1{path}")).await;
        assert_eq!(answer.status(), 200, "{path}");
        let kind = answer.headers()[header::CONTENT_TYPE].to_str().unwrap().to_owned();
        let body = answer.bytes().await.unwrap();
        if kind == "application/json" {
            let mut schema = described["paths"][format!("/api/v1{}", route.path)]["get"]["responses"]["200"]["content"]
                ["application/json"]["schema"]
                .clone();
            schema["components"] = described["components"].clone();
            let value: Value = serde_json::from_slice(&body).unwrap();
            let errors: Vec<String> =
                jsonschema::validator_for(&schema).unwrap().iter_errors(&value).map(|e| e.to_string()).collect();
            assert!(errors.is_empty(), "{path}: {errors:?}");
        }
        seen += 1;
    }
    assert!(seen >= 20, "{seen}");
    let raw = server.get(&server.one("/report.html")).await;
    assert!(raw.headers()[header::CONTENT_DISPOSITION].to_str().unwrap().starts_with("attachment"));
    assert_eq!(raw.headers()[header::CONTENT_SECURITY_POLICY], "sandbox");
}

#[tokio::test(flavor = "multi_thread")]
async fn mistakes_are_problems_that_say_what_to_do() {
    let server = served(20).await;
    let check = async |path: String, status: u16, kind: &str| {
        assert_eq!(problem(server.get(&path).await).await, (status, format!("/problems/{kind}")), "{path}");
    };
    check("/api/v1/investigations/none".into(), 404, "not-found").await;
    check("/api/v1/nothing".into(), 404, "not-found").await;
    check("/api/v1/investigations?typo=1".into(), 400, "unreadable").await;
    check("/api/v1/investigations?limit=0".into(), 400, "unreadable").await;
    check("/api/v1/investigations?cursor=abc.def".into(), 400, "unreadable").await;
    check(server.one("?at=x"), 400, "unreadable").await;
    check(server.one("/report.json"), 409, "not-closed").await;
    check(server.one("/events/9999"), 404, "not-found").await;
    check(server.one("/context?file=a"), 400, "unreadable").await;
    check(server.one("/context?file=a&line=1&seconds=99999999999"), 400, "unreadable").await;
    let post = client().post(format!("{}/api/v1/insights", server.base)).bearer_auth(KEY).send().await.unwrap();
    assert_eq!(problem(post).await.0, 405);
    let launch = |body: &'static str, kind: &'static str| {
        client()
            .post(format!("{}/api/v1/investigations", server.base))
            .bearer_auth(KEY)
            .header(header::CONTENT_TYPE, kind)
            .body(body)
            .send()
    };
    assert_eq!(problem(launch("{}", "text/plain").await.unwrap()).await.0, 415);
    assert_eq!(problem(launch("{", "application/json").await.unwrap()).await.0, 400);
    assert_eq!(problem(launch("{\"alert\":1}", "application/json").await.unwrap()).await.0, 422);
    let unknown = launch("{\"alert\":{\"id\":\"a\"}}", "application/json").await.unwrap();
    assert_eq!(problem(unknown).await, (409, "/problems/no-team".into()));
    for kind in casebook_api::problem::Kind::ALL {
        assert_eq!(server.get(&format!("/problems/{}", kind.name())).await.status(), 200, "{kind:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_a_list_are_complete_and_tags_spare_the_body() {
    let server = served(usize::MAX).await;
    let mut seen = Vec::new();
    let mut from = 1;
    loop {
        let page = server.json(&server.one(&format!("/events?limit=7&from={from}"))).await;
        seen.extend(page["items"].as_array().unwrap().iter().map(|entry| entry["seq"].as_u64().unwrap()));
        let Some(next) = page["next"].as_str() else { break };
        from = next.parse::<u64>().unwrap();
    }
    assert_eq!(seen, (1..=server.log.len() as u64).collect::<Vec<_>>());
    let mut calls = BTreeSet::new();
    let mut cursor = String::new();
    loop {
        let page = server.json(&server.one(&format!("/calls?limit=5{cursor}"))).await;
        for one in page["items"].as_array().unwrap() {
            assert!(calls.insert(one["id"].as_str().unwrap().to_owned()), "a call is on two pages");
        }
        let Some(next) = page["next"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    let all = server.json(&server.one("/report.json")).await;
    assert_eq!(calls.len(), all["calls"].as_array().unwrap().len());
    let first = server.get(&server.one("/journal")).await;
    let tag = first.headers()[header::ETAG].to_str().unwrap().to_owned();
    let again = client()
        .get(format!("{}{}", server.base, server.one("/journal")))
        .bearer_auth(KEY)
        .header(header::IF_NONE_MATCH, &tag)
        .send()
        .await
        .unwrap();
    assert_eq!(again.status(), 304);
    // A tag of a packed answer is weak, and spares the body as well.
    let again = |tag: String| {
        client()
            .get(format!("{}{}", server.base, server.one("/journal")))
            .bearer_auth(KEY)
            .header(header::ACCEPT_ENCODING, "br, gzip")
            .header(header::IF_NONE_MATCH, tag)
            .send()
    };
    let packed = again(String::new()).await.unwrap();
    assert_eq!(
        (&packed.headers()[header::CONTENT_ENCODING], &packed.headers()[header::VARY]),
        (&"gzip".parse().unwrap(), &"accept-encoding".parse().unwrap())
    );
    let weak = packed.headers()[header::ETAG].to_str().unwrap().to_owned();
    assert_eq!(weak, format!("W/{tag}"));
    let mut text = String::new();
    flate2::read::GzDecoder::new(&packed.bytes().await.unwrap()[..]).read_to_string(&mut text).unwrap();
    assert_eq!(text, first.text().await.unwrap());
    assert_eq!(again(weak).await.unwrap().status(), 304);
    let past = server.get(&server.one("/journal?at=20")).await;
    assert_ne!(past.headers()[header::ETAG].to_str().unwrap(), tag);
    // Another data folder may have an investigation with the same id.
    let other = served_with(usize::MAX, |log| log[0].at = log[0].at.checked_sub(Duration::from_secs(1)).unwrap()).await;
    for path in ["/journal", "/events/1", "/journal?at=20"] {
        let [one, two] = [&server, &other]
            .map(|server| async move { server.get(&server.one(path)).await.headers()[header::ETAG].clone() });
        assert_ne!(one.await, two.await, "{path}");
    }
}

/// A head that does not end is given up, and many of them leave room for others.
#[tokio::test(flavor = "multi_thread")]
async fn clients_that_say_nothing_block_no_one_and_are_dropped() {
    let server = served(20).await;
    let mut silent = Vec::new();
    for _ in 0..200 {
        let mut stream = tokio::net::TcpStream::connect(server.address).await.unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\nHost: ").await.unwrap();
        silent.push(stream);
    }
    assert_eq!(server.get("/problems/host").await.status(), 200);
    let mut last = silent.pop().unwrap();
    let ended = tokio::time::timeout(Duration::from_secs(15), last.read_to_end(&mut Vec::new())).await;
    assert!(ended.is_ok(), "the connection stays open");
    let mut stream = tokio::net::TcpStream::connect(server.address).await.unwrap();
    let head = format!("GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: {}\r\n\r\n", "x".repeat(40_000));
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = String::new();
    // The server may close before it has read all.
    let _ = stream.read_to_string(&mut answer).await;
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431"), "{answer}");
}

/// The ids of the events of a stream until `last`, or until the stream ends.
async fn ids(server: &Server<'_>, from: &str, last: u64) -> Vec<u64> {
    let mut request = client()
        .get(format!("{}{}", server.0.base, server.0.one("/events")))
        .bearer_auth(KEY)
        .header(header::ACCEPT, "text/event-stream");
    if !from.is_empty() {
        request = request.header("last-event-id", from);
    }
    let answer = request.send().await.unwrap();
    assert_eq!(answer.status(), 200);
    let (mut stream, mut text, mut out) = (answer.bytes_stream(), String::new(), Vec::new());
    while let Some(chunk) = stream.next().await {
        text.push_str(&String::from_utf8_lossy(&chunk.expect("the stream goes on or ends")));
        out = text
            .split("\n\n")
            .filter_map(|event| event.lines().find_map(|line| line.strip_prefix("id: ")?.parse().ok()))
            .collect();
        if out.contains(&last) {
            break;
        }
    }
    out
}

struct Server<'s>(&'s Served);

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_goes_on_where_it_was_cut_and_hears_what_is_new() {
    let server = served(30).await;
    let whole = server.log.len() as u64;
    let cut = ids(&Server(&server), "", 12).await;
    let cut: Vec<u64> = cut.into_iter().take_while(|seq| *seq <= 12).collect();
    let store = server.store.clone();
    let (id, rest) = (server.id.clone(), server.log[30..].to_vec());
    let writing = tokio::spawn(async move {
        for entry in rest.chunks(9) {
            tokio::time::sleep(Duration::from_millis(30)).await;
            store.append(&id, entry[0].seq - 1, entry).await.unwrap();
        }
    });
    let more = ids(&Server(&server), "12", whole).await;
    writing.await.unwrap();
    let all: Vec<u64> = cut.into_iter().chain(more).collect();
    assert_eq!(all, (1..=whole).collect::<Vec<_>>());
    // Whole: the stream ends with the log. After that there is nothing to ask for.
    assert_eq!(ids(&Server(&server), "", 0).await, (1..=whole).collect::<Vec<_>>());
    for seen in [whole, u64::MAX] {
        let ask = client().get(format!("{}{}", server.base, server.one("/events"))).bearer_auth(KEY);
        let ask = ask.header(header::ACCEPT, "text/event-stream").header("last-event-id", seen.to_string());
        assert_eq!(ask.send().await.unwrap().status(), 204, "a browser does not ask again after {seen}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_three_channels_at_any_event_are_those_of_the_log() {
    let server = served(usize::MAX).await;
    for at in (1..server.log.len()).step_by(5) {
        let state = casebook_hub::State::replay(&server.log[..at]);
        let journal = server.json(&server.one(&format!("/journal?at={at}"))).await;
        assert_eq!(journal["items"], serde_json::to_value(&state.journal).unwrap(), "at {at}");
        let timeline = server.get(&server.one(&format!("/timeline?at={at}"))).await;
        assert_eq!(timeline.status().as_u16(), if state.timeline.is_some() { 200 } else { 404 }, "at {at}");
        if let Some(review) = &state.review {
            assert_eq!(
                server.json(&server.one(&format!("/review?at={at}"))).await,
                serde_json::to_value(review).unwrap(),
                "at {at}"
            );
        }
    }
}
