//! Zones of logs without zones, from alerts or from a statement at the start of the log.

use std::cmp::Ordering;
use std::fs::File;
use std::io::{Seek, SeekFrom};

use super::{Fields, Prepared};
use crate::fields;
use crate::hint::{Hint, pointed};
use crate::index::{Guess, Looked};
use crate::split::Cutter;
use crate::time::clock::{self, Offset};
use crate::time::plan::{Own, TimePlan};
use crate::time::roles::{Candidate, SECOND};
use crate::time::text::{Reading, prefix};
use crate::time::zone::Zone;
use crate::time::{Class, year};

/// None of its times has a zone.
pub(super) fn open(plan: &TimePlan, candidates: &[Candidate]) -> bool {
    let mut own = plan.own.iter().filter_map(|own| candidates.iter().find(|c| c.path == own.path));
    // A field of a few records is not the time of the source.
    let own = own.find(|c| c.filled * 10 >= c.moments.len());
    own.is_some_and(|own| own.class != Class::Utc && own.moments.iter().flatten().any(|m| !m.zoned))
}

/// A text log may state its zone in this many first records.
const HEADING: usize = 50;

/// The zone beside the start time of a text log, as in `Start: 2024/01/02 03:04:05 (UTC-8:00)`. The first
/// statement counts, and a time in an alert overrides it, because a process that can write to the log could
/// forge the statement.
pub(super) fn stated(sample: &[Fields], plan: &TimePlan) -> Option<Offset> {
    let own = plan.own.first()?;
    let heads = sample.iter().take(HEADING).filter_map(|fields| fields.first());
    let stated = heads.filter(|(label, _)| label.to_ascii_lowercase().starts_with("start")).find_map(|(_, value)| {
        let (moment, used) = prefix(value, Reading::default()).filter(|(moment, _)| !moment.zoned)?;
        let before = sample.iter().take(HEADING).find_map(|fields| plan.written(&mut fields.clone()).map(|(_, m)| m));
        let near = before.is_none_or(|first| first.ns.abs_diff(moment.ns) <= 60 * SECOND.unsigned_abs());
        value.get(used..).and_then(east_of_utc).filter(|_| near)
    });
    let add = -stated.filter(|east| *east != 0)?;
    let (field, path, by) = (own.key.clone(), own.path.clone(), "what the log states at its start".to_owned());
    Some(Offset { host: String::new(), field, path, zoned: false, add, by, agree: 1, of: 1, except: None })
}

/// `(UTC-8:00)`, `(GMT+2)` or `(UTC)`, in nanoseconds.
fn east_of_utc(text: &str) -> Option<i64> {
    let text = text.trim().strip_prefix('(')?.strip_suffix(')')?;
    let rest = text.strip_prefix("UTC").or_else(|| text.strip_prefix("GMT"))?;
    if rest.is_empty() {
        return Some(0);
    }
    let sign = match rest.bytes().next()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let (hours, minutes) = rest.get(1..)?.split_once(':').unwrap_or((rest.get(1..)?, "0"));
    let (hours, minutes): (i64, i64) = (hours.parse().ok()?, minutes.parse().ok()?);
    let seconds = sign * (hours * 3600 + minutes * 60);
    ((0..=14).contains(&hours) && (0..60).contains(&minutes)).then_some(seconds * SECOND)
}

/// Sets the zone of sources whose host appears in an alert. Adds a note to sources without a zone.
pub(super) fn share(all: &mut [Prepared], hint: Option<&Hint>, earlier: &[Looked], guessed: &mut Guess) {
    for prepared in all.iter_mut() {
        let own = prepared.plan.own.first();
        // The clock of another host does not apply to this one.
        let mine = |o: &Offset| prepared.machines.contains(&o.host);
        let shown = own.is_none_or(|own| prepared.plan.offsets.iter().any(|o| o.field == own.key && mine(o)));
        prepared.zoneless &= !shown;
        if prepared.zoneless {
            guessed.zoneless.push(prepared.found.file.clone());
        }
    }
    guessed.told = looked(all, hint, earlier);
    for looked in &guessed.told {
        let Some(offset) = &looked.zone else { continue };
        // Without a host, a zone applies to its own file only.
        let same = |p: &&mut Prepared| {
            p.zoneless && p.machines.contains(&offset.host) && (!offset.host.is_empty() || p.found.file == looked.file)
        };
        for prepared in all.iter_mut().filter(same) {
            let shown = prepared.plan.own.first().map(|own| (own.key.clone(), own.path.clone()));
            let Some((field, path)) = shown else { continue };
            let offset = Offset { field, path, ..offset.clone() };
            if prepared.plan.offsets.iter().any(|o| o.host == offset.host && o.field == offset.field) {
                continue;
            }
            prepared.notes.extend(clock::notes(std::slice::from_ref(&offset)));
            prepared.plan.offsets.push(offset);
            // The zones of other hosts in the file are still unknown.
            prepared.zoneless = prepared.machines.len() > 1;
        }
    }
    for prepared in all.iter_mut().filter(|p| p.zoneless) {
        // An alert may also confirm that the times are correct as written.
        let as_written = |l: &Looked| {
            let local = || prepared.local(l.line, l.at).map(|(.., at)| at);
            l.zoned
                && l.file == prepared.found.file
                && local().is_some_and(|at| at.abs_diff(l.at) < SECOND.unsigned_abs())
        };
        let corrected = prepared.plan.offsets.iter().any(|o| prepared.machines.contains(&o.host))
            || guessed.told.iter().any(as_written);
        if let Some(stated) = prepared.stated.take().filter(|_| !corrected) {
            prepared.notes.extend(clock::notes(std::slice::from_ref(&stated)));
            prepared.plan.offsets.push(stated);
            prepared.zoneless = false;
            guessed.stated.push(prepared.found.file.clone());
        }
    }
    for prepared in all.iter_mut().filter(|p| p.zoneless) {
        let fields = prepared.plan.own.first().map(|own| own.path.clone());
        let rest = if prepared.plan.offsets.is_empty() { "" } else { " of other hosts" };
        let note = |path: String| format!("the times of {path}{rest} have no zone: they are read as UTC");
        prepared.notes.extend(fields.map(note));
    }
}

