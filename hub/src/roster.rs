//! The workers that are running: a pure fold over their messages. Several instances may serve one domain if
//! they see the same sources.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use casebook_protocol::subject::Queue;
use casebook_protocol::{Domain, Join, Member, Role, SourceInfo, Timestamp, between};

/// An instance that is silent for this long is gone.
pub const GONE_AFTER: Duration = Duration::from_secs(15);

/// How long a Hub listens before it lists the workers: every worker sends a message within this time.
pub const SETTLE: Duration = Duration::from_secs(4);

/// If a Hub was suspended for longer, its knowledge is out of date.
pub const ASLEEP: Duration = Duration::from_secs(8);

/// Maximum number of instances of one queue that are counted.
pub const INSTANCES: usize = 1024;

#[derive(Debug, Clone)]
struct Instance {
    since: Timestamp,
    seen: Timestamp,
    member: Option<Member>,
    at_once: usize,
}

#[derive(Debug, Clone)]
pub struct Roster {
    protocol: u16,
    listening: Timestamp,
    awake: Option<Timestamp>,
    deaf: bool,
    seen: BTreeMap<(Role, Option<Domain>), BTreeMap<String, Instance>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    pub reason: String,
    pub for_good: bool,
}

/// An Expert must state its domain and its sources; other roles must not.
fn whole(join: &Join) -> bool {
    match (&join.domain, &join.member) {
        (Some(domain), Some(member)) => join.role == Role::Expert && member.domain == *domain,
        (None, None) => join.role != Role::Expert,
        _ => false,
    }
}

/// Whether two instances see the same evidence. Logs grow, so the younger instance may count more records of a source,
/// and may see further sources. Their models may differ.
fn same_evidence(older: &Member, younger: &Member) -> bool {
    let tools = |member: &Member| (member.toolset.name.clone(), member.toolset.tools.clone());
    let seen = |source: &SourceInfo| {
        younger.sources.iter().any(|other| {
            (&other.source, &other.sensor, other.on_subject_host)
                == (&source.source, &source.sensor, source.on_subject_host)
        })
    };
    older.domain == younger.domain && tools(older) == tools(younger) && older.sources.iter().all(seen)
}

impl Roster {
    #[must_use]
    pub const fn new(protocol: u16, now: Timestamp) -> Self {
        Self { protocol, listening: now, awake: None, deaf: false, seen: BTreeMap::new() }
    }

    /// Call this every few seconds; `hears` is false if the server is unreachable. After a suspension or an
    /// outage the Hub listens anew, because silence then means nothing.
    pub fn awake(&mut self, hears: bool, now: Timestamp) {
        if !hears || self.deaf || self.sleeps(now) {
            self.listening = now;
        }
        self.deaf = !hears;
        self.awake = Some(now);
        self.forget(now);
    }

    /// Forgets instances that are gone: the number of names has no limit.
    fn forget(&mut self, now: Timestamp) {
        self.seen.retain(|_, instances| {
            instances.retain(|_, instance| between(instance.seen, now) < GONE_AFTER);
            !instances.is_empty()
        });
    }

    fn sleeps(&self, now: Timestamp) -> bool {
        self.awake.is_some_and(|awake| between(awake, now) > ASLEEP)
    }

    /// Accepts a worker. Refuses another protocol version, an incomplete Expert, or an Expert that sees other
    /// sources than the running instances of its domain.
    pub fn join(&mut self, join: &Join, now: Timestamp) -> Result<(), Refusal> {
        self.fits(join)?;
        if let Some((other, known)) = self.oldest(&join.queue(), &join.instance, now)
            && !join.member.as_ref().is_some_and(|member| same_evidence(known, member))
        {
            let reason = format!(
                "instance {other} of {} sees other sources; instances of one domain share its work, so they must see \
                 the same sources; stop the others first, or give this one another domain",
                join.queue().name()
            );
            return Err(Refusal { reason, for_good: false });
        }
        self.see(join, now)
    }

