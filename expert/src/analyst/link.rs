//! How records hang together with the alert: by process, by connection, by session, and by the rare
//! names that they share.

use std::collections::{BTreeMap, BTreeSet};

use casebook_protocol::Timestamp;

use super::account;
use super::facet::{Class, Facet, last};
use super::logon;
use super::rec::Rec;

/// How a record hangs together with the alert, closest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kin {
    /// The record that the alert is about.
    Core,
    /// The same process, connection or session.
    Same,
    /// A process above it.
    Ancestor,
    /// A process below it.
    Descendant,
    /// The same done again by the same actor, at the beginning or the end of it.
    Again,
    /// It goes on between two machines that are both under suspicion.
    Between,
    /// It shares a rare name with the alert.
    Named,
    /// It shares host, user or address with the alert, near it in time.
    Near,
}

/// Process ids are used again: past this they say nothing.
const PID_SECONDS: f64 = 3600.0;
/// What counts as near the alert in time.
pub(crate) const NEAR_SECONDS: f64 = 3600.0;
/// What counts as near for a name that the Director asks to follow.
pub(crate) const FOLLOWED_SECONDS: f64 = 24.0 * 3600.0;

pub(crate) fn seconds(a: Timestamp, b: Timestamp) -> f64 {
    (a.as_nanosecond() - b.as_nanosecond()) as f64 / 1e9
}

/// The keys of the process that a record is about, and of its parent.
pub(crate) fn process_keys(rec: &Rec) -> (Vec<String>, Vec<String>) {
    let host = rec.facets.get(Facet::Host).unwrap_or("").to_ascii_lowercase();
    let mut own = Vec::new();
    let mut parent = Vec::new();
    // In the Security log's own record of a start, `ProcessId` is the process that started the new one.
    let started = rec.field(&["newprocessid"]).is_some();
    for (path, value) in &rec.fields {
        let value = value.trim();
        if value.is_empty() || value == "0" || value == "0x0" || value == "-" || by_the_writer(path) {
            continue;
        }
        let (one, two) = (last(path, 1), last(path, 2));
        // The Security log writes process ids in hexadecimal, other sensors do not.
        let id = || logon::number(value).map_or_else(|| value.to_owned(), |n| n.to_string());
        match one.as_str() {
            "processid" if started => parent.push(format!("{host}#{}", id())),
            "processguid" | "sourceprocessguid" => own.push(value.to_ascii_lowercase()),
            "parentprocessguid" => parent.push(value.to_ascii_lowercase()),
            "execid" if two != "parent.execid" => own.push(value.to_owned()),
            "parentexecid" if two != "parent.parentexecid" => parent.push(value.to_owned()),
            "pid" | "processid" | "newprocessid" if !matches!(two.as_str(), "parent.pid" | "container.pid") => {
                own.push(format!("{host}#{}", id()))
            }
            "ppid" | "parentprocessid" | "parentpid" | "creatorprocessid" => parent.push(format!("{host}#{}", id())),
            _ => {}
        }
    }
    (own, parent)
}

/// Windows notes with each record the process that wrote it, which is the logging service's.
fn by_the_writer(path: &str) -> bool {
    let path = path.to_ascii_lowercase();
    path.contains("execution") || path.contains("winlog.process")
}

/// The keys of the connections that a record is about.
pub(crate) fn flow_keys(rec: &Rec) -> Vec<String> {
    let mut keys = Vec::new();
    for (path, value) in &rec.fields {
        let long = value.len() >= 10 && !value.chars().all(|c| c.is_ascii_digit());
        if long
            && matches!(
                last(path, 1).as_str(),
                "uid" | "fuid" | "certchainfuids" | "respfuids" | "origfuids" | "connuids" | "flowid" | "communityid"
            )
        {
            keys.push(value.clone());
        }
        if long && last(path, 1) == "id" && rec.fields.keys().any(|k| last(k, 1) == "ts") {
            keys.push(value.clone());
        }
    }
    if let (Some(a), Some(b)) = (endpoint(rec, true), endpoint(rec, false)) {
        keys.push(if a < b { format!("{a}<>{b}") } else { format!("{b}<>{a}") });
    }
    keys
}

/// Address and port of one end of the connection.
fn endpoint(rec: &Rec, source: bool) -> Option<String> {
    let ip = rec.facets.get(if source { Facet::SrcIp } else { Facet::DstIp })?;
    let ports: &[&str] = if source {
        &["sourceport", "srcport", "sport", "idorigp", "origp"]
    } else {
        &["destinationport", "destport", "dstport", "dport", "idrespp", "respp"]
    };
    Some(format!("{ip}:{}", rec.field(ports)?))
}

