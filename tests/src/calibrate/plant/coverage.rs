//! Absences over what the searched sources cover, and over what they do not.

use casebook_protocol::{Entity, EntityKind, Timestamp};
use serde_json::{Value, json};

use super::searches::{Window, stated_absent};
use super::times::moved;
use super::{Plant, whole};

/// What a source of the round has of one host.
struct Covered {
    source: Value,
    host: String,
    first: Timestamp,
    last: Timestamp,
}

/// A host that a search without result says to be covered, and a text that it did not find.
fn one(p: &mut Plant) -> Option<(Covered, String)> {
    let search =
        p.choose(&p.stage.searches, |search| search.total == 0 && search.terms.iter().any(|term| whole(term)))?;
    let text = p.stage.exhibits.get(&search.domain)?.text(&search.call.id)?;
    let result: Value = serde_json::from_str(text).ok()?;
    let mut all = Vec::new();
    for source in result.get("covered")?.as_array()? {
        for host in source.get("hosts").and_then(Value::as_array).into_iter().flatten() {
            let text = |key: &str| host.get(key)?.as_str();
            let time = |key: &str| text(key)?.parse().ok();
            let name = text("host").filter(|name| name.len() > 2 && !name.contains('`'));
            if let (Some(host), Some(first), Some(last)) = (name, time("first_time"), time("last_time")) {
                all.push(Covered { source: source.clone(), host: host.to_owned(), first, last });
            }
        }
    }
    p.alone(&search.domain);
    let covered = p.choose(all, |one| one.last.as_second() - one.first.as_second() > 10)?;
    let term = p.choose(&search.terms, |term| whole(term))?.clone();
    Some((covered, term))
}

/// The finding that nothing names `term` on `host` in the window.
fn absent(p: &mut Plant, source: &Value, term: &str, host: &str, window: Window, never: &[&str]) {
    let arguments = json!({"terms": [host, term], "limit": 5});
    let result = json!({"total": 0, "total_is_exact": true, "returned": 0, "records": [],
        "window": {"from": null, "to": null}, "searched": [source.get("source")], "covered": [source],
        "hosts_of_other_sources": [], "in_no_record": never});
    let (first, second) = (p.search(&arguments, &result), p.search(&arguments, &result));
    stated_absent(p, format!("No record names `{term}` on `{host}`"), &first, window, second);
    p.draft.entities.push(Entity { kind: EntityKind::Host, value: host.to_owned() });
}

/// False: the host never shipped anything, or not at that time.
pub(crate) fn uncovered(p: &mut Plant) -> Option<()> {
    let (Covered { source, host, first, last }, term) = one(p)?;
    let far = 86_400 * (1 + i64::try_from(p.below(30)).ok()?);
    match p.below(3) {
        0 => {
            let other = format!("qx-{}", p.below(1_000_000));
            absent(p, &source, &term, &other, (None, None), &[&other]);
        }
        1 => absent(p, &source, &term, &host, (Some(moved(first, -far)?), Some(last)), &[]),
        _ => absent(p, &source, &term, &host, (Some(first), Some(moved(last, far)?)), &[]),
    }
    Some(())
}

/// True: the host has records from before the window to after it.
pub(crate) fn covered(p: &mut Plant) -> Option<()> {
    let (Covered { source, host, first, last }, term) = one(p)?;
    let half = (last.as_second() - first.as_second()) / 4;
    let window = if p.one_in(2) { (None, None) } else { (Some(moved(first, half)?), Some(moved(last, -half)?)) };
    absent(p, &source, &term, &host, window, &[]);
    Some(())
}
