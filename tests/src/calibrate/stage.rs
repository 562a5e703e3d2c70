//! Reads finished investigations: the state of each round just before its Review.

use std::collections::{BTreeMap, BTreeSet};

use casebook_hub::{HubError, State, archive};
use casebook_protocol::{
    CallStatus, CheckedFinding, Domain, Event, FindingId, InvestigationId, Precision, Recorded, TaskId, TaskKind,
    TimeBasis, Timestamp, ToolCall,
};
use casebook_runtime::store::Store;
use casebook_trust::Exhibits;
use serde_json::Value;

const RECORDS: usize = 4_000;

#[derive(Debug)]
pub struct Stage {
    pub state: State,
    /// The recorded calls of each Expert in this round.
    pub exhibits: BTreeMap<Domain, Exhibits>,
    /// The findings with valid checks, and what each cites.
    pub bases: Vec<Base>,
    /// Every record that a search of this round returned, without duplicates.
    pub records: Vec<Rec>,
    pub searches: Vec<Search>,
    pub on_timeline: BTreeSet<FindingId>,
}

#[derive(Debug, Clone)]
pub struct Base {
    pub found: CheckedFinding,
    /// The cited records, as tools returned them.
    pub records: Vec<Rec>,
}

#[derive(Debug, Clone)]
pub struct Rec {
    pub domain: Domain,
    pub call: casebook_protocol::CallId,
    pub pointer: String,
    pub file: String,
    pub line: u64,
    pub time: Option<Timestamp>,
    pub basis: TimeBasis,
    pub precision: Precision,
    pub raw: String,
    pub value: Value,
    lower: String,
}

#[derive(Debug, Clone)]
pub struct Search {
    pub call: ToolCall,
    pub domain: Domain,
    pub total: u64,
    pub terms: Vec<String>,
    /// Whether one matching term is enough.
    pub any: bool,
    pub from: Option<Timestamp>,
    pub to: Option<Timestamp>,
}

impl Rec {
    pub fn read(domain: &Domain, call: &casebook_protocol::CallId, pointer: String, value: &Value) -> Option<Self> {
        let text = |key: &str| value.get(key).and_then(Value::as_str);
        let known = |key: &str| value.get(key).cloned().unwrap_or(Value::Null);
        let raw = text("raw").filter(|raw| !raw.trim().is_empty())?.to_owned();
        let fields = value.get("fields").map(Value::to_string).unwrap_or_default();
        Some(Self {
            domain: domain.clone(),
            call: call.clone(),
            pointer,
            file: text("file")?.to_owned(),
            line: value.get("line").and_then(Value::as_u64)?,
            time: text("time").and_then(|t| t.parse().ok()),
            basis: serde_json::from_value(known("time_basis")).unwrap_or(TimeBasis::Inferred),
            precision: serde_json::from_value(known("precision")).unwrap_or(Precision::Second),
            lower: squeezed(&format!("{raw}\n{fields}\n{}", text("time").unwrap_or_default())),
            raw,
            value: value.clone(),
        })
    }

    /// Whether the record contains the text, ignoring case.
    pub fn holds(&self, text: &str) -> bool {
        let text = squeezed(text);
        // The record is held as JSON.
        let escaped = text.replace('\\', "\\\\").replace('"', "\\\"");
        self.lower.contains(&text) || self.lower.contains(&escaped)
    }

    pub fn fields(&self) -> impl Iterator<Item = (&str, &str)> {
        let fields = self.value.get("fields").and_then(Value::as_object);
        fields.into_iter().flatten().filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)))
    }
}

