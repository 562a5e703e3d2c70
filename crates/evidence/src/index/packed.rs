//! The records of a block as one small value: columns of differences, most of which take one byte each.

use serde::{Deserialize, Serialize};

use super::Entry;
use casebook_protocol::{Precision, TimeBasis};

/// What most records of a block have in common.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Kind {
    timed: bool,
    ingested: bool,
    basis: TimeBasis,
    precision: Precision,
    field: Option<i64>,
    malformed: bool,
    oversize: bool,
}

/// Columns with a value for each record, unless stated otherwise.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Columns {
    kinds: Vec<Kind>,
    /// A place in `kinds`. Empty if there is one kind.
    kind: Vec<u16>,
    /// Lines after the line of the record before.
    line: Vec<u64>,
    /// Of the records that are not the first of their line: place and number.
    nth: Vec<(u64, u64)>,
    /// Bytes between the record before and this one.
    gap: Vec<i64>,
    length: Vec<u64>,
    /// The largest common factor of all differences of times, in nanoseconds.
    unit: i64,
    /// For each record with a time, the difference to the time before it, in units.
    time: Vec<i64>,
    /// For each record with a time of ingestion, nanoseconds since 1970.
    ingested: Vec<i64>,
}

/// Packs entries of one source with ascending numbers.
#[allow(clippy::expect_used, reason = "numbers and lists are written to memory, which cannot fail")]
pub(super) fn pack(entries: &[Entry]) -> Vec<u8> {
    let mut columns = Columns { unit: 1, ..Columns::default() };
    let (mut line, mut end, mut time) = (0, 0, 0);
    let mut kind_of = Vec::with_capacity(entries.len());
    for (place, entry) in (0..).zip(entries) {
        let kind = Kind::of(entry);
        let known = columns.kinds.iter().position(|one| *one == kind);
        kind_of.push(known.unwrap_or(columns.kinds.len()));
        if known.is_none() {
            columns.kinds.push(kind);
        }
        columns.line.push(unsigned(entry.line - line));
        if entry.nth != 1 {
            columns.nth.push((place, unsigned(entry.nth)));
        }
        columns.gap.push(entry.offset - end);
        columns.length.push(unsigned(entry.length));
        if let Some(at) = entry.time {
            columns.time.push(at.wrapping_sub(time));
            time = at;
        }
        columns.ingested.extend(entry.ingested);
        (line, end) = (entry.line, entry.offset + entry.length);
    }
    if columns.kinds.len() > 1 {
        columns.kind = kind_of.into_iter().map(|kind| u16::try_from(kind).unwrap_or(u16::MAX)).collect();
    }
    let unit = columns.time.iter().fold(0, |unit, step| common(unit, step.unsigned_abs()));
    columns.unit = i64::try_from(unit).unwrap_or(1).max(1);
    columns.time.iter_mut().for_each(|step| *step /= columns.unit);
    postcard::to_allocvec(&columns).expect("columns can be written")
}

/// The entries of the block, the first of which has the number `first`. None if the bytes are damaged.
pub(super) fn unpack(bytes: &[u8], source: i64, first: i64) -> Option<Vec<Entry>> {
    let columns: Columns = postcard::from_bytes(bytes).ok()?;
    let (mut line, mut end, mut time) = (0i64, 0i64, 0i64);
    let (mut times, mut ingested, mut nth) =
        (columns.time.iter(), columns.ingested.iter(), columns.nth.iter().peekable());
    let mut entries = Vec::with_capacity(columns.line.len());
    for (place, (((id, step), gap), length)) in
        (0u64..).zip((first..).zip(&columns.line).zip(&columns.gap).zip(&columns.length))
    {
        let kind = match columns.kind.as_slice() {
            [] => columns.kinds.first()?,
            of => columns.kinds.get(usize::from(*of.get(usize::try_from(place).ok()?)?))?,
        };
        line = line.checked_add_unsigned(*step)?;
        let (offset, length) = (end.checked_add(*gap)?, i64::try_from(*length).ok()?);
        end = offset.checked_add(length)?;
        if kind.timed {
            time = time.wrapping_add(times.next()?.wrapping_mul(columns.unit));
        }
        entries.push(Entry {
            id,
            source,
            line,
            nth: nth.next_if(|(at, _)| *at == place).map_or(Some(1), |(_, nth)| i64::try_from(*nth).ok())?,
            offset,
            length,
            time: kind.timed.then_some(time),
            basis: kind.basis,
            precision: kind.precision,
            field: kind.field,
            ingested: if kind.ingested { Some(*ingested.next()?) } else { None },
            malformed: kind.malformed,
            oversize: kind.oversize,
        });
    }
    Some(entries)
}

impl Kind {
    const fn of(entry: &Entry) -> Self {
        Self {
            timed: entry.time.is_some(),
            ingested: entry.ingested.is_some(),
            basis: entry.basis,
            precision: entry.precision,
            field: entry.field,
            malformed: entry.malformed,
            oversize: entry.oversize,
        }
    }
}

/// Numbers of lines and bytes are never negative.
fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

/// The largest common factor.
const fn common(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn entries() -> impl Strategy<Value = Vec<Entry>> {
        let one =
            (0..3u64, 1..4i64, 0..99i64, 0..70_000i64, any::<Option<i64>>(), 0..2i64, any::<(bool, bool, bool)>());
        (prop::collection::vec(one, 0..60), prop::sample::select(vec![1i64, 1_000_000_000])).prop_map(|(all, unit)| {
            let (mut line, mut offset) = (1, 0);
            let made = (7..).zip(all).map(|(id, (step, nth, gap, length, time, field, (coarse, malformed, late)))| {
                line += step as i64;
                offset += gap;
                let entry = Entry {
                    id,
                    source: 3,
                    line,
                    nth,
                    offset,
                    length,
                    time: time.map(|time| if coarse { time / unit * unit } else { time }),
                    basis: if time.is_some() { TimeBasis::Record } else { TimeBasis::Inferred },
                    precision: if coarse { Precision::Second } else { Precision::Nanosecond },
                    field: (field > 0).then_some(field),
                    ingested: time.filter(|_| late),
                    malformed,
                    oversize: length > 65_000,
                };
                offset += length;
                entry
            });
            made.collect()
        })
    }

    proptest! {
        #[test]
        fn entries_are_the_same_after_packing(all in entries()) {
            prop_assert_eq!(unpack(&pack(&all), 3, 7), Some(all));
        }

        #[test]
        fn damaged_bytes_are_no_reason_to_panic(all in entries(), at in 0..400usize, byte: u8, cut in 0..400usize) {
            let mut bytes = pack(&all);
            if let Some(one) = bytes.get_mut(at) {
                *one = byte;
            }
            bytes.truncate(cut.max(1));
            let _ = unpack(&bytes, 3, 7);
        }
    }

    #[test]
    fn a_record_of_a_log_takes_few_bytes() {
        let of = |n: i64| Entry {
            id: n,
            source: 0,
            line: n + 1,
            nth: 1,
            offset: n * 121,
            length: 120,
            time: Some((1_700_000_000 + n * 3) * 1_000_000_000),
            basis: TimeBasis::Record,
            precision: Precision::Second,
            field: None,
            ingested: None,
            malformed: false,
            oversize: false,
        };
        let all: Vec<Entry> = (0..512).map(of).collect();
        let bytes = pack(&all);
        assert!(bytes.len() < all.len() * 5, "{} bytes", bytes.len());
        assert_eq!(unpack(&bytes, 0, 0), Some(all));
    }
}
