//! Takes a sample of each source. It decides how the rest is read.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use super::classify::{Belongs, Facts};
use super::declared::{Declared, Zone};
use super::detect::{Detected, detect};
use super::fields::{self, Shape};
use super::formats;
use super::hint::Hint;
use super::index::{Guess, Looked};
use super::source::{Format, TimeField};
use super::split::{Cut, Cutter};
use super::text::{Text, head};
use super::time::clock::{self, Offset};
use super::time::plan::{PAIR, TimePlan, find_pair, join_pair};
use super::time::roles::{self, Candidate};
use super::time::text::{Reading, prefix};
use super::time::{aggregate, year};
use super::walk::Found;
use super::{LoadError, collection};

mod zone;

type Fields = Vec<(String, String)>;

const HEAD: u64 = 1 << 20;
/// Records and bytes of the sample: from the start, and from each of two other places.
const FIRST: (usize, usize) = (1_500, 3 << 20);
const LATER: (usize, usize) = (500, 1 << 20);

#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) found: Found,
    pub(crate) body: Text,
    pub(crate) detected: Detected,
    pub(crate) plan: TimePlan,
    pub(crate) time_fields: Vec<TimeField>,
    pub(crate) hosts: Vec<String>,
    /// The field that says of which kind a record is.
    pub(crate) kind: Option<String>,
    pub(crate) belongs: Belongs,
    pub(crate) notes: Vec<String>,
    /// All hosts in the sample, in lower case.
    machines: BTreeSet<String>,
    /// Earliest and latest time in the sample, if times have years.
    range: Option<(i64, i64)>,
    /// Range of complete dates in messages, for a log whose times have no year.
    hints: Option<(i64, i64)>,
    yearless: Option<(i64, i64)>,
    /// Nothing in the source gives a zone.
    zoneless: bool,
    /// The zone that the source states at its start.
    stated: Option<Offset>,
}

/// Prepares all texts, two at a time: more samples at once would need too much memory.
pub(crate) fn all(mut texts: Vec<(Found, Text)>, declared: &Declared) -> Result<Vec<Prepared>, LoadError> {
    let of = |texts: Vec<(Found, Text)>| -> Result<Vec<Prepared>, LoadError> {
        texts.into_iter().map(|(found, body)| Prepared::new(found, body, declared)).collect()
    };
    let rest = texts.split_off(texts.len() / 2);
    std::thread::scope(|scope| {
        let rest = scope.spawn(|| of(rest));
        let mut all = of(texts)?;
        all.extend(rest.join().map_err(|_| LoadError::Stopped)??);
        Ok(all)
    })
}

impl Prepared {
    fn new(found: Found, body: Text, declared: &Declared) -> Result<Self, LoadError> {
        let read = |source| LoadError::Read { path: body.path.clone(), source };
        let start = head(&body.path, HEAD.min(body.size)).map_err(read)?;
        let rule = declared.rule(&found.file);
        let detected = match (body.events, declared.format(&found.file)) {
            (Some(events), _) => Detected::events(events),
            (None, Some(format)) => Detected::by(format, &start),
            (None, None) => detect(&start, start.len() as u64 >= body.size),
        };
        let mut sample = sample(&body, &detected).map_err(read)?;
        let pair = find_pair(&sample);
        for fields in &mut sample {
            join_pair(pair.as_ref(), fields);
        }
        let day_first = roles::day_first(&sample);
        let mut candidates = roles::assign(&sample, Reading { day_first, numbers: false });
        let mut notes = body.notes.clone();
        if matches!(&detected.cut, Cut::Json(json) if json.numbered) {
            notes.push(
                "several records are on one line: the line number of a record is its place in the file".to_owned(),
            );
        }
        let known = detected.shape.reader.as_ref().and_then(|reader| formats::belongs(&reader.name));
        let belongs = known.unwrap_or_else(|| Belongs::of(&Facts::new(detected.shape.format, &sample)));
        if let Some(field) = rule.and_then(|rule| rule.time_field.as_deref()) {
            notes.push(roles::choose(&mut candidates, field));
        } else if let Some(field) = belongs.time {
            roles::prefer(&mut candidates, field);
        }
        let (host, hosts) = super::classify::hosts(&sample);
        let sums = candidates.first().and_then(|time| aggregate::reason(&sample, time));
        let mut plan = TimePlan::new(&candidates, sums.is_some());
        plan.pair = pair;
        plan.day_first = day_first;
        plan.host = host;
        plan.carry = carries(detected.shape.format, &candidates, sample.len());
        let of_record: Vec<String> = sample.iter().map(|fields| plan.host_of(fields)).collect();
        plan.offsets = clock::offsets(&candidates, &of_record, &clock::classes(&sample));
        notes.extend(sums.map(|why| format!("{why}: its times are those of the period, not of an event")));
        // The W3C format is in UTC, except in the Windows firewall log.
        if let Some(rule) = rule {
            plan.zone.clone_from(&rule.zone);
            plan.year = rule.year;
            plan.year_set = rule.year.is_some();
            notes.extend(rule.notes());
        }
        if belongs.time.is_some() && plan.zone.is_none() {
            plan.zone = Zone::new("UTC").ok();
        }
        let zoneless = plan.zone.is_none()
            && (detected.shape.format != Format::W3c || detected.local)
            && zone::open(&plan, &candidates);
        let stated = (detected.shape.format == Format::Plain).then(|| zone::stated(&sample, &plan)).flatten();
        Ok(Self {
            stated,
            range: range(&candidates),
            yearless: yearless(&candidates),
            zoneless,
            hints: hints(&sample),
            time_fields: time_fields(&candidates, &plan),
            machines: of_record.into_iter().collect(),
            found,
            body,
            detected,
            plan,
            hosts,
            kind: super::coverage::kind_field(&sample),
            belongs,
            notes,
        })
    }

