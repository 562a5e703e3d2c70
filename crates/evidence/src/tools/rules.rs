//! What the Sigma rules found during loading.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::EvidenceTools;
use super::args::Args;
use super::find::{put, stamp};
use super::shown::{Wanted, records};
use crate::catalog::kept;
use crate::index::hits::{StoredHit, Total, stored, totals};
use crate::index::{Entry, blocks};
use crate::rules::{Level, Rule};

pub(super) const RULE_HITS: &[&str] = &["rule", "level", "entity", "around", "within_seconds", "sources", "limit"];

const SECOND: i64 = 1_000_000_000;
/// Records that one call reads to find an entity.
const READ_MAX: usize = 5_000;

/// Hits of a rule that come before those of other rules.
const FEW: usize = 4;

/// A hit that the call asks for.
struct Found<'t> {
    total: &'t Total,
    hit: StoredHit,
}

impl Found<'_> {
    /// The numbers of its records: the first and last of each rule that took part, and the last of all.
    fn numbers(&self) -> Vec<i64> {
        let (record, _, group) = &self.hit;
        let parts = group.iter().flat_map(|group| group.parts.iter().flat_map(|part| [part.first, part.last]));
        let first = group.iter().map(|group| group.first.0);
        let mut all: Vec<i64> = first.chain(parts).chain([*record]).collect();
        all.sort_unstable();
        all.dedup();
        all
    }
}

impl EvidenceTools {
    pub(super) fn rule_hits(&self, args: &Args) -> Result<Value, String> {
        let sources = self.sources(args)?;
        let (rule, entity) = (args.text("rule")?, args.text("entity")?.map(str::to_lowercase));
        let level = args.word("level", &Level::ALL)?;
        let within = args.seconds("within_seconds")?.unwrap_or(3600 * SECOND);
        let window = args.time("around")?.map(|at| (at.saturating_sub(within), at.saturating_add(within)));
        let limit = usize::try_from(args.number("limit", 1, 200)?.unwrap_or(20)).unwrap_or(20);
        let all = self.catalog.with_index(|db| Ok(totals(db)?)).map_err(|e| e.to_string())?;
        let mine = |total: &&Total| usize::try_from(total.source).is_ok_and(|source| sources.contains(&source));
        let wanted = |total: &&Total| {
            let named =
                |name: &str| total.rule.id.eq_ignore_ascii_case(name) || total.rule.title.eq_ignore_ascii_case(name);
            mine(total) && rule.is_none_or(named) && level.is_none_or(|level| total.rule.level >= level)
        };
        let totals: Vec<&Total> = all.iter().filter(wanted).collect();
        if let (Some(name), true) = (rule, totals.is_empty()) {
            let mut known: Vec<&str> = all.iter().filter(mine).map(|total| total.rule.title.as_str()).collect();
            known.dedup();
            if !known.iter().any(|title| title.eq_ignore_ascii_case(name)) {
                let known = if known.is_empty() { "none".to_owned() } else { known.join("; ") };
                return args.fail(&format!("no hits of a rule {name:?}; rules with hits: {known}"));
            }
        }
        let (mut found, whole) = self.found(&totals, window, entity.as_deref())?;
        let total = if whole { totals.iter().map(|t| t.hits).sum() } else { found.len() as u64 };
        let totals: Vec<&Total> =
            totals.into_iter().filter(|total| found.iter().any(|f| std::ptr::eq(f.total, *total))).collect();
        found = spread(found, args.time("around")?);
        found.truncate(limit);
        let (places, records) = self.records_of(&found)?;
        let hits: Vec<Value> = found.iter().map(|f| shown(f, &places)).collect();
        let names: Vec<&str> =
            sources.iter().filter_map(|p| self.catalog.sources().get(*p)).map(|s| s.id.as_str()).collect();
        let mut answer = json!({
            "total": total,
            "total_is_exact": whole || totals.iter().all(|t| t.hits <= crate::rules::hits::KEPT_MAX as u64),
            "returned": hits.len(),
            "window": { "from": window.map(|(from, _)| stamp(from)), "to": window.map(|(_, to)| stamp(to)) },
            "searched": names,
            "rules": rules(&totals),
            "hits": hits,
            "records": records,
        });
        if self.catalog.evaluated().is_none() {
            put(&mut answer, "note", json!("the evidence was loaded without rules"));
        }
        Ok(answer)
    }

    /// The stored hits in the window that concern the entity; and whether these are all.
    fn found<'t>(
        &self,
        totals: &[&'t Total],
        window: Option<(i64, i64)>,
        entity: Option<&str>,
    ) -> Result<(Vec<Found<'t>>, bool), String> {
        let mut found = Vec::new();
        let (mut read, mut all) = (0, window.is_none() && entity.is_none());
        for total in totals {
            let hits = self.catalog.with_index(|db| Ok(stored(db, total.number, total.source)?));
            for hit in hits.map_err(|e| e.to_string())? {
                // A correlation is about the time from its first record to its last.
                let first = hit.2.as_ref().map_or(hit.1, |group| Some(group.first.1));
                let last = hit.1;
                let inside = |(from, to): (i64, i64)| last.is_some_and(|t| t >= from) && first.is_some_and(|t| t <= to);
                let hit = Found { total, hit };
                let whole = self.whole(&hit)?;
                all &= whole;
                if whole && window.is_none_or(inside) && self.concerns(&hit, entity, &mut read)? {
                    found.push(hit);
                }
            }
        }
        Ok((found, all))
    }

