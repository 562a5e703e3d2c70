//! Finds the rules that a record matches. One search for the texts that all rules need leaves few rules to evaluate.

use std::collections::HashMap;

use aho_corasick::automaton::Automaton;
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
    lower: String,
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

    fn look(&self, search: &DFA, view: View<'_>, seen: &mut Seen) {
        if self.whole {
            view.texts().enumerate().for_each(|(place, text)| self.text(search, view, (place, text), seen));
            return;
        }
        for slot in &self.slots {
            for place in view.places(*slot) {
                if let (true, Some((_, text))) =
                    (mark(&mut seen.places, *place, seen.record), view.fields().get(*place))
                {
                    self.text(search, view, (*place, text), seen);
                }
            }
        }
    }

    /// Notes the needs that a text meets, and the rules to look at.
    fn text(&self, search: &DFA, view: View<'_>, (place, text): (usize, &str), seen: &mut Seen) {
        let mut lower = std::mem::take(&mut seen.lower);
        let bytes = if text.is_ascii() {
            text.as_bytes()
        } else {
            folded(text, &mut lower);
            lower.as_bytes()
        };
        let Ok(mut state) = search.start_state(Anchored::No) else { return };
        for byte in bytes {
            state = search.next_state(Anchored::No, state, *byte);
            if !search.is_match(state) {
                continue;
            }
            for nth in 0..search.match_len(state) {
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
        seen.lower = lower;
    }
}
