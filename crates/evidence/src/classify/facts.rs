//! What a sample of a source contains. The rules decide by it.

use std::collections::BTreeMap;

use crate::source::Format;

type Fields = Vec<(String, String)>;

/// Records that a decision looks at.
const LOOKED: usize = 400;

#[derive(Debug)]
pub(crate) struct Facts<'a> {
    pub(crate) format: Format,
    pub(crate) sample: &'a [Fields],
    looked: usize,
    /// Paths and each of their ends, in lower case without `_`, `-` and blanks. For each, by what comes before it in
    /// the path, the records that have it.
    names: BTreeMap<String, BTreeMap<String, Marks>>,
}

/// A set of the looked-at records.
#[derive(Debug, Clone, Copy, Default)]
struct Marks([u64; LOOKED.div_ceil(64)]);

impl Marks {
    fn mark(&mut self, record: usize) {
        if let Some(word) = self.0.get_mut(record / 64) {
            *word |= 1 << (record % 64);
        }
    }

    fn zip(self, other: Self, with: impl Fn(u64, u64) -> u64) -> Self {
        let mut both = self;
        both.0.iter_mut().zip(other.0).for_each(|(word, other)| *word = with(*word, other));
        both
    }

    fn count(self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }
}

pub(crate) fn plain(name: &str) -> String {
    name.chars().filter(|c| !matches!(c, '_' | '-' | ' ')).flat_map(char::to_lowercase).collect()
}

/// True if the path is this name or ends with it, at a boundary.
fn ends_with(path: &str, name: &str) -> bool {
    let mut path = path.chars().rev().filter(|c| !matches!(c, '_' | '-' | ' '));
    let ends = name.chars().rev().all(|wanted| path.next().is_some_and(|c| c.to_lowercase().eq([wanted])));
    ends && path.next().is_none_or(|before| before == '.')
}

impl<'a> Facts<'a> {
    pub(crate) fn new(format: Format, sample: &'a [Fields]) -> Self {
        let mut names: BTreeMap<String, BTreeMap<String, Marks>> = BTreeMap::new();
        for (number, fields) in sample.iter().take(LOOKED).enumerate() {
            for (path, _) in fields {
                let path = plain(path);
                // A collector may wrap the fields of a product in a field.
                let ends = path.match_indices('.').map(|(at, _)| path.split_at(at + 1));
                for (before, name) in ends.chain([("", path.as_str())]) {
                    let of_name = match names.get_mut(name) {
                        Some(of_name) => of_name,
                        None => names.entry(name.to_owned()).or_default(),
                    };
                    match of_name.get_mut(before) {
                        Some(marks) => marks.mark(number),
                        None => of_name.entry(before.to_owned()).or_default().mark(number),
                    }
                }
            }
        }
        Self { format, sample, looked: sample.len().min(LOOKED), names }
    }

    /// More than half of the records, since one record may have been written by an attacker.
    fn most_of(&self, marks: Marks) -> bool {
        marks.count() * 2 > self.looked
    }

    /// True if most records have all of these fields, and one of `any` unless `any` is empty. The fields are at top
    /// level, or below one and the same field.
    pub(crate) fn mostly(&self, all: &[&str], any: &[&str]) -> bool {
        let every = Marks([u64::MAX; LOOKED.div_ceil(64)]);
        let at =
            |before: &str, name: &str| self.names.get(name).and_then(|n| n.get(before)).copied().unwrap_or_default();
        let firsts = all.iter().take(1).chain(if all.is_empty() { any } else { &[] });
        let mut befores = firsts.filter_map(|name| self.names.get(*name)).flat_map(BTreeMap::keys);
        befores.any(|before| {
            let have = all.iter().fold(every, |have, name| have.zip(at(before, name), |a, b| a & b));
            let one = any.iter().fold(Marks::default(), |one, name| one.zip(at(before, name), |a, b| a | b));
            self.most_of(if any.is_empty() { have } else { have.zip(one, |a, b| a & b) })
        })
    }

    pub(crate) fn all(&self, names: &[&str]) -> bool {
        self.mostly(names, &[])
    }

    pub(crate) fn any(&self, names: &[&str]) -> bool {
        self.mostly(&[], names)
    }

