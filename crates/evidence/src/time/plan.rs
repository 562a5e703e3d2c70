use casebook_protocol::{Precision, TimeBasis};

use super::clock::Offset;
use super::names::{self, Class};
use super::roles::{Candidate, SECOND, modal};
use super::text::{Moment, Reading, parse};
use super::year::Years;
use super::zone::Zone;
use crate::source::TimeRole;

type Fields = Vec<(String, String)>;

/// In nanoseconds. A UTC time this far from the record's clock is ignored if the other records agree with their
/// clocks.
const WILD: i64 = 300 * SECOND;
const TRIED_MAX: usize = 8;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Own {
    pub(crate) path: String,
    pub(crate) key: String,
    pub(crate) basis: TimeBasis,
    numbers: bool,
    utc: bool,
}

/// Decides how to find the time of each record of a source.
#[derive(Debug, Clone, Default)]
pub(crate) struct TimePlan {
    /// In order of preference.
    pub(crate) own: Vec<Own>,
    pub(crate) ingestion: Option<Own>,
    /// The clock that the first field is checked against, if that is UTC.
    pub(crate) check: Option<Own>,
    pub(crate) offsets: Vec<Offset>,
    pub(crate) host: Option<String>,
    pub(crate) pair: Option<Pair>,
    pub(crate) day_first: bool,
    /// The year of the first record, if times have no year.
    pub(crate) year: Option<i16>,
    /// The year comes from the configuration.
    pub(crate) year_set: bool,
    /// The zone of times without one, from the configuration.
    pub(crate) zone: Option<Zone>,
    /// A line without a time belongs to the line before.
    pub(crate) carry: bool,
}

/// Date and time of day in two fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pair {
    pub(crate) date: String,
    pub(crate) clock: String,
    pub(crate) zone: Option<String>,
}

pub(crate) const PAIR: &str = "date+time";

impl TimePlan {
    pub(crate) fn new(candidates: &[Candidate], aggregate: bool) -> Self {
        let mut plan = Self::default();
        let own = |c: &Candidate, basis| Own {
            path: c.path.clone(),
            key: names::key(&c.path),
            basis,
            numbers: names::may_count(&c.path),
            utc: c.class == Class::Utc,
        };
        for candidate in candidates.iter().filter(|c| c.role == TimeRole::Event) {
            let basis = match candidate.class {
                _ if aggregate => TimeBasis::Aggregation,
                Class::Soft => TimeBasis::Inferred,
                _ => TimeBasis::Record,
            };
            plan.own.push(own(candidate, basis));
        }
        for candidate in candidates.iter().filter(|c| c.role == TimeRole::Ingestion) {
            let basis = if aggregate { TimeBasis::Aggregation } else { TimeBasis::Ingestion };
            let field = own(candidate, basis);
            plan.ingestion.get_or_insert_with(|| field.clone());
            plan.own.push(field);
        }
        // Prefer UTC, even if only some records have it.
        plan.own.sort_by_key(|own| !(own.utc && own.basis == TimeBasis::Record));
        // If few records have each field, also try the most frequent one.
        let filled = |own: &Own| candidates.iter().find(|c| c.path == own.path).map_or(0, |c| c.filled);
        let most = plan.own.iter().enumerate().rev().max_by_key(|(_, own)| filled(own)).map(|(at, _)| at);
        if let Some(at) = most.filter(|at| *at >= TRIED_MAX) {
            plan.own.swap(at, TRIED_MAX - 1);
        }
        plan.own.truncate(TRIED_MAX);
        let first = plan.own.first().and_then(|own| candidates.iter().find(|c| c.path == own.path));
        plan.check = first.filter(|c| c.class == Class::Utc).and_then(|utc| {
            let clock = |c: &&Candidate| c.role == TimeRole::Event && c.class != Class::Utc && agrees(utc, c);
            candidates.iter().find(clock).map(|clock| own(clock, TimeBasis::Record))
        });
        plan
    }

    /// Applies clock offsets that other sources show for the same hosts and fields.
    pub(crate) fn adopt(&mut self, all: &[Offset]) {
        let used = |offset: &Offset| self.own.iter().chain(&self.check).any(|own| own.key == offset.field);
        let new: Vec<Offset> = all
            .iter()
            .filter(|o| !o.host.is_empty() && used(o))
            .filter(|o| !self.offsets.iter().any(|k| k.host == o.host && k.field == o.field))
            .cloned()
            .collect();
        self.offsets.extend(new);
    }

