//! Links records to the alert: by process, connection, session, and shared rare names.

use std::collections::{BTreeMap, BTreeSet};

use casebook_protocol::{Bearing, Timestamp, Weight};

use super::behaviour::Behaviour;
use super::logon;
use super::rec::Rec;
use casebook_evidence::facet::{Class, Facet};

mod keys;

pub(crate) use keys::{brought, flow_keys, process_keys, session_keys};
use keys::{code_in, moved_into};

/// How a record is linked to the alert, closest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kin {
    Core,
    /// The same process, connection or session.
    Same,
    Ancestor,
    Descendant,
    /// The first or last repetition by the same actor.
    Again,
    /// Activity between two suspicious machines.
    Between,
    /// It shares a rare name with the alert.
    Named,
    /// It shares host, user or address with the alert and is near it in time.
    Near,
}

/// After this many seconds, a process id may be reused.
const PID_SECONDS: f64 = 3600.0;
/// Seconds that count as near the alert.
pub(crate) const NEAR_SECONDS: f64 = 3600.0;
/// Seconds that count as near for a name in the Director's question.
pub(crate) const FOLLOWED_SECONDS: f64 = 24.0 * 3600.0;

pub(crate) fn seconds(a: Timestamp, b: Timestamp) -> f64 {
    (a.as_nanosecond() - b.as_nanosecond()) as f64 / 1e9
}

/// Moves `at` by `by` seconds and cuts fractions. None if out of range.
pub(crate) fn moved(at: Timestamp, by: i64) -> Option<Timestamp> {
    Timestamp::from_second(at.as_second().saturating_add(by)).ok()
}

/// A process id may be reused. The parent is the last process with the id that started before the alert.
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

