//! `casebook serve` as a process: alerts, evidence and uploads over HTTP.

use std::io::Write;
use std::ops::Deref;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use casebook_protocol::Timestamp;
use casebook_tests::run;
use casebook_tests::wait::{self, PATIENCE};
use casebook_tests::web::{Server, contract};
use futures_util::StreamExt;
use reqwest::{Client, Method, Response};
use serde_json::{Value, json};

struct Asked(Server);

impl Deref for Asked {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.0
    }
}

fn case() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("cases/package-hook-kmod")
}

fn serve(data: &Path, arguments: &[&str]) -> Asked {
    Asked(Server::serve(data, arguments).unwrap())
}

impl Asked {
    async fn ask(&self, method: Method, path: &str, body: Vec<u8>) -> Response {
        let client = Client::builder().timeout(Duration::from_secs(60)).build().unwrap();
        let request = client.request(method, format!("{}/api/v1{path}", self.base)).bearer_auth(&self.key);
        request.header("content-type", "application/json").body(body).send().await.unwrap()
    }

    async fn get(&self, path: &str) -> Value {
        let answer = self.ask(Method::GET, path, Vec::new()).await;
        assert_eq!(answer.status(), 200, "{path}");
        body(answer).await
    }

    async fn launch(&self, body: &Value) -> (u16, Value) {
        let answer = self.ask(Method::POST, "/investigations", body.to_string().into_bytes()).await;
        (answer.status().as_u16(), self::body(answer).await)
    }

    async fn closed(&self, id: &str) -> Value {
        let look =
            async || Some(self.get(&format!("/investigations/{id}")).await).filter(|now| now["closed"].is_string());
        wait::soon(PATIENCE, look).await.unwrap_or_else(|| panic!("{id} does not end"))
    }

    async fn repeat(&self, body: &Value) -> (u16, Value) {
        let answer = self.ask(Method::POST, "/backtests", body.to_string().into_bytes()).await;
        (answer.status().as_u16(), self::body(answer).await)
    }

