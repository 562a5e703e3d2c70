use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn yaml(text: &str) -> Result<Document, String> {
    Document::yaml(Path::new("f.yaml"), text).map_err(|faults| faults[0].to_string())
}

fn json(text: &str) -> Result<Document, String> {
    Document::json(Path::new("f.json"), text).map_err(|faults| faults[0].to_string())
}

#[test]
fn every_node_of_a_yaml_file_knows_its_line() {
    let document = yaml("a: 1\nb:\n  - x\n  - y: [p,\n      q]\n\"c\": |\n  one\n  two\nd: *no\n").unwrap_err();
    assert!(document.starts_with("f.yaml:9: "), "{document}");
    let document =
        yaml("a: 1\nb:\n  - x\n  - y: [p,\n      q]\n\"c\": |\n  one\n  two\nd: yes\ne:\nf: 2.5\n7: on\n").unwrap();
    let expect =
        json!({"a": 1, "b": ["x", {"y": ["p", "q"]}], "c": "one\ntwo\n", "d": "yes", "e": null, "f": 2.5, "7": "on"});
    assert_eq!(document.root().value(), expect);
    let check = |path: &[&str], line: usize| assert_eq!(document.line(path), line, "{path:?}");
    check(&["a"], 1);
    check(&["b"], 2);
    check(&["b", "0"], 3);
    check(&["b", "1", "y"], 4);
    check(&["b", "1", "y", "1"], 5);
    check(&["c"], 6);
    check(&["f"], 11);
    check(&["b", "gone"], 2);
    assert_eq!(yaml("").unwrap().root().value(), json!({}));
    assert_eq!(yaml("# nothing\n").unwrap().root().value(), json!({}));
    assert_eq!(yaml("\u{feff}a: 1\r\nb: 2\r\n").unwrap().line(&["b"]), 2);
    assert_eq!(yaml("- &x {k: v}\n- *x\n").unwrap().root().value(), json!([{"k": "v"}, {"k": "v"}]));
}

#[test]
fn every_node_of_a_json_file_knows_its_line() {
    let text = "// head\n{\n  \"a\": 1, /* two\n lines */ \"b\": [\n    \"x\",\n    {\"y\": null,},\n  ],\n}\n";
    let document = json(text).unwrap();
    assert_eq!(document.root().value(), json!({"a": 1, "b": ["x", {"y": null}]}));
    assert_eq!(document.line(&["a"]), 3);
    assert_eq!(document.line(&["b"]), 4);
    assert_eq!(document.line(&["b", "1", "y"]), 6);
    let escapes = r#"{"k": "\u00e9 \ud83d\ude00 \/ \" \\ \n", "n": [1e3, -0.5, 18446744073709551615]}"#;
    assert_eq!(json(escapes).unwrap().root().value(), serde_json::from_str::<Value>(escapes).unwrap());
}

#[test]
fn what_is_no_file_of_its_kind_is_told_with_its_line_and_without_its_content() {
    let check = |got: Result<Document, String>, wants: &[&str]| {
        let got = got.expect_err("this must not hold");
        for want in wants {
            assert!(got.contains(want), "{want:?} is not in {got:?}");
        }
        assert!(!got.contains("hunter2"), "{got}");
    };
    check(yaml("a: 1\nb: hunter2\na: 2\n"), &["f.yaml:3: ", "a: stands here a second time"]);
    check(yaml("a: &x {k: 1}\nb:\n  <<: *x\n"), &["f.yaml:3: ", "merge keys"]);
    check(yaml("a: 1\n---\nb: 2\n"), &["f.yaml:", "one document"]);
    check(yaml("a: [1, hunter2\nb: 2\n"), &["f.yaml:", "is no YAML"]);
    check(yaml("a:\n\t- hunter2\n"), &["f.yaml:2: ", "is no YAML"]);
    check(yaml("a: .nan\n"), &["f.yaml:1: ", "finite"]);
    check(yaml("a: !ruby/object hunter2\n"), &["f.yaml:1: "]);
    check(yaml("a: \"hunter2\0\"\n"), &["f.yaml:1: "]);
    check(json("{\"a\": 1,\n\"a\": 2}"), &["f.json:2: a: stands here a second time"]);
    check(json("{\"a\": hunter2}"), &["f.json:1: is no JSON"]);
    check(json("{\"a\": 'hunter2'}"), &["f.json:1: is no JSON"]);
    check(json("{\"a\": 1}\n{}"), &["f.json:2: is no JSON"]);
    check(json("{a: 1}"), &["f.json:1: is no JSON"]);
    check(json("{\"a\": 1e999}"), &["f.json:1: ", "no number"]);
    check(json("{\"a\": \"\\ud800\"}"), &["f.json:1: "]);
    check(json(""), &["f.json:1: ", "empty"]);
}