/// Converts to lower case with single spaces.
fn squeezed(text: &str) -> String {
    text.to_lowercase().split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The rounds of an investigation that had a Review, in order.
pub async fn stages(store: &dyn Store, id: &InvestigationId) -> Result<Vec<Stage>, HubError> {
    let log = archive::log(store, id).await?;
    let mut stages = Vec::new();
    for (place, entry) in log.iter().enumerate() {
        if matches!(entry.event, Event::TaskRequested { kind: TaskKind::Review, .. }) {
            let (before, after) = log.split_at(place);
            stages.push(stage(store, State::replay(before), after).await?);
        }
    }
    Ok(stages)
}

async fn stage(store: &dyn Store, state: State, after: &[Recorded]) -> Result<Stage, HubError> {
    let mut stage = Stage {
        exhibits: BTreeMap::new(),
        bases: Vec::new(),
        records: Vec::new(),
        searches: Vec::new(),
        on_timeline: on_timeline(after),
        state,
    };
    let mut seen = BTreeSet::new();
    let domains: Vec<Domain> = stage.state.roster().iter().map(|m| m.domain.clone()).collect();
    for domain in domains {
        let own = TaskId::of(stage.state.round, TaskKind::Investigate, Some(&domain));
        let calls: Vec<ToolCall> =
            stage.state.calls.values().filter(|made| made.task == own).map(|made| made.call.clone()).collect();
        let mut exhibits = Exhibits::default();
        for call in calls {
            let Some(bytes) = store.get(&call.result).await? else { continue };
            exhibits.add(call.clone(), stage.state.repeatable(Some(&domain), &call.tool), &bytes);
            if call.status == CallStatus::Answered
                && let Ok(result) = serde_json::from_slice::<Value>(&bytes)
            {
                stage.records.extend(records(&domain, &call, &result, &mut seen));
                stage.searches.extend(search(&domain, &call, &result));
            }
        }
        stage.exhibits.insert(domain, exhibits);
    }
    stage.records.truncate(RECORDS);
    let found: Vec<CheckedFinding> =
        stage.state.this_round().into_iter().flat_map(|r| r.findings.values()).cloned().collect();
    stage.bases = found.into_iter().filter(|f| f.checked.valid()).map(|f| base(&stage, f)).collect();
    Ok(stage)
}

fn on_timeline(after: &[Recorded]) -> BTreeSet<FindingId> {
    let timeline = after.iter().find_map(|entry| match &entry.event {
        Event::TimelineRewritten { timeline } => Some(timeline),
        _ => None,
    });
    timeline.into_iter().flat_map(|t| &t.events).flat_map(|e| e.findings.clone()).collect()
}

fn records(domain: &Domain, call: &ToolCall, result: &Value, seen: &mut BTreeSet<(String, u64)>) -> Vec<Rec> {
    let listed = result.get("records").and_then(Value::as_array);
    let all = listed.into_iter().flatten().enumerate();
    all.filter_map(|(place, value)| Rec::read(domain, &call.id, format!("/records/{place}"), value))
        .filter(|rec| seen.insert((rec.file.clone(), rec.line)))
        .collect()
}

fn search(domain: &Domain, call: &ToolCall, result: &Value) -> Option<Search> {
    let arguments: Value = serde_json::from_str(&call.arguments).ok()?;
    let time = |key: &str| result.pointer(&format!("/window/{key}"))?.as_str()?.parse().ok();
    let terms: Vec<String> =
        arguments.get("terms")?.as_array()?.iter().filter_map(|t| t.as_str().map(str::to_owned)).collect();
    let plain = arguments.get("where").is_none() && arguments.get("sources").is_none() && !terms.is_empty();
    let exact = result.get("total_is_exact").and_then(Value::as_bool)?;
    let quotable = terms.iter().all(|t| !t.contains('`') && !t.trim().is_empty() && !t.ends_with('…'));
    (call.tool == "search" && plain && exact && quotable).then_some(Search {
        call: call.clone(),
        domain: domain.clone(),
        total: result.get("total")?.as_u64()?,
        terms,
        any: arguments.get("mode").and_then(Value::as_str) == Some("any"),
        from: time("from"),
        to: time("to"),
    })
}

fn base(stage: &Stage, found: CheckedFinding) -> Base {
    let exhibits = stage.exhibits.get(&found.finding.domain);
    let places = found.finding.draft.citations.iter().filter_map(|c| Some((c.call(), exhibits?.cited(c)?)));
    let records = places.filter_map(|(call, (at, value))| Rec::read(&found.finding.domain, call, at, value)).collect();
    Base { found, records }
}
