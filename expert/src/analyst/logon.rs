//! Logon sessions of Windows: the activity of an account on a host between sign-in and sign-out, and the sign-in
//! itself.

use std::collections::BTreeSet;

use casebook_agent::reasoner::CallRequest;
use casebook_agent::worker::call;
use casebook_protocol::Timestamp;
use serde_json::json;

use super::account;
use super::link::{moved, seconds};
use super::rec::Rec;
use casebook_evidence::facet::{Class, Facet, event_id, last};

/// Seconds before the alert in which a network sign-in may be that of the actor.
const NETWORK_SECONDS: i64 = 120;
/// The same for a remote desktop, which stays open longer.
const DESKTOP_SECONDS: i64 = 3600;

/// Logon ids as numbers and as written, without those of system accounts, which are the same on every host.
fn ids(rec: &Rec) -> impl Iterator<Item = (u64, &str)> {
    const SYSTEM: [u64; 4] = [0, 0x3e7, 0x3e4, 0x3e5];
    let named = |path: &str| {
        matches!(
            last(path, 1).as_str(),
            "subjectlogonid" | "targetlogonid" | "logonid" | "targetlinkedlogonid" | "linkedlogonid"
        )
    };
    rec.fields
        .iter()
        .filter(move |(path, _)| named(path))
        .filter_map(|(_, value)| Some((casebook_evidence::facet::number(value)?, value.trim())))
        .filter(|(id, _)| !SYSTEM.contains(id))
}

/// Without the domain, because only some sensors write it.
fn host(rec: &Rec) -> Option<String> {
    let host = rec.facets.get(Facet::Host)?.to_ascii_lowercase();
    let address = host.parse::<std::net::IpAddr>().is_ok();
    Some(if address { host } else { host.split('.').next().unwrap_or_default().to_owned() })
}

/// Includes the host, because an id is unique only on one host.
pub(super) fn keys(rec: &Rec) -> Vec<String> {
    let Some(host) = host(rec) else { return Vec::new() };
    ids(rec).map(|(id, _)| format!("{host}#logon#{id:x}")).collect()
}

pub(super) fn terms(rec: &Rec) -> Vec<String> {
    ids(rec).map(|(_, written)| written.to_owned()).filter(|id| id.len() >= 4).collect()
}

/// True for records about a session: start, rights, end.
pub(super) fn of_session(rec: &Rec) -> bool {
    rec.class() == Class::Authentication && !ids(rec).collect::<Vec<_>>().is_empty()
}

/// Routine activity of any program: handles closed and copied, privileges changed.
pub(super) fn upkeep(rec: &Rec) -> bool {
    matches!(event(rec), "4658" | "4690" | "4703")
}

fn event(rec: &Rec) -> &str {
    event_id(&rec.fields).unwrap_or_default()
}

fn desktop(rec: &Rec) -> bool {
    let kind = rec.field(&["logontype"]).unwrap_or_default();
    match event(rec) {
        "4624" => matches!(kind, "7" | "10" | "12" | "13"),
        "4778" | "1149" | "21" | "25" => true,
        _ => false,
    }
}

/// A sign-in from another host, at the alert or shortly before.
pub(super) fn arrival(rec: &Rec, alerted: &[&Rec], anchor: Option<Timestamp>) -> bool {
    let (Some(at), Some(anchor), Some(user)) = (rec.time, anchor, rec.facets.get(Facet::User)) else { return false };
    let network = event(rec) == "4624" && rec.field(&["logontype"]) == Some("3");
    // The domain controller records a ticket, with the account of the destination host.
    let ticket = event(rec) == "4769";
    if rec.class() != Class::Authentication || !(network || ticket || desktop(rec)) || account::of_system(user) {
        return false;
    }
    let from = rec.facets.get(Facet::SrcIp).and_then(|a| a.parse::<std::net::IpAddr>().ok());
    let remote = from.is_some_and(|a| !a.is_loopback());
    let longest = if desktop(rec) { DESKTOP_SECONDS } else { NETWORK_SECONDS };
    // In a log with whole seconds, the sign-in may appear after the actions that followed it.
    let before = (-1.0..=longest as f64).contains(&seconds(anchor, at));
    let for_host = |h: &str| rec.field(&["servicename"]).is_some_and(|s| account::bare(s) == format!("{h}$"));
    let same = |core: &&Rec| {
        host(core).is_some_and(|h| if ticket { for_host(&h) } else { Some(h) == host(rec) })
            && core.facets.get(Facet::User).is_some_and(|u| account::bare(u) == account::bare(user))
    };
    remote && before && alerted.iter().any(same)
}

