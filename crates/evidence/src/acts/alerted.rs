//! What an alert says about the alerted occurrence.

use std::collections::BTreeMap;

use casebook_protocol::{Alert, Timestamp};

use super::keys::leaves;
use crate::facet::{Facet, Facets, epoch, last, process_keys, time_rank};

#[derive(Debug, Default)]
pub(super) struct Told {
    /// File and line of records that the alert points to.
    pub(super) records: Vec<(String, u64)>,
    /// Ids that only the alerted records have.
    pub(super) ids: Vec<String>,
    /// Keys of the alerted process.
    pub(super) own: Vec<String>,
    /// Paths, hashes and addresses.
    pub(super) names: Vec<String>,
    pub(super) host: Option<String>,
    /// Nanoseconds since 1970.
    pub(super) at: Option<i64>,
}

/// Parts of an alert about its rule.
const ABOUT_THE_RULE: [&str; 9] =
    ["rule", "data_sources", "id", "severity", "level", "tags", "references", "policy", "title"];

impl Told {
    pub(super) fn of(alert: &Alert) -> Self {
        let mut told = Self::default();
        let mut fields: BTreeMap<String, String> = BTreeMap::new();
        let mut places: BTreeMap<String, (Option<String>, Option<u64>)> = BTreeMap::new();
        let mut times: Vec<(u8, i64)> = Vec::new();
        leaves(&alert.json(), "", 0, &mut |path, value| {
            let (outer, name) = path.rsplit_once('.').unwrap_or(("", path));
            match name {
                "file" => places.entry(outer.to_owned()).or_default().0 = Some(value.clone()),
                "line" => places.entry(outer.to_owned()).or_default().1 = value.parse().ok(),
                _ => {}
            }
            let top = path.split('.').next().unwrap_or_default();
            if ABOUT_THE_RULE.contains(&top) {
                return;
            }
            let name = last(path, 1);
            times.extend(time(&value, &name).map(|at| (time_rank(&name), at)));
            if of_one_record(&name, &value) {
                told.ids.push(value.trim().to_owned());
            }
            if is_name(&value) {
                told.names.push(value.trim().to_owned());
            }
            fields.insert(path.strip_prefix("record.").unwrap_or(path).to_owned(), value);
        });
        told.records = places.into_values().filter_map(|(file, line)| file.zip(line)).collect();
        told.at = times.into_iter().min_by_key(|(rank, _)| *rank).map(|(_, at)| at);
        let facets = Facets::read(&fields, &alert.body);
        told.own = process_keys(&fields, &facets).0;
        told.host = facets.get(Facet::Host).map(str::to_owned);
        told.ids.extend(told.own.iter().filter(|key| !key.contains('#')).cloned());
        told
    }
}

fn time(value: &str, name: &str) -> Option<i64> {
    let text = value.trim();
    let written = || text.parse::<Timestamp>().ok().or_else(|| format!("{}Z", text.replacen(' ', "T", 1)).parse().ok());
    let at = match text.parse::<f64>() {
        Ok(number) if ["time", "ts", "created", "date"].iter().any(|part| name.contains(part)) => epoch(number)?,
        Ok(_) => return None,
        Err(_) => written()?,
    };
    i64::try_from(at.as_nanosecond()).ok()
}

/// True for the ids of a single event, connection or process.
fn of_one_record(name: &str, value: &str) -> bool {
    const IDS: [&str; 14] = [
        "uid",
        "fuid",
        "eventid",
        "eventuid",
        "requestid",
        "auditid",
        "processguid",
        "execid",
        "documentid",
        "flowid",
        "communityid",
        "correlationid",
        "recordid",
        "signinid",
    ];
    let long = value.len() >= 10 && value.bytes().any(|b| b.is_ascii_digit()) && !value.contains(' ');
    IDS.contains(&name) && long
}

/// True for a path, a hash or an address.
fn is_name(value: &str) -> bool {
    let text = value.trim();
    let path = (text.starts_with('/') && text.matches('/').count() >= 2) || text.get(1..3) == Some(":\\");
    let hash = matches!(text.len(), 32 | 40 | 64) && text.bytes().all(|b| b.is_ascii_hexdigit());
    (path || hash || text.parse::<std::net::IpAddr>().is_ok()) && !text.contains(' ')
}
