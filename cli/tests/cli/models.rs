//! Language models from the command line, against a small server that speaks OpenAI Chat: recorded,
//! replayed, run again, examined.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Value, json};
use tempfile::TempDir;

/// A key that must turn up nowhere.
const KEY: &str = "sk-planted-5f1d0c77e2";

/// What the server answers: by task, the arguments of the tool that takes answers.
fn answer(kind: &str) -> Value {
    match kind {
        "plan" => json!({"question": "What ran?", "to": [], "follow": []}),
        "investigate" => json!({"findings": []}),
        "decide" => json!({"next": "advance", "reason": "nothing was found"}),
        "report" => {
            json!({"verdict": "inconclusive", "summary": "Nothing was found.", "root_cause": "unknown", "actions": [], "open_questions": [], "findings": []})
        }
        _ => json!({}),
    }
}

/// A server on loopback that submits a fixed answer to each task, or talks.
struct Server {
    url: String,
    asked: Arc<AtomicU32>,
}

impl Server {
    fn start(talks: bool) -> Self {
        Self::holding(talks, u32::MAX)
    }

    /// The same, but every request after the first `answered` never gets an answer.
    fn holding(talks: bool, answered: u32) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let asked = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&asked);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let count = Arc::clone(&count);
                std::thread::spawn(move || serve(stream, talks, &count, answered));
            }
        });
        Self { url, asked }
    }

    fn asked(&self) -> u32 {
        self.asked.load(Ordering::SeqCst)
    }
}

fn serve(mut stream: TcpStream, talks: bool, count: &AtomicU32, answered: u32) {
    let mut bytes = Vec::new();
    let mut buffer = [0; 65536];
    let body = loop {
        let read = stream.read(&mut buffer).unwrap_or(0);
        if read == 0 {
            return;
        }
        bytes.extend_from_slice(&buffer[..read]);
        let Some(head) = bytes.windows(4).position(|w| w == b"\r\n\r\n") else { continue };
        let headers = String::from_utf8_lossy(&bytes[..head]).to_lowercase();
        let length = headers.lines().find_map(|l| l.strip_prefix("content-length: ")).unwrap().trim().parse().unwrap();
        if bytes.len() - head - 4 >= length {
            break bytes[head + 4..head + 4 + length].to_vec();
        }
    };
    if count.fetch_add(1, Ordering::SeqCst) >= answered {
        loop {
            std::thread::park();
        }
    }
    let request: Value = serde_json::from_slice(&body).unwrap();
    let text = request.to_string();
    let kind = text.split("Casebook task: ").nth(1).unwrap().split(' ').next().unwrap();
    let message = if talks {
        json!({"role": "assistant", "content": "I would look at the logs."})
    } else {
        let call = json!({"id": "c1", "type": "function", "function": {"name": "submit", "arguments": answer(kind).to_string()}});
        json!({"role": "assistant", "content": null, "tool_calls": [call]})
    };
    let usage = json!({"prompt_tokens": 1000, "completion_tokens": 10, "total_tokens": 1010, "prompt_tokens_details": {"cached_tokens": 250}});
    let reply = json!({"id": "x", "object": "chat.completion", "created": 1, "model": "tiny-2026", "usage": usage,
        "choices": [{"index": 0, "finish_reason": if talks { "stop" } else { "tool_calls" }, "message": message}]})
    .to_string();
    let _ = write!(
        stream,
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{reply}",
        reply.len()
    );
}

struct Place(TempDir);