    /// What wrote the source, with the host if there is only one.
    pub(crate) fn sensor(&self) -> String {
        match self.hosts.as_slice() {
            [host] => format!("{}@{host}", self.belongs.sensor),
            _ => self.belongs.sensor.clone(),
        }
    }
}

/// Applies clock offsets and the year that some sources show to all sources. `hint` and `looked` (from earlier
/// alerts) give what the evidence does not. Returns those choices.
pub(crate) fn share(all: &mut [Prepared], hint: Option<&Hint>, looked: &[Looked]) -> Guess {
    collection::name_hosts(all);
    let near = hint.and_then(Hint::ns);
    let mut guessed = Guess { near, ..Guess::default() };
    let mut offsets: Vec<Offset> = Vec::new();
    for offset in all.iter().flat_map(|p| &p.plan.offsets) {
        let known = offsets.iter_mut().find(|o| o.host == offset.host && o.field == offset.field);
        match known {
            Some(known) if known.of < offset.of => *known = offset.clone(),
            Some(_) => {}
            None => offsets.push(offset.clone()),
        }
    }
    let ranges: Vec<(i64, i64)> = all.iter().filter_map(|p| p.range).collect();
    for prepared in all.iter_mut() {
        prepared.plan.adopt(&offsets);
        let mine = |o: &&Offset| prepared.machines.contains(&o.host);
        let offsets: Vec<Offset> = prepared.plan.offsets.iter().filter(mine).cloned().collect();
        prepared.notes.extend(clock::notes(&offsets));
        let Some((first, last)) = prepared.yearless.filter(|_| !prepared.plan.year_set) else { continue };
        let (year, from) = match vote(first, last, &ranges) {
            Some(year) => (Some(year), "the other sources"),
            None => match prepared.hints {
                Some(near) => (year::of_first(first, last, near), "dates in its own texts"),
                None => {
                    guessed.years = true;
                    let changed = || year::before_change(prepared.body.changed.unwrap_or(prepared.found.mtime));
                    let from = match near {
                        Some(_) => "the time of the alert",
                        None => "the time its file was last changed, which is weak",
                    };
                    (year::of_first(first, last, near.map_or_else(changed, |near| (near, near))), from)
                }
            },
        };
        prepared.plan.year = year;
        if let Some(year) = year {
            prepared.notes.push(format!("its times have no year: {year} for the first record, by {from}"));
        }
    }
    zone::share(all, hint, looked, &mut guessed);
    guessed
}

fn vote(first: i64, last: i64, ranges: &[(i64, i64)]) -> Option<i16> {
    let mut votes: BTreeMap<i16, usize> = BTreeMap::new();
    for near in ranges {
        if let Some(year) = year::of_first(first, last, *near) {
            *votes.entry(year).or_default() += 1;
        }
    }
    votes.into_iter().max_by_key(|(_, n)| *n).map(|(year, _)| year)
}

