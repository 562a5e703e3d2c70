//! What the alert claims: records of its kind, and the sensors that would have recorded it.

use std::collections::BTreeSet;

use casebook_protocol::coverage::same_host;
use casebook_protocol::{ActKind, ActPart, Claim, Timestamp};

use super::kind::{self, kind_of};
use super::row::Row;
use super::{AROUND, Lister, alerted};
use crate::ReadError;

impl Lister<'_> {
    /// Counts and lists the records of the claimed kind on the alerted host.
    pub(super) fn claim(
        &mut self,
        kind: ActKind,
        told: &alerted::Told,
        first: &[Row],
        window: Option<(i64, i64)>,
    ) -> Result<Claim, ReadError> {
        let host = first.iter().find_map(|row| row.host()).or(told.host.as_deref()).map(str::to_ascii_lowercase);
        let terms: Vec<String> = kind::terms(kind).iter().map(|term| (*term).to_owned()).collect();
        // A kind that is not searched for can be there without being found.
        let searched = !terms.is_empty();
        if let Some((from, to)) = window {
            let rows = self.rows(&terms, Some(from.saturating_sub(AROUND)), Some(to.saturating_add(AROUND)))?;
            let there = |row: &&Row| match (&host, row.host()) {
                (Some(host), Some(other)) => same_host(host, other),
                _ => true,
            };
            for row in rows.iter().filter(|row| kind_of(row) == Some(kind)).filter(there) {
                self.add(ActPart::Claimed, kind, row);
            }
        }
        let found = self.acts.values().filter(|act| act.kind == kind && act.part != ActPart::Origin).count() as u64;
        let watched_by = match window {
            Some(window) if searched => self.watchers(kind, host.as_deref(), window),
            _ => Vec::new(),
        };
        Ok(Claim { kind, found, watched_by })
    }

    /// Sensors that a person confirmed to record this kind, with records before and after the activity.
    fn watchers(&self, kind: ActKind, host: Option<&str>, (from, to): (i64, i64)) -> Vec<String> {
        let nanoseconds = |at: Timestamp| i64::try_from(at.as_nanosecond()).unwrap_or(i64::MAX);
        let covers = |source: &&crate::Source| {
            let window = source.first_time.map(nanoseconds).zip(source.last_time.map(nanoseconds));
            source.confirmed
                && source.acts.contains(&kind)
                && host.is_some_and(|host| source.hosts.iter().any(|name| same_host(host, name)))
                && window.is_some_and(|(first, last)| first <= from && last >= to)
        };
        let sensors: BTreeSet<String> =
            self.catalog.sources().iter().filter(covers).map(|source| source.sensor.clone()).collect();
        sensors.into_iter().collect()
    }
}
