//! Times and amounts of money in configuration files.

use std::time::Duration;

use schemars::JsonSchema;
use serde::de::Error;
use serde::{Deserialize, Deserializer};

/// A time such as `60s`, `500ms`, `2m` or `1h`.
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

pub fn time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let time = duration(&String::deserialize(deserializer)?);
    time.ok_or_else(|| D::Error::custom("expected a time with its unit; write one such as 60s, 500ms or 2m"))
}

/// Reads a value; a key without a value has the default.
pub fn or_default<'de, T: Deserialize<'de> + Default, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// True if a shell accepts `name` as a variable name.
pub fn is_variable(name: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    (1..=128).contains(&name.len()) && name.bytes().all(plain) && !name.starts_with(|c: char| c.is_ascii_digit())
}

/// The largest amount that is accepted as a number; a larger one is probably a mistake.
const MOST: f64 = 1_000_000.0;

/// Millionths of an amount such as `2.50`, which may have six decimals.
pub fn micros(text: &str) -> Result<u64, String> {
    let expected = || "expected an amount such as 2.50, with at most six decimals".to_owned();
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    if part.len() > 6 || !(whole.to_owned() + part).bytes().all(|b| b.is_ascii_digit()) {
        return Err(expected());
    }
    let whole: u64 = whole.parse().map_err(|_| expected())?;
    let part: u64 = format!("{part:0<6}").parse().map_err(|_| expected())?;
    whole.checked_mul(1_000_000).and_then(|w| w.checked_add(part)).ok_or_else(expected)
}

/// An amount of money in millionths, written as a number or as a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(try_from = "Amount")]
#[schemars(inline, !try_from, extend("type" = ["number", "string"], "minimum" = 0, "pattern" = "^[0-9]+(\\.[0-9]{1,6})?$"))]
pub struct Money(#[schemars(with = "serde_json::Value")] pub u64);

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected an amount such as 2.50, with at most six decimals")]
enum Amount {
    Number(f64),
    Text(String),
}

impl TryFrom<Amount> for Money {
    type Error = String;

    fn try_from(amount: Amount) -> Result<Self, String> {
        match amount {
            Amount::Text(text) => micros(&text).map(Self),
            // The range check above makes the cast exact.
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            Amount::Number(number) if (0.0..=MOST).contains(&number) => Ok(Self((number * 1e6).round() as u64)),
            Amount::Number(_) => Err(format!("expected an amount from 0 to {MOST}")),
        }
    }
}
