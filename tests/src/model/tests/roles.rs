//! The roles, played over HTTP with real tools over the demo case: what an Expert cites is checked by
//! the real check, and the requests of such a conversation keep the invariants.

use std::path::Path;
use std::sync::Arc;

use casebook_evidence::{Catalog, EvidenceTools};
use casebook_protocol::{ArtifactId, CallId, CallStatus, Citation, FindingDraft, Locator, TaskId, Timestamp, ToolCall};
use casebook_trust::check::Exhibits;
use serde_json::{Value, json};

use super::client::{Got, Talk};
use crate::model::brain::Brain;
use crate::model::invariants::{self, Known};
use crate::model::request::Provider;
use crate::model::{Options, Server};

fn section(name: &str, content: &str) -> String {
    format!("<{name}>\n{}\n</{name}>\n", content.replace('<', "\\u003c"))
}

fn demo() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("cases/package-hook-kmod")
}

fn alert() -> String {
    let text = std::fs::read_to_string(demo().join("alert.json")).unwrap();
    serde_json::from_str::<Value>(&text).unwrap().to_string()
}

fn word() -> Value {
    json!({"type": "string"})
}

fn or_null() -> Value {
    json!({"type": ["string", "null"]})
}

fn closed(fields: Value) -> Value {
    let required: Vec<&String> = fields.as_object().unwrap().keys().collect();
    json!({"type": "object", "required": required, "properties": fields, "additionalProperties": false})
}

fn list(items: Value) -> Value {
    json!({"type": "array", "items": items})
}

fn findings_form() -> Value {
    let citation = closed(json!({"kind": word(), "call": word(), "at": word(), "quote": or_null(), "value": or_null(),
        "from": or_null(), "to": or_null()}));
    let entity = closed(json!({"kind": word(), "value": word()}));
    let time = closed(json!({"at": word(), "until": or_null(), "precision": word(), "basis": word(), "field": word()}));
    let finding = closed(json!({"kind": word(), "claim": word(), "time": {"anyOf": [time, {"type": "null"}]},
        "entities": list(entity), "bearing": word(), "weight": word(), "about_alert": {"type": "boolean"},
        "technique": or_null(), "confidence": {"type": "number"}, "citations": list(citation), "look_next": or_null()}));
    closed(json!({"findings": list(finding)}))
}

/// How an answer is asked for.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Way {
    Native,
    Submit,
}

fn ask_for(talk: &mut Talk, way: Way, name: &str, schema: Value) {
    match way {
        Way::Native => talk.format = Some((name.to_owned(), schema)),
        Way::Submit => talk.tools.push(("submit".into(), schema)),
    }
}

/// The object of an answer, in either way.
fn object(got: &Got) -> Value {
    let text = got.calls.first().map_or(&got.text, |call| &call.arguments);
    serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {got:?}"))
}

/// Tools over the demo case, and the record of what they were asked.
struct Tools {
    tools: EvidenceTools,
    calls: Vec<(ToolCall, String)>,
    _index: tempfile::TempDir,
}

impl Tools {
    fn open() -> Self {
        let index = tempfile::tempdir().unwrap();
        let catalog = Catalog::open(&demo().join("evidence"), &index.path().join("index.db"), &mut |_| {}).unwrap();
        let all: Vec<String> = catalog.sources().iter().map(|source| source.id.clone()).collect();
        Self { tools: EvidenceTools::new(Arc::new(catalog), &all), calls: Vec::new(), _index: index }
    }

    fn call(&mut self, id: &str, tool: &str, arguments: &str) -> String {
        let text = self.tools.call(tool, arguments).unwrap_or_else(|error| panic!("{tool} {arguments}: {error}"));
        let call = ToolCall {
            id: CallId::new(id).unwrap(),
            domain: None,
            tool: tool.to_owned(),
            arguments: arguments.to_owned(),
            status: CallStatus::Answered,
            result: ArtifactId::of(text.as_bytes()),
            bytes: text.len() as u64,
            started: Timestamp::UNIX_EPOCH,
            ended: Timestamp::UNIX_EPOCH,
        };
        self.calls.push((call, text.clone()));
        text
    }

