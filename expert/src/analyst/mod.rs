//! The built-in analyst: investigates if no language model is configured. It is deterministic: its answer
//! depends on the task and the results of its tool calls. It finds the alerted records, follows their processes,
//! sessions and names, reads what the Sigma rules found, counts, and cites every record that it describes. Questions
//! that need judgement stay open.

use std::collections::BTreeSet;

use casebook_agent::reasoner::{Action, Done};
use casebook_agent::worker::{answer, call};
use casebook_evidence::facet::{Class, Facet};
use casebook_evidence::{Hint, PointedRecord};
use casebook_protocol::{
    Alert, Answer, Bearing, Citation, EntityKind, ExpertView, FindingDraft, FindingKind, Task, Timestamp, View,
};

mod absence;
mod account;
pub(crate) mod compose;
mod counts;
mod describe;
mod kin;
mod origin;
mod plan;
pub(crate) mod rec;
mod ruled;
mod seed;

use kin::Kin;
use plan::Sources;
use rec::Rec;
use seed::{Seed, Seeds};

pub(crate) fn ready() {
    seed::patterns();
    describe::ready();
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
    let case = Case::of(view, done, task.round);
    let requests = if last { Vec::new() } else { plan::requests(&case, done, turn) };
    if !requests.is_empty() {
        return Action::Call(requests);
    }
    let mut findings = crate::raise::texts(&case.recs);
    findings.extend(compose::findings(&case));
    if case.round == 1 {
        findings.extend(origin::finding(&case));
        findings.extend(ruled::findings(&case, done));
        findings.extend(counts::findings(&case, done));
        findings.extend(absence::findings(&case, done));
    }
    findings.retain(|f| f.kind == FindingKind::Instruction || !case.is_told(f));
    answer(Answer::Investigate(findings))
}

fn turn_of(id: &str) -> Option<u32> {
    id.rsplit('.').nth(1)?.strip_prefix('t')?.parse().ok()
}

/// What is known in one task.
pub(crate) struct Case {
    alert: Alert,
    sources: Sources,
    seeds: Seeds,
    /// Names of the alert in few records.
    specific: Vec<String>,
    /// Names that the Director asks to follow.
    follow: Vec<Seed>,
    pub(crate) recs: Vec<Rec>,
    /// How each record is linked to the alert, by its place in `recs`.
    kin: Vec<Option<Kin>>,
    /// The time of the alert on a correct clock, as far as known.
    anchor: Option<Timestamp>,
    near: kin::Near,
    hosts: BTreeSet<String>,
    /// Ids of jobs, sessions and tickets in the records closest to the alert.
    ids: Vec<String>,
    /// Accounts of the alert, each with an address from which it acts for the first time.
    new: Vec<(String, String)>,
    /// Claims and quoted records of this Expert's findings in earlier rounds.
    told: BTreeSet<String>,
    round: u32,
}

impl Case {
    pub(crate) fn of(view: &ExpertView, done: &[Done], round: u32) -> Self {
        let sources = plan::sources_of(done);
        let seeds = seed::of(&view.alert);
        // Everything on a host runs as its system account, so following it would copy the log.
        let follow = view.question.follow.iter().filter(|text| !account::of_system(text));
        let follow: Vec<Seed> = follow.map(|text| Seed { text: text.clone(), kind: EntityKind::Other }).collect();
        let mut recs = rec::collect(done);
        let frequency = plan::frequency(&seeds, done, &sources);
        let core = plan::core(&recs, &seeds, &frequency);
        let specific = frequency.rare;
        // An alert is not evidence for its own claim.
        for index in &core {
            if let Some(rec) = recs.get_mut(*index).filter(|rec| rec.class() == Class::Alert) {
                rec.shows.retain(|rule| rule.bearing != Bearing::Incriminating);
            }
        }
        let anchor = plan::anchor(&recs, &core, &seeds);
        let alerted = || core.iter().filter_map(|index| recs.get(*index));
        let subjects = subjects(alerted(), &seeds);
        let hosts: BTreeSet<String> = alerted()
            .filter_map(|rec| rec.facets.get(Facet::Host))
            .chain(seeds.names.iter().filter(|s| s.kind == EntityKind::Host).map(|s| s.text.as_str()))
            .flat_map(|host| [Some(host), seed::short(host)].into_iter().flatten())
            .map(str::to_owned)
            .collect();
        let common = |name: &String| hosts.contains(name) || name == "root" || account::of_system(name);
        let actors: BTreeSet<String> = subjects.iter().filter(|name| !common(name)).cloned().collect();
        let mut names: Vec<String> = if round > 1 {
            follow.iter().map(|seed| seed.text.clone()).filter(|name| plan::rare(done, name, &sources)).collect()
        } else {
            let mut names = specific.clone();
            names.extend(kin::telling_values(&recs, &core));
            names
        };
        let new =
            if round == 1 { counts::new(&alerted().collect::<Vec<_>>(), &seeds, done, anchor) } else { Vec::new() };
        names.extend(new.iter().map(|(_, address)| address.clone()));
        let telling = seeds.names.iter().filter(|s| s.kind != EntityKind::Host).map(|s| s.text.clone()).collect();
        let near = kin::Near {
            scarce: plan::scarce(&seeds, done, &sources),
            told: telling,
            subjects: if round > 1 { follow.iter().map(|s| s.text.clone()).collect() } else { subjects },
            anchor,
            within: if round > 1 || sources.few() { kin::FOLLOWED_SECONDS } else { kin::NEAR_SECONDS },
            actors,
        };
        let mut kin = kin::of(&recs, &core, &names, &near);
        let ids = kin::ids(&recs, &kin);
        for (rec, kin) in recs.iter().zip(&mut kin).filter(|(_, kin)| kin.is_none_or(|kin| kin == Kin::Near)) {
            if ids.iter().any(|id| rec.names(id) && plan::of_one_job(done, id)) {
                *kin = Some(Kin::Named);
            }
        }
        Self {
            alert: view.alert.clone(),
            sources,
            seeds,
            specific,
            follow,
            recs,
            kin,
            anchor,
            near,
            hosts,
            ids,
            new,
            told: view.earlier.iter().flat_map(|f| quotes(&f.draft).chain([f.draft.claim.clone()])).collect(),
            round,
        }
    }

