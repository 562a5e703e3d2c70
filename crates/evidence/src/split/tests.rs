use super::*;

/// Lists the records as `line:offset:text` and then the tally as lines/blank/format.
fn check(text: &[u8], cut: &Cut, expect: &[&str], tally: (u64, u64, u64)) {
    let mut cutter = Cutter::new(text, cut, 0, 1);
    let mut bytes = Vec::new();
    let mut got = Vec::new();
    while let Some(piece) = cutter.next(&mut bytes).unwrap() {
        let start = usize::try_from(piece.offset).unwrap();
        let end = start + usize::try_from(piece.length).unwrap();
        assert_eq!(&text[start..end], bytes, "the bytes are those of the file");
        let mark = if piece.broken { "!" } else { "" };
        got.push(format!("{}{mark} {}", piece.line, String::from_utf8_lossy(&bytes)));
    }
    assert_eq!(got, expect);
    let t = cutter.tally();
    assert_eq!((t.lines, t.blank, t.format), tally);
}

fn lines(header: bool, comments: bool, join: Join) -> Cut {
    Cut::Lines(Lines { header, comments, join })
}

#[test]
fn lines_with_blank_ones_and_both_ends() {
    let plain = lines(false, false, Join::Never);
    check(b"a\r\n\r\n  \nb\nc", &plain, &["1 a", "4 b", "5 c"], (5, 2, 0));
    check(b"", &plain, &[], (0, 0, 0));
    check(b"\n", &plain, &[], (1, 1, 0));
    check(b"a\0b\n", &plain, &["1 a\0b"], (1, 0, 0));
}

#[test]
fn headers_and_comments_belong_to_the_format() {
    check(b"#fields a\n1\n#close\n", &lines(false, true, Join::Never), &["2 1"], (3, 0, 2));
    check(b"a,b\n1,\"x\ny\"\n2,z\n", &lines(true, false, Join::Quotes), &["2 1,\"x\ny\"", "4 2,z"], (4, 0, 1));
}

#[test]
fn a_quote_without_an_end_costs_one_line() {
    let mut text = b"h\n1,\"x\n".to_vec();
    for i in 0..600 {
        text.extend_from_slice(format!("{i}\n").as_bytes());
    }
    let mut cutter = Cutter::new(&text[..], &lines(true, false, Join::Quotes), 0, 1);
    let (mut bytes, mut pieces) = (Vec::new(), Vec::new());
    while let Some(piece) = cutter.next(&mut bytes).unwrap() {
        pieces.push((piece.line, piece.broken));
    }
    assert_eq!(pieces.len(), 601);
    assert_eq!(pieces[0], (2, true));
    assert!(pieces[1..].iter().all(|(_, broken)| !broken));
    assert_eq!(cutter.tally().lines, 602);
}

#[test]
fn events_over_several_lines() {
    check(
        b"<?xml?>\n<Events>\n<Event>\n<a/>\n</Event>\n<Event><b/></Event>\n</Events>\n",
        &lines(false, false, Join::Events),
        &["3 <Event>\n<a/>\n</Event>", "6 <Event><b/></Event>"],
        (7, 0, 3),
    );
}

#[test]
fn a_line_of_fifty_megabytes_is_one_oversize_record() {
    let mut text = b"first\n".to_vec();
    text.resize(50 << 20, b'x');
    text.extend_from_slice(b"\nlast\n");
    let mut cutter = Cutter::new(&text[..], &lines(false, false, Join::Never), 0, 1);
    let mut bytes = Vec::new();
    assert_eq!(cutter.next(&mut bytes).unwrap().unwrap().length, 5);
    let big = cutter.next(&mut bytes).unwrap().unwrap();
    assert!(big.oversize);
    assert_eq!((big.length, bytes.len()), ((50 << 20) - 6, OVERSIZE_KEPT));
    assert!(bytes.capacity() <= 2 * RECORD_MAX + 2);
    assert_eq!(cutter.next(&mut bytes).unwrap().unwrap().line, 3);
}

