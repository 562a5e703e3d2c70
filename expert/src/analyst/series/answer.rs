//! Results of queries about the series.

use std::collections::BTreeMap;

use casebook_agent::reasoner::{CallRequest, Done};
use casebook_protocol::{CallStatus, Citation, Locator, Timestamp};
use serde_json::Value;

use super::judged::DENSE;

pub(super) struct Answer<'d> {
    pub(super) done: &'d Done,
    json: Value,
}

pub(super) fn answer<'d>(request: &CallRequest, done: &'d [Done]) -> Option<Answer<'d>> {
    let same = |d: &&Done| {
        d.call.tool == request.tool && d.call.arguments == request.arguments && d.call.status == CallStatus::Answered
    };
    let done = done.iter().find(same)?;
    Some(Answer { json: serde_json::from_str(&done.result).ok()?, done })
}

impl Answer<'_> {
    pub(super) fn number(&self, key: &str) -> Option<u64> {
        self.json.get(key)?.as_u64()
    }

    pub(super) fn cited(&self, key: &str) -> Option<Citation> {
        let at = Locator::Pointer(format!("/{key}"));
        Some(Citation::Count { call: self.done.call.id.clone(), at, value: self.number(key)?, again: None })
    }

    pub(super) fn places(&self) -> impl Iterator<Item = (String, u64)> {
        self.json
            .get("records")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(|record| Some((record.get("file")?.as_str()?.to_owned(), record.get("line")?.as_u64()?)))
    }

    /// Counts for each minute since 1970.
    fn minutes(&self) -> BTreeMap<i64, u64> {
        let groups = self.json.get("groups").and_then(Value::as_array).into_iter().flatten();
        let minute = |group: &Value| {
            let at: Timestamp = group.get("value")?.as_str()?.parse().ok()?;
            Some((at.as_second().div_euclid(60), group.get("count")?.as_u64()?))
        };
        groups.filter_map(minute).collect()
    }

    /// The highest count in [`DENSE`](super::judged::DENSE) consecutive minutes.
    pub(super) fn densest(&self) -> u64 {
        let minutes = self.minutes();
        minutes.keys().map(|from| minutes.range(*from..*from + DENSE).map(|(_, n)| n).sum()).max().unwrap_or(0)
    }

    /// The count up to the minute of `at`.
    pub(super) fn until(&self, at: Timestamp) -> u64 {
        self.minutes().range(..=at.as_second().div_euclid(60)).map(|(_, n)| n).sum()
    }
}
