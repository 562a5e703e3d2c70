//! Finds the rules that a record matches. One search for the texts that all rules need leaves few rules to evaluate.

use std::collections::HashMap;

use aho_corasick::automaton::{Automaton, StateID};
use aho_corasick::dfa::DFA;
use aho_corasick::{Anchored, MatchKind};

use super::RuleSet;
use super::needs::{Need, best, folded};
use super::sigma::Matcher;
use super::view::{Slots, View};

/// A need with the number of its field.
#[derive(Debug, Clone, Copy)]
enum Known {
    Text(Option<usize>),
    Field(usize),
}

/// A rule, and what it needs: at least one of each list.
#[derive(Debug)]
struct One {
    rule: usize,
    needs: Vec<Vec<usize>>,
}

/// Rules for the records of one kind.
#[derive(Debug, Default)]
pub(super) struct Matchers {
    all: Vec<One>,
    needs: Vec<Known>,
    /// By need, the rules that are looked at when it is met.
    by_text: Vec<Vec<usize>>,
    /// The rules that are looked at in each record, or in each that has the field.
    by_field: Vec<(Option<usize>, usize)>,
    search: Option<DFA>,
    /// By text of the search, the needs that it meets.
    texts: Vec<Vec<usize>>,
    /// The fields that are searched.
    slots: Vec<usize>,
    /// All fields are searched.
    whole: bool,
}

/// What was met in a record. Serves all records of a source in turn.
#[derive(Debug, Default)]
pub(super) struct Seen {
    record: u64,
    /// By need, by rule, and by place of a field: the last record in which it was seen.
    needs: Vec<u64>,
    rules: Vec<u64>,
    places: Vec<u64>,
    candidates: Vec<usize>,
    found: Vec<usize>,
    /// The texts to search, by place.
    searched: Vec<usize>,
    lower: String,
}

/// A text that is searched, and how far.
#[derive(Default)]
struct Lane<'t> {
    place: usize,
    state: StateID,
    rest: &'t [u8],
}

/// False if the place was marked in this record before.
fn mark(marks: &mut Vec<u64>, place: usize, record: u64) -> bool {
    if marks.len() <= place {
        marks.resize(place + 1, 0);
    }
    marks.get_mut(place).is_some_and(|mark| std::mem::replace(mark, record) != record)
}

impl Matchers {
    /// `rules` in the order of their numbers.
    pub(super) fn new(rules: &[(usize, &Matcher)], slots: &Slots) -> Self {
        let mut new = Self::default();
        let mut numbers: HashMap<&Need, usize> = HashMap::new();
        let mut patterns: HashMap<&str, usize> = HashMap::new();
        for (place, (rule, matcher)) in rules.iter().enumerate() {
            let mut needs = Vec::new();
            for list in &matcher.needs {
                let list = list.iter().map(|need| match numbers.get(need) {
                    Some(known) => Some(*known),
                    None => {
                        let number = new.add(need, slots, &mut patterns)?;
                        numbers.insert(need, number);
                        Some(number)
                    }
                });
                needs.push(list.collect::<Option<Vec<usize>>>().unwrap_or_default());
            }
            let first = best(&matcher.needs).and_then(|best| needs.get(best));
            for need in first.into_iter().flatten() {
                match new.needs.get(*need) {
                    Some(Known::Field(slot)) => new.by_field.push((Some(*slot), place)),
                    _ => new.by_text.get_mut(*need).into_iter().for_each(|all| all.push(place)),
                }
            }
            if first.is_none_or(Vec::is_empty) {
                new.by_field.push((None, place));
            }
            needs.retain(|list| !list.is_empty());
            new.all.push(One { rule: *rule, needs });
        }
        let mut patterns: Vec<(&str, usize)> = patterns.into_iter().collect();
        patterns.sort_unstable_by_key(|(_, number)| *number);
        let mut search = DFA::builder();
        search.match_kind(MatchKind::Standard).ascii_case_insensitive(true).prefilter(false);
        match search.build(patterns.iter().map(|(text, _)| text)) {
            Ok(search) if !patterns.is_empty() => new.search = Some(search),
            Ok(_) => {}
            // Too many texts: every rule is evaluated.
            Err(_) => {
                new.by_field = (0..new.all.len()).map(|place| (None, place)).collect();
                new.all.iter_mut().for_each(|one| one.needs.clear());
            }
        }
        new
    }

