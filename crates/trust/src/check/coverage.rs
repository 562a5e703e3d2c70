//! An absence counts only if a searched source covers the host that is meant, and the window. Decided by what the
//! result itself records of the searched sources, so that a repeated check gives the same.

use casebook_protocol::coverage::{OTHER_HOSTS, same_host};
use casebook_protocol::{EntityKind, FindingDraft, Timestamp, one_line};
use serde_json::Value;

use super::Exhibit;
use crate::claim::has_word;

/// How far a window may reach beyond the first or last record, in mean intervals between records: a log rarely has a
/// record at the very moment when its collection began or ended.
const INTERVALS: i64 = 10;
/// The least and the most of that, in seconds.
const SLACK: [i64; 2] = [60, 3600];
/// Sources, and hosts of a source, that a reason names.
const NAMED: usize = 4;

struct Span<'j> {
    name: &'j str,
    records: i64,
    first: Option<Timestamp>,
    last: Option<Timestamp>,
}

/// What a searched source covers. Without hosts if its records do not tell hosts apart.
struct Covers<'j> {
    whole: Span<'j>,
    hosts: Vec<Span<'j>>,
}

impl<'j> Span<'j> {
    fn read(value: &'j Value, key: &str) -> Option<Self> {
        let time = |key: &str| value.get(key)?.as_str()?.parse().ok();
        let records = value.get("records")?.as_i64()?;
        Some(Self { name: value.get(key)?.as_str()?, records, first: time("first_time"), last: time("last_time") })
    }

    fn has(&self, from: Option<Timestamp>, to: Option<Timestamp>) -> bool {
        let (Some(first), Some(last)) = (self.first, self.last) else { return from.is_none() && to.is_none() };
        let mean = (last.as_second() - first.as_second()) / self.records.max(1);
        let slack = mean.saturating_mul(INTERVALS).clamp(SLACK[0], SLACK[1]);
        from.is_none_or(|from| first.as_second() - slack <= from.as_second())
            && to.is_none_or(|to| last.as_second() + slack >= to.as_second())
    }

    fn words(&self) -> String {
        let second = |at: Timestamp| at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let name = if self.name == OTHER_HOSTS { "other hosts" } else { self.name };
        match (self.first, self.last) {
            (Some(first), Some(last)) => format!("{} from {} to {}", one_line(name, 80), second(first), second(last)),
            _ => format!("{} without times", one_line(name, 80)),
        }
    }
}

impl<'j> Covers<'j> {
    fn read(value: &'j Value) -> Option<Self> {
        let hosts = value.get("hosts").and_then(Value::as_array).into_iter().flatten();
        let hosts = hosts.filter_map(|host| Span::read(host, "host")).collect();
        Some(Self { whole: Span::read(value, "source")?, hosts })
    }

    /// The records that may be of this host; none if all are of others.
    fn of(&self, host: &str) -> Option<&Span<'j>> {
        let known = self.hosts.iter().find(|one| same_host(one.name, host));
        let open = self.hosts.is_empty() || self.hosts.iter().any(|one| matches!(one.name, "" | OTHER_HOSTS));
        known.or_else(|| open.then_some(&self.whole))
    }

    fn words(&self) -> String {
        let hosts: Vec<String> =
            self.hosts.iter().filter(|one| !one.name.is_empty()).take(NAMED).map(Span::words).collect();
        if hosts.is_empty() {
            return self.whole.words();
        }
        let more = if self.hosts.len() > NAMED { " and others" } else { "" };
        format!("{} has {}{more}", one_line(self.whole.name, 80), hosts.join(", "))
    }
}

/// `alerted` is the host of the alert. It is meant if the finding is about the alert and names no host.
pub(super) fn covered(
    exhibit: &Exhibit,
    finding: &FindingDraft,
    alerted: Option<&str>,
    [from, to]: [Option<Timestamp>; 2],
) -> Result<(), String> {
    let result = exhibit.json.as_ref().filter(|_| !exhibit.served());
    let list = |key: &str| result.and_then(|json| json.get(key)?.as_array()).into_iter().flatten();
    let texts = |key: &str| list(key).filter_map(Value::as_str);
    let sources: Vec<Covers<'_>> = list("covered").filter_map(Covers::read).collect();
    let more = result.is_some_and(|json| json.get("covered_more").is_some());
    // Results of older versions do not say what was covered.
    if sources.is_empty() || more {
        return Ok(());
    }
    let shown = || {
        let all: Vec<String> = sources.iter().take(NAMED).map(Covers::words).collect();
        let more = if sources.len() > NAMED { "; and others" } else { "" };
        format!("{}{more}", all.join("; "))
    };
    let listed = sources.iter().flat_map(|one| &one.hosts).map(|one| one.name);
    let known: Vec<&str> = listed.chain(texts("hosts_of_other_sources")).filter(|host| is_name(host)).collect();
    let hosts = meant(finding, alerted, &known);
    let of = |host: &&str| {
        let quoted = one_line(host, 80);
        if texts("in_no_record").any(|text| same_host(text, host)) {
            return Err(format!("no searched source has any record of host {quoted:?}, at no time: {}", shown()));
        }
        let mut spans: Vec<&Span<'_>> = sources.iter().filter_map(|one| one.of(host)).collect();
        // A text of the query that some record has: the records may name the host in another field.
        if spans.is_empty() && exhibit.call.arguments.to_lowercase().contains(&host.to_lowercase()) {
            spans.extend(sources.iter().map(|one| &one.whole));
        }
        if spans.is_empty() {
            return Err(format!("no searched source has records of host {quoted:?}: {}", shown()));
        }
        match spans.iter().any(|span| span.has(from, to)) {
            true => Ok(()),
            false => Err(format!("no searched source covers the window for host {quoted:?}: {}", shown())),
        }
    };
    // Of several hosts one is where the search looked; the others may be what it looked for.
    let mut checked: Vec<Result<(), String>> = hosts.iter().map(of).collect();
    if !checked.is_empty() {
        return if checked.iter().any(Result::is_ok) { Ok(()) } else { checked.swap_remove(0) };
    }
    if !sources.iter().any(|one| one.whole.has(from, to)) {
        return Err(format!("no searched source covers the window: {}", shown()));
    }
    Ok(())
}

fn is_name(host: &str) -> bool {
    !matches!(host, "" | OTHER_HOSTS)
}

/// The hosts that an absence is about.
fn meant<'f>(finding: &'f FindingDraft, alerted: Option<&'f str>, known: &[&'f str]) -> Vec<&'f str> {
    let is_known = |host: &str| known.iter().any(|known| same_host(known, host));
    let entities = || finding.entities.iter().filter(|entity| entity.kind == EntityKind::Host);
    // A name with dots that no source knows is often a host of others, which the search looked for.
    let named = entities().map(|entity| entity.value.as_str()).filter(|host| is_known(host) || !host.contains('.'));
    let claim = finding.claim.to_lowercase();
    // Some hosts are called like an ordinary word.
    let in_claim = |host: &&str| {
        let lower = host.to_lowercase();
        let word = host.chars().all(char::is_alphabetic);
        if word { claim.contains(&format!("`{lower}`")) } else { has_word(&claim, &lower) }
    };
    let mut hosts: Vec<&str> = named.chain(known.iter().copied().filter(in_claim)).collect();
    if hosts.is_empty() && finding.about_alert && entities().next().is_none() {
        hosts.extend(alerted.filter(|host| is_known(host)));
    }
    hosts
}

#[cfg(test)]
mod tests;