    fn with(&self, wanted: impl Fn(Kin) -> bool) -> impl Iterator<Item = &Rec> {
        let linked = self.recs.iter().zip(&self.kin);
        linked.filter(move |(_, kin)| kin.is_some_and(&wanted)).map(|(rec, _)| rec)
    }

    fn alerted(&self) -> Vec<&Rec> {
        self.with(|kin| kin == Kin::Core).collect()
    }

    fn shares_actor(&self, rec: &Rec) -> bool {
        self.near.actors.iter().any(|actor| rec.names_beside_host(actor))
    }

    /// The alert names the file or program that the record is about.
    fn names_object(&self, rec: &Rec) -> bool {
        let object = rec.facets.get(Facet::Object).and_then(|path| path.rsplit(['/', '\\']).next());
        let files = self.seeds.names.iter().filter(|seed| seed.kind == EntityKind::File);
        object.is_some_and(|name| files.clone().any(|seed| seed.text.eq_ignore_ascii_case(name)))
    }

    /// A log of another system speaks of the alerted host.
    fn of_another_system(&self, rec: &Rec) -> bool {
        let alerted = self.alerted();
        rec.facets.get(Facet::Host).is_none()
            && alerted.iter().all(|core| core.source != rec.source)
            && self.hosts.iter().any(|host| rec.names(host))
    }

    /// In later rounds, only records with a followed name answer the question.
    fn asked_for(&self, rec: &Rec) -> bool {
        self.round == 1 || self.follow.iter().any(|seed| rec.names(&seed.text))
    }

    /// Whether a finding of an earlier round says the same, or cites the same records.
    fn is_told(&self, finding: &FindingDraft) -> bool {
        let mut quotes = quotes(finding).peekable();
        self.told.contains(&finding.claim) || quotes.peek().is_some() && quotes.all(|quote| self.told.contains(&quote))
    }
}

fn quotes(finding: &FindingDraft) -> impl Iterator<Item = String> + '_ {
    finding.citations.iter().filter_map(|citation| match citation {
        Citation::Literal { quote, .. } => Some(quote.clone()),
        _ => None,
    })
}

/// Hosts, users and addresses of the alerted activity.
fn subjects<'r>(alerted: impl Iterator<Item = &'r Rec>, seeds: &Seeds) -> BTreeSet<String> {
    let own = alerted.flat_map(|rec| {
        let host = rec.facets.get(Facet::Host).and_then(seed::short);
        [Facet::Host, Facet::SrcIp, Facet::User].into_iter().filter_map(|f| rec.facets.get(f)).chain(host)
    });
    let subject = |s: &&Seed| matches!(s.kind, EntityKind::Host | EntityKind::User | EntityKind::Address);
    let named = seeds.names.iter().filter(subject).map(|s| s.text.as_str());
    let specific = |name: &&str| name.len() >= 3 && !account::of_system(name);
    own.chain(named).filter(specific).map(str::to_owned).collect()
}