/// The session of an account that a record belongs to.
pub(crate) fn session_keys(rec: &Rec) -> Vec<String> {
    let named = |path: &str| {
        matches!(
            last(path, 1).as_str(),
            "accesskeyid" | "sessionid" | "externalsessionid" | "logonguid" | "uniquetokenidentifier" | "signinid"
        )
    };
    if rec.facets.get(Facet::User).is_some_and(account::of_system) {
        return Vec::new();
    }
    let zero = |value: &str| value.chars().all(|c| matches!(c, '0' | '-' | '{' | '}'));
    rec.fields.iter().filter(|(k, v)| named(k) && v.len() >= 6 && !zero(v)).map(|(_, v)| v.clone()).collect()
}

/// A process id is used again: of the processes that had it, the one above is the last that started
/// before the alert.
fn latest_before(recs: &[Rec], keys: &[(Vec<String>, Vec<String>)], index: usize, anchor: Option<Timestamp>) -> bool {
    let (Some(rec), Some((own, _))) = (recs.get(index), keys.get(index)) else { return false };
    let (Some(at), Some(anchor)) = (rec.time, anchor) else { return true };
    let later = recs.iter().zip(keys).any(|(other, (others, _))| {
        let between = other.time.is_some_and(|t| t > at && t <= anchor);
        let other_program = other.facets.get(Facet::Command) != rec.facets.get(Facet::Command);
        between && other.class() == Class::ProcessStart && others.iter().any(|k| own.contains(k)) && !other_program
    });
    at <= anchor && !later
}

/// The record that the alert is about, and what hangs together with it.
#[derive(Debug, Default)]
pub(crate) struct Links {
    kin: BTreeMap<usize, Kin>,
    ends: BTreeSet<usize>,
}

impl Links {
    pub(crate) fn kin(&self, index: usize) -> Option<Kin> {
        self.kin.get(&index).copied()
    }

    fn add(&mut self, index: usize, kin: Kin) -> bool {
        match self.kin.get(&index) {
            Some(known) if *known <= kin => false,
            _ => {
                self.kin.insert(index, kin);
                true
            }
        }
    }

    /// Follows processes, connections and sessions from `core`, then the rare `names`.
    pub(crate) fn follow(recs: &[Rec], core: &BTreeSet<usize>, names: &[String], anchor: Option<Timestamp>) -> Self {
        let mut links = Self::default();
        for &index in core {
            links.add(index, Kin::Core);
        }
        let keys: Vec<(Vec<String>, Vec<String>)> = recs.iter().map(process_keys).collect();
        links.processes(recs, core, &keys, anchor);
        links.shared(recs, core, flow_keys);
        links.shared(recs, core, session_keys);
        links.sessions(recs, core);
        for (index, rec) in recs.iter().enumerate() {
            if names.iter().any(|n| rec.names(n)) {
                links.add(index, Kin::Named);
            }
        }
        links
    }

    fn shared(&mut self, recs: &[Rec], core: &BTreeSet<usize>, keys: fn(&Rec) -> Vec<String>) {
        let of_core: BTreeSet<String> = core.iter().filter_map(|i| recs.get(*i)).flat_map(keys).collect();
        for (index, rec) in recs.iter().enumerate() {
            if keys(rec).iter().any(|k| of_core.contains(k)) {
                self.add(index, Kin::Same);
            }
        }
    }

    /// What tells of the logon session itself belongs to the alerted record; what else was done in it
    /// shares no more than the account.
    fn sessions(&mut self, recs: &[Rec], core: &BTreeSet<usize>) {
        let of_core: BTreeSet<String> = core.iter().filter_map(|i| recs.get(*i)).flat_map(logon::keys).collect();
        for (index, rec) in recs.iter().enumerate() {
            if logon::of_session(rec) && logon::keys(rec).iter().any(|k| of_core.contains(k)) {
                self.add(index, Kin::Same);
            }
        }
    }

    fn processes(
        &mut self,
        recs: &[Rec],
        core: &BTreeSet<usize>,
        keys: &[(Vec<String>, Vec<String>)],
        anchor: Option<Timestamp>,
    ) {
        let in_time = |rec: &Rec| match (rec.time, anchor) {
            (Some(at), Some(anchor)) => seconds(at, anchor).abs() <= PID_SECONDS,
            _ => true,
        };
        let pick = |set: &BTreeSet<usize>, parents: bool| -> BTreeSet<&String> {
            set.iter()
                .filter_map(|i| keys.get(*i))
                .flat_map(|(own, parent)| if parents { parent } else { own })
                .collect()
        };
        let own = pick(core, false);
        let mut below: BTreeSet<usize> = BTreeSet::new();
        let mut above = pick(core, true);
        let mut reach = own.clone();
        for _ in 0..16 {
            let before = (below.len(), above.len());
            for (index, (mine, parent)) in keys.iter().enumerate() {
                let Some(rec) = recs.get(index).filter(|r| in_time(r)) else { continue };
                let is_start = rec.class() == Class::ProcessStart;
                if mine.iter().any(|k| own.contains(k)) {
                    self.add(index, Kin::Same);
                } else if parent.iter().any(|k| reach.contains(k)) || mine.iter().any(|k| reach.contains(k)) {
                    self.add(index, Kin::Descendant);
                    below.insert(index);
                } else if is_start
                    && mine.iter().any(|k| above.contains(k))
                    && latest_before(recs, keys, index, anchor)
                    && self.add(index, Kin::Ancestor)
                {
                    above.extend(parent.iter());
                }
            }
            reach.extend(pick(&below, false));
            if (below.len(), above.len()) == before {
                break;
            }
        }
    }

