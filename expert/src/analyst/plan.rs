//! Plans the tool calls, turn by turn. Each turn depends only on the results of the turns before.

use std::collections::{BTreeMap, BTreeSet};

use casebook_agent::reasoner::{CallRequest, Done};
use casebook_agent::worker::call;
use casebook_protocol::{Bearing, CallStatus, EntityKind, Timestamp, Weight};
use serde_json::{Map, Value, json};

use super::behaviour;
use super::link::{Links, flow_keys, moved, process_keys, seconds, session_keys};
use super::logon;
use super::rec::Rec;
use super::seed::{Seed, Seeds};
use casebook_evidence::facet::{Class, Facet};
use casebook_evidence::pointed;

/// Evidence with at most this many records is searched whole; larger evidence only around the alert.
const SMALL: u64 = 20_000;
/// Fewer records than this are not a complete log of a host.
const FEW: u64 = 100;
/// Seconds searched around the alert in larger evidence.
const WINDOW: i64 = 12 * 3600;
const LIMIT: u64 = 120;
const FOLLOWED: u64 = 400;
/// A term in more records than this is searched only around the alert.
const RARE: u64 = 40;
/// Number of searches for rare terms and for common terms.
const RARE_SEARCHES: usize = 14;
const COMMON_SEARCHES: usize = 14;
const FILE_SEARCHES: usize = 6;
const NEAREST: u64 = 40;
/// Behaviour terms counted by one search.
const TERMS: usize = 450;
/// Records in a search for a file or for the activity of a process.
const AGAIN: u64 = 30;

#[derive(Debug, Default)]
pub(crate) struct Sources {
    pub(crate) records: u64,
    pub(crate) files: Vec<String>,
    /// Records by source.
    pub(crate) held: BTreeMap<String, u64>,
}

impl Sources {
    /// So few records were probably collected for the alert, so weaker links are enough.
    pub(crate) const fn few(&self) -> bool {
        self.records <= FEW
    }
}

pub(crate) fn sources_of(done: &[Done]) -> Sources {
    let listing = done.iter().find(|d| d.call.tool == "list_sources" && d.call.status == CallStatus::Answered);
    let Some(json) = listing.and_then(|d| serde_json::from_str::<Value>(&d.result).ok()) else {
        return Sources::default();
    };
    let sources =
        json.as_array().or_else(|| json.get("sources").and_then(Value::as_array)).cloned().unwrap_or_default();
    let text = |s: &Value, key: &str| s.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    Sources {
        records: sources.iter().filter_map(|s| s.get("records").and_then(Value::as_u64)).sum(),
        files: sources.iter().map(|s| text(s, "file")).collect(),
        held: sources.iter().filter_map(|s| Some((text(s, "source"), s.get("records")?.as_u64()?))).collect(),
    }
}

pub(crate) fn total_of(done: &[Done], term: &str) -> Option<u64> {
    let searches = done.iter().filter(|d| d.call.tool == "search" && d.call.status == CallStatus::Answered);
    let totals = searches.filter_map(|d| {
        let arguments: Value = serde_json::from_str(&d.call.arguments).ok()?;
        let terms = arguments.get("terms")?.as_array()?;
        if terms.len() != 1 || terms.first()?.as_str()? != term {
            return None;
        }
        let total = serde_json::from_str::<Value>(&d.result).ok()?.get("total")?.as_u64()?;
        Some((d.call.arguments.as_str(), total))
    });
    // A search of a crowded log has two parts with the same arguments.
    let mut parts = totals.peekable();
    let first = parts.peek()?.0;
    Some(parts.filter(|(arguments, _)| *arguments == first).map(|(_, total)| total).sum())
}

fn book() -> Vec<&'static str> {
    let mut book: Vec<_> = behaviour::all().iter().collect();
    book.sort_by_key(|b| std::cmp::Reverse(b.weight));
    let mut seen = BTreeSet::new();
    book.iter().flat_map(|b| &b.terms).map(String::as_str).filter(|t| seen.insert(*t)).collect()
}

