//! The alerted activity as a series: the same actor repeats an action. Start, end, count and final success say
//! more than the single alerted record.

use std::collections::BTreeSet;

use casebook_agent::reasoner::{CallRequest, Done};
use casebook_agent::worker::call;
use casebook_protocol::{Citation, Entity, EntityKind, FindingDraft, FindingKind, Locator, Score, Timestamp, one_line};
use serde_json::{Value, json};

use super::Case;
use super::link::{moved, seconds};
use super::rec::Rec;
use casebook_evidence::facet::{Class, Facet};

mod answer;
mod around;
mod beside;
mod judged;
mod meant;
pub(super) mod used;

use answer::answer;
pub(super) use around::installed;
pub(super) use beside::{beside_it, changed, led_to, named, sentences, sharing, spread};
use judged::{Judged, Kind, judge, pursued};

const ENDS: u64 = 2;
/// Sign-ins described one by one. If there are more, no single one stands out.
const FEW: u64 = 8;
/// Half of the window in which accounts are counted, in seconds.
const AROUND: i64 = 600;
/// More failures before a sign-in than mistyping explains.
const GUESSES: u64 = 5;
/// Words in records of successful sign-ins of various products.
const SIGNED_IN: &[&str] = &["Accepted", "UserLoggedIn", "4624", "ConsoleLogin", "user.session.start"];
const ACCEPTED: &[&str] = &["Accepted password", "Accepted publickey", "Accepted keyboard"];

type Is = (String, String);

struct Series {
    kind: Kind,
    /// Conditions for the actor and the target.
    actor: Vec<Is>,
    act: Vec<Is>,
    below: Option<Is>,
    user: Option<String>,
    address: Option<String>,
    /// The value of a successful sign-in, in the field that says that these failed.
    succeeded: Option<Is>,
    again: String,
    sshd: bool,
    at: Option<Timestamp>,
}

fn of(rec: &Rec) -> Option<Series> {
    let is = |facet| rec.facets.field_of(facet, &rec.fields);
    let all = |facets: &[Facet]| facets.iter().map(|f| is(*f)).collect::<Option<Vec<Is>>>();
    let mut act: Vec<Is> = Vec::new();
    let mut below = None;
    let (kind, actor) = match rec.class() {
        Class::LogonFailure => {
            act.extend([Facet::Outcome, Facet::Action].into_iter().filter_map(is));
            (Kind::Guess, all(&[Facet::SrcIp])?)
        }
        Class::HttpRequest => {
            let status = is(Facet::HttpStatus).filter(|(_, status)| status.starts_with('4'));
            let kind = if status.is_some() { Kind::Scan } else { Kind::Repeat };
            act.extend(status);
            (kind, all(&[Facet::SrcIp])?)
        }
        Class::NetworkConnection => {
            let state = rec.fields.iter().find(|(path, state)| refused(path, state));
            act.extend(state.map(|(path, state)| (path.clone(), state.clone())));
            let kind = if state.is_some() { Kind::Refused } else { Kind::Repeat };
            (kind, all(&[Facet::SrcIp, Facet::DstIp, Facet::DstPort])?)
        }
        Class::DnsQuery => {
            let (path, name) = is(Facet::DomainName)?;
            below = Some((path, domain(&name)?));
            (Kind::Names, all(&[Facet::SrcIp])?)
        }
        Class::ProcessStart => (Kind::Repeat, all(&[Facet::Host, Facet::Command])?),
        Class::ProcessAccess => (Kind::Repeat, all(&[Facet::Host, Facet::Process, Facet::Action])?),
        Class::ApiCall | Class::TokenEvent | Class::AccountChange => {
            (Kind::Repeat, all(&[Facet::User, Facet::Action])?)
        }
        Class::ConfigChange | Class::ServiceChange | Class::ScheduledTask | Class::KernelModule => {
            let mut all = all(&[Facet::Action])?;
            all.extend([Facet::Host, Facet::User].into_iter().filter_map(is));
            (Kind::Repeat, all)
        }
        // Alerts of a web application firewall: a page triggers the same ones every day.
        Class::Alert => (Kind::Repeat, all(&[Facet::SrcIp, Facet::Url])?),
        _ => return None,
    };
    act.splice(0..0, actor.iter().cloned());
    let value = |facet| is(facet).map_or_else(String::new, |(_, value)| format!("`{}`", one_line(&value, 160)));
    let again = match rec.class() {
        Class::HttpRequest => "requests".to_owned(),
        Class::NetworkConnection => format!("connections to {} port {}", value(Facet::DstIp), value(Facet::DstPort)),
        Class::DnsQuery => {
            let domain = below.as_ref().map_or("", |(_, domain)| domain.trim_start_matches('.'));
            format!("look-ups of names below `{domain}`")
        }
        Class::ProcessStart => format!("starts of {}", value(Facet::Command)),
        Class::ProcessAccess => format!("accesses to processes by {}", value(Facet::Process)),
        Class::Alert => format!("alerts about requests for {}", value(Facet::Url)),
        _ if is(Facet::User).is_none() => format!("records of {}", value(Facet::Action)),
        _ => format!("records of {} by {}", value(Facet::Action), value(Facet::User)),
    };
    let succeeded = is(Facet::Outcome).and_then(|(path, failed)| Some((path, opposite(&failed)?.to_owned())));
    Some(Series {
        again,
        succeeded,
        kind,
        act,
        below,
        user: is(Facet::User).map(|(path, _)| path),
        address: rec.facets.get(Facet::SrcIp).map(str::to_owned),
        sshd: rec.raw.contains("sshd"),
        at: rec.time,
        actor,
    })
}

