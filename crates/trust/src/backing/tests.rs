use casebook_protocol::Locator;
use casebook_table::{expect_file, lines};
use serde_json::json;

use super::*;

fn call(id: &str, tool: &str, arguments: &Value, result: &str) -> ToolCall {
    ToolCall::answered(CallId::new(id).unwrap(), tool, arguments.to_string(), result.as_bytes())
}

#[test]
fn a_search_says_what_it_looked_for_where_and_what_is_left() {
    lines(&expect_file!["searches.txt"], |input| {
        let (tool, rest) = input.split_once(' ').unwrap();
        let (arguments, result) = rest.split_once(" | ").unwrap();
        let call = call("a", tool, &serde_json::from_str(arguments).unwrap(), result);
        Search::read(&call, result.as_bytes()).map_or_else(|| "none".into(), |search| search.to_string())
    });
}

fn searched(backing: &mut Backing, id: &str, arguments: &Value, result: &Value) {
    let result = result.to_string();
    backing.add(&call(id, "search", arguments, &result), result.as_bytes());
}

#[test]
fn only_names_without_any_hit_are_unfound() {
    let mut backing = Backing::default();
    let any = |names: &[&str]| json!({"terms": names, "mode": "any"});
    searched(
        &mut backing,
        "a",
        &any(&["x", "y"]),
        &json!({"total": 3, "returned": 3, "searched": ["s", "t"], "by_term": {"x": 3}}),
    );
    searched(
        &mut backing,
        "b",
        &any(&["y", "z"]),
        &json!({"total": 0, "returned": 0, "searched": ["t", "u"], "by_term": {}}),
    );
    searched(
        &mut backing,
        "c",
        &any(&["z"]),
        &json!({"total": 1, "returned": 1, "searched": ["v"], "by_term": {"z": 1}}),
    );
    let within = json!({"terms": ["w"], "from": "2026-01-01T00:00:00Z"});
    searched(&mut backing, "d", &within, &json!({"total": 0, "returned": 0, "searched": ["s"]}));
    searched(&mut backing, "e", &json!({"terms": ["p", "q"]}), &json!({"total": 0, "returned": 0, "searched": ["s"]}));
    let many: Vec<String> = (0..=LONG).map(|n| format!("a{n}")).collect();
    let found: BTreeMap<&String, u64> = many.iter().skip(1).map(|name| (name, 1)).collect();
    let result = json!({"total": LONG, "searched": ["s"], "by_term": found});
    searched(&mut backing, "f", &json!({"terms": many, "mode": "any"}), &result);
    let got: Vec<_> = backing.unfound().into_iter().map(|one| (one.name, one.sources, one.listed)).collect();
    assert_eq!(got, [("a0", 1, true), ("y", 3, false)], "not a name in a part of the time, not one with another");
}

#[test]
fn a_quotation_leads_to_its_whole_record() {
    let record = json!({"source": "s", "file": "a.log", "line": 7, "raw": "one two", "fields": {"a": "one"}});
    let result = json!({"total": 1, "records": [record]}).to_string();
    let mut backing = Backing { cited: [CallId::new("a").unwrap()].into(), ..Backing::default() };
    backing.add(&call("a", "search", &json!({}), &result), result.as_bytes());
    let at = |at| Citation::Literal { call: CallId::new("a").unwrap(), at, quote: "one".into() };
    let pointer = |text: &str| at(Locator::Pointer(text.into()));
    for text in ["/records/0", "/records/0/raw", "/records"] {
        assert_eq!(backing.record(&pointer(text)), Some(record.clone()), "{text}");
    }
    assert_eq!(backing.record(&pointer("/total")), Some(json!(1)));
    assert_eq!(backing.record(&pointer("/gone")), None);
    assert_eq!(backing.record(&at(Locator::Line(1))), Some(Value::from(result.as_str())));
    assert_eq!(backing.record(&at(Locator::Line(0))), None);
    backing.add(&call("a", "search", &json!({}), "other bytes"), b"not those");
    assert_eq!(backing.record(&pointer("/total")), Some(json!(1)), "bytes of another hash change nothing");
}
