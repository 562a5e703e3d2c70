//! Each invocation of a run with language models: what it was given, what it asked and got, what it used.

use casebook_agent::model::{Ask, Message, Part, Reply, kept};
use casebook_hub::{SqliteStore, archive};
use casebook_protocol::{ArtifactId, Budget, Event, ModelCall, Recorded, TaskId, TaskKind, ToolCall};
use casebook_report::words;
use casebook_tests::lab::{FORMS, Lab};
use casebook_tests::model::brain::Brain;
use casebook_tests::model::faults::{Fault, Faulty, When};
use casebook_tests::model::server::Options;
use casebook_tests::run::demo;
use casebook_tests::web::{Server, bare, said};
use serde_json::{Value, json};

const PRICE: &str = "price = { input = 3.0, cached = 0.3, output = 15.0 }\n";
/// Characters of a text that the page must show.
const SEEN: usize = 2_000;

struct Shown {
    server: Server,
    store: SqliteStore,
    id: String,
    log: Vec<Recorded>,
}

impl Shown {
    async fn json(&self, path: &str) -> Value {
        serde_json::from_str(&self.server.text(&self.one(path)).await.unwrap()).unwrap()
    }

    fn one(&self, path: &str) -> String {
        format!("/api/v1/investigations/{}{path}", self.id)
    }

    async fn bytes(&self, path: &str) -> Vec<u8> {
        let (status, bytes) = self.server.get(&self.one(path)).await.unwrap();
        assert_eq!(status, 200, "{path}");
        bytes
    }

    async fn page(&self, path: &str) -> (String, String) {
        let page = self.server.text(&format!("/i/{}{path}", self.id)).await.unwrap();
        (said(&page), page)
    }

    fn models(&self, of: &TaskId) -> Vec<&ModelCall> {
        let made = self.log.iter().filter_map(|entry| match &entry.event {
            Event::ModelCalled { task, call } if task == of => Some(call),
            _ => None,
        });
        made.collect()
    }

    fn tools(&self, of: &TaskId) -> Vec<&ToolCall> {
        let made = self.log.iter().filter_map(|entry| match &entry.event {
            Event::CallRecorded { task, call } if task == of => Some(call),
            _ => None,
        });
        made.collect()
    }
}

fn shows(page: &str, wanted: &str) {
    let wanted: String = bare(wanted).chars().take(SEEN).collect();
    assert!(page.contains(&wanted), "the page lacks {wanted}");
}

/// What the log says of the end of a task.
fn end(log: &[Recorded], of: &TaskId) -> (Value, Value) {
    let ends = log.iter().find_map(|entry| match &entry.event {
        Event::TaskAnswered { task, player, usage, .. } if task == of => Some((json!(player), json!(usage))),
        _ => None,
    });
    ends.unwrap_or_else(|| panic!("{of} was not answered"))
}

async fn invocation(shown: &Shown, task: &TaskId, view: &ArtifactId) {
    let (models, tools) = (shown.models(task), shown.tools(task));
    let given = shown.bytes(&format!("/tasks/{task}/view")).await;
    assert_eq!(ArtifactId::of(&given), *view, "{task}");
    let span = shown.json(&format!("/tasks/{task}")).await;
    assert_eq!((&span["model_calls"], &span["tool_calls"]), (&json!(models.len()), &json!(tools.len())), "{task}");
    let (player, usage) = end(&shown.log, task);
    assert_eq!((&span["player"], &span["usage"]), (&player, &usage), "{task}");
    let (text, page) = shown.page(&format!("/t/{task}")).await;
    shows(&text, "What it was given");
    assert!(page.contains(&shown.one(&format!("/tasks/{task}/view"))), "{task}: no link to its view");
    for call in &tools {
        assert!(page.contains(&format!("/c/{}\"", call.id)), "{task}: no link to {}", call.id);
        shows(&text, &call.arguments);
    }
    for (n, call) in (1..).zip(&models) {
        model_call(shown, task, n, call).await;
        assert!(page.contains(&format!("/m/{}\"", call.id)), "{task}: no link to {}", call.id);
        shows(&text, &used(call));
        let retried = format!("{}attempts{}", call.attempts, bare(purpose(call)));
        assert_eq!(text.contains(&retried), call.attempts > 1, "{task}, call {n}");
    }
    let past = shown.server.get(&shown.one(&format!("/tasks/{task}/model-calls/{}/request", models.len() + 1))).await;
    assert_eq!(past.unwrap().0, 404, "{task}");
    for call in tools {
        let result = shown.bytes(&format!("/calls/{}/result", call.id)).await;
        assert_eq!((ArtifactId::of(&result), result.len() as u64), (call.result.clone(), call.bytes), "{}", call.id);
    }
}

