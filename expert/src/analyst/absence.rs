//! For an alert that claims an operation: checks whether the evidence shows the operation itself. An absence
//! counts only for the searched window, and only in sources that would record the operation.

use std::sync::LazyLock;

use casebook_agent::reasoner::CallRequest;
use casebook_agent::worker::call;
use casebook_evidence::facet::Facet;
use casebook_protocol::coverage::{OTHER_HOSTS, same_host};
use casebook_protocol::{Alert, Bearing, Citation, FindingDraft, FindingKind, Locator, Timestamp, Weight};
use serde::Deserialize;
use serde_json::{Value, json};

use super::answers::Answer;
use super::plan::moved;
use super::{Case, rec};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Operation {
    pub(super) done_by: Vec<String>,
    claimed_by: Vec<String>,
    name: String,
    leaves: Vec<String>,
    watched_by: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    operation: Vec<Operation>,
}

#[allow(clippy::expect_used, reason = "the table is a constant that the tests read")]
static TABLE: LazyLock<Table> =
    LazyLock::new(|| toml::from_str(include_str!("operations.toml")).expect("operations.toml is valid"));

/// Half of the searched window, in seconds.
const AROUND: i64 = 3600;

/// The operation that the alert claims.
pub(super) fn claimed(alert: &Alert) -> Option<&'static Operation> {
    let body = alert.json();
    let said = ["/rule/title", "/rule/name", "/title", "/name", "/description", "/message"]
        .iter()
        .filter_map(|p| body.pointer(p)?.as_str());
    let said = said.collect::<Vec<_>>().join(" ").to_lowercase();
    TABLE.operation.iter().find(|o| o.claimed_by.iter().any(|w| said.contains(w)))
}

pub(super) fn search(case: &Case) -> Vec<CallRequest> {
    let (Some(operation), Some(at)) = (claimed(&case.alert), case.near.anchor) else { return Vec::new() };
    let (from, to) = (moved(at, -AROUND), moved(at, AROUND));
    // The first and the last run of programs that do it, or look as if they did.
    let host = case.alerted().find_map(|rec| rec.facets.get(Facet::Host));
    let trace = |program: &String, order: &str| {
        let terms: Vec<&str> = [program, operation.watched_by.as_str()].into_iter().chain(host).collect();
        let asked = json!({"terms": terms, "from": from, "to": to, "order": order, "limit": 20,
            "include_fields": true});
        call("search", &asked)
    };
    let traces = operation.done_by.iter().flat_map(|program| ["time", "time_desc"].map(|order| trace(program, order)));
    let counted = [
        call("search", &json!({"terms": operation.leaves, "mode": "any", "from": from, "to": to, "limit": 5})),
        call("search", &json!({"terms": [operation.watched_by], "mode": "any", "from": from, "to": to, "limit": 1})),
    ];
    traces.chain(counted).collect()
}

/// The part of the window around the alert that a searched source covers for the host, the longest. Sources that name
/// no host may have records of any.
fn covered(found: &Value, host: Option<&str>, at: Timestamp, [from, to]: [Timestamp; 2]) -> Option<[Timestamp; 2]> {
    let span = |value: &Value| {
        let time = |key: &str| value.get(key)?.as_str()?.parse::<Timestamp>().ok();
        Some([time("first_time")?.max(from), time("last_time")?.min(to)])
    };
    let name = |one: &Value| one.get("host").and_then(Value::as_str).unwrap_or_default().to_owned();
    let of_host = |source: &Value| {
        let hosts = rec::list(source, "hosts");
        let own = hosts.iter().find(|one| host.is_some_and(|host| same_host(&name(one), host)));
        let any =
            host.is_none() || hosts.is_empty() || hosts.iter().any(|one| ["", OTHER_HOSTS].contains(&&*name(one)));
        own.or(any.then_some(source)).and_then(span)
    };
    let around =
        rec::list(found, "covered").iter().filter_map(of_host).filter(|[first, last]| *first <= at && at <= *last);
    around.max_by_key(|[first, last]| last.as_second() - first.as_second())
}

pub(super) fn finding(case: &Case) -> Option<FindingDraft> {
    let operation = claimed(&case.alert)?;
    let total = |answer: &Answer| answer.found.get("total").and_then(Value::as_u64);
    let counted = |terms: &Value| {
        let mut of_any = case.answers.of("search").filter(|answer| answer.asked.get("mode").is_some());
        of_any.find(|answer| answer.asked.get("terms") == Some(terms))
    };
    let absent = counted(&json!(operation.leaves)).filter(|answer| total(answer) == Some(0))?;
    counted(&json!([operation.watched_by])).filter(|answer| total(answer) > Some(0))?;
    let edge = |key: &str| absent.asked.get(key)?.as_str()?.parse::<Timestamp>().ok();
    let own = case.alerted().find_map(|rec| rec.facets.get(Facet::Host)).map(str::to_owned);
    let host = own.or(case.alert.host());
    let [from, to] = covered(&absent.found, host.as_deref(), case.near.anchor?, [edge("from")?, edge("to")?])?;
    let names = operation.leaves.iter().map(|l| format!("`{l}`")).collect::<Vec<_>>().join(", ");
    let claim =
        format!("The claimed {} is not in the evidence: no record names {names} from {from} to {to}", operation.name);
    let (call, at) = (absent.call.clone(), Locator::Pointer("/total".into()));
    Some(FindingDraft {
        bearing: Bearing::Exonerating,
        weight: Weight::Moderate,
        citations: vec![Citation::Absence { call, at, from: Some(from), to: Some(to), again: None }],
        ..FindingDraft::neutral(FindingKind::Absence, claim)
    })
}
