//! Changed values: addresses, counts, users, hashes, names, and values in each other's place.

use std::net::IpAddr;

use casebook_protocol::{EntityKind, FindingDraft};

use super::{absent, any_base};
use crate::calibrate::dice::Dice;
use crate::calibrate::kind::Kind;
use crate::calibrate::material::{Base, Stage};
use crate::calibrate::plant::truth;
use crate::calibrate::trial::{Trial, names, renamed};

/// Another IP address: near the right one, a piece of it, more than it, or another one of the case.
pub(super) fn address(stage: &Stage, dice: &mut Dice) -> Option<Trial> {
    let base = any_base(stage, dice)?;
    let all: Vec<String> =
        names(&base.found.finding.draft.claim).into_iter().filter(|n| n.parse::<IpAddr>().is_ok()).collect();
    let old = dice.pick(&all)?;
    let new = match dice.below(4) {
        0 => another(stage, dice, EntityKind::Address, |v| v.parse::<IpAddr>().is_ok())?,
        1 => changed_digit(old, dice)?,
        2 => format!("{old}{}", dice.below(10)),
        _ => old.chars().skip(1).collect(),
    };
    // A piece of an address stands in the record as text, and is another address.
    let piece = old.ends_with(&new) && !says_address(base, &new);
    if new.parse::<IpAddr>().is_err() || !(piece || absent(base, &new)) || &new == old {
        return None;
    }
    let bare = dice.below(2) == 0;
    let new = if bare && dice.below(3) == 0 && new.parse::<IpAddr>().is_ok_and(|a| a.is_ipv4()) {
        let mut draft = renamed(base, old, &format!("{new}:{}", 1 + dice.below(65_000)), true);
        draft.entities = base.found.finding.draft.entities.clone();
        return Some(Trial::instead(Kind::ChangedAddress, &base.found.finding, draft));
    } else {
        new
    };
    Some(Trial::instead(Kind::ChangedAddress, &base.found.finding, renamed(base, old, &new, bare)))
}

/// Another number: in a count that can be made again, or beside a finding.
pub(super) fn count(stage: &Stage, dice: &mut Dice) -> Option<Trial> {
    if dice.below(2) == 0 {
        return truth::changed_count(stage, dice);
    }
    let base = any_base(stage, dice)?;
    // A piece of a date, an address or a longer number is not that number.
    let raw: String = base.records.first()?.raw.chars().take(400).collect();
    let pieces: Vec<&str> = raw.split(|c: char| !c.is_ascii_digit()).filter(|p| (2..=4).contains(&p.len())).collect();
    let number = match dice.below(3) {
        0 => (*dice.pick(&pieces)?).to_owned(),
        _ => (dice.below(9_000) + 3).to_string(),
    };
    let number = number.trim_start_matches('0').to_owned();
    if number.is_empty() || base.records.iter().any(|r| says_number(&r.value, &number)) {
        return None;
    }
    let times = ["{n} times: ", "In {n} attempts: ", "{n} records: "];
    let words = dice.pick(&times)?.replace("{n}", &number);
    let draft = base.found.finding.draft.clone();
    let draft = FindingDraft { claim: format!("{words}{}", draft.claim), ..draft };
    Some(Trial::instead(Kind::ChangedCount, &base.found.finding, draft))
}

