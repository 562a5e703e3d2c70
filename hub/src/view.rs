//! What each task may see.
//!
//! A view is built and stored when its task is requested. A task that is enqueued again gets the stored view,
//! so later events do not change it.

use std::collections::{BTreeMap, BTreeSet};

use casebook_protocol::{
    Allowance, Bearing, Budget, CheckedFinding, Citation, DirectorView, Domain, DomainToolset, EntityKind, ExpertView,
    FileHash, Files, Finding, FindingKind, Headroom, KEPT, MemberState, Review, ReviewView, Reviewed, Task, TaskId,
    TaskKind, TimelineEvent, TimelineView, Usage, View, one_line,
};

use casebook_trust::claim;
use casebook_trust::rule::{credible, out_of_reach};

use crate::lead;
use crate::state::{Progress, State, TaskState, limits};

/// Maximum number of earlier findings to show to the Critic because new findings contradict or may support them.
const MAX_EARLIER: usize = 20;
/// Maximum number of its own earlier findings that an Expert can look up, the latest first.
const MAX_OWN: usize = 60;

/// The view of a task in this round. `None` before the opening, for an unknown domain, and for a Timeline
/// without a Review.
pub fn build(state: &State, kind: TaskKind, domain: Option<&Domain>) -> Option<View> {
    Some(match kind {
        TaskKind::Plan => View::Plan(Box::new(director(state)?)),
        TaskKind::Decide => View::Decide(Box::new(director(state)?)),
        TaskKind::Report => {
            let credible = state.known.values().filter(|f| credible(f));
            let credible = credible.map(derived_finding).collect();
            View::Report(Box::new(DirectorView { credible, leads: lead::states(state), ..director(state)? }))
        }
        TaskKind::Investigate => View::Investigate(Box::new(expert(state, domain?)?)),
        TaskKind::Review => View::Review(Box::new(critic(state)?)),
        TaskKind::Timeline => View::Timeline(Box::new(TimelineView {
            journal: state.journal.clone(),
            review: state.this_review()?.clone(),
            ranks: ranks(state),
            previous: state.timeline.clone(),
        })),
    })
}

pub fn task(state: &State, id: &TaskId, view: View) -> Option<Task> {
    let requested = state.tasks.get(id)?;
    Some(Task {
        id: id.clone(),
        investigation: state.investigation.clone()?,
        domain: requested.domain.clone(),
        phase: requested.phase,
        round: requested.round,
        view,
        allowance: allowance(state, requested.round, requested.kind),
    })
}

/// The rest of the budget, shared by the tasks of one step. Only earlier steps count, so that a task that is
/// enqueued again has the same allowance. Some money for models is reserved for the conclusion
/// ([`Budget::before_the_report`]).
fn allowance(state: &State, round: u32, kind: TaskKind) -> Allowance {
    let full = Allowance::default();
    let before = state.tasks.values().filter(|t| (t.round, t.kind) < (round, kind));
    let mut used = Usage::default();
    before.for_each(|t| used += t.usage);
    let sharers = state.tasks.values().filter(|t| (t.round, t.kind) == (round, kind)).count().max(1);
    let whole = state.case.as_ref().map_or(Budget::default(), |case| case.budget);
    let budget = if kind == TaskKind::Report { whole } else { whole.before_the_report() };
    let share = |limit: u64, used: u64| limit.saturating_sub(used).div_ceil(sharers as u64);
    let count = |limit: u64, used: u64| u32::try_from(share(limit, used)).unwrap_or(u32::MAX);
    Allowance {
        tool_calls: full.tool_calls.min(count(whole.tool_calls, used.tool_calls)),
        model_calls: full.model_calls.min(count(budget.model_calls, used.model_calls)),
        tokens: full.tokens.min(share(budget.tokens, used.input_tokens.saturating_add(used.output_tokens))),
        cost_micros: full.cost_micros.min(share(budget.cost_micros, used.cost_micros)),
        ..full
    }
}

fn director(state: &State) -> Option<DirectorView> {
    let case = state.case.as_ref()?;
    let seconds = state.worked.as_secs();
    let warning = match case.budget.headroom(&state.usage, rounds_finished(state), seconds) {
        Headroom::Enough => None,
        Headroom::Near(limit) | Headroom::Spent(limit) => Some(limit),
    };
    let latest = state
        .leads
        .last()
        .map(|lead| lead.round)
        .filter(|round| state.review.as_ref().is_some_and(|r| r.round == *round));
    Some(DirectorView {
        alert: case.alert.clone(),
        journal: state.journal.clone(),
        review: state.review.as_ref().map(derived),
        timeline: state.timeline.clone(),
        ranks: ranks(state),
        leads: lead::states(state).into_iter().filter(|lead| latest == Some(lead.lead.round)).collect(),
        credible: Vec::new(),
        accounting: state.accounting(),
        roster: roster(state),
        notes: state.notes(state.known.values().map(|f| &f.checked)),
        coverage: state.coverage(),
        out_of_reach: out_of_reach(&state.sources()),
        used: state.usage,
        warning,
        stop_reason: state.stop_reason.clone(),
    })
}

