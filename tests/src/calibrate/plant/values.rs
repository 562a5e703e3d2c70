//! Changed values: addresses, counts, users, hashes, names, hosts; and true ones in other notations.

use std::net::{IpAddr, Ipv6Addr};

use casebook_protocol::{Entity, EntityKind};
use rand::Rng;
use serde_json::{Value, json};

use super::{Plant, names, searches, whole, with};
use crate::calibrate::stage::{Base, Rec};

fn entities(base: &Base, kind: EntityKind) -> impl Iterator<Item = &str> {
    base.found.finding.draft.entities.iter().filter(move |entity| entity.kind == kind).map(|e| e.value.as_str())
}

/// An entity of the finding that its claim names.
fn named(p: &mut Plant, kind: EntityKind) -> Option<String> {
    let old = p.choose(entities(p.base, kind), |_| true)?;
    p.draft.claim.contains(&format!("`{old}`")).then(|| old.to_owned())
}

/// An entity from anywhere in the round.
fn another(p: &mut Plant, kind: EntityKind) -> Option<String> {
    let all = p.stage.bases.iter().flat_map(|base| entities(base, kind));
    p.choose(all, |value| !value.contains('`')).map(str::to_owned)
}

fn changed_digit(p: &mut Plant, text: &str) -> Option<String> {
    let (place, digit) = p.choose(text.char_indices(), |(_, c)| c.is_ascii_digit())?;
    let new = char::from_digit((digit.to_digit(10)? + p.dice.random_range(1..9)) % 10, 10)?;
    Some(text.char_indices().map(|(at, c)| if at == place { new } else { c }).collect())
}

/// Another IP address: a similar one, a longer or shorter one, or another one of the case.
pub(crate) fn address(p: &mut Plant) -> Option<()> {
    let old = p.choose(p.names(), |name| name.parse::<IpAddr>().is_ok())?;
    let new = match p.below(4) {
        0 => another(p, EntityKind::Address)?,
        1 => changed_digit(p, &old)?,
        2 => format!("{old}{}", p.below(10)),
        _ => old.chars().skip(1).collect(),
    };
    // Part of an address occurs in the record as text, but is another address.
    let piece = old.ends_with(&new) && !says_address(p.base, &new);
    let address: IpAddr = new.parse().ok()?;
    if !(piece || p.absent(&new)) || new == old {
        return None;
    }
    let bare = p.one_in(2);
    if bare && address.is_ipv4() && p.one_in(3) {
        let entities = p.draft.entities.clone();
        let port = p.dice.random_range(1..=65_000);
        p.rename(&old, &format!("{new}:{port}"), true);
        p.draft.entities = entities;
    } else {
        p.rename(&old, &new, bare);
    }
    Some(())
}

/// Whether a cited record contains exactly this address.
fn says_address(base: &Base, address: &str) -> bool {
    let part = |c: char| c.is_ascii_hexdigit() || matches!(c, '.' | ':');
    let says = |text: &str| text.split(|c: char| !part(c)).any(|word| word.split(':').any(|word| word == address));
    base.records.iter().any(|record| says(&record.value.to_string()))
}

/// Another number: in a count that code can repeat, or in the words.
pub(crate) fn count(p: &mut Plant) -> Option<()> {
    if p.one_in(2) {
        return searches::changed_count(p);
    }
    let number = if p.one_in(3) {
        // Part of a date, an address or a longer number is another number.
        let raw: String = p.record()?.raw.chars().take(400).collect();
        let pieces = raw.split(|c: char| !c.is_ascii_digit());
        p.choose(pieces, |piece| (2..=4).contains(&piece.len()))?.trim_start_matches('0').to_owned()
    } else {
        p.dice.random_range(3..9_003).to_string()
    };
    if number.is_empty() || p.base.records.iter().any(|record| says_number(&record.value, &number)) {
        return None;
    }
    let words = p.pick(&["N times: ", "In N attempts: ", "N records: "])?.replace('N', &number);
    p.say(&words);
    Some(())
}

