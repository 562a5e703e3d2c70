//! A record as rules see it: by the names of Sigma's fields.

use ahash::AHashMap;

use super::taxonomy::{Wanted, plain};
use crate::facet::{chosen, of_parent};

/// A record may have keys that are data. Above this number, the known ones are forgotten.
const PATHS_MAX: usize = 20_000;
/// Added to the rank of a value in a text that the recorded party wrote.
const CHOSEN: usize = 1 << 16;

type Fields = [(String, String)];

/// The Sigma fields that a set of rules reads, each with a number.
#[derive(Debug, Default)]
pub(super) struct Slots {
    numbers: AHashMap<String, usize>,
    wanted: Vec<Wanted>,
}

impl Slots {
    pub(super) fn add(&mut self, field: &str) -> usize {
        if let Some(known) = self.numbers.get(field) {
            return *known;
        }
        self.wanted.push(Wanted::of(field));
        self.numbers.insert(field.to_owned(), self.wanted.len() - 1);
        self.wanted.len() - 1
    }

    pub(super) fn number(&self, field: &str) -> Option<usize> {
        self.numbers.get(field).copied()
    }

    /// The fields that the field at `path` may hold, each with the rank of its name.
    fn fits(&self, path: &str) -> Vec<(usize, usize)> {
        let name = plain(path);
        let parent = of_parent(path);
        let ends = |wanted: &String| {
            name.strip_suffix(wanted.as_str()).is_some_and(|before| before.is_empty() || before.ends_with('.'))
        };
        let rank = |wanted: &Wanted| wanted.names.iter().position(ends).filter(|_| !parent || wanted.of_parent);
        self.wanted.iter().enumerate().filter_map(|(slot, wanted)| Some((slot, rank(wanted)?))).collect()
    }
}

#[derive(Debug)]
struct Column {
    path: String,
    fits: Vec<(usize, usize)>,
    /// The columns whose values may contain this field.
    above: Vec<usize>,
}

#[derive(Debug, Default, Clone)]
struct Best {
    record: u64,
    rank: usize,
    fields: Vec<usize>,
}

/// Finds Sigma's fields in the records of one source. What it learns about a path serves all records.
#[derive(Debug, Default)]
pub(super) struct Columns {
    numbers: AHashMap<String, usize>,
    columns: Vec<Column>,
    /// For each column, the last record that has it, and the place of the field.
    seen: Vec<(u64, usize)>,
    best: Vec<Best>,
    record: u64,
    /// The columns of the previous record, in order: the next one is mostly the same.
    order: Vec<usize>,
}

impl Columns {
    pub(super) fn read<'r>(&'r mut self, slots: &'r Slots, fields: &'r Fields, text: Option<&'r str>) -> View<'r> {
        if self.columns.len() > PATHS_MAX {
            let record = self.record;
            *self = Self { record, ..Self::default() };
        }
        self.record += 1;
        self.best.resize(slots.wanted.len(), Best::default());
        for (place, (path, _)) in fields.iter().enumerate() {
            let column = self.column(slots, place, path);
            if let Some(seen) = self.seen.get_mut(column) {
                *seen = (self.record, place);
            }
            let Some(column) = self.columns.get(column) else { continue };
            if column.fits.is_empty() {
                continue;
            }
            let inside = column.above.iter().any(|above| {
                let there = self.seen.get(*above).filter(|(record, _)| *record == self.record);
                there.and_then(|(_, place)| fields.get(*place)).is_some_and(|(outer, text)| chosen(outer, text))
            });
            for (slot, rank) in &column.fits {
                let rank = if inside { rank + CHOSEN } else { *rank };
                let Some(best) = self.best.get_mut(*slot) else { continue };
                if best.record != self.record || rank < best.rank {
                    best.record = self.record;
                    best.rank = rank;
                    best.fields.clear();
                }
                if rank == best.rank {
                    best.fields.push(place);
                }
            }
        }
        View { columns: self, slots, fields, text }
    }

    fn column(&mut self, slots: &Slots, place: usize, path: &str) -> usize {
        let same = self.order.get(place).copied();
        if let Some(same) = same.filter(|same| self.columns.get(*same).is_some_and(|column| column.path == path)) {
            return same;
        }
        let number = self.numbered(slots, path);
        match self.order.get_mut(place) {
            Some(order) => *order = number,
            None => self.order.push(number),
        }
        number
    }

