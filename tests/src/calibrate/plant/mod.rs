//! Makes trials from the rounds of real investigations.
//!
//! The check under test does not decide whether a planted finding is false. New values do not occur in the
//! cited records, or are pieces of longer values with another meaning.

pub(crate) mod citations;
pub(crate) mod claims;
pub(crate) mod coverage;
pub(crate) mod forms;
pub(crate) mod searches;
pub(crate) mod times;
pub(crate) mod values;

use std::collections::BTreeSet;

use casebook_protocol::hash::canonical_json;
use casebook_protocol::{CallId, Citation, Domain, FindingDraft, FindingKind, Locator, TaskId, TaskKind, ToolCall};
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

use super::kind::{Expect, Kind, Site};
use super::stage::{Base, Rec, Search, Stage};
use super::trial::{MadeCall, Trial};

/// How often to try a kind on a round before it counts as impossible there.
const ATTEMPTS: usize = 40;

/// `planted` trials of all false kinds and half as many of true kinds, distributed evenly. Fewer if the rounds
/// do not allow as many.
pub fn trials(stages: &[Stage], planted: usize, seed: u64) -> Vec<Trial> {
    let mut dice = ChaCha8Rng::seed_from_u64(seed);
    let (truths, falsehoods): (Vec<Kind>, _) = Kind::ALL.iter().partition(|kind| kind.row().expect == Expect::Kept);
    let mut all = share(stages, falsehoods, planted, &mut dice);
    all.extend(share(stages, truths, planted / 2, &mut dice));
    all
}

/// Adds one trial of each kind in turn until there are enough or no kind gives a new one.
fn share(stages: &[Stage], mut kinds: Vec<Kind>, wanted: usize, dice: &mut ChaCha8Rng) -> Vec<Trial> {
    let usable: Vec<(usize, &Stage)> = stages.iter().enumerate().filter(|(_, stage)| !stage.bases.is_empty()).collect();
    let (mut all, mut seen) = (Vec::new(), BTreeSet::new());
    while all.len() < wanted && !kinds.is_empty() {
        kinds.retain(|kind| {
            let mut attempts = 0..ATTEMPTS * usable.len();
            let trial = (all.len() < wanted).then(|| {
                attempts.find_map(|_| {
                    let (place, stage) = usable.choose(dice)?;
                    plant(*kind, *place, stage, dice).filter(|trial| seen.insert(print(trial)))
                })
            });
            let impossible = trial == Some(None);
            all.extend(trial.flatten());
            !impossible
        });
    }
    all
}

/// Identifies a trial by its text and citations, without the ids of made-up calls.
fn print(trial: &Trial) -> String {
    let FindingDraft { kind, claim, time, bearing, entities, citations, .. } = &trial.draft;
    let cited = if trial.calls.is_empty() { citations.as_slice() } else { &[] };
    let made: Vec<&[u8]> = trial.calls.iter().map(|made| made.bytes.as_slice()).collect();
    let about = (trial.stage, trial.kind, trial.about());
    format!("{about:?} {kind:?} {claim} {time:?} {bearing:?} {entities:?} {cited:?} {made:?}")
}

fn plant(kind: Kind, place: usize, stage: &Stage, dice: &mut ChaCha8Rng) -> Option<Trial> {
    let row = kind.row();
    let event = |base: &Base| {
        base.found.finding.draft.kind == FindingKind::Occurrence && stage.on_timeline.contains(&base.found.finding.id)
    };
    let fits = |base: &&Base| !base.records.is_empty() && (row.site != Site::BesideEvent || event(base));
    let bases: Vec<&Base> = stage.bases.iter().filter(fits).collect();
    let base = *bases.choose(dice)?;
    let finding = &base.found.finding;
    let (domain, draft) = (finding.domain.clone(), finding.draft.clone());
    let mut plant = Plant { stage, base, site: row.site, domain, draft, calls: Vec::new(), dice };
    (row.plant)(&mut plant)?;
    let Plant { site, domain, draft, calls, .. } = plant;
    let id = || Some(finding.id.clone());
    let replaces = if site == Site::Instead { id() } else { None };
    let partner = if matches!(site, Site::Beside | Site::BesideEvent) { id() } else { None };
    Some(Trial { kind, stage: place, domain, replaces, partner, draft, calls })
}

/// A finding under construction; it starts as a copy of the real one.
pub(crate) struct Plant<'a> {
    stage: &'a Stage,
    base: &'a Base,
    site: Site,
    domain: Domain,
    draft: FindingDraft,
    calls: Vec<MadeCall>,
    dice: &'a mut ChaCha8Rng,
}

impl<'a> Plant<'a> {
    fn one_in(&mut self, n: u32) -> bool {
        self.dice.random_ratio(1, n)
    }

    /// A number below `end`, or 0.
    fn below(&mut self, end: usize) -> usize {
        self.dice.random_range(0..end.max(1))
    }