impl Place {
    /// An alert, some logs, and a models file that leads to `url`.
    fn new(url: &str) -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        place.file("alert.json", r#"{"id":"a-1","rule":{"title":"Module loaded","level":"high"},"time":"2026-03-01T02:14:07.120Z","host":"web-03"}"#);
        place.file(
            "logs/auth.log",
            "2026-03-01T02:13:59.000Z web-03 sshd[811]: Accepted publickey for deploy from 10.0.4.17 port 51122 ssh2\n",
        );
        let model = |name: &str| {
            format!(
                "[models.{name}]\nprovider = \"openai-compatible\"\nmodel = \"{name}-model\"\nbase_url = \"{url}\"\nkey_env = \"TINY_KEY\"\nwindow = 65536\nprice = {{ input = 2.0, output = 10.0 }}\n"
            )
        };
        let roles: String = ["director", "expert"].map(|role| format!("[roles.{role}]\nmodel = \"tiny\"\n")).concat();
        place.file("models.toml", &format!("{}{}{roles}", model("tiny"), model("other")));
        place
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn file(&self, name: &str, text: &str) {
        let path = self.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_casebook"));
        command.args(arguments).current_dir(self.path()).stdin(Stdio::null());
        for name in ["CASEBOOK_DATA", "CASEBOOK_LOG", "CASEBOOK_MODELS", "TINY_KEY"] {
            command.env_remove(name);
        }
        command
    }

    /// Standard output and standard error of a run with the key, which must end with `code`.
    fn run(&self, arguments: &[&str], code: i32) -> String {
        self.ended(self.command(arguments).env("TINY_KEY", KEY).output().unwrap(), code)
    }

    /// The same without the key.
    fn keyless(&self, arguments: &[&str], code: i32) -> String {
        self.ended(self.command(arguments).output().unwrap(), code)
    }

    fn ended(&self, output: Output, code: i32) -> String {
        let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).concat();
        assert_eq!(output.status.code(), Some(code), "{text}");
        assert!(!text.contains(KEY), "{text}");
        text
    }

    fn id(&self) -> String {
        let list = self.keyless(&["list"], 0);
        list.split_whitespace().next().unwrap().to_owned()
    }
}

fn has(text: &str, needed: &[&str]) {
    for needed in needed {
        assert!(text.contains(needed), "{needed:?} is not in\n{text}");
    }
}

/// Whether the key stands in any file below `folder`.
fn planted(folder: &Path) -> bool {
    std::fs::read_dir(folder).unwrap().flatten().any(|entry| {
        let path = entry.path();
        if path.is_dir() {
            return planted(&path);
        }
        std::fs::read(&path).unwrap().windows(KEY.len()).any(|w| w == KEY.as_bytes())
    })
}

#[test]
fn a_run_is_recorded_and_replayed_without_network_or_key_to_the_same_report() {
    let server = Server::start(false);
    let place = Place::new(&server.url);
    let base = ["investigate", "alert.json", "--evidence", "logs", "-v"];
    let recorded = place.run(&[&base[..], &["--models", "models.toml", "--record", "kept", "--out", "a"]].concat(), 0);
    has(&recorded, &["r1.plan: tiny, 1 call, 1000 tokens in (25 % cached), 10 out, cost 0.0021", "director ", "Used"]);
    let asked = server.asked();
    assert!(asked >= 5, "{asked}");
    let shown = place.keyless(&["show", &place.id()], 0);
    has(&shown, &["tiny tiny-2026", "1 model calls", "1000 tokens in (      250 cached)"]);
    assert!(!planted(place.path()), "the key is in a file");

    let replay = [&base[..], &["--replay", "kept", "--data", "again", "--out", "b"]].concat();
    place.keyless(&replay, 0);
    assert_eq!(server.asked(), asked, "a replay sends no request");
    let report = |folder: &str| -> casebook_protocol::Report {
        serde_json::from_slice(&std::fs::read(place.path().join(folder).join("report.json")).unwrap()).unwrap()
    };
    assert_eq!(casebook_report::compare::stable(&report("a")), casebook_report::compare::stable(&report("b")));
}

#[test]
fn a_replay_that_lacks_an_answer_says_which_and_why_and_ends_with_its_own_code() {
    let server = Server::start(false);
    let place = Place::new(&server.url);
    let base = ["investigate", "alert.json", "--evidence", "logs"];
    place.run(&[&base[..], &["--models", "models.toml", "--record", "kept"]].concat(), 0);
    let alert = std::fs::read_to_string(place.path().join("alert.json")).unwrap().replace("web-03", "web-04");
    place.file("alert.json", &alert);
    let text = place.keyless(&[&base[..], &["--replay", "kept", "--data", "again"]].concat(), 5);
    has(
        &text,
        &["r1.plan failed:", "the run differs from the recorded one", "has another request for r1.plan.m1", "web-04"],
    );
}

#[test]
fn what_cannot_start_is_told_before_anything_is_made() {
    let place = Place::new("http://127.0.0.1:9/v1");
    let base = ["investigate", "alert.json", "--evidence", "logs"];
    let check = |more: &[&str], expect: &[&str]| has(&place.keyless(&[&base[..], more].concat(), 2), expect);
    check(&["--models", "models.toml"], &["TINY_KEY", "not set"]);
    check(&["--models", "none.toml"], &["cannot read the models file none.toml"]);
    check(&["--record", "kept"], &["--record needs a models file", "CASEBOOK_MODELS"]);
    check(&["--replay", "kept"], &["kept", "--record"]);
    check(&["--replay", "kept", "--record", "kept"], &["cannot be used with"]);
    place.file("bad.toml", "[models.x]\nprovider = \"unknown\"\n");
    check(&["--models", "bad.toml"], &["bad.toml:2: models.x.provider: expected one of"]);
    assert!(!place.path().join(".casebook").exists());
}