    async fn repeated(&self, n: &Value) -> Value {
        for _ in 0..1_200 {
            let now = self.get(&format!("/backtests/{n}")).await;
            if now["state"] != "running" {
                return now;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("backtest {n} does not end");
    }
}

async fn body(answer: Response) -> Value {
    serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_alert_is_investigated_once_over_each_body_of_evidence() {
    let data = tempfile::tempdir().unwrap();
    let case = case();
    let evidence = case.join("evidence");
    let server =
        serve(data.path(), &["--evidence", evidence.to_str().unwrap(), "--team", case.join("team").to_str().unwrap()]);
    let alert: Value = serde_json::from_str(&std::fs::read_to_string(case.join("alert.json")).unwrap()).unwrap();
    let (status, first) = server.launch(&json!({"alert": alert})).await;
    assert_eq!((status, &first["fresh"]), (201, &json!(true)));
    let (status, same) = server.launch(&json!({"alert": alert})).await;
    assert_eq!((status, &same["investigation"], &same["fresh"]), (200, &first["investigation"], &json!(false)));

    let upload =
        body(server.ask(Method::POST, "/uploads", Vec::new()).await).await["upload"].as_str().unwrap().to_owned();
    let kept = std::fs::metadata(data.path().join("uploads").join(&upload)).unwrap();
    assert_eq!(kept.permissions().mode() & 0o077, 0, "others may enter the folder of the upload");
    for name in ["..%2f..%2fx", "a%2f..%2fb", ".hidden", "a%5cb", "a%00b", "%2fetc%2fpasswd"] {
        let refused = server.ask(Method::PUT, &format!("/uploads/{upload}/files/{name}"), b"x".to_vec()).await;
        assert!([404, 422].contains(&refused.status().as_u16()), "{name}: {}", refused.status());
    }
    let log = std::fs::read(evidence.join("auth.log")).unwrap();
    let place = format!("/uploads/{upload}/files/host/auth.log");
    let put = |log: Vec<u8>| server.ask(Method::PUT, &place, log);
    assert_eq!(put(log.clone()).await.status(), 201);
    assert_eq!(put(log.clone()).await.status(), 409, "a file is uploaded once");
    assert_eq!(std::fs::read(data.path().join("uploads").join(&upload).join("host/auth.log")).unwrap(), log);
    let sources = server.get("/sources").await;
    assert!(sources["items"].as_array().unwrap().iter().any(|one| one["name"] == upload.as_str()), "{sources}");
    let (status, other) = server.launch(&json!({"alert": alert, "source": upload})).await;
    assert_eq!(status, 201);
    assert_ne!(other["investigation"], first["investigation"], "other evidence is another investigation");
    assert_eq!(server.launch(&json!({"alert": alert, "source": "/etc"})).await.0, 404);

    assert_eq!(server.ask(Method::PUT, &format!("{place}.1"), b"x".to_vec()).await.status(), 409, "it is in use");
    let whole = format!("/uploads/{upload}");
    assert_eq!(
        server.ask(Method::DELETE, &whole, Vec::new()).await.status(),
        409,
        "evidence of an investigation stays"
    );
    let there = server.get(&whole).await;
    assert_eq!(there, json!({"upload": upload, "files": 1, "bytes": log.len(), "used": true}));
    let unused =
        body(server.ask(Method::POST, "/uploads", Vec::new()).await).await["upload"].as_str().unwrap().to_owned();
    assert_eq!(server.ask(Method::DELETE, &format!("/uploads/{unused}"), Vec::new()).await.status(), 204);
    assert!(!data.path().join("uploads").join(&unused).exists());
    for n in 1..100 {
        std::fs::create_dir(data.path().join(format!("uploads/upload-{n}"))).unwrap();
    }
    let full = server.ask(Method::POST, "/uploads", Vec::new()).await;
    assert_eq!(full.status(), 409);
    assert_eq!(body(full).await["type"], "/problems/too-many-uploads");
    for name in [&unused, "upload-", "..", "upload-..%2f..", "%2e%2e"] {
        assert_eq!(server.ask(Method::DELETE, &format!("/uploads/{name}"), Vec::new()).await.status(), 404, "{name}");
    }

    let first = first["investigation"].as_str().unwrap();
    assert_eq!(server.closed(first).await["verdict"], "false_positive");
    server.closed(other["investigation"].as_str().unwrap()).await;
    let (status, again) = server.launch(&json!({"alert": alert})).await;
    assert_eq!((status, &again["investigation"]), (200, &json!(first)), "it is closed, and still the same");
    let verified = server.ask(Method::POST, &format!("/investigations/{first}/verifications"), Vec::new()).await;
    let verified = body(verified).await;
    assert_eq!((&verified["intact"], &verified["report"]), (&json!(true), &json!(true)), "{verified}");
    for limits in [json!({"rounds": 0}), json!({"round": 1}), json!(1), json!({"seconds": -1}), json!({"rounds": null})]
    {
        let (status, refused) = server.launch(&json!({"alert": alert, "again": true, "limits": limits})).await;
        assert_eq!(status, 422, "{limits}: {refused}");
    }
    let (status, refused) = server.launch(&json!({"alert": alert, "again": true, "limits": {"rounds": 1_000}})).await;
    assert_eq!((status, &refused["type"]), (409, &json!("/problems/over-limit")));
    let (status, second) = server.launch(&json!({"alert": alert, "again": true, "limits": {"rounds": 1}})).await;
    assert_eq!(status, 201);
    assert_ne!(second["investigation"], json!(first), "a person may ask again");
    let second = second["investigation"].as_str().unwrap();
    server.closed(second).await;
    assert_eq!(server.get(&format!("/investigations/{second}/usage")).await["rounds"], 1);
    let around = server.get(&format!("/investigations/{first}/context?file=auth.log&line=11&limit=5")).await;
    let records = around["records"].as_array().unwrap();
    assert!(records.iter().any(|one| one["file"] == "auth.log" && one["line"] == 11), "{around}");
    let list = server.get("/investigations?limit=2").await;
    let next = server.get(&format!("/investigations?limit=2&cursor={}", list["next"].as_str().unwrap())).await;
    assert_ne!(list["items"][0]["id"], next["items"][0]["id"]);
    assert_eq!(next["next"], Value::Null);
    drop(server);

    // A server without evidence shows the same, and refuses alerts.
    let reader = serve(data.path(), &[]);
    assert_eq!(reader.get(&format!("/investigations/{first}")).await["verdict"], "false_positive");
    assert_eq!(reader.launch(&json!({"alert": alert})).await.0, 409);
    assert_eq!(reader.ask(Method::POST, "/uploads", Vec::new()).await.status(), 409);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_does_not_arrive_whole_or_unpacks_to_too_much_is_no_evidence() {
    let data = tempfile::tempdir().unwrap();
    let server = serve(data.path(), &["--evidence", case().join("evidence").to_str().unwrap()]);
    let upload =
        body(server.ask(Method::POST, "/uploads", Vec::new()).await).await["upload"].as_str().unwrap().to_owned();
    let address = server.base.strip_prefix("http://").unwrap();
    let path = format!("/uploads/{upload}/files/a.log");
    let mut cut = std::net::TcpStream::connect(address).unwrap();
    let head = format!(
        "PUT /api/v1{path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {}\r\nContent-Length: 1000\r\n\r\nhalf",
        server.key
    );
    cut.write_all(head.as_bytes()).unwrap();
    let uploads = data.path().join("uploads");
    let parts = || std::fs::read_dir(&uploads).unwrap().filter(|one| !one.as_ref().unwrap().path().is_dir()).count();
    let are = async |what: usize| wait::soon(PATIENCE, async || (parts() == what).then_some(())).await;
    assert!(are(1).await.is_some(), "{} parts", parts());
    drop(cut);
    assert!(are(0).await.is_some(), "{} parts", parts());
    assert_eq!(std::fs::read_dir(uploads.join(&upload)).unwrap().count(), 0);
    let mut bomb = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    bomb.write_all(&vec![0; 64 << 20]).unwrap();
    let bomb = server.ask(Method::PUT, &format!("{path}.gz"), bomb.finish().unwrap()).await;
    assert_eq!(bomb.status(), 413);
    assert_eq!(server.ask(Method::PUT, &path, b"whole".to_vec()).await.status(), 201);
    assert_eq!(server.ask(Method::PUT, &format!("{path}/b"), b"x".to_vec()).await.status(), 409, "a.log is a file");
    assert_eq!(std::fs::read_dir(uploads.join(&upload)).unwrap().count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_killed_server_investigated_goes_on_when_it_starts_again() {
    let data = tempfile::tempdir().unwrap();
    let case = case();
    let arguments = ["--evidence", case.join("evidence").to_str().unwrap().to_owned().leak()];
    let mut server = serve(data.path(), &arguments);
    let alert: Value = serde_json::from_str(&std::fs::read_to_string(case.join("alert.json")).unwrap()).unwrap();
    let (_, launched) = server.launch(&json!({"alert": alert})).await;
    let id = launched["investigation"].as_str().unwrap().to_owned();
    while server.get(&format!("/investigations/{id}")).await["seq"].as_u64().unwrap() < 50 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    server.0.kill();
    let server = serve(data.path(), &arguments);
    server.closed(&id).await;
    // A list of another process works beside a server that is open and idle.
    let mut list = Command::new(run::program("casebook"));
    let listed = list.arg("--data").arg(data.path()).arg("list").stdin(Stdio::null()).output().unwrap();
    assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
    assert!(String::from_utf8_lossy(&listed.stdout).contains(&id));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_shows_within_a_second_what_another_process_records() {
    let data = tempfile::tempdir().unwrap();
    let case = case();
    let evidence = case.join("evidence");
    let arguments = ["--evidence", evidence.to_str().unwrap()];
    let writer = serve(data.path(), &arguments);
    // The folder is taken, so the second server only shows.
    let reader = serve(data.path(), &arguments);
    let alert: Value = serde_json::from_str(&std::fs::read_to_string(case.join("alert.json")).unwrap()).unwrap();
    assert_eq!(reader.launch(&json!({"alert": alert})).await.0, 409);
    let (_, launched) = writer.launch(&json!({"alert": alert})).await;
    let id = launched["investigation"].as_str().unwrap();
    let client = Client::new();
    let stream = client.get(format!("{}/api/v1/investigations/{id}/events", reader.base)).bearer_auth(&reader.key);
    let answer = stream.header("accept", "text/event-stream").send().await.unwrap();
    let mut chunks = answer.bytes_stream();
    let (mut text, mut seen, mut late) = (String::new(), 0_u64, Vec::new());
    while let Some(Ok(chunk)) = chunks.next().await {
        let now = Timestamp::now();
        text.push_str(&String::from_utf8_lossy(&chunk));
        while let Some((event, rest)) = text.split_once("\n\n") {
            if let Some(json) = event.lines().find_map(|line| line.strip_prefix("data: ")) {
                let entry: Value = serde_json::from_str(json).unwrap();
                seen += 1;
                assert_eq!(entry["seq"], seen);
                let at: Timestamp = entry["at"].as_str().unwrap().parse().unwrap();
                late.push(now.duration_since(at).as_millis());
            }
            text = rest.to_owned();
        }
    }
    let now = writer.get(&format!("/investigations/{id}")).await;
    assert_eq!((now["seq"].as_u64(), now["closed"].is_string()), (Some(seen), true), "the stream ends with the case");
    late.sort_unstable();
    let most = late[late.len() * 95 / 100];
    assert!(most < 1_000, "95 of 100 events were at most {most} ms late");
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_are_those_of_the_description_for_any_request() {
    println!("{}", contract::check(8).await.unwrap());
}

/// The record stays as it is, and the same analyst comes to the same findings again.
#[tokio::test(flavor = "multi_thread")]
async fn a_closed_investigation_is_repeated_and_compared() {
    let data = tempfile::tempdir().unwrap();
    let case = case();
    let server = serve(data.path(), &["--evidence", case.join("evidence").to_str().unwrap()]);
    let alert: Value = serde_json::from_str(&std::fs::read_to_string(case.join("alert.json")).unwrap()).unwrap();
    let (_, launched) = server.launch(&json!({"alert": alert})).await;
    let id = launched["investigation"].as_str().unwrap();
    assert_eq!(server.repeat(&json!({"investigation": id})).await.0, 409, "it is not closed");
    let before = server.closed(id).await;
    let refused = [
        (json!({"investigation": "no-such"}), 404, "not found"),
        (json!({"investigation": id, "from_round": 99}), 404, "it has no round 99: its rounds are 1 to 3"),
        (json!({"investigation": id, "from_round": "2"}), 422, "expected a JSON number"),
        (json!({"investigation": id, "model": "big"}), 404, "no model has the name \"big\"; known: analyst"),
        (json!({"investigation": id, "models": "big"}), 422, "/models: unknown field"),
        (json!({"from_round": 1}), 422, "/investigation: expected"),
    ];
    for (body, status, why) in refused {
        let (got, answer) = server.repeat(&body).await;
        assert!(got == status && answer["detail"].as_str().unwrap().contains(why), "{body}: {got} {answer}");
    }
    assert_eq!(server.get("/backtests").await["items"], json!([]), "what is refused does not begin");
    let absent = server.ask(Method::GET, "/backtests/1", Vec::new()).await;
    assert_eq!(absent.status(), 404);

    let (status, begun) = server.repeat(&json!({"investigation": id, "from_round": 2, "model": "analyst"})).await;
    assert_eq!((status, &begun["state"], &begun["n"]), (202, &json!("running"), &json!(1)), "{begun}");
    let done = server.repeated(&begun["n"]).await;
    let compared = &done["comparison"];
    assert_eq!((&done["state"], &compared["from_round"]), (&json!("done"), &json!(2)), "{}", done["why"]);
    assert_eq!(compared["then"]["verdict"], compared["now"]["verdict"]);
    let both = compared["findings"]["in_both"].as_array().unwrap();
    let same = |one: &&Value| one["same_claim"] == true && one["then"] == one["now"];
    assert!(!both.is_empty() && both.iter().all(|one| same(&one)), "{both:?}");
    assert_eq!((&compared["findings"]["only_then"], &compared["findings"]["only_now"]), (&json!([]), &json!([])));
    assert_eq!(server.get(&format!("/investigations/{id}")).await, before, "the record is not changed");
    assert_eq!(server.get("/investigations").await["items"].as_array().unwrap().len(), 1);

    let client = Client::builder().redirect(reqwest::redirect::Policy::none()).build().unwrap();
    let form = client.post(format!("{}/compare/backtest", server.base)).bearer_auth(&server.key);
    let form = form.header("content-type", "application/x-www-form-urlencoded");
    let sent = form.body(format!("investigation={id}&from_round=&model=")).send().await.unwrap();
    assert_eq!((sent.status().as_u16(), sent.headers()["location"].to_str().unwrap()), (303, "/backtests/2"));
    assert_eq!(server.repeated(&json!(2)).await["state"], "done");
    let page = client.get(format!("{}/backtests/2", server.base)).bearer_auth(&server.key).send().await.unwrap();
    let page = String::from_utf8(page.bytes().await.unwrap().to_vec()).unwrap();
    assert!(page.contains("is not recorded") && page.contains("Findings that moved"), "{page}");
}

/// The advice of the command line, such as a resume, does not fit a backtest of a closed investigation.
#[tokio::test(flavor = "multi_thread")]
async fn a_backtest_without_the_recorded_evidence_fails_with_the_reason() {
    let (data, copy) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let from = case().join("evidence/.");
    assert!(Command::new("cp").arg("-R").arg(from).arg(copy.path()).status().unwrap().success());
    let server = serve(data.path(), &["--evidence", copy.path().to_str().unwrap()]);
    let alert: Value = serde_json::from_str(&std::fs::read_to_string(case().join("alert.json")).unwrap()).unwrap();
    let (_, launched) = server.launch(&json!({"alert": alert})).await;
    let id = launched["investigation"].as_str().unwrap();
    server.closed(id).await;
    std::fs::remove_file(copy.path().join("auth.log")).unwrap();
    for n in 1..4 {
        let (status, begun) = server.repeat(&json!({"investigation": id})).await;
        assert_eq!((status, &begun["n"]), (202, &json!(n)), "a failed one gives its place back: {begun}");
        let failed = server.repeated(&begun["n"]).await;
        let why = failed["why"].as_str().unwrap_or_default();
        assert!(failed["state"] == "failed" && why.contains("the evidence changed"), "{failed}");
        assert!(!why.contains("resume") && failed["comparison"].is_null(), "{why}");
    }
}