    /// None if no record has the field.
    fn add<'n>(&mut self, need: &'n Need, slots: &Slots, patterns: &mut HashMap<&'n str, usize>) -> Option<usize> {
        let number = self.needs.len();
        let known = match need {
            Need::Field(field) => Known::Field(slots.number(field)?),
            Need::Text { field: Some(field), .. } => Known::Text(Some(slots.number(field)?)),
            Need::Text { field: None, .. } => Known::Text(None),
        };
        match known {
            Known::Text(Some(slot)) if !self.slots.contains(&slot) => self.slots.push(slot),
            Known::Text(None) => self.whole = true,
            _ => {}
        }
        if let Need::Text { text, .. } = need {
            let pattern = *patterns.entry(text).or_insert(self.texts.len());
            match self.texts.get_mut(pattern) {
                Some(needs) => needs.push(number),
                None => self.texts.push(vec![number]),
            }
        }
        self.needs.push(known);
        self.by_text.push(Vec::new());
        Some(number)
    }

    /// The numbers of the rules that match, in ascending order.
    pub(super) fn matching<'s>(&self, rules: &RuleSet, view: View<'_>, seen: &'s mut Seen) -> &'s [usize] {
        seen.record += 1;
        seen.candidates.clear();
        seen.found.clear();
        if let Some(search) = &self.search {
            self.look(search, view, seen);
        }
        for (slot, place) in &self.by_field {
            if slot.is_none_or(|slot| view.has(slot)) && mark(&mut seen.rules, *place, seen.record) {
                seen.candidates.push(*place);
            }
        }
        seen.candidates.sort_unstable();
        for place in &seen.candidates {
            let Some(one) = self.all.get(*place) else { continue };
            let met = |need: &usize| match self.needs.get(*need) {
                Some(Known::Field(slot)) => view.has(*slot),
                _ => seen.needs.get(*need) == Some(&seen.record),
            };
            let may = one.needs.iter().all(|list| list.iter().any(met));
            if may && rules.matchers.get(&one.rule).is_some_and(|matcher| matcher.matches(view)) {
                seen.found.push(one.rule);
            }
        }
        &seen.found
    }

    /// Notes the needs that the record meets, and the rules to look at.
    fn look(&self, search: &DFA, view: View<'_>, seen: &mut Seen) {
        let Ok(state) = search.start_state(Anchored::No) else { return };
        let (mut places, mut lower) = (std::mem::take(&mut seen.searched), std::mem::take(&mut seen.lower));
        places.clear();
        if self.whole {
            places.extend(0..view.texts().count());
        } else {
            let all = self.slots.iter().flat_map(|slot| view.places(*slot));
            places.extend(all.filter(|place| mark(&mut seen.places, **place, seen.record)));
        }
        // Each step of a search waits for the one before, so two texts are searched at once.
        let (mut one, mut other) = (Lane::default(), Lane::default());
        for (place, text) in places.iter().filter_map(|place| Some((*place, view.text(*place)?))) {
            if !text.is_ascii() {
                folded(text, &mut lower);
                self.rest(search, view, &mut Lane { place, state, rest: lower.as_bytes() }, seen);
                continue;
            }
            if !one.rest.is_empty() {
                std::mem::swap(&mut one, &mut other);
            }
            one = Lane { place, state, rest: text.as_bytes() };
            self.both(search, view, [&mut one, &mut other], seen);
        }
        self.rest(search, view, &mut one, seen);
        self.rest(search, view, &mut other, seen);
        (seen.searched, seen.lower) = (places, lower);
    }

    /// Searches two texts until one of them ends.
    fn both(&self, search: &DFA, view: View<'_>, [one, other]: [&mut Lane<'_>; 2], seen: &mut Seen) {
        let both = one.rest.len().min(other.rest.len());
        let ((of_one, one_rest), (of_other, other_rest)) = (one.rest.split_at(both), other.rest.split_at(both));
        let (mut state, mut state_of_other) = (one.state, other.state);
        for (byte, byte_of_other) in of_one.iter().zip(of_other) {
            state = search.next_state(Anchored::No, state, *byte);
            state_of_other = search.next_state(Anchored::No, state_of_other, *byte_of_other);
            if search.is_match(state) || search.is_match(state_of_other) {
                self.found(search, view, (one.place, state), seen);
                self.found(search, view, (other.place, state_of_other), seen);
            }
        }
        *one = Lane { state, rest: one_rest, ..*one };
        *other = Lane { state: state_of_other, rest: other_rest, ..*other };
    }

    fn rest(&self, search: &DFA, view: View<'_>, lane: &mut Lane<'_>, seen: &mut Seen) {
        let mut state = lane.state;
        for byte in std::mem::take(&mut lane.rest) {
            state = search.next_state(Anchored::No, state, *byte);
            if search.is_match(state) {
                self.found(search, view, (lane.place, state), seen);
            }
        }
    }

    /// Notes what the text has at the state of its search.
    #[inline(never)]
    fn found(&self, search: &DFA, view: View<'_>, (place, state): (usize, StateID), seen: &mut Seen) {
        let matches = if search.is_match(state) { search.match_len(state) } else { 0 };
        for nth in 0..matches {
            let pattern = search.match_pattern(state, nth).as_usize();
            for need in self.texts.get(pattern).into_iter().flatten() {
                let there = match self.needs.get(*need) {
                    Some(Known::Text(Some(slot))) => view.places(*slot).contains(&place),
                    known => known.is_some(),
                };
                if there && mark(&mut seen.needs, *need, seen.record) {
                    for rule in self.by_text.get(*need).into_iter().flatten() {
                        if mark(&mut seen.rules, *rule, seen.record) {
                            seen.candidates.push(*rule);
                        }
                    }
                }
            }
        }
    }
}