    /// False for a correlation with a record of a source that these tools hide.
    fn whole(&self, found: &Found<'_>) -> Result<bool, String> {
        let numbers = if found.hit.2.is_some() { found.numbers() } else { Vec::new() };
        for number in numbers {
            if self.entry_of(number)?.is_none() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn concerns(&self, found: &Found<'_>, entity: Option<&str>, read: &mut usize) -> Result<bool, String> {
        let Some(entity) = entity else { return Ok(true) };
        if let Some(group) = &found.hit.2
            && group.by.iter().any(|(_, value)| value.to_lowercase() == entity)
        {
            return Ok(true);
        }
        for number in found.numbers() {
            *read += 1;
            if *read > READ_MAX {
                return Err(format!(
                    "rule_hits: more than {READ_MAX} hits to look at; give `rule`, `level` or `around`"
                ));
            }
            let Some(entry) = self.entry_of(number)? else { continue };
            let bytes = self.catalog.bytes(&entry, 0, kept(&entry)).map_err(|e| e.to_string())?;
            if String::from_utf8_lossy(&bytes).to_lowercase().contains(entity) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// None if the record is of a source that these tools hide.
    fn entry_of(&self, number: i64) -> Result<Option<Entry>, String> {
        let entry = self.catalog.with_index(|db| Ok(blocks::entry(db, number)?)).map_err(|e| e.to_string())?;
        Ok(entry.filter(|entry| usize::try_from(entry.source).is_ok_and(|source| self.visible.contains(&source))))
    }

    /// The records of the hits, and the place of each in the list, by number.
    fn records_of(&self, found: &[Found<'_>]) -> Result<(BTreeMap<i64, usize>, Vec<Value>), String> {
        let mut numbers: Vec<i64> = found.iter().flat_map(Found::numbers).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let mut entries = Vec::new();
        for number in numbers {
            entries.extend(self.entry_of(number)?);
        }
        let (records, _) = records(&self.catalog, &entries, &Wanted::All).map_err(|e| e.to_string())?;
        let places = entries.iter().take(records.len()).enumerate().map(|(place, entry)| (entry.id, place));
        Ok((places.collect(), records))
    }
}

/// A few hits of each rule come before the many of one: the graver rules first, and of one rule the hits nearest the
/// moment.
fn spread(mut found: Vec<Found<'_>>, around: Option<i64>) -> Vec<Found<'_>> {
    let apart = |at: i64| around.map_or(at, |around| at.saturating_sub(around).saturating_abs());
    found.sort_by_key(|f| (f.total.number, f.hit.1.map_or(i64::MAX, apart), f.hit.0));
    let mut seen: BTreeMap<i64, usize> = BTreeMap::new();
    let placed = found.into_iter().map(|f| {
        let count = seen.entry(f.total.number).or_default();
        *count += 1;
        ((*count - 1) / FEW, f)
    });
    let mut placed: Vec<(usize, Found<'_>)> = placed.collect();
    placed.sort_by_key(|(turn, f)| (*turn, std::cmp::Reverse(f.total.rule.level), f.hit.1, f.hit.0));
    placed.into_iter().map(|(_, f)| f).collect()
}

fn about(rule: &Rule) -> Value {
    let mut about = json!({
        "rule": rule.id,
        "title": rule.title,
        "level": rule.level,
        "bearing": rule.judgement.bearing,
        "strength": rule.judgement.strength,
        "origin": rule.origin,
        "tags": rule.tags,
        "falsepositives": rule.falsepositives,
    });
    let more = [
        ("technique", json!(rule.technique())),
        ("look_next", json!(rule.judgement.look_next)),
        ("correlation", json!(rule.correlation)),
        ("author", json!(rule.author)),
        ("references", json!(rule.references)),
    ];
    for (key, value) in more.into_iter().filter(|(_, value)| !value.is_null() && *value != json!([])) {
        put(&mut about, key, value);
    }
    about
}

/// Each rule with all its hits in the searched sources.
fn rules(totals: &[&Total]) -> Vec<Value> {
    let mut by_rule: BTreeMap<i64, Vec<&Total>> = BTreeMap::new();
    for total in totals {
        by_rule.entry(total.number).or_default().push(total);
    }
    let one = |all: &Vec<&Total>| {
        let mut one = about(&all.first()?.rule);
        put(&mut one, "hits", json!(all.iter().map(|t| t.hits).sum::<u64>()));
        put(&mut one, "first_time", json!(all.iter().filter_map(|t| t.first).min().map(stamp)));
        put(&mut one, "last_time", json!(all.iter().filter_map(|t| t.last).max().map(stamp)));
        Some(one)
    };
    by_rule.values().filter_map(one).collect()
}

fn shown(found: &Found<'_>, places: &BTreeMap<i64, usize>) -> Value {
    let (record, time, group) = &found.hit;
    let rule = &found.total.rule;
    let mut shown = json!({
        "rule": rule.id,
        "title": rule.title,
        "level": rule.level,
        "time": time.map(stamp),
        "record": places.get(record),
    });
    if let Some(group) = group {
        let by: BTreeMap<&str, &str> = group.by.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let parts: Vec<Value> = group
            .parts
            .iter()
            .map(|p| json!({"rule": p.rule, "title": p.title, "count": p.count, "count_is_exact": true, "first": places.get(&p.first), "last": places.get(&p.last)}))
            .collect();
        put(&mut shown, "count", json!(group.count));
        put(&mut shown, "count_is_exact", json!(true));
        put(&mut shown, "by", json!(by));
        put(&mut shown, "first_time", json!(stamp(group.first.1)));
        put(&mut shown, "first", json!(places.get(&group.first.0)));
        put(&mut shown, "parts", json!(parts));
    }
    shown
}
