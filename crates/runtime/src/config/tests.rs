use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use serde::Deserialize;
use serde_json::json;

use super::*;

fn read(form: Form, text: &str) -> Result<Value, String> {
    Source::new(form, Path::new("f"), text).read().map_err(|faults| faults.to_string())
}

fn json(text: &str) -> Result<Value, String> {
    read(Form::Json, text)
}

#[test]
fn a_path_is_found_at_its_line() {
    let check = |form: Form, text: &str, lines: &[(&[&str], usize)]| {
        for (path, line) in lines {
            assert_eq!(Source::new(form, Path::new("f"), text).fault(path, "").line, *line, "{form:?} {path:?}");
        }
    };
    let text = "a: 1\nb:\n  - x\n  - y: [p,\n      q]\n\"c\":\n  d: &x {e: 1}\n  f: *x\n7: on\n";
    let lines: &[(&[&str], usize)] = &[
        (&["a"], 1),
        (&["b"], 2),
        (&["b", "1"], 4),
        (&["b", "9"], 2),
        (&["c", "f"], 8),
        (&["c", "gone"], 6),
        (&["7"], 9),
        (&["gone"], 1),
        (&[], 1),
    ];
    check(Form::Yaml, text, lines);
    check(Form::Yaml, "\u{feff}a: 1\r\nb: 2\r\n", &[(&["b"], 2)]);
    let text = "// head\n{\n\t\"a\": 1, /* two\n lines */ \"b\": [\n\t\t\"x\",\n\t\t{\"y\": null,},\n\t],\n}\n";
    check(Form::Json, text, &[(&["a"], 3), (&["b"], 4), (&["b", "0"], 5), (&["b", "1"], 6)]);
    let text = "a = 1\n[b.c]\nd = [\n  1,\n  2,\n]\n[b]\ne = { f = 1 }\n";
    let lines: &[(&[&str], usize)] =
        &[(&["a"], 1), (&["b", "c"], 2), (&["b", "c", "d", "1"], 5), (&["b", "e", "f"], 8), (&["b", "e", "x"], 8)];
    check(Form::Toml, text, lines);
}

#[test]
fn a_text_that_is_not_of_its_form_is_refused_without_its_content() {
    let check = |form: Form, text: &str, wants: &[&str]| {
        let got = read(form, text).expect_err(text);
        for want in wants {
            assert!(got.contains(want), "{want:?} is not in {got:?}");
        }
        assert!(!got.contains("hunter2"), "{got}");
    };
    check(Form::Yaml, "a: 1\nb: hunter2\na: 2\n", &["f:3: ", "a: this key is here a second time"]);
    check(Form::Yaml, "a: &x {k: 1}\nb:\n  <<: *x\n", &["f:3: ", "merge keys"]);
    check(Form::Yaml, "a: 1\n---\nb: 2\n", &["f:", "one document"]);
    check(Form::Yaml, "a: [1, hunter2\nb: 2\n", &["f:"]);
    check(Form::Yaml, "a:\n\t- hunter2\n", &["f:2: "]);
    check(Form::Yaml, "a: .nan\n", &["f:1: ", "finite"]);
    check(Form::Yaml, "a: !ruby/object hunter2\n", &["f:1: "]);
    check(Form::Yaml, "a: \"hunter2\0\"\n", &["f:1: "]);
    check(Form::Yaml, "a: *no\n", &["f:1: "]);
    check(Form::Json, "{\"a\": 1,\n\"a\": 2}", &["f:2: ", "a: this key is here a second time"]);
    for text in ["{\"a\": hunter2}", "{\"a\": 'hunter2'}", "{a: 1}", "", "{\"a\": 1} {}", "{\"a\": 1 /*"] {
        check(Form::Json, text, &["f:1: ", "expected JSON"]);
    }
    check(Form::Json, "{\"a\": 1e999}", &["f:1: ", "finite"]);
    check(Form::Json, "{\"a\": \"\\ud800\"}", &["f:1: "]);
    check(Form::Toml, "a = 1\nb = hunter2\n", &["f:2: "]);
    check(Form::Toml, "a = 1\na = 2\n", &["f:2: ", "duplicate key"]);
}