    /// The result of a call as a prompt shows it.
    fn shown(&mut self, id: &str, tool: &str, arguments: &str) -> String {
        let text = self.call(id, tool, arguments);
        let data = section("data-3fa9c0d1e2b4", &text);
        format!("result of call {id} ({tool}), {} bytes, whole\n{data}", text.len())
    }
}

/// The finding as the protocol has it. What is counted or absent is asked again, as the turn loop does.
fn draft(finding: &Value, tools: &mut Tools) -> FindingDraft {
    let mut finding = finding.clone();
    let citations = finding.as_object_mut().unwrap().remove("citations").unwrap();
    finding["citations"] = json!([]);
    let mut draft: FindingDraft = serde_json::from_value(finding).unwrap();
    for one in citations.as_array().unwrap() {
        let call = CallId::new(one["call"].as_str().unwrap()).unwrap();
        let at = Locator::Pointer(one["at"].as_str().unwrap().to_owned());
        let kind = one["kind"].as_str().unwrap();
        if kind == "literal" {
            draft.citations.push(Citation::Literal { call, at, quote: one["quote"].as_str().unwrap().to_owned() });
            continue;
        }
        let (first, _) = tools.calls.iter().find(|(made, _)| made.id == call).cloned().unwrap();
        let id = format!("{call}.again");
        tools.call(&id, &first.tool, &first.arguments);
        let again = Some(CallId::new(id).unwrap());
        draft.citations.push(match kind {
            "count" => Citation::Count { call, at, value: one["value"].as_str().unwrap().parse().unwrap(), again },
            "absence" => Citation::Absence { call, at, from: None, to: None, again },
            other => panic!("a citation of kind {other}"),
        });
    }
    draft
}

