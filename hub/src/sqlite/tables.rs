//! The tables, and how those of earlier versions become them.

use casebook_protocol::{Event, InvestigationId, Recorded, Timestamp};
use casebook_runtime::store::StoreError;
use rusqlite::Connection;
use serde::{Deserialize, Serialize};

use super::packed::{self, Packed, WHOLE};

/// The version of the tables that is written. Every earlier one is read.
pub(super) const VERSION: i64 = 3;

/// An investigation has a number, since its id would stand in every row; a row has a form ([`packed`]). Rows
/// lie in the order in which they came and are found by an index: in the order of their keys each would lie
/// on another page, and those over a kilobyte on pages of their own.
const CREATE: &str = "
CREATE TABLE investigations (n INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE);
CREATE TABLE events (investigation INTEGER NOT NULL, seq INTEGER NOT NULL, form INTEGER NOT NULL, entry BLOB NOT NULL, PRIMARY KEY (investigation, seq));
CREATE TABLE results (investigation INTEGER NOT NULL, key TEXT NOT NULL, form INTEGER NOT NULL, bytes BLOB NOT NULL, PRIMARY KEY (investigation, key));
CREATE TABLE artifacts (id BLOB NOT NULL PRIMARY KEY, form INTEGER NOT NULL, bytes BLOB NOT NULL);
";

/// Version 1 had the same in whole bytes under whole ids.
const FROM_1: [&str; 3] = [
    "ALTER TABLE events RENAME TO events_1; ALTER TABLE results RENAME TO results_1; ALTER TABLE artifacts RENAME TO artifacts_1;",
    CREATE,
    "
INSERT INTO investigations (id) SELECT investigation FROM events_1 UNION SELECT investigation FROM results_1 ORDER BY 1;
INSERT INTO events SELECT n, seq, 0, CAST(json AS BLOB) FROM events_1 JOIN investigations ON id = investigation;
INSERT INTO results SELECT n, key, 0, bytes FROM results_1 JOIN investigations ON id = investigation;
INSERT INTO artifacts SELECT unhex(id), 0, bytes FROM artifacts_1;
DROP TABLE events_1; DROP TABLE results_1; DROP TABLE artifacts_1;
",
];

/// Version 2 had the same in the order of the keys, and other forms.
const FROM_2: [&str; 3] = [
    "ALTER TABLE investigations RENAME TO investigations_2; ALTER TABLE events RENAME TO events_2; ALTER TABLE results RENAME TO results_2; ALTER TABLE artifacts RENAME TO artifacts_2;",
    CREATE,
    "
INSERT INTO investigations SELECT n, id FROM investigations_2;
INSERT INTO events SELECT investigation, seq, form, entry FROM events_2;
INSERT INTO results SELECT investigation, key, form, bytes FROM results_2;
INSERT INTO artifacts SELECT id, form, bytes FROM artifacts_2;
DROP TABLE events_2; DROP TABLE results_2; DROP TABLE artifacts_2; DROP TABLE investigations_2;
",
];

/// Makes the tables, or those of version `found` into them.
pub(super) fn bring_up(connection: &mut Connection, found: i64) -> Result<(), rusqlite::Error> {
    let steps: &[&str] = match found {
        VERSION => return Ok(()),
        0 => &[CREATE],
        1 => &FROM_1,
        _ => &FROM_2,
    };
    let transaction = connection.transaction()?;
    for step in steps {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "user_version", VERSION)?;
    transaction.commit()
}

/// What of an entry does not follow from its place in the log.
#[derive(Serialize)]
struct Brief<'a> {
    v: u16,
    at: Timestamp,
    hash: &'a str,
    event: &'a Event,
}

#[derive(Deserialize)]
struct Read {
    v: u16,
    at: Timestamp,
    hash: String,
    event: Event,
}

/// Entries that are appended together, as they are stored: in one row, under the number of the last.
/// What cannot be packed stands there with all fields, as the single entries of version 1 do.
pub(super) fn write(entries: &[Recorded]) -> Result<Packed, serde_json::Error> {
    let brief: Vec<Brief<'_>> =
        entries.iter().map(|e| Brief { v: e.v, at: e.at, hash: &e.hash, event: &e.event }).collect();
    let packed = packed::pack(&serde_json::to_vec(&brief)?);
    if packed.form != WHOLE {
        return Ok(packed);
    }
    Ok(Packed { form: WHOLE, bytes: serde_json::to_vec(entries)? })
}

/// The entries of the row whose last one has the number `last`, which follow one with the hash `prev`.
pub(super) fn read(
    investigation: &InvestigationId,
    last: u64,
    prev: Option<&str>,
    form: i64,
    bytes: Vec<u8>,
) -> Result<Vec<Recorded>, StoreError> {
    let corrupt = |reason: String| StoreError::Corrupt { what: format!("event {last} of {investigation}"), reason };
    let bytes = packed::unpack(form, bytes).map_err(corrupt)?;
    let malformed = |e: serde_json::Error| corrupt(e.to_string());
    if form == WHOLE && bytes.first() != Some(&b'[') {
        return serde_json::from_slice(&bytes).map(|entry| vec![entry]).map_err(malformed);
    }
    if form == WHOLE {
        return serde_json::from_slice(&bytes).map_err(malformed);
    }
    let brief: Vec<Read> = serde_json::from_slice(&bytes).map_err(malformed)?;
    let mut prev = prev.map_or_else(|| Recorded::genesis(investigation), str::to_owned);
    let first = (last + 1).saturating_sub(brief.len() as u64);
    let entries = brief.into_iter().zip(first..).map(|(Read { v, at, hash, event }, seq)| {
        let prev = std::mem::replace(&mut prev, hash.clone());
        Recorded { v, investigation: investigation.clone(), seq, at, prev, hash, event }
    });
    Ok(entries.collect())
}
