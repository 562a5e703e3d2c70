//! What the sources cover: the tool `coverage`, and a part of each answer that found nothing.

use std::collections::BTreeSet;

use casebook_protocol::coverage::{OTHER_HOSTS, bounded, host_key, same_host};
use casebook_protocol::{HostCoverage, Timestamp};
use serde_json::{Value, json};

use super::EvidenceTools;
use super::args::Args;
use super::find::put;
use crate::Source;
use crate::query::{Filter, scan};
use crate::readings::Terms;

pub(super) const COVERAGE: &[&str] = &["host", "sources", "limit"];

/// Sources, and hosts of each source, in an answer that found nothing.
const SOURCES: usize = 40;
const HOSTS: usize = 50;
/// Texts of a query that are looked for on their own.
const TEXTS: usize = 8;

impl EvidenceTools {
    pub(super) fn coverage(&self, args: &Args) -> Result<Value, String> {
        let host = args.text("host")?;
        let sources = self.sources(args)?;
        let limit = usize::try_from(args.number("limit", 1, 500)?.unwrap_or(100)).unwrap_or(100);
        let of = || sources.iter().filter_map(|place| self.catalog.sources().get(*place));
        let wanted = |one: &&HostCoverage| host.is_none_or(|host| same_host(&one.host, host));
        let row = |source: &Source, one: &HostCoverage| {
            let kinds: Vec<Value> =
                one.kinds.iter().map(|kind| span(&kind.kind, "kind", kind.records, (kind.first, kind.last))).collect();
            let mut row = span(&one.host, "host", one.records, (one.first, one.last));
            put(&mut row, "source", json!(source.id));
            put(&mut row, "kinds", json!(kinds));
            row
        };
        let rows: Vec<Value> =
            of().flat_map(|source| source.coverage.iter().filter(wanted).map(move |one| row(source, one))).collect();
        let unknown = host.is_some_and(|_| rows.is_empty());
        let mut answer = json!({
            "total": rows.len(),
            "total_is_exact": !of().any(|source| source.coverage.iter().any(|one| one.host == OTHER_HOSTS)),
            "rows": rows.iter().take(limit).collect::<Vec<_>>(),
            "searched": of().map(|source| source.id.as_str()).collect::<Vec<_>>(),
        });
        if unknown {
            put(&mut answer, "no_source_names_the_host", json!(true));
        }
        Ok(answer)
    }

    /// Adds to an answer that found nothing what the searched sources cover, since only that makes it an absence.
    pub(super) fn found_nothing(&self, answer: &mut Value, filter: &Filter, texts: &[&str]) -> Result<(), String> {
        let searched = || filter.sources.iter().filter_map(|place| self.catalog.sources().get(*place));
        let listed: Vec<Value> = searched().take(SOURCES).map(covers).collect();
        put(answer, "covered", json!(listed));
        let more = filter.sources.len().saturating_sub(SOURCES);
        if more > 0 {
            put(answer, "covered_more", json!(more));
        }
        let covered: BTreeSet<String> =
            searched().flat_map(|source| &source.coverage).map(|one| host_key(&one.host)).collect();
        let others: BTreeSet<&str> = self.hosts().collect();
        let elsewhere: Vec<&str> =
            others.into_iter().filter(|host| !covered.contains(&host_key(host))).take(HOSTS).collect();
        put(answer, "hosts_of_other_sources", json!(elsewhere));
        let mut never = Vec::new();
        for text in texts.iter().filter(|text| may_be_host(text)).take(TEXTS) {
            let whole = Filter {
                sources: filter.sources.clone(),
                terms: Terms::new(&[text], false),
                first: true,
                ..Filter::default()
            };
            let mut found = false;
            scan(&self.catalog, &whole, None, &mut |_| found = true).map_err(|e| e.to_string())?;
            if !found {
                never.push(*text);
            }
        }
        put(answer, "in_no_record", json!(never));
        Ok(())
    }

    fn hosts(&self) -> impl Iterator<Item = &str> {
        let told = self.catalog.sources().iter().filter(|source| tells_hosts_apart(source));
        told.flat_map(|source| &source.coverage)
            .map(|one| one.host.as_str())
            .filter(|host| !host.is_empty() && *host != OTHER_HOSTS)
    }
}

/// The host in a record of a network sensor is the sensor.
fn tells_hosts_apart(source: &Source) -> bool {
    source.domain.as_str() != "network"
}

fn covers(source: &Source) -> Value {
    let mut shown = span(&source.id, "source", source.records, (source.first_time, source.last_time));
    if tells_hosts_apart(source) {
        let hosts = bounded(&source.coverage, HOSTS, 0);
        let hosts: Vec<Value> =
            hosts.iter().map(|one| span(&one.host, "host", one.records, (one.first, one.last))).collect();
        put(&mut shown, "hosts", json!(hosts));
    }
    shown
}

fn span(name: &str, key: &str, records: u64, (first, last): (Option<Timestamp>, Option<Timestamp>)) -> Value {
    let stamp = |at: Option<Timestamp>| at.map(|at| at.to_string());
    json!({ key: name, "records": records, "first_time": stamp(first), "last_time": stamp(last) })
}

/// A number or an address is not the name of a host.
fn may_be_host(text: &str) -> bool {
    let usual = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-');
    text.len() >= 3
        && text.chars().all(usual)
        && text.chars().any(|c| c.is_ascii_alphabetic())
        && text.parse::<std::net::IpAddr>().is_err()
}