    pub(crate) const fn reading(&self) -> Reading {
        Reading { day_first: self.day_first, numbers: false }
    }

    /// The value of the first field, as written.
    pub(crate) fn written(&self, fields: &mut Fields) -> Option<(&Own, Moment)> {
        join_pair(self.pair.as_ref(), fields);
        let own = self.own.first()?;
        let reading = Reading { numbers: own.numbers, ..self.reading() };
        Some((own, parse(get(fields, &own.path)?, reading)?))
    }

    /// Lower case, without the domain.
    pub(crate) fn host_of(&self, fields: &Fields) -> String {
        let host = self.host.as_ref().and_then(|path| get(fields, path)).unwrap_or_default();
        host.to_ascii_lowercase()
    }
}

/// Whether nearly all records have a constant difference between the two, so that one can confirm the other.
fn agrees(first: &Candidate, other: &Candidate) -> bool {
    let diffs = first.minus(other);
    diffs.len() >= 5 && modal(&diffs, 2 * SECOND).is_some_and(|(_, agree)| agree * 10 >= diffs.len() * 8)
}

pub(crate) fn get<'f>(fields: &'f Fields, path: &str) -> Option<&'f str> {
    fields.iter().find(|(p, v)| p == path && !v.is_empty()).map(|(_, v)| v.as_str())
}

/// Joins a date and a time of day from two fields.
pub(crate) fn join_pair(pair: Option<&Pair>, fields: &mut Fields) {
    let Some(pair) = pair else { return };
    let (Some(date), Some(clock)) = (get(fields, &pair.date), get(fields, &pair.clock)) else { return };
    let zone = pair.zone.as_ref().and_then(|path| get(fields, path)).unwrap_or_default();
    let known = matches!(zone, "UTC" | "GMT" | "Z") || zone.starts_with(['+', '-']);
    let text = format!("{date} {clock}{}{}", if zone == "Z" { "" } else { " " }, if known { zone } else { "" });
    fields.push((PAIR.to_owned(), text.trim_end().to_owned()));
}

pub(crate) fn find_pair(sample: &[Fields]) -> Option<Pair> {
    let fields = sample.iter().find(|f| f.len() > 1)?;
    let named = |keys: &[&str]| fields.iter().find(|(p, _)| keys.contains(&names::key(p).as_str()));
    let (date, on) = named(&["date", "logdate", "eventdate", "day"])?;
    let (clock, at) = named(&["time", "logtime", "timeofday", "eventtime"])?;
    let zone = named(&["timezone", "tz"]).map(|(p, _)| p.clone());
    let daily = parse(on, Reading::default()).is_some_and(|m| m.precision == Precision::Day);
    let clocked = at.len() <= 18 && at.split_once(':').is_some_and(|(h, _)| h.len() <= 2 && h.parse::<u8>().is_ok());
    (daily && clocked).then(|| Pair { date: date.clone(), clock: clock.clone(), zone })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Resolved {
    pub(crate) ns: i64,
    pub(crate) precision: Precision,
    pub(crate) basis: TimeBasis,
    /// Index into [`Resolver::names`]; none if the time comes from the line before.
    pub(crate) field: Option<u8>,
}

/// What a record says about its time, before the years and the records before it are known.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Stated {
    found: Option<Said>,
    ingested: Option<i64>,
}

#[derive(Debug, Clone, Copy)]
struct Said {
    moment: Moment,
    basis: TimeBasis,
    place: Option<u8>,
    /// Nanoseconds to add.
    offset: Option<i64>,
    /// The time by the clock that a UTC time is checked against.
    check: Option<Resolved>,
}

/// The time that was read last, since the next record often has the same.
#[derive(Debug, Default)]
pub(crate) struct Before {
    text: String,
    reading: Reading,
    moment: Option<Moment>,
}

impl TimePlan {
    pub(crate) fn state(&self, fields: &mut Fields, before: &mut Before) -> Stated {
        join_pair(self.pair.as_ref(), fields);
        let ingested = self.ingestion.as_ref().and_then(|own| Some(self.moment(own, fields, before)?.ns));
        Stated { found: self.said(fields, before), ingested }
    }

