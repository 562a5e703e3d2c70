//! The hashes of cited records, from the results of tools.

use std::collections::BTreeSet;

use casebook_protocol::hash::sha256_hex;
use casebook_protocol::{Checked, Citation, FindingDraft, Locator, RecordHash, RecordRef};
use serde_json::Value;

use super::{Exhibit, Exhibits, cite};

impl Exhibits {
    /// The records that the valid citations of a finding lead to, and its `rows`, without duplicates and in order.
    pub fn hashes(&self, finding: &FindingDraft, checked: &Checked, rows: &[RecordRef]) -> Vec<RecordHash> {
        let valid = finding.citations.iter().zip(&checked.citations).filter(|(_, check)| check.holds);
        let mut found = BTreeSet::new();
        for (citation, check) in valid {
            let Some(exhibit) = self.0.get(citation.call()).filter(|exhibit| !exhibit.served()) else { continue };
            let cited: BTreeSet<(&str, u64)> =
                check.records.iter().chain(rows).map(|record| (record.file.as_str(), record.line)).collect();
            let records = exhibit.shown_at(citation).into_iter().filter_map(hash);
            found.extend(records.filter(|record| cited.contains(&(record.file.as_str(), record.line))));
        }
        found.into_iter().collect()
    }
}

impl Exhibit {
    /// The records that a citation may lead to: the one around a pointer, or those of a query.
    fn shown_at(&self, citation: &Citation) -> Vec<&Value> {
        match (citation, &self.json) {
            (Citation::Literal { at: Locator::Pointer(pointer), .. }, Some(json)) => match self.record(pointer) {
                Some((_, record)) => vec![record],
                None => json.pointer(pointer).map(cite::records_in).unwrap_or_default(),
            },
            (Citation::Count { .. }, Some(json)) => json.get("records").map(cite::records_in).unwrap_or_default(),
            _ => Vec::new(),
        }
    }
}

/// None if the result has another part of the record than its start.
fn hash(record: &Value) -> Option<RecordHash> {
    let number = |key: &str| record.get(key).and_then(Value::as_u64);
    if number("offset").is_some_and(|offset| offset > 0) {
        return None;
    }
    let cut = record.get("raw_cut").and_then(Value::as_bool).unwrap_or(false);
    let raw = record.get("raw")?.as_str()?;
    // A cut may split a character, whose first bytes then became this one.
    let raw = if cut { raw.trim_end_matches(char::REPLACEMENT_CHARACTER) } else { raw };
    Some(RecordHash {
        file: record.get("file")?.as_str()?.to_owned(),
        line: number("line")?,
        nth: u32::try_from(number("nth").unwrap_or(1)).ok()?,
        bytes: raw.len() as u64,
        cut,
        sha256: sha256_hex(raw.as_bytes()),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::check::tests::{add, draft, id};

    fn literal(pointer: &str, quote: &str) -> Citation {
        Citation::Literal { call: id("a"), at: Locator::Pointer(pointer.into()), quote: quote.into() }
    }

    fn record(line: u64, raw: &str, more: &Value) -> Value {
        let mut record = json!({"source": "s", "file": "a.log", "line": line, "raw": raw});
        record.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        record
    }

    fn hashed(records: &[Value], citations: Vec<Citation>) -> Vec<(u64, u32, u64, bool, String)> {
        let mut exhibits = Exhibits::default();
        let result = json!({"total": records.len(), "total_is_exact": true, "window": {"from": null, "to": null},
            "searched": ["s"], "records": records});
        add(&mut exhibits, "a", "search", "{}", &result.to_string(), false);
        let finding = draft(citations);
        let (checked, rows) = (exhibits.check(&finding), exhibits.rows(&finding));
        let all = exhibits.hashes(&finding, &checked, &rows).into_iter();
        all.map(|h| (h.line, h.nth, h.bytes, h.cut, h.sha256)).collect()
    }

    #[test]
    fn a_quotation_gives_the_hash_of_its_whole_record() {
        let records = [record(1, "one thing", &json!({})), record(2, "two things", &json!({"nth": 3}))];
        let two = (2, 3, 10, false, sha256_hex(b"two things"));
        assert_eq!(hashed(&records, vec![literal("/records/1", "two"), literal("/records/1/raw", "two")]), [two]);
        assert_eq!(hashed(&records, vec![literal("/records/1", "three")]), [], "the citation does not hold");
    }

    #[test]
    fn a_number_gives_the_hashes_of_the_records_of_its_query() {
        let records = [record(1, "one", &json!({})), record(2, "two", &json!({}))];
        let count = Citation::Count { call: id("a"), at: Locator::Pointer("/total".into()), value: 2, again: None };
        let all: Vec<u64> = hashed(&records, vec![count]).iter().map(|h| h.0).collect();
        assert_eq!(all, [1, 2]);
    }

    #[test]
    fn the_start_of_a_long_record_is_hashed_and_another_part_is_not() {
        let cut = json!({"raw_cut": true});
        let found = hashed(&[record(1, "start\u{fffd}", &cut)], vec![literal("/records/0", "start")]);
        assert_eq!(found, [(1, 1, 5, true, sha256_hex(b"start"))]);
        let later = json!({"raw_cut": true, "offset": 9});
        assert_eq!(hashed(&[record(1, "start", &later)], vec![literal("/records/0", "start")]), []);
    }
}
