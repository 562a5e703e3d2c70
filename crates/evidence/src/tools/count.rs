use std::collections::HashMap;

use serde_json::{Value, json};

use super::EvidenceTools;
use super::args::Args;
use super::find::{counted_span, put, stamp, window};
use crate::coverage::Span;
use crate::facet::{Facet, Facets};
use crate::index::Entry;
use crate::profile::cut;
use crate::query::{Filter, Order, Scanned, has_field, page, scan, values};

pub(super) const COUNT: &[&str] = &["field", "terms", "mode", "where", "from", "to", "sources", "top"];

/// Different values counted; later ones are counted together.
const VALUES_MAX: usize = 200_000;
const VALUE_MAX: usize = 1_000;

#[derive(Debug, Clone, Copy)]
enum By<'a> {
    Field(&'a str),
    Source,
    /// `success` or `failure`, over all kinds of refusal.
    Outcome,
    /// The length of the period, in nanoseconds.
    Period(i64),
}

impl EvidenceTools {
    pub(super) fn count_by(&self, args: &Args) -> Result<Value, String> {
        const SECOND: i64 = 1_000_000_000;
        let field = args.required("field")?;
        let by = match field {
            "$source" => By::Source,
            "$outcome" => By::Outcome,
            "$minute" => By::Period(60 * SECOND),
            "$hour" => By::Period(3_600 * SECOND),
            "$day" => By::Period(86_400 * SECOND),
            _ => By::Field(field),
        };
        let filter = self.filter(args)?;
        if matches!(by, By::Outcome) && filter.by_time_only() {
            return args.fail("`$outcome` needs `terms` or `where`: it reads each record whole");
        }
        let top = usize::try_from(args.number("top", 1, 1_000)?.unwrap_or(20)).unwrap_or(20);
        let mut counted = Counted::default();
        let needed = if let By::Field(field) = by { Some(field) } else { None };
        needed.map_or(Ok(()), |field| self.known_field(&filter.sources, field)).or_else(|why| args.fail(&why))?;
        let rest = self.count_missing(&filter, needed, &mut counted)?;
        let scanned = scan(&self.catalog, &rest, needed, &mut |hit| {
            counted.total += 1;
            let mut found: Vec<&str> = Vec::new();
            let made;
            match by {
                By::Field(field) => found = values(hit.fields, field),
                By::Source => {
                    let place = usize::try_from(hit.entry.source).unwrap_or(usize::MAX);
                    found.extend(self.catalog.sources().get(place).map(|s| s.id.as_str()));
                }
                By::Outcome => {
                    let list = hit.parsed();
                    let facets = Facets::read(&list.into_iter().collect(), &String::from_utf8_lossy(hit.raw));
                    made = facets.get(Facet::Outcome).map(str::to_owned);
                    found.extend(made.as_deref());
                }
                By::Period(length) => {
                    made = hit.entry.time.map(|t| stamp(t.div_euclid(length) * length));
                    found.extend(made.as_deref());
                }
            }
            counted.add(hit.entry, found);
        })
        .map_err(|e| e.to_string())?;
        let total = counted.total;
        let mut answer = self.counted(&filter, counted, &scanned, top);
        self.nothing(&mut answer, &filter, args, total)?;
        Ok(answer)
    }

    /// Counts the records of sources that never have the field without reading them. Returns the filter for the
    /// rest.
    fn count_missing(&self, filter: &Filter, field: Option<&str>, counted: &mut Counted) -> Result<Filter, String> {
        let mut rest = filter.clone();
        let Some(field) = field.filter(|_| filter.by_time_only()) else { return Ok(rest) };
        let has = |place: &usize| self.catalog.sources().get(*place).is_some_and(|s| has_field(s, field));
        let (with, without) = filter.sources.iter().copied().partition(has);
        rest.sources = without;
        let found = page(&self.catalog, &rest, Order::File, 0, 0, None).map_err(|e| e.to_string())?;
        counted.total += found.total;
        counted.missing += found.total;
        rest.sources = with;
        Ok(rest)
    }

    fn counted(&self, filter: &Filter, counted: Counted, scanned: &Scanned, top: usize) -> Value {
        let distinct = counted.groups.len();
        let mut groups: Vec<(String, (Span, Entry))> = counted.groups.into_iter().collect();
        groups.sort_by(|a, b| b.1.0.records.cmp(&a.1.0.records).then_with(|| a.0.cmp(&b.0)));
        let shown = |(value, (span, example)): &(String, (Span, Entry))| {
            let source = usize::try_from(example.source).ok().and_then(|s| self.catalog.sources().get(s));
            let mut shown = counted_span(span);
            put(&mut shown, "value", json!(value));
            let (id, file) = (source.map(|s| s.id.as_str()), source.map(|s| s.file.as_str()));
            put(&mut shown, "example", json!({"source": id, "file": file, "line": example.line}));
            shown
        };
        let groups: Vec<Value> = groups.iter().take(top).map(shown).collect();
        let mut answer = json!({
            "total": counted.total,
            "total_is_exact": scanned.whole(),
            "missing": counted.missing,
            "distinct": if counted.beyond > 0 { json!(format!("more than {distinct}")) } else { json!(distinct) },
            "groups": groups,
            "window": window(filter),
            "searched": self.names(filter),
        });
        self.limits(&mut answer, scanned);
        if counted.beyond > 0 {
            put(&mut answer, "not_grouped", json!(counted.beyond));
        }
        answer
    }
}

#[derive(Debug, Default)]
struct Counted {
    total: u64,
    missing: u64,
    /// Records with values beyond the limit.
    beyond: u64,
    /// By value, with the first record.
    groups: HashMap<String, (Span, Entry)>,
}

impl Counted {
    /// Counts a record once for each different value.
    fn add(&mut self, entry: &Entry, mut found: Vec<&str>) {
        found.retain(|v| !v.is_empty());
        found.sort_unstable();
        found.dedup();
        if found.is_empty() {
            self.missing += 1;
        }
        for value in found {
            let value = cut(value, VALUE_MAX);
            if let Some((span, _)) = self.groups.get_mut(value) {
                span.add(entry.time);
            } else if self.groups.len() < VALUES_MAX {
                let (span, _) = self.groups.entry(value.to_owned()).or_insert((Span::default(), *entry));
                span.add(entry.time);
            } else {
                self.beyond += 1;
            }
        }
    }
}
