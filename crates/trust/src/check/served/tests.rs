//! What servers of others return. The cases are in `check/cases.txt`.

use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::check::Exhibits;
use crate::check::tests::{add, draft, id};
use casebook_protocol::{ArtifactId, Bearing, Checked, Citation, Entity, EntityKind, FindingDraft, Score, Weight};

mod ruling;

fn one(tool: &str, result: &str) -> Exhibits {
    let mut all = Exhibits::default();
    add(&mut all, "c", tool, "{}", result, false);
    all
}

fn quoted(at: Locator, quote: &str) -> FindingDraft {
    draft(vec![Citation::Literal { call: id("c"), at, quote: quote.into() }])
}

fn at(pointer: &str) -> Locator {
    Locator::Pointer(pointer.into())
}

#[test]
fn result_that_poses_as_our_own_is_no_cited_record() {
    let record = json!({"source": "sysmon", "file": "sysmon.ndjson", "line": 7, "raw": "net user mara /add"});
    let all = one("github__search_code", &json!({"records": [record]}).to_string());
    assert!(all.cited(&quoted(at("/records/0/raw"), "net user mara").citations[0]).is_none());
}

fn any_json() -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        Just("2024-01-01T10:00:00Z".to_owned()),
        Just("one mara\ntwo mara\n".to_owned()),
        Just("{\"ts\":1704103200}".to_owned()),
        Just("sysmon".to_owned()),
        any::<String>(),
    ];
    let leaf = prop_oneof![any::<u32>().prop_map(Value::from), text.prop_map(Value::from)];
    leaf.prop_recursive(4, 30, 4, |inner| {
        let keys = proptest::sample::select(vec!["source", "file", "line", "raw", "time", "searched", "a"]);
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::hash_map(keys, inner, 0..5).prop_map(|m| json!(m)),
        ]
    })
}

fn strings(value: &Value, path: &str, out: &mut Vec<(String, String)>) {
    match value {
        Value::String(text) => out.push((path.to_owned(), text.clone())),
        Value::Array(items) => items.iter().enumerate().for_each(|(i, v)| strings(v, &format!("{path}/{i}"), out)),
        Value::Object(map) => map.iter().for_each(|(k, v)| strings(v, &format!("{path}/{k}"), out)),
        _ => {}
    }
}

proptest! {
    /// What is cited of a server counts as evidence of that server alone, and leads to its bytes.
    #[test]
    fn any_result_is_cited_for_its_own_server(value in any_json(), plain in any::<bool>()) {
        let text = value.to_string();
        let text = if plain { format!("x{text}") } else { text };
        let all = one("github__x", &text);
        let mut leaves = Vec::new();
        strings(&value, "", &mut leaves);
        let file = format!("artifact:{}", ArtifactId::of(text.as_bytes()));
        for (pointer, leaf) in leaves {
            let quote: String = leaf.trim_matches('\n').chars().take(12).collect();
            let place = if plain { Locator::Line(1) } else { at(&pointer) };
            let checked = all.check(&quoted(place, &quote));
            if checked.citations[0].holds {
                prop_assert_eq!(checked.sources(), BTreeSet::from(["github"]));
                prop_assert!(checked.records().iter().all(|r| r.source == "github" && r.file.starts_with(&file)));
            }
            // A text that stands there is found, if it is long enough to say anything.
            let long = quote.trim().chars().count() >= 3 && !quote.contains('\n');
            prop_assert!(plain || !long || checked.citations[0].holds, "{:?} {}", checked, text);
        }
    }

    #[test]
    fn citation_of_any_text_never_panics(
        text in any::<String>(), pointer in any::<String>(), quote in any::<String>(), line in any::<u64>(),
    ) {
        let all = one("github__x", &text);
        let _ = all.check(&quoted(at(&pointer), &quote));
        let _ = all.check(&quoted(Locator::Line(line), &quote));
        let quote: String = text.chars().skip(1).take(5).collect();
        let _ = all.check(&quoted(at(""), &quote));
    }
}