/// The log of a program has its process id on every line, so the id links nothing there.
fn forget_own(recs: &[Rec], keys: &mut [(Vec<String>, Vec<String>)]) {
    const MANY: usize = 40;
    let mut often: BTreeMap<String, usize> = BTreeMap::new();
    for (_, (own, _)) in recs.iter().zip(keys.iter()).filter(|(rec, _)| rec.is_sentence()) {
        own.iter().for_each(|key| *often.entry(key.clone()).or_default() += 1);
    }
    // A record about the process itself is linked to all of its lines.
    for (_, (own, _)) in recs.iter().zip(keys.iter()).filter(|(rec, _)| !rec.is_sentence()) {
        for key in own {
            often.remove(key);
        }
    }
    for (_, (own, _)) in recs.iter().zip(keys).filter(|(rec, _)| rec.is_sentence()) {
        own.retain(|key| !key.contains('#') || often.get(key).is_none_or(|n| *n <= MANY));
    }
}

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
        let mut keys: Vec<(Vec<String>, Vec<String>)> = recs.iter().map(process_keys).collect();
        forget_own(recs, &mut keys);
        links.processes(recs, core, &keys, anchor);
        links.shared(recs, core, flow_keys);
        links.shared(recs, core, session_keys);
        links.sessions(recs, core);
        for (index, rec) in recs.iter().enumerate() {
            if names.iter().any(|n| rec.names(n)) {
                links.add(index, Kin::Named);
            }
        }
        links.above_named(recs, &keys);
        links
    }

    /// Adds the parents of programs that share a name with the alert, if they are suspicious: a new process
    /// chain has no other link.
    fn above_named(&mut self, recs: &[Rec], keys: &[(Vec<String>, Vec<String>)]) {
        let starts = |i: &usize| recs.get(*i).is_some_and(|r| r.class() == Class::ProcessStart);
        let named: Vec<usize> =
            self.kin.iter().filter(|(i, kin)| **kin == Kin::Named && starts(i)).map(|(i, _)| *i).collect();
        for index in named {
            let (Some(rec), Some((_, parents))) = (recs.get(index), keys.get(index)) else { continue };
            let above = recs.iter().zip(keys).enumerate().filter(|(_, (other, (own, _)))| {
                let before = match (other.time, rec.time) {
                    (Some(at), Some(now)) => (0.0..=PID_SECONDS).contains(&seconds(now, at)),
                    _ => false,
                };
                before && other.class() == Class::ProcessStart && own.iter().any(|key| parents.contains(key))
            });
            let last = above.max_by_key(|(_, (other, _))| (other.time, other.key()));
            let against =
                last.filter(|(_, (other, _))| other.shows.iter().any(|b| b.bearing == Bearing::Incriminating));
            if let Some((above, _)) = against {
                self.add(above, Kin::Named);
            }
        }
    }

    fn shared(&mut self, recs: &[Rec], core: &BTreeSet<usize>, keys: fn(&Rec) -> Vec<String>) {
        let of_core: BTreeSet<String> = core.iter().filter_map(|i| recs.get(*i)).flat_map(keys).collect();
        for (index, rec) in recs.iter().enumerate() {
            if keys(rec).iter().any(|k| of_core.contains(k)) {
                self.add(index, Kin::Same);
            }
        }
    }

    /// Links the records about the logon session itself. Other activity in the session only shares the account.
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
        let mut own = pick(core, false);
        let mut below: BTreeSet<usize> = BTreeSet::new();
        let mut above = pick(core, true);
        let mut reach = own.clone();
        // A process that starts a thread in another process continues to act there.
        let before_it = |rec: &Rec| !matches!((rec.time, anchor), (Some(at), Some(anchor)) if at > anchor);
        let moved: Vec<(usize, String)> = recs
            .iter()
            .enumerate()
            .filter(|(_, rec)| in_time(rec) && before_it(rec))
            .filter_map(|(i, rec)| Some((i, moved_into(rec)?)))
            .collect();
        for _ in 0..16 {
            let before = (below.len(), above.len(), own.len());
            for (index, into) in &moved {
                if (own.contains(into) || above.contains(into)) && self.add(*index, Kin::Same) {
                    own.extend(keys.get(*index).into_iter().flat_map(|(mine, _)| mine));
                    reach.extend(own.iter());
                }
            }
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
            if (below.len(), above.len(), own.len()) == before {
                break;
            }
        }
        // Of other activity of a parent process, add only suspicious records.
        for (index, (mine, _)) in keys.iter().enumerate() {
            let Some(rec) = recs.get(index).filter(|r| in_time(r)) else { continue };
            let against = |b: &&'static Behaviour| b.bearing == Bearing::Incriminating && b.weight >= Weight::Moderate;
            if mine.iter().any(|k| above.contains(k)) && rec.shows.iter().any(against) {
                self.add(index, Kin::Named);
            }
        }
    }

    /// True for the first and last records of the alerted series, and for its outcome.
    pub(crate) fn is_end(&self, index: usize) -> bool {
        self.ends.contains(&index)
    }

    pub(crate) fn again(&mut self, recs: &[Rec], places: &BTreeSet<(String, u64)>) {
        for (index, rec) in recs.iter().enumerate() {
            if places.iter().any(|(file, line)| rec.key() == (file.as_str(), *line)) {
                self.add(index, Kin::Again);
                self.ends.insert(index);
            }
        }
    }

    /// Names of close programs, and of their libraries and scripts, in folders where any user may write. The
    /// record that brought them there has the name.
    pub(crate) fn brought(&self, recs: &[Rec]) -> BTreeSet<String> {
        let close = recs.iter().enumerate().filter(|(i, _)| self.kin(*i).is_some_and(|k| k <= Kin::Ancestor));
        let close: Vec<&Rec> = close.map(|(_, rec)| rec).collect();
        let started = close.iter().filter(|rec| rec.class() == Class::ProcessStart);
        let given = started.filter_map(|rec| rec.facets.get(Facet::Command)).flat_map(code_in);
        let programs = close.iter().filter_map(|rec| rec.facets.get(Facet::Process));
        let there = programs.chain(given).filter(|path| brought(path));
        there
            .filter_map(|path| path.rsplit(['/', '\\']).next().map(str::to_lowercase))
            .filter(|n| n.len() >= 4)
            .collect()
    }

    /// Marks the records that brought these programs to the host.
    pub(crate) fn arrived(&mut self, recs: &[Rec], names: &BTreeSet<String>, anchor: Option<Timestamp>) {
        // A frequent name, such as that of an interpreter, identifies no program.
        let few = |name: &&String| recs.iter().filter(|r| r.names(name)).count() * 4 <= recs.len();
        let names: Vec<&String> = names.iter().filter(few).collect();
        let brings = |rec: &Rec| {
            let later = matches!((rec.time, anchor), (Some(at), Some(anchor)) if at > anchor);
            !later && matches!(rec.class(), Class::FileCreate | Class::HttpRequest | Class::ProcessStart)
        };
        for (index, rec) in recs.iter().enumerate().filter(|(_, rec)| brings(rec)) {
            if names.iter().any(|name| rec.names(name)) {
                self.add(index, Kin::Named);
            }
        }
    }

    /// Marks records that share host, user or address with the core and are near it in time.
    pub(crate) fn near(&mut self, recs: &[Rec], subjects: &BTreeSet<String>, anchor: Option<Timestamp>, within: f64) {
        for (index, rec) in recs.iter().enumerate() {
            let (Some(at), Some(anchor)) = (rec.time, anchor) else { continue };
            if seconds(at, anchor).abs() <= within && subjects.iter().any(|s| rec.names(s)) {
                self.add(index, Kin::Near);
            }
        }
    }

    /// Marks program activity around the alert in a log without hosts, which is the log of one host.
    pub(crate) fn beside(&mut self, recs: &[Rec], core: &BTreeSet<usize>, anchor: Option<Timestamp>, within: f64) {
        let nameless = |rec: &&Rec| rec.facets.get(Facet::Host).is_none();
        let files: BTreeSet<&str> =
            core.iter().filter_map(|i| recs.get(*i)).filter(nameless).map(|rec| rec.file.as_str()).collect();
        for (index, rec) in
            recs.iter().enumerate().filter(|(_, rec)| nameless(rec) && files.contains(rec.file.as_str()))
        {
            let of_programs = matches!(
                rec.class(),
                Class::ProcessStart | Class::ProcessAccess | Class::FileCreate | Class::RegistryChange | Class::Script
            );
            if of_programs
                && matches!((rec.time, anchor), (Some(at), Some(anchor)) if seconds(at, anchor).abs() <= within)
            {
                self.add(index, Kin::Near);
            }
        }
    }

    /// Marks records that connect a followed name with the alert's addresses or with another followed name.
    /// Activity between two suspicious machines of any kind matters.
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
mod tests;
