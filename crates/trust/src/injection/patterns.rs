use std::borrow::Cow;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::LazyLock;

use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::nfa::thompson;
use regex_automata::util::pool::Pool;
use regex_automata::util::syntax;
use regex_automata::{Input, MatchKind, PatternSet};
use serde::Deserialize;

const FILE: &str = include_str!("../injection.toml");
const STATES: usize = 2 << 20;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Book {
    wish: Vec<Wish>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wish {
    wants: String,
    patterns: Vec<String>,
}

pub struct Known {
    /// ASCII patterns, tried on [`folded`] readings.
    plain: Set,
    foreign: Set,
}

#[allow(clippy::expect_used, reason = "injection.toml is part of the program, and the tests read it")]
pub fn known() -> &'static Known {
    static KNOWN: LazyLock<Known> = LazyLock::new(|| read().expect("injection.toml can be read"));
    &KNOWN
}

fn read() -> Result<Known, String> {
    let book: Book = toml::from_str(FILE).map_err(|e| e.to_string())?;
    let all = || book.wish.iter().flat_map(|w| w.patterns.iter().map(|p| (w.wants.as_str(), p.as_str())));
    let plain = all().filter(|(_, p)| p.is_ascii()).map(|(wants, p)| (wants, format!("(?is-u){p}")));
    // A Unicode word boundary would make the search much slower.
    let foreign = all().filter(|(_, p)| !p.is_ascii());
    let foreign = foreign.map(|(wants, p)| (wants, format!("(?is){}", p.replace(r"\b", r"(?-u:\b)"))));
    Ok(Known { plain: Set::of(plain.unzip())?, foreign: Set::of(foreign.unzip())? })
}

impl Known {
    pub(super) fn wants(&self, reading: &str) -> Option<&str> {
        let foreign = || if reading.is_ascii() { None } else { self.foreign.wants(reading) };
        self.plain.wants(&folded(reading)).or_else(foreign)
    }
}

/// Patterns that one pass searches for.
///
/// The sets of the regex library switch to a search that is a hundred times slower if a text needs too many
/// states. An attacker could write such a text. This search clears its states and continues.
struct Set {
    dfa: DFA,
    caches: Pool<Cache, Box<dyn Fn() -> Cache + Send + Sync + UnwindSafe + RefUnwindSafe>>,
    whose: Vec<String>,
}

impl Set {
    fn of((whose, patterns): (Vec<&str>, Vec<String>)) -> Result<Self, String> {
        let config = DFA::config().match_kind(MatchKind::All).cache_capacity(STATES).minimum_cache_clear_count(None);
        let dfa = DFA::builder()
            .configure(config)
            .syntax(syntax::Config::new().utf8(false))
            .thompson(thompson::Config::new().utf8(false))
            .build_many(&patterns)
            .map_err(|e| e.to_string())?;
        let maker = dfa.clone();
        let caches = Pool::new(Box::new(move || maker.create_cache()) as Box<_>);
        Ok(Self { dfa, caches, whose: whose.into_iter().map(str::to_owned).collect() })
    }

    fn wants(&self, text: &str) -> Option<&str> {
        let mut found = PatternSet::new(self.dfa.pattern_len());
        let searched = self.dfa.try_which_overlapping_matches(&mut self.caches.get(), &Input::new(text), &mut found);
        // Cannot happen with this search. If it does, a person should look at the text.
        if searched.is_err() {
            return Some("it could not be looked through");
        }
        found.iter().next().and_then(|first| self.whose.get(first.as_usize())).map(String::as_str)
    }
}

/// Replaces each character by one byte, so that an ASCII pattern counts characters and finds word starts in any
/// script without the Unicode tables.
fn folded(reading: &str) -> Cow<'_, str> {
    if reading.is_ascii() {
        return Cow::Borrowed(reading);
    }
    let fold = |c: char| match c {
        c if c.is_ascii() => c,
        c if c.is_whitespace() => ' ',
        '\u{17f}' => 's',
        '\u{212a}' => 'k',
        c if !regex_syntax::try_is_word_character(c).unwrap_or(true) => '\u{1a}',
        c if c.is_numeric() => '0',
        _ => '_',
    };
    Cow::Owned(reading.chars().map(fold).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_is_readable_and_tried() {
        let known = read().unwrap();
        assert!(known.plain.whose.len() > 40 && known.foreign.whose.len() > 10);
        assert_eq!(known.plain.whose.len(), known.plain.dfa.pattern_len());
    }

    #[test]
    fn a_folded_reading_has_one_byte_for_each_character() {
        assert_eq!(folded("Tür1 – in\u{17f}\u{a0}\u{0661}e\u{301}!"), "T_r1 \u{1a} ins 0e_!");
    }

    /// Whatever was searched before, ordinary text is searched in the states that it needs: no search gives up.
    #[test]
    fn a_text_that_needs_many_states_spoils_no_later_search() {
        let known = read().unwrap();
        let words = ["call x", "use tool", "run query", "search ", "read ", "<img ", "[", "![", "end of log ", "y "];
        let mut next = 1_u64;
        let mut word = || {
            next = next.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            words[usize::try_from(next >> 33).unwrap() % words.len()]
        };
        let hostile: String = (0..8000).map(|_| word()).collect();
        let mut cache = known.plain.dfa.create_cache();
        let mut found = PatternSet::new(known.plain.dfa.pattern_len());
        let input = Input::new(&hostile);
        known.plain.dfa.try_which_overlapping_matches(&mut cache, &input, &mut found).unwrap();
        assert!(cache.clear_count() > 3, "it needed more states than are kept: {}", cache.clear_count());
    }
}
