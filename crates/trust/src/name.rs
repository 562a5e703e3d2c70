//! Writes names into actions that say only what kind of thing they are about: "isolate the host" becomes "isolate the
//! host `ACCT01`". An action that could mean several things stays as it is.

use std::net::Ipv4Addr;
use std::sync::LazyLock;

use casebook_protocol::{Alert, Bearing, EntityKind, Reviewed, one_line};
use regex::{Captures, Regex};

use crate::claim::has_word;

/// Further names are counted.
const MOST: usize = 5;
/// In characters. Longer values are not names.
const LONG: usize = 120;
/// To disable or block these would stop the system itself.
const SYSTEM: [&str; 5] = ["root", "system", "local service", "network service", "localsystem"];

/// What follows a kind of thing that has no name yet.
const AFTER: &str = r"(?:[.,;:!?)]|$| (?:and|or|until|from|in|on|at|to|with|by|before|after|now|that|which|is|was|are|were|for|while|as|involved|named|concerned)\b)";

/// Names by kind, without duplicates. The name in the alert comes first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Things {
    pub hosts: Vec<String>,
    pub accounts: Vec<String>,
    pub addresses: Vec<String>,
    /// The alert names the first host.
    pub alerted: bool,
}

impl Things {
    /// The host and the account of the alert, and what the incriminating ones of `findings` are about. Accounts of
    /// the system and addresses of private networks are left out.
    pub fn of<'a>(alert: &Alert, findings: impl IntoIterator<Item = &'a Reviewed>) -> Self {
        let mut things = Self::default();
        things.hosts.extend(alert.host());
        things.accounts.extend(alert.user());
        let grave = findings.into_iter().filter(|f| f.finding.draft.bearing == Bearing::Incriminating);
        for entity in grave.flat_map(|f| &f.finding.draft.entities) {
            let value = one_line(&entity.value, usize::MAX);
            let (all, same): (_, fn(&str) -> &str) = match entity.kind {
                // A host with and without its domain is one.
                EntityKind::Host => (&mut things.hosts, |name| name.split('.').next().unwrap_or(name)),
                EntityKind::User => (&mut things.accounts, |name| name.rsplit('\\').next().unwrap_or(name)),
                EntityKind::Address if public(&value) => (&mut things.addresses, |name| name),
                _ => continue,
            };
            if !all.iter().any(|known| same(known).eq_ignore_ascii_case(same(&value))) {
                all.push(value);
            }
        }
        let usable = |name: &String| (1..=LONG).contains(&name.chars().count()) && !name.contains('`');
        [&mut things.hosts, &mut things.accounts, &mut things.addresses].into_iter().for_each(|all| all.retain(usable));
        things.accounts.retain(|name| !of_system(name));
        things.alerted = things.hosts.first().is_some_and(|first| alert.host().as_ref() == Some(first));
        things
    }

    /// Names that an action may mean if it speaks of one thing, or of several.
    fn meant(&self, kind: Kind, several: bool) -> &[String] {
        let all = match kind {
            Kind::Host => &self.hosts,
            Kind::Account => &self.accounts,
            Kind::Address => &self.addresses,
        };
        match all.get(..1) {
            Some(first) if !several && (all.len() == 1 || kind == Kind::Host && self.alerted) => first,
            Some(_) if !several => &[],
            _ => all,
        }
    }
}

fn of_system(name: &str) -> bool {
    let own = name.rsplit('\\').next().unwrap_or(name).to_lowercase();
    own.ends_with('$') || SYSTEM.contains(&own.as_str())
}

/// False for an address that is not IPv4, since it is not known whose it is.
fn public(text: &str) -> bool {
    let own = |a: Ipv4Addr| a.is_private() || a.is_loopback() || a.is_link_local() || a.is_unspecified();
    text.parse().is_ok_and(|address| !own(address) && !address.is_broadcast() && !address.is_multicast())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Host,
    Account,
    Address,
}

static KINDS: LazyLock<Vec<(Kind, Regex)>> = LazyLock::new(|| {
    let nouns = [
        (Kind::Host, "host|machine|computer|endpoint|workstation"),
        (Kind::Account, "account|user"),
        (Kind::Address, "ip address|address"),
    ];
    let which = "(?:affected |compromised |infected |alerted |involved )?";
    let pattern = |nouns| format!(r"(?i)\b(?P<what>the {which}(?:{nouns}))(?P<several>e?s)?(?P<after>{AFTER})");
    nouns.into_iter().filter_map(|(kind, nouns)| Some((kind, Regex::new(&pattern(nouns)).ok()?))).collect()
});

