//! Plans the tool calls, turn by turn. Each turn depends only on the results of the turns before.

use std::collections::{BTreeMap, BTreeSet};

use casebook_agent::reasoner::{CallRequest, Done};
use casebook_agent::worker::call;
use casebook_evidence::facet::{Class, Facet, event_id};
use casebook_evidence::pointed;
use casebook_protocol::{Bearing, CallStatus, EntityKind, Timestamp, Weight};
use serde_json::{Map, Value, json};

use super::kin::{moved, seconds};
use super::rec::Rec;
use super::seed::{Seed, Seeds};
use super::{Case, absence, account, counts, ruled};

/// Evidence with at most this many records is searched whole; larger evidence only around the alert.
const SMALL: u64 = 20_000;
/// Fewer records than this are not a complete log of a host.
const FEW: u64 = 100;
/// Seconds searched around the alert in larger evidence.
const WINDOW: i64 = 12 * 3600;
/// Records of one search.
const LIMIT: u64 = 120;
const FOLLOWED: u64 = 400;
const AGAIN: u64 = 60;
/// The same of each source: a busy log must not hide the others.
const EACH: u64 = 50;
/// A name says something in a source that has at most so many records with it, and at most one in `SCARCE` records.
const SCARCE_MAX: u64 = 20;
const SCARCE: u64 = 30;
/// Seconds on each side of the alert in which all records are read.
const AROUND: u64 = 90;
/// Seconds before the alert in which its session may have begun.
const ARRIVAL: i64 = 3600;

/// The turn that asks what belongs to the alerted records.
pub(super) const ALERTED: u32 = 3;

#[derive(Debug, Default)]
pub(super) struct Sources {
    pub(super) records: u64,
    files: Vec<String>,
    /// Records of each source, by its id.
    sizes: BTreeMap<String, u64>,
}

impl Sources {
    /// So few records were probably collected for the alert, so weaker links are enough.
    pub(super) const fn few(&self) -> bool {
        self.records <= FEW
    }
}

pub(super) fn sources_of(done: &[Done]) -> Sources {
    let listing = answers(done, "list_sources").next().map(|(_, json)| json);
    let listed = listing.as_ref().and_then(Value::as_array).into_iter().flatten();
    let mut sources = Sources::default();
    for source in listed {
        let size = source.get("records").and_then(Value::as_u64).unwrap_or(0);
        sources.records += size;
        sources.sizes.extend(source.get("source").and_then(Value::as_str).map(|id| (id.to_owned(), size)));
        sources.files.extend(source.get("file").and_then(Value::as_str).map(str::to_owned));
    }
    sources
}

/// The answers of a tool, with the arguments.
pub(super) fn answers<'d>(done: &'d [Done], tool: &'d str) -> impl Iterator<Item = (&'d Done, Value)> {
    let answered = move |d: &&Done| d.call.tool == tool && d.call.status == CallStatus::Answered;
    done.iter().filter(answered).filter_map(|d| Some((d, serde_json::from_str(&d.result).ok()?)))
}

/// How many records have the term, if it was searched for.
fn total_of(done: &[Done], term: &str) -> Option<u64> {
    answers(done, "search").find_map(|(d, found)| {
        let asked: Value = serde_json::from_str(&d.call.arguments).ok()?;
        let terms = asked.get("terms")?.as_array()?;
        (terms.len() == 1 && terms.first()?.as_str()? == term).then(|| found.get("total")?.as_u64())?
    })
}

/// True if few records have the id of a job or a session. A job may take many steps.
pub(super) fn of_one_job(done: &[Done], id: &str) -> bool {
    total_of(done, id).is_some_and(|total| (1..=200).contains(&total))
}

/// True if so few records have the name that they probably belong together.
pub(super) fn rare(done: &[Done], name: &str, sources: &Sources) -> bool {
    let few = (sources.records / 50).clamp(30, 200);
    total_of(done, name)
        .is_some_and(|total| total > 0 && total <= few && (total * 3 <= sources.records * 2 || sources.records < 12))
}

