//! The order of a Timeline's events. Times of one source can be compared; those of two sources only as far as their
//! clocks agree, so an event of several sources keeps the order that a shared source gives.

use std::collections::BTreeMap;

use casebook_protocol::{EventTime, Reviewed, TimeBasis, TimelineEvent};

/// A time by the clock of one source, and the place of its record.
#[derive(Debug, Clone)]
pub(super) struct Stamp {
    pub(super) source: String,
    time: EventTime,
    file: String,
    line: u64,
}

impl Stamp {
    /// None if the time of the finding is not that of a record, or if the finding cites records of several sources.
    pub(super) fn of(finding: &Reviewed) -> Option<Self> {
        let own = |time: &&EventTime| matches!(time.basis, TimeBasis::Record | TimeBasis::ClockCorrected);
        let time = finding.finding.draft.time.as_ref().filter(own)?.clone();
        let records = finding.checked.records();
        let first = records.iter().min_by_key(|record| (&record.file, record.line))?;
        let one = records.iter().all(|record| record.source == first.source);
        one.then(|| Self { source: first.source.clone(), time, file: first.file.clone(), line: first.line })
    }

    /// Whether it is before the other one, of the same source. None if neither the times nor the records show it.
    fn before(&self, other: &Self) -> Option<bool> {
        if !one_moment(&self.time, &other.time) {
            return Some(self.time.at < other.time.at);
        }
        (self.file == other.file && self.line != other.line).then_some(self.line < other.line)
    }
}

/// True if both are the same moment, with different precision.
pub(super) fn one_moment(a: &EventTime, b: &EventTime) -> bool {
    a.at == b.at || a.precision.shows(b.at, a.at) || b.precision.shows(a.at, b.at)
}

/// An event with the clocks that it has a time of.
#[derive(Debug)]
pub(super) struct Placed {
    /// Its place in the Critic's order.
    pub(super) nth: usize,
    pub(super) event: TimelineEvent,
    pub(super) stamps: Vec<Stamp>,
}

/// The earliest stamp of an event by each clock.
type Clocks<'a> = BTreeMap<&'a str, &'a Stamp>;

impl Placed {
    fn clocks(&self) -> Clocks<'_> {
        let mut clocks = Clocks::new();
        for stamp in &self.stamps {
            let known = clocks.entry(&stamp.source).or_insert(stamp);
            if stamp.before(known) == Some(true) {
                *known = stamp;
            }
        }
        clocks
    }
}

/// Sorts by the clock that two events share if it tells them apart, then by the time that is shown. Events of the same
/// time keep the order of their records in a file, then the Critic's.
pub(super) fn ordered(mut events: Vec<Placed>) -> Vec<Placed> {
    events.sort_by_key(|placed| placed.nth);
    let clocks: Vec<_> = events.iter().map(Placed::clocks).collect();
    let times: Vec<&EventTime> = events.iter().map(|placed| &placed.event.time).collect();
    let all = || clocks.iter().zip(&times).enumerate();
    // Whether one event is before another, and whether a shared clock says so.
    let before = |(of_a, a): (&Clocks<'_>, &EventTime), (of_b, b): (&Clocks<'_>, &EventTime)| {
        let shared = || of_a.iter().filter_map(|(source, stamp)| Some((*stamp, *of_b.get(source)?)));
        let apart = |(one, other): &(&Stamp, &Stamp)| !one_moment(&one.time, &other.time);
        let by_clock = shared().find(apart).and_then(|(one, other)| one.before(other));
        let by_record = || shared().find_map(|(one, other)| one.before(other)) == Some(true);
        let by_time = || if a.at == b.at { by_record() } else { a.at < b.at };
        (by_clock.unwrap_or_else(by_time), by_clock.is_some())
    };
    let later: Vec<Vec<(usize, bool)>> = all()
        .map(|(_, (of_a, a))| {
            let other = |(n, (of_b, b)): (usize, (&Clocks<'_>, &&EventTime))| (n, before((of_a, a), (of_b, b)));
            all().map(other).filter(|(_, (before, _))| *before).map(|(n, (_, shared))| (n, shared)).collect()
        })
        .collect();
    // How many events are before each one, and of these by a shared clock.
    let mut waits = vec![(0_usize, 0_usize); times.len()];
    for (n, shared) in later.iter().flatten() {
        waits.iter_mut().skip(*n).take(1).for_each(|(any, by)| (*any, *by) = (*any + 1, *by + usize::from(*shared)));
    }
    let mut left: Vec<usize> = (0..times.len()).collect();
    let mut order = Vec::with_capacity(left.len());
    while !left.is_empty() {
        let wait = |n: &usize| waits.get(*n).copied().unwrap_or_default();
        // Times of different clocks may contradict what shared clocks say: the shared ones count.
        let free = left.iter().position(|n| wait(n).0 == 0);
        let place = free.or_else(|| {
            let at = |(_, n): &(usize, &usize)| (wait(n).1, times.get(**n).map(|time| time.at));
            left.iter().enumerate().min_by_key(at).map(|(place, _)| place)
        });
        let next = left.remove(place.unwrap_or_default());
        for (n, shared) in later.get(next).into_iter().flatten() {
            let less = |(any, by): &mut (usize, usize)| {
                (*any, *by) = (any.saturating_sub(1), by.saturating_sub(usize::from(*shared)));
            };
            waits.iter_mut().skip(*n).take(1).for_each(less);
        }
        order.push(next);
    }
    let mut events: Vec<Option<Placed>> = events.into_iter().map(Some).collect();
    order.into_iter().filter_map(|n| events.get_mut(n).and_then(Option::take)).collect()
}