fn sample(body: &Text, detected: &Detected) -> io::Result<Vec<Fields>> {
    let mut file = File::open(&body.path)?;
    file.seek(SeekFrom::Start(detected.skip))?;
    let mut all = take(&mut file, &detected.cut, &detected.shape, FIRST)?;
    // Lines can be read from any place; JSON over several lines only from the start.
    if matches!(detected.cut, Cut::Lines(_)) && body.size > 8 << 20 {
        for place in [body.size / 2, body.size - (2 << 20)] {
            file.seek(SeekFrom::Start(place))?;
            let cut = match detected.cut.clone() {
                Cut::Lines(lines) => Cut::Lines(super::split::Lines { header: true, ..lines }),
                other @ Cut::Json(_) => other,
            };
            all.extend(take(&mut file, &cut, &detected.shape, LATER)?);
        }
    }
    Ok(all)
}

fn take(file: &mut File, cut: &Cut, shape: &Shape, most: (usize, usize)) -> io::Result<Vec<Fields>> {
    let mut cutter = Cutter::new(file.by_ref(), cut, 0, 1);
    let (mut all, mut bytes, mut size) = (Vec::new(), Vec::new(), 0);
    while all.len() < most.0 && size < most.1 {
        let Some(piece) = cutter.next(&mut bytes)? else { break };
        size += bytes.len();
        let parsed = fields::parse(shape, &bytes);
        if !(piece.broken || piece.oversize || (parsed.malformed && shape.format != Format::Syslog)) {
            all.push(parsed.fields);
        }
    }
    Ok(all)
}

/// If only some lines have a time, the others belong to the line before.
fn carries(format: Format, candidates: &[Candidate], records: usize) -> bool {
    matches!(format, Format::Plain | Format::Syslog | Format::SyslogIso)
        && candidates.iter().any(|c| c.path == "timestamp" && c.filled * 50 > records)
}

fn dated(candidates: &[Candidate]) -> impl Iterator<Item = i64> {
    candidates.iter().take(1).flat_map(|c| &c.moments).flatten().filter(|m| m.dated).map(|m| m.ns)
}

fn range(candidates: &[Candidate]) -> Option<(i64, i64)> {
    Some((dated(candidates).min()?, dated(candidates).max()?))
}

fn yearless(candidates: &[Candidate]) -> Option<(i64, i64)> {
    // A few records may have another time, with a year.
    let undated = |record: usize| {
        let mut times = candidates.iter().filter_map(|c| c.moments.get(record).copied().flatten());
        times.clone().all(|m| !m.dated).then(|| times.next().map(|m| m.ns)).flatten()
    };
    let mut times = (0..candidates.first()?.moments.len()).filter_map(undated);
    let first = times.next()?;
    Some((first, times.next_back().unwrap_or(first)))
}

fn hints(sample: &[Fields]) -> Option<(i64, i64)> {
    let mut found: Vec<i64> = Vec::new();
    for (_, value) in sample.iter().flatten().filter(|(path, _)| path == "message") {
        for (at, _) in value.match_indices("20").take(8) {
            let rest = value.get(at..).unwrap_or_default();
            let shaped = rest.as_bytes().get(4) == Some(&b'-') && rest.as_bytes().get(7) == Some(&b'-');
            if shaped && let Some((moment, _)) = prefix(rest, Reading::default()) {
                found.push(moment.ns);
            }
        }
    }
    found.sort_unstable();
    let middle = *found.get(found.len() / 2)?;
    Some((middle, middle))
}

fn time_fields(candidates: &[Candidate], plan: &TimePlan) -> Vec<TimeField> {
    let mut listed = roles::listed(candidates);
    for field in &mut listed {
        let own = plan.own.iter().find(|o| o.path == field.name);
        if own.is_some_and(|o| o.basis == casebook_protocol::TimeBasis::Aggregation) {
            field.role = super::TimeRole::Aggregation;
            "a time of the period that the record covers".clone_into(&mut field.note);
        }
        if field.name == PAIR
            && let Some(pair) = &plan.pair
        {
            field.note = format!("{} and {} together; {}", pair.date, pair.clock, field.note);
        }
    }
    listed
}
