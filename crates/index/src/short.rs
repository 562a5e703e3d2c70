//! Rows by texts of one or two characters, which are too short for the index of words. A text that few rows contain has
//! their numbers; a text that many rows contain has none, since a look at row after row fills a page soon.

use std::collections::{BTreeSet, HashMap};

use rusqlite::{Connection, OptionalExtension, params};

/// A text in more rows is common.
const FEW: usize = 500;

pub(crate) const CREATE: &str = "CREATE TABLE short (text TEXT PRIMARY KEY, rows TEXT) WITHOUT ROWID;";
pub(crate) const DROP: &str = "DROP TABLE IF EXISTS short;";

/// One or two characters.
type Short = (char, Option<char>);

/// The texts that a transaction touches. `None` are common ones.
#[derive(Default)]
pub(crate) struct Shorts(HashMap<Short, Option<Vec<i64>>>);

impl Shorts {
    /// Notes the row `n` for each text of one or two characters in `text`, except those with white space.
    pub(crate) fn add(&mut self, db: &Connection, n: i64, text: &str) -> Result<(), rusqlite::Error> {
        let next = text.chars().skip(1).map(Some).chain([None]);
        let pairs = text.chars().zip(next).filter(|(a, _)| !a.is_whitespace());
        let all: BTreeSet<Short> =
            pairs.flat_map(|(a, b)| [(a, None), (a, b.filter(|b| !b.is_whitespace()))]).collect();
        for short in all {
            let rows = match self.0.entry(short) {
                std::collections::hash_map::Entry::Occupied(known) => known.into_mut(),
                std::collections::hash_map::Entry::Vacant(new) => new.insert(match rows(db, &written(short))? {
                    Found::Nowhere => Some(Vec::new()),
                    Found::In(rows) => Some(serde_json::from_str(&rows).unwrap_or_default()),
                    Found::Common => None,
                }),
            };
            if let Some(few) = rows {
                few.push(n);
                if few.len() > FEW {
                    *rows = None;
                }
            }
        }
        Ok(())
    }

    pub(crate) fn save(self, db: &Connection) -> Result<(), rusqlite::Error> {
        let mut insert = db.prepare_cached("INSERT OR REPLACE INTO short (text, rows) VALUES (?1, ?2)")?;
        for (short, rows) in self.0 {
            let rows = rows.map(|rows| serde_json::Value::from(rows).to_string());
            insert.execute(params![written(short), rows])?;
        }
        Ok(())
    }
}

fn written((first, second): Short) -> String {
    std::iter::once(first).chain(second).collect()
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found {
    Nowhere,
    /// Numbers of rows, as a JSON list.
    In(String),
    Common,
}

pub(crate) fn rows(db: &Connection, text: &str) -> Result<Found, rusqlite::Error> {
    let mut query = db.prepare_cached("SELECT rows FROM short WHERE text = ?1")?;
    let found: Option<Option<String>> = query.query_row(params![text], |row| row.get(0)).optional()?;
    Ok(found.map_or(Found::Nowhere, |rows| rows.map_or(Found::Common, Found::In)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_texts_are_found_until_they_are_common() {
        let db = Connection::open_in_memory().unwrap();
        db.execute_batch(CREATE).unwrap();
        let mut n = 0;
        for transaction in 0..7_i64 {
            let mut shorts = Shorts::default();
            for _ in 0..100 {
                n += 1;
                let text = if n % 300 == 0 { "ab é\nzab" } else { "ab" };
                shorts.add(&db, n, text).unwrap();
            }
            shorts.save(&db).unwrap();
            assert_eq!(rows(&db, "ab").unwrap() == Found::Common, transaction >= 5, "{transaction}");
        }
        for text in ["é", "z", "za"] {
            assert_eq!(rows(&db, text).unwrap(), Found::In("[300,600]".into()), "{text}");
        }
        for text in ["ba", "é\n", " é", "\nz", "c"] {
            assert_eq!(rows(&db, text).unwrap(), Found::Nowhere, "{text}");
        }
    }
}