/// A team.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[allow(dead_code)]
struct Team {
    /// Its name, such as red.
    name: String,
    /// How many there are, such as 3.
    size: Option<u8>,
    /// A list of members, such as [ann].
    members: Option<Vec<String>>,
    /// A map of rules by name.
    rules: Option<BTreeMap<String, Rule>>,
    /// True, if it plays.
    plays: Option<bool>,
    /// What it costs.
    cost: Option<Money>,
}

/// Never the secret itself: { env: NAME }.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[allow(dead_code)]
enum Rule {
    Env(String),
    File(String),
}

#[test]
fn a_fault_of_form_says_what_to_write_in_each_form() {
    let check = |form: Form, text: &str, want: &str| {
        let got = Source::new(form, Path::new("f"), text).read::<Team>().expect_err(text).to_string();
        assert_eq!(got, format!("f:{want}"), "{text}");
    };
    for (yaml, toml, want) in [
        ("name: a\nsise: 3", "name = 'a'\nsise = 3", "2: sise: unknown key; write size"),
        (
            "name: a\nx: 3",
            "name = 'a'\nx = 3",
            "2: x: unknown key; write one of name, size, members, rules, plays, cost",
        ),
        ("size: 3", "size = 3", "1: name: is missing; write its name, such as red"),
        (
            "name: a\nsize: hunter2",
            "name = 'a'\nsize = 'hunter2'",
            "2: size: expected a whole number in its range; write how many there are, such as 3",
        ),
        (
            "name: a\nsize: 300",
            "name = 'a'\nsize = 300",
            "2: size: expected a whole number in its range; write how many there are, such as 3",
        ),
        (
            "name: a\nmembers: hunter2",
            "name = 'a'\nmembers = 'hunter2'",
            "2: members: expected a list; write a list of members, such as [ann]",
        ),
        ("name: [a]", "name = ['hunter2']", "1: name: expected a text; write its name, such as red"),
        (
            "name: a\nrules: hunter2",
            "name = 'a'\nrules = 'hunter2'",
            "2: rules: expected a map; write a map of rules by name",
        ),
        (
            "name: a\nrules:\n  x: hunter2",
            "name = 'a'\n[rules]\nx = 'hunter2'",
            "3: rules.x: expected one of env, file; write never the secret itself: { env: NAME }",
        ),
        (
            "name: a\nplays: hunter2",
            "name = 'a'\nplays = 'hunter2'",
            "2: plays: expected true or false; write true, if it plays",
        ),
        (
            "name: a\ncost: hunter2",
            "name = 'a'\ncost = 'hunter2'",
            "2: cost: expected an amount such as 2.50, with at most six decimals",
        ),
    ] {
        check(Form::Yaml, yaml, want);
        check(Form::Toml, toml, want);
    }
    check(Form::Yaml, "text", "1: the file: expected a map; write a team");
    check(Form::Yaml, "name: a\nrules:\n  x: {env: a, file: b}", "3: rules.x.env: expected one key alone");
}

#[test]
fn faults_of_meaning_come_together_in_order() {
    let mut check = Check::default();
    check.number("size", Some(7), 1..=3);
    check.at(&["rules"], |check| check.wrong(&["x"], "is odd"));
    check.text("name", " ", 3);
    check.text("name", "long", 3);
    let source = Source::new(Form::Yaml, Path::new("f"), "name: a\nrules:\n  x: 1\nsize: 7");
    let got = source.holds(check).unwrap_err().to_string();
    let want = "f:1: name: is empty; write a text, or leave it out\nf:1: name: is too long; write at most 3 \
                characters\nf:3: rules.x: is odd\nf:4: size: expected a number from 1 to 3";
    assert_eq!(got, want);
    assert_eq!(source.holds(Check::default()), Ok(()));
}