/// Whether the number occurs by itself: as a number, or in a text outside dates, times, addresses and names.
fn says_number(value: &Value, number: &str) -> bool {
    match value {
        Value::Number(n) => n.to_string() == number,
        Value::Array(all) => all.iter().any(|v| says_number(v, number)),
        Value::Object(map) => map.values().any(|v| says_number(v, number)),
        Value::String(text) => text
            .split(|c: char| !(c.is_alphanumeric() || matches!(c, '.' | '-' | ':' | '/' | '+' | '_')))
            .flat_map(|w| [w, w.rsplit([':', '/']).next().unwrap_or(w), w.split(':').next().unwrap_or(w)])
            .any(|w| {
                w.trim_matches(|c: char| matches!(c, '.' | ':' | '-' | '/')).trim_start_matches('0') == number
                    || w.trim_end_matches(char::is_alphabetic) == number
                    || w.trim_start_matches(|c: char| !c.is_ascii_digit()) == number
            }),
        Value::Bool(_) | Value::Null => false,
    }
}

/// Another account: one of the case, a common one, or part of the name.
pub(crate) fn user(p: &mut Plant) -> Option<()> {
    let usual = ["root", "admin", "SYSTEM", "guest", "svc-backup", "administrator", "nobody", "postgres"];
    let old = named(p, EntityKind::User)?;
    let new = match p.below(4) {
        0 => another(p, EntityKind::User)?,
        1 => (*p.pick(&usual)?).to_owned(),
        2 => format!("{old}{}", p.pick(&["2", "_adm", "-test"])?),
        _ => old.chars().take(old.chars().count().saturating_sub(1)).collect(),
    };
    let piece = old.starts_with(&new) && new.len() >= 3 && new.chars().all(char::is_alphanumeric);
    let piece = piece && !p.base.records.iter().any(|record| says_word(&record.value.to_string(), &new));
    p.rename(&old, &new, false);
    (piece || p.absent(&new)).then_some(())
}

/// Whether the text contains the whole word, after removing escapes such as `\u003e`.
fn says_word(text: &str, word: &str) -> bool {
    let text = text.to_lowercase().replace("u003e", " ").replace("u003c", " ").replace("\\n", " ");
    text.split(|c: char| !c.is_alphanumeric()).any(|w| w == word.to_lowercase())
}

/// A hash of the record with a changed digit, cut or with its halves exchanged.
pub(crate) fn hash(p: &mut Plant) -> Option<()> {
    let has = |word: &str, kind: fn(&char) -> bool| word.chars().any(|c| kind(&c));
    let hash = |word: &&str| {
        word.len() >= 32
            && word.chars().all(|c| c.is_ascii_hexdigit())
            && has(word, char::is_ascii_digit)
            && has(word, char::is_ascii_alphabetic)
    };
    let words = p.base.records.iter().flat_map(|r| r.raw.split(|c: char| !c.is_ascii_alphanumeric()));
    let old = p.choose(words, hash)?.to_ascii_lowercase();
    let (head, tail) = old.split_at(old.len() / 2);
    let new = match p.below(3) {
        0 => changed_digit(p, &old)?,
        1 => format!("{tail}{head}"),
        _ => changed_digit(p, old.get(..12)?)?,
    };
    let mark = if p.one_in(2) { "`" } else { "" };
    p.draft.claim += &format!("; its hash is {mark}{new}{mark}");
    p.absent(&new).then_some(())
}

/// Another file, program or command.
pub(crate) fn name(p: &mut Plant) -> Option<()> {
    let long = |name: &String| whole(name) && name.chars().filter(|c| c.is_alphabetic()).count() >= 4;
    let old = p.choose(p.names(), long)?;
    let new = match p.below(3) {
        0 => p.choose(p.stage.bases.iter().flat_map(|base| names(&base.found.finding.draft.claim)), |_| true)?,
        1 => format!("{old}.bak"),
        _ => {
            let (place, letter) = p.choose(old.char_indices(), |(_, c)| c.is_alphabetic())?;
            let other = if letter == 'z' { 'k' } else { 'z' };
            old.char_indices().map(|(at, c)| if at == place { other } else { c }).collect()
        }
    };
    p.rename(&old, &new, false);
    p.absent(new.trim_end_matches('…')).then_some(())
}