    fn said(&self, fields: &Fields, before: &mut Before) -> Option<Said> {
        // Ignore times without a year if the year is unknown.
        let has_year = |moment: &Moment| moment.dated || self.year.is_some();
        let mut read = |own: &Own| self.moment(own, fields, before).filter(has_year);
        let (place, own, moment) =
            self.own.iter().enumerate().find_map(|(place, own)| Some((place, own, read(own)?)))?;
        Some(Said {
            moment,
            basis: if moment.dated || self.year_set { own.basis } else { TimeBasis::Inferred },
            place: u8::try_from(place).ok(),
            offset: self.offset(own, &moment, fields),
            check: self.check.as_ref().filter(|_| own.utc).and_then(|check| self.clock(check, fields, before)),
        })
    }

    fn clock(&self, check: &Own, fields: &Fields, before: &mut Before) -> Option<Resolved> {
        let moment = self.moment(check, fields, before)?;
        let add = self.offset(check, &moment, fields);
        let basis = if add.is_some() { TimeBasis::ClockCorrected } else { TimeBasis::Record };
        let field = u8::try_from(self.own.len()).ok();
        Some(Resolved { ns: moment.ns + add.unwrap_or(0), precision: moment.precision, basis, field })
    }

    fn moment(&self, own: &Own, fields: &Fields, before: &mut Before) -> Option<Moment> {
        let text = get(fields, &own.path)?;
        let reading = Reading { numbers: own.numbers, ..self.reading() };
        if before.text != text || before.reading != reading {
            text.clone_into(&mut before.text);
            (before.reading, before.moment) = (reading, parse(text, reading));
        }
        before.moment
    }

    fn offset(&self, own: &Own, moment: &Moment, fields: &Fields) -> Option<i64> {
        if self.offsets.is_empty() {
            return None;
        }
        let host = self.host_of(fields);
        let known = self.offsets.iter().find(|o| o.field == own.key && o.zoned == moment.zoned && o.host == host);
        known.filter(|o| o.applies(|path| get(fields, path).map(str::to_owned))).map(|o| o.add)
    }
}

/// Finds the time of each record of a source, in order.
#[derive(Debug)]
pub(crate) struct Resolver {
    carry: bool,
    zone: Option<Zone>,
    names: Vec<String>,
    years: Option<Years>,
    before: Option<Resolved>,
    pub(crate) disbelieved: u64,
}

impl Resolver {
    pub(crate) fn new(plan: &TimePlan) -> Self {
        let mut names: Vec<String> = plan.own.iter().map(|o| o.path.clone()).collect();
        names.extend(plan.check.iter().map(|o| o.path.clone()));
        let years = plan.year.map(Years::starting);
        Self { carry: plan.carry, zone: plan.zone.clone(), names, years, before: None, disbelieved: 0 }
    }

    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    pub(crate) fn resolve(&mut self, stated: Stated) -> (Option<Resolved>, Option<i64>) {
        let found = stated.found.and_then(|said| self.own(said));
        if found.is_some() {
            self.before = found;
        }
        let found = found.or_else(|| {
            let before = self.before.filter(|_| self.carry)?;
            Some(Resolved { basis: TimeBasis::Inferred, field: None, ..before })
        });
        (found, stated.ingested)
    }

    fn own(&mut self, said: Said) -> Option<Resolved> {
        let Said { moment, mut basis, place, offset, check } = said;
        let mut ns = moment.ns;
        if !moment.dated {
            ns = self.years.as_mut()?.date(ns)?;
        }
        // A UTC time that is far from the record's clock.
        if let Some(clock) = check.filter(|clock| (ns - clock.ns).abs() > WILD) {
            self.disbelieved += 1;
            return Some(clock);
        }
        if let Some(zone) = self.zone.as_ref().filter(|_| !moment.zoned) {
            ns = zone.to_utc(ns);
        } else if let Some(add) = offset {
            ns += add;
            if basis == TimeBasis::Record {
                basis = TimeBasis::ClockCorrected;
            }
        }
        Some(Resolved { ns, precision: moment.precision, basis, field: place })
    }
}