    /// The first of these fields that occurs.
    pub(crate) fn first<'n>(&self, names: &[&'n str]) -> Option<&'n str> {
        names.iter().find(|name| self.names.contains_key(**name)).copied()
    }

    /// At least a third of the records: the kinds of records of one unknown product have different fields.
    fn usual(&self, name: &str) -> bool {
        self.names.get(name).is_some_and(|n| n.values().any(|marks| marks.count() * 3 >= self.looked))
    }

    /// How many of these fields are usual. `names` are separated by blanks.
    pub(crate) fn some(&self, names: &str) -> usize {
        names.split_whitespace().filter(|name| self.usual(name)).count()
    }

    /// How many fields describe processes, in the terms of any sensor.
    pub(crate) fn of_processes(&self) -> usize {
        const WHAT: [&str; 6] = ["commandline", "name", "id", "path", "filename", "accountname"];
        let of = |n: &&String| n.contains("process") && !n.contains('.') && WHAT.iter().any(|what| n.ends_with(what));
        self.names.keys().filter(of).filter(|name| self.usual(name)).count()
    }

    /// The first value in each record of the field with this plain path, or path end.
    pub(crate) fn values<'f>(&'f self, name: &'f str) -> impl Iterator<Item = &'f str> {
        self.sample.iter().filter_map(move |fields| {
            fields.iter().find(|(path, value)| !value.is_empty() && ends_with(path, name)).map(|(_, v)| v.as_str())
        })
    }

    /// The share (0 to 1) of records with a value that `wanted` accepts.
    pub(crate) fn share(&self, name: &str, wanted: impl Fn(&str) -> bool) -> f64 {
        let hits = self.values(name).filter(|v| wanted(v)).count();
        crate::time::roles::share(hits, self.sample.len())
    }

    pub(crate) fn most(&self, name: &str) -> Option<String> {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for value in self.values(name) {
            *counts.entry(value).or_default() += 1;
        }
        counts.into_iter().max_by_key(|(_, n)| *n).map(|(v, _)| v.to_owned())
    }
}

pub(crate) fn hosts(sample: &[Fields]) -> (Option<String>, Vec<String>) {
    const NAMES: [&str; 21] = [
        "system.computer",
        "computer",
        "computername",
        "hostname",
        "host.hostname",
        "host.name",
        "devicename",
        "dvchost",
        "devname",
        "@system",
        "nodename",
        "hostidentifier",
        "agent.hostname",
        "agent.name",
        "beat.hostname",
        "node",
        "kubernetes.nodename",
        "host",
        "shost",
        "machinename",
        "device",
    ];
    let mut paths: BTreeMap<&str, usize> = BTreeMap::new();
    for fields in sample.iter().take(400) {
        // In the record of a request, `host` is the destination.
        let of_request = |(path, value): &(String, String)| match plain(path).as_str() {
            "uri" | "url" | "statuscode" => true,
            // That of a sign-in is `password`.
            "method" => value.bytes().all(|b| b.is_ascii_uppercase()),
            _ => false,
        };
        let request = fields.iter().any(of_request);
        for (path, value) in fields {
            if !value.is_empty() && value != "-" && !(request && path == "host") {
                *paths.entry(path).or_default() += 1;
            }
        }
    }
    let half = sample.len().min(400).div_ceil(2);
    let ends = |path: &str, name: &str| {
        let path = plain(path);
        path == name
            || path
                .strip_suffix(name)
                .is_some_and(|before| before.ends_with('.') && (name.contains(['.']) || name.contains("computer")))
    };
    let path = NAMES.iter().find_map(|name| {
        paths.iter().find(|(path, n)| **n >= half && ends(path, name)).map(|(path, _)| (*path).to_owned())
    });
    let Some(path) = path else { return (None, Vec::new()) };
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for fields in sample {
        if let Some((_, value)) = fields.iter().find(|(p, v)| *p == path && !v.is_empty()) {
            *counts.entry(value).or_default() += 1;
        }
    }
    let mut ranked: Vec<(&str, usize)> = counts.into_iter().collect();
    ranked.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0)));
    let hosts = ranked.into_iter().take(10).map(|(v, _)| v.to_owned()).collect();
    (Some(path), hosts)
}
