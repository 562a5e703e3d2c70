//! The forms in which a capable model cites, over the wire: rows of SQL, groups, edges of windows, numbers, patterns,
//! phrases, exceptions and short values. The true findings stand, and falsehoods of the same form do not.

use casebook_protocol::report::ReportFinding;
use casebook_protocol::{Rule, TaskKind};
use casebook_tests::lab::FORMS;
use casebook_tests::model::brain::{Brain, answer};
use casebook_tests::model::play::{Ask, Changed, Play, Reply, Script, object};
use casebook_tests::model::{Request, prompt};
use serde_json::{Value, json};

use crate::forms::{brain, investigated};

/// The wire formats with both forms of the answer.
const WIRES: [(&str, &str); 4] = [FORMS[0], FORMS[1], FORMS[6], FORMS[7]];
const FROM: &str = "2026-11-21T23:56:00Z";
const TO: &str = "2026-11-21T23:57:00Z";
const LATER: &str = "2026-11-21T23:57:10Z";

/// The calls of the Expert, in the order of their numbers.
fn calls() -> Vec<(&'static str, Value)> {
    let nothing = |arguments: Value| ("search", arguments);
    vec![
        ("sql", json!({"query": "SELECT file, line, raw FROM records ORDER BY line LIMIT 1"})),
        ("sql", json!({"query": "SELECT file, line, 'qx9 ran' AS raw FROM records LIMIT 1"})),
        ("count_by", json!({"field": "exe", "terms": ["modprobe"]})),
        ("search", json!({"terms": ["hooks/kmod"], "after": FROM, "before": TO, "limit": 0})),
        nothing(json!({"terms": ["qx9"], "from": FROM, "to": TO})),
        nothing(json!({"where": [{"field": "pid", "value": 999_999}]})),
        nothing(json!({"where": [{"field": "command_line", "op": "regex", "value": "^(insfoo|qxbar)$"}]})),
        nothing(json!({"where": [{"field": "command_line", "op": "regex", "value": "modprobe.*qx9"}]})),
        nothing(json!({"terms": ["modprobe qx9"]})),
        nothing(
            json!({"terms": ["hooks/kmod"], "where": [{"field": "event", "op": "not_contains", "value": "process"}]}),
        ),
        ("get_record", json!({"file": "endpoint_process.ndjson", "line": 6026})),
        nothing(json!({"where": [{"field": "usre", "value": "mara"}]})),
    ]
}

pub(crate) fn finding(kind: &str, claim: &str, time: Value, citation: Value) -> Value {
    json!({"kind": kind, "claim": claim, "time": time[0], "until": time[1], "bearing": "neutral", "weight": "weak", "confidence": 0.8,
        "citations": [citation]})
}

fn quoted(call: &str, at: &str, quote: &str) -> Value {
    json!({"kind": "literal", "call": call, "at": at, "quote": quote})
}

fn counted(call: &str, at: &str, value: u64) -> Value {
    json!({"kind": "count", "call": call, "at": at, "value": value.to_string()})
}

fn absent(call: &str, from: Option<&str>, to: Option<&str>) -> Value {
    json!({"kind": "absence", "call": call, "at": "/total", "from": from, "to": to})
}

fn time(at: &str, until: &str) -> Value {
    json!([at, until])
}