    /// Records that a worker is running or leaving. Refuses another protocol version, an incomplete Expert, or
    /// more than [`INSTANCES`] instances of a queue.
    pub fn see(&mut self, join: &Join, now: Timestamp) -> Result<(), Refusal> {
        self.fits(join)?;
        let instances = self.seen.entry((join.role, join.domain.clone())).or_default();
        if join.leaves {
            instances.remove(&join.instance);
            return Ok(());
        }
        if instances.len() >= INSTANCES && !instances.contains_key(&join.instance) {
            let reason = format!(
                "{} {} exceeds the limit of {INSTANCES} instances per queue",
                join.queue().name(),
                join.instance
            );
            return Err(Refusal { reason, for_good: false });
        }
        let fresh = Instance { since: now, seen: now, member: None, at_once: 0 };
        let instance = instances.entry(join.instance.clone()).or_insert(fresh);
        instance.seen = now;
        instance.member.clone_from(&join.member);
        instance.at_once = join.at_once;
        Ok(())
    }

    /// Checks that apply to every message of a worker.
    fn fits(&self, join: &Join) -> Result<(), Refusal> {
        if join.protocol != self.protocol {
            let reason = format!(
                "{} {} uses protocol version {}, this Hub uses {}; run the same casebook version everywhere",
                join.queue().name(),
                join.instance,
                join.protocol,
                self.protocol
            );
            return Err(Refusal { reason, for_good: true });
        }
        if whole(join) {
            return Ok(());
        }
        let reason = format!(
            "{} {} is incomplete: an Expert must send its domain and sources, and other roles must not",
            join.queue().name(),
            join.instance
        );
        Err(Refusal { reason, for_good: true })
    }

    /// What the oldest instance of a queue sees, except for `besides`.
    fn oldest(&self, queue: &Queue, besides: &str, now: Timestamp) -> Option<(&String, &Member)> {
        let there = self.there(queue, now).filter(|(name, _)| *name != besides);
        let (name, longest) = there.min_by_key(|(_, instance)| instance.since)?;
        Some((name, longest.member.as_ref()?))
    }

    fn there(&self, queue: &Queue, now: Timestamp) -> impl Iterator<Item = (&String, &Instance)> {
        let instances = self.seen.get(&(queue.role, queue.domain.clone())).into_iter().flatten();
        instances.filter(move |(_, instance)| between(instance.seen, now) < GONE_AFTER)
    }

    pub fn instances(&self, queue: &Queue, now: Timestamp) -> usize {
        self.there(queue, now).count()
    }

    /// The tasks that the Experts of a domain perform at once; of several domains, the one with the fewest. `None` if
    /// that is not known.
    pub fn capacity(&self, now: Timestamp) -> Option<usize> {
        let experts = self.seen.keys().filter(|(role, _)| *role == Role::Expert);
        let of = |(role, domain): &(Role, Option<Domain>)| {
            let queue = Queue::new(*role, domain.as_ref());
            let each = self.there(&queue, now).map(|(_, instance)| instance.at_once);
            each.reduce(usize::saturating_add).filter(|sum| *sum > 0)
        };
        experts.filter_map(of).min()
    }

    /// The available Experts, in order of domain. `None` until the Hub has listened for [`SETTLE`].
    pub fn members(&self, now: Timestamp) -> Option<Vec<Member>> {
        if self.sleeps(now) || between(self.listening, now) < SETTLE {
            return None;
        }
        let queues = self.seen.keys().filter(|(role, _)| *role == Role::Expert);
        Some(
            queues
                .filter_map(|(role, domain)| self.oldest(&Queue::new(*role, domain.as_ref()), "", now))
                .map(|(_, member)| member.clone())
                .collect(),
        )
    }

    /// The domains with an Expert. `None` until the Hub has listened for [`GONE_AFTER`], or it would miss
    /// silent instances.
    pub fn present(&self, now: Timestamp) -> Option<BTreeSet<Domain>> {
        if self.sleeps(now) || between(self.listening, now) < GONE_AFTER {
            return None;
        }
        let domains = self.seen.keys().filter_map(|(_, domain)| domain.clone());
        Some(domains.filter(|d| self.instances(&Queue::new(Role::Expert, Some(d)), now) > 0).collect())
    }

