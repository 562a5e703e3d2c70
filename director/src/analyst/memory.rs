//! The memory of the analyst: it reads its notes back from the Journal, so they have a fixed form.

use std::collections::{BTreeMap, BTreeSet};

use casebook_protocol::{
    Bearing, DirectorView, EntityKind, EntryDraft, EntryKind, FindingDraft, FindingId, FindingKind, Phase, Priority,
    Review, Reviewed, Score, Task, Weight, one_line,
};
use casebook_trust::claim::{FIRST_COMMAND, NOTED};
use casebook_trust::rule::{TIMELINE_THRESHOLD, credible};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Note {
    pub(super) finding: FindingId,
    /// It points to an attack; otherwise it explains the activity.
    pub(super) against: bool,
    pub(super) about_alert: bool,
    pub(super) weight: Weight,
    pub(super) technique: String,
    pub(super) absence: bool,
    /// It gives a count.
    pub(super) counted: bool,
    pub(super) claim: String,
}

const REMEMBERED: usize = 16;
/// An Expert is less sure of a finding that shares only host, user or address with the alert.
const LINKED: f64 = 0.7;
const AGAINST: &str = "points to an attack";
const EXPLAINS: &str = "explains it";

impl Note {
    /// None unless the finding is credible and points in a direction.
    fn of(reviewed: &Reviewed) -> Option<Self> {
        let draft = &reviewed.finding.draft;
        if !credible(reviewed, Score::clamped(TIMELINE_THRESHOLD)) || draft.bearing == Bearing::Neutral {
            return None;
        }
        Some(Self {
            finding: reviewed.finding.id.clone(),
            against: draft.bearing == Bearing::Incriminating,
            about_alert: draft.about_alert,
            weight: draft.weight,
            technique: draft.technique.clone().unwrap_or_else(|| "-".into()),
            absence: draft.kind == FindingKind::Absence,
            counted: draft.kind == FindingKind::Aggregate,
            claim: one_line(&draft.claim, NOTED),
        })
    }

    pub(super) fn entry(&self) -> EntryDraft {
        let what = if self.against { AGAINST } else { EXPLAINS };
        let about = if self.about_alert { "alerted activity" } else { "nearby" };
        let kind = match (self.absence, self.counted) {
            (true, _) => "absence",
            (_, true) => "count",
            _ => "record",
        };
        let priority = match (self.against, self.weight) {
            (true, Weight::Decisive) => Priority::Critical,
            (true, Weight::Strong) => Priority::High,
            (_, Weight::Weak) => Priority::Low,
            _ => Priority::Medium,
        };
        let mut entry = EntryDraft::new(
            EntryKind::Finding,
            priority,
            format!("{what} ({}, {about}, {kind}, {}): {}", self.weight.name(), self.technique, self.claim),
        );
        entry.citations.push(self.finding.clone());
        entry
    }

    fn read(entry: &EntryDraft) -> Option<Self> {
        if entry.kind != EntryKind::Finding {
            return None;
        }
        let (head, claim) = entry.text.split_once("): ")?;
        let (what, rest) = head.split_once(" (")?;
        let mut parts = rest.split(", ");
        let name = parts.next()?;
        let weight = Weight::ALL.into_iter().find(|weight| weight.name() == name).unwrap_or(Weight::Weak);
        let about_alert = parts.next()? == "alerted activity";
        let kind = parts.next()?;
        let (absence, counted) = (kind == "absence", kind == "count");
        let technique = parts.next()?.to_owned();
        Some(Self {
            finding: entry.citations.first()?.clone(),
            against: what == AGAINST,
            about_alert,
            weight,
            technique,
            absence,
            counted,
            claim: claim.to_owned(),
        })
    }
}

/// It tells the first command on the way to the alerted process.
fn begins(draft: &FindingDraft) -> bool {
    draft.claim.ends_with(FIRST_COMMAND)
}

#[derive(Debug, Default)]
pub(super) struct Memory {
    pub(super) notes: Vec<Note>,
    asked: BTreeSet<String>,
    alert: String,
    trace: BTreeSet<u32>,
    names: BTreeMap<String, (u32, EntityKind)>,
}

