use proptest::prelude::*;
use serde_json::json;

use super::*;

fn listing() -> String {
    json!({"incomplete": false, "items": [
        {"id": 1, "user": {"login": "mara"}, "raw": "{\"path\":\"C:\\\\Temp\"}"},
        {"id": 2, "user": {"login": "lee"}, "raw": "x"},
        {"id": 3, "user": {"login": "mara"}, "note": "Mara's second"}]})
    .to_string()
}

const TEXT: &str = "one mara\ntwo lee\nthree mara mara\n";

fn see(text: &str, pointer: Option<&str>, what: What) -> Result<Value, String> {
    look(text, &Look { pointer: pointer.map(str::to_owned), what })
}

fn search(text: &str, pointer: Option<&str>, needle: &str) -> Value {
    see(text, pointer, What::Search { text: needle.into(), after: 0 }).unwrap()
}

fn places(found: &Value) -> Vec<&str> {
    found["hits"].as_array().unwrap().iter().map(|hit| hit["at"].as_str().unwrap()).collect()
}

#[test]
fn a_text_is_found_where_it_can_be_cited() {
    let json = listing();
    assert_eq!(places(&search(&json, None, "mara")), ["/items/0/user/login", "/items/2/user/login"]);
    assert_eq!(places(&search(&json, Some("/items/2"), "mara")), ["/items/2/user/login"]);
    for needle in [r#""path""#, "Temp", r"C:\Temp", r"C:\\Temp"] {
        let found = search(&json, None, needle);
        assert_eq!((places(&found), &found["any_case"]), (vec!["/items/0/raw"], &json!(false)), "{needle}");
    }
    let found = search(&json, None, "MARA'S");
    assert_eq!((places(&found), &found["any_case"]), (vec!["/items/2/note"], &json!(true)));
    let none = search(&json, None, "unknown");
    assert_eq!((&none["found"], &none["total"], places(&none)), (&json!(false), &json!(0), vec![]));
    let found = search(TEXT, None, "mara");
    assert_eq!(places(&found), ["line 1", "line 3", "line 3"]);
    let inside = search(&json!({"content": TEXT}).to_string(), Some("/content"), "mara");
    assert_eq!(places(&inside), ["/content"; 3]);
    assert_eq!(inside["hits"][2]["line"], 3);
}

#[test]
fn a_search_goes_on_where_it_ended() {
    let text = "ab ".repeat(100);
    let from = |after| see(&text, None, What::Search { text: "ab".into(), after }).unwrap();
    let first = from(0);
    assert_eq!((&first["total"], &first["next_after"]), (&json!(100), &json!(60)));
    assert_eq!(from(60)["hits"][0]["offset"], 60);
    assert_eq!(from(297)["next_after"], Value::Null);
}

#[test]
fn lines_are_numbered_and_go_on() {
    let shown = see(TEXT, None, What::Lines { from: 2, to: Some(9) }).unwrap();
    let expect = json!([{"line": 2, "text": "two lee"}, {"line": 3, "text": "three mara mara"}]);
    assert_eq!((&shown["lines"], &shown["of"], &shown["next_line"]), (&expect, &json!(3), &Value::Null));
    let wrapped = json!({"content": TEXT}).to_string();
    assert_eq!(see(&wrapped, Some("/content"), What::Lines { from: 2, to: None }).unwrap()["lines"], expect);
    let long: String = (1..=2000).map(|n| format!("line {n}\n")).collect();
    let shown = see(&long, None, What::Lines { from: 5, to: None }).unwrap();
    let next = shown["next_line"].as_u64().unwrap();
    assert_eq!(shown["lines"].as_array().unwrap().len() as u64, next - 5);
    let wide = format!("a\n{}\nb", "é".repeat(5000));
    let shown = see(&wide, None, What::Lines { from: 2, to: Some(2) }).unwrap();
    assert_eq!((&shown["lines"][0]["cut"], &shown["lines"][0]["offset"]), (&json!(true), &json!(2)));
    for (from, to) in [(0, None), (4, None), (3, Some(2))] {
        let why = see(TEXT, None, What::Lines { from, to }).unwrap_err();
        assert!(why.contains("expected lines from 1 to 3"), "{why}");
    }
}

#[test]
fn a_value_is_shown_or_said_how_to_go_on() {
    let json = listing();
    assert_eq!(see(&json, Some("/items/1/user"), What::Value).unwrap()["value"], json!({"login": "lee"}));
    let many = json!({"items": vec![json!({"n": 1}); 9000]}).to_string();
    let shown = see(&many, Some("/items"), What::Value).unwrap();
    assert_eq!((&shown["shape"], &shown["cut"]), (&json!("[9000 × {n: number}]"), &json!(true)));
    let next = usize::try_from(shown["next_offset"].as_u64().unwrap()).unwrap();
    let more = see(&many, Some("/items"), What::Piece { offset: next, length: Some(7) }).unwrap();
    let all = serde_json::to_string(&vec![json!({"n": 1}); 9000]).unwrap();
    assert_eq!(more["text"].as_str().unwrap(), &all[next..next + 7]);
}

