//! The built-in analyst: investigates if no language model is configured. It is deterministic: its answer
//! depends on the task and the results of its tool calls. It follows names from the alert through the sources,
//! recognises known behaviours, and cites every record that it describes. Questions that need judgement stay
//! open.

use std::collections::{BTreeMap, BTreeSet};

use casebook_agent::reasoner::{Action, CallRequest, Done};
use casebook_agent::worker::{answer, call};
use casebook_evidence::{Hint, PointedRecord, facet};
use casebook_protocol::{Alert, Answer, Bearing, EntityKind, ExpertView, FindingKind, Task, Timestamp, View};

mod absence;
mod account;
mod behaviour;
mod compose;
mod describe;
mod focus;
mod link;
mod logon;
mod plan;
pub(crate) mod raise;
mod rec;
mod ruled;
mod seed;
mod series;

use focus::{Crowd, Focus};
use link::Links;
use plan::{Search, Sources};
use rec::Rec;
use seed::{Seed, Seeds};

pub(crate) fn ready() {
    behaviour::all();
    seed::patterns();
    casebook_trust::injection::known();
}

/// When the alerted activity happened (or else when the alert was made), and the record that the alert points
/// to.
pub fn when(alert: &Alert) -> Option<Hint> {
    let seeds = seed::of(alert);
    // Only a time at the top of the alert applies to the record: copied fields and the time of the alert itself
    // do not.
    let record = seeds.records.first().zip(seed::event_time(alert));
    let record = record.map(|((file, line), (at, zoned))| PointedRecord { file: file.clone(), line: *line, at, zoned });
    Some(Hint { at: *seeds.times.first()?, record })
}

pub fn think(task: &Task, done: &[Done], last: bool) -> Action {
    let View::Investigate(view) = &task.view else {
        return Action::GiveUp(format!("an Expert investigates; this is a {} task", task.view.kind().name()));
    };
    let turn = done.iter().filter_map(|d| turn_of(d.call.id.as_str())).max().unwrap_or(0) + 1;
    if task.round > 1 && view.question.follow.is_empty() {
        return answer(Answer::Investigate(Vec::new()));
    }
    if turn == 1 && !last {
        return Action::Call(vec![call("list_sources", &serde_json::json!({}))]);
    }
    let case = Case::of(view, done, plan::sources_of(done), task.round);
    let first = task.round == 1;
    let crowd = Crowd::of(case.foci.iter().filter(|_| first), done, &case.sources);
    if crowd.is_empty() {
        let count = case.foci.iter().filter(|_| first && turn == COUNT).map(Focus::count).collect();
        return step(view, &case, done, (turn, last), count);
    }
    // A log is mostly about others, so begin again in the records of the subject.
    let stays = |d: &&Done| focus::stays(d, turn_of(d.call.id.as_str()));
    let own: Vec<Done> = done.iter().filter(stays).map(|d| crowd.whole(d)).collect();
    let mut case = Case::of(view, &own, crowd.calm(case.sources), task.round);
    case.crowded = true;
    match step(view, &case, &own, (turn - COUNT + 1, last), Vec::new()) {
        Action::Call(requests) => {
            Action::Call(requests.into_iter().flat_map(|r| crowd.parts(r, &case.sources)).collect())
        }
        other => other,
    }
}

/// The turn in which the records of the subject are counted.
const COUNT: u32 = 3;

fn step(view: &ExpertView, case: &Case, done: &[Done], (turn, last): (u32, bool), count: Vec<CallRequest>) -> Action {
    if !last {
        let search = Search { sources: &case.sources, seeds: &case.seeds, done };
        let first = case.round == 1;
        let mut requests = match turn {
            2 => search.begin(&case.follow),
            3 => search.scan(case.anchor).into_iter().chain(first.then(|| ruled::ask(case.anchor))).collect(),
            4 | 5 => {
                let mut requests =
                    if first && turn == 4 { search.origin(&case.alerted(), case.anchor) } else { Vec::new() };
                if first && turn == 4 {
                    requests.extend(series::ask(case));
                }
                requests.extend(search.expand(&case.recs, &case.links, case.anchor));
                if turn == 4 {
                    requests.extend(search.look(case.anchor));
                }
                if first && turn == 4 {
                    requests.extend(absence::traces(&view.alert, case.anchor));
                }
                if first && turn == 5 {
                    requests.extend(absence::search(&view.alert, case.anchor));
                    requests.extend(search.of_the_grave(&case.recs, case.anchor));
                }
                requests
            }
            6..=14 => search.climb(&case.recs, &case.links),
            _ => Vec::new(),
        };
        requests.extend(count);
        if !requests.is_empty() {
            return Action::Call(requests);
        }
    }
    let mut findings = compose::findings(case, done);
    findings.retain(|f| f.kind != FindingKind::Instruction);
    if case.round == 1 {
        findings.extend(ruled::findings(case, done));
    }
    findings.splice(0..0, raise::texts(&case.recs));
    answer(Answer::Investigate(findings))
}

