//! The limits that a person gives one investigation.

use casebook_protocol::Budget;
use serde::de::Error;
use serde::{Deserialize, Deserializer};

/// Each is a limit of the server unless given. A limit may be lower than that of the server, never higher.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Millionths of the currency in which prices are given.
    #[serde(deserialize_with = "number")]
    pub cost_micros: Option<u64>,
    /// Working time.
    #[serde(deserialize_with = "number")]
    pub seconds: Option<u64>,
    #[serde(deserialize_with = "number")]
    pub rounds: Option<u32>,
}

/// A whole number from 1, which may be written as `60.0`; `null` is refused.
pub(crate) fn number<'de, D: Deserializer<'de>, T: TryFrom<u64>>(from: D) -> Result<Option<T>, D::Error> {
    let given = serde_json::Number::deserialize(from)?;
    // In bounds: a larger number is above every limit.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let whole = given.as_u64().or_else(|| given.as_f64().filter(|n| n.fract() == 0.0 && *n >= 0.0).map(|n| n as u64));
    let whole = whole.filter(|n| *n > 0).and_then(|n| T::try_from(n).ok());
    whole.map(Some).ok_or_else(|| Error::custom(format!("expected a whole number from 1, got {given}")))
}

impl Limits {
    /// The limits that a form gives; an empty field gives none.
    ///
    /// # Errors
    /// What is wrong with the field.
    pub fn of_form(cost: &str, minutes: &str) -> Result<Self, String> {
        let cost =
            given(cost).map(|text| text.parse::<f64>().ok().filter(|cost| (0.0..1e9).contains(cost)).ok_or(text));
        let cost = cost.transpose().map_err(|text| format!("cost: expected a number such as 2.50, got {text:?}"))?;
        let minutes = given(minutes).map(|text| text.parse::<u64>().map_err(|_| text)).transpose();
        let minutes = minutes.map_err(|text| format!("minutes: expected a whole number, got {text:?}"))?;
        // In bounds: the cost was compared above.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let micros = cost.map(|cost| (cost * 1e6).round() as u64);
        Ok(Self { cost_micros: micros, seconds: minutes.map(|minutes| minutes.saturating_mul(60)), rounds: None })
    }

    /// # Errors
    /// The field that is 0 or above the server's limit, as a JSON pointer below `limits`.
    pub fn within(&self, most: &Budget) -> Result<Budget, String> {
        let cost_micros = at_most("cost_micros", self.cost_micros, most.cost_micros)?;
        let seconds = at_most("seconds", self.seconds, most.seconds)?;
        let rounds = at_most("rounds", self.rounds.map(u64::from), most.rounds.into())?;
        let rounds = u32::try_from(rounds).unwrap_or(most.rounds);
        Ok(Budget { cost_micros, seconds, rounds, ..*most })
    }
}

fn given(text: &str) -> Option<&str> {
    Some(text.trim()).filter(|text| !text.is_empty())
}

fn at_most(name: &str, wanted: Option<u64>, most: u64) -> Result<u64, String> {
    match wanted {
        None => Ok(most),
        Some(wanted) if (1..=most).contains(&wanted) => Ok(wanted),
        Some(wanted) => {
            Err(format!("/limits/{name}: expected a number from 1 to {most}, the limit of the server, got {wanted}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_person_may_lower_a_limit_and_not_raise_it() {
        let most = Budget { cost_micros: 5_000_000, seconds: 3_600, rounds: 10, ..Budget::default() };
        let limits = Limits::of_form(" 2.50", "30").unwrap();
        let within = limits.within(&most).unwrap();
        assert_eq!(within, Budget { cost_micros: 2_500_000, seconds: 1_800, ..most });
        assert_eq!(Limits::of_form("", " ").unwrap().within(&most), Ok(most));
        for (cost, minutes) in [("5.01", ""), ("0", ""), ("", "61"), ("", "0"), ("", "18446744073709551615")] {
            assert!(Limits::of_form(cost, minutes).unwrap().within(&most).is_err(), "{cost} {minutes}");
        }
        for (cost, minutes) in
            [("-1", ""), ("NaN", ""), ("inf", ""), ("1e99", ""), ("2,50", ""), ("", "1.5"), ("", "-1")]
        {
            assert!(Limits::of_form(cost, minutes).is_err(), "{cost} {minutes}");
        }
        let more = Limits { rounds: Some(11), ..Limits::default() };
        assert_eq!(
            more.within(&most),
            Err("/limits/rounds: expected a number from 1 to 10, the limit of the server, got 11".to_owned())
        );
    }
}