/// The sources in which few records have a name of the alert, with the name: a log of another system that speaks of it.
pub(super) fn scarce(seeds: &Seeds, done: &[Done], sources: &Sources) -> Vec<(String, String)> {
    let names = seeds.names.iter().map(|seed| seed.text.as_str()).filter(|name| !account::of_system(name));
    let of = |name: &str| -> Vec<(String, String)> {
        let counts = answers(done, "search").find_map(|(d, found)| {
            let asked: Value = serde_json::from_str(&d.call.arguments).ok()?;
            (asked.get("terms")? == &json!([name])).then(|| found.get("by_source").cloned())?
        });
        let counts = counts.as_ref().and_then(Value::as_object).into_iter().flatten();
        let few = |(source, count): &(&String, &Value)| {
            let size = sources.sizes.get(*source).copied().unwrap_or(0);
            count.as_u64().is_some_and(|count| count <= SCARCE_MAX && count * SCARCE <= size)
        };
        counts.filter(few).map(|(source, _)| (source.clone(), name.to_owned())).collect()
    };
    names.flat_map(of).collect()
}

/// How much a name of the alert tells about its activity, by the number of its records.
#[derive(Debug, Default)]
pub(super) struct Frequency {
    /// In few records.
    pub(super) rare: Vec<String>,
    /// In a third of all records, such as the domain of a company.
    common: Vec<String>,
}

pub(super) fn frequency(seeds: &Seeds, done: &[Done], sources: &Sources) -> Frequency {
    let often = |s: &&Seed| total_of(done, &s.text).is_some_and(|total| total > FEW && total * 3 >= sources.records);
    let common = seeds.names.iter().filter(often).map(|s| s.text.clone()).collect();
    Frequency { rare: specific(seeds, done, sources), common }
}

fn specific(seeds: &Seeds, done: &[Done], sources: &Sources) -> Vec<String> {
    let telling = |s: &&Seed| {
        let system_account = s.kind == EntityKind::User && account::of_system(&s.text);
        !matches!(s.kind, EntityKind::Host) && !system_account && !s.text.chars().all(|c| c.is_ascii_digit())
    };
    seeds.names.iter().filter(telling).filter(|s| rare(done, &s.text, sources)).map(|s| s.text.clone()).collect()
}

/// The calls of a turn; none if the records in hand are enough.
pub(super) fn requests(case: &Case, done: &[Done], turn: u32) -> Vec<CallRequest> {
    let plan = Plan { case, first: case.round == 1 };
    let mut requests = match turn {
        2 => plan.names(),
        ALERTED => plan.around(done),
        4 => plan.follow(),
        5 => plan.grave(),
        _ => Vec::new(),
    };
    let mut asked: BTreeSet<(String, String)> =
        done.iter().map(|d| (d.call.tool.clone(), d.call.arguments.clone())).collect();
    requests.retain(|request| asked.insert((request.tool.clone(), request.arguments.clone())));
    requests
}

struct Plan<'c> {
    case: &'c Case,
    first: bool,
}