fn turn_of(id: &str) -> Option<u32> {
    id.rsplit('.').nth(1)?.strip_prefix('t')?.parse().ok()
}

struct Case {
    alert: Alert,
    sources: Sources,
    seeds: Seeds,
    follow: Vec<Seed>,
    recs: Vec<Rec>,
    core: BTreeSet<usize>,
    anchor: Option<Timestamp>,
    foci: Vec<Focus>,
    /// A log is mostly about others.
    crowded: bool,
    links: Links,
    /// Users and addresses of the alerted activity.
    actors: BTreeSet<String>,
    programs: &'static [&'static str],
    /// Texts of the Journal.
    journal: Vec<String>,
    round: u32,
}

impl Case {
    fn alerted(&self) -> Vec<&Rec> {
        self.core.iter().filter_map(|i| self.recs.get(*i)).collect()
    }

    fn shares_actor(&self, rec: &Rec) -> bool {
        self.actors.iter().any(|a| rec.names(a))
    }

    /// True if nothing but the time or a kind of activity links the record to the alert: it is about another subject.
    fn of_others(&self, rec: &Rec) -> bool {
        self.crowded && self.foci.iter().any(|focus| focus.excludes(rec)) && !self.shares_actor(rec)
    }

    fn follows_program_of(&self, rec: &Rec) -> bool {
        let programs = [facet::Facet::Process, facet::Facet::Parent].into_iter().filter_map(|f| rec.facets.get(f));
        let is = |program: &str| self.follow.iter().any(|seed| seed.text.eq_ignore_ascii_case(program));
        programs.into_iter().any(is)
    }

    /// In later rounds, only records with a followed name answer the question.
    fn asked_for(&self, rec: &Rec) -> bool {
        self.round == 1 || self.follow.iter().any(|seed| rec.names(&seed.text))
    }
}