    /// It is where the series of the alerted activity begins or ends, or tells how that went.
    pub(crate) fn is_end(&self, index: usize) -> bool {
        self.ends.contains(&index)
    }

    /// Marks the records at these places.
    pub(crate) fn again(&mut self, recs: &[Rec], places: &BTreeSet<(String, u64)>) {
        for (index, rec) in recs.iter().enumerate() {
            if places.iter().any(|(file, line)| rec.key() == (file.as_str(), *line)) {
                self.add(index, Kin::Again);
                self.ends.insert(index);
            }
        }
    }

    /// Marks what shares host, user or address with the core and is near it in time.
    pub(crate) fn near(&mut self, recs: &[Rec], subjects: &BTreeSet<String>, anchor: Option<Timestamp>, within: f64) {
        for (index, rec) in recs.iter().enumerate() {
            let (Some(at), Some(anchor)) = (rec.time, anchor) else { continue };
            if seconds(at, anchor).abs() <= within && subjects.iter().any(|s| rec.names(s)) {
                self.add(index, Kin::Near);
            }
        }
    }

    /// Marks what joins a name to follow with the alert's own addresses, or two names to follow: what
    /// goes on between machines that are both under suspicion matters whatever it looks like.
    pub(crate) fn between(
        &mut self,
        recs: &[Rec],
        followed: &BTreeSet<String>,
        subjects: &BTreeSet<String>,
        anchor: Option<Timestamp>,
    ) {
        let address = |name: &&String| name.parse::<std::net::IpAddr>().is_ok();
        let suspects: BTreeSet<&String> = followed.iter().chain(subjects).filter(address).collect();
        for (index, rec) in recs.iter().enumerate() {
            let near =
                matches!((rec.time, anchor), (Some(at), Some(anchor)) if seconds(at, anchor).abs() <= FOLLOWED_SECONDS);
            let ends = [Facet::SrcIp, Facet::DstIp]
                .into_iter()
                .filter(|f| rec.facets.get(*f).is_some_and(|v| suspects.iter().any(|s| s.as_str() == v)));
            if near && ends.count() == 2 && followed.iter().any(|f| rec.names(f)) {
                self.add(index, Kin::Between);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use casebook_protocol::CallId;

    use super::super::facet::Facets;
    use super::*;

    fn rec(fields: &[(&str, &str)]) -> Rec {
        let fields: BTreeMap<String, String> =
            fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let facets = Facets::read(&fields, "");
        Rec::of(CallId::new("r1.investigate.endpoint.t1.0").unwrap(), fields, facets)
    }

    #[test]
    fn a_process_has_one_key_whichever_sensor_writes_its_id() {
        let audit = rec(&[("EventID", "4688"), ("Hostname", "PC1"), ("NewProcessId", "0x270"), ("ProcessId", "0x1a4")]);
        assert_eq!(process_keys(&audit), (vec!["pc1#624".into()], vec!["pc1#420".into()]));
        let sensor = rec(&[("EventID", "11"), ("Hostname", "PC1"), ("ProcessId", "624"), ("winlog.process.pid", "9")]);
        assert_eq!(process_keys(&sensor), (vec!["pc1#624".into()], Vec::new()));
        let none = rec(&[("EventID", "4624"), ("Hostname", "PC1"), ("ProcessId", "0x0"), ("ExecutionProcessID", "7")]);
        assert_eq!(process_keys(&none), (Vec::new(), Vec::new()));
    }

    #[test]
    fn sessions_of_the_system_join_nothing() {
        let guid = ("LogonGuid", "{11111111-2222-3333-4444-555555555555}");
        assert_eq!(session_keys(&rec(&[guid, ("User", "CORP\\mara")])).len(), 1);
        assert_eq!(session_keys(&rec(&[guid, ("User", "NT AUTHORITY\\SYSTEM")])).len(), 0);
    }
}