/// The action with the names that it means. Text in backquotes is from the evidence and stays.
pub fn named(action: &str, things: &Things) -> String {
    let mut out = action.to_owned();
    for (kind, pattern) in KINDS.iter() {
        let all = things.meant(*kind, true);
        let lower = out.to_lowercase();
        if all.iter().any(|name| has_word(&lower, &name.to_lowercase())) {
            continue;
        }
        let outside = |at: usize| out.get(..at).is_some_and(|before| before.matches('`').count().is_multiple_of(2));
        let Some(found) = pattern.captures_iter(&out).find(|c| c.get(0).is_some_and(|m| outside(m.start()))) else {
            continue;
        };
        let names = things.meant(*kind, found.name("several").is_some());
        if let (Some(place), false) = (found.get(0), names.is_empty()) {
            let text = with_names(&found, names);
            out.replace_range(place.range(), &text);
        }
    }
    out
}

fn with_names(found: &Captures<'_>, names: &[String]) -> String {
    let part = |name: &str| found.name(name).map_or("", |part| part.as_str());
    let several = if names.len() > 1 { part("several") } else { "" };
    let shown: Vec<String> = names.iter().take(MOST).map(|name| format!("`{name}`")).collect();
    let more = names.len().saturating_sub(MOST);
    let list = match shown.split_last() {
        _ if more > 0 => format!("{} and {more} more", shown.join(", ")),
        Some((last, before)) if !before.is_empty() => format!("{} and {last}", before.join(", ")),
        _ => shown.join(""),
    };
    format!("{}{several} {list}{}", part("what"), part("after"))
}

#[cfg(test)]
mod tests {
    use casebook_protocol::{Checked, Credibility, Entity, Report, Score};
    use casebook_table::{expect_file, lines};
    use proptest::prelude::*;

    use super::*;

    fn things(hosts: &[&str], accounts: &[&str], addresses: &[&str], alerted: bool) -> Things {
        let [hosts, accounts, addresses] =
            [hosts, accounts, addresses].map(|all| all.iter().map(|n| (*n).to_owned()).collect());
        Things { hosts, accounts, addresses, alerted }
    }

    #[test]
    fn actions_name_what_they_mean() {
        let sets = [
            ("none", Things::default()),
            ("one", things(&["ACCT01"], &["bo"], &["203.0.113.9"], true)),
            ("two", things(&["ACCT01", "db-2.corp"], &["bo", "CORP\\eve"], &["203.0.113.9", "198.51.100.4"], true)),
            ("unalerted", things(&["a", "b"], &[], &[], false)),
            ("seven", things(&["a1", "a2", "a3", "a4", "a5", "a6", "a7"], &[], &[], false)),
        ];
        lines(&expect_file!["name.txt"], |input| {
            let (set, action) = input.split_once(": ").unwrap();
            named(action, &sets.iter().find(|(name, _)| *name == set).unwrap().1)
        });
    }

    #[test]
    fn names_are_those_of_the_alert_and_of_what_points_to_an_attack() {
        let report: Report = serde_json::from_str(include_str!("../../../hub/fixtures/report-v1.json")).unwrap();
        let finding = |bearing, entities: &[(EntityKind, &str)]| {
            let mut finding = report.findings[0].finding.clone();
            finding.draft.bearing = bearing;
            finding.draft.entities =
                entities.iter().map(|(kind, value)| Entity { kind: *kind, value: (*value).to_owned() }).collect();
            let checked = Checked::default();
            let score = Score::clamped(0.8);
            Reviewed {
                finding,
                checked,
                score,
                label: Credibility::of(score),
                proposed: score,
                capped_by: Vec::new(),
                rationale: String::new(),
                corroborated_by: Vec::new(),
                contradicted_by: Vec::new(),
            }
        };
        use EntityKind::{Address, File, Host, User};
        let bad = [
            (Host, "acct01.corp"),
            (Host, "db-2"),
            (User, "CORP\\bo"),
            (User, "bo"),
            (User, "DB-2$"),
            (Address, "203.0.113.9"),
            (Address, "10.0.0.1"),
            (Address, "fe80::1"),
            (File, "/tmp/x"),
            (Host, "a`b"),
        ];
        let all = [finding(Bearing::Incriminating, &bad), finding(Bearing::Exonerating, &[(Host, "other")])];
        let alert = Alert::parse(br#"{"id":"a","host":"ACCT01","user":"NT AUTHORITY\\SYSTEM"}"#).unwrap();
        assert_eq!(Things::of(&alert, &all), things(&["ACCT01", "db-2"], &["CORP\\bo"], &["203.0.113.9"], true));
        let bare = Alert::parse(br#"{"id":"a"}"#).unwrap();
        assert_eq!(Things::of(&bare, &all[1..]), Things::default());
    }

    proptest! {
        #[test]
        fn whatever_the_action_says_nothing_of_it_is_lost(action in "(the |host|user|`|s|, |and |\\PC){0,12}") {
            let got = named(&action, &things(&["ACCT01"], &["bo"], &["203.0.113.9"], true));
            let left = got.replace(" `ACCT01`", "").replace(" `bo`", "").replace(" `203.0.113.9`", "");
            let plural = |text: &str| text.to_lowercase().replace('s', "");
            prop_assert_eq!(plural(&left), plural(&action));
        }
    }
}
