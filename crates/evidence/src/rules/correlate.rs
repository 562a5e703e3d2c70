//! Correlations over the hits of rules, in the order of time: many of one kind, many different values, several
//! rules together or one after the other.

use std::borrow::Cow;
use std::collections::VecDeque;

use ahash::AHashMap;

use super::{Pattern, pattern};

/// Groups whose state is kept, and occurrences in all of them. Above it, the stalest half is forgotten.
const GROUPS_MAX: usize = 100_000;
const OCCURRENCES_MAX: usize = 1_000_000;
/// Occurrences that one group keeps. A threshold cannot be larger.
const WINDOW_MAX: usize = 10_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    EventCount,
    ValueCount,
    Temporal,
    TemporalOrdered,
}

impl Kind {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::EventCount => "event_count",
            Self::ValueCount => "value_count",
            Self::Temporal => "temporal",
            Self::TemporalOrdered => "temporal_ordered",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    Less,
    AtMost,
    More,
    AtLeast,
    Equal,
    Other,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Condition {
    Count(Vec<(Operator, u64)>),
    Rules(Joined),
}

/// Which rules must have hits. A rule is its place in the list of the correlation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Joined {
    Rule(usize),
    All(Vec<Joined>),
    Any(Vec<Joined>),
    Not(Box<Joined>),
}

impl Joined {
    fn holds(&self, has: &dyn Fn(usize) -> bool) -> bool {
        match self {
            Self::Rule(place) => has(*place),
            Self::All(all) => all.iter().all(|one| one.holds(has)),
            Self::Any(any) => any.iter().any(|one| one.holds(has)),
            Self::Not(one) => !one.holds(has),
        }
    }
}

impl Condition {
    fn holds(&self, count: u64) -> bool {
        let Self::Count(all) = self else { return false };
        all.iter().all(|(operator, wanted)| match operator {
            Operator::Less => count < *wanted,
            Operator::AtMost => count <= *wanted,
            Operator::More => count > *wanted,
            Operator::AtLeast => count >= *wanted,
            Operator::Equal => count == *wanted,
            Operator::Other => count != *wanted,
        })
    }
}

/// A correlation whose rules are known by number.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    /// The number of the correlation.
    pub(super) rule: usize,
    pub(super) kind: Kind,
    pub(super) rules: Vec<usize>,
    /// For each field of the group, its name, and the field that holds it in the hits of each rule of `rules`.
    pub(super) group: Vec<(String, Vec<String>)>,
    pub(super) counted: Vec<String>,
    /// In nanoseconds.
    pub(super) span: i64,
    pub(super) condition: Condition,
    pub(super) pattern: Option<Pattern>,
}

/// A place in the evidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) source: i64,
    pub(crate) record: i64,
    /// In nanoseconds.
    pub(crate) time: i64,
}

/// One or more hits of one rule, from the first to the last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) rule: usize,
    pub(super) first: Place,
    pub(super) last: Place,
    pub(super) count: u64,
}

/// A hit of a rule, with the values that correlations read.
#[derive(Debug, Clone)]
pub(super) struct Occurrence<'v> {
    pub(super) part: Part,
    /// Of fields with the same name, the first counts.
    pub(super) values: Vec<(&'v str, Cow<'v, str>)>,
}

impl Occurrence<'_> {
    fn value(&self, field: &str) -> Option<&str> {
        self.values.iter().find(|(name, _)| *name == field).map(|(_, value)| value.as_ref())
    }
}

/// What a correlation found for one group, from the first occurrence that counts to the last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Episode {
    pub(super) rule: usize,
    pub(super) group: Vec<(String, String)>,
    pub(super) first: Place,
    pub(super) last: Place,
    /// Occurrences of an `event_count`, the most different values of a `value_count`, times that a temporal
    /// correlation was complete.
    pub(super) count: u64,
    /// For each rule, what completed a temporal correlation the first time.
    pub(super) parts: Vec<Part>,
}

#[derive(Debug, Default)]
struct State {
    plan: usize,
    window: VecDeque<(Place, String)>,
    values: AHashMap<String, usize>,
    /// Temporal: the last hit of each rule.
    latest: Vec<Option<Part>>,
    /// Ordered: for each rule, the parts that lead up to it, with the latest possible beginning.
    chains: Vec<Option<Vec<Part>>>,
    open: Option<Episode>,
    last: i64,
}

