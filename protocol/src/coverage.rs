//! What a source covers: of which hosts it has records, of which kinds, from when to when.

use serde::{Deserialize, Serialize};

use crate::Timestamp;

/// The host of records whose host is not listed by its own name.
pub const OTHER_HOSTS: &str = "?";

/// What a source has of one host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostCoverage {
    /// Empty for records that name no host, [`OTHER_HOSTS`] for those of all hosts that are not listed.
    pub host: String,
    pub records: u64,
    pub first: Option<Timestamp>,
    pub last: Option<Timestamp>,
    /// The most frequent kinds first.
    pub kinds: Vec<KindCoverage>,
}

/// Records of one kind, such as those of one event id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KindCoverage {
    pub kind: String,
    pub records: u64,
    pub first: Option<Timestamp>,
    pub last: Option<Timestamp>,
}

/// What one source covers, as the report has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceCoverage {
    pub source: String,
    pub hosts: Vec<HostCoverage>,
}

impl HostCoverage {
    /// `web1: 120 records from 2026-03-01T10:00:00Z to 2026-03-01T11:00:00Z (EXECVE 80, SYSCALL 40)`
    pub fn words(&self) -> String {
        let host = match self.host.as_str() {
            "" => "no host named",
            OTHER_HOSTS => "other hosts",
            host => host,
        };
        let records = if self.records == 1 { "1 record".to_owned() } else { format!("{} records", self.records) };
        let kinds: Vec<String> = self.kinds.iter().map(|kind| format!("{} {}", kind.kind, kind.records)).collect();
        let kinds = if kinds.is_empty() { String::new() } else { format!(" ({})", kinds.join(", ")) };
        format!("{host}: {records}{}{kinds}", period(self.first, self.last))
    }
}

fn period(first: Option<Timestamp>, last: Option<Timestamp>) -> String {
    let second = |at: Timestamp| at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    match (first, last) {
        (Some(first), Some(last)) => format!(" from {} to {}", second(first), second(last)),
        _ => " without times".to_owned(),
    }
}

/// The `hosts` with the most records with at most `kinds` kinds each; the others as one entry.
pub fn bounded(all: &[HostCoverage], hosts: usize, kinds: usize) -> Vec<HostCoverage> {
    let cut =
        |one: &HostCoverage| HostCoverage { kinds: one.kinds.iter().take(kinds).cloned().collect(), ..one.clone() };
    if all.len() <= hosts {
        return all.iter().map(cut).collect();
    }
    let (known, rest): (Vec<_>, Vec<_>) = all.iter().partition(|one| one.host != OTHER_HOSTS);
    let (shown, more) = known.split_at(hosts.min(known.len()));
    let rest: Vec<&HostCoverage> = rest.iter().chain(more).copied().collect();
    let mut listed: Vec<HostCoverage> = shown.iter().map(|one| cut(one)).collect();
    if !rest.is_empty() {
        listed.push(HostCoverage {
            host: OTHER_HOSTS.to_owned(),
            records: rest.iter().map(|one| one.records).sum(),
            first: rest.iter().filter_map(|one| one.first).min(),
            last: rest.iter().filter_map(|one| one.last).max(),
            kinds: Vec::new(),
        });
    }
    listed
}

/// Equal for all spellings of one host: its name without the domain, or its address, in lower case.
pub fn host_key(name: &str) -> String {
    let is_address = name.parse::<std::net::IpAddr>().is_ok();
    let kept = if is_address { name } else { name.split('.').next().unwrap_or_default() };
    kept.to_ascii_lowercase()
}

/// With or without a domain, in any case.
pub fn same_host(one: &str, other: &str) -> bool {
    host_key(one) == host_key(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(name: &str, records: u64) -> HostCoverage {
        let at = |hour: u64| format!("2026-03-01T{hour:02}:00:00Z").parse().ok();
        let kind = |kind: &str| KindCoverage { kind: kind.into(), records: 1, first: at(1), last: at(2) };
        let kinds = vec![kind("4624"), kind("4625"), kind("4688")];
        HostCoverage { host: name.into(), records, first: at(records), last: at(records + 1), kinds }
    }

    #[test]
    fn hosts_with_few_records_are_summed_up() {
        let all = [host("a", 9), host("b", 5), host("c", 3), host(OTHER_HOSTS, 2)];
        let words = |hosts| bounded(&all, hosts, 1).iter().map(HostCoverage::words).collect::<Vec<_>>();
        assert_eq!(
            words(1),
            [
                "a: 9 records from 2026-03-01T09:00:00Z to 2026-03-01T10:00:00Z (4624 1)",
                "other hosts: 10 records from 2026-03-01T02:00:00Z to 2026-03-01T06:00:00Z",
            ]
        );
        assert_eq!(words(4).len(), 4);
        assert_eq!(bounded(&all[..2], 2, 9), all[..2]);
    }

    #[test]
    fn hosts_are_the_same_with_or_without_a_domain() {
        for (one, other, same) in [
            ("web1", "WEB1.corp.example", true),
            ("web1", "web10", false),
            ("10.0.0.1", "10.0.0.2", false),
            ("10.0.0.1", "10.0.0.1", true),
        ] {
            assert_eq!(same_host(one, other), same, "{one} {other}");
        }
    }
}
