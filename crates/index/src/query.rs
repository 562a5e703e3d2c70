//! Pages of rows, by filters and order.

use std::collections::BTreeMap;
use std::time::Duration;

use casebook_protocol::{Severity, Timestamp, Verdict};
use rusqlite::types::Value;
use rusqlite::{Connection, params, params_from_iter};
use serde::Serialize;

use crate::database::{self, rank};
use crate::figures::Figures;
use crate::row::Row;
use crate::short::{self, Found};

/// The shortest text that the search's index finds.
const TRIGRAM: usize = 3;
/// Further words of a search are not looked for.
const WORDS: usize = 16;
/// A word in so many rows is common.
const COMMON: u32 = 2_000;
/// An open investigation is quiet if nothing was recorded for this time.
pub const QUIET: Duration = Duration::from_secs(600);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    Open,
    Closed,
    /// Open, and not investigated, or nothing was recorded for ten minutes.
    Quiet,
    /// The log cannot be relied on.
    Broken,
}

impl Status {
    pub const ALL: [Self; 4] = [Self::Open, Self::Closed, Self::Quiet, Self::Broken];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Closed => "closed",
            Self::Quiet => "quiet",
            Self::Broken => "broken",
        }
    }
}

/// Each order ends with the order of opening, the newest first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Sort {
    #[default]
    Newest,
    /// By the last event.
    Latest,
    /// Open ones first, then by severity.
    Urgent,
    Cost,
}

impl Sort {
    pub const ALL: [Self; 4] = [Self::Newest, Self::Latest, Self::Urgent, Self::Cost];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Newest => "newest",
            Self::Latest => "latest",
            Self::Urgent => "urgent",
            Self::Cost => "cost",
        }
    }

    /// Columns of integers, all in descending order.
    const fn columns(self) -> &'static [&'static str] {
        match self {
            Self::Newest => &["opened", "n"],
            Self::Latest => &["last", "n"],
            Self::Urgent => &["open", "severity", "opened", "n"],
            Self::Cost => &["cost", "n"],
        }
    }
}

/// Which rows, and how many. An empty list of values means any.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Wanted {
    pub statuses: Vec<Status>,
    pub severities: Vec<Severity>,
    pub verdicts: Vec<Verdict>,
    /// A part of where the evidence is.
    pub source: Option<String>,
    /// Words that the title, the ids or the names in the alert contain.
    pub search: Option<String>,
    pub opened_since: Option<Timestamp>,
    pub opened_before: Option<Timestamp>,
    pub cost_at_least: Option<u64>,
    pub sort: Sort,
    pub limit: u32,
    /// What [`Page::next`] gave.
    pub cursor: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Page {
    pub items: Vec<Row>,
    /// The cursor of the next page, if there is one.
    pub next: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    pub all: u64,
    pub open: u64,
    pub closed: u64,
    pub broken: u64,
}

#[derive(Default)]
struct Clauses {
    texts: Vec<String>,
    values: Vec<Value>,
}

impl Clauses {
    fn add(&mut self, text: impl Into<String>, values: impl IntoIterator<Item = Value>) {
        self.texts.push(text.into());
        self.values.extend(values);
    }

    fn one_of(&mut self, column: &str, values: Vec<Value>) {
        if !values.is_empty() {
            self.add(format!("{column} IN ({})", marks(values.len())), values);
        }
    }

    fn of(wanted: &Wanted, now: Timestamp) -> Self {
        let mut all = Self::default();
        let quiet = now.as_microsecond().saturating_sub(i64::try_from(QUIET.as_micros()).unwrap_or(i64::MAX));
        let status = |status: &Status| match status {
            Status::Open => "open = 1".to_owned(),
            Status::Closed => "(open = 0 AND NOT trouble)".to_owned(),
            Status::Quiet => format!("(open = 1 AND (idle OR last < {quiet}))"),
            Status::Broken => "trouble".to_owned(),
        };
        if !wanted.statuses.is_empty() {
            let any: Vec<String> = wanted.statuses.iter().map(status).collect();
            all.add(format!("({})", any.join(" OR ")), []);
        }
        all.one_of("severity", wanted.severities.iter().map(|one| rank(*one).into()).collect());
        all.one_of("verdict", wanted.verdicts.iter().map(|one| one.name().to_owned().into()).collect());
        if let Some(source) = &wanted.source {
            all.add("instr(evidence, ?) > 0", [source.clone().into()]);
        }
        let (since, before) = (wanted.opened_since, wanted.opened_before);
        since.into_iter().for_each(|at| all.add("opened >= ?", [at.as_microsecond().into()]));
        before.into_iter().for_each(|at| all.add("opened < ?", [at.as_microsecond().into()]));
        if let Some(cost) = wanted.cost_at_least {
            all.add("cost >= ?", [database::signed(cost).into()]);
        }
        all
    }