/// The claim names another host than the record, or the other way round.
pub(crate) fn other_host(p: &mut Plant) -> Option<()> {
    let old = named(p, EntityKind::Host).filter(|old| old.len() >= 3)?;
    let short = old.split('.').next()?;
    let new = match p.below(3) {
        0 => another(p, EntityKind::Host)?,
        1 => format!("{short}-02"),
        _ => changed_digit(p, &old).unwrap_or_else(|| format!("new-{old}")),
    };
    if !p.absent(&new) || new.contains(&old) && p.one_in(2) {
        return None;
    }
    if p.one_in(2) {
        p.rename(&old, &new, false);
        return Some(());
    }
    if new.to_lowercase().contains(&short.to_lowercase()) {
        return None;
    }
    let spellings = [short.to_owned(), short.to_lowercase(), short.to_uppercase()];
    let text = spellings.iter().fold(p.record()?.value.to_string(), |text, old| text.replace(old, &new));
    let moved = p.returned(&serde_json::from_str(&text).ok()?)?;
    p.cite(&moved);
    (!moved.holds(short)).then_some(())
}

/// True: the amount in a field whose name contains one of `keys`, in another unit.
fn amount(
    p: &mut Plant,
    keys: &[&str],
    (least, least_shown): (f64, f64),
    units: &[(&str, f64)],
    claim: &str,
) -> Option<()> {
    let (domain, stage) = (p.domain.clone(), p.stage);
    let named = |key: &str| {
        let last = key.rsplit('.').next().unwrap_or(key).to_lowercase();
        keys.iter().any(|key| last.contains(key))
    };
    let amounts = |rec: &Rec| -> Vec<f64> {
        rec.fields().filter(|(key, _)| named(key)).filter_map(|(_, value)| value.parse().ok()).collect()
    };
    let records = stage.records.iter().filter(|record| record.domain == domain && record.time.is_some());
    let all = records.flat_map(|record| amounts(record).into_iter().map(move |value| (record, value)));
    let (record, value) = p.choose(all, |(_, value)| (least..1e12).contains(value))?;
    let (unit, size) = *p.choose(units, |(_, size)| value / size >= least_shown)?;
    let digits = if value / size >= 100.0 { 0 } else { 1 };
    p.draft.claim = claim.replace('N', &format!("{:.digits$} {unit}", value / size));
    p.cite(record);
    p.draft.entities.clear();
    p.date(record)
}

/// True: a number of bytes in kB, KiB, MB or MiB.
pub(crate) fn bytes(p: &mut Plant) -> Option<()> {
    let units = [("kB", 1e3), ("KB", 1e3), ("KiB", 1024.0), ("MB", 1e6), ("MiB", 1_048_576.0)];
    amount(p, &["bytes", "size", "octets"], (512.0, 0.5), &units, "About N were sent or received")
}

/// True: a duration in another unit.
pub(crate) fn duration(p: &mut Plant) -> Option<()> {
    let units = [("ms", 0.001), ("s", 1.0), ("seconds", 1.0), ("minutes", 60.0), ("hours", 3600.0)];
    amount(p, &["duration", "elapsed"], (0.02, 1.0), &units, "It lasted N")
}

/// True: an IPv6 address in different notations in the record and the claim.
pub(crate) fn long_address(p: &mut Plant) -> Option<()> {
    let address = Ipv6Addr::new(0xfd00, p.dice.random(), 0, 0, 0, 0, 0, p.dice.random());
    let long = address.segments().map(|segment| format!("{segment:04x}")).join(":");
    let (recorded, claimed) = if p.one_in(2) { (address.to_string(), long) } else { (long, address.to_string()) };
    let record = p.record()?;
    let new = p.returned(&with(record, [("raw", json!(format!("peer={recorded} {}", record.raw)))]))?;
    let words = if p.one_in(2) { format!("`{claimed}` was the peer: ") } else { format!("The peer was {claimed}. ") };
    p.say(&words);
    p.draft.entities.push(Entity { kind: EntityKind::Address, value: claimed });
    // The claim may need the other records.
    *p.draft.citations.first_mut()? = super::cite(&new);
    Some(())
}
