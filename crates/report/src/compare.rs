//! Compares two reports of the same investigation: verdict, scores, Timeline, players and cost.

use std::collections::{BTreeMap, BTreeSet};

use casebook_protocol::report::ReportFinding;
use casebook_protocol::{Credibility, FindingId, Report, Usage};
use serde_json::{Value, json};

use crate::words;

fn bands() -> impl Iterator<Item = Credibility> {
    Credibility::BANDS.into_iter().rev().chain([Credibility::CitationIncomplete])
}

struct Side {
    average: Option<f64>,
    /// Findings in each band, best first, followed by those without a Review.
    bands: [usize; 7],
    players: BTreeMap<String, BTreeSet<String>>,
    failed: usize,
}

impl Side {
    fn of(report: &Report) -> Self {
        let scores: Vec<f64> = report.findings.iter().filter_map(|f| Some(f.score?.get())).collect();
        let average = (!scores.is_empty()).then(|| scores.iter().sum::<f64>() / scores.len() as f64);
        let count = |label: Option<Credibility>| report.findings.iter().filter(|f| f.label == label).count();
        let mut counts = [0; 7];
        for (band, label) in counts.iter_mut().zip(bands().map(Some).chain([None])) {
            *band = count(label);
        }
        let failed = report.usage.tasks.iter().filter(|t| t.failed.is_some()).count();
        Self { average, bands: counts, players: players(report), failed }
    }
}

/// The models or analysts that played each role. All Experts count as one role.
pub fn players(report: &Report) -> BTreeMap<String, BTreeSet<String>> {
    let mut players: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for task in &report.usage.tasks {
        if let Some(player) = &task.player {
            let who = format!("{} {}", player.name, player.version);
            players.entry(task.kind.role().name().to_owned()).or_default().insert(who.trim_end().to_owned());
        }
    }
    players
}

pub fn used_by_role(report: &Report) -> BTreeMap<&'static str, Usage> {
    let mut roles: BTreeMap<&'static str, Usage> = BTreeMap::new();
    for task in &report.usage.tasks {
        *roles.entry(task.kind.role().name()).or_default() += task.usage;
    }
    roles
}

/// Findings with the same id in both runs. They may differ in content, because ids count up within a round and a
/// domain.
#[derive(Debug, Clone, Copy)]
pub struct Pair<'a> {
    pub then: &'a ReportFinding,
    pub now: &'a ReportFinding,
}

impl Pair<'_> {
    pub fn same_claim(&self) -> bool {
        self.then.finding.draft.claim == self.now.finding.draft.claim
    }

    /// None if one of them was not reviewed.
    pub fn rose(&self) -> Option<f64> {
        Some(self.now.score?.get() - self.then.score?.get())
    }
}

/// Matches the findings by id: in both runs, only in `then`, only in `now`.
pub fn findings<'a>(then: &'a Report, now: &'a Report) -> (Vec<Pair<'a>>, Vec<&'a FindingId>, Vec<&'a FindingId>) {
    let by_id = |report: &'a Report| -> BTreeMap<&'a FindingId, &'a ReportFinding> {
        report.findings.iter().map(|f| (&f.finding.id, f)).collect()
    };
    let (before, after) = (by_id(then), by_id(now));
    let pairs = then.findings.iter().filter_map(|f| Some(Pair { then: f, now: after.get(&f.finding.id)? }));
    let only = |report: &'a Report, other: &BTreeMap<&'a FindingId, &'a ReportFinding>| {
        report.findings.iter().map(|f| &f.finding.id).filter(|id| !other.contains_key(id)).collect()
    };
    (pairs.collect(), only(then, &after), only(now, &before))
}

/// Label, value then, value now.
pub type Row = (String, String, String);

