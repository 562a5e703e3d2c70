//! The Timeline of the analyst: adds the findings of this Review to the previous Timeline. It keeps credible
//! findings, describes each occurrence once, and names at most three gaps.

use std::collections::{BTreeMap, BTreeSet};

use casebook_protocol::{
    Bearing, EntityKind, EntryDraft, EntryKind, EventDraft, EventTime, FindingDraft, FindingId, FindingKind, Gap,
    GapKind, Precision, Priority, RecordRef, Reviewed, Score, TimelineDraft, TimelineView, Timestamp, Weight,
    one_sentence,
};
use casebook_trust::rule::{TIMELINE_THRESHOLD, credible};

/// Findings from different sources at most this many seconds apart may be one occurrence.
const SAME_SECONDS: f64 = 0.05;
/// Characters of a name that is a whole command.
const WHOLE_COMMAND: usize = 32;
/// The clocks of two sensors may differ by this many seconds.
const CLOCKS_APART: f64 = 120.0;
/// Seconds without events that count as a gap.
const SILENCE: f64 = 120.0;

struct Scene {
    at: Timestamp,
    description: String,
    findings: Vec<FindingId>,
    records: BTreeSet<RecordRef>,
    names: BTreeSet<String>,
    /// The scene with the highest weight gives the description.
    weight: (Weight, Score),
    time: Option<EventTime>,
    grave: bool,
    alerted: bool,
}

pub(super) fn tell(view: &TimelineView) -> TimelineDraft {
    let mut scenes: Vec<Scene> = earlier(view);
    let known: BTreeSet<FindingId> = scenes.iter().flat_map(|s| s.findings.clone()).collect();
    let threshold = Score::clamped(TIMELINE_THRESHOLD);
    let fresh = view.review.findings.iter().filter(|f| credible(f, threshold) && !known.contains(&f.finding.id));
    for finding in fresh {
        // Text that addresses the investigator has its own section in the report. An attacker could otherwise
        // flood the Timeline.
        if finding.finding.draft.kind != FindingKind::Occurrence {
            continue;
        }
        let Some(scene) = scene(finding) else { continue };
        let place = scenes.iter().position(|s| same_record(s, &scene));
        let place = place.or_else(|| scenes.iter().position(|s| same(s, &scene)));
        let place = place.or_else(|| twin(&scenes, &scene, view));
        match place.and_then(|place| scenes.get_mut(place)) {
            Some(home) => join(home, scene),
            None => scenes.push(scene),
        }
    }
    scenes.sort_by(|a, b| (a.at, &a.findings).cmp(&(b.at, &b.findings)));
    let gaps = gaps(view, &scenes);
    let score = coherence(&scenes, &gaps, view);
    let narrative = narrative(&scenes);
    let events = scenes.into_iter().map(|s| EventDraft { description: s.description, findings: s.findings }).collect();
    TimelineDraft { narrative, events, gaps, score: Score::clamped(score) }
}

fn earlier(view: &TimelineView) -> Vec<Scene> {
    let events = view.previous.iter().flat_map(|t| &t.events);
    events
        .map(|event| Scene {
            at: event.time.at,
            description: event.description.clone(),
            findings: event.findings.clone(),
            records: event.evidence.iter().cloned().collect(),
            names: quoted(&event.description),
            weight: (Weight::Decisive, event.score),
            time: Some(event.time.clone()),
            grave: noted(view, &event.findings, |entry| entry.priority >= Some(Priority::High)),
            alerted: noted(view, &event.findings, |entry| entry.text.contains("alerted activity")),
        })
        .collect()
}

/// True if the Journal has an entry of this kind about one of the findings. It is the memory of earlier rounds.
fn noted(view: &TimelineView, findings: &[FindingId], such: fn(&EntryDraft) -> bool) -> bool {
    let entries = view.journal.iter().map(|e| &e.entry).filter(|e| e.kind == EntryKind::Finding);
    entries.filter(|e| such(e)).any(|e| e.citations.iter().any(|id| findings.contains(id)))
}

fn scene(finding: &Reviewed) -> Option<Scene> {
    let draft = &finding.finding.draft;
    let time = draft.time.clone()?;
    Some(Scene {
        at: time.at,
        description: draft.claim.clone(),
        findings: vec![finding.finding.id.clone()],
        records: finding.checked.records().into_iter().collect(),
        names: names(draft),
        weight: (draft.weight, finding.score),
        time: Some(time),
        grave: draft.bearing == Bearing::Incriminating && draft.weight >= Weight::Moderate,
        alerted: draft.about_alert,
    })
}

