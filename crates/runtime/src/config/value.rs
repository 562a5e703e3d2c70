//! Values as people write them: times, and amounts of money.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Error, Visitor};

/// A time such as `60s`, `500ms`, `2m` or `1h`.
#[must_use]
pub fn duration(text: &str) -> Option<Duration> {
    let at = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at_checked(at)?;
    let number: u64 = number.parse().ok()?;
    let millis = match unit {
        "ms" => 1,
        "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return None,
    };
    Some(Duration::from_millis(number.checked_mul(millis)?))
}

/// Reads a [`duration`].
///
/// # Errors
/// It is none.
pub fn time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let time = duration(&String::deserialize(deserializer)?);
    time.ok_or_else(|| D::Error::custom("expected a time with its unit; write one such as 60s, 500ms or 2m"))
}

/// Reads a value, and the usual one if a key is there without a value.
///
/// # Errors
/// It has not the form of a `T`.
pub fn or_default<'de, T: Deserialize<'de> + Default, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// `name` is what a shell takes as the name of a variable.
#[must_use]
pub fn is_variable(name: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    (1..=128).contains(&name.len()) && name.bytes().all(plain) && !name.starts_with(|c: char| c.is_ascii_digit())
}

/// The largest amount that is believed as a number: more is a slip of the pen.
const MOST: f64 = 1_000_000.0;

/// Millionths of an amount such as `2.50`.
///
/// # Errors
/// It is none, or has more than six decimals.
pub fn micros(text: &str) -> Result<u64, String> {
    let wrong = || "expected an amount such as 2.50, with at most six decimals".to_owned();
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    if part.len() > 6 || !(whole.to_owned() + part).bytes().all(|b| b.is_ascii_digit()) {
        return Err(wrong());
    }
    let whole: u64 = whole.parse().map_err(|_| wrong())?;
    let part: u64 = format!("{part:0<6}").parse().map_err(|_| wrong())?;
    whole.checked_mul(1_000_000).and_then(|w| w.checked_add(part)).ok_or_else(wrong)
}

/// An amount of money in millionths, written as a number or as a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Money(pub u64);

impl<'de> Deserialize<'de> for Money {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Amount)
    }
}

impl JsonSchema for Money {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Money".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": ["number", "string"], "minimum": 0, "pattern": "^[0-9]+(\\.[0-9]{1,6})?$"})
    }
}

struct Amount;

impl Visitor<'_> for Amount {
    type Value = Money;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an amount such as 2.50")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Money, E> {
        micros(text).map(Money).map_err(E::custom)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Money, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Money, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Money, E> {
        if !(0.0..=MOST).contains(&number) {
            return Err(E::custom(format!("expected an amount from 0 to {MOST}")));
        }
        // In range by the check above: 10^12 fits both types exactly.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        Ok(Money((number * 1e6).round() as u64))
    }
}