/// The value for success that corresponds to this one for failure.
fn opposite(failed: &str) -> Option<&'static str> {
    Some(match failed {
        "false" => "true",
        "F" => "T",
        "failure" => "success",
        "Failure" => "Success",
        "FAILURE" => "SUCCESS",
        "failed" => "success",
        "no" => "yes",
        _ => return None,
    })
}

/// Connection states of Zeek without an answer, and words of firewalls.
fn refused(path: &str, state: &str) -> bool {
    casebook_evidence::facet::last(path, 1) == "connstate" && matches!(state, "REJ" | "S0" | "RSTOS0" | "RSTRH" | "SH")
}

/// The registered domain of a name, with a leading dot: the last two parts, or three below a public suffix such
/// as `co.uk`. None for reverse lookups.
fn domain(name: &str) -> Option<String> {
    let name = name.trim_end_matches('.');
    let parts: Vec<&str> = name.rsplit('.').collect();
    let shared = matches!(parts.get(1), Some(&("co" | "com" | "org" | "net" | "gov" | "ac" | "edu")));
    let own = if shared && parts.first().is_some_and(|last| last.len() == 2) { 3 } else { 2 };
    let of_address = parts.first().is_some_and(|last| last.eq_ignore_ascii_case("arpa"));
    if of_address || parts.len() <= own {
        return None;
    }
    let kept: Vec<&str> = parts.iter().take(own).rev().copied().collect();
    Some(format!(".{}", kept.join(".")))
}

impl Series {
    fn conditions(&self, all: &[Is]) -> Value {
        let below = self.below.iter().map(|(field, end)| json!({"field": field, "op": "ends_with", "value": end}));
        all.iter().map(|(field, value)| json!({"field": field, "op": "eq", "value": value})).chain(below).collect()
    }

    fn end(&self, order: &str) -> CallRequest {
        call(
            "search",
            &json!({"where": self.conditions(&self.actor), "order": order, "limit": ENDS, "include_fields": true}),
        )
    }

    fn count(&self) -> CallRequest {
        call("count_by", &json!({"field": "$minute", "where": self.conditions(&self.act), "top": 1000}))
    }