    fn numbered(&mut self, slots: &Slots, path: &str) -> usize {
        if let Some(known) = self.numbers.get(path) {
            return *known;
        }
        let mut above = Vec::new();
        let mut rest = path;
        while let Some((outer, _)) = rest.rsplit_once('.') {
            above.push(self.numbered(slots, outer));
            rest = outer;
        }
        let number = self.columns.len();
        self.columns.push(Column { path: path.to_owned(), fits: slots.fits(path), above });
        self.seen.push((0, 0));
        self.numbers.insert(path.to_owned(), number);
        number
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct View<'r> {
    columns: &'r Columns,
    slots: &'r Slots,
    fields: &'r Fields,
    /// The whole record, for logs whose fields do not hold all of its words.
    text: Option<&'r str>,
}

impl<'r> View<'r> {
    /// The values of a Sigma field. Empty if no rule of the set reads it.
    pub(super) fn values(&self, field: &str) -> impl Iterator<Item = &'r str> {
        let slot = self.slots.numbers.get(field).copied();
        slot.map(|slot| self.at(slot)).into_iter().flatten()
    }

    pub(super) fn at(&self, slot: usize) -> impl Iterator<Item = &'r str> + use<'r> {
        let (columns, fields) = (self.columns, self.fields);
        let part = self.slots.wanted.get(slot).and_then(|wanted| wanted.part);
        let best = columns.best.get(slot).filter(|best| best.record == columns.record);
        let values = best.into_iter().flat_map(|best| &best.fields).filter_map(|place| fields.get(*place));
        // The field with the name of the Sigma field itself holds the part alone.
        let part = part.filter(|_| best.is_some_and(|best| best.rank % CHOSEN > 0));
        values.filter_map(move |(_, value)| match part {
            Some(part) => part.of(value),
            None => Some(value.as_str()),
        })
    }

    /// The places of the fields that hold a Sigma field, or a part of it.
    pub(super) fn places(&self, slot: usize) -> &'r [usize] {
        let best = self.columns.best.get(slot).filter(|best| best.record == self.columns.record);
        best.map_or(&[], |best| &best.fields)
    }

    pub(super) fn has(&self, slot: usize) -> bool {
        self.columns.best.get(slot).is_some_and(|best| best.record == self.columns.record)
    }

    /// All texts of the record, in the order of its fields.
    pub(super) fn texts(&self) -> impl Iterator<Item = &'r str> {
        self.fields.iter().map(|(_, value)| value.as_str()).chain(self.text)
    }

    /// The text at this place among all texts.
    pub(super) fn text(&self, place: usize) -> Option<&'r str> {
        self.fields.get(place).map(|(_, value)| value.as_str()).or(self.text)
    }

    pub(super) fn fields(&self) -> &'r Fields {
        self.fields
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(field: &str, record: &[(&str, &str)]) -> Vec<String> {
        let mut slots = Slots::default();
        slots.add(field);
        let fields: Vec<(String, String)> = record.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect();
        let mut columns = Columns::default();
        columns.read(&slots, &fields, None).values(field).map(str::to_owned).collect()
    }

    #[test]
    fn one_field_of_many_logs() {
        let command = |path: &str| read("CommandLine", &[("x", "y"), (path, "id -u")]);
        for path in
            ["CommandLine", "winlog.event_data.CommandLine", "process.command_line", "ProcessCommandLine", "cmdline"]
        {
            assert_eq!(command(path), ["id -u"], "{path}");
        }
        assert!(command("process.parent.command_line").is_empty());
        assert_eq!(read("ParentCommandLine", &[("process.parent.command_line", "sh")]), ["sh"]);
        assert_eq!(read("Image", &[("NewProcessName", r"C:\a.exe")]), [r"C:\a.exe"]);
        assert_eq!(read("SourceIp", &[("src_ip", "192.0.2.1")]), ["192.0.2.1"]);
        assert_eq!(read("cs-uri-query", &[("url", "/a?b=1")]), ["b=1"]);
        assert_eq!(read("cs-uri-query", &[("cs-uri-query", "b=1")]), ["b=1"]);
        assert_eq!(read("userIdentity.type", &[("detail.userIdentity.type", "Root")]), ["Root"]);
        assert!(read("userIdentity.type", &[("type", "Root")]).is_empty());
    }

    #[test]
    fn all_values_of_a_list_and_the_best_name() {
        assert_eq!(read("Hashes", &[("Hashes.0", "a"), ("Hashes.1", "b"), ("sha256", "c")]), ["a", "b"]);
    }

    #[test]
    fn a_field_in_a_text_of_the_client_does_not_replace_that_of_the_record() {
        let record = [("user_agent", "CommandLine=x"), ("user_agent.CommandLine", "x"), ("cmdline", "id")];
        assert_eq!(read("CommandLine", &record), ["id"]);
        let message = [("message", "CommandLine=x"), ("message.CommandLine", "x"), ("cmdline", "id")];
        assert_eq!(read("CommandLine", &message), ["x"]);
    }
}