    /// The number of running instances of each queue.
    pub fn counts(&self, now: Timestamp) -> BTreeMap<String, usize> {
        let queues = self.seen.keys().map(|(role, domain)| Queue::new(*role, domain.as_ref()));
        queues.map(|queue| (queue.name(), self.instances(&queue, now))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::script::{domain, member};

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    fn expert(instance: &str, sees: &str) -> Join {
        Join {
            protocol: 3,
            version: "1".into(),
            role: Role::Expert,
            domain: Some(domain("network")),
            instance: instance.into(),
            member: Some(seeing(sees, 7)),
            at_once: 4,
            leaves: false,
        }
    }

    fn seeing(source: &str, records: u64) -> Member {
        let about = format!("{records} records");
        let source = SourceInfo { records, about, ..SourceInfo::new(source, "zeek") };
        Member { description: source.source.clone(), sources: vec![source], ..member("network") }
    }

    #[test]
    fn instance_that_sees_more_of_a_grown_log_joins() {
        let mut roster = Roster::new(3, at(0));
        let with = |instance: &str, member: Member| Join { member: Some(member), ..expert(instance, "x") };
        roster.join(&with("a", seeing("conn", 7)), at(0)).unwrap();
        roster.join(&with("b", seeing("conn", 9)), at(1)).unwrap();
        let mut more = seeing("conn", 9);
        more.sources.extend(seeing("conn.1", 7).sources);
        roster.join(&with("c", more.clone()), at(2)).unwrap();
        assert_eq!(roster.members(at(5)).unwrap()[0].sources[0].records, 7, "the oldest is in the roster");
        let mut other = more.clone();
        other.sources[0].on_subject_host = true;
        let mut poorer = more.clone();
        poorer.toolset.tools.clear();
        poorer.toolset.name = "other".into();
        for different in [seeing("dns", 7), other, poorer] {
            assert!(roster.join(&with("d", different), at(3)).unwrap_err().reason.contains("sees other sources"));
        }
    }

    #[test]
    fn a_worker_of_another_version_is_refused_with_both_named() {
        let mut roster = Roster::new(3, at(0));
        let refusal = roster.join(&Join { protocol: 2, ..expert("a", "x") }, at(0)).unwrap_err();
        assert!(refusal.for_good && refusal.reason.contains("version 2, this Hub uses 3"), "{refusal:?}");
        roster.see(&Join { protocol: 2, ..expert("a", "x") }, at(0)).unwrap_err();
        assert_eq!(roster.members(at(9)), Some(vec![]));
    }

    #[test]
    fn instances_of_a_domain_see_the_same_or_wait_until_the_others_are_gone() {
        let mut roster = Roster::new(3, at(0));
        roster.join(&expert("a", "x"), at(0)).unwrap();
        roster.join(&expert("b", "x"), at(1)).unwrap();
        let refusal = roster.join(&expert("c", "y"), at(2)).unwrap_err();
        assert!(!refusal.for_good && refusal.reason.contains("instance a of expert-network"), "{refusal:?}");
        assert_eq!(roster.instances(&expert("a", "x").queue(), at(2)), 2);
        roster.see(&Join { leaves: true, ..expert("a", "x") }, at(3)).unwrap();
        roster.join(&expert("c", "y"), at(17)).unwrap();
        assert_eq!(roster.members(at(17)).unwrap()[0].description, "y");
    }

    #[test]
    fn capacity_is_that_of_the_slowest_domain() {
        let mut roster = Roster::new(3, at(0));
        assert_eq!(roster.capacity(at(0)), None);
        let other = |instance: &str, at_once| {
            let (name, member) = (domain("identity"), Some(member("identity")));
            Join { domain: Some(name), member, at_once, ..expert(instance, "x") }
        };
        for join in [expert("a", "x"), expert("b", "x"), other("c", 5)] {
            roster.join(&join, at(0)).unwrap();
        }
        assert_eq!(roster.capacity(at(1)), Some(5));
        roster.join(&other("d", 7), at(1)).unwrap();
        assert_eq!(roster.capacity(at(1)), Some(8));
        assert_eq!(roster.capacity(at(40)), None, "all are gone");
    }

    #[test]
    fn a_domain_is_gone_after_silence_and_never_while_the_hub_has_only_begun_to_listen() {
        let mut roster = Roster::new(3, at(100));
        let network = domain("network");
        assert_eq!(roster.members(at(103)), None);
        assert_eq!(roster.present(at(110)), None);
        assert_eq!(roster.present(at(115)).unwrap().len(), 0);
        roster.see(&expert("a", "x"), at(116)).unwrap();
        assert!(roster.present(at(130)).unwrap().contains(&network));
        assert_eq!(roster.present(at(131)).unwrap().len(), 0);
        roster.see(&expert("a", "x"), at(140)).unwrap();
        assert_eq!(roster.present(at(141)).unwrap().len(), 1);
    }

    #[test]
    fn silence_says_nothing_while_the_hub_was_deaf_or_asleep() {
        let mut roster = Roster::new(3, at(0));
        let awake = |roster: &mut Roster, hears, seconds| roster.awake(hears, at(seconds));
        roster.see(&expert("a", "x"), at(18)).unwrap();
        awake(&mut roster, true, 20);
        assert_eq!(roster.present(at(20)).unwrap().len(), 1);
        // The server is away until 41.
        (22..=40).step_by(2).for_each(|seconds| awake(&mut roster, false, seconds));
        awake(&mut roster, true, 42);
        assert_eq!((roster.members(at(42)), roster.present(at(42))), (None, None));
        roster.see(&expert("a", "x"), at(44)).unwrap();
        assert_eq!(roster.members(at(46)).unwrap().len(), 1);
        (44..=58).step_by(2).for_each(|seconds| awake(&mut roster, true, seconds));
        assert_eq!(roster.present(at(58)).unwrap().len(), 1);
        // The Hub hangs until 80.
        assert_eq!((roster.members(at(80)), roster.present(at(80))), (None, None));
        awake(&mut roster, true, 80);
        assert_eq!((roster.members(at(80)), roster.present(at(94))), (None, None));
    }

    #[test]
    fn a_half_expert_is_refused() {
        let mut roster = Roster::new(3, at(0));
        assert!(roster.join(&Join { member: None, ..expert("a", "x") }, at(0)).unwrap_err().for_good);
        assert!(roster.join(&Join { role: Role::Critic, ..expert("a", "x") }, at(0)).unwrap_err().for_good);
    }

    #[test]
    fn an_expert_speaks_of_no_other_domain_when_it_says_that_it_is_there() {
        let mut roster = Roster::new(3, at(0));
        roster.join(&expert("a", "x"), at(0)).unwrap();
        let cloud = Member { description: "y".into(), ..member("cloud") };
        let honest = Join { domain: Some(domain("cloud")), member: Some(cloud.clone()), ..expert("b", "y") };
        roster.join(&honest, at(0)).unwrap();
        let rogue = Join { member: Some(cloud), ..expert("a", "x") };
        let refusal = roster.see(&rogue, at(1)).unwrap_err();
        assert!(refusal.reason.contains("expert-network a is incomplete"), "{refusal:?}");
        let domains: Vec<String> = roster.members(at(9)).unwrap().iter().map(|m| m.domain.to_string()).collect();
        assert_eq!(domains, ["cloud", "network"], "the member of before stands, and no domain twice");
        roster.see(&Join { role: Role::Critic, member: None, ..expert("c", "x") }, at(9)).unwrap_err();
        assert_eq!(roster.counts(at(9)).len(), 2);
    }

    #[test]
    fn no_number_of_names_fills_the_memory_and_who_is_gone_makes_room() {
        let mut roster = Roster::new(3, at(0));
        for n in 0..INSTANCES {
            roster.see(&expert(&n.to_string(), "x"), at(0)).unwrap();
        }
        let refusal = roster.join(&expert("more", "x"), at(1)).unwrap_err();
        assert!(!refusal.for_good && refusal.reason.contains("limit of 1024 instances"), "{refusal:?}");
        roster.see(&expert("7", "x"), at(14)).unwrap();
        roster.awake(true, at(15));
        let there: Vec<_> = roster.seen.values().flat_map(BTreeMap::keys).collect();
        assert_eq!(there, ["7"], "the silent are forgotten");
        roster.join(&expert("more", "x"), at(16)).unwrap();
        roster.awake(true, at(40));
        assert!(roster.seen.is_empty());
    }
}
