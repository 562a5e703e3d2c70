//! Raises the weight of findings that say little alone but much together.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::LazyLock;

use casebook_agent::reasoner::Done;
use casebook_protocol::{Bearing, Citation, FindingDraft, Weight};
use regex::Regex;

use super::cite::cite;
use super::{Group, on_the_wire};
use crate::analyst::link::seconds;
use crate::analyst::rec::Rec;
use crate::analyst::{Case, account};
use casebook_evidence::facet::{Class, Facet};

/// A sign-in from an address that guessed passwords before.
pub(super) fn mark_sign_ins(findings: &mut [FindingDraft], groups: &[Group<'_>], case: &Case, done: &[Done]) {
    let places = crate::analyst::series::after_guesses(case, done);
    let cited = groups.iter().flat_map(|g| &g.0).filter(|p| {
        let (file, line) = p.rec.key();
        p.rec.facets.get(Facet::Outcome) != Some("failure")
            && p.rec.class() == Class::Authentication
            && places.contains(&(file.to_owned(), line))
    });
    let cited: Vec<_> = cited.map(|p| cite(p.rec)).collect();
    for finding in findings.iter_mut().filter(|f| f.citations.iter().any(|c| cited.contains(c))) {
        finding.claim.push_str(": sign-in from an address that had guessed");
        finding.bearing = Bearing::Incriminating;
        finding.weight = Weight::Strong;
        finding.about_alert = true;
        finding.technique = Some("T1078".into());
    }
}

/// A person does not sign in from this many networks within [`WITHIN`].
const NETWORKS: usize = 4;
/// Seconds from the alert.
const WITHIN: f64 = 1800.0;

/// Several people use an account, or its user hides, if it signs in from one network after the other.
pub(super) fn mark_networks(findings: &mut [FindingDraft], groups: &[Group<'_>], case: &Case) {
    let users: BTreeSet<String> = case
        .alerted()
        .iter()
        .filter_map(|rec| rec.facets.get(Facet::User))
        .filter(|user| !account::of_system(user))
        .map(account::bare)
        .collect();
    let near = |rec: &Rec| match (rec.time, case.anchor) {
        (Some(at), Some(anchor)) => seconds(at, anchor).abs() <= WITHIN,
        _ => false,
    };
    for user in users {
        let signs_in = |rec: &&Rec| {
            rec.class() == Class::Authentication
                && rec.facets.get(Facet::Outcome) != Some("failure")
                && near(rec)
                && rec.facets.get(Facet::User).is_some_and(|of| account::bare(of) == user)
        };
        let mut came: BTreeMap<String, &Rec> = BTreeMap::new();
        let mut sign_ins: Vec<&Rec> = case.recs.iter().filter(signs_in).collect();
        sign_ins.sort_by_key(|rec| (rec.time, rec.key()));
        for rec in sign_ins {
            if let Some(network) = rec.facets.get(Facet::SrcIp).and_then(network) {
                came.entry(network).or_insert(rec);
            }
        }
        if came.len() < NETWORKS {
            continue;
        }
        let places: BTreeSet<(&str, u64)> = came.values().map(|rec| rec.key()).collect();
        let picks = groups.iter().flat_map(|g| &g.0).filter(|p| places.contains(&p.rec.key()));
        let cited: Vec<_> = picks.map(|p| cite(p.rec)).collect();
        let says = "one of several networks from which the account signed in within an hour";
        accuse(findings, &cited, says, "T1078");
    }
}

/// Credentials of a machine, used from the address and with the client of a person, are in the hands of that
/// person. Addresses that a whole network shares are excluded; they have many clients.
pub(super) fn mark_taken_roles(findings: &mut [FindingDraft], groups: &[Group<'_>], case: &Case) {
    let at = |rec: &Rec| {
        let call = rec.class() == Class::ApiCall && rec.facets.get(Facet::Outcome) != Some("failure");
        let [from, with] = [Facet::SrcIp, Facet::UserAgent].map(|facet| rec.facets.get(facet).map(str::to_owned));
        // Calls by the provider for both come from its own services.
        let own = from.as_deref().and_then(network).is_none_or(|network| network == "inside")
            || with.as_deref().is_some_and(|with| with.contains("amazonaws.com") || with.starts_with("AWS Internal"));
        (call && !own).then_some((from?, with?))
    };
    let of_machine = |rec: &Rec| {
        rec.facets.get(Facet::User).is_some_and(|user| {
            user.contains("assumed-role/") && user.rsplit('/').next().is_some_and(|session| session.starts_with("i-"))
        })
    };
    let people: BTreeSet<_> =
        case.recs.iter().filter(|r| r.facets.get(Facet::PrincipalType) == Some("IAMUser")).filter_map(at).collect();
    let taken = groups
        .iter()
        .flat_map(|g| &g.0)
        .filter(|p| of_machine(p.rec) && at(p.rec).is_some_and(|from| people.contains(&from)));
    let cited: Vec<_> = taken.map(|p| cite(p.rec)).collect();
    let says = "credentials of a machine used from where a person works, with the same client";
    accuse(findings, &cited, says, "T1552.005");
}

/// Makes findings that cite one of these strong, and appends `says` to their claims.
fn accuse(findings: &mut [FindingDraft], cited: &[Citation], says: &str, technique: &str) {
    let grave = |f: &FindingDraft| f.weight >= Weight::Strong && f.bearing == Bearing::Incriminating;
    for finding in findings.iter_mut().filter(|f| !grave(f) && f.citations.iter().any(|c| cited.contains(c))) {
        finding.claim.push_str(": ");
        finding.claim.push_str(says);
        finding.bearing = Bearing::Incriminating;
        finding.weight = Weight::Strong;
        finding.technique = Some(technique.into());
    }
}

/// A rough network of a public address, so that a provider at one place is one network. All private addresses
/// are one.
fn network(address: &str) -> Option<String> {
    match address.parse::<IpAddr>().ok()? {
        IpAddr::V4(ip) if ip.is_private() || ip.is_loopback() || ip.is_link_local() => Some("inside".into()),
        IpAddr::V4(ip) => {
            let [a, b, ..] = ip.octets();
            Some(format!("{a}.{b}"))
        }
        IpAddr::V6(ip) => {
            let [a, b, ..] = ip.segments();
            Some(format!("{a:x}:{b:x}"))
        }
    }
}

/// A file that responds differently with a command than without one: a page that is not a web shell ignores the
/// command.
pub(super) fn mark_shells(findings: &mut [FindingDraft], groups: &[Group<'_>], case: &Case) {
    // On many pages, a word such as `cat` or `id` is an ordinary value.
    #[allow(clippy::expect_used, reason = "the pattern is a constant that the tests compile")]
    static COMMAND: LazyLock<Regex> = LazyLock::new(|| {
        let names = r"cmd|exec|command|c|shell|run|execute";
        let alone = r"whoami|uname|ipconfig|ifconfig|systeminfo|hostname";
        let with = r"ver|id|ls|dir|ps|pwd|cat|type|net|wget|curl|powershell|cmd|echo|ping";
        Regex::new(&format!(r"(?i)[?&](?:{names})=(?:(?:{alone})(?:[+%;|&]|$)|(?:{with})(?:\+|%20|%3b|%7c|%26|;|\|))"))
            .expect("a command in an address is a regular expression")
    });
    let plain = |rec: &Rec| rec.facets.get(Facet::Url).filter(|url| !url.contains('?')).map(str::to_owned);
    let of =
        |rec: &Rec| [Facet::Host, Facet::DomainName, Facet::HttpMethod].map(|f| rec.facets.get(f).map(str::to_owned));
    let size = |rec: &Rec| -> Option<u64> {
        let answered = rec.facets.get(Facet::HttpStatus) == Some("200");
        rec.field(&["bytes", "scbytes", "responsebodylen", "bodybytessent"])?
            .parse()
            .ok()
            .filter(|n| answered && *n > 0)
    };
    let alone: Vec<(String, u64, &Rec)> =
        case.recs.iter().filter_map(|rec| Some((plain(rec)?, size(rec)?, rec))).collect();
    let answers = |rec: &Rec| {
        let shown = rec.shows.iter().any(|b| b.id == "web-shell-request");
        let asked = rec.facets.get(Facet::Url).filter(|url| shown && COMMAND.is_match(url));
        let (Some((path, _)), Some(bytes)) = (asked.and_then(|url| url.split_once('?')), size(rec)) else {
            return false;
        };
        let same =
            |(url, _, other): &&(String, u64, &Rec)| url == path && other.source == rec.source && of(other) == of(rec);
        let mut without = alone.iter().filter(same).map(|(_, n, _)| *n).peekable();
        // A page that only repeats the request differs by little.
        without.peek().is_some() && without.all(|n| n.abs_diff(bytes) * 4 > n.max(bytes))
    };
    let cited: Vec<_> = groups.iter().flat_map(|g| &g.0).filter(|p| answers(p.rec)).map(|p| cite(p.rec)).collect();
    for finding in findings.iter_mut().filter(|f| f.citations.iter().any(|c| cited.contains(c))) {
        finding.claim.push_str(": the file answers otherwise without a command");
        finding.weight = Weight::Decisive;
    }
}

/// A program that was downloaded from the host of the alerted connection, over another port shortly after it.
pub(super) fn mark_fetches(findings: &mut [FindingDraft], groups: &[Group<'_>], case: &Case) {
    const RIGHT_AFTER: f64 = 300.0;
    // A host with a name may share its address with others.
    let named = |rec: &Rec| rec.facets.get(Facet::DomainName).is_some_and(|n| n.contains(|c: char| c.is_alphabetic()));
    let ends = |rec: &Rec| {
        let get = |facet| rec.facets.get(facet).map(str::to_owned);
        Some((get(Facet::SrcIp)?, get(Facet::DstIp)?, get(Facet::DstPort)?))
    };
    let alerted = case.alerted();
    let goes_there = |rec: &Rec| {
        let Some((from, to, port)) = ends(rec) else { return false };
        alerted.iter().filter(|core| on_the_wire(core) && core.class() != Class::HttpRequest).any(|core| {
            let after =
                matches!((rec.time, core.time), (Some(a), Some(b)) if (0.0..=RIGHT_AFTER).contains(&seconds(b, a)));
            after && ends(core).is_some_and(|(f, t, p)| f == from && t == to && p != port)
        })
    };
    let fetched = groups.iter().flat_map(|g| &g.0).filter(|p| {
        p.rec.class() == Class::HttpRequest
            && p.rec.shows.iter().any(|b| b.id.starts_with("executable-download"))
            && !p.rec.shows.iter().any(|b| b.bearing == Bearing::Exonerating)
            && !named(p.rec)
            && goes_there(p.rec)
    });
    let cited: Vec<_> = fetched.map(|p| cite(p.rec)).collect();
    for finding in findings.iter_mut().filter(|f| f.citations.iter().any(|c| cited.contains(c))) {
        finding.claim.push_str(": program fetched from the host that the alerted connection goes to");
        finding.bearing = Bearing::Incriminating;
        finding.weight = finding.weight.max(Weight::Strong);
        finding.about_alert = true;
        finding.technique = Some("T1105".into());
    }
}
