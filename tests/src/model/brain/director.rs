use serde_json::{Value, json};

use super::{Brain, Step, ask, due, repairing, tools};
use crate::model::Request;
use crate::model::prompt;

pub(super) fn plan(brain: &Brain, request: &Request) -> Step {
    let round = now(request).map_or_else(|| round(request) + 1, |(_, round)| round);
    let journal = tools(request).into_iter().find(|tool| tool.name == "journal");
    let mut notes = Vec::new();
    if let Some(journal) = journal.filter(|_| !repairing(request)) {
        let alert = prompt::json_section(request, "alert").unwrap_or_default();
        let id = alert.get("id").and_then(Value::as_str).filter(|_| brain.names_alert);
        let about = id.map(|id| format!(" {id}")).unwrap_or_default();
        let entries = (0..brain.journal).map(|n| ask(journal, &entry(round, n, &about))).collect();
        notes = due(brain, request, entries);
        if !notes.is_empty() && !brain.one_turn {
            return Step::Call(notes);
        }
    }
    let follow: Vec<String> = names(&prompt::json_section(request, "alert").unwrap_or_default());
    let follow: Vec<&String> = follow.iter().skip(usize::try_from(round).unwrap_or(0) % 4).take(3).collect();
    let text = format!("Round {round}: what do your sources show about these names, before and after the alert?");
    Step::Both(notes, json!({"question": text, "to": [], "follow": follow}))
}

/// The `n`th note of a round: the first is short, the others have a realistic length.
fn entry(round: u32, n: usize, about: &str) -> Value {
    let kinds = ["hypothesis", "observation", "question", "decision", "action", "finding"];
    let kind = kinds.get(n % kinds.len()).copied().unwrap_or("observation");
    let priority = if n == 0 { "medium" } else { ["low", "high"].get(n % 2).copied().unwrap_or("low") };
    let text = if n == 0 {
        format!("Round {round}: the alert{about} may be what it says; look who did it and from where.")
    } else {
        format!(
            "Round {round}, note {n}: what the Experts found in this round fits what came before; the account was used from where it is always used, the program was started by its usual parent, and nothing yet says who set it off. Ask next about the minutes before, and about the other host."
        )
    };
    json!({"kind": kind, "text": text, "priority": priority, "follow_ups": [], "citations": [], "supersedes": []})
}

pub(super) fn decide(brain: &Brain, request: &Request) -> Step {
    let (discovery, round) = now(request).unwrap_or_else(|| {
        let round = round(request);
        (round <= 1, round)
    });
    // Discovery has one round; all others belong to the trace.
    let advance = discovery || round >= brain.rounds;
    let (next, reason) =
        if advance { ("advance", "what was asked is answered") } else { ("stay", "more can be asked") };
    Step::Answer(json!({"next": next, "reason": format!("After round {round}: {reason}.")}))
}

pub(super) fn report(brain: &Brain, request: &Request) -> Step {
    let verdict = brain.verdict.name();
    let findings = credible(request);
    let summary = format!("The activity of the alert is on record; {} findings bear it out.", findings.len());
    Step::Answer(json!({"verdict": verdict, "summary": summary, "root_cause": "As the Timeline has it.",
        "actions": ["Look at the host of the alert."], "open_questions": ["Who else had access?"], "findings": findings}))
}

/// The findings on the Timeline; without a Timeline, those that the Review believes.
fn credible(request: &Request) -> Vec<String> {
    let mut ids: Vec<String> = Vec::new();
    let timeline = prompt::json_section(request, "timeline").unwrap_or_default();
    for event in timeline.get("events").and_then(Value::as_array).into_iter().flatten() {
        let findings = event.get("findings").and_then(Value::as_array).into_iter().flatten();
        ids.extend(findings.filter_map(Value::as_str).map(str::to_owned));
    }
    if ids.is_empty() {
        let review = prompt::json_section(request, "review").unwrap_or_default();
        let findings = review.get("findings").and_then(Value::as_array).into_iter().flatten();
        let believed = findings.filter(|one| one.get("score").and_then(Value::as_f64).is_some_and(|s| s >= 0.5));
        ids.extend(believed.filter_map(|one| one.get("id")?.as_str()).map(str::to_owned));
    }
    ids.sort();
    ids.dedup();
    ids
}

/// Whether it is discovery, and the round, if the prompt contains them.
fn now(request: &Request) -> Option<(bool, u32)> {
    let now = prompt::json_section(request, "now")?;
    let round = now.get("round")?.as_u64()?;
    Some((now.get("phase")?.as_str()? == "discovery", u32::try_from(round).ok()?))
}

/// The last round in the Journal, the Timeline or the Review; 0 before the first.
fn round(request: &Request) -> u32 {
    let mut last = 0;
    for (name, content) in prompt::task_sections(request) {
        match name {
            "journal" => {
                let heads = content.lines().filter_map(|line| line.split_once('[')?.1.split_once(']'));
                let rounds = heads.filter_map(|(head, _)| head.split(' ').nth(1)?.parse().ok());
                last = rounds.fold(last, u32::max);
            }
            "timeline" | "review" => {
                let value: Value = serde_json::from_str(content).unwrap_or_default();
                last = last.max(latest(&value));
            }
            _ => {}
        }
    }
    last
}

/// The largest `round` in a value, or in a finding's id such as `r3-net-1`.
fn latest(value: &Value) -> u32 {
    match value {
        Value::Object(map) => {
            let own = map.get("round").and_then(Value::as_u64).and_then(|n| u32::try_from(n).ok()).unwrap_or(0);
            map.values().map(latest).fold(own, u32::max)
        }
        Value::Array(items) => items.iter().map(latest).max().unwrap_or(0),
        Value::String(text) => {
            let id = text.strip_prefix('r').and_then(|rest| rest.split_once('-')).filter(|_| text.len() <= 64);
            id.and_then(|(round, _)| round.parse().ok()).unwrap_or(0)
        }
        _ => 0,
    }
}

/// Names in a JSON value that records may contain: short texts without spaces, in order, without duplicates.
/// Parses a text that is itself JSON.
pub(super) fn names(value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    collect(value, "", &mut found);
    // Names of machines, users and programs come first.
    found.sort_by_key(|(key, _): &(String, String)| {
        let key = key.to_ascii_lowercase();
        !["host", "user", "ip", "addr", "exe", "process", "account"].iter().any(|word| key.contains(word))
    });
    let mut seen = std::collections::BTreeSet::new();
    found.into_iter().map(|(_, name)| name).filter(|name| seen.insert(name.clone())).collect()
}

fn collect(value: &Value, key: &str, found: &mut Vec<(String, String)>) {
    match value {
        Value::Object(map) => map.iter().for_each(|(key, inner)| collect(inner, key, found)),
        Value::Array(items) => items.iter().for_each(|inner| collect(inner, key, found)),
        Value::String(text) if text.starts_with(['{', '[']) => {
            if let Ok(inner) = serde_json::from_str(text) {
                collect(&inner, key, found);
            }
        }
        Value::String(text) => {
            let fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '/' | '\\' | ':' | '$');
            let label = matches!(key, "id" | "severity" | "level" | "title" | "source" | "file" | "data_sources");
            let time = text.starts_with(|c: char| c.is_ascii_digit()) && text.contains(':') && text.contains('T');
            if (3..=60).contains(&text.len()) && text.chars().all(fine) && !label && !time {
                found.push((key.to_owned(), text.clone()));
            }
        }
        _ => {}
    }
}