#[test]
fn a_backtest_shows_what_differs_and_leaves_the_original_as_it_is() {
    let server = Server::start(false);
    let place = Place::new(&server.url);
    place.keyless(&["investigate", "alert.json", "--evidence", "logs"], 0);
    let id = place.id();
    let before = place.keyless(&["export", &id], 0);
    let shown = place.keyless(&["show", &id], 0);
    place.file("prompts/plan.md", "Casebook task: plan (prompt plan mine)\n{{team}}\nAsk.\n");
    let again = ["backtest", id.as_str(), "--models", "models.toml"];
    let text = place.run(
        &[&again[..], &["--model", "other", "--model", "critic=analyst", "--prompts", "prompts", "--json", "x.json"]]
            .concat(),
        0,
    );
    has(&text, &["then", "verdict", "other tiny-2026", "built-in analyst", "model calls", "cost", "only then"]);
    let difference: Value = serde_json::from_slice(&std::fs::read(place.path().join("x.json")).unwrap()).unwrap();
    assert_eq!(difference["now"]["verdict"], "inconclusive");
    assert_eq!(difference["then"]["usage"]["model_calls"], 0);
    assert!(difference["now"]["usage"]["model_calls"].as_u64().unwrap() > 3);
    assert_eq!(place.keyless(&["export", &id], 0), before);
    assert_eq!(place.keyless(&["show", &id], 0), shown);
    has(&place.keyless(&["verify", &id], 0), &["no difference was found"]);

    let same = place.keyless(&["backtest", &id, "--from-round", "2"], 0);
    has(&same, &["0 of them differ; 0 only then, 0 only now"]);
    has(&place.keyless(&["backtest", &id, "--from-round", "99"], 2), &["has no round 99", "1 to "]);
    has(&place.keyless(&["backtest", &id, "--model", "tiny"], 2), &["need a models file"]);
    has(&place.run(&[&again[..], &["--model", "judge=tiny"]].concat(), 2), &["got \"judge\""]);
    place.file("prompts/plan.md", "Ask.\n");
    has(&place.run(&[&again[..], &["--prompts", "prompts"]].concat(), 2), &["plan.md: expected the first line"]);
}

#[test]
fn whoever_resumes_a_run_with_models_is_told_to_name_them_again() {
    let server = Server::holding(false, 1);
    let place = Place::new(&server.url);
    let mut command = place.command(&["investigate", "alert.json", "--evidence", "logs", "--models", "models.toml"]);
    let command = command.env("TINY_KEY", KEY).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    while server.asked() < 2 {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let interrupted = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(interrupted.success());
    let text = place.ended(child.wait_with_output().unwrap(), 3);
    has(&text, &["continue with: casebook resume", "--models models.toml"]);

    let text = place.keyless(&["resume", &place.id()], 0);
    has(&text, &["so far tiny played; without --models FILE the built-in analyst goes on"]);
}

#[test]
fn the_doctor_says_what_is_wrong_with_a_model() {
    let place = Place::new("http://127.0.0.1:9/v1");
    has(&place.keyless(&["doctor"], 0), &["the built-in analyst plays every role", "--models FILE"]);
    has(&place.keyless(&["doctor", "--models", "models.toml", "none"], 2), &["unknown model \"none\""]);
    let text = place.keyless(&["doctor", "--models", "models.toml", "tiny"], 6);
    has(&text, &["TINY_KEY, which is not set", "director  plan         tiny"]);

    let talks = Server::start(true);
    let place = Place::new(&talks.url);
    let text = place.run(&["doctor", "--models", "models.toml", "tiny"], 6);
    has(
        &text,
        &["found in the environment variable TINY_KEY", "answers as tiny-2026", "answers in prose", "cannot be used"],
    );
    has(&text, &["plan         failed: ", " s", "cost 0.0"]);

    let submits = Server::start(false);
    let place = Place::new(&submits.url);
    let text = place.run(&["doctor", "--models", "models.toml", "other"], 6);
    has(&text, &["plan         passed at the first try", "called no tool during an investigation"]);
}