pub(super) struct Correlator<'p> {
    plans: &'p [Plan],
    by_rule: AHashMap<usize, Vec<(usize, usize)>>,
    /// By number of the plan, and the values of its group, each with its length.
    groups: AHashMap<Vec<u8>, Box<State>>,
    key: Vec<u8>,
    occurrences: usize,
    found: Vec<Episode>,
    /// Groups were forgotten, so an episode may be missing or cut.
    pub(super) forgot: bool,
}

impl<'p> Correlator<'p> {
    pub(super) fn new(plans: &'p [Plan]) -> Self {
        let mut by_rule: AHashMap<usize, Vec<(usize, usize)>> = AHashMap::new();
        for (number, plan) in plans.iter().enumerate() {
            for (place, rule) in plan.rules.iter().enumerate() {
                by_rule.entry(*rule).or_default().push((number, place));
            }
        }
        Self {
            plans,
            by_rule,
            groups: AHashMap::new(),
            key: Vec::new(),
            occurrences: 0,
            found: Vec::new(),
            forgot: false,
        }
    }

    /// Adds a hit. The hits must come in the order of time.
    pub(super) fn add<'v>(&mut self, occurrence: Occurrence<'v>)
    where
        'p: 'v,
    {
        let by_rule = std::mem::take(&mut self.by_rule);
        // Plans form no cycle, so this ends.
        let mut todo = vec![occurrence];
        while let Some(occurrence) = todo.pop() {
            // A rule that is named twice is tried from the end, so that one hit does not count for both.
            for (plan, place) in by_rule.get(&occurrence.part.rule).into_iter().flatten().rev() {
                todo.extend(self.step(*plan, *place, &occurrence));
            }
        }
        self.by_rule = by_rule;
        if self.groups.len() > GROUPS_MAX || self.occurrences > OCCURRENCES_MAX {
            self.forget();
        }
    }

    /// What was found so far, and is over.
    pub(super) fn take(&mut self) -> Vec<Episode> {
        std::mem::take(&mut self.found)
    }

    pub(super) fn finish(mut self) -> Vec<Episode> {
        let open = self.groups.into_values().filter_map(|state| state.open);
        self.found.extend(open);
        self.found.sort_by_key(|episode| (episode.last.time, episode.rule, episode.last.record));
        self.found
    }

    /// Returns the hit of the correlation if this occurrence completes it.
    fn step<'v>(&mut self, number: usize, place: usize, occurrence: &Occurrence<'v>) -> Option<Occurrence<'v>>
    where
        'p: 'v,
    {
        let plans = self.plans;
        let plan = plans.get(number)?;
        // A record without one of the fields is of no group.
        let nameless = (plan.pattern == Some(Pattern::ThenSilence)).then_some("");
        let member = |fields: &Vec<String>| occurrence.value(fields.get(place)?).or(nameless);
        self.key.clear();
        self.key.extend(number.to_le_bytes());
        for (_, fields) in &plan.group {
            let member = member(fields)?;
            self.key.extend(member.len().to_le_bytes());
            self.key.extend(member.as_bytes());
        }
        let counted: Option<Vec<&str>> = plan.counted.iter().map(|field| occurrence.value(field)).collect();
        let counted = counted?.join("\u{1f}");
        let part = &occurrence.part;
        let now = part.last.time;
        let state = match self.groups.get_mut(&self.key) {
            Some(known) => known,
            None => self
                .groups
                .entry(self.key.clone())
                .or_insert_with(|| Box::new(State { plan: number, ..State::default() })),
        };
        state.last = now;
        let before = state.window.len();
        let fired = state.fires(plan, place, part, counted);
        self.occurrences = (self.occurrences + state.window.len()).saturating_sub(before);
        let (first, count, parts) = fired?;
        let group = plan.group.iter().filter_map(|(name, fields)| Some((name, member(fields)?.to_owned())));
        match state.open.as_mut().filter(|open| now.saturating_sub(open.last.time) <= plan.span) {
            Some(open) => {
                open.last = part.last;
                open.count = match plan.kind {
                    Kind::ValueCount => open.count.max(count),
                    Kind::EventCount => open.count + part.count,
                    Kind::Temporal | Kind::TemporalOrdered => open.count + 1,
                };
            }
            None => {
                let group = group.clone().map(|(name, value)| (name.clone(), value)).collect();
                let new = Episode { rule: plan.rule, group, first, last: part.last, count, parts };
                self.found.extend(state.open.replace(new));
            }
        }
        let open = state.open.as_ref()?;
        let part = Part { rule: plan.rule, first: open.first, last: open.last, count: open.count };
        let group = group.map(|(name, value)| (name.as_str(), Cow::Owned(value)));
        Some(Occurrence { part, values: group.chain(occurrence.values.iter().cloned()).collect() })
    }

    /// Forgets the stalest half of the groups.
    fn forget(&mut self) {
        let mut times: Vec<i64> = self.groups.values().map(|state| state.last).collect();
        if times.is_empty() {
            return;
        }
        let middle = times.len() / 2;
        let (_, median, _) = times.select_nth_unstable(middle);
        let median = *median;
        let newest = self.groups.values().map(|state| state.last).max().unwrap_or(median);
        // If all are of one moment, all go.
        let stale = |state: &State| state.last <= median || median == newest;
        let plans = self.plans;
        for (_, state) in self.groups.extract_if(|_, state| stale(state)) {
            let span = plans.get(state.plan).map_or(0, |plan| plan.span);
            self.forgot |= newest.saturating_sub(state.last) <= span;
            self.found.extend(state.open);
        }
        self.occurrences = self.groups.values().map(|state| state.window.len()).sum();
    }
}

