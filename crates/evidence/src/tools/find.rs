use std::collections::BTreeMap;

use casebook_protocol::{Timestamp, one_line};
use serde_json::{Value, json};

use super::EvidenceTools;
use super::args::Args;
use super::shown::{Shown, Wanted, records};
use crate::coverage::Span;
use crate::index::Entry;
use crate::query::{Filter, Order, Page, Scanned, Window, names_field, page};
use crate::readings::Terms;

/// What to do about a query that read as much as it may.
pub(super) const CHEAPER: &str =
    "after reading 8 GiB: give `sources`, `from` and `to`, or a term of at least four characters, which an index finds";
/// Names in an error about a field.
const NEAREST: usize = 5;
const SECOND: i64 = 1_000_000_000;
const TERMS_MAX: usize = 500;
/// In bytes.
const PAGE_MAX: u64 = 256 << 10;
const PAGE: u64 = 64 << 10;

pub(super) const SEARCH: &[&str] = &[
    "terms",
    "mode",
    "where",
    "from",
    "to",
    "sources",
    "order",
    "near",
    "limit",
    "each_source",
    "offset",
    "include_fields",
    "fields",
];
pub(super) const AROUND: &[&str] = &[
    "time",
    "file",
    "line",
    "nth",
    "before_seconds",
    "after_seconds",
    "sources",
    "terms",
    "limit",
    "include_fields",
    "fields",
];
pub(super) const RELATED: &[&str] = &["file", "line", "nth", "limit"];
pub(super) const GET: &[&str] = &["file", "line", "nth", "offset", "length"];

impl EvidenceTools {
    pub(super) fn filter(&self, args: &Args) -> Result<Filter, String> {
        let terms = args.texts("terms")?;
        if terms.len() > TERMS_MAX {
            return args.fail(&format!("`terms` takes at most {TERMS_MAX}"));
        }
        let any = args.word("mode", &[("all", false), ("any", true)])?.unwrap_or(false);
        let (from, to) = (args.time("from")?, args.time("to")?);
        if let (Some(from), Some(to)) = (from, to)
            && from > to
        {
            return args.fail("`from` is later than `to`");
        }
        let (sources, conditions) = (self.sources(args)?, args.conditions()?);
        let known = conditions.iter().try_for_each(|condition| self.known_field(&sources, condition.field()));
        let filter =
            Filter { sources, terms: Terms::new(&terms, any), window: Window { from, to }, ..Filter::default() };
        // If no record has the terms, a total of 0 is true whatever the fields are called.
        if let Err(why) = known
            && (filter.terms.is_empty() || self.has_any(&filter)?)
        {
            return args.fail(&why);
        }
        Ok(Filter { conditions, ..filter })
    }

    fn has_any(&self, filter: &Filter) -> Result<bool, String> {
        let found = page(&self.catalog, filter, Order::File, 0, 0, None).map_err(|e| e.to_string())?;
        Ok(found.total > 0)
    }

    /// An error with the nearest names if no record of the sources has the field. A total of 0 would look like evidence.
    pub(super) fn known_field(&self, sources: &[usize], field: &str) -> Result<(), String> {
        let of = || sources.iter().filter_map(|place| self.catalog.sources().get(*place));
        if sources.is_empty() || of().any(|source| names_field(source, field)) {
            return Ok(());
        }
        let plain = |text: &str| text.chars().take(64).collect::<String>().to_lowercase();
        let (wanted, last) = (plain(field), |name: &str| plain(name.rsplit('.').next().unwrap_or_default()));
        let mut near: Vec<(usize, &str)> = of()
            .flat_map(|source| &source.fields)
            .map(|known| {
                let whole = strsim::osa_distance(&wanted, &plain(&known.name));
                (whole.min(strsim::osa_distance(&last(field), &last(&known.name))), known.name.as_str())
            })
            .collect();
        near.sort_unstable();
        near.dedup_by_key(|(_, name)| *name);
        let near: Vec<String> = near.into_iter().take(NEAREST).map(|(_, name)| one_line(name, 80)).collect();
        let advice =
            if near.is_empty() { "they have no fields".to_owned() } else { format!("nearest: {}", near.join(", ")) };
        Err(format!("no record of the searched sources has a field {field:?}; {advice}"))
    }