impl Case {
    fn of(view: &ExpertView, done: &[Done], sources: Sources, round: u32) -> Self {
        let seeds = seed::of(&view.alert);
        // Everything on a host runs as its system account, so following it would copy the log.
        let follow = view.question.follow.iter().filter(|text| !account::of_system(text));
        let follow: Vec<Seed> = follow.map(|text| Seed { text: text.clone(), kind: EntityKind::Other }).collect();
        let recs = rec::collect(done);
        let specific = specific(&seeds, done, &sources);
        let core = plan::core(&recs, &seeds, &specific);
        let anchor = plan::anchor(&recs, &core, &seeds);
        let mut names: Vec<String> = specific;
        names.extend(rare_values(&recs, &core));
        let followed: BTreeSet<String> = follow.iter().map(|s| s.text.clone()).collect();
        if round > 1 {
            names = followed.iter().filter(|n| rare(done, n, &sources)).cloned().collect();
        }
        let mut links = Links::follow(&recs, &core, &names, anchor);
        links.arrived(&recs, &links.brought(&recs), anchor);
        let within = if sources.few() { link::FOLLOWED_SECONDS } else { link::NEAR_SECONDS };
        links.near(&recs, &subjects(&recs, &core, &seeds), anchor, within);
        links.near(&recs, &followed, anchor, link::FOLLOWED_SECONDS);
        links.beside(&recs, &core, anchor, within);
        links.between(&recs, &followed, &subjects(&recs, &core, &seeds), anchor);
        let host: BTreeSet<String> =
            seeds.names.iter().filter(|s| s.kind == EntityKind::Host).map(|s| s.text.clone()).collect();
        let hosts = core
            .iter()
            .filter_map(|i| recs.get(*i)?.facets.get(facet::Facet::Host))
            .map(str::to_owned)
            .chain(host)
            .flat_map(|host| [seed::short(&host).map(str::to_owned), Some(host)])
            .flatten()
            .collect::<BTreeSet<_>>();
        let actors = subjects(&recs, &core, &seeds)
            .into_iter()
            .filter(|s| !hosts.contains(s) && s != "root" && !account::of_system(s))
            .collect();
        let programs = absence::programs(&view.alert);
        let alerted: Vec<&Rec> = core.iter().filter_map(|i| recs.get(*i)).collect();
        let named: Vec<&str> =
            seeds.names.iter().filter(|s| s.kind == EntityKind::Host).map(|s| s.text.as_str()).collect();
        let foci = Focus::all(&alerted, &recs, &named);
        let journal = view.journal.iter().map(|e| e.entry.text.clone()).collect();
        let mut case = Self {
            alert: view.alert.clone(),
            sources,
            seeds,
            follow,
            recs,
            core,
            anchor,
            foci,
            crowded: false,
            links,
            actors,
            programs,
            journal,
            round,
        };
        if round == 1 {
            settle(&mut case);
            let mut places = series::places(&case, done);
            places.extend(series::named(&case));
            places.extend(series::led_to(&case, done));
            places.extend(series::spread(&case, done));
            places.extend(series::changed(&case, done));
            places.extend(series::beside_it(&case, done));
            places.extend(series::installed(&case, done));
            places.extend(series::used::places(&case, done));
            places.extend(series::sharing(&case));
            places.extend(series::sentences(&case, done));
            case.links.again(&case.recs, &places);
        }
        case
    }
}

/// A behaviour that many records of the activity show does not distinguish them. Keep it on the first, the last
/// and the alerted record, so that rare ones remain visible.
fn settle(case: &mut Case) {
    const MANY: usize = 8;
    // An alert is not evidence for its own claim.
    for index in &case.core {
        if let Some(rec) = case.recs.get_mut(*index).filter(|rec| rec.class() == facet::Class::Alert) {
            rec.shows.retain(|b| b.bearing != Bearing::Incriminating);
        }
    }
    let mut showing: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (index, rec) in case.recs.iter().enumerate().filter(|(i, _)| case.links.kin(*i).is_some()) {
        // Different alerts are not repetitions of one kind.
        let alert = rec.class() == facet::Class::Alert;
        for behaviour in rec.shows.iter().filter(|b| b.bearing == Bearing::Incriminating && !alert) {
            showing.entry(behaviour.id.as_str()).or_default().push(index);
        }
    }
    for (id, mut all) in showing.into_iter().filter(|(_, all)| all.len() > MANY) {
        all.sort_by_key(|i| case.recs.get(*i).map(|r| (r.time, r.file.clone(), r.line)));
        let inner = all.get(1..all.len() - 1).unwrap_or_default();
        for index in inner.iter().filter(|i| !case.core.contains(i)) {
            if let Some(rec) = case.recs.get_mut(*index) {
                rec.shows.retain(|b| b.id != id);
            }
        }
    }
}

/// Names of the alert in few records: they distinguish its activity.
fn specific(seeds: &Seeds, done: &[Done], sources: &Sources) -> Vec<String> {
    let telling = |s: &&Seed| {
        let system_account = s.kind == EntityKind::User && account::of_system(&s.text);
        !matches!(s.kind, EntityKind::Host) && !system_account && !s.text.chars().all(|c| c.is_ascii_digit())
    };
    seeds.names.iter().filter(telling).filter(|s| rare(done, &s.text, sources)).map(|s| s.text.clone()).collect()
}

/// True if so few records have the name that they probably belong together.
fn rare(done: &[Done], name: &str, sources: &Sources) -> bool {
    let few = (sources.records / 50).clamp(30, 200);
    plan::total_of(done, name)
        .is_some_and(|total| total > 0 && total <= few && (total * 3 <= sources.records * 2 || sources.records < 12))
}