fn purpose(call: &ModelCall) -> &'static str {
    match call.purpose {
        casebook_protocol::Purpose::Turn => "turn, prompt",
        casebook_protocol::Purpose::Last => "last turn, prompt",
        casebook_protocol::Purpose::Repair => "repair of an invalid answer, prompt",
    }
}

/// Tokens and cost of a call as its task shows them.
fn used(call: &ModelCall) -> String {
    let usage = &call.usage;
    let [input, cached, output] = [usage.input_tokens, usage.cached_tokens, usage.output_tokens].map(words::thousands);
    let cost = words::money(usage.cost_micros);
    format!("prompt {}: {input} tokens in ({cached} cached), {output} out, cost {cost}", call.prompt)
}

async fn model_call(shown: &Shown, task: &TaskId, n: usize, call: &ModelCall) {
    let place = format!("/tasks/{task}/model-calls/{n}");
    let request = shown.bytes(&format!("{place}/request")).await;
    assert_eq!((ArtifactId::of(&request), request.len() as u64), (call.request.clone(), call.request_bytes), "{place}");
    let ask: Ask = serde_json::from_slice(&request).unwrap();
    assert_eq!((&ask.id, &ask.model, &ask.prompt), (&call.id, &call.model, &call.prompt), "{place}");
    let reply = shown.bytes(&format!("{place}/reply")).await;
    assert_eq!(Some(ArtifactId::of(&reply)), call.reply, "{place}");
    let (text, _) = shown.page(&format!("/m/{}", call.id)).await;
    shows(&text, if call.attempts == 1 { "1 attempt" } else { "2 attempts" });
    shows(&text, &format!("cost {}", words::money(call.usage.cost_micros)));
    let mut texts: Vec<&str> = ask.system.iter().map(|part| part.text.as_str()).collect();
    for message in &ask.messages {
        match message {
            Message::User(parts) => texts.extend(parts.iter().map(|part: &Part| part.text.as_str())),
            Message::Assistant(reply) => texts.extend(words_of(reply)),
            Message::Results(answers) => texts.extend(answers.iter().map(|answer| answer.text.as_str())),
        }
    }
    let replied = kept::reply(&shown.store, call).await.unwrap().unwrap();
    texts.extend(words_of(&replied));
    texts.iter().for_each(|wanted| shows(&text, wanted));
}

fn words_of(reply: &Reply) -> impl Iterator<Item = &str> {
    reply.calls.iter().map(|call| call.arguments.as_str()).chain([reply.text.as_str()])
}

#[test]
fn each_invocation_shows_what_it_was_given_sent_got_and_used() {
    let once = When { kind: Some(TaskKind::Investigate), nth: Some(2), attempts: Some(1), ..When::default() };
    let brain = Faulty::new(Brain { rounds: 2, ..Brain::default() }, Fault::RateLimited(Some(1)), once);
    let lab = Lab::start_with(brain, FORMS[0], PRICE, Options::default()).unwrap();
    let report = lab.investigate(&demo(), Budget::default()).unwrap();
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let store = SqliteStore::read(lab.data()).unwrap();
        let log = archive::log(&store, &report.investigation).await.unwrap();
        let server = Server::serve(&lab.data(), &[]).unwrap();
        let shown = Shown { server, store, id: report.investigation.to_string(), log };
        let mut attempts = Vec::new();
        for entry in &shown.log {
            if let Event::TaskRequested { task, view, .. } = &entry.event {
                invocation(&shown, task, view).await;
                attempts.extend(shown.models(task).iter().map(|call| call.attempts));
            }
        }
        attempts.sort_unstable();
        assert!(attempts.len() > 15, "too few calls: {attempts:?}");
        assert_eq!(attempts.iter().filter(|n| **n > 1).collect::<Vec<_>>(), [&2], "one call was tried twice");
    });
}