    pub(super) fn search(&self, args: &Args) -> Result<Value, String> {
        let filter = self.filter(args)?;
        let near = args.time("near")?;
        let words = [("time", Order::Time), ("time_desc", Order::TimeDesc), ("file", Order::File)];
        let order = match (args.word("order", &words)?, near) {
            (Some(_), Some(_)) => return args.fail("give `order` or `near`, not both"),
            (order, None) => order.unwrap_or(Order::Time),
            (None, Some(near)) => Order::Near(near),
        };
        let limit = usize::try_from(args.number("limit", 0, 500)?.unwrap_or(20)).unwrap_or(20);
        let offset = usize::try_from(args.number("offset", 0, 100_000)?.unwrap_or(0)).unwrap_or(0);
        let with_fields = self.wanted(args, &filter.sources)?;
        let each = args.number("each_source", 1, 500)?.and_then(|each| usize::try_from(each).ok());
        let found = page(&self.catalog, &filter, order, offset, limit, each).map_err(|e| e.to_string())?;
        let mut answer = self.answer(&filter, &found, &with_fields)?;
        if each.is_some() {
            let of = |place: &i64| self.catalog.sources().get(usize::try_from(*place).ok()?);
            let counts =
                found.by_source.iter().filter_map(|(place, count)| Some((of(place)?.id.clone(), json!(count))));
            put(&mut answer, "by_source", counts.collect());
        }
        if filter.terms.is_choice() {
            let texts = args.texts("terms")?;
            let held = texts.iter().zip(&found.held).filter(|(_, count)| **count > 0);
            put(&mut answer, "by_term", held.map(|(text, count)| ((*text).to_owned(), json!(count))).collect());
        }
        self.nothing(&mut answer, &filter, args, found.total)?;
        Ok(answer)
    }

    pub(super) fn nothing(&self, answer: &mut Value, filter: &Filter, args: &Args, total: u64) -> Result<(), String> {
        if total > 0 {
            return Ok(());
        }
        // Of alternatives, none is where the others were looked for.
        let terms = if filter.terms.is_choice() { Vec::new() } else { args.texts("terms")? };
        let of: Vec<&str> = filter.conditions.iter().filter_map(crate::query::Condition::text).chain(terms).collect();
        self.found_nothing(answer, filter, if of.len() > 1 { &of } else { &[] })
    }

    /// The fields to show: all, those of the argument `fields`, or none.
    fn wanted(&self, args: &Args, sources: &[usize]) -> Result<Wanted, String> {
        let names = args.texts("fields")?;
        names.iter().try_for_each(|name| self.known_field(sources, name)).or_else(|why| args.fail(&why))?;
        Ok(match (args.flag("include_fields")?, names.is_empty()) {
            (true, true) => Wanted::All,
            (_, false) => Wanted::Named(names.into_iter().map(str::to_owned).collect()),
            (false, true) => Wanted::None,
        })
    }

    fn answer(&self, filter: &Filter, found: &Page, with_fields: &Wanted) -> Result<Value, String> {
        let mut scanned = found.scanned.clone();
        let entries = self.readable(&found.entries, &mut scanned);
        let (records, left) = records(&self.catalog, &entries, with_fields).map_err(|e| e.to_string())?;
        let mut answer = json!({
            "total": found.total,
            "total_is_exact": scanned.whole(),
            "returned": records.len(),
            "window": window(filter),
            "searched": self.names(filter),
            "records": records,
        });
        self.limits(&mut answer, &scanned);
        if left > 0 {
            put(
                &mut answer,
                "left_out",
                json!(format!("{left} more records would make the answer too large: ask for fewer, or with `offset`")),
            );
        }
        if !filter.window.is_whole() {
            let untimed: u64 =
                filter.sources.iter().filter_map(|s| self.catalog.sources().get(*s)).map(|s| s.untimed).sum();
            if untimed > 0 {
                put(&mut answer, "untimed_not_searched", json!(untimed));
            }
        }
        Ok(answer)
    }

    /// Without the records of files that changed or cannot be read.
    fn readable(&self, entries: &[Entry], scanned: &mut Scanned) -> Vec<Entry> {
        let mut sources: BTreeMap<i64, bool> = BTreeMap::new();
        let mut there = |entry: &&Entry| {
            *sources.entry(entry.source).or_insert_with(|| match self.catalog.text(entry.source) {
                Ok(_) => true,
                Err(error) => {
                    let place = usize::try_from(entry.source).unwrap_or(usize::MAX);
                    scanned.unread.push((place, error.to_string()));
                    false
                }
            })
        };
        entries.iter().filter(|entry| there(entry)).copied().collect()
    }

    /// Says why the total is not exact.
    pub(super) fn limits(&self, answer: &mut Value, scanned: &Scanned) {
        if scanned.stopped {
            put(answer, "stopped", json!(CHEAPER));
        }
        if !scanned.unread.is_empty() {
            let source = |place: &usize| self.catalog.sources().get(*place).map(|source| source.id.as_str());
            let unread: Vec<Value> =
                scanned.unread.iter().map(|(place, why)| json!({ "source": source(place), "why": why })).collect();
            put(answer, "not_searched", json!(unread));
        }
    }

