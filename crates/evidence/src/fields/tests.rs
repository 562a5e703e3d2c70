use super::*;

fn check(format: Format, text: &str, expect: &str) {
    let parsed = parse(&Shape::of(format), text.as_bytes());
    let got: Vec<_> = parsed.fields.iter().map(|(k, v)| format!("{k}={v}")).collect();
    let mark = if parsed.malformed { "malformed: " } else { "" };
    assert_eq!(format!("{mark}{}", got.join(" | ")), expect, "{text}");
}

#[test]
fn a_line_that_does_not_follow_the_format_is_read_as_text() {
    check(Format::Ndjson, "2024-01-01 10:00:00 oops", "malformed: timestamp=2024-01-01 10:00:00 | message=oops");
    check(Format::Ndjson, r#"{"a":1,"b"#, "malformed: a=1");
    check(Format::AccessLog, "x", "malformed: message=x");
}

#[test]
fn plain_lines_with_a_time() {
    check(
        Format::Plain,
        "2024-01-01 10:00:00 install foo:amd64 <none> 1.0",
        "timestamp=2024-01-01 10:00:00 | message=install foo:amd64 <none> 1.0",
    );
    check(Format::Plain, "[2024-01-01T10:00:00Z] error: x", "timestamp=2024-01-01T10:00:00Z | message=error: x");
    check(
        Format::Plain,
        "Start-Date: 2024-01-01  10:00:00",
        "Start-Date=2024-01-01  10:00:00 | timestamp=2024-01-01  10:00:00 | message=Start-Date: 2024-01-01  10:00:00",
    );
    check(Format::Plain, "#1650000000", "timestamp=1650000000 | message=#1650000000");
}

#[test]
fn a_firewall_line() {
    check(
        Format::KeyValue,
        r#"<134>date=2024-01-01 time=10:00:00 srcip=10.0.0.1 msg="a b""#,
        "date=2024-01-01 | time=10:00:00 | srcip=10.0.0.1 | msg=a b",
    );
}

#[test]
fn bytes_that_are_no_text_become_replacement_characters() {
    let parsed = parse(&Shape::of(Format::Ndjson), b"{\"a\":\"x\xff\"}");
    assert_eq!(parsed.fields, [("a".to_owned(), "x\u{fffd}".to_owned())]);
    assert!(!parsed.malformed);
}
