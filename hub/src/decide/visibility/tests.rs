use casebook_protocol::{Answer, CallId, Citation, Event, Locator, ModelCallId, Outcome, Task, TaskId};

use super::*;
use crate::tests::script::{Driver, SEARCH, case, domain, honest, perform};

/// The honest team up to the task of `network` in the first round, its outcome, and the bytes of its calls.
fn of_network() -> (Driver, Task, Outcome, Vec<Vec<u8>>) {
    let mut driver = Driver::open(&case(&["endpoint", "network"]));
    let task = driver.until("r1.investigate.network");
    let (outcome, results) = perform(&task, &honest);
    (driver, task, outcome, results)
}

/// The first finding, cited from a result with these bytes.
fn cited(bytes: &str, at: Locator, quote: &str, tool: &str) -> Checked {
    let (driver, _, outcome, _) = of_network();
    let mut call = outcome.calls[0].clone();
    call.tool = tool.into();
    call.result = casebook_protocol::ArtifactId::of(bytes.as_bytes());
    let mut exhibits = Exhibits::default();
    exhibits.add(call.clone(), true, bytes.as_bytes());
    let Ok(Answer::Investigate(drafts)) = &outcome.result else { panic!("{:?}", outcome.result) };
    let citations = vec![Citation::Literal { call: call.id, at, quote: quote.into() }];
    check(&driver.state, &domain("network"), &FindingDraft { citations, ..drafts[0].clone() }, &exhibits)
}

#[test]
fn citation_is_valid_only_from_own_source_or_own_tool() {
    let record = |source: &str| {
        let record = serde_json::json!({"source": source, "file": "a.log", "line": 1, "raw": "did thing1"});
        serde_json::json!({"records": [record]}).to_string()
    };
    let at = || Locator::Pointer("/records/0".into());
    let own = cited(&record("network-log"), at(), "did thing1", SEARCH);
    assert!(own.citations[0].holds, "{own:?}");
    let foreign = cited(&record("endpoint-log"), at(), "did thing1", SEARCH);
    assert_eq!(
        (foreign.citations[0].holds, foreign.citations[0].note.as_str()),
        (false, "it leads to \"endpoint-log\", which the Expert for network does not see")
    );
    assert!(foreign.sources().is_empty() && foreign.records().is_empty() && !foreign.valid());
    let tool = cited("did thing1", Locator::Line(1), "did thing1", SEARCH);
    assert!(tool.citations[0].holds, "a result without sources is of its tool: {tool:?}");
    let other = cited("did thing1", Locator::Line(1), "did thing1", "endpoint_search");
    assert!(!other.citations[0].holds, "{other:?}");
}

#[test]
fn server_behind_a_tool_is_a_source_of_the_tools_owner() {
    let mut member = crate::tests::script::member("network");
    member.toolset.tools[0].name = "github__search_code".into();
    assert!(sees(&member, "github") && sees(&member, "github__search_code"));
    assert!(!sees(&member, "gitlab") && !sees(&member, "search_code") && !sees(&member, SEARCH));
}

#[test]
fn count_over_a_hidden_source_is_invalid() {
    let (driver, _, outcome, results) = of_network();
    let Ok(Answer::Investigate(drafts)) = &outcome.result else { panic!("{:?}", outcome.result) };
    let text = String::from_utf8(results[0].clone()).unwrap().replace("network-log", "endpoint-log");
    let mut exhibits = Exhibits::default();
    for call in &outcome.calls {
        let result = casebook_protocol::ArtifactId::of(text.as_bytes());
        exhibits.add(casebook_protocol::ToolCall { result, ..call.clone() }, true, text.as_bytes());
    }
    let count = |checked: Checked| checked.citations.iter().filter(|c| c.holds).count();
    assert_eq!(count(exhibits.check(&drafts[1])), 1, "its bytes say so");
    assert_eq!(count(check(&driver.state, &domain("network"), &drafts[1], &exhibits)), 0);
}

#[test]
fn outcome_with_a_call_of_another_task_drops_it() {
    let (mut driver, task, mut outcome, results) = of_network();
    let other = TaskId::new("r2.investigate.endpoint").unwrap();
    let mut call = outcome.calls[0].clone();
    call.id = CallId::of(&other, 1, 0);
    outcome.calls.push(call);
    let mut asked = outcome.asked[0].clone();
    asked.id = ModelCallId::of(&other, 1);
    outcome.asked.push(asked);
    let done = driver.answer(outcome, &results);
    assert_eq!(done.answers, [Ok(())]);
    let ids: Vec<String> = done
        .recorded
        .iter()
        .filter_map(|e| match &e.event {
            Event::CallRecorded { call, .. } => Some(call.id.to_string()),
            Event::ModelCalled { call, .. } => Some(call.id.to_string()),
            _ => None,
        })
        .collect();
    assert!(ids.len() >= 2 && ids.iter().all(|id| id.starts_with(task.id.as_str())), "{ids:?}");
}
