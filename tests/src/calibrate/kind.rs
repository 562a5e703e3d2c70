//! The kinds of trial: what is planted, what has to become of it, and who can tell.

use serde::Serialize;

/// What has to become of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Expect {
    /// It is false: nobody may believe it.
    Refused,
    /// It is true: it may not be lost.
    Kept,
    /// It tells again what another finding tells: one event, not two.
    OneEvent,
    /// It cannot be true together with another finding: not both believed unless marked.
    Marked,
}

/// Who can tell that a trial is false.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// Code: the recorded bytes alone show it.
    Code,
    /// Only who understands what is said: a Critic.
    Judgement,
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident, $text:literal, $expect:ident, $by:ident;)*) => {
        /// A kind of trial.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Kind {
            $($(#[$doc])* $name,)*
        }

        impl Kind {
            /// Every kind, in the order of the table.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The kind in a few words.
            #[must_use]
            pub const fn words(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            /// What has to become of it.
            #[must_use]
            pub const fn expect(self) -> Expect {
                match self { $(Self::$name => Expect::$expect,)* }
            }

            /// Who can tell.
            #[must_use]
            pub const fn by(self) -> By {
                match self { $(Self::$name => By::$by,)* }
            }
        }
    };
}

kinds! {
    /// The cited call was never made, or not by that Expert.
    MissingCall, "cited call does not exist", Refused, Code;
    /// The call is on record, the pointer or line leads nowhere.
    MissingPlace, "cited place does not exist", Refused, Code;
    /// The place is there, the quoted text is not.
    QuoteNotThere, "quoted text is not there", Refused, Code;
    /// The citation holds, and what it shows is something else.
    CitesOther, "real citation that does not say it", Refused, Code;
    /// Another time, in the finding's time or in its words.
    ChangedTime, "changed time", Refused, Code;
    /// Another IP address.
    ChangedAddress, "changed address", Refused, Code;
    /// Another number.
    ChangedCount, "changed count", Refused, Code;
    /// Another account.
    ChangedUser, "changed user", Refused, Code;
    /// Another hash.
    ChangedHash, "changed hash", Refused, Code;
    /// Another file, program or command.
    ChangedName, "changed file or command", Refused, Code;
    /// Right facts, told of another host.
    OtherHost, "right facts from another host", Refused, Code;
    /// Right facts, told of another day.
    OtherDay, "right facts from another day", Refused, Code;
    /// An absence over a window that was not searched.
    AbsenceUnsearched, "absence over a window not searched", Refused, Code;
    /// An absence where the query matched something.
    AbsenceMatched, "absence where the query matched", Refused, Code;
    /// An absence of something that was not searched for, or only together with something else.
    AbsenceNotAsked, "absence of what was not asked for", Refused, Code;
    /// The time of an aggregate given as the time of an event.
    AggregateTime, "time of an aggregate as an event's", Refused, Code;
    /// The right values in each other's place.
    MisreadField, "misread field (roles exchanged)", Refused, Judgement;
    /// The facts of one cited record at the time of another cited record.
    BorrowedTime, "facts of one record, time of another", Refused, Judgement;
    /// What an attacker wrote into a field, told as a fact.
    AttackerText, "claim from text an attacker wrote", Refused, Judgement;
    /// Another name or a number, told in plain prose with no mark that code could hold it by.
    Unmarked, "changed name or number in plain prose", Refused, Judgement;
    /// A second finding of the same records in other words.
    Duplicate, "duplicate in other words", OneEvent, Code;
    /// A second finding of the same occurrence from a source whose clock differs.
    TwoClocks, "same occurrence, clocks apart", OneEvent, Judgement;
    /// A second finding that explains the same record in the opposite way.
    Contradiction, "two findings that contradict", Marked, Judgement;
    /// The findings of the investigation as they are.
    AsFound, "as the investigation has it", Kept, Code;
    /// A number of records, recounted.
    TrueCount, "count, recomputed", Kept, Code;
    /// Nothing found, searched again.
    TrueAbsence, "absence, searched again", Kept, Code;
    /// The time told with another offset from UTC.
    OtherZone, "time in another zone", Kept, Code;
    /// The time told in another notation.
    OtherNotation, "time in another notation", Kept, Code;
    /// The time cut to the second or the minute.
    CutTime, "time cut to second or minute", Kept, Code;
    /// Bytes told in larger units.
    ByteUnits, "bytes in other units", Kept, Code;
    /// A duration told in other units.
    TimeUnits, "duration in other units", Kept, Code;
    /// The same names in another order.
    Reordered, "names in another order", Kept, Code;
    /// A piece of the quotation, or a name cut short.
    PartialQuote, "partial quotation", Kept, Code;
    /// An IPv6 address in another notation.
    LongAddress, "IPv6 address in another notation", Kept, Code;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_words_of_its_own() {
        let words: std::collections::BTreeSet<&str> = Kind::ALL.iter().map(|k| k.words()).collect();
        assert_eq!(words.len(), Kind::ALL.len());
    }
}
