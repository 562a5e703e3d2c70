//! An Expert's task with the tools of a third party's server, and what the Critic sees of it.

use std::collections::BTreeMap;
use std::sync::Mutex;

use casebook_agent::reasoner::{Action, Analyst, Done};
use casebook_agent::results::tools::OwnResults;
use casebook_agent::results::with;
use casebook_agent::worker::{Worker, answer, call};
use casebook_protocol::{
    Alert, Allowance, Answer, ArtifactId, Bearing, CallStatus, Citation, ExpertView, FindingDraft, FindingKind,
    Locator, Outcome, Phase, Question, Recorded, Score, Task, TaskId, TaskKind, View, Weight,
};
use casebook_runtime::Env;
use casebook_runtime::bus::memory::MemoryBus;
use casebook_runtime::clock::TickingClock;
use casebook_runtime::store::{Once, StoreError};
use casebook_trust::Exhibits;
use serde_json::Value;

use super::*;

/// Results and artifacts in memory; no log.
#[derive(Default)]
struct Shelf {
    results: Mutex<BTreeMap<String, Vec<u8>>>,
    artifacts: Mutex<BTreeMap<ArtifactId, Vec<u8>>>,
}

#[async_trait]
impl Store for Shelf {
    async fn append(&self, _: &InvestigationId, _: u64, _: &[Recorded]) -> Result<(), StoreError> {
        Err(StoreError::Unavailable { doing: "append".into(), reason: "there is no log here".into() })
    }

    async fn log(&self, _: &InvestigationId, _: u64) -> Result<Vec<Recorded>, StoreError> {
        Ok(Vec::new())
    }

    async fn investigations(&self) -> Result<Vec<InvestigationId>, StoreError> {
        Ok(Vec::new())
    }

    async fn record_once(&self, id: &InvestigationId, key: &str, bytes: &[u8]) -> Result<Once, StoreError> {
        let mut results = self.results.lock().unwrap();
        if let Some(stands) = results.get(&format!("{id} {key}")) {
            return Ok(Once::Stands(stands.clone()));
        }
        results.insert(format!("{id} {key}"), bytes.to_vec());
        Ok(Once::Recorded)
    }

    async fn recorded(&self, id: &InvestigationId, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.results.lock().unwrap().get(&format!("{id} {key}")).cloned())
    }

    async fn put(&self, bytes: &[u8]) -> Result<ArtifactId, StoreError> {
        let id = ArtifactId::of(bytes);
        self.artifacts.lock().unwrap().insert(id.clone(), bytes.to_vec());
        Ok(id)
    }

    async fn get(&self, id: &ArtifactId) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.artifacts.lock().unwrap().get(id).cloned())
    }
}

/// A shop's server: structured orders, a text, and more than anybody reads.
struct Shop;

const SCHEMA: &str = r#"{"type":"object","properties":{"customer":{"type":"string"}}}"#;

#[async_trait]
impl Tools for Shop {
    fn toolset(&self) -> Toolset {
        let tool = |name: &str| ToolSpec {
            name: name.into(),
            description: format!("{name}, in the words of its server."),
            input_schema: SCHEMA.into(),
            repeatable: false,
        };
        let tools = ["shop__orders", "shop__tail", "shop__everything"].map(tool).to_vec();
        Toolset { name: "shop".into(), about: "orders of the shop".into(), tools }
    }

    async fn call(&self, tool: &str, _: &str) -> Result<String, String> {
        let order = |n: usize, who: &str| json!({"id": n, "customer": who, "placed_at": "2024-01-01T10:00:00Z"});
        match tool {
            "shop__orders" => Ok(json!({"orders": [order(1, "mara"), order(2, "lee")]}).to_string()),
            "shop__tail" => Ok("first line\n2024-01-01T10:00:00Z order by mara\n".to_owned()),
            "shop__everything" => {
                let orders: Vec<Value> = (0..60_000).map(|n| order(n, &format!("customer-{n}"))).collect();
                Ok(json!({"orders": orders}).to_string())
            }
            other => Err(format!("unknown tool {other:?}; use one of the four listed")),
        }
    }
}

const TASK: &str = "r1.investigate.shop";

