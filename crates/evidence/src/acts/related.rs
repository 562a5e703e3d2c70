//! The records that belong to one record by an id that a sensor wrote: its process with those above and below, its
//! session, its connection.

use std::collections::{BTreeMap, BTreeSet};

use casebook_protocol::RecordRef;

use super::alerted::Told;
use super::row::{self, Row};
use super::{LIFE_MAX, Lister, SLACK};
use crate::facet::{Class, audit_prefix, last, number};
use crate::{Catalog, ReadError};

/// How a record belongs to another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Tie {
    This,
    /// The start of a process above, up to the first.
    Above,
    /// Of the same process.
    Same,
    /// Of a process below.
    Below,
    /// Of the same connection or the file that it carried.
    Connection,
    /// Of the same session or audit event.
    Session,
}

impl Tie {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::This => "this",
            Self::Above => "above",
            Self::Same => "same_process",
            Self::Below => "below",
            Self::Connection => "same_connection",
            Self::Session => "same_session",
        }
    }
}

/// Related records, closest first, then those nearest in time; and false if there may be more.
pub(crate) type Related = (Vec<(RecordRef, Tie)>, bool);

impl Catalog {
    pub(crate) fn related(&self, sources: Vec<usize>, file: &str, line: u64, nth: u32) -> Result<Related, ReadError> {
        let first = Row::read(&self.record_nth(file, line, nth)?);
        let mut lister = Lister { catalog: self, sources, cut: false, acts: BTreeMap::new() };
        let first = [first];
        let path = lister.above(&first)?;
        let below = lister.below(&Told::default(), &first, &path)?;
        let [first] = first;
        let mut found: Vec<(Tie, Option<i64>, RecordRef)> = vec![(Tie::This, first.at, first.record.clone())];
        found.extend(path.iter().map(|row| (Tie::Above, row.at, row.record.clone())));
        // What the process did before this record.
        let before = first.at.map(|at| (at.saturating_sub(LIFE_MAX), at.saturating_add(SLACK)));
        if let Some((from, to)) = before.filter(|_| !first.starts()) {
            let terms: Vec<String> = first.own.iter().flat_map(|key| row::terms_of(key)).collect();
            let rows = lister.rows(&terms, Some(from), Some(to))?;
            let own = rows.iter().filter(|row| row.is_any(&first.own));
            found.extend(own.map(|row| (Tie::Same, row.at, row.record.clone())));
        }
        found.extend(joined_below(&first, &below));
        found.extend(lister.joined(&first, connections, Tie::Connection)?);
        found.extend(lister.joined(&first, sessions, Tie::Session)?);
        let apart =
            |at: Option<i64>| at.zip(first.at).map_or(i64::MAX, |(at, own)| at.saturating_sub(own).saturating_abs());
        found.sort_by_key(|(tie, at, record)| (*tie, apart(*at), *at, record.clone()));
        let mut seen = BTreeSet::new();
        found.retain(|(_, _, record)| seen.insert(record.clone()));
        Ok((found.into_iter().map(|(tie, _, record)| (record, tie)).collect(), !lister.cut))
    }
}

/// Of the records below, those that an id joins to the first. The others may belong to it, which only acts need to know.
fn joined_below(first: &Row, below: &[Row]) -> Vec<(Tie, Option<i64>, RecordRef)> {
    let mut rows: Vec<&Row> = below.iter().collect();
    rows.sort_by_key(|row| (row.at, row.record.line));
    let mut keys: Vec<String> = first.own.clone();
    let mut found = Vec::new();
    for row in rows {
        if row.is_any(&first.own) {
            found.push((Tie::Same, row.at, row.record.clone()));
        } else if row.is_any(&keys) || row.parents.iter().any(|key| keys.contains(key)) {
            keys.extend(row.own.iter().cloned());
            found.push((Tie::Below, row.at, row.record.clone()));
        }
    }
    found
}

impl Lister<'_> {
    /// The records that share a key with `first`.
    fn joined(
        &mut self,
        first: &Row,
        keys: fn(&Row) -> Vec<String>,
        tie: Tie,
    ) -> Result<Vec<(Tie, Option<i64>, RecordRef)>, ReadError> {
        let own = keys(first);
        let terms: Vec<String> = own.iter().map(|key| term(key).to_owned()).collect();
        let rows = self.rows(&terms, None, None)?;
        let shares = |row: &&Row| keys(row).iter().any(|key| own.contains(key));
        Ok(rows.iter().filter(shares).map(|row| (tie, row.at, row.record.clone())).collect())
    }
}

/// The text by which records with the key are found: what stands before it only tells hosts apart.
fn term(key: &str) -> &str {
    key.rsplit('#').next().unwrap_or(key)
}

fn connections(row: &Row) -> Vec<String> {
    const IDS: [&str; 8] =
        ["uid", "fuid", "certchainfuids", "respfuids", "origfuids", "connuids", "flowid", "communityid"];
    let long = |value: &str| value.len() >= 10 && !value.bytes().all(|b| b.is_ascii_digit());
    let of_zeek = row.fields.keys().any(|path| last(path, 1) == "ts");
    let named = |path: &str| {
        let name = last(path, 1);
        IDS.contains(&name.as_str()) || of_zeek && name == "id"
    };
    row.fields.iter().filter(|(path, value)| named(path) && long(value)).map(|(_, value)| value.clone()).collect()
}

/// Logon sessions and audit events with their host, since they are unique only there, and sessions of services.
fn sessions(row: &Row) -> Vec<String> {
    /// Every Windows host has them: the system and its services.
    const OF_THE_SYSTEM: [u64; 4] = [0, 0x3e7, 0x3e4, 0x3e5];
    const NONE: [&str; 3] = ["4294967295", "-1", "unset"];
    let host = row.host().unwrap_or(&row.record.file).to_ascii_lowercase();
    let host = host.split('.').next().unwrap_or_default().to_owned();
    let mut keys: Vec<String> =
        row.own.iter().filter_map(|key| key.strip_prefix(row::SESSION)).map(str::to_owned).collect();
    // Other activity in a session only shares the account.
    let of_sign_in = matches!(row.class(), Class::Authentication | Class::LogonFailure);
    for (path, value) in &row.fields {
        let name = last(path, 1);
        let logon = matches!(name.as_str(), "subjectlogonid" | "targetlogonid" | "logonid" | "targetlinkedlogonid");
        let id = number(value).filter(|id| !OF_THE_SYSTEM.contains(id));
        if let (true, Some(_)) = (logon, id) {
            keys.push(format!("{host}#{}", value.trim().to_ascii_lowercase()));
        }
    }
    keys.retain(|key| !key.contains("#0x") || of_sign_in || row.starts());
    if let Some(prefix) = audit_prefix(&row.fields) {
        let field = |name: &str| row.fields.get(&format!("{prefix}{name}"));
        if let (Some(time), Some(serial)) = (field("audit.time"), field("audit.serial")) {
            keys.push(format!("{time}:{serial}"));
        }
        let session = field("ses").filter(|id| of_sign_in && !NONE.contains(&id.as_str()));
        keys.extend(session.map(|id| format!("{host}#ses={id}")));
    }
    keys
}
