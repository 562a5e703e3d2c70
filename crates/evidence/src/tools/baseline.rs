//! What is normal for a name: how often it acts, from where, with what and at which hours, before a moment and from then
//! on.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::EvidenceTools;
use super::args::Args;
use super::find::{CHEAPER, counted_span, put};
use crate::coverage::Span;
use crate::facet::{Facet, Facets};
use crate::profile::cut;
use crate::query::{Filter, scan};
use crate::readings::Terms;

pub(super) const BASELINE: &[&str] = &["entity", "before", "sources"];

/// Further records are not read. The answer then says that it is not exact.
const ROWS_MAX: u64 = 100_000;
/// Different values of a facet that are counted, and shown.
const VALUES_MAX: usize = 2_000;
const SHOWN: usize = 8;
const VALUE_MAX: usize = 200;
const HOUR: i64 = 3_600_000_000_000;

/// What is counted. A name can be one of the first [`ROLES`] in a record.
const COUNTED: [(Facet, &str); 10] = [
    (Facet::User, "user"),
    (Facet::SrcIp, "source_ip"),
    (Facet::DstIp, "destination_ip"),
    (Facet::Host, "host"),
    (Facet::Process, "process"),
    (Facet::UserAgent, "user_agent"),
    (Facet::DomainName, "domain_name"),
    (Facet::Action, "action"),
    (Facet::HttpStatus, "http_status"),
    (Facet::Outcome, "outcome"),
];
const ROLES: usize = 7;

/// A time before or after the moment.
#[derive(Debug, Default)]
struct Part {
    all: Span,
    hours: BTreeMap<i64, u64>,
    values: BTreeMap<&'static str, BTreeMap<String, Span>>,
}

impl Part {
    fn add(&mut self, facets: &Facets, time: Option<i64>, role: Facet) {
        self.all.add(time);
        if let Some(time) = time {
            *self.hours.entry(time.div_euclid(HOUR).rem_euclid(24)).or_default() += 1;
        }
        for (facet, name) in COUNTED.iter().filter(|(facet, _)| *facet != role) {
            let Some(value) = facets.get(*facet) else { continue };
            let counted = self.values.entry(name).or_default();
            let value = cut(value, VALUE_MAX);
            if counted.contains_key(value) || counted.len() < VALUES_MAX {
                counted.entry(value.to_owned()).or_default().add(time);
            }
        }
    }

    fn shown(&self) -> Value {
        let mut shown = counted_span(&self.all);
        let by = self.values.iter().map(|(name, counted)| {
            let mut all: Vec<(&String, &Span)> = counted.iter().collect();
            all.sort_by(|a, b| b.1.records.cmp(&a.1.records).then_with(|| a.0.cmp(b.0)));
            let each = all.iter().take(SHOWN).map(|(value, seen)| {
                let mut one = counted_span(seen);
                put(&mut one, "value", json!(value));
                one
            });
            let each: Vec<Value> = each.collect();
            ((*name).to_owned(), json!({"distinct": counted.len(), "values": each}))
        });
        put(&mut shown, "by", Value::Object(by.collect()));
        let hours: BTreeMap<String, u64> = self.hours.iter().map(|(hour, n)| (format!("{hour:02}"), *n)).collect();
        put(&mut shown, "hours_utc", json!(hours));
        shown
    }
}

impl EvidenceTools {
    pub(super) fn baseline(&self, args: &Args) -> Result<Value, String> {
        let entity = args.required("entity")?;
        let before = args.time("before")?;
        let sources = self.sources(args)?;
        let filter = Filter { sources, terms: Terms::new(&[entity], false), ..Filter::default() };
        let mut roles: BTreeMap<&str, u64> = BTreeMap::new();
        let (mut earlier, mut later, mut rows) = (Part::default(), Part::default(), 0);
        let scanned = scan(&self.catalog, &filter, None, &mut |hit| {
            rows += 1;
            if rows > ROWS_MAX {
                return;
            }
            let list = hit.parsed();
            let facets = Facets::read(&list.into_iter().collect(), &String::from_utf8_lossy(hit.raw));
            let is = |facet: &Facet| facets.get(*facet).is_some_and(|value| value.eq_ignore_ascii_case(entity));
            let Some((role, name)) = COUNTED.iter().take(ROLES).find(|(facet, _)| is(facet)) else { return };
            *roles.entry(name).or_default() += 1;
            let from_then_on = before.is_some_and(|before| hit.entry.time.is_none_or(|time| time >= before));
            if from_then_on { &mut later } else { &mut earlier }.add(&facets, hit.entry.time, *role);
        });
        let whole = scanned.map_err(|e| e.to_string())?.whole() && rows <= ROWS_MAX;
        let mut answer = json!({
            "entity": entity,
            "total": earlier.all.records + later.all.records,
            "total_is_exact": whole,
            "as": roles,
            "before": earlier.shown(),
            "searched": self.names(&filter),
        });
        if earlier.all.records + later.all.records == 0 {
            self.found_nothing(&mut answer, &filter, &[])?;
        }
        if before.is_some() {
            let fresh = later.values.iter().map(|(name, counted)| {
                let known = earlier.values.get(name);
                let new = counted.keys().filter(|value| known.is_none_or(|known| !known.contains_key(*value)));
                ((*name).to_owned(), json!(new.take(SHOWN).collect::<Vec<_>>()))
            });
            let fresh: serde_json::Map<String, Value> = fresh.filter(|(_, new)| *new != json!([])).collect();
            put(&mut answer, "from_then_on", later.shown());
            put(&mut answer, "new_from_then_on", Value::Object(fresh));
        }
        if !whole {
            put(&mut answer, "stopped", json!(CHEAPER));
        }
        Ok(answer)
    }
}