/// How much each event of the Timeline matters. The earliest one is kept before all others.
fn ranks(state: &State) -> Vec<u64> {
    let events = state.timeline.iter().flat_map(|timeline| &timeline.events).enumerate();
    let rank = |(n, event): (usize, &TimelineEvent)| {
        let found = event.findings.iter().filter_map(|id| state.known.get(id)).map(Reviewed::rank).max();
        found.unwrap_or(0) + if n == 0 { KEPT } else { 0 }
    };
    events.map(rank).collect()
}

fn rounds_finished(state: &State) -> u32 {
    let finished = state.rounds.values().filter(|r| r.decision.is_some()).count();
    u32::try_from(finished).unwrap_or(u32::MAX)
}

/// The Review without quotations: a quotation may be text of an attacker, and the Director must not see it
/// (`docs/rules.md`, hostile evidence).
fn derived(review: &Review) -> Review {
    Review { findings: review.findings.iter().map(derived_finding).collect(), ..review.clone() }
}

fn derived_finding(reviewed: &Reviewed) -> Reviewed {
    let mut finding = reviewed.clone();
    for citation in &mut finding.finding.draft.citations {
        match citation {
            Citation::Literal { quote, .. } => quote.clear(),
            Citation::Aggregate { value, .. } => value.clear(),
            Citation::Count { .. } | Citation::Absence { .. } => {}
        }
    }
    for check in &mut finding.checked.citations {
        check.note = if check.holds { "holds".into() } else { unquoted(&check.note) };
    }
    finding
}

/// A note of code without the texts that it quotes.
fn unquoted(note: &str) -> String {
    let mut out = String::new();
    let (mut inside, mut escaped) = (false, false);
    for c in note.chars() {
        match c {
            _ if escaped => escaped = false,
            '\\' if inside => escaped = true,
            '"' => {
                out.push_str(if inside { "\"" } else { "\"…" });
                inside = !inside;
            }
            _ if inside => {}
            c => out.push(c),
        }
    }
    out
}

fn roster(state: &State) -> Vec<MemberState> {
    let mut last: BTreeMap<&Domain, (u32, &TaskState)> = BTreeMap::new();
    for task in state.tasks.values().filter(|task| !state.idle_rounds.contains(&task.round)) {
        if let Some(domain) = &task.domain
            && last.get(domain).is_none_or(|(round, _)| *round < task.round)
        {
            last.insert(domain, (task.round, task));
        }
    }
    let trouble = |domain: &Domain| match last.get(domain) {
        _ if state.gone.contains_key(domain) => state.gone.get(domain).cloned(),
        Some((round, TaskState { progress: Progress::Failed(reason), .. })) => {
            Some(format!("failed in round {round}: {}", one_line(reason, 200)))
        }
        _ => None,
    };
    let members = state.roster().iter();
    members
        .map(|m| MemberState {
            domain: m.domain.clone(),
            description: m.description.clone(),
            trouble: trouble(&m.domain),
            limit: last.get(&m.domain).and_then(|(_, task)| limits(task)),
            covers: m.covers.clone(),
        })
        .collect()
}

fn expert(state: &State, domain: &Domain) -> Option<ExpertView> {
    let member = state.member(domain)?;
    let own: Vec<&CheckedFinding> =
        state.findings().filter(|f| f.finding.domain == *domain && f.finding.round < state.round).collect();
    let own = own.into_iter();
    Some(ExpertView {
        alert: state.case.as_ref()?.alert.clone(),
        journal: state.journal.clone(),
        question: state.this_round()?.question.clone()?,
        toolset: member.toolset.clone(),
        sources: member.sources.clone(),
        earlier: own.rev().take(MAX_OWN).map(|f| f.finding.clone()).collect(),
        snapshot: state.files.get(&member.domain).map(first_read).unwrap_or_default(),
    })
}

/// Each file as it was read first. None if there are more files than a list holds.
fn first_read(files: &Files) -> Vec<FileHash> {
    let mut seen = BTreeSet::new();
    let first = files.listed.iter().filter(|_| files.more == 0);
    first.filter(|file| seen.insert(file.file.as_str())).cloned().collect()
}