    fn accounts(&self) -> Option<CallRequest> {
        let field = match self.kind {
            Kind::Guess => self.user.as_ref(),
            Kind::Names => self.below.as_ref().map(|(field, _)| field),
            _ => None,
        };
        let (field, at) = (field?, self.at?);
        let edge = |by: i64| moved(at, by);
        let (from, to) = (edge(-AROUND)?, edge(AROUND)?);
        let arguments = json!({"field": field, "where": self.conditions(&self.act), "from": from, "to": to, "top": 20});
        Some(call("count_by", &arguments))
    }

    fn tried(&self, done: &[Done]) -> u64 {
        let counted = self.accounts().and_then(|request| answer(&request, done)?.number("distinct"));
        counted.unwrap_or(1)
    }

    /// Whether the guessing address signed in.
    fn signed_in(&self) -> Option<CallRequest> {
        (self.kind == Kind::Guess).then(|| {
            let (limit, order) = (FEW, "time");
            if let Some(succeeded) = self.succeeded.as_ref().filter(|_| !self.sshd) {
                let mut all = self.actor.clone();
                all.push(succeeded.clone());
                let mut arguments = json!({"where": self.conditions(&all), "order": order, "limit": limit, "include_fields": true});
                // Earlier sign-ins belong to other users of the address or came before the guesses.
                if let Some(from) = self.at.and_then(|at| moved(at, -3600)) {
                    arguments.as_object_mut().and_then(|all| all.insert("from".into(), json!(from)));
                }
                return call("search", &arguments);
            }
            let words = if self.sshd { &["Accepted"][..] } else { SIGNED_IN };
            call(
                "search",
                &json!({"terms": words, "mode": "any", "where": self.conditions(&self.actor), "order": order, "limit": limit, "include_fields": true}),
            )
        })
    }

    fn others(&self) -> Option<CallRequest> {
        (self.kind == Kind::Guess && self.sshd)
            .then(|| call("search", &json!({"terms": ACCEPTED, "mode": "any", "limit": FEW, "include_fields": true})))
    }

    fn asked(&self) -> Vec<CallRequest> {
        let mut all = vec![self.end("time"), self.end("time_desc"), self.count()];
        all.extend([self.accounts(), self.signed_in(), self.others()].into_iter().flatten());
        all
    }
}

pub(super) fn ask(case: &Case) -> Vec<CallRequest> {
    let mut all = alerted(case).map_or_else(Vec::new, |series| series.asked());
    all.extend(case.core.iter().filter_map(|i| beside::signed_in_before(case.recs.get(*i)?)).take(1));
    all.extend(case.core.iter().filter_map(|i| beside::reached(case.recs.get(*i)?)).take(1));
    all.extend(case.core.iter().filter_map(|i| beside::changes(case.recs.get(*i)?)).take(1));
    all.extend(case.core.iter().filter_map(|i| Some(beside::commands(case.recs.get(*i)?))).take(1).flatten());
    all.extend(case.core.iter().filter_map(|i| beside::sentences_near(case.recs.get(*i)?)).take(1));
    all.extend(around::packages(case));
    all.extend(used::request(case));
    all.extend(case.core.iter().filter_map(|i| around::sent_to(case.recs.get(*i)?)).take(1));
    all
}

fn alerted(case: &Case) -> Option<Series> {
    let core = || case.core.iter().filter_map(|i| case.recs.get(*i));
    let alerts = || core().filter(|rec| rec.class() == Class::Alert);
    core()
        .filter(|rec| rec.class() != Class::Alert)
        .find_map(of)
        .or_else(|| alerts().find_map(|rec| of(meant::by(case, rec)?)))
        .or_else(|| alerts().find_map(of))
}

/// Records of the series: first, last, and sign-ins that matter with the guesses.
pub(super) fn places(case: &Case, done: &[Done]) -> BTreeSet<(String, u64)> {
    let Some(series) = alerted(case) else { return BTreeSet::new() };
    let ends = ["time", "time_desc"].into_iter().filter_map(|order| answer(&series.end(order), done)?.places().next());
    let few = |request: Option<CallRequest>| {
        request.and_then(|r| answer(&r, done)).filter(|a| a.number("total").is_some_and(|n| n <= FEW))
    };
    let signed = [few(series.signed_in()), few(series.others())].into_iter().flatten();
    let through = if series.kind == Kind::Scan { around::let_through(case, done) } else { BTreeSet::new() };
    ends.chain(signed.flat_map(|a| a.places().collect::<Vec<_>>())).chain(through).collect()
}

