//! Whether a created or changed account was used afterwards, and by whom.

use std::collections::BTreeSet;

use casebook_agent::reasoner::{CallRequest, Done};
use casebook_agent::worker::call;
use serde_json::json;

use super::answer;
use crate::analyst::rec::Rec;
use crate::analyst::{Case, account};
use casebook_evidence::facet::{Class, Facet};

pub(super) fn request(case: &Case) -> Option<CallRequest> {
    let (rec, account) = changed(case)?;
    let at = rec.time?;
    Some(call(
        "search",
        &json!({"terms": [account], "from": at, "order": "time", "limit": 100, "include_fields": true}),
    ))
}

pub(in crate::analyst) fn places(case: &Case, done: &[Done]) -> BTreeSet<(String, u64)> {
    let (Some((change, account)), Some(found)) = (changed(case), request(case).and_then(|r| answer(&r, done))) else {
        return BTreeSet::new();
    };
    let found: BTreeSet<(String, u64)> = found.places().collect();
    let bare = |name: &str| name.rsplit(['\\', '/']).next().unwrap_or(name).to_ascii_lowercase();
    let its = |rec: &&Rec| {
        found.contains(&(rec.file.clone(), rec.line))
            && rec.time > change.time
            && rec.facets.get(Facet::User).is_some_and(|user| bare(user) == bare(&account))
    };
    let first = |class: Class| {
        let of = case.recs.iter().filter(its).filter(|rec| rec.class() == class);
        of.filter(|rec| rec.facets.get(Facet::Outcome) != Some("failure")).min_by_key(|rec| (rec.time, rec.line))
    };
    let first = [Class::Authentication, Class::ProcessStart].into_iter().filter_map(first);
    first.map(|rec| (rec.file.clone(), rec.line)).collect()
}

fn changed(case: &Case) -> Option<(&Rec, String)> {
    let alerted = case.alerted();
    let changes = alerted.into_iter().filter(|rec| rec.class() == Class::AccountChange);
    changes.filter_map(|rec| Some((rec, account_of(rec)?))).next()
}

/// From the field of Windows, or from the sentences of `useradd`, `usermod` and `passwd`.
fn account_of(rec: &Rec) -> Option<String> {
    let text = rec.field(&["message"]).unwrap_or(&rec.raw);
    let quoted = || text.split('\'').nth(1);
    let named = || text.split_once("name=").and_then(|(_, rest)| rest.split([',', ' ']).next());
    let for_whom = || text.split_once("password changed for ").and_then(|(_, rest)| rest.split_whitespace().next());
    let sentence = || named().or_else(quoted).or_else(for_whom);
    let name = rec.field(&["targetusername"]).map(str::to_owned).or_else(|| sentence().map(str::to_owned))?;
    let plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-$@".contains(&b));
    (name.len() >= 3 && plain && !account::of_system(&name)).then_some(name)
}