#[test]
fn what_is_counted_is_told_by_value() {
    let json = listing();
    let count = |pointer, by: Option<&str>| see(&json, pointer, What::Count { by: by.map(str::to_owned) });
    assert_eq!(count(Some("/items"), None).unwrap(), json!({"pointer": "/items", "items": 3}));
    let by = count(Some("/items"), Some("/user/login")).unwrap();
    assert_eq!(by["values"], json!([{"value": "mara", "items": 2}, {"value": "lee", "items": 1}]));
    let by = count(Some("/items"), Some("note")).unwrap();
    assert_eq!((&by["without"], &by["distinct"]), (&json!(2), &json!(1)));
    assert_eq!(count(None, None).unwrap()["lists"], json!([{"field": "items", "items": 3}]));
    let hits = see(TEXT, None, What::CountText { text: "mara".into() }).unwrap();
    assert_eq!((&hits["hits"], &hits["lines"]), (&json!(3), &json!(2)));
    assert_eq!(see(TEXT, None, What::Count { by: None }).unwrap()["lines"], 3);
}

#[test]
fn an_error_says_what_stands_there() {
    let json = listing();
    let check = |pointer: &str, what: What, expect: &str| {
        let why = see(&json, Some(pointer), what).unwrap_err();
        assert_eq!(why, expect);
    };
    check("/items/7", What::Value, "\"/items/7\" does not exist: \"/items\" is an array of 3 items, from 0");
    check("/x/y", What::Value, "\"/x/y\" does not exist: the whole is an object with the fields incomplete, items");
    check("items", What::Value, "expected a JSON pointer such as /items/0, got \"items\"");
    let by = || What::Count { by: Some("id".into()) };
    check(
        "/items/0",
        by(),
        "\"/items/0\" is an object with the fields id, user, raw; `by` needs the pointer of an array",
    );
    check("/items/0/id", What::Count { by: None }, "\"/items/0/id\" is a number: nothing to count");
    let why = see(TEXT, Some("/a"), What::Value).unwrap_err();
    assert_eq!(why, "the result is not JSON but a text of 3 lines; leave out the pointer and give lines");
    let why = see(TEXT, None, What::Piece { offset: 99, length: None }).unwrap_err();
    assert_eq!(why, "expected an offset up to 33, got 99");
}

#[test]
fn the_shape_is_one_line_however_deep_or_wide() {
    let deep = (0..40).fold(json!(1), |inner, _| json!({"a": [inner]}));
    assert_eq!(shape(&deep), "{a: [1 × {a: [1 × {a: [1]}]}]}");
    let wide: Value =
        (0..200).map(|n| (format!("field-{n:03}"), json!(null))).collect::<serde_json::Map<_, _>>().into();
    assert!(shape(&wide).ends_with(", and 188 more}"), "{}", shape(&wide));
    assert_eq!(shape(&json!({"obey me": 1, "<b>": [], "ok": true})), "{?: number, ?: [0], ok: true/false}");
}

#[test]
fn five_megabytes_are_looked_into() {
    let items: Vec<Value> = (0..50_000).map(|n| json!({"n": n, "raw": "x".repeat(80)})).collect();
    let text = json!({"items": items}).to_string();
    assert!(text.len() > 5_000_000);
    assert_eq!(places(&search(&text, None, "\"n\":49999")), ["/items/49999/n"]);
    let shown = see(&text, Some("/items/49999"), What::Value).unwrap();
    assert_eq!(shown["value"]["n"], 49_999);
    assert!(see(&text, None, What::Value).unwrap().to_string().len() < 2 * PAGE);
}

#[test]
fn result_tools_come_once_and_never_alone() {
    let toolset = |names: &[&str]| casebook_protocol::Toolset {
        name: "t".into(),
        about: String::new(),
        tools: names.iter().map(|name| casebook_protocol::ToolSpec::new(name, "", "{}", false)).collect(),
    };
    let names = |set: casebook_protocol::Toolset| set.tools.into_iter().map(|t| t.name).collect::<Vec<_>>();
    let all = ["search", "calculate", "get_result"];
    assert_eq!(names(with(toolset(&["search"]))), all);
    assert_eq!(names(with(with(toolset(&["search"])))), all);
    assert_eq!(names(with(toolset(&[]))), Vec::<String>::new());
    for tool in with(toolset(&["search"])).tools.iter().skip(1) {
        assert!(tool.repeatable && serde_json::from_str::<Value>(&tool.input_schema).is_ok(), "{}", tool.name);
    }
}

proptest! {
    /// Pieces put together are the whole, whatever their length.
    #[test]
    fn pieces_are_whole_characters_and_miss_nothing(text in "[a-zé\u{1f600}\n]{0,60}", length in 1usize..9) {
        let (mut offset, mut joined) = (Some(0), String::new());
        while let Some(at) = offset {
            let piece = see(&text, None, What::Piece { offset: at, length: Some(length) }).unwrap();
            joined.push_str(piece["text"].as_str().unwrap());
            offset = piece["next_offset"].as_u64().map(|n| usize::try_from(n).unwrap());
        }
        prop_assert_eq!(joined, text);
    }

    #[test]
    fn no_look_into_any_text_panics(
        text in any::<String>(), pointer in proptest::option::of("[/a0~]{0,4}"), needle in any::<String>(), n in any::<usize>(),
    ) {
        for text in [text.clone(), json!({"a": [text]}).to_string()] {
            for what in [
                What::Value,
                What::Piece { offset: n, length: Some(n) },
                What::Lines { from: n as u64, to: Some(n as u64) },
                What::Search { text: needle.clone(), after: n },
                What::Count { by: Some(needle.clone()) },
                What::CountText { text: needle.clone() },
            ] {
                let _ = see(&text, pointer.as_deref(), what);
            }
        }
    }
}
