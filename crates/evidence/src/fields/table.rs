//! Records of tables: CSV, TSV, Zeek and W3C lines.

use csv_core::{ReadRecordResult, ReaderBuilder};

use super::{owned, text_of};

pub(crate) fn cells(text: &str, delimiter: u8) -> Vec<String> {
    let mut reader = ReaderBuilder::new().delimiter(delimiter).build();
    let mut input = text.as_bytes();
    let mut output = vec![0u8; text.len() + 8];
    let mut ends = vec![0usize; text.bytes().filter(|b| *b == delimiter).count() + 2];
    let (mut written, mut ended) = (0, 0);
    loop {
        let (result, read, wrote, marked) = reader.read_record(
            input,
            output.get_mut(written..).unwrap_or_default(),
            ends.get_mut(ended..).unwrap_or_default(),
        );
        input = input.get(read..).unwrap_or_default();
        written += wrote;
        ended += marked;
        match result {
            ReadRecordResult::InputEmpty => {}
            _ => break,
        }
    }
    let mut from = 0;
    ends.iter()
        .take(ended)
        .map(|end| {
            let cell = output.get(from..*end).unwrap_or_default();
            from = *end;
            owned(&text_of(cell))
        })
        .collect()
}

/// `-` and `(empty)` mean no value.
pub(crate) fn zeek_cells(text: &str) -> Vec<String> {
    let cell = |c: &str| if matches!(c, "-" | "(empty)") { String::new() } else { owned(c) };
    text.split('\t').map(cell).collect()
}

/// `-` means no value.
pub(crate) fn w3c_cells(text: &str) -> Vec<String> {
    text.split([' ', '\t']).map(|c| if c == "-" { String::new() } else { owned(c) }).collect()
}

/// Stores cells under their column names. Returns whether there is one cell for each column.
pub(crate) fn name(columns: &[String], cells: Vec<String>, out: &mut Vec<(String, String)>) -> bool {
    let fits = cells.len() == columns.len();
    for (at, cell) in cells.into_iter().enumerate() {
        if !cell.is_empty() {
            let name = columns.get(at).map_or_else(|| format!("column{}", at + 1), |name| owned(name));
            out.push((name, cell));
        }
    }
    fits
}

/// True if all quotes are closed, so that the record ends with the line.
pub(crate) fn closed(text: &[u8]) -> bool {
    memchr::memchr_iter(b'"', text).count().is_multiple_of(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_of_each_kind() {
        assert_eq!(cells("a,\"b,\"\"c\"\"\nd\",,e", b','), ["a", "b,\"c\"\nd", "", "e"]);
        assert_eq!(cells("a", b','), ["a"]);
        assert_eq!(cells("", b','), Vec::<String>::new());
        assert_eq!(cells("a,\"open", b','), ["a", "open"]);
        assert_eq!(zeek_cells("1\t-\t(empty)\tx"), ["1", "", "", "x"]);
        let mut out = Vec::new();
        assert!(!name(&["x".into()], vec!["1".into(), "2".into()], &mut out));
        assert_eq!(out, [("x".to_owned(), "1".to_owned()), ("column2".to_owned(), "2".to_owned())]);
    }
}
