//! Makes trials from the rounds of real investigations.
//!
//! Whether a planted finding is false is never decided by asking the check that is measured: values
//! are exchanged only for such as do not stand in the cited records at all, or for pieces of longer
//! values, which say something else.

pub(crate) mod citations;
pub(crate) mod claims;
pub(crate) mod searches;
pub(crate) mod times;
pub(crate) mod values;

use std::collections::BTreeSet;

use casebook_protocol::hash::canonical_json;
use casebook_protocol::{
    ArtifactId, CallId, CallStatus, Citation, Domain, FindingDraft, FindingKind, Locator, TaskId, TaskKind, ToolCall,
};
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

use super::kind::{Expect, Kind, Site};
use super::stage::{Base, Rec, Search, Stage};
use super::trial::{MadeCall, Trial};

/// How often a kind is tried on a round before it counts as impossible there.
const ATTEMPTS: usize = 40;

/// `planted` trials over all false kinds and half as many over the true ones, as evenly as the rounds
/// allow. Fewer where the rounds do not give as many different ones.
pub fn trials(stages: &[Stage], planted: usize, seed: u64) -> Vec<Trial> {
    let mut dice = ChaCha8Rng::seed_from_u64(seed);
    let (truths, falsehoods): (Vec<Kind>, _) = Kind::ALL.iter().partition(|kind| kind.row().expect == Expect::Kept);
    let mut all = share(stages, falsehoods, planted, &mut dice);
    all.extend(share(stages, truths, planted / 2, &mut dice));
    all
}

/// One trial a kind, again and again, until there are enough or no kind gives a new one.
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

/// What makes a trial another one: its words and its citations, the ids of made-up calls aside.
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
        base.found.finding.draft.kind == FindingKind::Occurrence && stage.told.contains(&base.found.finding.id)
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

/// A finding in the making: it begins as the real one that it is made from.
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
    /// True once in `n` times.
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

    /// One of these that fits, as a value of its own.
    fn choose<T>(&mut self, all: impl IntoIterator<Item = T>, fits: impl Fn(&T) -> bool) -> Option<T> {
        let mut all: Vec<T> = all.into_iter().filter(fits).collect();
        (!all.is_empty()).then(|| all.swap_remove(self.below(all.len())))
    }

    fn record(&self) -> Option<&'a Rec> {
        self.base.records.first()
    }

    /// The names that the claim has in backquotes, each once.
    fn names(&self) -> Vec<String> {
        names(&self.draft.claim)
    }

    /// The text stands in none of the records that the real finding cites.
    fn absent(&self, text: &str) -> bool {
        !self.base.records.iter().any(|record| record.holds(text))
    }

    /// The finding is about no real one.
    fn alone(&mut self, domain: &Domain) {
        (self.site, self.domain) = (Site::Alone, domain.clone());
    }

    /// Says this before the claim.
    fn say(&mut self, words: &str) {
        self.draft.claim = format!("{words}{}", self.draft.claim);
    }

    /// Gives the name `old` as `new`, in claim and entities; without backquotes if `bare`.
    fn rename(&mut self, old: &str, new: &str, bare: bool) {
        let is = if bare { new.to_owned() } else { format!("`{new}`") };
        self.draft.claim = self.draft.claim.replace(&format!("`{old}`"), &is);
        for entity in self.draft.entities.iter_mut().filter(|entity| entity.value.eq_ignore_ascii_case(old)) {
            new.clone_into(&mut entity.value);
        }
    }

    /// Cites this record and nothing else.
    fn cite(&mut self, record: &Rec) {
        self.draft.citations = vec![cite(record)];
    }

    /// Gives the finding the time of this record.
    fn date(&mut self, record: &Rec) -> Option<()> {
        let time = self.draft.time.as_mut()?;
        (time.at, time.basis, time.precision, time.until) = (record.time?, record.basis, record.precision, None);
        Some(())
    }

    /// Another call of the Expert of this finding: no real task makes one with this id.
    fn id(&mut self) -> CallId {
        let task = TaskId::of(self.stage.state.round, TaskKind::Investigate, Some(&self.domain));
        CallId::of(&task, 5_000, self.dice.random())
    }

    /// Puts a search on record that returned `result`.
    fn search(&mut self, arguments: &Value, result: &Value) -> CallId {
        let (id, bytes) = (self.id(), result.to_string().into_bytes());
        let now = self.stage.state.last_at.unwrap_or_default();
        let call = ToolCall {
            id: id.clone(),
            domain: Some(self.domain.clone()),
            tool: "search".into(),
            arguments: canonical_json(arguments),
            status: CallStatus::Answered,
            result: ArtifactId::of(&bytes),
            bytes: bytes.len() as u64,
            started: now,
            ended: now,
        };
        self.calls.push(MadeCall { call, bytes });
        id
    }

    /// Puts the same search on record once more, as the turn loop does for every count and absence: the evidence has
    /// not changed, so the answer is the same.
    fn again(&mut self, search: &Search) -> Option<CallId> {
        self.alone(&search.domain);
        let id = self.id();
        let bytes = self.stage.exhibits.get(&search.domain)?.text(&search.call.id)?.as_bytes().to_vec();
        self.calls.push(MadeCall { call: ToolCall { id: id.clone(), ..search.call.clone() }, bytes });
        Some(id)
    }

    /// Puts a search on record that returned `value`, a record.
    fn returned(&mut self, value: &Value) -> Option<Rec> {
        let source = value.get("source").unwrap_or(&Value::Null);
        let result = json!({"total": 1, "total_is_exact": true, "returned": 1, "searched": [source],
            "window": {"from": null, "to": null}, "records": [value]});
        let call = self.search(&json!({"terms": [], "include_fields": true}), &result);
        Rec::read(&self.domain, &call, "/records/0".into(), value)
    }
}

/// The object of a record with other values under some of its keys.
fn with<const N: usize>(record: &Rec, fields: [(&str, Value); N]) -> Value {
    let mut value = record.value.clone();
    if let Some(map) = value.as_object_mut() {
        map.extend(fields.map(|(key, value)| (key.to_owned(), value)));
    }
    value
}

/// A citation of the record by a piece of its bytes.
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

/// `a`, `b`
fn listed(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// Enough of a name to be one, and not cut short.
fn whole(name: &str) -> bool {
    name.chars().count() >= 4 && !name.ends_with('…')
}
