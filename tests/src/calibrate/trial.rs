//! One trial: findings to submit in a round, in place of a real one or beside it.

use casebook_protocol::{
    ArtifactId, CallId, CallStatus, Citation, Domain, Finding, FindingDraft, FindingId, Locator, TaskId, TaskKind,
    ToolCall,
};
use serde_json::{Value, json};

use super::dice::Dice;
use super::kind::Kind;
use super::material::{Base, Rec, Search, Stage};

/// A recorded call that belongs to a trial: the same call made again, as the turn loop does for every
/// count and absence, or a search that returns a record made for the trial.
#[derive(Debug, Clone)]
pub struct MadeCall {
    /// The call.
    pub call: ToolCall,
    /// The bytes of its result.
    pub bytes: Vec<u8>,
    /// It gives the same answer again.
    pub repeatable: bool,
}

/// A trial.
#[derive(Debug, Clone)]
pub struct Trial {
    /// Its kind.
    pub kind: Kind,
    /// Whose findings these are.
    pub domain: Domain,
    /// The real finding whose place the first one takes.
    pub replaces: Option<FindingId>,
    /// What is submitted.
    pub drafts: Vec<FindingDraft>,
    /// The real finding that the trial is about and that stays.
    pub partner: Option<FindingId>,
    /// Calls that it needs on record.
    pub calls: Vec<MadeCall>,
}

impl Trial {
    /// A trial with `draft` in place of the real finding `base`.
    #[must_use]
    pub fn instead(kind: Kind, base: &Finding, draft: FindingDraft) -> Self {
        Self {
            kind,
            domain: base.domain.clone(),
            replaces: Some(base.id.clone()),
            drafts: vec![draft],
            partner: None,
            calls: vec![],
        }
    }

    /// A trial with `draft` beside the real finding `base`, which it is about.
    #[must_use]
    pub fn beside(kind: Kind, base: &Finding, draft: FindingDraft) -> Self {
        let domain = base.domain.clone();
        Self { kind, domain, replaces: None, drafts: vec![draft], partner: Some(base.id.clone()), calls: vec![] }
    }

    /// A trial with a finding of its own.
    #[must_use]
    pub fn alone(kind: Kind, domain: Domain, draft: FindingDraft) -> Self {
        Self { kind, domain, replaces: None, drafts: vec![draft], partner: None, calls: vec![] }
    }

    /// The same with a call on record.
    #[must_use]
    pub fn with(mut self, call: MadeCall) -> Self {
        self.calls.push(call);
        self
    }

    /// The real finding that it is made from: no two trials of one Review share it.
    #[must_use]
    pub fn about(&self) -> Option<&FindingId> {
        self.replaces.as_ref().or(self.partner.as_ref())
    }
}

/// The id of a call that no real task makes.
fn made_id(stage: &Stage, domain: &Domain, dice: &mut Dice) -> CallId {
    let task = TaskId::of(stage.state.round, TaskKind::Investigate, Some(domain));
    CallId::of(&task, 5_000, dice.serial())
}

/// A search on record that returned `result`.
pub fn made_search(stage: &Stage, domain: &Domain, arguments: &Value, result: &Value, dice: &mut Dice) -> MadeCall {
    let bytes = result.to_string().into_bytes();
    let now = stage.state.last_at.unwrap_or_default();
    let call = ToolCall {
        id: made_id(stage, domain, dice),
        domain: Some(domain.clone()),
        tool: "search".into(),
        arguments: casebook_protocol::hash::canonical_json(arguments),
        status: CallStatus::Answered,
        result: ArtifactId::of(&bytes),
        bytes: bytes.len() as u64,
        started: now,
        ended: now,
    };
    MadeCall { call, bytes, repeatable: true }
}

/// The same search made again, as the turn loop does: the evidence has not changed, so the answer is
/// the same.
pub fn again(stage: &Stage, search: &Search, dice: &mut Dice) -> ToolCall {
    ToolCall { id: made_id(stage, &search.domain, dice), ..search.call.clone() }
}

/// The record as `change` leaves it, and the search that returned it.
pub fn made_record(stage: &Stage, rec: &Rec, change: &dyn Fn(&mut Value), dice: &mut Dice) -> Option<(MadeCall, Rec)> {
    let mut value = rec.value.clone();
    change(&mut value);
    let source = value.get("source").cloned().unwrap_or(Value::Null);
    let result = json!({"total": 1, "total_is_exact": true, "returned": 1, "searched": [source],
        "window": {"from": null, "to": null}, "records": [value]});
    let made = made_search(stage, &rec.domain, &json!({"terms": [], "include_fields": true}), &result, dice);
    let new = Rec::read(&rec.domain, &made.call.id, "/records/0".into(), &value)?;
    Some((made, new))
}

/// Every text in `value` with `old` replaced by `new`, in either case.
pub fn replace_all(value: &mut Value, old: &str, new: &str) {
    match value {
        Value::String(text) => *text = replaced(text, old, new),
        Value::Array(items) => items.iter_mut().for_each(|item| replace_all(item, old, new)),
        Value::Object(map) => map.values_mut().for_each(|item| replace_all(item, old, new)),
        _ => {}
    }
}

fn replaced(text: &str, old: &str, new: &str) -> String {
    let (lower, old) = (text.to_ascii_lowercase(), old.to_ascii_lowercase());
    let (mut out, mut from) = (String::new(), 0);
    for (at, hit) in lower.match_indices(&old) {
        out.push_str(text.get(from..at).unwrap_or_default());
        out.push_str(new);
        from = at + hit.len();
    }
    out + text.get(from..).unwrap_or_default()
}

/// A citation of the record by a piece of its bytes.
#[must_use]
pub fn cite(rec: &Rec) -> Citation {
    let quote: String = rec.raw.chars().skip_while(|c| c.is_whitespace()).take(60).collect();
    Citation::Literal { call: rec.call.clone(), at: Locator::Pointer(rec.pointer.clone()), quote }
}

/// The names that the claim has in backquotes, each once.
#[must_use]
pub fn names(claim: &str) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for name in claim.split('`').skip(1).step_by(2) {
        if !name.is_empty() && !all.iter().any(|n| n == name) {
            all.push(name.to_owned());
        }
    }
    all
}

/// The draft with the name `old` given as `new`, in claim and entities; without backquotes if `bare`.
#[must_use]
pub fn renamed(base: &Base, old: &str, new: &str, bare: bool) -> FindingDraft {
    let mut draft = base.found.finding.draft.clone();
    let (was, is) = (format!("`{old}`"), if bare { new.to_owned() } else { format!("`{new}`") });
    draft.claim = draft.claim.replace(&was, &is);
    for entity in draft.entities.iter_mut().filter(|e| e.value.eq_ignore_ascii_case(old)) {
        new.clone_into(&mut entity.value);
    }
    draft
}
