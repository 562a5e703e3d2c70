//! The Timeline of the analyst: adds the findings of this Review to the previous Timeline. It keeps credible
//! findings, describes each occurrence once, and names at most three gaps.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use casebook_protocol::{
    Bearing, EntityKind, EntryDraft, EntryKind, EventDraft, EventTime, FindingDraft, FindingId, FindingKind, Gap,
    GapKind, Precision, Priority, RecordRef, Reviewed, Score, TimelineDraft, TimelineEvent, TimelineView, Weight,
    apart, one_sentence,
};
use casebook_trust::claim;
use casebook_trust::rule::credible;

/// Findings from different sources at most this many seconds apart may be one occurrence.
const SAME_SECONDS: f64 = 0.05;
/// Characters of a name that is a whole command.
const WHOLE_COMMAND: usize = 32;
/// The clocks of two sensors may differ by this many seconds.
const CLOCKS_APART: f64 = 120.0;
/// Seconds without events that count as a gap.
const SILENCE: f64 = 120.0;

/// One occurrence, by all findings about it.
struct Scene {
    time: EventTime,
    description: String,
    findings: Vec<FindingId>,
    records: BTreeSet<RecordRef>,
    names: BTreeSet<String>,
    /// The finding with the highest weight gives the description.
    weight: (Weight, Score),
    grave: bool,
    alerted: bool,
}

pub(super) fn tell(view: &TimelineView) -> TimelineDraft {
    let previous = view.previous.iter().flat_map(|timeline| &timeline.events);
    let mut scenes: Vec<Scene> = previous.map(|event| Scene::earlier(event, view)).collect();
    let known: BTreeSet<FindingId> = scenes.iter().flat_map(|s| s.findings.clone()).collect();
    let fresh = view.review.findings.iter().filter(|f| credible(f) && !known.contains(&f.finding.id));
    for scene in fresh.filter_map(Scene::of) {
        let place = scenes.iter().position(|s| same_record(s, &scene));
        let place = place.or_else(|| scenes.iter().position(|s| same(s, &scene)));
        let place = place.or_else(|| twin(&scenes, &scene, view));
        match place.and_then(|place| scenes.get_mut(place)) {
            Some(home) => home.join(scene),
            None => scenes.push(scene),
        }
    }
    scenes.sort_by(|a, b| (a.time.at, &a.findings).cmp(&(b.time.at, &b.findings)));
    let gaps = gaps(view, &scenes);
    let score = Score::clamped(coherence(&scenes, &gaps, view));
    let narrative = narrative(&scenes);
    let events = scenes.into_iter().map(|s| EventDraft { description: s.description, findings: s.findings }).collect();
    TimelineDraft { narrative, events, gaps, score }
}

impl Scene {
    fn earlier(event: &TimelineEvent, view: &TimelineView) -> Self {
        // The Journal is the memory of earlier rounds.
        let entries = view.journal.iter().map(|e| &e.entry).filter(|e| e.kind == EntryKind::Finding);
        let about: Vec<&EntryDraft> =
            entries.filter(|e| e.citations.iter().any(|id| event.findings.contains(id))).collect();
        Self {
            time: event.time.clone(),
            description: event.description.clone(),
            findings: event.findings.clone(),
            records: event.evidence.iter().cloned().collect(),
            names: quoted(&event.description),
            weight: (Weight::Decisive, event.score),
            grave: about.iter().any(|entry| entry.priority >= Some(Priority::High)),
            alerted: about.iter().any(|entry| entry.text.contains("alerted activity")),
        }
    }

    /// None unless the finding is about an occurrence. Text that addresses the investigator has its own section in the
    /// report: an attacker could otherwise flood the Timeline.
    fn of(reviewed: &Reviewed) -> Option<Self> {
        let draft = &reviewed.finding.draft;
        Some(Self {
            time: draft.time.clone().filter(|_| draft.kind == FindingKind::Occurrence)?,
            description: draft.claim.clone(),
            findings: vec![reviewed.finding.id.clone()],
            records: reviewed.checked.records().into_iter().collect(),
            names: names(draft),
            weight: (draft.weight, reviewed.score),
            grave: draft.bearing == Bearing::Incriminating && draft.weight >= Weight::Moderate,
            alerted: draft.about_alert,
        })
    }

    fn sources(&self) -> BTreeSet<&str> {
        self.records.iter().map(|record| record.source.as_str()).collect()
    }

    fn join(&mut self, other: Self) {
        if other.weight > self.weight {
            self.description = other.description;
            self.weight = other.weight;
        }
        let strength = |time: &EventTime| (time.basis, Reverse(time.precision));
        if strength(&other.time) > strength(&self.time) {
            self.time = other.time;
        }
        self.findings.extend(other.findings);
        self.records.extend(other.records);
        self.names.extend(other.names);
        self.grave |= other.grave;
        self.alerted |= other.alerted;
    }
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
    claim::names(text).map(base).collect()
}

/// Makes `C:\Windows\a.exe` equal to `a.exe`, and `CORP\mara` to `mara`.
pub(super) fn base(value: &str) -> String {
    value.rsplit(['/', '\\']).next().unwrap_or(value).trim_end_matches('…').to_ascii_lowercase()
}