    fn sign(&mut self) -> i64 {
        if self.one_in(2) { 1 } else { -1 }
    }

    fn pick<'b, T>(&mut self, all: &'b [T]) -> Option<&'b T> {
        all.choose(self.dice)
    }

    /// A random one that fits.
    fn choose<T>(&mut self, all: impl IntoIterator<Item = T>, fits: impl Fn(&T) -> bool) -> Option<T> {
        let mut all: Vec<T> = all.into_iter().filter(fits).collect();
        (!all.is_empty()).then(|| all.swap_remove(self.below(all.len())))
    }

    fn record(&self) -> Option<&'a Rec> {
        self.base.records.first()
    }

    /// The names in backquotes in the claim, without duplicates.
    fn names(&self) -> Vec<String> {
        names(&self.draft.claim)
    }

    /// Whether no cited record of the real finding contains the text.
    fn absent(&self, text: &str) -> bool {
        !self.base.records.iter().any(|record| record.holds(text))
    }

    /// Makes the finding independent of the real one.
    fn alone(&mut self, domain: &Domain) {
        (self.site, self.domain) = (Site::Alone, domain.clone());
    }

    fn say(&mut self, words: &str) {
        self.draft.claim = format!("{words}{}", self.draft.claim);
    }

    /// Replaces the name `old` in claim and entities; without backquotes if `bare`.
    fn rename(&mut self, old: &str, new: &str, bare: bool) {
        let is = if bare { new.to_owned() } else { format!("`{new}`") };
        self.draft.claim = self.draft.claim.replace(&format!("`{old}`"), &is);
        for entity in self.draft.entities.iter_mut().filter(|entity| entity.value.eq_ignore_ascii_case(old)) {
            new.clone_into(&mut entity.value);
        }
    }

    fn cite(&mut self, record: &Rec) {
        self.draft.citations = vec![cite(record)];
    }

    fn date(&mut self, record: &Rec) -> Option<()> {
        let time = self.draft.time.as_mut()?;
        (time.at, time.basis, time.precision, time.until) = (record.time?, record.basis, record.precision, None);
        Some(())
    }

    /// The id of a made-up call; no real task makes one with this turn.
    fn id(&mut self) -> CallId {
        let task = TaskId::of(self.stage.state.round, TaskKind::Investigate, Some(&self.domain));
        CallId::of(&task, 5_000, self.dice.random())
    }

    fn search(&mut self, arguments: &Value, result: &Value) -> CallId {
        self.call("search", arguments, result)
    }

    fn call(&mut self, tool: &str, arguments: &Value, result: &Value) -> CallId {
        let (id, bytes) = (self.id(), result.to_string().into_bytes());
        let now = self.stage.state.last_at.unwrap_or_default();
        let call = ToolCall::answered(id.clone(), tool, canonical_json(arguments), &bytes);
        let call = ToolCall { domain: Some(self.domain.clone()), started: now, ended: now, ..call };
        self.calls.push(MadeCall { call, bytes });
        id
    }

    /// Records the same search again, as the turn loop does for every count and absence. The result is the
    /// same, because the evidence did not change.
    fn again(&mut self, search: &Search) -> Option<CallId> {
        self.alone(&search.domain);
        let id = self.id();
        let bytes = self.stage.exhibits.get(&search.domain)?.text(&search.call.id)?.as_bytes().to_vec();
        self.calls.push(MadeCall { call: ToolCall { id: id.clone(), ..search.call.clone() }, bytes });
        Some(id)
    }

    fn returned(&mut self, value: &Value) -> Option<Rec> {
        let source = value.get("source").unwrap_or(&Value::Null);
        let result = json!({"total": 1, "total_is_exact": true, "returned": 1, "searched": [source],
            "window": {"from": null, "to": null}, "records": [value]});
        let call = self.search(&json!({"terms": [], "include_fields": true}), &result);
        Rec::read(&self.domain, &call, "/records/0".into(), value)
    }
}

/// A record's object with other values under some keys.
fn with<const N: usize>(record: &Rec, fields: [(&str, Value); N]) -> Value {
    let mut value = record.value.clone();
    if let Some(map) = value.as_object_mut() {
        map.extend(fields.map(|(key, value)| (key.to_owned(), value)));
    }
    value
}

/// A citation of the record by part of its text.
fn cite(record: &Rec) -> Citation {
    let quote = record.raw.chars().skip_while(|c| c.is_whitespace()).take(60).collect();
    Citation::Literal { call: record.call.clone(), at: Locator::Pointer(record.pointer.clone()), quote }
}

fn names(claim: &str) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for name in claim.split('`').skip(1).step_by(2) {
        if !name.is_empty() && !all.iter().any(|known| known == name) {
            all.push(name.to_owned());
        }
    }
    all
}

/// The names in backquotes, separated by commas.
fn listed(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// Whether a name is long enough and not cut.
fn whole(name: &str) -> bool {
    name.chars().count() >= 4 && !name.ends_with('…')
}