pub fn rows(then: &Report, now: &Report) -> Vec<Row> {
    let (a, b) = (Side::of(then), Side::of(now));
    let row = |name: &str, then: String, now: String| (name.to_owned(), then, now);
    let both = |name: &str, say: &dyn Fn(&Report) -> String| row(name, say(then), say(now));
    let average = |side: &Side| side.average.map_or_else(|| "none".to_owned(), |n| format!("{n:.3}"));
    let mut rows = vec![
        both("verdict", &|r| words::verdict(r.verdict).to_lowercase()),
        both("proposed", &|r| words::verdict(r.ruling.proposed).to_lowercase()),
        both("stopped early", &|r| r.stop_reason.clone().unwrap_or_else(|| "no".into())),
        both("rounds", &|r| r.usage.rounds.to_string()),
        both("findings", &|r| r.findings.len().to_string()),
        row("average score", average(&a), average(&b)),
    ];
    let names = bands().map(Credibility::name).chain(["not reviewed"]);
    rows.extend(
        names
            .zip(a.bands.iter().zip(&b.bands))
            .filter(|(_, (then, now))| **then + **now > 0)
            .map(|(name, (then, now))| row(&format!("  {name}"), then.to_string(), now.to_string())),
    );
    rows.extend([
        both("timeline", &|r| format!("{} {}", r.timeline.score, r.timeline.label.name())),
        both("  events", &|r| r.timeline.events.len().to_string()),
        both("  gaps", &|r| r.timeline.gaps.len().to_string()),
        row("failed tasks", a.failed.to_string(), b.failed.to_string()),
    ]);
    let roles: BTreeSet<&String> = a.players.keys().chain(b.players.keys()).collect();
    let named = |side: &Side, role: &String| {
        side.players.get(role).map_or_else(|| "none".into(), |all| all.iter().cloned().collect::<Vec<_>>().join(", "))
    };
    rows.extend(roles.into_iter().map(|role| row(role, named(&a, role), named(&b, role))));
    rows.extend([
        both("model calls", &|r| r.usage.total.model_calls.to_string()),
        both("tool calls", &|r| r.usage.total.tool_calls.to_string()),
        both("tokens in", &|r| r.usage.total.input_tokens.to_string()),
        both("  of them cached", &|r| r.usage.total.cached_tokens.to_string()),
        both("tokens out", &|r| r.usage.total.output_tokens.to_string()),
        both("cost", &|r| words::money(r.usage.total.cost_micros)),
    ]);
    rows
}

pub fn json(then: &Report, now: &Report, from_round: u32) -> Value {
    let (pairs, gone, new) = findings(then, now);
    let pairs: Vec<Value> = pairs
        .iter()
        .map(|pair| {
            json!({"finding": pair.then.finding.id, "then": pair.then.score, "now": pair.now.score, "same_claim": pair.same_claim()})
        })
        .collect();
    let side = |report: &Report| {
        let side = Side::of(report);
        json!({"verdict": report.verdict, "average_score": side.average, "bands": side.bands, "coherence": report.timeline.score,
            "gaps": report.timeline.gaps.len(), "rounds": report.usage.rounds, "failed_tasks": side.failed,
            "players": side.players, "usage": report.usage.total, "report": report})
    };
    json!({"casebook_backtest": 1, "investigation": then.investigation, "from_round": from_round, "then": side(then), "now": side(now),
        "findings": {"in_both": pairs, "only_then": gone, "only_now": new}})
}

/// The report as JSON, without the id and the times of the run, which differ between two runs on the same input.
pub fn stable(report: &Report) -> Value {
    let mut value = serde_json::to_value(report).unwrap_or_default();
    let blank = |value: Option<&mut Value>| {
        if let Some(value) = value {
            *value = Value::Null;
        }
    };
    for key in ["investigation", "opened", "closed"] {
        blank(value.get_mut(key));
    }
    // The hash covers the times of all events, in the order in which they came.
    blank(value.pointer_mut("/proof/head"));
    for snapshot in value.pointer_mut("/proof/snapshots").and_then(Value::as_array_mut).into_iter().flatten() {
        blank(snapshot.get_mut("read"));
    }
    for (list, keys) in [("journal", &["at"][..]), ("calls", &["started", "ended"])] {
        for item in value.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            keys.iter().for_each(|key| blank(item.get_mut(key)));
        }
    }
    value
}
