use casebook_table::{blocks, expect_file};

use super::*;

fn lines(header: bool, comments: bool, join: Join) -> Cut {
    Cut::Lines(Lines { header, comments, join, ..Lines::default() })
}

/// Numbered if the name of the case says so.
fn json(place: JsonPlace, name: &str) -> Cut {
    Cut::Json(Json { place, numbered: name.starts_with("numbered") })
}

fn named(name: &str) -> Cut {
    match name.split_once(' ').unwrap_or((name, "")) {
        ("plain", _) => lines(false, false, Join::Never),
        ("comments", _) => lines(false, true, Join::Never),
        ("quotes", _) => lines(true, false, Join::Quotes),
        ("events", _) => lines(false, false, Join::Events),
        ("log", _) => lines(false, false, Join::Log),
        ("parts", _) => lines(false, false, Join::Parts),
        ("top", _) => json(JsonPlace::Top, name),
        (_, keys) => json(JsonPlace::Array(keys.split_terminator('.').map(str::to_owned).collect()), name),
    }
}

#[test]
fn text_is_cut_into_the_records_on_file() {
    blocks(&expect_file!["cases.txt"], |title, text| {
        let text = text.replace('␍', "\r").replace('␀', "\0") + "\n";
        let text = text.strip_suffix("␄\n").unwrap_or(&text);
        let mut cutter = Cutter::new(text.as_bytes(), &named(title.split_once(':').unwrap().0), 0, 1);
        let (mut bytes, mut out) = (Vec::new(), String::new());
        while let Some(piece) = cutter.next(&mut bytes).unwrap() {
            let start = usize::try_from(piece.offset).unwrap();
            let found = &text[start..start + usize::try_from(piece.length).unwrap()];
            assert_eq!(found.as_bytes(), bytes, "the bytes are those of the file");
            let shown = found.replace('\n', "⏎").replace('\r', "␍").replace('\0', "␀");
            out += &format!("{}{} {shown}\n", piece.line, if piece.broken { "!" } else { "" });
        }
        let t = cutter.tally();
        out + &format!("{} lines, {} blank, {} of the format", t.lines, t.blank, t.format)
    });
}

#[test]
fn quote_without_end_costs_one_line() {
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
fn line_of_fifty_megabytes_is_one_oversize_record() {
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
fn transaction_of_many_lines_is_one_record_huge_one_is_cut() {
    let log = named("parts");
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
