//! Plans the tool calls, turn by turn. Each turn depends only on the results of the turns before.

use std::collections::BTreeSet;

use casebook_agent::reasoner::{CallRequest, Done};
use casebook_agent::worker::call;
use casebook_evidence::facet::{Class, Facet, event_id};
use casebook_evidence::pointed;
use casebook_protocol::{Bearing, Timestamp, Weight};
use serde_json::{Map, Value, json};

use super::kin::Kin;
use super::rec::Rec;
use super::{Case, absence, account, counts, ruled};

/// Evidence with at most this many records is searched whole; larger evidence only around the alert.
const SMALL: u64 = 20_000;
/// Seconds searched around the alert in larger evidence.
const WINDOW: i64 = 12 * 3600;
/// Records of one search.
const LIMIT: u64 = 120;
const FOLLOWED: u64 = 400;
const AGAIN: u64 = 60;
/// The same of each source: a busy log must not hide the others.
const EACH: u64 = 50;
/// Seconds on each side of the alert in which all records are read.
const AROUND: u64 = 90;
/// Seconds before the alert in which its session may have begun.
const ARRIVAL: i64 = 3600;

/// The turn that asks what belongs to the alerted records.
pub(super) const ALERTED: u32 = 3;

/// Moves `at` by `by` seconds and cuts fractions. None if out of range.
pub(super) fn moved(at: Timestamp, by: i64) -> Option<Timestamp> {
    Timestamp::from_second(at.as_second().saturating_add(by)).ok()
}

/// The calls of a turn; none if the records in hand are enough.
pub(super) fn requests(case: &Case, done: &[Done], turn: u32) -> Vec<CallRequest> {
    let mut requests = match turn {
        2 => case.names(),
        ALERTED => case.around(),
        4 => case.values(),
        5 => case.grave(),
        _ => Vec::new(),
    };
    let before = done.iter().map(|d| (d.call.tool.clone(), d.call.arguments.clone()));
    let mut asked: BTreeSet<(String, String)> = before.collect();
    requests.retain(|request| asked.insert((request.tool.clone(), request.arguments.clone())));
    requests
}

impl Case {
    /// The window that searches are limited to in large evidence. If the clock of the alert is wrong, the window also
    /// covers the time that it states.
    fn window(&self) -> Map<String, Value> {
        let mut window = Map::new();
        let times = self.near.anchor.into_iter().chain(self.seeds.times.first().copied());
        let from = times.clone().min().and_then(|at| moved(at, -WINDOW));
        let to = times.max().and_then(|at| moved(at, WINDOW));
        if let (Some(from), Some(to), true) = (from, to, self.answers.records() > SMALL) {
            window.insert("from".into(), json!(from));
            window.insert("to".into(), json!(to));
        }
        window
    }

    fn search(&self, terms: &[&str], limit: u64, more: &[(&str, Value)]) -> CallRequest {
        let mut arguments = self.window();
        arguments.insert("terms".into(), json!(terms));
        arguments.insert("include_fields".into(), json!(true));
        arguments.insert("limit".into(), json!(limit));
        arguments.extend(more.iter().map(|(key, value)| ((*key).to_owned(), value.clone())));
        call("search", &Value::Object(arguments))
    }

    /// The records that the alert points to, and those with each name in it.
    fn names(&self) -> Vec<CallRequest> {
        let files: Vec<&str> = self.answers.files.iter().map(String::as_str).collect();
        let record = |(file, line): &(String, u64)| {
            Some(call("get_record", &json!({"file": pointed(&files, file)?, "line": line})))
        };
        let pointed = self.seeds.records.iter().filter_map(record);
        let followed = self.follow.iter().map(|name| self.search(&[name], FOLLOWED, &[]));
        let each = [("each_source", json!(EACH))];
        let named = self.seeds.names.iter().map(|seed| self.search(&[&seed.text], 4 * LIMIT, &each));
        pointed.chain(followed).chain(named).take(24).collect()
    }