/// Values of the alerted record that few collected records share.
fn rare_values(recs: &[Rec], core: &BTreeSet<usize>) -> Vec<String> {
    use facet::Facet::{DstIp, SrcIp, UserAgent};
    let inside = |v: &str| v.parse::<std::net::Ipv4Addr>().is_ok_and(|a| a.is_private());
    let values = core
        .iter()
        .filter_map(|i| recs.get(*i))
        // Many things happen on an internal host, so its address says as little as its name.
        .flat_map(|r| {
            let near = r.facets.get(SrcIp).filter(|v| !inside(v));
            [UserAgent, DstIp].into_iter().filter_map(|f| r.facets.get(f)).chain(near)
        });
    let own = |v: &str| v.parse::<std::net::IpAddr>().is_ok_and(|a| a.is_loopback());
    let made = core.iter().filter_map(|i| recs.get(*i)).flat_map(|rec| made(rec).into_iter().chain(member(recs, rec)));
    let few = |v: &&str| recs.iter().filter(|r| r.names(v)).count() * 4 <= recs.len();
    let rare = |v: &&str| v.len() >= 7 && !own(v) && few(v);
    values.filter(rare).chain(made.filter(few)).map(str::to_owned).collect::<BTreeSet<_>>().into_iter().collect()
}

/// The name of a created account, service or task. Records of its use contain the name.
fn made(rec: &Rec) -> Option<&str> {
    use facet::Class::{AccountChange, ScheduledTask, ServiceChange};
    let name = match rec.class() {
        AccountChange => rec.field(&["targetusername", "targetuser"]),
        ScheduledTask | ServiceChange => rec.facets.get(facet::Facet::Object),
        _ => None,
    };
    name.filter(|name| name.len() >= 4 && !account::of_system(name))
}

/// The account that was added to a group by number only, if another record created it.
fn member<'r>(recs: &'r [Rec], rec: &Rec) -> Option<&'r str> {
    let sid = rec.field(&["membersid"]).filter(|sid| sid.starts_with("S-1-5-21-"))?;
    let of = |other: &&Rec| other.field(&["targetsid", "targetusersid"]) == Some(sid);
    let name = recs.iter().filter(of).find_map(|other| other.field(&["targetusername"]))?;
    (name.len() >= 4 && !account::of_system(name)).then_some(name)
}

fn subjects(recs: &[Rec], core: &BTreeSet<usize>, seeds: &Seeds) -> BTreeSet<String> {
    use facet::Facet::{Host, SrcIp, User};
    let own = core
        .iter()
        .filter_map(|i| recs.get(*i))
        .flat_map(|r| [Host, SrcIp, User].into_iter().filter_map(|f| r.facets.get(f)));
    let called = core.iter().filter_map(|i| seed::short(recs.get(*i)?.facets.get(Host)?));
    let named = seeds
        .names
        .iter()
        .filter(|s| matches!(s.kind, EntityKind::Host | EntityKind::User | EntityKind::Address))
        .map(|s| s.text.as_str());
    let specific_name = |v: &&str| v.len() >= 3 && !account::of_system(v);
    own.chain(called).chain(named).filter(specific_name).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_made_is_what_else_is_done_with_it() {
        let made_as = |fields: &[(&str, &str)]| made(&Rec::with(fields)).map(str::to_owned);
        let account = [("EventID", "4720"), ("TargetUserName", "helper"), ("SubjectUserName", "mara")];
        assert_eq!(made_as(&account).as_deref(), Some("helper"));
        assert_eq!(made_as(&[("EventID", "4624"), ("TargetUserName", "helper")]), None);
        assert_eq!(made_as(&[("EventID", "4720"), ("TargetUserName", "WEB01$")]), None);
    }

    #[test]
    fn a_member_that_only_its_number_names_has_the_name_under_which_it_was_made() {
        let made = Rec::with(&[("EventID", "4720"), ("TargetUserName", "helper"), ("TargetSid", "S-1-5-21-1-1000")]);
        let added = |sid| Rec::with(&[("EventID", "4732"), ("MemberSid", sid), ("TargetUserName", "Administrators")]);
        let recs = [made];
        assert_eq!(member(&recs, &added("S-1-5-21-1-1000")), Some("helper"));
        assert_eq!(member(&recs, &added("S-1-5-21-1-1001")), None);
        assert_eq!(member(&recs, &added("S-1-5-32-544")), None);
    }
}