pub(crate) struct Search<'a> {
    pub(crate) sources: &'a Sources,
    pub(crate) seeds: &'a Seeds,
    pub(crate) done: &'a [Done],
}

impl Search<'_> {
    fn window(&self, anchor: Option<Timestamp>) -> Map<String, Value> {
        let mut window = Map::new();
        if self.sources.records <= SMALL {
            return window;
        }
        let times: Vec<Timestamp> = anchor.map_or_else(|| self.seeds.times.clone(), |at| vec![at]);
        let edge = |at: Option<&Timestamp>, by: i64| at.and_then(|t| moved(*t, by));
        if let (Some(from), Some(to)) = (edge(times.iter().min(), -WINDOW), edge(times.iter().max(), WINDOW)) {
            window.insert("from".into(), json!(from));
            window.insert("to".into(), json!(to));
        }
        window
    }

    fn search(&self, terms: &[&str], anchor: Option<Timestamp>, limit: u64) -> CallRequest {
        let mut arguments = self.window(anchor);
        arguments.insert("terms".into(), json!(terms));
        arguments.insert("mode".into(), json!("any"));
        arguments.insert("include_fields".into(), json!(true));
        arguments.insert("limit".into(), json!(limit));
        call("search", &Value::Object(arguments))
    }

    fn nearest(&self, term: &str, anchor: Timestamp, limit: u64) -> CallRequest {
        let mut arguments = self.window(Some(anchor));
        arguments.insert("terms".into(), json!([term]));
        arguments.insert("near".into(), json!(anchor));
        arguments.insert("include_fields".into(), json!(true));
        arguments.insert("limit".into(), json!(limit));
        call("search", &Value::Object(arguments))
    }

    fn unasked(&self, requests: Vec<CallRequest>, most: usize) -> Vec<CallRequest> {
        let mut asked: BTreeSet<(String, String)> =
            self.done.iter().map(|d| (d.call.tool.clone(), d.call.arguments.clone())).collect();
        requests.into_iter().filter(|r| asked.insert((r.tool.clone(), r.arguments.clone()))).take(most).collect()
    }

    /// Gets the records that the alert points to, and searches for each name in it.
    pub(crate) fn begin(&self, follow: &[Seed]) -> Vec<CallRequest> {
        let mut requests: Vec<CallRequest> = Vec::new();
        let files: Vec<&str> = self.sources.files.iter().map(String::as_str).collect();
        for (file, line) in &self.seeds.records {
            if let Some(file) = pointed(&files, file) {
                requests.push(call("get_record", &json!({"file": file, "line": line})));
            }
        }
        requests.extend(follow.iter().map(|seed| self.search(&[&seed.text], None, FOLLOWED)));
        requests.extend(self.seeds.names.iter().map(|seed| self.search(&[&seed.text], None, LIMIT)));
        self.unasked(requests, 24)
    }

    pub(crate) fn scan(&self, anchor: Option<Timestamp>) -> Vec<CallRequest> {
        let mut requests = Vec::new();
        if let Some(at) = anchor {
            requests.push(call(
                "around",
                &json!({"time": at, "before_seconds": 90, "after_seconds": 90, "limit": 200, "include_fields": true}),
            ));
        }
        if let Some(at) = anchor {
            // For a common name, the records near the alert matter.
            let common = self.seeds.names.iter().filter(|s| s.kind != EntityKind::Host);
            let common = common.filter(|s| total_of(self.done, &s.text).is_some_and(|total| total > LIMIT));
            requests.extend(common.take(6).map(|seed| self.nearest(&seed.text, at, LIMIT)));
        }
        requests.push(self.search(casebook_trust::injection::TERMS, anchor, LIMIT));
        requests.extend(book().chunks(TERMS).map(|chunk| self.search(chunk, anchor, 0)));
        self.unasked(requests, 20)
    }

    /// Searches for behaviours that occur: rare ones everywhere, common ones near the alert.
    pub(crate) fn look(&self, anchor: Option<Timestamp>) -> Vec<CallRequest> {
        let counted = self.tally();
        let (rare, common): (Vec<_>, Vec<_>) =
            book().into_iter().filter_map(|t| Some((t, *counted.get(t)?))).partition(|(_, n)| *n <= RARE);
        let mut requests = Vec::new();
        let mut together: (Vec<&str>, u64) = (Vec::new(), 0);
        for (term, count) in rare {
            if together.1 + count > LIMIT {
                requests.push(self.search(&std::mem::take(&mut together.0), anchor, LIMIT));
                together.1 = 0;
            }
            together.0.push(term);
            together.1 += count;
        }
        if !together.0.is_empty() {
            requests.push(self.search(&together.0, anchor, LIMIT));
        }
        requests.truncate(RARE_SEARCHES);
        if let Some(at) = anchor {
            requests.extend(common.iter().take(COMMON_SEARCHES).map(|(term, _)| self.nearest(term, at, NEAREST)));
        }
        requests.extend(behaviour::all().iter().filter_map(|b| self.by_file(b, anchor)));
        self.unasked(requests, RARE_SEARCHES + COMMON_SEARCHES + FILE_SEARCHES)
    }

    fn tally(&self) -> BTreeMap<String, u64> {
        let counts = self.done.iter().filter(|d| d.call.tool == "search" && d.call.status == CallStatus::Answered);
        let by_term = counts.filter_map(|d| {
            let found: Value = serde_json::from_str(&d.result).ok()?;
            (found.get("returned")?.as_u64()? == 0).then(|| found.get("by_term").cloned())?
        });
        let mut tally: BTreeMap<String, u64> = BTreeMap::new();
        for (term, count) in by_term.filter_map(|it| serde_json::from_value::<BTreeMap<String, u64>>(it).ok()).flatten()
        {
            *tally.entry(term).or_default() += count;
        }
        tally
    }

    /// Searches for the whole file name, because its extension occurs in many more records.
    fn by_file(&self, behaviour: &behaviour::Behaviour, anchor: Option<Timestamp>) -> Option<CallRequest> {
        let mut arguments = self.window(anchor);
        let condition = json!([{"field": "TargetFilename", "op": "regex", "value": behaviour.file_name()?}]);
        arguments.insert("where".into(), condition);
        arguments.insert("terms".into(), json!(behaviour.terms));
        arguments.insert("mode".into(), json!("any"));
        arguments.insert("include_fields".into(), json!(true));
        arguments.insert("limit".into(), json!(AGAIN));
        Some(call("search", &Value::Object(arguments)))
    }

    /// Searches for the connections and files of processes in serious records. Such a process may run as the
    /// system and have no other link to the alert.
    pub(crate) fn of_the_grave(&self, recs: &[Rec], anchor: Option<Timestamp>) -> Vec<CallRequest> {
        let grave = |rec: &&Rec| {
            rec.class() == Class::ProcessStart
                && rec.shows.iter().any(|b| b.bearing == Bearing::Incriminating && b.weight >= Weight::Strong)
        };
        let own = recs.iter().filter(grave).flat_map(|rec| process_keys(rec).0).filter(|key| !key.contains('#'));
        let what =
            own.flat_map(|key| ["DestinationIp", "TargetFilename", "QueryName"].map(|field| (key.clone(), field)));
        let requests = what.map(|(key, field)| {
            let mut arguments = self.window(anchor);
            arguments.insert("terms".into(), json!([key, field]));
            arguments.insert("include_fields".into(), json!(true));
            arguments.insert("limit".into(), json!(AGAIN));
            call("search", &Value::Object(arguments))
        });
        self.unasked(requests.collect(), 18)
    }

    /// Searches for the start of the alerted sessions and for other activity of their processes.
    pub(crate) fn origin(&self, alerted: &[&Rec], anchor: Option<Timestamp>) -> Vec<CallRequest> {
        let mut requests = logon::searches(alerted, anchor);
        let Some(anchor) = anchor else { return self.unasked(requests, 12) };
        let edge = |by: i64| moved(anchor, by);
        for rec in alerted {
            // Sensors of one host write the same id in decimal or hexadecimal.
            let Some(id) = rec.field(&["processid"]).filter(|id| id.starts_with("0x")) else { continue };
            let Some(plain) = casebook_evidence::facet::number(id).filter(|n| *n > 4) else { continue };
            for (written, field) in [(plain.to_string(), "ProcessId"), (id.to_owned(), "NewProcessId")] {
                let condition = json!([{"field": field, "op": "eq", "value": written}]);
                for (from, to, order, limit) in
                    [(edge(-3600), edge(1), "time_desc", 30), (edge(0), edge(900), "time", 60)]
                {
                    let near = json!({"where": condition, "from": from, "to": to, "order": order, "limit": limit, "include_fields": true});
                    requests.push(call("search", &near));
                }
            }
        }
        self.unasked(requests, 12)
    }

    /// Searches for processes, connections, sessions and rare values of the linked records.
    pub(crate) fn expand(&self, recs: &[Rec], links: &Links, anchor: Option<Timestamp>) -> Vec<CallRequest> {
        let mut close: Vec<(usize, &Rec)> = recs
            .iter()
            .enumerate()
            .filter(|(i, _)| links.kin(*i).is_some_and(|k| k <= super::link::Kin::Descendant))
            .collect();
        close.sort_by_key(|(i, rec)| (links.kin(*i), rec.time));
        let mut terms: Vec<String> = Vec::new();
        let mut requests: Vec<CallRequest> = Vec::new();
        for (index, rec) in close.iter().take(40) {
            let (own, parent) = process_keys(rec);
            terms.extend(own.into_iter().chain(parent).filter(|k| !k.contains('#')));
            if links.kin(*index) != Some(super::link::Kin::Descendant) {
                requests.extend(self.process(rec));
            }
            terms.extend(flow_keys(rec).into_iter().filter(|k| !k.contains("<>")));
            terms.extend(session_keys(rec).into_iter().map(|key| key.rsplit('#').next().unwrap_or(&key).to_owned()));
        }
        for (_, rec) in close.iter().filter(|(i, _)| links.kin(*i) == Some(super::link::Kin::Core)) {
            for facet in [Facet::UserAgent, Facet::DstIp, Facet::SrcIp, Facet::User, Facet::Object] {
                terms.extend(rec.facets.get(facet).filter(|v| v.len() <= 300).map(str::to_owned));
            }
        }
        terms.extend(links.brought(recs));
        let mut seen = BTreeSet::new();
        terms.retain(|t| t.len() >= 2 && seen.insert(t.clone()));
        requests.extend(terms.iter().map(|t| self.search(&[t], anchor, 80)));
        self.unasked(requests, 16)
    }

    /// Parent and child processes, by process id. Ids are reused, so only records near this one count.
    fn process(&self, rec: &Rec) -> Vec<CallRequest> {
        let Some(at) = rec.time else { return Vec::new() };
        let field = |wanted: &[&str]| {
            rec.fields.iter().find(|(path, _)| {
                wanted.contains(&casebook_evidence::facet::last(path, 1).as_str()) && !path.contains("parent")
            })
        };
        let own = field(&["createdprocessid", "targetprocessid", "tgtprocpid"])
            .or_else(|| field(&["pid", "processid", "newprocessid"]));
        let parent = rec.fields.iter().find(|(path, _)| {
            matches!(
                casebook_evidence::facet::last(path, 1).as_str(),
                "ppid" | "parentprocessid" | "parentpid" | "initiatingprocessid" | "actingprocessid" | "srcprocpid"
            ) || casebook_evidence::facet::last(path, 2) == "columns.parent"
        });
        let edge = |by: i64| moved(at, by);
        let (Some((own_field, pid)), Some((parent_field, ppid)), Some(from), Some(to)) =
            (own, parent, edge(-3600), edge(900))
        else {
            return Vec::new();
        };
        let search = |field: &String, value: &String, from: Timestamp, to: Timestamp, order: &str, limit: u64| {
            call(
                "search",
                &json!({"where": [{"field": field, "op": "eq", "value": value}], "from": from, "to": to, "order": order, "limit": limit, "include_fields": true}),
            )
        };
        let Some(next) = edge(1) else { return Vec::new() };
        vec![search(own_field, ppid, from, next, "time_desc", 6), search(parent_field, pid, at, to, "time", 30)]
    }

    /// Searches for the parents of known processes.
    pub(crate) fn climb(&self, recs: &[Rec], links: &Links) -> Vec<CallRequest> {
        let above = recs
            .iter()
            .enumerate()
            .filter(|(i, _)| matches!(links.kin(*i), Some(super::link::Kin::Core | super::link::Kin::Ancestor)));
        let requests = above.flat_map(|(_, rec)| self.process(rec).into_iter().take(1)).collect();
        self.unasked(requests, 4)
    }
}

