//! The Critic's leads: code checks their places, and finds what became of each.

use casebook_protocol::{Event, Fate, Guard, Lead, LeadDraft, LeadId, LeadState, MAX_LEADS, Phase, Rule, one_line};
use casebook_trust::Exhibits;
use casebook_trust::claim::has_word;

use crate::state::State;

/// Characters of each text of a lead.
const TEXT: usize = 400;

/// The events of a Review's leads. A lead whose place shows nothing is dropped.
pub(crate) fn given(state: &State, round: u32, drafts: &[LeadDraft], exhibits: &Exhibits) -> Vec<Event> {
    let (mut leads, mut events) = (Vec::new(), Vec::new());
    for (draft, n) in drafts.iter().take(MAX_LEADS).zip(1..) {
        let id = LeadId::of(round, n);
        let call = state.calls.get(&draft.call).and_then(|made| made.call.domain.clone());
        match (call, exhibits.place(&draft.call, &draft.at)) {
            (Some(domain), Some(records)) => {
                let [what, why] = [&draft.what, &draft.why].map(|text| one_line(text, TEXT));
                leads.push(Lead { id, round, domain, draft: LeadDraft { what, why, ..draft.clone() }, records });
            }
            _ => {
                let effect = format!("call {} has nothing there: dropped", draft.call);
                let guard = Guard { rule: Rule::LeadWithoutPlace, subject: id.to_string(), effect };
                events.push(Event::Guarded { guard });
            }
        }
    }
    events.extend((!leads.is_empty()).then_some(Event::LeadsGiven { round, leads }));
    events
}

/// Every lead in order, with what became of it.
pub(crate) fn states(state: &State) -> Vec<LeadState> {
    state.leads.iter().map(|lead| became(state, lead)).collect()
}

fn became(state: &State, lead: &Lead) -> LeadState {
    let mut later = state.rounds.range(lead.round.saturating_add(1)..);
    let next = later.find(|(_, round)| round.question.is_some());
    let taken = next.filter(|(_, round)| round.takes_up.contains(&lead.id)).map(|(number, _)| *number);
    let until = next.map_or(u32::MAX, |(number, _)| *number);
    let entry = state.journal.iter().find(|e| {
        (lead.round..=until).contains(&e.round) && taken.is_none() && has_word(&e.entry.text, lead.id.as_str())
    });
    let fate = match (taken, entry) {
        (Some(_), _) => Fate::TakenUp,
        (None, Some(_)) => Fate::Declined,
        (None, None) if next.is_some() || state.phase == Phase::Conclude => Fate::NotTakenUp,
        (None, None) => Fate::Open,
    };
    let cites = |f: &&casebook_protocol::CheckedFinding| {
        f.finding.round > lead.round && f.checked.records().iter().any(|record| lead.records.contains(record))
    };
    let findings = state.findings().filter(cites).map(|f| f.finding.id.clone()).collect();
    LeadState { lead: lead.clone(), fate, round: taken, entry: entry.map(|e| e.seq), findings }
}

/// The guards of the open leads that neither `takes_up` nor one of the new Journal entries names.
pub(crate) fn left(state: &State, takes_up: &[LeadId], entries: &[casebook_protocol::EntryDraft]) -> Vec<Event> {
    let open = states(state).into_iter().filter(|lead| lead.fate == Fate::Open).map(|lead| lead.lead);
    let named = |lead: &Lead| {
        takes_up.contains(&lead.id) || entries.iter().any(|entry| has_word(&entry.text, lead.id.as_str()))
    };
    let left = open.filter(|lead| !named(lead));
    left.map(|lead| {
        let effect = format!("{}: recorded as not taken up", lead.draft.what);
        Event::Guarded { guard: Guard { rule: Rule::LeadNotTakenUp, subject: lead.id.to_string(), effect } }
    })
    .collect()
}