/// What grows or nests beyond measure is a fault, soon.
#[test]
fn a_hostile_file_is_refused_in_little_time() {
    let check = |name: &str, got: &dyn Fn() -> Result<Document, String>| {
        let begun = Instant::now();
        assert!(got().is_err(), "{name} must not hold");
        assert!(begun.elapsed() < Duration::from_secs(5), "{name} took {:?}", begun.elapsed());
    };
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for n in 1..20 {
        let (last, items) = (n - 1, vec![format!("*a{}", n - 1); 10].join(", "));
        let _ = writeln!(bomb, "a{n}: &a{n} [{items}] # of a{last}");
    }
    check("aliases of aliases", &|| yaml(&bomb));
    check("an alias of itself", &|| yaml("a: &a [*a]\n"));
    check("many aliases", &|| yaml(&format!("a: &a [{}]\nb: [{}]\n", "x,".repeat(500), "*a,".repeat(5000))));
    check("nested lists", &|| yaml(&"[".repeat(100_000)));
    check("nested maps", &|| yaml(&"{a: ".repeat(100_000)));
    check("nested blocks", &|| yaml(&(0..2000).map(|n| " ".repeat(n % 500) + "- \n").collect::<String>()));
    check("nested entries", &|| yaml(&"- ".repeat(100_000)));
    check("closed lists", &|| yaml(&("[".repeat(40) + &"]".repeat(40))));
    check("a large text", &|| yaml(&format!("a: \"{}\"", "x".repeat(10_000_000))));
    check("many nodes", &|| yaml(&"- x\n".repeat(200_000)));
    check("nested JSON lists", &|| json(&"[".repeat(100_000)));
    check("closed JSON lists", &|| json(&("[".repeat(500) + &"]".repeat(500))));
    check("nested JSON objects", &|| json(&"{\"a\":".repeat(100_000)));
    check("a large JSON text", &|| json(&format!("\"{}\"", "x".repeat(10_000_000))));
}

/// Pieces of which files are made.
const PIECES: [&str; 28] = [
    "a", ": ", "\n", "  ", "- ", "[", "]", "{", "}", ", ", "\"", "'", "|", ">", "&x ", "*x", "<<", "!!str ", "# ",
    "\t", "\0", "é", "---\n", "//", "/*", "\\u12", "1e9", "null",
];

proptest! {
    #[test]
    fn no_text_stops_the_reader(pieces in prop::collection::vec(prop::sample::select(&PIECES[..]), 0..40), free in ".{0,60}") {
        for text in [pieces.concat(), free] {
            let _ = yaml(&text);
            let _ = json(&text);
        }
    }

    #[test]
    fn all_json_is_read_as_it_is(a in any::<f64>(), b in any::<i64>(), text in any::<String>(), keys in prop::collection::btree_set(".{0,5}", 0..5)) {
        let mut value = json!({"f": a, "i": b, "t": text});
        value["k"] = keys.into_iter().map(|key| (key, json!([{}]))).collect::<Map<_, _>>().into();
        for text in [value.to_string(), serde_json::to_string_pretty(&value).unwrap()] {
            // A float may be written so that another float is nearest to it: what counts is what serde_json reads.
            let expect: Value = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(json(&text).unwrap().root().value(), expect);
        }
    }
}
