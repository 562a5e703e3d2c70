//! Arithmetic over values in recorded results. The same call gives the same value, so that code can check a citation of it.

use std::collections::{BTreeMap, BTreeSet};

use casebook_protocol::{Timestamp, apart, one_line};
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Calculation {
    op: Op,
    pub(super) values: Vec<Place>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Place {
    pub(super) call: String,
    at: String,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Op {
    Sum,
    Difference,
    Ratio,
    Duration,
    Rate,
}

impl Calculation {
    /// The answer, given the text of each result. Errors are messages for the caller.
    pub(super) fn computed(&self, results: &BTreeMap<String, String>) -> Result<String, String> {
        let read = |text: &String| serde_json::from_str(text).map_err(|_| "that result is not JSON".to_owned());
        let results: BTreeMap<&str, Value> =
            results.iter().map(|(call, text)| Ok((call.as_str(), read(text)?))).collect::<Result<_, String>>()?;
        let mut values = Vec::new();
        let mut searched = BTreeSet::new();
        for place in &self.values {
            let result = results.get(place.call.as_str()).ok_or("that call has no result")?;
            let at = one_line(&place.at, 80);
            let value =
                result.pointer(&place.at).ok_or_else(|| format!("there is nothing at {at:?} in {}", place.call))?;
            searched.extend(sources(result, &place.at));
            values.push(value);
        }
        let value = self.op.of(&values)?;
        let of: Vec<Value> = self
            .values
            .iter()
            .zip(&values)
            .map(|(place, value)| json!({"call": place.call, "at": place.at, "value": value}))
            .collect();
        let answer = json!({"value": value, "of": of, "searched": searched});
        Ok(casebook_protocol::hash::canonical_json(&answer))
    }
}

/// The sources of a result: those that its query searched, or that of the record at the place.
fn sources(result: &Value, at: &str) -> Vec<String> {
    if let Some(searched) = result.get("searched").and_then(Value::as_array) {
        return searched.iter().filter_map(Value::as_str).map(str::to_owned).collect();
    }
    let mut parts = at.split('/').skip(1);
    let record = parts.next().zip(parts.next()).and_then(|(list, n)| result.pointer(&format!("/{list}/{n}/source")));
    record.or_else(|| result.get("source")).and_then(Value::as_str).map(str::to_owned).into_iter().collect()
}

impl Op {
    fn of(self, values: &[&Value]) -> Result<Value, String> {
        match (self, values) {
            (Self::Sum, all) => all.iter().try_fold(0.0, |sum, value| Ok(sum + number(value)?)).map(rounded),
            (Self::Difference, [a, b]) => Ok(rounded(number(a)? - number(b)?)),
            (Self::Ratio, [a, b]) => Ok(rounded(divided(number(a)?, number(b)?)?)),
            (Self::Duration, [a, b]) => Ok(rounded(seconds(a, b)?)),
            (Self::Rate, [n, a, b]) => Ok(rounded(divided(number(n)? * 3600.0, seconds(a, b)?)?)),
            (Self::Rate, _) => Err("rate needs a number and two times".to_owned()),
            (Self::Difference | Self::Ratio | Self::Duration, _) => Err("this needs two values".to_owned()),
        }
    }
}

fn number(value: &Value) -> Result<f64, String> {
    let read = value.as_f64().or_else(|| value.as_str()?.trim().parse().ok()).filter(|n: &f64| n.is_finite());
    read.ok_or_else(|| format!("expected a number, got {}", one_line(&value.to_string(), 80)))
}

fn seconds(a: &Value, b: &Value) -> Result<f64, String> {
    let time = |value: &Value| {
        let read: Option<Timestamp> = value.as_str().and_then(|text| text.parse().ok());
        read.ok_or_else(|| format!("expected a time, got {}", one_line(&value.to_string(), 80)))
    };
    Ok(apart(time(a)?, time(b)?))
}

fn divided(a: f64, b: f64) -> Result<f64, String> {
    if b == 0.0 { Err("expected a divisor other than 0".to_owned()) } else { Ok(a / b) }
}

/// A whole number as such, others with three decimals.
#[allow(clippy::cast_possible_truncation, reason = "checked to be small and whole")]
fn rounded(value: f64) -> Value {
    let value = (value * 1000.0).round() / 1000.0;
    if value.fract() == 0.0 && value.abs() < 9e15 { json!(value as i64) } else { json!(value) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn computed(op: &str, places: &[&str]) -> Result<Value, String> {
        let result = json!({"searched": ["a"], "total": 7, "groups": [
            {"count": 5, "first_time": "2026-01-01T10:00:00Z", "last_time": "2026-01-01T12:00:00.5Z"},
            {"count": 2, "value": "80"}]});
        let values: Vec<Value> = places.iter().map(|at| json!({"call": "c", "at": at})).collect();
        let asked: Calculation = serde_json::from_value(json!({"op": op, "values": values})).unwrap();
        let answer = asked.computed(&BTreeMap::from([("c".to_owned(), result.to_string())]))?;
        let answer: Value = serde_json::from_str(&answer).unwrap();
        assert_eq!(answer["searched"], json!(["a"]));
        Ok(answer["value"].clone())
    }

    #[test]
    fn value_is_computed_or_the_fault_is_said() {
        let [n, m, from, to] = ["/groups/0/count", "/groups/1/count", "/groups/0/first_time", "/groups/0/last_time"];
        assert_eq!(computed("sum", &[n, m, "/groups/1/value"]), Ok(json!(87)));
        assert_eq!(computed("difference", &[m, n]), Ok(json!(-3)));
        assert_eq!(computed("ratio", &[m, "/total"]), Ok(json!(0.286)));
        assert_eq!(computed("duration", &[to, from]), Ok(json!(7200.5)));
        assert_eq!(computed("rate", &[n, from, to]), Ok(json!(2.5)));
        let fault = |op: &str, places: &[&str]| computed(op, places).unwrap_err();
        assert!(fault("sum", &[n, from]).starts_with("expected a number, got"));
        assert!(fault("duration", &[n, from]).starts_with("expected a time, got"));
        assert!(fault("rate", &[n, from]).contains("two times") && fault("rate", &[n, from, from]).contains("divisor"));
        assert!(fault("sum", &[n, "/nowhere"]).starts_with("there is nothing at \"/nowhere\""));
    }
}