/// Names that two findings about one event may share. Host names are left out, because all findings on a host
/// share them.
fn names(draft: &FindingDraft) -> BTreeSet<String> {
    let (hosts, telling): (Vec<_>, Vec<_>) = draft.entities.iter().partition(|e| e.kind == EntityKind::Host);
    let hosts: BTreeSet<String> = hosts.into_iter().map(|e| base(&e.value)).collect();
    let quoted = quoted(&draft.claim);
    telling.into_iter().map(|e| base(&e.value)).chain(quoted.difference(&hosts).cloned()).collect()
}

fn quoted(text: &str) -> BTreeSet<String> {
    text.split('`').skip(1).step_by(2).map(base).collect()
}

/// Makes `C:\Windows\a.exe` equal to `a.exe`, and `CORP\mara` to `mara`.
pub(super) fn base(value: &str) -> String {
    value.rsplit(['/', '\\']).next().unwrap_or(value).trim_end_matches('…').to_ascii_lowercase()
}

pub(super) fn seconds(a: Timestamp, b: Timestamp) -> f64 {
    (a.as_nanosecond() - b.as_nanosecond()) as f64 / 1e9
}

fn same_record(a: &Scene, b: &Scene) -> bool {
    seconds(a.at, b.at).abs() <= 1.0 && a.records.iter().any(|r| b.records.contains(r))
}

/// The same record; or the same instant in different sources, with a common name.
fn same(a: &Scene, b: &Scene) -> bool {
    let apart = seconds(a.at, b.at).abs();
    if same_record(a, b) {
        return true;
    }
    let sources = |s: &Scene| s.records.iter().map(|r| r.source.clone()).collect::<BTreeSet<_>>();
    if !sources(a).is_disjoint(&sources(b)) {
        return false;
    }
    // A log with whole seconds is less exact, so require more of the names. One may note the start of a command, the other
    // what it did.
    let whole = |s: &Scene| s.time.as_ref().is_some_and(|t| t.precision >= Precision::Second);
    let (close, least) = match whole(a) || whole(b) {
        true if apart > 1.0 => (2.0, WHOLE_COMMAND),
        true => (1.0, 8),
        false => (SAME_SECONDS, 1),
    };
    apart <= close && a.names.intersection(&b.names).any(|n| n.len() >= least)
}

/// An event from other sources with exactly the same names, if both are the only such event. Then the clocks
/// differ.
fn twin(scenes: &[Scene], scene: &Scene, view: &TimelineView) -> Option<usize> {
    let names = quoted(&scene.description);
    let telling = |n: &String| n.len() >= 8 && n.chars().any(char::is_alphabetic);
    if !names.iter().any(telling) {
        return None;
    }
    let sources = |s: &Scene| s.records.iter().map(|r| r.source.clone()).collect::<BTreeSet<_>>();
    let own = sources(scene);
    let close = |s: &Scene| seconds(s.at, scene.at).abs() <= CLOCKS_APART && quoted(&s.description) == names;
    let alike: Vec<usize> = scenes.iter().enumerate().filter(|(_, s)| close(s)).map(|(place, _)| place).collect();
    let [place] = alike.as_slice() else { return None };
    let others = view.review.findings.iter().filter(|f| {
        !scene.findings.contains(&f.finding.id)
            && quoted(&f.finding.draft.claim) == names
            && f.checked.sources().iter().any(|s| own.contains(*s))
    });
    let home = scenes.get(*place)?;
    (others.count() == 0 && sources(home).is_disjoint(&own)).then_some(*place)
}

fn join(home: &mut Scene, scene: Scene) {
    if scene.weight > home.weight {
        home.description = scene.description;
        home.weight = scene.weight;
    }
    let stronger = match (&home.time, &scene.time) {
        (Some(known), Some(new)) => {
            new.basis > known.basis || new.basis == known.basis && new.precision < known.precision
        }
        (None, Some(_)) => true,
        _ => false,
    };
    if stronger {
        home.at = scene.at;
        home.time = scene.time;
    }
    home.findings.extend(scene.findings);
    home.records.extend(scene.records);
    home.names.extend(scene.names);
    home.grave |= scene.grave;
    home.alerted |= scene.alerted;
}