pub(super) fn after_guesses(case: &Case, done: &[Done]) -> BTreeSet<(String, u64)> {
    let Some(series) = alerted(case).filter(|s| s.kind == Kind::Guess) else { return BTreeSet::new() };
    let counted = answer(&series.count(), done).filter(|c| pursued(c.densest(), series.tried(done)));
    let (Some(counted), Some(found)) = (counted, series.signed_in().and_then(|r| answer(&r, done))) else {
        return BTreeSet::new();
    };
    let places: BTreeSet<(String, u64)> = found.places().collect();
    // The end of a session or the return of a credential is not a sign-in.
    let ends = |rec: &Rec| {
        let words = [rec.facets.get(Facet::Action), rec.field(&["type"])].into_iter().flatten();
        words.map(str::to_ascii_lowercase).any(|w| {
            w.ends_with("_end") || ["session_close", "cred_", "logout", "logoff"].iter().any(|e| w.contains(e))
        })
    };
    let after = |rec: &&Rec| rec.time.is_some_and(|at| counted.until(at) >= GUESSES) && !ends(rec);
    let of = |rec: &Rec| (rec.file.clone(), rec.line);
    case.recs.iter().filter(after).map(of).filter(|place| places.contains(place)).collect()
}

pub(super) fn findings(case: &Case, done: &[Done]) -> Vec<FindingDraft> {
    let Some(series) = alerted(case) else { return Vec::new() };
    let Some(counted) = answer(&series.count(), done) else { return Vec::new() };
    let (Some(total), Some(count)) = (counted.number("total"), counted.cited("total")) else { return Vec::new() };
    let accounts = series.accounts().and_then(|r| answer(&r, done));
    let tried = series.tried(done);
    let Some(Judged { what, amounts_to, bearing, weight, technique }) =
        judge(series.kind, total, counted.densest(), tried)
    else {
        return Vec::new();
    };
    let from = series.address.as_ref().map(|a| format!(" from `{a}`")).unwrap_or_default();
    let what = if what.is_empty() { series.again.as_str() } else { what };
    let mut claim = format!("{total} {what}{from}");
    let mut citations = vec![count];
    if tried > 1
        && let Some(cited) = accounts.as_ref().and_then(|a| a.cited("distinct"))
    {
        let of = if series.kind == Kind::Names { "names" } else { "accounts" };
        claim.push_str(&format!(", {tried} {of} around the alert"));
        citations.push(cited);
    }
    let never = never_let_in(&series, done);
    if never.is_some() {
        claim.push_str("; no record of it says `Accepted`");
        citations.extend(never);
    }
    if !amounts_to.is_empty() {
        claim.push_str(&format!(": {amounts_to}"));
    }
    let entities: Vec<Entity> =
        series.address.iter().map(|a| Entity { kind: EntityKind::Address, value: a.clone() }).collect();
    vec![FindingDraft {
        kind: FindingKind::Aggregate,
        claim,
        time: None,
        entities,
        bearing,
        weight,
        about_alert: true,
        technique: technique.map(str::to_owned),
        confidence: Score::clamped(0.9),
        citations,
        look_next: None,
    }]
}

/// The address never signed in, according to sshd.
fn never_let_in(series: &Series, done: &[Done]) -> Option<Citation> {
    let searched = series.signed_in().filter(|_| series.sshd).and_then(|r| answer(&r, done))?;
    let at = Locator::Pointer("/total".into());
    let call = searched.done.call.id.clone();
    (searched.number("total") == Some(0)).then_some(Citation::Absence { call, at, from: None, to: None, again: None })
}

#[cfg(test)]
pub(super) mod tests;
