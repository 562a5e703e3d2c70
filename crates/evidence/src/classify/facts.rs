//! What a sample of a source contains. The rules decide by it.

use std::collections::{BTreeMap, BTreeSet};

use crate::source::Format;

type Fields = Vec<(String, String)>;

#[derive(Debug)]
pub(crate) struct Facts<'a> {
    pub(crate) format: Format,
    pub(crate) sample: &'a [Fields],
    /// Paths and each of their ends, in lower case without `_`, `-` and blanks.
    names: BTreeSet<String>,
}

pub(crate) fn plain(name: &str) -> String {
    name.chars().filter(|c| !matches!(c, '_' | '-' | ' ')).flat_map(char::to_lowercase).collect()
}

/// True if the path is this name or ends with it, at a boundary.
fn ends_with(path: &str, name: &str) -> bool {
    plain(path).strip_suffix(name).is_some_and(|before| before.is_empty() || before.ends_with('.'))
}

impl<'a> Facts<'a> {
    pub(crate) fn new(format: Format, sample: &'a [Fields]) -> Self {
        let mut names = BTreeSet::new();
        for (path, _) in sample.iter().take(400).flatten() {
            let path = plain(path);
            // A collector may wrap the fields of a product in a field.
            for (at, _) in path.match_indices('.') {
                names.insert(path.get(at + 1..).unwrap_or_default().to_owned());
            }
            names.insert(path);
        }
        Self { format, sample, names }
    }

    pub(crate) fn all(&self, names: &[&str]) -> bool {
        names.iter().all(|name| self.names.contains(*name))
    }

    /// All of these fields occur, in at least a third of the records.
    pub(crate) fn often(&self, names: &[&str]) -> bool {
        let has = |fields: &&Fields| names.iter().all(|name| fields.iter().any(|(path, _)| ends_with(path, name)));
        let looked = self.sample.iter().take(400);
        looked.clone().filter(has).count() * 3 >= looked.count()
    }

    pub(crate) fn any(&self, names: &[&str]) -> Option<&str> {
        names.iter().find_map(|name| self.names.get(*name)).map(String::as_str)
    }

    /// How many of these fields occur. `names` are separated by blanks.
    pub(crate) fn some(&self, names: &str) -> usize {
        names.split_whitespace().filter(|name| self.names.contains(*name)).count()
    }

    /// How many fields describe processes, in the terms of any sensor.
    pub(crate) fn of_processes(&self) -> usize {
        const WHAT: [&str; 6] = ["commandline", "name", "id", "path", "filename", "accountname"];
        let of = |n: &&String| n.contains("process") && !n.contains('.') && WHAT.iter().any(|what| n.ends_with(what));
        self.names.iter().filter(of).count()
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
        let request = fields.iter().any(|(p, _)| matches!(plain(p).as_str(), "uri" | "method" | "url" | "statuscode"));
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