fn gaps(view: &TimelineView, scenes: &[Scene]) -> Vec<Gap> {
    let mut gaps = Vec::new();
    let contradicted = view.review.findings.iter().filter(|f| !f.contradicted_by.is_empty() && f.checked.valid());
    for finding in contradicted.take(1) {
        let against: Vec<&str> = finding.contradicted_by.iter().map(FindingId::as_str).collect();
        gaps.push(Gap {
            kind: GapKind::Logical,
            description: format!(
                "{} does not fit with {}: decide which of them is right.",
                finding.finding.id,
                against.join(", ")
            ),
        });
    }
    let longest = scenes
        .iter()
        .zip(scenes.iter().skip(1))
        .map(|(a, b)| (seconds(b.at, a.at), a, b))
        .max_by(|x, y| x.0.total_cmp(&y.0));
    if let Some((silence, before, after)) = longest.filter(|(silence, ..)| *silence >= SILENCE) {
        gaps.push(Gap {
            kind: GapKind::Temporal,
            description: format!(
                "No credible finding shows what happened from {} to {} ({}).",
                clock(before.at),
                clock(after.at),
                words(silence)
            ),
        });
    }
    let mut open = view
        .journal
        .iter()
        .filter(|e| e.entry.kind == EntryKind::Question && e.entry.text.starts_with("No evidence from"));
    if let Some(entry) = open.next_back() {
        gaps.push(Gap { kind: GapKind::Evidential, description: entry.entry.text.clone() });
    }
    gaps.truncate(casebook_protocol::timeline::MAX_GAPS);
    gaps
}

fn clock(at: Timestamp) -> String {
    format!("{at:.0}")
}

fn words(seconds: f64) -> String {
    match seconds {
        s if s >= 2.0 * 86400.0 => format!("{:.0} days", s / 86400.0),
        s if s >= 7200.0 => format!("{:.1} hours", s / 3600.0),
        s => format!("{:.0} minutes", s / 60.0),
    }
}

/// The coherence rubric: how many sources support the story, and how much is missing.
fn coherence(scenes: &[Scene], gaps: &[Gap], view: &TimelineView) -> f64 {
    if scenes.is_empty() {
        return 0.1;
    }
    let sources: BTreeSet<&str> = scenes.iter().flat_map(|s| s.records.iter().map(|r| r.source.as_str())).collect();
    let several =
        scenes.iter().filter(|s| s.records.iter().map(|r| &r.source).collect::<BTreeSet<_>>().len() > 1).count();
    let mut score: f64 = if sources.len() > 1 { 0.85 } else { 0.72 };
    if several * 3 >= scenes.len() {
        score += 0.07;
    }
    for gap in gaps {
        score -= match gap.kind {
            GapKind::Logical => 0.2,
            GapKind::Temporal | GapKind::Evidential => 0.04,
        };
    }
    let weak = view.review.findings.iter().filter(|f| !f.checked.valid()).count();
    if weak * 4 > view.review.findings.len() {
        score -= 0.1;
    }
    if scenes.len() < 2 {
        score = score.min(0.6);
    }
    score
}

fn narrative(scenes: &[Scene]) -> String {
    let (Some(first), Some(last)) = (scenes.first(), scenes.last()) else {
        return "No credible event is known.".into();
    };
    let mut seen: BTreeMap<&str, ()> = BTreeMap::new();
    let mut telling: Vec<&Scene> = scenes.iter().filter(|s| s.grave || s.alerted).collect();
    telling.sort_by_key(|s| (std::cmp::Reverse((s.grave && s.alerted, s.alerted)), s.at));
    telling.retain(|s| seen.insert(&s.description, ()).is_none());
    telling.truncate(4);
    telling.sort_by_key(|s| s.at);
    let span = if first.at == last.at {
        format!("at {}", clock(first.at))
    } else {
        format!("from {} to {}", clock(first.at), clock(last.at))
    };
    let many = if scenes.len() == 1 { "One event is".to_owned() } else { format!("{} events are", scenes.len()) };
    let mut text = format!("{many} established, {span}.");
    for scene in telling {
        let ids: Vec<&str> = scene.findings.iter().take(3).map(FindingId::as_str).collect();
        let description = one_sentence(&scene.description, 220);
        text.push_str(&format!(" {}: {description} ({}).", clock(scene.at), ids.join(", ")));
    }
    text
}

#[cfg(test)]
mod tests {
    use casebook_protocol::Entity;

    use super::*;

    #[test]
    fn a_host_is_no_name_that_two_findings_share() {
        let entity = |kind, value: &str| Entity { kind, value: value.into() };
        let claim = "Recorded on `WEB-07.corp`: `mara` ran `/usr/bin/id`";
        let draft = FindingDraft {
            entities: vec![entity(EntityKind::Host, "web-07.corp"), entity(EntityKind::User, "CORP\\mara")],
            ..FindingDraft::neutral(FindingKind::Occurrence, claim.into())
        };
        assert_eq!(names(&draft), ["id", "mara"].map(str::to_owned).into());
    }
}