impl Plan<'_> {
    /// The window that searches are limited to in large evidence. If the clock of the alert is wrong, the window also
    /// covers the time that it states.
    fn window(&self) -> Map<String, Value> {
        let mut window = Map::new();
        let times = self.case.anchor.into_iter().chain(self.case.seeds.times.first().copied());
        let edge = |at: Option<Timestamp>, by| at.and_then(|at| moved(at, by));
        let (from, to) = (edge(times.clone().min(), -WINDOW), edge(times.max(), WINDOW));
        if let (Some(from), Some(to), true) = (from, to, self.case.sources.records > SMALL) {
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
        let files: Vec<&str> = self.case.sources.files.iter().map(String::as_str).collect();
        let record = |(file, line): &(String, u64)| {
            Some(call("get_record", &json!({"file": pointed(&files, file)?, "line": line})))
        };
        let pointed = self.case.seeds.records.iter().filter_map(record);
        let followed = self.case.follow.iter().map(|seed| self.search(&[&seed.text], FOLLOWED, &[]));
        let each = [("each_source", json!(EACH))];
        let named = self.case.seeds.names.iter().map(|seed| self.search(&[&seed.text], 4 * LIMIT, &each));
        pointed.chain(followed).chain(named).take(24).collect()
    }

    /// What happened around the alert, what the rules found, and what belongs to the alerted records.
    fn around(&self, done: &[Done]) -> Vec<CallRequest> {
        let case = self.case;
        let mut requests = Vec::new();
        for rec in case.alerted().into_iter().take(4) {
            requests.push(call("related", &json!({"file": rec.file, "line": rec.line, "limit": 200})));
        }
        if let Some(at) = case.anchor {
            let near = json!({"time": at, "before_seconds": AROUND, "after_seconds": AROUND, "limit": 200, "include_fields": true});
            requests.push(call("around", &near));
            // Of a frequent name, the records near the alert matter.
            let frequent = |seed: &&Seed| total_of(done, &seed.text).is_some_and(|total| total > LIMIT);
            let frequent = case.seeds.names.iter().filter(frequent).take(8);
            let near = [("near", json!(at)), ("each_source", json!(EACH))];
            requests.extend(frequent.map(|seed| self.search(&[&seed.text], 4 * LIMIT, &near)));
        }
        requests.push(self.search(casebook_trust::injection::TERMS, LIMIT, &[("mode", json!("any"))]));
        if self.first {
            requests.extend(ruled::ask(case));
            requests.extend(absence::search(case));
        }
        requests
    }

    /// The values of the alerted records, how the actor came, and how often and from where before.
    fn follow(&self) -> Vec<CallRequest> {
        let alerted = self.case.alerted();
        let mut terms: BTreeSet<&str> = BTreeSet::new();
        for rec in &alerted {
            for facet in [Facet::UserAgent, Facet::DstIp, Facet::SrcIp, Facet::User, Facet::Object, Facet::DomainName] {
                terms.extend(rec.facets.get(facet).filter(|v| (3..=300).contains(&v.len()) && !account::of_system(v)));
            }
        }
        let near: Vec<(&str, Value)> = self.case.anchor.iter().map(|at| ("near", json!(at))).collect();
        let ids = self.case.ids.iter().map(String::as_str);
        let mut requests: Vec<CallRequest> =
            ids.chain(terms.into_iter().take(12)).map(|term| self.search(&[term], AGAIN, &near)).collect();
        if self.first {
            requests.extend(self.arrivals(&alerted));
            requests.extend(counts::ask(self.case));
        }
        requests
    }

    /// The sign-ins of the alerted Windows accounts shortly before the alert.
    fn arrivals(&self, alerted: &[&Rec]) -> Vec<CallRequest> {
        let Some(anchor) = self.case.anchor else { return Vec::new() };
        let of_windows = alerted.iter().filter(|rec| event_id(&rec.fields).is_some());
        let users: BTreeSet<String> = of_windows
            .filter_map(|rec| rec.facets.get(Facet::User))
            .filter(|user| !account::of_system(user))
            .map(account::bare)
            .filter(|user| user.len() >= 2)
            .collect();
        let edge = |by: i64| moved(anchor, by);
        let search = |user: &String, event: &str| {
            call(
                "search",
                &json!({"terms": [user, event], "from": edge(-ARRIVAL), "to": edge(2), "order": "time_desc",
                    "limit": 20, "include_fields": true}),
            )
        };
        users.iter().flat_map(|user| ["4624", "4778"].map(|event| search(user, event))).collect()
    }

    /// What the processes in serious records did. Such a process may run as the system and have no other link to the
    /// alert.
    fn grave(&self) -> Vec<CallRequest> {
        let grave = |rec: &&Rec| {
            rec.class() == Class::ProcessStart
                && rec.shows.iter().any(|b| b.bearing == Bearing::Incriminating && b.weight >= Weight::Strong)
        };
        let linked = self.case.with(|kin| kin > super::Kin::Core).filter(grave).filter(|_| self.first);
        let related = |rec: &Rec| call("related", &json!({"file": rec.file, "line": rec.line, "limit": 60}));
        let new = self.case.new.iter().map(|(name, address)| self.search(&[name, address], AGAIN, &[]));
        linked.take(4).map(related).chain(new).collect()
    }
}