/// The records that earlier alerts and `hint` point to, in logs without a zone. For each host, the first one
/// counts.
fn looked(all: &[Prepared], hint: Option<&Hint>, earlier: &[Looked]) -> Vec<Looked> {
    let files: Vec<&str> = all.iter().map(|p| p.found.file.as_str()).collect();
    let new = hint.and_then(|hint| hint.record.as_ref()).and_then(|record| {
        let (file, at) = (pointed(&files, &record.file)?, record.ns()?);
        let source = all.iter().find(|p| p.found.file == file).filter(|p| p.zoneless)?;
        let zone = source.zone_by(record.line, at);
        Some(Looked { file: file.to_owned(), line: record.line, at, zoned: record.zoned, zone })
    });
    earlier.iter().cloned().chain(new).collect()
}

impl Prepared {
    /// Its times have no zone, and are in UTC.
    pub(crate) fn read_as_utc(&mut self) {
        if self.zoneless {
            self.plan.zone = Zone::new("UTC").ok();
            self.zoneless = false;
        }
    }

    /// Adds to a source without zones what the clock of its host showed less UTC, in nanoseconds. Programs write local
    /// time or UTC, so that it decides nothing.
    pub(crate) fn suggest(&mut self, clock: i64, host: &str) {
        if self.zoneless && clock != 0 {
            let minutes = clock / (60 * SECOND);
            let (sign, minutes) = if minutes < 0 { ('-', -minutes) } else { ('+', minutes) };
            let zone = format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60);
            self.notes.push(format!(
                "the clock of {host} was {zone} from UTC when it was collected: if these times are local, set zone = \"{zone}\" in sources.toml"
            ));
        }
    }

    /// The zone that explains the record on `line`, if it happened at `alerted`.
    fn zone_by(&self, line: u64, alerted: i64) -> Option<Offset> {
        let (host, own, at) = self.local(line, alerted)?;
        let add = clock::zone(alerted, at)?;
        let (field, path) = (own.key.clone(), own.path.clone());
        Some(Offset {
            host,
            field,
            path,
            zoned: false,
            add,
            by: "the alert's own time".into(),
            agree: 1,
            of: 1,
            except: None,
        })
    }

    /// The host of the record on `line`, its time field, and its time read as UTC in the year nearest to `alerted`.
    /// None if it has a zone.
    fn local(&self, line: u64, alerted: i64) -> Option<(String, &Own, i64)> {
        let mut fields = self.line(line).filter(|_| self.zoneless)?;
        let host = self.plan.host_of(&fields);
        let (own, moment) = self.plan.written(&mut fields)?;
        let at = if moment.dated {
            moment.ns
        } else {
            let year = self.plan.year?;
            let near = |at: &i64| alerted.abs_diff(*at);
            [year - 1, year, year + 1].into_iter().filter_map(|y| year::in_year(moment.ns, y)).min_by_key(near)?
        };
        (!moment.zoned).then_some((host, own, at))
    }

    fn line(&self, number: u64) -> Option<Fields> {
        let mut file = File::open(&self.body.path).ok()?;
        file.seek(SeekFrom::Start(self.detected.skip)).ok()?;
        let mut cutter = Cutter::new(file, &self.detected.cut, 0, 1);
        let mut bytes = Vec::new();
        loop {
            let piece = cutter.next(&mut bytes).ok()??;
            match piece.line.cmp(&number) {
                Ordering::Less => {}
                Ordering::Equal => return Some(fields::parse(&self.detected.shape, &bytes).fields),
                Ordering::Greater => return None,
            }
        }
    }
}
