//! Accounts for acts: which credible finding explains which record (rule "verdict").

use std::collections::BTreeMap;

use crate::claim::has_word;
use crate::package::PackageSource;
use casebook_protocol::{
    AccountedAct, Accounting, Act, ActPart, Acts, Bearing, Claim, FindingId, MAX_ACTS, RecordRef, Reviewed, Score,
};

/// A finding with a lower score explains no act.
pub const EXPLAINS: f64 = 0.7;

/// The lists of several Experts as one. Experts that read the same files list the same acts.
pub fn merged<'a>(lists: impl IntoIterator<Item = &'a Acts>) -> Option<Acts> {
    let mut all: Option<Acts> = None;
    let mut acts: BTreeMap<&RecordRef, &Act> = BTreeMap::new();
    for list in lists {
        for act in &list.listed {
            let known = acts.entry(&act.record).or_insert(act);
            if act.part < known.part {
                *known = act;
            }
        }
        let merged = all.get_or_insert_with(Acts::default);
        merged.more = merged.more.max(list.more);
        merged.claim = joined(merged.claim.take(), list.claim.as_ref());
        merged.keys.extend(list.keys.iter().cloned());
        merged.trusted.extend(list.trusted.iter().cloned());
    }
    let mut all = all?;
    all.listed = acts.into_values().cloned().collect();
    all.listed.sort_by(|a, b| (a.part, a.time, &a.record).cmp(&(b.part, b.time, &b.record)));
    let excess = all.listed.len().saturating_sub(MAX_ACTS);
    all.listed.truncate(MAX_ACTS);
    all.more += excess as u64;
    for list in [&mut all.keys, &mut all.trusted] {
        list.sort();
        list.dedup();
    }
    Some(all)
}

fn joined(one: Option<Claim>, other: Option<&Claim>) -> Option<Claim> {
    let (Some(mut claim), Some(other)) = (one.clone(), other) else { return one.or_else(|| other.cloned()) };
    claim.found = claim.found.max(other.found);
    claim.watched_by.extend(other.watched_by.iter().cloned());
    claim.watched_by.sort();
    claim.watched_by.dedup();
    Some(claim)
}

/// What explains each act: an exonerating finding about the alerted activity with valid citations and a score of at least [`EXPLAINS`] that cites
/// the record, or a query whose rows are records of acts.
pub fn account(
    acts: &Acts,
    known: &BTreeMap<FindingId, Reviewed>,
    rows: &BTreeMap<FindingId, Vec<RecordRef>>,
) -> Accounting {
    let mut explained: BTreeMap<(&str, u64), &FindingId> = BTreeMap::new();
    for (id, finding) in known.iter().filter(|(_, finding)| explains(finding)) {
        let cited = finding.checked.citations.iter().flat_map(|check| &check.records);
        for record in cited.chain(rows.get(id).into_iter().flatten()) {
            explained.entry((record.file.as_str(), record.line)).or_insert(id);
        }
    }
    let by = |act: &Act| explained.get(&(act.record.file.as_str(), act.record.line)).map(|id| (*id).clone());
    let listed = acts.listed.iter().map(|act| AccountedAct { act: act.clone(), by: by(act) });
    Accounting { acts: listed.collect(), more: acts.more, claim: acts.claim.clone() }
}

fn explains(finding: &Reviewed) -> bool {
    finding.finding.draft.bearing == Bearing::Exonerating
        && finding.finding.draft.about_alert
        && finding.score >= Score::clamped(EXPLAINS)
        && finding.checked.valid()
}

/// At most this many acts are named in one reason.
const NAMED_MAX: usize = 5;

/// Why the acts forbid a dismissal.
pub(crate) fn doubts(accounting: Option<&Accounting>) -> Vec<String> {
    let Some(accounting) = accounting else {
        return vec!["a list of the acts to account for: no Expert could read the evidence files".to_owned()];
    };
    let mut doubts = Vec::new();
    if !accounting.acts.iter().any(|act| act.act.part == ActPart::Alerted) {
        doubts.push("the alerted occurrence: no record of it was found in the evidence".to_owned());
    }
    let open: Vec<&Act> = accounting.open().collect();
    if !open.is_empty() {
        let named: Vec<String> = open.iter().take(NAMED_MAX).map(|act| shown(act)).collect();
        let more = open.len().saturating_sub(NAMED_MAX);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        doubts.push(format!(
            "an explanation of {} of {} acts: {}{more}",
            open.len(),
            accounting.total(),
            named.join(", ")
        ));
    }
    if accounting.more > 0 {
        doubts.push(format!("a complete list of the acts: {} more were found or could not be read", accounting.more));
    }
    if let Some(claim) = accounting.claim.as_ref().filter(|claim| claim.found == 0 && claim.watched_by.is_empty()) {
        doubts.push(format!(
            "a confirmed sensor that records what the alert claims ({}) on the alerted host at that time",
            claim.kind.name()
        ));
    }
    doubts
}

fn shown(act: &Act) -> String {
    format!("{}:{} ({}: {})", act.record.file, act.record.line, act.kind.name(), act.what)
}

/// True if a text shows one of the keys as a whole word.
pub(crate) fn shows_key(text: &str, keys: &[String]) -> bool {
    let lower = text.to_lowercase();
    keys.iter().any(|key| has_word(&lower, &key.to_lowercase()))
}

/// True if every address in the text is below a trusted package source. A text that names the file of a package must
/// have an address, because a quotation may leave out its begin.
pub(crate) fn urls_are_trusted(text: &str, trusted: &[String]) -> bool {
    const PACKAGES: [&str; 8] = [".deb", ".rpm", ".apk", ".whl", ".tgz", ".tar.gz", ".msi", ".pkg"];
    let trusted: Vec<PackageSource> = trusted.iter().filter_map(|prefix| PackageSource::new(prefix).ok()).collect();
    let lower = text.to_ascii_lowercase();
    let begins = lower.match_indices("://").map(|(at, _)| {
        let scheme = lower.get(..at).unwrap_or_default();
        scheme.rfind(|c: char| !c.is_ascii_alphanumeric()).map_or(0, |before| before + 1)
    });
    let ends = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '<' | '>' | '`');
    let urls: Vec<&str> =
        begins.filter_map(|at| text.get(at..)).map(|rest| rest.split(ends).next().unwrap_or(rest)).collect();
    let package = PACKAGES.iter().any(|end| has_word(&lower, end));
    !(package && urls.is_empty()) && urls.iter().all(|url| trusted.iter().any(|source| source.holds(url)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotation_needs_the_trusted_address_of_each_package() {
        let trusted = ["http://deb.example.org/debian/".to_owned()];
        let is = |text: &str| urls_are_trusted(text, &trusted);
        for text in [
            "GET http://deb.example.org/debian/pool/main/l/lvm2/lvm2_2.deb - 200",
            r#""url":"http://deb.example.org/debian/pool/a%2b1.deb""#,
            "no address",
        ] {
            assert!(is(text), "{text}");
        }
        for text in [
            "GET http://evil.example/debian/pool/main/l/lvm2/lvm2_2.deb - 200",
            "evil.example/debian/pool/main/l/lvm2/lvm2_2.deb",
            "http://deb.example.org/debian/a.deb http://evil.example/b.deb",
            "HTTP://EVIL.example/a",
            "ftp://deb.example.org/debian/a.deb",
            "http://deb.example.org/Debian/a.deb",
        ] {
            assert!(!is(text), "{text}");
        }
    }
}
