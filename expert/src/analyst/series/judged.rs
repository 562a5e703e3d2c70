//! Judges a series by its numbers.

use casebook_protocol::{Bearing, Weight};

/// Minutes in the densest part of a series.
pub(super) const DENSE: i64 = 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Guess,
    /// Requests for missing pages.
    Scan,
    /// Refused or unanswered connections.
    Refused,
    /// Names below one domain.
    Names,
    Repeat,
}

pub(super) struct Judged {
    pub(super) what: &'static str,
    pub(super) amounts_to: &'static str,
    pub(super) bearing: Bearing,
    pub(super) weight: Weight,
    pub(super) technique: Option<&'static str>,
}

/// True if a person is probably behind it: a program with an old password tries one account, slowly.
pub(super) const fn pursued(dense: u64, tried: u64) -> bool {
    dense >= 20 || tried >= 5
}

/// `dense` is the highest count in [`DENSE`] minutes, `tried` the number of accounts.
pub(super) fn judge(kind: Kind, total: u64, dense: u64, tried: u64) -> Option<Judged> {
    let against = |what, amounts_to, weight, technique| {
        Some(Judged { what, amounts_to, bearing: Bearing::Incriminating, weight, technique })
    };
    match kind {
        Kind::Guess => {
            let what = if total == 1 { "failed sign-in" } else { "failed sign-ins" };
            let technique = Some(if tried >= 5 { "T1110.003" } else { "T1110.001" });
            // One account alone may be a program with an old password.
            match (dense, tried) {
                (100.., 2..) => {
                    against(what, "passwords guessed at a pace that no person keeps", Weight::Decisive, technique)
                }
                (_, 5..) => against(what, "one address tried the accounts of many", Weight::Strong, technique),
                (20.., 2..) => against(what, "passwords guessed", Weight::Strong, technique),
                (10.., _) => against(
                    what,
                    "repeated, by a person who guesses or a program with an old password",
                    Weight::Moderate,
                    technique,
                ),
                _ => None,
            }
        }
        Kind::Scan => {
            let what = "requests for pages that are missing or not allowed";
            let scan = "searched through by a program";
            match dense {
                200.. => against(what, scan, Weight::Strong, Some("T1595.003")),
                50.. => against(what, scan, Weight::Moderate, Some("T1595.003")),
                _ => None,
            }
        }
        Kind::Refused if dense >= 50 => against(
            "connections that were not answered",
            "a program calls a host that does not take it",
            Weight::Moderate,
            None,
        ),
        // A tunnel uses a new name for each piece of data.
        Kind::Names if tried >= 50 => against(
            "",
            "so many names below one domain carry data or are made by a program",
            Weight::Strong,
            Some("T1071.004"),
        ),
        Kind::Refused | Kind::Repeat | Kind::Names if total >= 3 => {
            Some(Judged { what: "", amounts_to: "", bearing: Bearing::Neutral, weight: Weight::Weak, technique: None })
        }
        Kind::Refused | Kind::Repeat | Kind::Names => None,
    }
}