    /// Rows of a rare word are found by the word. Of a common one, row after row is looked at, since a page is full soon.
    fn word(&mut self, db: &Connection, word: &str) -> Result<(), rusqlite::Error> {
        // A quoted word ends at a zero character.
        if word.chars().count() >= TRIGRAM && !word.contains('\0') {
            let quoted = format!("\"{}\"", word.replace('"', "\"\""));
            let count = "SELECT count(*) FROM (SELECT 1 FROM words WHERE words MATCH ?1 LIMIT ?2)";
            let found: u32 = db.prepare_cached(count)?.query_row(params![quoted, COMMON], |row| row.get(0))?;
            if found < COMMON {
                self.add("n IN (SELECT rowid FROM words WHERE words MATCH ?)", [quoted.into()]);
                return Ok(());
            }
        }
        let word = word.to_lowercase();
        if word.chars().count() < TRIGRAM {
            match short::rows(db, &word)? {
                Found::Nowhere => self.add("0", []),
                Found::In(rows) => self.add("n IN (SELECT value FROM json_each(?))", [rows.into()]),
                Found::Common => {}
            }
        }
        self.add("instr(text, ?) > 0", [word.into()]);
        Ok(())
    }

    fn text(&self) -> String {
        if self.texts.is_empty() { String::new() } else { format!("WHERE {}", self.texts.join(" AND ")) }
    }
}

fn marks(number: usize) -> String {
    vec!["?"; number].join(", ")
}

/// The places in a cursor; `None` if it was not made for this order.
fn places(cursor: &str, sort: Sort) -> Option<Vec<Value>> {
    let (name, numbers) = cursor.split_once(':')?;
    let numbers: Option<Vec<Value>> = numbers.split(',').map(|n| n.parse::<i64>().ok().map(Value::from)).collect();
    numbers.filter(|numbers| name == sort.name() && numbers.len() == sort.columns().len())
}

/// A page, or `None` if the cursor is not one of this order.
pub(crate) fn page(db: &Connection, wanted: &Wanted, now: Timestamp) -> Result<Option<Page>, rusqlite::Error> {
    let columns = wanted.sort.columns();
    let mut clauses = Clauses::of(wanted, now);
    for word in wanted.search.iter().flat_map(|text| text.split_whitespace()).take(WORDS) {
        clauses.word(db, word)?;
    }
    if let Some(cursor) = &wanted.cursor {
        let Some(places) = places(cursor, wanted.sort) else { return Ok(None) };
        clauses.add(format!("({}) < ({})", columns.join(", "), marks(columns.len())), places);
    }
    let order: Vec<String> = columns.iter().map(|column| format!("{column} DESC")).collect();
    let limit = wanted.limit.max(1);
    let text = format!(
        "SELECT row, {} FROM investigations JOIN bodies USING (n) {} ORDER BY {} LIMIT {}",
        columns.join(", "),
        clauses.text(),
        order.join(", "),
        u64::from(limit) + 1
    );
    let mut query = db.prepare_cached(&text)?;
    let mut rows = query.query(params_from_iter(clauses.values))?;
    let mut page = Page { items: Vec::new(), next: None };
    let mut last = String::new();
    while let Some(row) = rows.next()? {
        if page.items.len() == usize::try_from(limit).unwrap_or(usize::MAX) {
            page.next = Some(last);
            break;
        }
        page.items.push(database::row(row.get_ref(0)?.as_str()?)?);
        let place = (1..=columns.len()).map(|column| row.get::<_, i64>(column).map(|number| number.to_string()));
        last = format!("{}:{}", wanted.sort.name(), place.collect::<Result<Vec<_>, _>>()?.join(","));
    }
    Ok(Some(page))
}

pub(crate) fn counts(db: &Connection) -> Result<Counts, rusqlite::Error> {
    let text = "SELECT count(*), coalesce(sum(open), 0), coalesce(sum(trouble), 0) FROM investigations";
    db.query_row(text, [], |row| {
        let number = |n: i64| n.unsigned_abs();
        let (all, open, broken) = (number(row.get(0)?), number(row.get(1)?), number(row.get(2)?));
        Ok(Counts { all, open, broken, closed: all.saturating_sub(open + broken) })
    })
}

pub(crate) fn verdicts(db: &Connection) -> Result<BTreeMap<String, u64>, rusqlite::Error> {
    let text = "SELECT verdict, count(*) FROM investigations WHERE verdict IS NOT NULL AND open = 0 GROUP BY verdict";
    let mut query = db.prepare_cached(text)?;
    query.query_map([], |row| Ok((row.get(0)?, row.get::<_, i64>(1)?.unsigned_abs())))?.collect()
}

/// The sum over the investigations that were opened in a period.
pub(crate) fn figures(
    db: &Connection,
    since: Option<Timestamp>,
    before: Option<Timestamp>,
) -> Result<Figures, rusqlite::Error> {
    let period = Wanted { opened_since: since, opened_before: before, ..Wanted::default() };
    let clauses = Clauses::of(&period, Timestamp::UNIX_EPOCH);
    let mut query =
        db.prepare_cached(&format!("SELECT rest FROM investigations JOIN bodies USING (n) {}", clauses.text()))?;
    let mut rows = query.query(params_from_iter(clauses.values))?;
    let mut sum = Figures::default();
    while let Some(row) = rows.next()? {
        sum.add(&database::rest(row.get_ref(0)?.as_str()?)?.figures());
    }
    Ok(sum)
}