/// The number stands somewhere in its own right: as a number, as a text of its own, or between
/// characters that are no part of a date, a time, an address or a name.
fn says_number(value: &serde_json::Value, number: &str) -> bool {
    use serde_json::Value;
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

/// Another account: one of the case, a usual one, or a piece of the name.
pub(super) fn user(stage: &Stage, dice: &mut Dice) -> Option<Trial> {
    let base = any_base(stage, dice)?;
    let of_user: Vec<&str> = entity_values(base, EntityKind::User);
    let old = (*dice.pick(&of_user)?).to_owned();
    if !base.found.finding.draft.claim.contains(&format!("`{old}`")) {
        return None;
    }
    let usual = ["root", "admin", "SYSTEM", "guest", "svc-backup", "administrator", "nobody", "postgres"];
    let new = match dice.below(4) {
        0 => another(stage, dice, EntityKind::User, |_| true)?,
        1 => (*dice.pick(&usual)?).to_owned(),
        2 => format!("{old}{}", ["2", "_adm", "-test"].get(dice.below(3)).copied().unwrap_or("2")),
        _ => old.chars().take(old.chars().count().saturating_sub(1)).collect(),
    };
    let piece = old.starts_with(&new) && new.len() >= 3 && new.chars().all(char::is_alphanumeric);
    let piece = piece && !base.records.iter().any(|r| says_word(&r.value.to_string(), &new));
    (piece || absent(base, &new))
        .then(|| Trial::instead(Kind::ChangedUser, &base.found.finding, renamed(base, &old, &new, false)))
}

/// The address stands in a cited record with nothing of an address beside it.
fn says_address(base: &Base, address: &str) -> bool {
    let part = |c: char| c.is_ascii_hexdigit() || matches!(c, '.' | ':');
    base.records
        .iter()
        .any(|r| r.value.to_string().split(|c: char| !part(c)).any(|w| w.split(':').any(|w| w == address)))
}

/// The word stands in the text with no letter or digit beside it, escapes such as `\u003e` undone.
fn says_word(text: &str, word: &str) -> bool {
    let text = text.to_lowercase().replace("u003e", " ").replace("u003c", " ").replace("\\n", " ");
    text.split(|c: char| !c.is_alphanumeric()).any(|w| w == word.to_lowercase())
}

/// A hash of the record with one digit changed, cut short or with its halves exchanged.
pub(super) fn hash(stage: &Stage, dice: &mut Dice) -> Option<Trial> {
    let base = any_base(stage, dice)?;
    let hex = |w: &&str| {
        w.len() >= 32
            && w.chars().all(|c| c.is_ascii_hexdigit())
            && w.contains(|c: char| c.is_ascii_digit())
            && w.contains(|c: char| c.is_ascii_alphabetic())
    };
    let all: Vec<String> = base
        .records
        .iter()
        .flat_map(|r| r.raw.split(|c: char| !c.is_ascii_alphanumeric()).filter(hex).map(str::to_owned))
        .collect();
    let old = dice.pick(&all)?.to_ascii_lowercase();
    let (head, tail) = old.split_at(old.len() / 2);
    let new = match dice.below(3) {
        0 => changed_digit(&old, dice)?,
        1 => format!("{tail}{head}"),
        _ => changed_digit(old.get(..12)?, dice)?,
    };
    if !absent(base, &new) {
        return None;
    }
    let quoted = if dice.below(2) == 0 { format!("`{new}`") } else { new };
    let draft = base.found.finding.draft.clone();
    let draft = FindingDraft { claim: format!("{}; its hash is {quoted}", draft.claim), ..draft };
    Some(Trial::instead(Kind::ChangedHash, &base.found.finding, draft))
}

/// Another file, program or command.
pub(super) fn name(stage: &Stage, dice: &mut Dice) -> Option<Trial> {
    let base = any_base(stage, dice)?;
    let all: Vec<String> = names(&base.found.finding.draft.claim)
        .into_iter()
        .filter(|n| n.chars().filter(|c| c.is_alphabetic()).count() >= 4 && !n.ends_with('…'))
        .collect();
    let old = dice.pick(&all)?;
    let others: Vec<String> = stage.bases.iter().flat_map(|b| names(&b.found.finding.draft.claim)).collect();
    let new = match dice.below(3) {
        0 => dice.pick(&others)?.clone(),
        1 => format!("{old}.bak"),
        _ => {
            let letters: Vec<usize> = old.char_indices().filter(|(_, c)| c.is_alphabetic()).map(|(i, _)| i).collect();
            let place = *dice.pick(&letters)?;
            old.char_indices().map(|(i, c)| if i == place { if c == 'z' { 'k' } else { 'z' } } else { c }).collect()
        }
    };
    absent(base, new.trim_end_matches('…'))
        .then(|| Trial::instead(Kind::ChangedName, &base.found.finding, renamed(base, old, &new, false)))
}

/// Another name without backquotes, or a number in letters: what code does not recognise as stated.
pub(super) fn unmarked(stage: &Stage, dice: &mut Dice) -> Option<Trial> {
    let base = any_base(stage, dice)?;
    let finding = &base.found.finding;
    if dice.below(3) == 0 {
        let times = *dice.pick(&["Twice", "Three times", "A dozen times", "Hundreds of times"])?;
        let draft = finding.draft.clone();
        let draft = FindingDraft { claim: format!("{times}: {}", draft.claim), ..draft };
        return Some(Trial::instead(Kind::Unmarked, finding, draft));
    }
    let plain = |n: &String| n.chars().all(|c| c.is_alphabetic() || c == '.' || c == '/' || c == '_') && n.len() >= 4;
    let old: Vec<String> = names(&finding.draft.claim).into_iter().filter(plain).collect();
    let old = dice.pick(&old)?;
    let others: Vec<String> =
        stage.bases.iter().flat_map(|b| names(&b.found.finding.draft.claim)).filter(plain).collect();
    let new = dice.pick(&others)?;
    let mut draft = renamed(base, old, new, true);
    draft.entities.retain(|e| e.value != *new);
    absent(base, new).then(|| Trial::instead(Kind::Unmarked, finding, draft))
}

/// The values of two roles exchanged: whence and whither, parent and child, who and as whom.
pub(super) fn exchanged(stage: &Stage, dice: &mut Dice) -> Option<Trial> {
    const ROLES: [&str; 4] = ["` to `", "` started `", "` as `", "` on `"];
    let base = any_base(stage, dice)?;
    let finding = &base.found.finding;
    let (claim, rest) = finding.draft.claim.split_once("; with it").unwrap_or((&finding.draft.claim, ""));
    let present: Vec<&&str> = ROLES.iter().filter(|r| claim.contains(**r)).collect();
    let role = **dice.pick(&present)?;
    let (before, after) = claim.split_once(role)?;
    let (head, first) = before.rsplit_once('`')?;
    let (second, tail) = after.split_once('`')?;
    if first.eq_ignore_ascii_case(second) || first.contains(second) || second.contains(first) {
        return None;
    }
    let swapped = format!("{head}`{second}{role}{first}`{tail}");
    let claim = if rest.is_empty() { swapped } else { format!("{swapped}; with it{rest}") };
    let draft = FindingDraft { claim, ..finding.draft.clone() };
    Some(Trial::instead(Kind::MisreadField, finding, draft))
}

/// The values of the entities of a kind.
pub(super) fn entity_values(base: &Base, kind: EntityKind) -> Vec<&str> {
    base.found.finding.draft.entities.iter().filter(|e| e.kind == kind).map(|e| e.value.as_str()).collect()
}

/// An entity of that kind from anywhere in the round.
pub(super) fn another(stage: &Stage, dice: &mut Dice, kind: EntityKind, fits: fn(&str) -> bool) -> Option<String> {
    let all: Vec<&str> =
        stage.bases.iter().flat_map(|b| entity_values(b, kind)).filter(|v| fits(v) && !v.contains('`')).collect();
    dice.pick(&all).map(|v| (*v).to_owned())
}

/// One digit changed.
pub(super) fn changed_digit(text: &str, dice: &mut Dice) -> Option<String> {
    let digits: Vec<usize> = text.char_indices().filter(|(_, c)| c.is_ascii_digit()).map(|(at, _)| at).collect();
    let place = *dice.pick(&digits)?;
    let by = 1 + dice.below(8);
    let turn = |c: char| {
        let old = usize::try_from(c.to_digit(10).unwrap_or(0)).unwrap_or(0);
        char::from_digit(u32::try_from((old + by) % 10).unwrap_or(0), 10).unwrap_or('0')
    };
    Some(text.char_indices().map(|(at, c)| if at == place { turn(c) } else { c }).collect())
}