fn task() -> Arc<Task> {
    let domain = Domain::new("shop").unwrap();
    let view = ExpertView {
        alert: Alert::parse(br#"{"id":"a","title":"x"}"#).unwrap(),
        journal: vec![],
        question: Question { text: "who ordered?".into(), to: vec![], follow: vec![] },
        toolset: with(Shop.toolset()),
        sources: vec![],
        earlier: vec![],
        snapshot: Vec::new(),
    };
    Arc::new(Task {
        id: TaskId::of(1, TaskKind::Investigate, Some(&domain)),
        investigation: InvestigationId::new("i").unwrap(),
        domain: Some(domain),
        phase: Phase::Discovery,
        round: 1,
        view: View::Investigate(Box::new(view)),
        allowance: Allowance::default(),
    })
}

/// Asks, looks into what came, and cites what the look found.
fn think(_: &Task, done: &[Done], _: bool) -> Action {
    let (all, tail) = (format!("{TASK}.t1.2"), format!("{TASK}.t1.1"));
    match done.len() {
        0 => Action::Call(vec![
            call("shop__orders", &json!({"customer": "mara"})),
            call("shop__tail", &json!({})),
            call("shop__everything", &json!({})),
        ]),
        3 => Action::Call(vec![
            call("get_result", &json!({"call": all, "search": "customer-59999"})),
            call("get_result", &json!({"call": tail, "from_line": 2})),
            call("get_result", &json!({"call": all, "pointer": "/orders", "by": "placed_at"})),
            call("get_result", &json!({"call": "r1.investigate.other.t1.0", "search": "x"})),
            call("get_result", &json!({"call": all, "pointer": "/orders/60000"})),
            call("shop__refund", &json!({})),
        ]),
        9 => Action::Call(vec![call("get_result", &json!({"call": format!("{TASK}.t2.0")}))]),
        _ => {
            let found: Value = serde_json::from_str(&done[3].result).unwrap();
            let at = found["page"]["hits"][0]["at"].as_str().unwrap().to_owned();
            let citation = |call: &str, at: Locator, quote: &str| Citation::Literal {
                call: casebook_protocol::CallId::new(call).unwrap(),
                at,
                quote: quote.into(),
            };
            let citations = vec![
                citation(&all, Locator::Pointer(at), "customer-59999"),
                citation(&tail, Locator::Line(2), "order by mara"),
            ];
            answer(Answer::Investigate(vec![FindingDraft {
                kind: FindingKind::State,
                claim: "`customer-59999` and `mara` ordered".into(),
                time: None,
                entities: vec![],
                bearing: Bearing::Neutral,
                weight: Weight::Weak,
                about_alert: false,
                technique: None,
                confidence: Score::clamped(0.9),
                citations,
                look_next: None,
            }]))
        }
    }
}

async fn investigated() -> (Arc<Shelf>, Outcome) {
    let shelf = Arc::new(Shelf::default());
    let store: Arc<dyn Store> = Arc::clone(&shelf) as Arc<dyn Store>;
    let env = Env { bus: Arc::new(MemoryBus::default()), store, clock: Arc::new(TickingClock::default()) };
    let worker = Worker::new(env, Arc::new(Analyst(think)), Arc::new(OwnResults(Arc::new(Shop))));
    let outcome = worker.perform(&task()).await.unwrap();
    (shelf, outcome)
}

#[tokio::test]
async fn an_expert_looks_into_its_own_results_and_cites_them_not_the_look() {
    let (shelf, outcome) = investigated().await;
    let mut results = Vec::new();
    let mut exhibits = Exhibits::default();
    for call in &outcome.calls {
        let bytes = shelf.get(&call.result).await.unwrap().unwrap();
        exhibits.add(call.clone(), false, &bytes);
        results.push((call.status, String::from_utf8(bytes).unwrap()));
    }
    let json = |n: usize| serde_json::from_str::<Value>(&results[n].1).unwrap()["page"].clone();
    assert!(outcome.calls[2].bytes > 3_000_000);
    assert_eq!(json(3)["hits"][0]["at"], "/orders/59999/customer");
    assert_eq!(json(4)["lines"], json!([{"line": 2, "text": "2024-01-01T10:00:00Z order by mara"}]));
    assert_eq!(json(5)["values"], json!([{"value": "2024-01-01T10:00:00Z", "items": 60_000}]));
    let refused = |n: usize, expect: &str| {
        assert_eq!(results[n].0, CallStatus::Failed);
        assert!(results[n].1.contains(expect), "{}", results[n].1);
    };
    refused(6, "expected a call of this task, got \"r1.investigate.other.t1.0\"");
    refused(7, "\"/orders\" is an array of 60000 items");
    refused(8, "expected a tool of your toolset (calculate, get_result, shop__");
    refused(9, "r1.investigate.shop.t2.0 examined a result itself");
    let Ok(Answer::Investigate(findings)) = &outcome.result else { panic!("{outcome:?}") };
    let checked = exhibits.check(&findings[0]);
    assert!(checked.valid(), "{checked:?}");
    let places: Vec<_> = checked.records().iter().map(|r| (r.source.clone(), r.line)).collect();
    assert_eq!(places, [("shop".to_owned(), 1), ("shop".to_owned(), 2)]);
    let mut look = findings[0].clone();
    if let Citation::Literal { call, at, .. } = &mut look.citations[0] {
        (*call, *at) = (outcome.calls[3].id.clone(), Locator::Pointer("/page/hits/0".into()));
    }
    let note = &exhibits.check(&look).citations[0].note;
    assert!(note.contains(&format!("cite the call itself, {TASK}.t1.2 at")), "{note}");
}

#[tokio::test]
async fn the_critic_sees_arguments_results_documentation_and_who_had_what() {
    let (shelf, _) = investigated().await;
    let toolsets = vec![
        DomainToolset { domain: Domain::new("shop").unwrap(), toolset: with(Shop.toolset()) },
        DomainToolset {
            domain: Domain::new("idle").unwrap(),
            toolset: Toolset { name: "none".into(), about: String::new(), tools: vec![] },
        },
    ];
    let tools = RecordTools::new(InvestigationId::new("i").unwrap(), toolsets, shelf);
    let ask = async |tool: &str, arguments: Value| -> Result<Value, String> {
        tools.call(tool, &arguments.to_string()).await.map(|text| serde_json::from_str(&text).unwrap())
    };
    let orders = format!("{TASK}.t1.0");
    let shown = ask("get_tool_call", json!({"call": orders})).await.unwrap();
    assert_eq!((&shown["tool"], &shown["arguments"]), (&json!("shop__orders"), &json!({"customer": "mara"})));
    assert_eq!((&shown["domain"], &shown["status"]), (&json!("shop"), &json!("answered")));

    let both = ask("get_tool_result", json!({"call": orders, "arguments": true})).await.unwrap();
    assert_eq!((&both["arguments"], both["page"].is_object()), (&json!({"customer": "mara"}), true));

    let result = async |n: u32, more: Value| {
        let mut arguments = more;
        arguments["call"] = format!("{TASK}.t1.{n}").into();
        ask("get_tool_result", arguments).await.map(|answer| answer["page"].clone())
    };
    let whole = Shop.call("shop__orders", "{}").await.unwrap();
    assert_eq!(result(0, json!({})).await.unwrap()["text"], whole);
    assert_eq!(result(0, json!({"pointer": "/orders/1/customer"})).await.unwrap()["value"], "lee");
    assert_eq!(result(0, json!({"count": true, "pointer": "/orders"})).await.unwrap()["items"], 2);
    assert_eq!(result(0, json!({"pointer": "/orders", "by": "customer"})).await.unwrap()["distinct"], 2);
    assert_eq!(result(1, json!({"search": "mara"})).await.unwrap()["hits"][0]["at"], "line 2");
    assert_eq!(result(1, json!({"from_line": 1, "to_line": 1})).await.unwrap()["lines"][0]["text"], "first line");
    assert_eq!(result(1, json!({"search": "line", "count": true})).await.unwrap()["hits"], 1);
    assert_eq!(
        result(2, json!({"search": "customer-12345\""})).await.unwrap()["hits"][0]["at"],
        "/orders/12345/customer"
    );
    // Page by page, all of it is there.
    let everything = Shop.call("shop__everything", "{}").await.unwrap();
    let page = result(2, json!({"offset": 3_000_000})).await.unwrap();
    let text = page["text"].as_str().unwrap();
    assert_eq!(&everything[3_000_000..3_000_000 + text.len()], text);
    assert_eq!(page["next_offset"], 3_000_000 + text.len());
    let failed = ask("get_tool_result", json!({"call": format!("{TASK}.t2.5")})).await.unwrap();
    assert_eq!(failed["status"], "failed");
    for (arguments, why) in [
        (json!({"search": "x", "offset": 1}), "goes with"),
        (json!({"count": true, "from_line": 1}), "go with"),
        (json!({"offset": 1, "from_line": 1}), "not both"),
        (json!({"needle": "x"}), "unknown field"),
    ] {
        let error = result(0, arguments).await.unwrap_err();
        assert!(error.contains(why), "{error}");
    }
    let error = ask("get_tool_result", json!({"call": "r9.investigate.shop.t1.0"})).await.unwrap_err();
    assert!(error.contains("tool call r9.investigate.shop.t1.0 is not recorded"), "{error}");

    for name in ["get_toolset_info", "get_tool_info"] {
        let one = ask(name, json!({"domain": "shop", "tool": "shop__tail"})).await.unwrap();
        assert_eq!(one["tools"][0]["description"], "shop__tail, in the words of its server.");
        assert_eq!(
            (&one["tools"][0]["input_schema"], &one["tools"][0]["repeatable"]),
            (&serde_json::from_str(SCHEMA).unwrap(), &json!(false))
        );
        assert_eq!(ask(name, json!({"domain": "shop"})).await.unwrap()["tools"].as_array().unwrap().len(), 5);
    }
    let error = ask("get_toolset_info", json!({"domain": "unknown"})).await.unwrap_err();
    assert_eq!(error, "no Expert unknown was on the roster, which had shop, idle");
    let all = ask("list_toolsets", json!({})).await.unwrap();
    let results = ["calculate", "get_result"];
    let had = [&["shop__orders", "shop__tail", "shop__everything"][..], &results].concat();
    assert_eq!((&all["toolsets"][0]["domain"], &all["toolsets"][0]["tools"]), (&json!("shop"), &json!(had)));
    assert_eq!(all["toolsets"][1]["tools"], json!([]));
}