    /// What happened around the alert, what the rules found, and what belongs to the alerted records.
    fn around(&self) -> Vec<CallRequest> {
        let related = |rec: &Rec| call("related", &json!({"file": rec.file, "line": rec.line, "limit": 200}));
        let mut requests: Vec<CallRequest> = self.alerted().take(4).map(related).collect();
        if let Some(at) = self.near.anchor {
            let near = json!({"time": at, "before_seconds": AROUND, "after_seconds": AROUND, "limit": 200, "include_fields": true});
            requests.push(call("around", &near));
            // Of a frequent name, the records near the alert matter.
            let names = self.seeds.names.iter().map(|seed| seed.text.as_str());
            let frequent = names.filter(|name| self.answers.total(name) > Some(LIMIT)).take(8);
            let near = [("near", json!(at)), ("each_source", json!(EACH))];
            requests.extend(frequent.map(|name| self.search(&[name], 4 * LIMIT, &near)));
        }
        requests.push(self.search(casebook_trust::injection::TERMS, LIMIT, &[("mode", json!("any"))]));
        if self.round == 1 {
            requests.extend(ruled::ask(self));
            requests.extend(absence::search(self));
        }
        requests
    }

    /// The values of the alerted records, how the actor came, and how often and from where before.
    fn values(&self) -> Vec<CallRequest> {
        const WORDS: [Facet; 6] =
            [Facet::UserAgent, Facet::DstIp, Facet::SrcIp, Facet::User, Facet::Object, Facet::DomainName];
        let values = self.alerted().flat_map(|rec| WORDS.iter().filter_map(|facet| rec.facets.get(*facet)));
        let terms: BTreeSet<&str> = values.filter(|v| (3..=300).contains(&v.len()) && !account::of_system(v)).collect();
        let near: Vec<(&str, Value)> = self.near.anchor.iter().map(|at| ("near", json!(at))).collect();
        let ids = self.ids.iter().map(String::as_str);
        let mut requests: Vec<CallRequest> =
            ids.chain(terms.into_iter().take(12)).map(|term| self.search(&[term], AGAIN, &near)).collect();
        if self.round == 1 {
            requests.extend(self.arrivals());
            requests.extend(counts::ask(self));
        }
        requests
    }

    /// The sign-ins of the alerted Windows accounts shortly before the alert.
    fn arrivals(&self) -> Vec<CallRequest> {
        let Some(anchor) = self.near.anchor else { return Vec::new() };
        let (from, to) = (moved(anchor, -ARRIVAL), moved(anchor, 2));
        let of_windows = self.alerted().filter(|rec| event_id(&rec.fields).is_some());
        let users = of_windows.filter_map(|rec| rec.facets.get(Facet::User)).filter(|user| !account::of_system(user));
        let users: BTreeSet<String> = users.map(account::bare).filter(|user| user.len() >= 2).collect();
        let search = |user: &String, event: &str| {
            let asked = json!({"terms": [user, event], "from": from, "to": to, "order": "time_desc", "limit": 20,
                "include_fields": true});
            call("search", &asked)
        };
        users.iter().flat_map(|user| ["4624", "4778"].map(|event| search(user, event))).collect()
    }

    /// What the processes in serious records did. Such a process may run as the system and have no other link to the
    /// alert. And what accounts did from a new address.
    fn grave(&self) -> Vec<CallRequest> {
        let grave = |rec: &&Rec| {
            self.round == 1
                && rec.class() == Class::ProcessStart
                && rec.heaviest(Bearing::Incriminating) >= Some(Weight::Strong)
        };
        let related = |rec: &Rec| call("related", &json!({"file": rec.file, "line": rec.line, "limit": 60}));
        let new = self.new.iter().map(|(name, address)| self.search(&[name, address], AGAIN, &[]));
        self.with(|kin| kin > Kin::Core).filter(grave).take(4).map(related).chain(new).collect()
    }
}
