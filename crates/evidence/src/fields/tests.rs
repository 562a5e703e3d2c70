//! What each reader finds in a record. The word before the colon of a title names the reader.

use casebook_table::{blocks, expect_file};
use serde_json::json;

use super::*;

/// The fields of a text by the reader of this name; none where it is not of its form.
fn read(reader: &str, text: &str) -> Option<Vec<(String, String)>> {
    let mut out = Vec::new();
    match reader {
        "access" => return access::fields(text),
        "auditd" => return auditd::fields(text),
        "cef" => return keyvalue::cef(text),
        "commas" => return keyvalue::comma_pairs(text),
        "bars" => return keyvalue::bar_pairs(text),
        "cmtrace" => return cmtrace::fields(text),
        "ids" => return ids::alert(text),
        "modsec" => return modsec::fields(text),
        "modsec-said" => return modsec::said(text),
        "plaso" => return plaso::event(text),
        "collected" => return syslog::collected(text),
        "message" => return Some(message::fields(text)),
        "syslog" => drop(syslog::fields(&syslog::header(text)?, &mut out)),
        "payload" => payload::expand("m", text, &mut out),
        "keyvalue" => {
            let pairs = keyvalue::pairs(text, keyvalue::Reach::Word);
            out.extend(pairs.iter().map(|pair| (pair.key.to_owned(), pair.value.to_string())));
        }
        "json" => {
            let outcome = json::flatten(text, "", &mut |path, value| out.push((path.to_owned(), value.into_owned())));
            out.push(("outcome".to_owned(), format!("{outcome:?}")));
        }
        "xml" => {
            let outcome = xml::flatten(text, "Msg", &mut |path, value| out.push((path.to_owned(), value)));
            out.push(("outcome".to_owned(), format!("{outcome:?}")));
        }
        format => {
            let format = serde_json::from_value(json!(format)).unwrap();
            let parsed = parse(&Shape::of(format), text.as_bytes());
            out = parsed.fields;
            out.extend(parsed.malformed.then(|| ("malformed".to_owned(), "true".to_owned())));
        }
    }
    Some(out)
}

#[test]
fn each_reader_gives_the_fields_on_file() {
    blocks(&expect_file!["cases.txt"], |title, text| {
        let (reader, _) = title.split_once(':').unwrap();
        let text = text.replace('␍', "\r").replace('␀', "\0");
        // A record may end anywhere.
        for end in (0..text.len()).filter(|end| text.is_char_boundary(*end)) {
            let _ = read(reader, &text[..end]);
        }
        let one =
            |(name, value): &(String, String)| format!("{name} = {}\n", value.replace('\r', "␍").replace('\n', "\\n"));
        read(reader, &text).map_or_else(|| "no such record".to_owned(), |fields| fields.iter().map(one).collect())
    });
}

#[test]
fn bytes_that_are_no_text_become_replacement_characters() {
    let parsed = parse(&Shape::of(Format::Ndjson), b"{\"a\":\"x\xff\"}");
    assert_eq!(parsed.fields, [("a".to_owned(), "x\u{fffd}".to_owned())]);
    assert!(!parsed.malformed);
}