/// Searches for the start of the sessions of the alerted records.
pub(super) fn searches(alerted: &[&Rec], anchor: Option<Timestamp>) -> Vec<CallRequest> {
    let Some(anchor) = anchor else { return Vec::new() };
    let edge = |by: i64| moved(anchor, by);
    let windows = |rec: &&&Rec| event_id(&rec.fields).is_some();
    let mut requests = Vec::new();
    for id in alerted.iter().flat_map(|rec| terms(rec)).collect::<BTreeSet<_>>() {
        let first = json!({"terms": [id], "to": edge(1), "limit": 40, "include_fields": true});
        requests.push(call("search", &first));
    }
    let users: BTreeSet<String> = alerted
        .iter()
        .filter(windows)
        .filter_map(|rec| rec.facets.get(Facet::User))
        .filter(|user| !account::of_system(user))
        .map(account::bare)
        .collect();
    for user in users.iter().filter(|user| user.len() >= 2) {
        for (event, back) in
            [("4624", NETWORK_SECONDS), ("4778", DESKTOP_SECONDS), ("TerminalServices", DESKTOP_SECONDS)]
        {
            let near = json!({
                "terms": [user, event], "mode": "all", "from": edge(-back), "to": edge(2),
                "order": "time_desc", "limit": 40, "include_fields": true
            });
            requests.push(call("search", &near));
        }
    }
    requests
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use casebook_protocol::CallId;

    use super::*;
    use casebook_evidence::facet::Facets;

    fn rec(at: &str, fields: &[(&str, &str)]) -> Rec {
        let fields: BTreeMap<String, String> =
            fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let facets = Facets::read(&fields, "");
        let mut rec = Rec::of(CallId::new("r1.investigate.endpoint.t1.0").unwrap(), fields, facets);
        rec.time = Some(at.parse().unwrap());
        rec
    }

    #[test]
    fn one_session_has_one_key_in_each_notation_and_the_system_has_none() {
        let opened = rec(
            "2024-03-01T10:00:00Z",
            &[("EventID", "4624"), ("SubjectLogonId", "0x3e7"), ("TargetLogonId", "0x51A2B"), ("Hostname", "FS1")],
        );
        let used = rec(
            "2024-03-01T10:00:05Z",
            &[("EventID", "4662"), ("winlog.event_data.SubjectLogonId", "0x51a2b"), ("computer", "fs1.corp.example")],
        );
        assert_eq!(keys(&opened), ["fs1#logon#51a2b"]);
        assert_eq!(keys(&opened), keys(&used));
        let elsewhere = rec("2024-03-01T10:00:05Z", &[("SubjectLogonId", "0x51a2b"), ("Hostname", "FS2")]);
        assert_ne!(keys(&opened), keys(&elsewhere));
    }

    #[test]
    fn a_ticket_for_the_alerted_host_is_an_arrival() {
        let alerted = rec("2024-03-01T10:00:00Z", &[("EventID", "1"), ("User", "CORP\\mara"), ("Hostname", "FS1")]);
        let ticket = |service: &str| {
            let fields = [
                ("EventID", "4769"),
                ("TargetUserName", "mara@CORP.EXAMPLE"),
                ("ServiceName", service),
                ("Hostname", "DC1"),
                ("IpAddress", "::ffff:192.0.2.7"),
            ];
            arrival(&rec("2024-03-01T09:59:58Z", &fields), &[&alerted], alerted.time)
        };
        assert!(ticket("FS1$"));
        assert!(!ticket("FS2$"));
    }

    #[test]
    fn a_sign_in_from_elsewhere_shortly_before_is_an_arrival() {
        let alerted =
            rec("2024-03-01T10:00:00Z", &[("EventID", "1"), ("User", "CORP\\mara"), ("Hostname", "FS1.corp.example")]);
        let sign_in = |at: &str, kind: &str, user: &str, host: &str, from: &str| {
            let fields = [
                ("EventID", "4624"),
                ("LogonType", kind),
                ("TargetUserName", user),
                ("Hostname", host),
                ("IpAddress", from),
            ];
            arrival(&rec(at, &fields), &[&alerted], alerted.time)
        };
        assert!(sign_in("2024-03-01T09:59:50Z", "3", "mara", "FS1", "192.0.2.7"));
        assert!(sign_in("2024-03-01T09:20:00Z", "10", "mara", "FS1", "192.0.2.7"));
        assert!(!sign_in("2024-03-01T09:20:00Z", "3", "mara", "FS1", "192.0.2.7"), "long before");
        assert!(!sign_in("2024-03-01T10:01:00Z", "3", "mara", "FS1", "192.0.2.7"), "after");
        assert!(!sign_in("2024-03-01T09:59:50Z", "2", "mara", "FS1", "192.0.2.7"), "at the console");
        assert!(!sign_in("2024-03-01T09:59:50Z", "3", "jonas", "FS1", "192.0.2.7"), "another person");
        assert!(!sign_in("2024-03-01T09:59:50Z", "3", "mara", "FS2", "192.0.2.7"), "another host");
        assert!(!sign_in("2024-03-01T09:59:50Z", "3", "mara", "FS1", "127.0.0.1"), "from the host itself");
    }
}