/// The alerted records: those that the alert points to, or else those with most names of the alert near its
/// time.
pub(crate) fn core(recs: &[Rec], seeds: &Seeds, specific: &[String]) -> BTreeSet<usize> {
    let files: Vec<&str> = recs.iter().map(|r| r.file.as_str()).collect::<BTreeSet<_>>().into_iter().collect();
    let meant: Vec<(&str, u64)> =
        seeds.records.iter().filter_map(|(file, line)| Some((pointed(&files, file)?, *line))).collect();
    if !seeds.records.is_empty() {
        return recs.iter().enumerate().filter(|(_, r)| meant.contains(&r.key())).map(|(i, _)| i).collect();
    }
    let Some(time) = seeds.times.first() else { return BTreeSet::new() };
    let apart = |rec: &Rec| rec.time.map_or(f64::INFINITY, |at| seconds(at, *time).abs());
    // If two records have the same names of the alert, choose the nearer one.
    let best = |within: f64| -> BTreeSet<usize> {
        let close = recs.iter().enumerate().filter(|(_, rec)| apart(rec) <= within);
        let mut close: Vec<_> = close.map(|(i, rec)| (telling(rec, seeds, specific), apart(rec), i)).collect();
        close.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.total_cmp(&b.1)).then(a.2.cmp(&b.2)));
        let Some((most, nearest, _)) = close.first().copied().filter(|(named, ..)| *named >= NAMED) else {
            return BTreeSet::new();
        };
        let meant = close.iter().filter(|(named, apart, _)| *named == most && *apart <= nearest + 0.05);
        meant.map(|(.., i)| *i).take(4).collect()
    };
    [2.0, 90.0].into_iter().map(best).find(|found| !found.is_empty()).unwrap_or_default()
}

/// Without a pointer in the alert, a record needs names that weigh this much: more than a host.
const NAMED: usize = 3;

/// How well a record matches the names of the alert: rare names count most, a host least.
fn telling(rec: &Rec, seeds: &Seeds, specific: &[String]) -> usize {
    let tells = |seed: &&Seed| match seed.kind {
        EntityKind::Host => 1,
        _ if specific.contains(&seed.text) => 3 * NAMED,
        _ => NAMED,
    };
    seeds.names.iter().filter(|seed| rec.names(&seed.text)).map(|seed| tells(&seed)).sum()
}

/// The time of the alert on a correct clock, as far as known.
pub(crate) fn anchor(recs: &[Rec], core: &BTreeSet<usize>, seeds: &Seeds) -> Option<Timestamp> {
    let own = core.iter().filter_map(|i| recs.get(*i)?.time).min();
    own.or_else(|| {
        // Without an alerted record, prefer a time with records around it.
        let near =
            |t: &Timestamp| recs.iter().filter(|r| r.time.is_some_and(|at| seconds(at, *t).abs() <= 300.0)).count();
        let best = seeds.times.iter().map(near).max()?;
        seeds.times.iter().find(|t| near(t) == best).copied()
    })
}

#[cfg(test)]
mod tests;
