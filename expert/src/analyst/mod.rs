//! The built-in analyst: investigates if no language model is configured. It is deterministic: its answer
//! depends on the task and the results of its tool calls. It finds the alerted records, follows their processes,
//! sessions and names, reads what the Sigma rules found, counts, and cites every record that it describes. Questions
//! that need judgement stay open.

use std::collections::BTreeSet;

use casebook_agent::reasoner::{Action, Done};
use casebook_agent::worker::{answer, call};
use casebook_evidence::facet::Facet;
use casebook_evidence::programs::file_name;
use casebook_evidence::{Hint, PointedRecord};
use casebook_protocol::{Alert, Answer, Citation, EntityKind, ExpertView, FindingDraft, FindingKind, Task, View};

mod absence;
mod account;
mod answers;
pub(crate) mod compose;
mod counts;
mod describe;
mod kin;
mod origin;
mod plan;
pub(crate) mod rec;
mod ruled;
mod seed;

use answers::Answers;
use kin::Kin;
use rec::Rec;
use seed::{Seed, Seeds};

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
        findings.extend(ruled::findings(&case));
        findings.extend(counts::findings(&case));
        findings.extend(absence::finding(&case));
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
    answers: Answers,
    seeds: Seeds,
    /// Names of the alert in few records.
    specific: Vec<String>,
    /// Names that the Director asks to follow.
    follow: Vec<String>,
    pub(crate) recs: Vec<Rec>,
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
        let (answers, mut recs) = rec::collect(done);
        let seeds = seed::of(&view.alert);
        let specific = answers.specific(&seeds);
        kin::mark_alerted(&mut recs, &seeds, &answers, &specific);
        let anchor = kin::anchor(&recs, &seeds);
        // Everything on a host runs as its system account, so following it would copy the log.
        let follow = view.question.follow.iter().filter(|name| !account::of_system(name));
        let follow: Vec<String> = follow.cloned().collect();
        let new = if round == 1 { counts::new(&recs, &seeds, &answers, anchor) } else { Vec::new() };
        let mut names: Vec<String> = new.iter().map(|(_, address)| address.clone()).collect();
        if round == 1 {
            names.extend(specific.iter().cloned().chain(kin::telling_values(&recs)));
        } else {
            names.extend(follow.iter().filter(|name| answers.is_rare(name)).cloned());
        }
        let hosts = hosts(&recs, &seeds);
        let subjects = subjects(&recs, &seeds);
        let near = kin::Near {
            scarce: answers.scarce(&seeds),
            told: seeds.names.iter().filter(|s| s.kind != EntityKind::Host).map(|s| s.text.clone()).collect(),
            anchor,
            within: if round > 1 || answers.few() { kin::FOLLOWED_SECONDS } else { kin::NEAR_SECONDS },
            actors: subjects.iter().filter(|name| !hosts.contains(*name) && *name != "root").cloned().collect(),
            subjects: if round > 1 { follow.iter().cloned().collect() } else { subjects },
        };
        kin::link(&mut recs, &names, &near);
        let ids = kin::ids(&recs);
        for rec in recs.iter_mut().filter(|rec| rec.kin.is_none_or(|kin| kin == Kin::Near)) {
            if ids.iter().any(|id| rec.names(id) && answers.of_one_job(id)) {
                rec.kin = Some(Kin::Named);
            }
        }
        let told = view.earlier.iter().flat_map(|f| quotes(&f.draft).chain([f.draft.claim.clone()])).collect();
        Self { alert: view.alert.clone(), answers, seeds, specific, follow, recs, near, hosts, ids, new, told, round }
    }

    fn with(&self, wanted: impl Fn(Kin) -> bool) -> impl Iterator<Item = &Rec> {
        self.recs.iter().filter(move |rec| rec.kin.is_some_and(&wanted))
    }

    fn alerted(&self) -> impl Iterator<Item = &Rec> + Clone {
        kin::alerted(&self.recs)
    }

    /// The alert names the file or program that the record is about.
    fn names_object(&self, rec: &Rec) -> bool {
        let mut files = self.seeds.names.iter().filter(|seed| seed.kind == EntityKind::File);
        let object = rec.facets.get(Facet::Object).map(file_name);
        object.is_some_and(|name| files.any(|seed| seed.text.eq_ignore_ascii_case(name)))
    }

    /// A log of another system speaks of the alerted host.
    fn of_another_system(&self, rec: &Rec) -> bool {
        rec.facets.get(Facet::Host).is_none()
            && self.alerted().all(|core| core.source != rec.source)
            && self.hosts.iter().any(|host| rec.names(host))
    }

    /// In later rounds, only records with a followed name answer the question.
    fn asked_for(&self, rec: &Rec) -> bool {
        self.round == 1 || self.follow.iter().any(|name| rec.names(name))
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

fn facets<'r>(recs: &'r [Rec], wanted: &'static [Facet]) -> impl Iterator<Item = &'r str> {
    kin::alerted(recs).flat_map(|rec| wanted.iter().filter_map(|facet| rec.facets.get(*facet)))
}

/// The alerted hosts, with and without the domain.
fn hosts(recs: &[Rec], seeds: &Seeds) -> BTreeSet<String> {
    let named = seeds.names.iter().filter(|seed| seed.kind == EntityKind::Host).map(|seed| seed.text.as_str());
    let hosts = facets(recs, &[Facet::Host]).chain(named);
    hosts.flat_map(|host| [Some(host), seed::short(host)]).flatten().map(str::to_owned).collect()
}

/// Hosts, users and addresses of the alerted activity.
fn subjects(recs: &[Rec], seeds: &Seeds) -> BTreeSet<String> {
    let subject = |s: &&Seed| matches!(s.kind, EntityKind::Host | EntityKind::User | EntityKind::Address);
    let named = seeds.names.iter().filter(subject).map(|s| s.text.as_str());
    let short = facets(recs, &[Facet::Host]).filter_map(seed::short);
    let all = facets(recs, &[Facet::Host, Facet::SrcIp, Facet::User]).chain(short).chain(named);
    all.filter(|name| name.len() >= 3 && !account::of_system(name)).map(str::to_owned).collect()
}