impl Memory {
    pub(super) fn of(view: &DirectorView) -> Self {
        let mut memory = Self { alert: view.alert.body.to_lowercase(), ..Self::default() };
        for entry in &view.journal {
            memory.notes.extend(Note::read(&entry.entry));
            if entry.entry.kind == EntryKind::Question {
                memory.asked.extend(entry.entry.follow_ups.iter().map(|f| f.to_lowercase()));
            }
            if entry.phase == Phase::Trace {
                memory.trace.insert(entry.round);
            }
        }
        memory.name(view.review.as_ref());
        memory
    }

    pub(super) fn take_in(&mut self, review: Option<&Review>) -> Vec<Note> {
        let known: BTreeSet<(String, bool)> = self.notes.iter().map(|n| (n.claim.clone(), n.against)).collect();
        let mut new: Vec<Note> = review.into_iter().flat_map(|r| &r.findings).filter_map(Note::of).collect();
        let mut seen = known;
        new.retain(|n| n.weight >= Weight::Moderate && seen.insert((n.claim.clone(), n.against)));
        new.sort_by_key(|n| (std::cmp::Reverse(n.weight), !n.about_alert, n.finding.clone()));
        new.truncate(REMEMBERED);
        self.notes.extend(new.iter().cloned());
        new
    }

    /// Collects names from findings that point to an attack, the strongest first.
    fn name(&mut self, review: Option<&Review>) {
        let threshold = Score::clamped(TIMELINE_THRESHOLD);
        // Follow an attack to see where it leads, and an explanation to find its other traces.
        let grave = review.into_iter().flat_map(|r| &r.findings).filter(|f| {
            let draft = &f.finding.draft;
            let explains = draft.about_alert && (draft.bearing == Bearing::Exonerating || begins(draft));
            // What is only near the alert leads to others.
            let linked = draft.about_alert || draft.confidence.get() >= LINKED;
            credible(f, threshold)
                && draft.weight >= if linked { Weight::Moderate } else { Weight::Strong }
                && (explains || draft.bearing == Bearing::Incriminating)
        });
        for finding in grave {
            let explains = finding.finding.draft.bearing != Bearing::Incriminating;
            for entity in &finding.finding.draft.entities {
                if explains && entity.kind != EntityKind::Name {
                    continue;
                }
                let worth = match entity.kind {
                    EntityKind::Address => 4,
                    EntityKind::Session | EntityKind::Hash | EntityKind::Name => 3,
                    EntityKind::User | EntityKind::File => 2,
                    _ => continue,
                };
                if entity.value.len() >= 4 && entity.value.len() <= 200 {
                    self.names.entry(entity.value.clone()).or_insert((0, entity.kind)).0 += worth;
                }
            }
        }
    }

    /// Names to ask for: not in the alert and not asked before.
    pub(super) fn open_names(&self, most: usize) -> Vec<String> {
        let mut open: Vec<(&String, u32)> = self
            .names
            .iter()
            .filter(|(name, _)| {
                !self.asked.contains(&name.to_lowercase()) && !self.alert.contains(&name.to_lowercase())
            })
            .map(|(name, (worth, _))| (name, *worth))
            .collect();
        open.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
        open.into_iter().take(most).map(|(name, _)| name.clone()).collect()
    }

    /// Includes the current round.
    pub(super) fn trace_rounds(&self, task: &Task) -> u32 {
        let mut rounds = self.trace.clone();
        if task.phase == Phase::Trace {
            rounds.insert(task.round);
        }
        u32::try_from(rounds.len()).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_read_back_as_it_was_written() {
        let note = Note {
            finding: FindingId::new("r1-endpoint-3").unwrap(),
            against: true,
            about_alert: true,
            weight: Weight::Decisive,
            technique: "T1059.004".into(),
            absence: false,
            counted: true,
            claim: "`java` started (a) `bash`): and more".into(),
        };
        assert_eq!(Note::read(&note.entry()), Some(note));
    }
}
