//! How far the clocks of two sensors are apart: connections and logins that both recorded, known by the address and the
//! port of the client.

use std::hash::{DefaultHasher, Hash, Hasher};

use ahash::AHashMap;

use crate::facet::{Facet, names_of};
use crate::source::Source;
use crate::time::roles::{SECOND, modal};

/// Connections that are kept of a source.
const KEPT_MAX: usize = 20_000;
/// Records without such fields after which a source is not looked at any more.
const LOOKED_MAX: u64 = 5_000;
/// Connections that two sources must share.
const SHARED: usize = 5;
/// Times closer than this are called equal.
const APART: i64 = 2 * SECOND;
/// Notes for one source.
const NOTES_MAX: usize = 3;
/// A client chooses its port from these.
const CLIENT_PORTS: std::ops::RangeInclusive<u32> = 1024..=65_535;

const PORTS: [&str; 12] = [
    "srcport",
    "sourceport",
    "spt",
    "idorigp",
    "clientport",
    "ipport",
    "sourceportnumber",
    "srcportnumber",
    "cport",
    "clientportnumber",
    "sourcetransportport",
    "l4srcport",
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Address,
    Port,
    Neither,
}

/// Reads which connection a record is of.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    parts: AHashMap<String, Part>,
    /// The fields of the record before, in order, since the next one is mostly alike.
    before: Vec<(String, Part)>,
    any: bool,
    looked: u64,
}

impl Keys {
    /// None if the record names no connection.
    pub(crate) fn of(&mut self, fields: &[(String, String)]) -> Option<u64> {
        if !self.any && self.looked >= LOOKED_MAX {
            return None;
        }
        self.looked += 1;
        let (mut address, mut port) = (None, None);
        for (nth, (path, value)) in fields.iter().enumerate() {
            match self.part(nth, path) {
                Part::Address if address.is_none() => address = Some(value),
                Part::Port if port.is_none() => port = value.parse().ok().filter(|port| CLIENT_PORTS.contains(port)),
                _ => {}
            }
        }
        let key = (address.and_then(|text| text.parse::<std::net::IpAddr>().ok())?, port?);
        self.any = true;
        let mut hasher = DefaultHasher::new();
        key.hash(&mut hasher);
        Some(hasher.finish())
    }

    fn part(&mut self, nth: usize, path: &String) -> Part {
        if let Some((_, part)) = self.before.get(nth).filter(|(before, _)| before == path) {
            return *part;
        }
        let part = match self.parts.get(path) {
            Some(part) => *part,
            None => *self.parts.entry(path.clone()).or_insert_with(|| part(path)),
        };
        match self.before.get_mut(nth) {
            Some((before, of)) => {
                before.clone_from(path);
                *of = part;
            }
            None => self.before.push((path.clone(), part)),
        }
        part
    }
}

/// The first time of each connection of a source.
#[derive(Debug, Default)]
pub(crate) struct Connections(AHashMap<u64, i64>);

impl Connections {
    /// `at` is in nanoseconds.
    pub(crate) fn add(&mut self, key: u64, at: i64) {
        let room = self.0.len() < KEPT_MAX;
        match self.0.get_mut(&key) {
            Some(first) => *first = at.min(*first),
            None if room => {
                self.0.insert(key, at);
            }
            None => {}
        }
    }

    /// The difference to the times of the other source, and how many connections have it of those that both have.
    fn apart(&self, other: &Self) -> Option<(i64, usize, usize)> {
        let diffs = self.0.iter().filter_map(|(key, at)| at.checked_sub(*other.0.get(key)?));
        let diffs: Vec<i64> = diffs.collect();
        let (apart, agree) = modal(&diffs, SECOND).filter(|_| diffs.len() >= SHARED)?;
        (agree >= SHARED && agree * 10 >= diffs.len() * 6 && apart.abs() >= APART).then_some((
            apart,
            agree,
            diffs.len(),
        ))
    }
}

fn part(path: &str) -> Part {
    let plain = |text: &str| text.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_lowercase();
    let parts: Vec<String> = path.rsplit('.').take(2).map(plain).collect();
    let last = parts.first().cloned().unwrap_or_default();
    let two = parts.iter().rev().cloned().collect::<Vec<_>>().concat();
    let dotted = parts.iter().rev().cloned().collect::<Vec<_>>().join(".");
    let is_of = |names: &[&str]| [&last, &two, &dotted].iter().any(|name| names.contains(&name.as_str()));
    if is_of(&PORTS) {
        Part::Port
    } else if is_of(names_of(Facet::SrcIp)) {
        Part::Address
    } else {
        Part::Neither
    }
}

/// Notes in each of two sources of different sensors whose times of the same connections differ.
pub(crate) fn compare(sources: &mut [&mut Source], connections: &[Connections]) {
    let mut notes: Vec<Vec<String>> = vec![Vec::new(); sources.len()];
    for (n, (one, of_one)) in sources.iter().zip(connections).enumerate() {
        for (other, of_other) in sources.iter().zip(connections).filter(|(other, _)| other.sensor != one.sensor) {
            let Some((apart, agree, of)) = of_one.apart(of_other) else { continue };
            let tenths = apart.abs() / (SECOND / 10);
            let way = if apart < 0 { "before" } else { "after" };
            let note = format!(
                "its times of {agree} of {of} connections or logins that {} also has are {}.{} s {way} the times there: the clocks differ, or one of the two notes another moment",
                other.id,
                tenths / 10,
                tenths % 10
            );
            notes.iter_mut().skip(n).take(1).filter(|own| own.len() < NOTES_MAX).for_each(|own| own.push(note.clone()));
        }
    }
    for (source, notes) in sources.iter_mut().zip(notes) {
        source.notes.extend(notes);
    }
}
