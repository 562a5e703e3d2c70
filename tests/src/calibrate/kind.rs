//! The table of trials: what must happen to each kind, who can detect it, and how to make it.

use serde::Serialize;

use super::plant::{
    Plant, citations as cite, claims as claim, coverage as cover, forms as form, searches as search, times as time,
    values as value,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Expect {
    /// It is false and must not be believed.
    Refused,
    /// It is true and must not be lost.
    Kept,
    /// It repeats another finding: one event, not two.
    OneEvent,
    /// It contradicts another finding: both must not be believed unless marked.
    Marked,
}

/// Who can detect that a trial is false.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// The recorded bytes show it.
    Code,
    /// Only a Critic who understands the claim.
    Judgement,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Site {
    /// Replaces the real finding that it is made from.
    Instead,
    /// Joins that finding.
    Beside,
    /// Joins a finding that has an event on the Timeline.
    BesideEvent,
    /// Is about no real finding.
    Alone,
}

#[derive(Clone, Copy)]
pub struct Row {
    pub words: &'static str,
    pub expect: Expect,
    pub by: By,
    pub site: Site,
    /// Changes the finding; `None` if that is impossible.
    pub(crate) plant: fn(&mut Plant<'_>) -> Option<()>,
}

macro_rules! kinds {
    ($($name:ident, $words:literal, $expect:ident, $by:ident, $site:ident, $plant:expr;)*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Kind {
            $($name,)*
        }

        impl Kind {
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            pub const fn row(self) -> Row {
                match self {
                    $(Self::$name => Row {
                        words: $words, expect: Expect::$expect, by: By::$by, site: Site::$site, plant: $plant,
                    },)*
                }
            }
        }
    };
}

kinds! {
    MissingCall, "cited call does not exist", Refused, Code, Instead, cite::missing_call;
    MissingPlace, "cited place does not exist", Refused, Code, Instead, cite::missing_place;
    QuoteNotThere, "quoted text is not there", Refused, Code, Instead, cite::quote_not_there;
    CitesOther, "real citation that does not say it", Refused, Code, Instead, cite::other_record;
    ChangedTime, "changed time", Refused, Code, Instead, time::changed;
    ChangedAddress, "changed address", Refused, Code, Instead, value::address;
    ChangedCount, "changed count", Refused, Code, Instead, value::count;
    ChangedUser, "changed user", Refused, Code, Instead, value::user;
    ChangedHash, "changed hash", Refused, Code, Instead, value::hash;
    ChangedName, "changed file or command", Refused, Code, Instead, value::name;
    OtherHost, "right facts from another host", Refused, Code, Instead, value::other_host;
    OtherDay, "right facts from another day", Refused, Code, Instead, time::other_day;
    AbsenceUnsearched, "absence over a window not searched", Refused, Code, Alone, search::unsearched;
    AbsenceMatched, "absence where the query matched", Refused, Code, Alone, search::matched;
    AbsenceNotAsked, "absence of what was not asked for", Refused, Code, Alone, search::not_asked;
    AbsenceUncovered, "absence over what no source covers", Refused, Code, Alone, cover::uncovered;
    AggregateTime, "time of an aggregate as an event's", Refused, Code, Instead, time::of_aggregate;
    ForgedRow, "made-up cell or column of SQL", Refused, Code, Alone, form::forged_row;
    OtherGroup, "number or time of another group", Refused, Code, Alone, form::other_group;
    LongerWindow, "count over a longer window", Refused, Code, Alone, form::longer_window;
    CountedAbsent, "count of 0 that is not shown", Refused, Code, Alone, form::count_of_something;
    OtherNumber, "absence of another number", Refused, Code, Alone, form::other_number;
    NarrowPattern, "absence by a narrower pattern", Refused, Code, Alone, form::narrow_pattern;
    PartOfPhrase, "absence of a part of a phrase", Refused, Code, Alone, form::part_of_phrase;
    UnknownField, "absence over a misspelled field", Refused, Code, Alone, form::unknown_field;
    OtherValue, "another short value, or a part", Refused, Code, Alone, form::other_value;
    MisreadField, "misread field (roles exchanged)", Refused, Judgement, Instead, claim::exchanged;
    BorrowedTime, "facts of one record, time of another", Refused, Judgement, Instead, time::borrowed;
    AttackerText, "claim from text an attacker wrote", Refused, Judgement, Beside, claim::attacker_text;
    Unmarked, "changed name or number in plain prose", Refused, Judgement, Instead, claim::unmarked;
    Duplicate, "duplicate in other words", OneEvent, Code, BesideEvent, claim::duplicate;
    TwoClocks, "same occurrence, clocks apart", OneEvent, Judgement, BesideEvent, time::of_two_clocks;
    Contradiction, "two findings that contradict", Marked, Judgement, BesideEvent, claim::contradiction;
    // Nothing is planted: every real finding is a trial.
    AsFound, "as the investigation has it", Kept, Code, Instead, |_| None;
    TrueCount, "count, recomputed", Kept, Code, Alone, search::count;
    TrueAbsence, "absence, searched again", Kept, Code, Alone, search::absence;
    AbsenceCovered, "absence on a covered host", Kept, Code, Alone, cover::covered;
    SqlRow, "row of SQL", Kept, Code, Alone, form::row_of_sql;
    Group, "group of a count", Kept, Code, Alone, form::group;
    CountWindow, "count with the edges of its window", Kept, Code, Alone, form::window;
    CountOfNothing, "count of 0", Kept, Code, Alone, form::count_of_nothing;
    AbsentNumber, "absence of a number", Kept, Code, Alone, form::absent_number;
    AbsentPattern, "absence by pattern", Kept, Code, Alone, form::absent_pattern;
    AbsentPhrase, "absence of a phrase or of one term", Kept, Code, Alone, form::absent_phrase;
    ShortValue, "whole short value", Kept, Code, Alone, form::short_value;
    OtherZone, "time in another zone", Kept, Code, Instead, time::other_zone;
    OtherNotation, "time in another notation", Kept, Code, Instead, time::other_notation;
    CutTime, "time cut to second or minute", Kept, Code, Instead, time::cut;
    ByteUnits, "bytes in other units", Kept, Code, Alone, value::bytes;
    TimeUnits, "duration in other units", Kept, Code, Alone, value::duration;
    Reordered, "names in another order", Kept, Code, Instead, claim::reordered;
    PartialQuote, "partial quotation", Kept, Code, Instead, cite::partial_quote;
    LongAddress, "IPv6 address in another notation", Kept, Code, Instead, value::long_address;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_its_own_words() {
        let words: std::collections::BTreeSet<&str> = Kind::ALL.iter().map(|kind| kind.row().words).collect();
        assert_eq!(words.len(), Kind::ALL.len());
    }
}