#[test]
fn json_arrays() {
    let array = Cut::Json(JsonPlace::Array(vec![]));
    check(
        b"[{\"a\":\"]}\\\"\"},\n {\"b\":[1]}, 5, \"x\"]\n",
        &array,
        &["1 {\"a\":\"]}\\\"\"}", "2 {\"b\":[1]}", "2 5", "2 \"x\""],
        (2, 0, 0),
    );
    check(b"[\n{},\n{\"cut\":1", &array, &["2 {}", "3! {\"cut\":1"], (3, 0, 1));
    check(b"[]", &array, &[], (1, 0, 1));
    let records = Cut::Json(JsonPlace::Array(vec!["Records".into()]));
    check(
        b"{\"x\":[{\"no\":1}],\"Records\":[{\"a\":1},{\"Records\":[{}]}],\"y\":[1]}",
        &records,
        &["1 {\"a\":1}", "1 {\"Records\":[{}]}"],
        (1, 0, 0),
    );
    check(b"{\"Records\":[{}]}\n\n{\"Records\":[{}]}\n", &records, &["1 {}", "3 {}"], (3, 1, 0));
    let hits = Cut::Json(JsonPlace::Array(vec!["hits".into(), "hits".into()]));
    check(b"{\"hits\":{\"total\":1,\"hits\":[{\"a\":1}]}}", &hits, &["1 {\"a\":1}"], (1, 0, 0));
}

#[test]
fn json_objects_over_several_lines() {
    check(
        b"{\n \"a\": 1\n}\njunk\n{\n}\n",
        &Cut::Json(JsonPlace::Top),
        &["1 {\n \"a\": 1\n}", "4! junk", "5 {\n}"],
        (6, 0, 0),
    );
    check(
        b"[\n {\"a\": \"no end\n}, {\"b\": 1}\n]",
        &Cut::Json(JsonPlace::Array(vec![])),
        &["2! {\"a\": \"no end\n}", "3 {\"b\": 1}"],
        (4, 0, 2),
    );
}

#[test]
fn a_record_of_configuration_manager_ends_where_the_next_begins() {
    let log = Cut::Lines(Lines { header: false, comments: false, join: Join::Log });
    check(
        b"<![LOG[a\nb]LOG]!><x>\n<![LOG[open\n<![LOG[c]LOG]!><y>\nd\n",
        &log,
        &["1 <![LOG[a\nb]LOG]!><x>", "3! <![LOG[open", "4 <![LOG[c]LOG]!><y>", "5 d"],
        (5, 0, 0),
    );
}

#[test]
fn a_transaction_ends_with_its_own_last_part_whatever_stands_in_between() {
    let log = Cut::Lines(Lines { header: false, comments: false, join: Join::Parts });
    check(
        b"--0a1b2c3d-A--\na\n--ffffffff-A--\n[forged]\n--ffffffff-Z--\n\n--0a1b2c3d-Z--\n\n--1a1b2c3d-A--\nb\n--1a1b2c3d-Z--\n",
        &log,
        &[
            "1 --0a1b2c3d-A--\na\n--ffffffff-A--\n[forged]\n--ffffffff-Z--\n\n--0a1b2c3d-Z--",
            "9 --1a1b2c3d-A--\nb\n--1a1b2c3d-Z--",
        ],
        (11, 1, 0),
    );
    check(
        b"--0a1b2c3d-A--\nopen\n--1a1b2c3d-A--\nb\n--1a1b2c3d-Z--\n",
        &log,
        &["1! --0a1b2c3d-A--", "2 open", "3 --1a1b2c3d-A--\nb\n--1a1b2c3d-Z--"],
        (5, 0, 0),
    );
}

#[test]
fn a_transaction_of_many_lines_is_one_record_and_a_huge_one_keeps_its_head() {
    let log = Cut::Lines(Lines { header: false, comments: false, join: Join::Parts });
    let pieces = |body: &str| {
        let text = format!("--0a1b2c3d-A--\nhead\n{body}--0a1b2c3d-Z--\n\n--1a1b2c3d-A--\nb\n--1a1b2c3d-Z--\n");
        let mut cutter = Cutter::new(text.as_bytes(), &log, 0, 1);
        let (mut all, mut bytes) = (Vec::new(), Vec::new());
        while let Some(piece) = cutter.next(&mut bytes).unwrap() {
            all.push((piece.line, piece.oversize, piece.broken, bytes.starts_with(b"--0a1b2c3d-A--\nhead\n")));
        }
        (all.len(), all[0], text.len())
    };
    assert_eq!(pieces(&"x\n".repeat(30_000)).1, (1, false, false, true));
    let (records, first, _) = pieces(&"a line of forty bytes, more or less......\n".repeat(40_000));
    assert_eq!((records, first), (2, (1, true, false, true)));
}
