//! Accounts for acts: which credible finding explains which record (rule "verdict").

use std::collections::{BTreeMap, BTreeSet};

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
        doubts.push(format!("an explanation of further acts: more than {MAX_ACTS} were found"));
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

/// True if `word` occurs in `text`, and not as a part of a longer word or number.
pub(crate) fn has_word(text: &str, word: &str) -> bool {
    !word.is_empty()
        && text.match_indices(word).any(|(at, _)| {
            let before = text.get(..at).and_then(|begin| begin.chars().next_back());
            let after = text.get(at + word.len()..).and_then(|rest| rest.chars().next());
            let joins = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
            !joins(before) && !joins(after)
        })
}

/// True if every URL in the text is below one of the trusted prefixes.
pub(crate) fn urls_are_trusted(text: &str, trusted: &[String]) -> bool {
    let begins: BTreeSet<usize> = ["http://", "https://", "ftp://"]
        .iter()
        .flat_map(|scheme| text.match_indices(scheme).map(|(at, _)| at))
        .collect();
    begins.into_iter().filter_map(|at| text.get(at..)).all(|rest| {
        let end =
            rest.find(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '<' | '>' | '`')).unwrap_or(rest.len());
        let url = rest.get(..end).unwrap_or(rest);
        // A server may read `..`, `%2e` and `\` in a path as another path.
        let lower = url.to_ascii_lowercase();
        // The names of packages have these escapes.
        let url = lower.replace("%2b", "+").replace("%7e", "~").replace("%3a", "-");
        let plain = !url.contains("..")
            && !url.contains(['%', '\\', '@', '?', '#'])
            && !url.get(8..).is_some_and(|r| r.contains("//"));
        plain
            && trusted.iter().any(|prefix| {
                prefix.matches('/').count() >= 3
                    && prefix.ends_with('/')
                    && url.starts_with(&prefix.to_ascii_lowercase())
            })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn url_is_trusted_only_below_a_configured_prefix() {
        let trusted = ["http://deb.example.org/debian/".to_owned(), "http://short".to_owned()];
        let is = |url: &str| urls_are_trusted(&format!("GET {url} - 200"), &trusted);
        assert!(is("http://deb.example.org/debian/pool/main/l/lvm2/lvm2_2.deb"));
        for url in [
            "http://evil.example/debian/pool/main/l/lvm2/lvm2_2.deb",
            "http://deb.example.org.evil.example/debian/pool/a.deb",
            "http://deb.example.org@evil.example/debian/pool/a.deb",
            "http://deb.example.org/debian/../evil/a.deb",
            "http://deb.example.org/debian/%2e%2e/evil/a.deb",
            "http://deb.example.org/debian-evil/a.deb",
            "https://deb.example.org/debian/pool/a.deb",
            "http://deb.example.org:81/debian/pool/a.deb",
            "http://shortened.example/a.deb",
            "http://deb.example.org/debian/a.deb http://evil.example/b.deb",
        ] {
            assert!(!is(url), "{url}");
        }
        assert!(urls_are_trusted("no address", &trusted));
    }
}