/// A file that grows or nests too far is refused soon.
#[test]
fn a_hostile_file_is_refused_in_little_time() {
    let check = |name: &str, form: Form, text: &str| {
        let begun = Instant::now();
        assert!(read(form, text).is_err(), "{name} must not hold");
        Source::new(form, Path::new("f"), text).fault(&["a", "b", "0"], "");
        assert!(begun.elapsed() < Duration::from_secs(5), "{name} took {:?}", begun.elapsed());
    };
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for n in 1..20 {
        let items = vec![format!("*a{}", n - 1); 10].join(", ");
        let _ = writeln!(bomb, "a{n}: &a{n} [{items}]");
    }
    check("aliases of aliases", Form::Yaml, &bomb);
    check("an alias of itself", Form::Yaml, "a: &a [*a]\n");
    check("many aliases", Form::Yaml, &format!("a: &a [{}]\nb: [{}]\n", "x,".repeat(500), "*a,".repeat(5000)));
    check("nested lists", Form::Yaml, &"[".repeat(100_000));
    check("nested maps", Form::Yaml, &"{a: ".repeat(100_000));
    check("nested blocks", Form::Yaml, &(0..2000).map(|n| " ".repeat(n % 500) + "- \n").collect::<String>());
    check("nested entries", Form::Yaml, &"- ".repeat(100_000));
    check("closed lists", Form::Yaml, &("[".repeat(40) + &"]".repeat(40)));
    check("a large text", Form::Yaml, &format!("a: \"{}\"", "x".repeat(10_000_000)));
    check("many nodes", Form::Yaml, &"- x\n".repeat(200_000));
    check("nested JSON lists", Form::Json, &"[".repeat(100_000));
    check("closed JSON lists", Form::Json, &("[".repeat(500) + &"]".repeat(500)));
    check("nested JSON objects", Form::Json, &"{\"a\":".repeat(100_000));
    check("a large JSON text", Form::Json, &format!("\"{}\"", "x".repeat(10_000_000)));
    check("nested TOML lists", Form::Toml, &format!("a = {}", "[".repeat(100_000)));
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
            for form in [Form::Yaml, Form::Json, Form::Toml] {
                let _ = read(form, &text);
                Source::new(form, Path::new("f"), &text).fault(&["a", "0", "a"], "");
            }
        }
    }

    #[test]
    fn all_json_is_read_as_it_is(a in any::<f64>(), b in any::<i64>(), text in any::<String>(), keys in prop::collection::btree_set(".{0,5}", 0..5)) {
        let mut value = json!({"f": a, "i": b, "t": text});
        value["k"] = keys.into_iter().map(|key| (key, json!([{}]))).collect::<serde_json::Map<_, _>>().into();
        for text in [value.to_string(), serde_json::to_string_pretty(&value).unwrap()] {
            // A float may be written so that another float is nearest to it: what counts is what serde_json reads.
            let expect: Value = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(json(&text).unwrap(), expect);
        }
    }
}

#[test]
fn a_time_has_a_unit() {
    for (text, millis) in [
        ("500ms", Some(500)),
        ("60s", Some(60_000)),
        ("2m", Some(120_000)),
        ("1h", Some(3_600_000)),
        ("60", None),
        ("s", None),
        ("1.5s", None),
        ("-1s", None),
        ("99999999999999999999s", None),
        ("18446744073709551615h", None),
        ("5 s", None),
    ] {
        assert_eq!(duration(text), millis.map(Duration::from_millis), "{text}");
    }
}

#[test]
fn an_amount_is_read_exactly() {
    assert_eq!(micros("2.50"), Ok(2_500_000));
    assert_eq!(micros("0.000001"), Ok(1));
    for wrong in ["", "-1", "1.2.3", "1e3", "0.0000001", "99999999999999999999"] {
        assert!(micros(wrong).is_err(), "{wrong}");
    }
    let money = |text: &str| yaml_money(text).map(|money| money.0);
    for (text, want) in [("2.50", 2_500_000), ("'2.50'", 2_500_000), ("3", 3_000_000), ("0.000001", 1)] {
        assert_eq!(money(text), Some(want), "{text}");
    }
    for wrong in ["-1", "-0.5", "1e7", ".nan", "free", "[]"] {
        assert_eq!(money(wrong), None, "{wrong}");
    }
}

fn yaml_money(text: &str) -> Option<Money> {
    Source::new(Form::Yaml, Path::new("f"), text).read().ok()
}
