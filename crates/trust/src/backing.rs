//! What backs a report beyond its JSON, read from the recorded results of tool calls: the cited records whole, and
//! what each search looked for and found.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use casebook_protocol::{CallId, CallStatus, Citation, Report, ToolCall, one_line};
use serde_json::Value;

use crate::Exhibits;

/// The tools that search records.
const SEARCHES: [&str; 2] = ["search", "count_by"];
/// The names of a longer search come from a list.
const LONG: usize = 12;
/// Names that a sentence lists; of others only the number is given.
const LISTED: usize = 6;

/// Without results it is empty, and a report is shown without records and searches.
#[derive(Debug, Clone, Default)]
pub struct Backing {
    exhibits: Exhibits,
    searches: BTreeMap<CallId, Search>,
    cited: BTreeSet<CallId>,
    all: bool,
}

impl Backing {
    /// For the cited records and every search. Empty until [`add`](Self::add) is called for each call that it needs.
    #[must_use]
    pub fn of(report: &Report) -> Self {
        Self { all: true, ..Self::cited(report, |_| true) }
    }

    /// For the searches that findings cite.
    #[must_use]
    pub fn of_numbers(report: &Report) -> Self {
        Self::cited(report, |citation| !matches!(citation, Citation::Literal { .. }))
    }

    fn cited(report: &Report, of: impl Fn(&Citation) -> bool) -> Self {
        let citations = report.findings.iter().flat_map(|found| &found.citations).map(|cited| &cited.citation);
        Self { cited: citations.filter(|one| of(one)).map(|one| one.call().clone()).collect(), ..Self::default() }
    }

    pub fn needs(&self, call: &ToolCall) -> bool {
        let searched = self.all && SEARCHES.contains(&call.tool.as_str());
        call.status == CallStatus::Answered && (searched || self.cited.contains(&call.id))
    }

    /// Bytes that do not match the hash in the call are not used for records.
    pub fn add(&mut self, call: &ToolCall, bytes: &[u8]) {
        let search = Search::read(call, bytes);
        self.searches.extend(search.map(|search| (call.id.clone(), search)));
        if self.cited.contains(&call.id) {
            self.exhibits.add(call.clone(), false, bytes);
        }
    }

    /// What a quotation is from: the record, or else the value or the line that it points to.
    pub fn record(&self, citation: &Citation) -> Option<Value> {
        self.exhibits.whole(citation)
    }

    /// The search whose number a citation gives.
    pub fn search(&self, citation: &Citation) -> Option<&Search> {
        match citation {
            Citation::Literal { .. } => None,
            _ => self.searches.get(citation.call()),
        }
    }

    /// The names that no search found, in order.
    pub fn unfound(&self) -> Vec<Unfound<'_>> {
        let mut all: BTreeMap<&str, (u64, BTreeSet<&str>, usize)> = BTreeMap::new();
        for search in self.searches.values().filter(|search| !search.narrowed) {
            for (name, hits) in search.names.iter().filter_map(|(name, hits)| Some((name, (*hits)?))) {
                let (found, sources, with) = all.entry(name).or_insert((0, BTreeSet::new(), usize::MAX));
                *found += hits;
                sources.extend(search.sources.iter().map(String::as_str));
                *with = search.names.len().min(*with);
            }
        }
        let unfound = all.into_iter().filter(|(_, (found, ..))| *found == 0);
        unfound
            .map(|(name, (_, sources, with))| Unfound { name, sources: sources.len(), listed: with > LONG })
            .collect()
    }
}

/// A name that no search found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unfound<'s> {
    pub name: &'s str,
    /// How many sources were searched for it.
    pub sources: usize,
    /// It was searched only with many others, so that it comes from a list and not from the alert.
    pub listed: bool,
}

/// A search as it was recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Search {
    /// What was looked for, and the records that have it; none if only their number together is known.
    pub names: Vec<(String, Option<u64>)>,
    /// A record counts only if it has all names.
    pub together: bool,
    pub sources: Vec<String>,
    pub total: u64,
    /// Found records that this call did not return.
    pub unread: u64,
    /// A period or other conditions left out records.
    pub narrowed: bool,
}

impl Search {
    /// None if the call is not a search of records, or its result cannot be read.
    pub fn read(call: &ToolCall, bytes: &[u8]) -> Option<Self> {
        if !SEARCHES.contains(&call.tool.as_str()) || call.status == CallStatus::Failed {
            return None;
        }
        let arguments: Value = serde_json::from_str(&call.arguments).ok()?;
        let result: Value = serde_json::from_slice(bytes).ok()?;
        let texts = |value: Option<&Value>| -> Vec<String> {
            value.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let number = |value: &Value, key: &str| value.get(key).and_then(Value::as_u64);
        let total = number(&result, "total")?;
        let terms = texts(arguments.get("terms"));
        let by_term = result.get("by_term");
        let any = arguments.get("mode").and_then(Value::as_str) == Some("any");
        let hits = |name: &str| match by_term {
            Some(counts) => Some(number(counts, name).unwrap_or(0)),
            None => (terms.len() == 1 || any && total == 0).then_some(total),
        };
        let names = terms.iter().map(|name| (name.clone(), hits(name))).collect();
        let given = |key: &str| arguments.get(key).is_some_and(|value| !value.is_null());
        let returned = number(&result, "returned").unwrap_or(total);
        Some(Self {
            names,
            together: terms.len() > 1 && !any,
            sources: texts(result.get("searched")),
            total,
            unread: total.saturating_sub(returned + number(&arguments, "offset").unwrap_or(0)),
            narrowed: ["where", "from", "to"].into_iter().any(given),
        })
    }
}

/// `searched 2 names (`a`, `b`) in 3 sources: 602, 0 hits; not looked at: 482`.
impl fmt::Display for Search {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let many = |n: usize, thing: &str| if n == 1 { format!("1 {thing}") } else { format!("{n} {thing}s") };
        let sources = many(self.sources.len(), "source");
        let short: Vec<String> =
            self.names.iter().map(|(name, _)| format!("`{}`", one_line(&name.replace('`', "'"), 60))).collect();
        let listed = if short.len() <= LISTED { format!(" ({})", short.join(", ")) } else { String::new() };
        match self.names.len() {
            0 => write!(f, "searched {sources}: ")?,
            n => write!(f, "searched {}{listed} in {sources}: ", many(n, "name"))?,
        }
        let each: Option<Vec<u64>> = self.names.iter().map(|(_, hits)| *hits).collect();
        match each.filter(|each| !each.is_empty()) {
            None if self.together => write!(f, "{} for all of them together", many(hits_of(self.total), "hit"))?,
            None => write!(f, "{}", many(hits_of(self.total), "hit"))?,
            Some(each) if each.len() <= LISTED => {
                let text: Vec<String> = each.iter().map(u64::to_string).collect();
                write!(f, "{} hit{}", text.join(", "), if each == [1] { "" } else { "s" })?;
            }
            Some(each) => {
                let none = each.iter().filter(|hits| **hits == 0).count();
                write!(f, "{}, {} without a hit", many(hits_of(self.total), "hit"), many(none, "name"))?;
            }
        }
        if self.unread > 0 {
            write!(f, "; not looked at: {}", self.unread)?;
        }
        Ok(())
    }
}

fn hits_of(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests;