/// True findings and falsehoods over the calls, by turns.
fn findings(shown: &[prompt::Shown<'_>]) -> (Vec<Value>, Vec<Value>) {
    let id = |n: usize| shown[n].call;
    let groups = shown[2].json().unwrap()["groups"].clone();
    let text = |n: usize, key: &str| groups[n][key].as_str().unwrap().to_owned();
    let (many, few) = (groups[0]["count"].as_u64().unwrap(), groups[1]["count"].as_u64().unwrap());
    let (value, other) = (text(0, "value"), text(1, "value"));
    let edges = time(&text(0, "first_time"), &text(0, "last_time"));
    let hooks = shown[3].json().unwrap()["total"].as_u64().unwrap();
    let window = |to: &str| time(FROM, to);
    let none = |claim: &str, n: usize| finding("absence", claim, Value::Null, absent(id(n), None, None));
    let sum = |claim: &str, at: Value, citation: Value| finding("aggregate", claim, at, citation);
    let kept = vec![
        finding("state", "A record is of `devbox-mara`.", Value::Null, quoted(id(0), "/rows/0/raw", "devbox-mara")),
        sum(
            &format!("{many} records with `modprobe` are of `{value}`."),
            edges.clone(),
            counted(id(2), "/groups/0/count", many),
        ),
        sum(&format!("`{value}` is one of the programs."), Value::Null, quoted(id(2), "/groups/0", &value)),
        sum(&format!("{hooks} records name `hooks/kmod`."), window(TO), counted(id(3), "/total", hooks)),
        sum("0 records name `qx9`.", time(FROM, TO), counted(id(4), "/total", 0)),
        finding("absence", "No record names `qx9` in that minute.", Value::Null, absent(id(4), Some(FROM), Some(TO))),
        none("No record has the `pid` 999999.", 5),
        none("Neither `insfoo` nor `qxbar` was run.", 6),
        none("No record names `modprobe qx9`.", 8),
        none("`hooks/kmod` stands in no record of another `event` than one with `process`.", 9),
        finding("state", "It ran with the `uid` `0`.", Value::Null, quoted(id(10), "/fields/uid", "0")),
    ];
    let false_ = vec![
        finding("state", "A record shows that `qx9` ran.", Value::Null, quoted(id(1), "/rows/0/raw", "qx9 ran")),
        sum(
            &format!("{many} records with `modprobe` are of `{other}`."),
            edges.clone(),
            counted(id(2), "/groups/1/count", few),
        ),
        sum(&format!("{few} records with `modprobe` are of `{value}`."), edges, counted(id(2), "/groups/0/count", few)),
        sum(&format!("{} records name `hooks/kmod`.", hooks + 1), window(TO), counted(id(3), "/total", hooks)),
        sum("0 records name `qx9`.", time(FROM, LATER), counted(id(4), "/total", 0)),
        finding("absence", "No record names `qx9` for hours.", Value::Null, absent(id(4), Some(FROM), None)),
        none("No record has the `pid` 13072.", 5),
        none("`mara` was never run.", 6),
        none("No command line has `modprobe`.", 7),
        none("No record names `modprobe`.", 8),
        none("`hooks/kmod` stands in no record with `process`.", 9),
        finding("state", "It ran with the `uid` `1`.", Value::Null, quoted(id(10), "/fields/uid", "1")),
        none("No record names `mara`.", 11),
    ];
    (kept, false_)
}

/// Its Expert for the endpoint cites in each form. Both lists are submitted again when code returns the falsehoods.
struct Cites(Brain);

impl Script for Cites {
    fn reply(&self, request: &Request) -> Play {
        let domain = prompt::json_section(request, "question").map(|question| question["domain"].clone());
        if prompt::kind(&request.system) != Some(TaskKind::Investigate) {
            return self.0.reply(request);
        }
        if domain != Some(json!("endpoint")) {
            return Play::Reply(answer(request, &json!({"findings": []})));
        }
        let shown = prompt::all_shown(request);
        if shown.is_empty() {
            let all = calls()
                .into_iter()
                .map(|(name, arguments)| Ask { name: name.into(), arguments: arguments.to_string() });
            return Play::Reply(Reply::calls(all.collect()));
        }
        let (kept, false_) = findings(&shown);
        let mut reply = answer(request, &json!({"findings": []}));
        let returned = String::from_utf8_lossy(&request.bytes).contains("Code has checked your findings");
        let all = if returned { false_ } else { [kept, false_].concat() };
        *object(&mut reply) = json!({"findings": all}).to_string();
        Play::Reply(reply)
    }
}

#[test]
fn each_form_of_citation_stands_if_it_is_true_and_falls_if_not() {
    for form in WIRES {
        let (lab, report) = investigated(Cites(Brain { rounds: 1, ..brain() }), form);
        let made = lab.server.log().captured();
        let last = made
            .iter()
            .rev()
            .find(|one| !prompt::all_shown(&one.request).is_empty() && one.kind == Some(TaskKind::Investigate));
        let (kept, false_) = findings(&prompt::all_shown(&last.unwrap().request));
        let claim = |one: &Value| one["claim"].as_str().unwrap().to_owned();
        let found = |one: &Value| {
            let same = |f: &&ReportFinding| {
                let draft = &f.finding.draft;
                draft.claim == claim(one)
                    && draft.citations.len() == 1
                    && one["citations"][0]["call"] == json!(draft.citations[0].call())
            };
            report.findings.iter().filter(same).collect::<Vec<_>>()
        };
        for one in &kept {
            let all = found(one);
            let right = all.iter().filter(|f| f.citations.iter().all(|c| c.holds) && f.faults.is_empty());
            let timed = right.filter(|f| f.finding.draft.time.is_some() == one["time"].is_string()).count();
            assert_eq!(
                timed,
                1,
                "{form:?}: {one}\n{:?}",
                all.iter().map(|f| (&f.citations, &f.faults)).collect::<Vec<_>>()
            );
        }
        for one in &false_ {
            let until = |f: &&&ReportFinding| {
                f.finding.draft.time.as_ref().and_then(|time| time.until).is_some_and(|until| until.to_string() == TO)
            };
            let all = found(one);
            let held = all.iter().filter(|f| f.citations.iter().all(|c| c.holds) && f.faults.is_empty() && !until(f));
            let claimed: Vec<_> = held.filter(|f| f.finding.draft.time.is_some() || one["time"].is_null()).collect();
            assert!(
                claimed.is_empty(),
                "{form:?}: {one}\n{:?}",
                claimed.iter().map(|f| &f.citations).collect::<Vec<_>>()
            );
        }
        let corrected: u32 = report.usage.tasks.iter().map(|task| task.corrected).sum();
        assert_eq!(corrected, 0, "{form:?}: no falsehood became true");
    }
}

/// Its Experts for endpoint and configuration find one name.
struct Names(Brain);

impl Script for Names {
    fn reply(&self, request: &Request) -> Play {
        if prompt::kind(&request.system) != Some(TaskKind::Investigate) {
            return self.0.reply(request);
        }
        let domain = prompt::json_section(request, "question").unwrap()["domain"].as_str().unwrap().to_owned();
        if domain != "endpoint" && domain != "configuration" {
            return Play::Reply(answer(request, &json!({"findings": []})));
        }
        let shown = prompt::all_shown(request);
        let Some(first) = shown.first() else {
            let arguments = json!({"terms": ["mdadm"], "limit": 1}).to_string();
            return Play::Reply(Reply::calls(vec![Ask { name: "search".into(), arguments }]));
        };
        let claim = format!("A record of the {domain} names `mdadm`.");
        let one = finding("state", &claim, Value::Null, quoted(first.call, "/records/0/raw", "mdadm"));
        Play::Reply(answer(request, &json!({"findings": [one]})))
    }
}

/// Says in the second round that the configuration supports the first finding of the endpoint.
fn supports(_: &Request, review: &mut Value) {
    for one in review["findings"].as_array_mut().unwrap() {
        one["score"] = json!(0.95);
        if one["finding"] == "r2-configuration-1" {
            one["corroborated_by"] = json!(["r1-endpoint-1"]);
        }
    }
}

#[test]
fn second_source_of_a_later_round_raises_an_earlier_finding() {
    for form in WIRES {
        let script = Changed { script: Names(brain()), kind: TaskKind::Review, change: supports };
        let (_, report) = investigated(script, form);
        let raised = report.guards.iter().filter(|g| g.rule == Rule::Corroborated).map(|g| g.subject.as_str());
        assert_eq!(raised.collect::<Vec<_>>(), ["r1-endpoint-1"], "{form:?}");
        let score =
            |id: &str| report.findings.iter().find(|f| f.finding.id.as_str() == id).unwrap().score.unwrap().get();
        let all = ["r1-endpoint-1", "r2-configuration-1", "r1-configuration-1", "r2-endpoint-1"].map(score);
        assert_eq!(all, [0.95, 0.95, 0.89, 0.89], "{form:?}");
    }
}