/// Plays an Expert to its end; its findings.
fn investigate(provider: Provider, way: Way, brain: Brain, tools: &mut Tools) -> Vec<Value> {
    let server = Server::start(brain, Options::default()).unwrap();
    let prompt = [
        section("alert", &alert()),
        section("sources", "[]"),
        section("journal", ""),
        section("question", r#"{"text":"What happened?","follow":["devbox-mara"]}"#),
    ];
    let mut talk =
        Talk::new(provider, "Casebook task: investigate (prompt investigate 1)\nBe careful.", &prompt.concat());
    let spec = tools.tools.toolset().tools;
    talk.tools = spec.iter().map(|t| (t.name.clone(), serde_json::from_str(&t.input_schema).unwrap())).collect();
    ask_for(&mut talk, way, "investigate", findings_form());
    let task = TaskId::new("r1.investigate.endpoint").unwrap();
    for turn in 1..10 {
        let got = talk.ask(&server.url());
        if got.calls.is_empty() || got.calls[0].name == "submit" {
            let found = invariants::check(&server.log().captured(), &Known::default());
            assert_eq!(found, []);
            return object(&got)["findings"].as_array().unwrap().clone();
        }
        let results = got
            .calls
            .iter()
            .zip(0..)
            .map(|(call, place)| tools.shown(CallId::of(&task, turn, place).as_str(), &call.name, &call.arguments));
        let results = results.collect();
        talk.go_on(&got, results);
    }
    panic!("no answer after nine turns");
}

#[test]
fn an_expert_calls_tools_in_parallel_and_cites_what_holds() {
    for provider in Provider::ALL {
        for way in [Way::Native, Way::Submit] {
            let mut tools = Tools::open();
            let findings = investigate(provider, way, Brain::default(), &mut tools);
            assert_eq!(findings.len(), 3, "{provider:?} {way:?}");
            let kinds: Vec<&str> = findings.iter().map(|finding| finding["kind"].as_str().unwrap()).collect();
            assert_eq!(kinds, ["occurrence", "occurrence", "absence"]);
            assert_eq!(tools.calls.len(), 4);
            for finding in &findings {
                let draft = draft(finding, &mut tools);
                let mut exhibits = Exhibits::default();
                for (call, text) in &tools.calls {
                    exhibits.add(call.clone(), true, text.as_bytes());
                }
                let checked = exhibits.check(&draft);
                assert!(checked.valid(), "{provider:?} {way:?} {draft:?} {checked:?}");
            }
        }
    }
}

#[test]
fn an_expert_may_call_one_tool_a_turn_and_count_instead() {
    let mut tools = Tools::open();
    let brain = Brain { expert_calls: 2, calls_a_turn: 1, findings: 1, ..Brain::default() };
    let findings = investigate(Provider::Chat, Way::Native, brain, &mut tools);
    let made: Vec<&str> = tools.calls.iter().map(|(call, _)| call.tool.as_str()).collect();
    assert_eq!(made, ["search", "count_by"]);
    assert_eq!(tools.calls[1].0.id.as_str(), "r1.investigate.endpoint.t2.0", "the second call is of the second turn");
    let draft = draft(&findings[0], &mut tools);
    assert!(matches!(draft.citations[0], Citation::Count { .. }), "{draft:?}");
    let mut exhibits = Exhibits::default();
    for (call, text) in &tools.calls {
        exhibits.add(call.clone(), true, text.as_bytes());
    }
    assert!(exhibits.check(&draft).valid());
}

/// One request to a task; the object that it answers, or the names of the tools it calls.
fn once(
    server: &Server,
    way: Way,
    kind: &str,
    tools: &[&str],
    form: Value,
    sections: &[(&str, Value)],
) -> Result<Value, Vec<String>> {
    let text: String = sections
        .iter()
        .map(|(name, content)| section(name, content.as_str().unwrap_or(&content.to_string())))
        .collect();
    let mut talk = Talk::new(Provider::Responses, &format!("Casebook task: {kind} (prompt {kind} 1)"), &text);
    talk.tools = tools.iter().map(|name| ((*name).to_owned(), json!({"type": "object"}))).collect();
    ask_for(&mut talk, way, kind, form);
    let got = talk.ask(&server.url());
    match got.calls.first() {
        Some(call) if call.name != "submit" => Err(got.calls.into_iter().map(|call| call.name).collect()),
        _ => Ok(object(&got)),
    }
}

#[test]
fn the_director_writes_plans_decides_and_reports() {
    for way in [Way::Native, Way::Submit] {
        let server = Server::start(Brain::default(), Options::default()).unwrap();
        let alert: Value = serde_json::from_str(&alert()).unwrap();
        let plan = closed(json!({"question": word(), "to": list(word()), "follow": list(word())}));
        let see = [("alert", alert.clone()), ("journal", json!("")), ("roster", json!([]))];
        assert_eq!(once(&server, way, "plan", &["journal"], plan.clone(), &see), Err(vec!["journal".to_owned()]));
        let question = once(&server, way, "plan", &[], plan, &see).unwrap();
        assert!(question["follow"].as_array().unwrap().len() == 3 && question["to"] == json!([]), "{question}");

        let decide = closed(json!({"next": {"type": "string", "enum": ["stay", "advance"]}, "reason": word()}));
        for (round, next) in [(1, "advance"), (2, "stay"), (3, "advance"), (4, "advance")] {
            let journal = format!("#1 [discovery 1] hypothesis: x\n#2 [trace {round}] hypothesis: y\n");
            let see = [("alert", alert.clone()), ("journal", json!(journal)), ("roster", json!([]))];
            assert_eq!(once(&server, way, "decide", &[], decide.clone(), &see).unwrap()["next"], next, "{round}");
            let review = json!({"summary": "s", "findings": [{"id": format!("r{round}-net-1"), "score": 0.8}]});
            let see = [("alert", alert.clone()), ("journal", json!("")), ("roster", json!([])), ("review", review)];
            assert_eq!(once(&server, way, "decide", &[], decide.clone(), &see).unwrap()["next"], next, "{round}");
        }
        let report =
            closed(json!({"verdict": word(), "summary": word(), "root_cause": word(), "actions": list(word()),
            "open_questions": list(word()), "findings": list(word())}));
        let timeline = json!({"events": [{"findings": ["r2-net-1", "r1-net-1"]}, {"findings": ["r1-net-1"]}]});
        let see = [("alert", alert.clone()), ("journal", json!("")), ("roster", json!([])), ("timeline", timeline)];
        let report = once(&server, way, "report", &[], report, &see).unwrap();
        assert_eq!(
            (&report["verdict"], &report["findings"]),
            (&json!("true_positive"), &json!(["r1-net-1", "r2-net-1"]))
        );
        assert_eq!(invariants::check(&server.log().captured(), &Known::default()), []);
    }
}

#[test]
fn the_critic_looks_up_scores_by_the_check_and_folds() {
    let server = Server::start(Brain::default(), Options::default()).unwrap();
    let citation = json!({"kind": "literal", "call": "r1.investigate.net.t1.0", "at": "/records/0/raw", "quote": "q"});
    let finding = |id: &str, valid: bool| json!({"id": id, "citations": [citation], "check": {"valid": valid, "citations": [], "faults": []}});
    let see = [
        ("journal", json!("")),
        ("toolsets", json!([])),
        ("findings", json!([finding("r1-net-1", true), finding("r1-net-2", false)])),
    ];
    let judged = closed(json!({"finding": word(), "score": {"type": "number"}, "rationale": word(),
        "corroborated_by": list(word()), "contradicted_by": list(word())}));
    let form = closed(json!({"summary": word(), "findings": list(judged)}));
    let tools = ["get_tool_call", "get_tool_result", "get_toolset_info", "get_tool_info", "list_toolsets"];
    let called = once(&server, Way::Native, "review", &tools, form.clone(), &see).unwrap_err();
    assert_eq!(called, ["get_tool_call", "get_tool_result"]);
    let review = once(&server, Way::Submit, "review", &[], form, &see).unwrap();
    let scores: Vec<f64> =
        review["findings"].as_array().unwrap().iter().map(|f| f["score"].as_f64().unwrap()).collect();
    assert!(scores[0] >= 0.7 && scores[1] < 0.3, "{review}");

    let time = |at: &str| json!({"at": at, "until": null, "precision": "second", "basis": "record", "field": "t"});
    let reviewed = |id: &str, score: f64, time: Value| json!({"id": id, "score": score, "claim": format!("claim of {id}"), "time": time, "kind": "occurrence"});
    let review = json!({"summary": "s", "findings": [reviewed("r2-net-1", 0.8, time("2026-01-01T00:00:00Z")),
        reviewed("r2-net-2", 0.1, time("2026-01-01T00:00:01Z")), reviewed("r2-net-3", 0.8, Value::Null)]});
    let before = json!({"events": [{"description": "claim of r1-net-1", "time": time("2025-12-31T00:00:00Z"), "findings": ["r1-net-1"]}]});
    let event = closed(json!({"description": word(), "findings": list(word())}));
    let gap = closed(json!({"kind": word(), "description": word()}));
    let form =
        closed(json!({"narrative": word(), "events": list(event), "gaps": list(gap), "score": {"type": "number"}}));
    let see = [("journal", json!("")), ("timeline", before), ("review", review)];
    let timeline = once(&server, Way::Native, "timeline", &[], form, &see).unwrap();
    assert_eq!(
        timeline["events"],
        json!([{"description": "claim of r1-net-1", "findings": ["r1-net-1"]}, {"description": "claim of r2-net-1", "findings": ["r2-net-1"]}])
    );
    assert_eq!(invariants::check(&server.log().captured(), &Known::default()), []);
}

#[test]
fn a_forced_answer_and_a_repair_call_no_more_tools() {
    let server = Server::start(Brain::default(), Options::default()).unwrap();
    let prompt = section("alert", &alert()) + &section("journal", "") + &section("roster", "[]");
    let mut talk = Talk::new(Provider::Anthropic, "Casebook task: plan (prompt plan 1)", &prompt);
    talk.tools = vec![("journal".into(), json!({"type": "object"}))];
    let form = closed(json!({"question": word(), "to": list(word()), "follow": list(word())}));
    ask_for(&mut talk, Way::Submit, "plan", form);
    let mut body = talk.body();
    assert_eq!(talk.ask(&server.url()).calls[0].name, "journal");
    body["tool_choice"] = json!({"type": "tool", "name": "submit"});
    let (_, text) = super::client::post(&server.url(), talk.provider, "k", &body);
    assert_eq!(talk.read(&text).calls[0].name, "submit", "{text}");
    let first = talk.ask(&server.url());
    talk.go_on(&first, vec!["call r1.plan.t1.0 (journal) failed\n<data-0>\nno\n</data-0>".into()]);
    let answer = talk.ask(&server.url());
    assert_eq!(answer.calls[0].name, "submit");
    talk.go_on(&answer, vec!["the answer has 1 error".into()]);
    talk.turns.push(crate::model::request::Turn::User(vec!["Repair it.".into()]));
    assert_eq!(talk.ask(&server.url()).calls[0].name, "submit");
}
