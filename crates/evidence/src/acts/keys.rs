//! What the alerted occurrence and its cause are called in other records.

use std::collections::BTreeSet;

use serde_json::Value;

use super::kind;
use super::row::{self, Row};
use super::{KEY_MAX, KEYS_MAX, alerted};
use crate::facet::Facet;

/// Ids, paths, hashes and packages of the alerted occurrence and of the processes above it.
pub(super) fn keys<'r>(told: &alerted::Told, rows: impl Iterator<Item = &'r Row>) -> Vec<String> {
    let mut keys: BTreeSet<String> = told.ids.iter().chain(&told.names).cloned().collect();
    // Every system has them.
    keys.retain(|name| !kind::is_interpreter(name));
    for row in rows {
        keys.extend(row.own.iter().filter(|key| !key.contains('#') && !key.starts_with(row::SESSION)).cloned());
        keys.extend(row.hashes());
        keys.extend(row.script().map(str::to_owned));
        keys.extend(row.program().filter(|path| !kind::is_of_the_system(path)).map(str::to_owned));
        keys.extend(kind::packages(row));
        keys.extend([Facet::SrcIp, Facet::DstIp].iter().filter_map(|facet| row.facets.get(*facet)).map(str::to_owned));
    }
    keys.retain(|key| (3..=KEY_MAX).contains(&key.len()));
    keys.into_iter().take(KEYS_MAX).collect()
}

/// Every text and number below a value, with its path.
pub(super) fn leaves(value: &Value, path: &str, depth: u8, sink: &mut dyn FnMut(&str, String)) {
    match value {
        _ if depth > 12 => {}
        Value::Object(map) => map.iter().for_each(|(key, item)| {
            let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
            leaves(item, &path, depth + 1, sink);
        }),
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(n, item)| leaves(item, &format!("{path}.{n}"), depth + 1, sink));
        }
        Value::String(text) => sink(path, text.clone()),
        Value::Number(number) => sink(path, number.to_string()),
        Value::Bool(_) | Value::Null => {}
    }
}