impl State {
    /// The beginning, the count and the parts, if the condition holds now.
    fn fires(&mut self, plan: &Plan, place: usize, part: &Part, counted: String) -> Option<(Place, u64, Vec<Part>)> {
        let now = part.last.time;
        let since = now.saturating_sub(plan.span);
        match plan.kind {
            Kind::EventCount | Kind::ValueCount => {
                if plan.kind == Kind::ValueCount {
                    *self.values.entry(counted.clone()).or_default() += 1;
                }
                self.window.push_back((part.last, counted));
                while self.window.front().is_some_and(|(p, _)| p.time < since) || self.window.len() > WINDOW_MAX {
                    let Some((_, gone)) = self.window.pop_front() else { break };
                    if let Some(count) = self.values.get_mut(&gone) {
                        *count -= 1;
                        if *count == 0 {
                            self.values.remove(&gone);
                        }
                    }
                }
                let all = self.window.len();
                let count = if plan.kind == Kind::ValueCount { self.values.len() } else { all } as u64;
                let first = self.window.front()?.0;
                if !plan.condition.holds(count) {
                    return None;
                }
                match plan.pattern {
                    Some(Pattern::EvenIntervals) => {
                        let from = all.saturating_sub(pattern::SERIES);
                        let newest = || self.window.iter().skip(from).map(|(place, _)| *place);
                        let even = pattern::even(newest().map(|place| place.time));
                        even.then_some((newest().next()?, (all - from) as u64, Vec::new()))
                    }
                    Some(Pattern::ImpossibleTravel) => {
                        let here = self.window.back().and_then(|(at, values)| pattern::stay(values, at.time))?;
                        let far = |(at, values): &&(Place, String)| {
                            pattern::stay(values, at.time).is_some_and(|there| pattern::too_far(there, here))
                        };
                        let (there, _) = self.window.iter().rev().take(pattern::SERIES).find(far)?;
                        let left = Part { rule: part.rule, first: *there, last: *there, count: 1 };
                        Some((*there, 2, vec![left, part.clone()]))
                    }
                    Some(Pattern::ThenSilence) | None => Some((first, count, Vec::new())),
                }
            }
            Kind::Temporal => {
                self.latest.resize(plan.rules.len(), None);
                *self.latest.get_mut(place)? = Some(part.clone());
                let there = |part: &&Part| part.last.time >= since;
                let has = |place: usize| self.latest.get(place).is_some_and(|p| p.as_ref().filter(there).is_some());
                let parts: Vec<Part> = self.latest.iter().flatten().filter(there).cloned().collect();
                let holds = match &plan.condition {
                    Condition::Rules(joined) => joined.holds(&has),
                    Condition::Count(_) => parts.len() == plan.rules.len(),
                };
                let first = parts.iter().map(|part| part.first).min_by_key(|first| first.time)?;
                holds.then_some((first, 1, parts))
            }
            Kind::TemporalOrdered => {
                self.chains.resize(plan.rules.len(), None);
                let before = match place {
                    0 => Some(Vec::new()),
                    n => self.chains.get(n - 1)?.clone(),
                };
                let mut chain = before.filter(|parts| parts.first().is_none_or(|first| first.last.time >= since))?;
                chain.push(part.clone());
                let beginning = |parts: &[Part]| parts.first().map(|part| part.last.time);
                let known = self.chains.get(place)?.as_deref().and_then(beginning);
                let first = chain.first()?.first;
                if place + 1 == plan.rules.len() {
                    return Some((first, 1, chain));
                }
                if known <= beginning(&chain) {
                    *self.chains.get_mut(place)? = Some(chain);
                }
                None
            }
        }
    }
}

#[cfg(test)]
mod tests;
