use std::collections::BTreeMap;

use casebook_protocol::one_line;
use serde_json::{Value, json};

use super::{Part, SHOWN, kind, search};

/// The most listed values of a field, the most frequent first.
const VALUES: usize = 50;
const VALUE: usize = 200;

pub(super) fn items(part: &Part<'_>, by: Option<&str>) -> Result<Value, String> {
    let place = if part.pointer.is_empty() { "the whole".to_owned() } else { format!("{:?}", part.pointer) };
    let place = one_line(&place, SHOWN);
    match (&part.value, by) {
        (Some(Value::Array(all)), Some(by)) => Ok(grouped(part.pointer, all, by)),
        (Some(value), Some(_)) => Err(format!("{place} is {}; `by` needs the pointer of an array", kind(value))),
        (None, Some(_)) => Err("the result is not JSON, and `by` needs an array; count a text instead".to_owned()),
        (Some(Value::Array(all)), None) => Ok(json!({"pointer": part.pointer, "items": all.len()})),
        (Some(Value::Object(map)), None) => {
            let lists =
                map.iter().filter_map(|(key, value)| Some(json!({"field": key, "items": value.as_array()?.len()})));
            Ok(json!({"pointer": part.pointer, "fields": map.len(), "lists": lists.take(VALUES).collect::<Vec<_>>()}))
        }
        (Some(Value::String(_)) | None, None) => {
            Ok(json!({"pointer": part.pointer, "lines": part.text.lines().count(), "bytes": part.text.len()}))
        }
        (Some(value), None) => Err(format!("{place} is {}: nothing to count", kind(value))),
    }
}

fn grouped(pointer: &str, items: &[Value], by: &str) -> Value {
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    let mut without = 0_u64;
    for item in items {
        let value = if by.starts_with('/') { item.pointer(by) } else { item.get(by) };
        match value {
            Some(value) => *counts.entry(written(value)).or_default() += 1,
            None => without += 1,
        }
    }
    let distinct = counts.len();
    let mut counts: Vec<(String, u64)> = counts.into_iter().collect();
    counts.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    let listed: u64 = counts.iter().take(VALUES).map(|(_, n)| n).sum();
    let values: Vec<Value> =
        counts.iter().take(VALUES).map(|(value, n)| json!({"value": one_line(value, VALUE), "items": n})).collect();
    let others = (items.len() as u64).saturating_sub(without).saturating_sub(listed);
    json!({
        "pointer": pointer, "items": items.len(), "by": by, "values": values, "distinct": distinct,
        "of_other_values": others, "without": without,
    })
}

fn written(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

pub(super) fn hits(part: &Part<'_>, needle: &str) -> Result<Value, String> {
    let hits = search::hits(&part.text, needle)?;
    let (mut lines, mut counted) = (0_u64, None);
    for (at, _) in &hits.at {
        let same = counted.is_some_and(|last| part.text.get(last..*at).is_some_and(|between| !between.contains('\n')));
        lines += u64::from(!same);
        counted = Some(*at);
    }
    Ok(json!({
        "search": needle, "pointer": part.pointer, "hits": hits.at.len(), "lines": lines, "any_case": hits.any_case,
    }))
}
