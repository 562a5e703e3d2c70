use super::*;

fn check(text: &str, whole: bool, expect: &[(&str, &str)]) {
    let mut got = Vec::new();
    let outcome = flatten(text, "", &mut |p, v| got.push((p.to_owned(), v.into_owned())));
    let got: Vec<_> = got.iter().map(|(p, v)| (p.as_str(), v.as_str())).collect();
    assert_eq!(got, expect, "{text}");
    assert_eq!(outcome == Outcome::Whole, whole, "{text}");
}

#[test]
fn leaves_by_path() {
    check(
        r#"{"a":{"b":[1,"x",null]},"c":true,"":0}"#,
        true,
        &[("a.b.0", "1"), ("a.b.1", "x"), ("c", "true"), ("", "0")],
    );
    check(r#"{"s":"a\"\\\/\n\u00e9\ud83d\ude00\ud800"}"#, true, &[("s", "a\"\\/\né😀\u{fffd}")]);
}

#[test]
fn numbers_keep_their_text() {
    check(
        r#"{"a":1588205199.824370123,"b":1e999,"c":3600.0,"d":123456789012345678901234567890}"#,
        true,
        &[("a", "1588205199.824370123"), ("b", "1e999"), ("c", "3600.0"), ("d", "123456789012345678901234567890")],
    );
}

#[test]
fn a_key_that_occurs_twice_is_there_twice() {
    check(r#"{"user":"root","user":"guest"}"#, true, &[("user", "root"), ("user", "guest")]);
}

#[test]
fn what_stands_before_an_error_is_kept() {
    check(r#"{"a":1,"b":"cut"#, false, &[("a", "1")]);
    check(r#"{"a":1} trailing"#, false, &[("a", "1")]);
    check("", false, &[]);
    check("{\"a\":\"nul \u{0} in\"}", true, &[("a", "nul \u{0} in")]);
    check(r#"{"a":01x}"#, false, &[]);
}

#[test]
fn nesting_without_end_is_bounded() {
    let deep = format!("{}1{}", "[".repeat(200_000), "]".repeat(200_000));
    let mut values = Vec::new();
    let outcome = flatten(&deep, "", &mut |_, v| values.push(v.len()));
    assert_eq!(outcome, Outcome::Whole);
    assert_eq!(values, [2 * (200_000 - DEPTH_MAX) + 1]);
    assert_eq!(flatten(&"{\"a\":".repeat(200_000), "", &mut |_, _| {}), Outcome::Broken);
}