fn critic(state: &State) -> Option<ReviewView> {
    let findings: Vec<CheckedFinding> = state.this_round()?.findings.values().cloned().collect();
    let earlier = || state.rounds.range(..state.round).flat_map(|(_, r)| r.findings.values());
    let named: Vec<Named<'_>> = findings.iter().map(|new| Named::of(&new.finding)).collect();
    let against = |old: &&CheckedFinding| {
        let old = Named::of(&old.finding);
        named.iter().any(|new| contradicts(new, &old))
    };
    let beside = |old: &&CheckedFinding| {
        let named_old = Named::of(&old.finding);
        !against(old) && findings.iter().zip(&named).any(|(new, named)| may_support((new, named), (old, &named_old)))
    };
    let earlier = earlier().filter(against).chain(earlier().filter(beside));
    let round = state.tasks.values().filter(|task| task.round == state.round);
    let limited = round.filter_map(|task| Some(format!("{}: {}", task.domain.as_ref()?, limits(task)?)));
    let toolsets =
        state.roster().iter().map(|m| DomainToolset { domain: m.domain.clone(), toolset: m.toolset.clone() });
    Some(ReviewView {
        alert: state.case.as_ref().map(|case| case.alert.clone()),
        question: state.this_round()?.question.clone(),
        journal: state.journal.clone(),
        earlier: earlier.take(MAX_EARLIER).cloned().collect(),
        accounting: state.accounting(),
        toolsets: toolsets.collect(),
        notes: state.notes(findings.iter().map(|f| &f.checked)),
        limits: limited.collect(),
        coverage: state.coverage(),
        out_of_reach: out_of_reach(&state.sources()),
        findings,
    })
}

/// Whether a new finding may support an earlier one: both are valid, name the same thing, and have different sources.
fn may_support((new, of_new): (&CheckedFinding, &Named<'_>), (old, of_old): (&CheckedFinding, &Named<'_>)) -> bool {
    let (own, other) = (new.checked.sources(), old.checked.sources());
    let shared = || !of_new.entities.is_disjoint(&of_old.entities) || !of_new.names.is_disjoint(&of_old.names);
    new.checked.valid() && old.checked.valid() && own.is_disjoint(&other) && shared()
}

/// Whether two findings contradict each other, as far as code can detect. They point in opposite directions and
/// share an entity, or only one claims an absence and both name the same thing in `backquotes`. A shared host
/// does not count, because most findings share one. An absence contradicts only what lies in its window, and not what
/// it excepts: "nothing other than X".
pub(crate) fn contradicts(a: &Named<'_>, b: &Named<'_>) -> bool {
    let (one, other) = (a.finding, b.finding);
    let opposite = matches!(
        (one.draft.bearing, other.draft.bearing),
        (Bearing::Incriminating, Bearing::Exonerating) | (Bearing::Exonerating, Bearing::Incriminating)
    );
    let absent = matches!(
        (one.draft.kind, other.draft.kind),
        (FindingKind::Absence, FindingKind::Occurrence) | (FindingKind::Occurrence, FindingKind::Absence)
    );
    let shared = (opposite && !a.entities.is_disjoint(&b.entities)) || (absent && !a.names.is_disjoint(&b.names));
    shared && meets(one, other) && meets(other, one)
}

/// A finding with what it names, so that many pairs are compared without reading the claims again.
pub(crate) struct Named<'f> {
    pub(crate) finding: &'f Finding,
    entities: BTreeSet<(EntityKind, String)>,
    names: BTreeSet<String>,
}

impl<'f> Named<'f> {
    pub(crate) fn of(finding: &'f Finding) -> Self {
        Self { finding, entities: entities(finding), names: names(finding) }
    }
}

/// False if `absence` is an absence over windows that all lie before or after the other finding.
fn meets(absence: &Finding, other: &Finding) -> bool {
    let (true, Some(time)) = (absence.draft.kind == FindingKind::Absence, &other.draft.time) else { return true };
    let last = time.until.unwrap_or(time.at);
    let windows = absence.draft.citations.iter().filter_map(|citation| match citation {
        Citation::Absence { from, to, .. } => Some((from, to)),
        Citation::Literal { .. } | Citation::Count { .. } | Citation::Aggregate { .. } => None,
    });
    let mut windows =
        windows.map(|(from, to)| from.is_none_or(|from| from <= last) && to.is_none_or(|to| time.at <= to));
    windows.clone().count() == 0 || windows.any(|meets| meets)
}

/// The part of a claim before an exception; all of it for a finding other than an absence.
fn unexcepted(finding: &Finding) -> &str {
    let claim = finding.draft.claim.as_str();
    if finding.draft.kind != FindingKind::Absence {
        return claim;
    }
    claim::exception(claim).and_then(|at| claim.get(..at)).unwrap_or(claim)
}

fn entities(finding: &Finding) -> BTreeSet<(EntityKind, String)> {
    let excepted = finding.draft.claim.get(unexcepted(finding).len()..).unwrap_or_default();
    let telling = finding.draft.entities.iter().filter(|e| e.kind != EntityKind::Host && !excepted.contains(&e.value));
    telling.map(|e| (e.kind, e.value.to_lowercase())).collect()
}

fn names(finding: &Finding) -> BTreeSet<String> {
    claim::names(unexcepted(finding)).map(str::to_lowercase).collect()
}

#[cfg(test)]
mod tests;