/// The alerted records: those that the alert points to, or else those with most names of the alert near its
/// time.
pub(super) fn core(recs: &[Rec], seeds: &Seeds, names: &Frequency) -> BTreeSet<usize> {
    let files: Vec<&str> = recs.iter().map(|r| r.file.as_str()).collect::<BTreeSet<_>>().into_iter().collect();
    let meant: Vec<(&str, u64)> =
        seeds.records.iter().filter_map(|(file, line)| Some((pointed(&files, file)?, *line))).collect();
    if !seeds.records.is_empty() {
        return recs.iter().enumerate().filter(|(_, r)| meant.contains(&r.key())).map(|(i, _)| i).collect();
    }
    let Some(time) = seeds.times.first() else { return BTreeSet::new() };
    // Negative before the alert.
    let apart = |rec: &Rec| rec.time.map_or(f64::INFINITY, |at| seconds(at, *time));
    // If two records have the same names of the alert, choose the nearer one.
    let best = |(before, after, least): (f64, f64, usize)| -> BTreeSet<usize> {
        let close = recs.iter().enumerate().filter(|(_, rec)| (-before..=after).contains(&apart(rec)));
        let mut close: Vec<_> = close.map(|(i, rec)| (telling(rec, seeds, names), apart(rec).abs(), i)).collect();
        close.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.total_cmp(&b.1)).then(a.2.cmp(&b.2)));
        let Some((most, nearest, _)) = close.first().copied().filter(|(named, ..)| *named >= least) else {
            return BTreeSet::new();
        };
        let meant = close.iter().filter(|(named, apart, _)| *named == most && *apart <= nearest + 0.05);
        meant.map(|(.., i)| *i).take(4).collect()
    };
    // An alert is often made some time after the event.
    let late = [(3600.0, 90.0, 2 * NAMED), (86_400.0, 90.0, 3 * NAMED)];
    let exact = [(2.0, 2.0, NAMED), (90.0, 90.0, NAMED)];
    let windows = if seeds.of_event { [exact, late].concat() } else { [late, exact].concat() };
    // A time with fractions is that of one record, even if its only name is everywhere.
    let same = Some((0.000_5, 0.000_5, 1)).filter(|_| time.subsec_nanosecond() != 0);
    let windows: Vec<_> = same.into_iter().chain(windows).collect();
    windows.into_iter().map(best).find(|found| !found.is_empty()).unwrap_or_default()
}

/// Without a pointer in the alert, a record needs names that weigh this much: more than a host.
const NAMED: usize = 3;

/// How well a record matches the names of the alert: rare names count most, a host least.
fn telling(rec: &Rec, seeds: &Seeds, names: &Frequency) -> usize {
    let tells = |seed: &&Seed| match seed.kind {
        _ if names.rare.contains(&seed.text) => 3 * NAMED,
        EntityKind::Host => 1,
        _ if names.common.contains(&seed.text) => 1,
        _ => NAMED,
    };
    seeds.names.iter().filter(|seed| rec.names(&seed.text)).map(|seed| tells(&seed)).sum()
}

pub(super) fn anchor(recs: &[Rec], core: &BTreeSet<usize>, seeds: &Seeds) -> Option<Timestamp> {
    let own = core.iter().filter_map(|i| recs.get(*i)?.time).min();
    own.or_else(|| {
        // Without an alerted record, prefer a time with records around it.
        let near =
            |t: &Timestamp| recs.iter().filter(|r| r.time.is_some_and(|at| seconds(at, *t).abs() <= 300.0)).count();
        let counted: BTreeMap<Timestamp, usize> = seeds.times.iter().map(|t| (*t, near(t))).collect();
        let best = counted.values().max()?;
        seeds.times.iter().find(|t| counted.get(t) == Some(best)).copied()
    })
}