fn same_record(a: &Scene, b: &Scene) -> bool {
    apart(a.time.at, b.time.at) <= 1.0 && !a.records.is_disjoint(&b.records)
}

/// The same instant in different sources, with a common name.
fn same(a: &Scene, b: &Scene) -> bool {
    let apart = apart(a.time.at, b.time.at);
    // A log with whole seconds is less exact, so require more of the names. One may note the start of a command, the other
    // what it did.
    let (close, least) = match a.time.precision.max(b.time.precision) >= Precision::Second {
        true if apart > 1.0 => (2.0, WHOLE_COMMAND),
        true => (1.0, 8),
        false => (SAME_SECONDS, 1),
    };
    apart <= close && a.sources().is_disjoint(&b.sources()) && a.names.intersection(&b.names).any(|n| n.len() >= least)
}

/// An event from other sources with exactly the same names, if both are the only such event. Then the clocks
/// differ.
fn twin(scenes: &[Scene], scene: &Scene, view: &TimelineView) -> Option<usize> {
    let (names, own) = (quoted(&scene.description), scene.sources());
    let telling = |n: &String| n.len() >= 8 && n.chars().any(char::is_alphabetic);
    let close = |s: &Scene| apart(s.time.at, scene.time.at) <= CLOCKS_APART && quoted(&s.description) == names;
    let mut alike = scenes.iter().enumerate().filter(|(_, s)| close(s));
    let (place, home) = alike.next().filter(|_| names.iter().any(telling))?;
    let mut others = view.review.findings.iter().filter(|f| !scene.findings.contains(&f.finding.id));
    let again = others.any(|f| {
        quoted(&f.finding.draft.claim) == names && f.checked.sources().iter().any(|source| own.contains(source))
    });
    (alike.next().is_none() && !again && home.sources().is_disjoint(&own)).then_some(place)
}

fn gaps(view: &TimelineView, scenes: &[Scene]) -> Vec<Gap> {
    let gap = |kind, description| Gap { kind, description };
    let contradicted = view.review.findings.iter().find(|f| !f.contradicted_by.is_empty() && f.checked.valid());
    let logical = contradicted.map(|finding| {
        let (id, against) = (&finding.finding.id, ids(&finding.contradicted_by));
        gap(GapKind::Logical, format!("{id} does not fit with {against}: decide which of them is right."))
    });
    let silences = scenes.iter().zip(scenes.iter().skip(1)).map(|(a, b)| (a.time.at, b.time.at));
    let longest = silences.max_by(|x, y| apart(x.0, x.1).total_cmp(&apart(y.0, y.1)));
    let temporal = longest.filter(|(from, to)| apart(*from, *to) >= SILENCE).map(|(from, to)| {
        let long = words(apart(from, to));
        let text = format!("No credible finding shows what happened from {from:.0} to {to:.0} ({long}).");
        gap(GapKind::Temporal, text)
    });
    let mut questions = view.journal.iter().map(|e| &e.entry).filter(|e| e.kind == EntryKind::Question);
    let open = questions.rfind(|e| e.text.starts_with("No evidence from"));
    let evidential = open.map(|entry| gap(GapKind::Evidential, entry.text.clone()));
    [logical, temporal, evidential].into_iter().flatten().collect()
}

fn ids(findings: &[FindingId]) -> String {
    findings.iter().map(FindingId::as_str).collect::<Vec<_>>().join(", ")
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
    let sources: BTreeSet<&str> = scenes.iter().flat_map(Scene::sources).collect();
    let several = scenes.iter().filter(|s| s.sources().len() > 1).count();
    let mut score: f64 = if sources.len() > 1 { 0.85 } else { 0.72 };
    if several * 3 >= scenes.len() {
        score += 0.07;
    }
    for gap in gaps {
        score -= if gap.kind == GapKind::Logical { 0.2 } else { 0.04 };
    }
    let weak = view.review.findings.iter().filter(|f| !f.checked.valid()).count();
    if weak * 4 > view.review.findings.len() {
        score -= 0.1;
    }
    if scenes.len() < 2 { score.min(0.6) } else { score }
}

fn narrative(scenes: &[Scene]) -> String {
    let (Some(first), Some(last)) = (scenes.first(), scenes.last()) else {
        return "No credible event is known.".into();
    };
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    let mut telling: Vec<&Scene> = scenes.iter().filter(|s| s.grave || s.alerted).collect();
    telling.sort_by_key(|s| (Reverse((s.grave && s.alerted, s.alerted)), s.time.at));
    telling.retain(|s| seen.insert(&s.description));
    telling.truncate(4);
    telling.sort_by_key(|s| s.time.at);
    let span = match [first, last].map(|scene| format!("{:.0}", scene.time.at)) {
        [first, _] if scenes.len() == 1 => format!("One event is established, at {first}."),
        [first, last] if first == last => format!("{} events are established, at {first}.", scenes.len()),
        [first, last] => format!("{} events are established, from {first} to {last}.", scenes.len()),
    };
    let told = telling.iter().map(|scene| {
        let ids = ids(scene.findings.get(..3).unwrap_or(&scene.findings));
        format!(" {:.0}: {} ({ids}).", scene.time.at, one_sentence(&scene.description, 220))
    });
    told.fold(span, |text, event| text + &event)
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