    pub(super) fn around(&self, args: &Args) -> Result<Value, String> {
        let center = match (args.time("time")?, args.has("file")) {
            (Some(time), false) => time,
            (None, true) => {
                let entry = self.entry(args)?;
                let Some(time) = entry.time else {
                    return args.fail("that record has no time: give `time` instead");
                };
                time
            }
            _ => return args.fail("give either `time`, or `file` and `line`"),
        };
        let before = args.seconds("before_seconds")?.unwrap_or(60 * SECOND);
        let after = args.seconds("after_seconds")?.unwrap_or(60 * SECOND);
        let filter = Filter {
            sources: self.sources(args)?,
            terms: Terms::new(&args.texts("terms")?, false),
            window: Window { from: Some(center.saturating_sub(before)), to: Some(center.saturating_add(after)) },
            ..Filter::default()
        };
        let limit = usize::try_from(args.number("limit", 1, 500)?.unwrap_or(50)).unwrap_or(50);
        let mut found = page(&self.catalog, &filter, Order::Near(center), 0, limit, None).map_err(|e| e.to_string())?;
        found.entries.sort_by_key(|e| (e.time, e.id));
        let mut answer = self.answer(&filter, &found, &self.wanted(args, &filter.sources)?)?;
        put(&mut answer, "center", json!(stamp(center)));
        Ok(answer)
    }

    /// The records of the same process, session or connection, and those of the processes above and below.
    pub(super) fn related(&self, args: &Args) -> Result<Value, String> {
        let of = self.entry(args)?;
        let limit = usize::try_from(args.number("limit", 1, 500)?.unwrap_or(100)).unwrap_or(100);
        let failed = |e: crate::ReadError| e.to_string();
        let (line, nth) = (u64::try_from(of.line).unwrap_or(0), u32::try_from(of.nth).unwrap_or(1));
        let (found, whole) =
            self.catalog.related(self.visible.to_vec(), args.required("file")?, line, nth).map_err(failed)?;
        let mut entries = Vec::new();
        for (record, _) in found.iter().take(limit) {
            entries.push(self.catalog.find(&record.file, record.line, 1).map_err(failed)?);
        }
        let (mut records, _) = records(&self.catalog, &entries, &Wanted::All).map_err(failed)?;
        for (record, (_, tie)) in records.iter_mut().zip(&found) {
            put(record, "tie", json!(tie.name()));
        }
        Ok(json!({
            "total": found.len(),
            "total_is_exact": whole,
            "returned": records.len(),
            "searched": self.visible().map(|source| source.id.as_str()).collect::<Vec<_>>(),
            "records": records,
        }))
    }

    pub(super) fn get_record(&self, args: &Args) -> Result<Value, String> {
        let entry = self.entry(args)?;
        let offset = args.number("offset", 0, u64::MAX >> 1)?.unwrap_or(0);
        let length = args.number("length", 1, PAGE_MAX)?.unwrap_or(PAGE);
        let failed = |e: crate::ReadError| e.to_string();
        let kept = self.catalog.bytes(&entry, 0, crate::catalog::kept(&entry)).map_err(failed)?;
        let record = self.catalog.record_of(&entry, kept);
        let wanted = if offset == 0 { Wanted::All } else { Wanted::None };
        let shown = Shown::new(&record, self.catalog.rules_met(entry.source, &record), &wanted);
        let mut answer = serde_json::to_value(shown).map_err(|e| e.to_string())?;
        let part = self.catalog.bytes(&entry, offset, length).map_err(failed)?;
        let end = offset + part.len() as u64;
        put(&mut answer, "raw", json!(String::from_utf8_lossy(&part)));
        put(&mut answer, "raw_cut", json!(offset > 0 || end < record.length));
        put(&mut answer, "bytes", json!(record.length));
        put(&mut answer, "offset", json!(offset));
        if end < record.length {
            put(&mut answer, "next_offset", json!(end));
        }
        Ok(answer)
    }

    fn entry(&self, args: &Args) -> Result<Entry, String> {
        let file = args.required("file")?;
        let Some(line) = args.number("line", 1, u64::MAX >> 1)? else {
            return args.fail("`line` is missing");
        };
        let nth = args.number("nth", 1, 1 << 30)?.unwrap_or(1);
        if !self.catalog.source_of(file).is_some_and(|place| self.visible.contains(&place)) {
            return args.fail(&format!("no source with file {file:?}; there are {}", self.known()));
        }
        self.catalog.find(file, line, u32::try_from(nth).unwrap_or(1)).map_err(|e| e.to_string())
    }
}

pub(super) fn window(filter: &Filter) -> Value {
    json!({ "from": filter.window.from.map(stamp), "to": filter.window.to.map(stamp) })
}

/// RFC 3339 in UTC.
pub(super) fn stamp(ns: i64) -> String {
    Timestamp::from_nanosecond(ns.into()).map_or_else(|_| ns.to_string(), |t| t.to_string())
}

pub(super) fn counted_span(span: &Span) -> Value {
    json!({"count": span.records, "first_time": span.first.map(stamp), "last_time": span.last.map(stamp)})
}

pub(super) fn put(answer: &mut Value, key: &str, value: Value) {
    if let Some(map) = answer.as_object_mut() {
        map.insert(key.to_owned(), value);
    }
}
