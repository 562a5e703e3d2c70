//! Who is there: a pure fold over what workers say of themselves. A domain's Expert may run as many
//! instances, which all see the same.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use casebook_protocol::subject::Queue;
use casebook_protocol::{Domain, Join, Member, Role, Timestamp, between};

/// After this long without a word an instance is gone.
pub const GONE_AFTER: Duration = Duration::from_secs(15);

/// A Hub listens this long before it says who is there: everyone has spoken by then.
pub const SETTLE: Duration = Duration::from_secs(4);

/// A Hub that did not say for so long that it is awake slept itself: what it knows is of before.
pub const ASLEEP: Duration = Duration::from_secs(8);

/// So many instances of one queue are counted.
pub const INSTANCES: usize = 1024;

#[derive(Debug, Clone)]
struct Instance {
    since: Timestamp,
    seen: Timestamp,
    member: Option<Member>,
}

#[derive(Debug, Clone)]
pub struct Roster {
    protocol: u16,
    listening: Timestamp,
    awake: Option<Timestamp>,
    deaf: bool,
    seen: BTreeMap<(Role, Option<Domain>), BTreeMap<String, Instance>>,
}

/// Why a worker is not let in, or not counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    pub reason: String,
    /// Trying again is no use.
    pub for_good: bool,
}

/// An Expert says of its own domain what it sees, and nobody else does.
fn whole(join: &Join) -> bool {
    match (&join.domain, &join.member) {
        (Some(domain), Some(member)) => join.role == Role::Expert && member.domain == *domain,
        (None, None) => join.role != Role::Expert,
        _ => false,
    }
}

impl Roster {
    /// Nobody is known yet; the Hub listens from `now` on, and speaks `protocol`.
    #[must_use]
    pub const fn new(protocol: u16, now: Timestamp) -> Self {
        Self { protocol, listening: now, awake: None, deaf: false, seen: BTreeMap::new() }
    }

    /// The Hub is awake, and `hears` what is said, or does not because the server is away. To be called
    /// every few seconds: when it slept or was deaf, the silence of others says nothing, and it listens
    /// anew.
    pub fn awake(&mut self, hears: bool, now: Timestamp) {
        if !hears || self.deaf || self.sleeps(now) {
            self.listening = now;
        }
        self.deaf = !hears;
        self.awake = Some(now);
        self.forget(now);
    }

    /// Those who are gone: nothing asks for them any more, and there is no end of names.
    fn forget(&mut self, now: Timestamp) {
        self.seen.retain(|_, instances| {
            instances.retain(|_, instance| between(instance.seen, now) < GONE_AFTER);
            !instances.is_empty()
        });
    }

    fn sleeps(&self, now: Timestamp) -> bool {
        self.awake.is_some_and(|awake| between(awake, now) > ASLEEP)
    }

    /// Lets a worker in, or says why not.
    ///
    /// # Errors
    /// [`Refusal`] when it speaks another version, is no whole Expert, or sees something else than the
    /// instances of its domain that are there.
    pub fn join(&mut self, join: &Join, now: Timestamp) -> Result<(), Refusal> {
        self.fits(join)?;
        if let Some((other, stands)) = self.standing(&join.queue(), &join.instance, now)
            && join.member.as_ref() != Some(stands)
        {
            let reason = format!(
                "instance {other} of {} sees something else: instances of one domain share its work, so they must see \
                 the same; stop the others first, or give this one a domain of its own",
                join.queue().name()
            );
            return Err(Refusal { reason, for_good: false });
        }
        self.see(join, now)
    }

    /// Takes in that a worker is there, or goes.
    ///
    /// # Errors
    /// [`Refusal`] when it speaks another version, is no whole Expert, or [`INSTANCES`] of its queue are
    /// there: then nothing of it is taken in.
    pub fn see(&mut self, join: &Join, now: Timestamp) -> Result<(), Refusal> {
        self.fits(join)?;
        let instances = self.seen.entry((join.role, join.domain.clone())).or_default();
        if join.leaves {
            instances.remove(&join.instance);
            return Ok(());
        }
        if instances.len() >= INSTANCES && !instances.contains_key(&join.instance) {
            let reason = format!(
                "{} {} is one too many: no more than {INSTANCES} instances of one queue are counted",
                join.queue().name(),
                join.instance
            );
            return Err(Refusal { reason, for_good: false });
        }
        let fresh = Instance { since: now, seen: now, member: None };
        let instance = instances.entry(join.instance.clone()).or_insert(fresh);
        instance.seen = now;
        instance.member.clone_from(&join.member);
        Ok(())
    }

    /// What holds of everything that a worker says, whether it asks to be let in or says that it is there.
    fn fits(&self, join: &Join) -> Result<(), Refusal> {
        if join.protocol != self.protocol {
            let reason = format!(
                "{} {} speaks protocol version {}, this Hub speaks {}: run the same casebook everywhere",
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
            "{} {} is no whole worker: an Expert names its domain and what it sees there, and nobody else does",
            join.queue().name(),
            join.instance
        );
        Err(Refusal { reason, for_good: true })
    }

    /// What the instance of a queue that has been there longest sees, other than `besides`.
    fn standing(&self, queue: &Queue, besides: &str, now: Timestamp) -> Option<(&String, &Member)> {
        let there = self.there(queue, now).filter(|(name, _)| *name != besides);
        let (name, longest) = there.min_by_key(|(_, instance)| instance.since)?;
        Some((name, longest.member.as_ref()?))
    }

    fn there(&self, queue: &Queue, now: Timestamp) -> impl Iterator<Item = (&String, &Instance)> {
        let instances = self.seen.get(&(queue.role, queue.domain.clone())).into_iter().flatten();
        instances.filter(move |(_, instance)| between(instance.seen, now) < GONE_AFTER)
    }

    /// How many instances of a queue are there.
    pub fn instances(&self, queue: &Queue, now: Timestamp) -> usize {
        self.there(queue, now).count()
    }

    /// The Experts that can be asked, in order of domain. None while the Hub has not listened long
    /// enough to know.
    pub fn members(&self, now: Timestamp) -> Option<Vec<Member>> {
        if self.sleeps(now) || between(self.listening, now) < SETTLE {
            return None;
        }
        let queues = self.seen.keys().filter(|(role, _)| *role == Role::Expert);
        Some(
            queues
                .filter_map(|(role, domain)| self.standing(&Queue::new(*role, domain.as_ref()), "", now))
                .map(|(_, member)| member.clone())
                .collect(),
        )
    }

    /// The domains whose Expert can be asked. None while the Hub has not listened for as long as an
    /// instance may be silent, since it would miss people who are there.
    pub fn present(&self, now: Timestamp) -> Option<BTreeSet<Domain>> {
        if self.sleeps(now) || between(self.listening, now) < GONE_AFTER {
            return None;
        }
        let domains = self.seen.keys().filter_map(|(_, domain)| domain.clone());
        Some(domains.filter(|d| self.instances(&Queue::new(Role::Expert, Some(d)), now) > 0).collect())
    }

    /// Every queue with how many instances of it are there.
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
            member: Some(Member { description: sees.into(), ..member("network") }),
            leaves: false,
        }
    }

    #[test]
    fn a_worker_of_another_version_is_refused_with_both_named() {
        let mut roster = Roster::new(3, at(0));
        let refusal = roster.join(&Join { protocol: 2, ..expert("a", "x") }, at(0)).unwrap_err();
        assert!(refusal.for_good && refusal.reason.contains("version 2, this Hub speaks 3"), "{refusal:?}");
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
        assert!(refusal.reason.contains("expert-network a is no whole worker"), "{refusal:?}");
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
        assert!(!refusal.for_good && refusal.reason.contains("no more than 1024 instances"), "{refusal:?}");
        roster.see(&expert("7", "x"), at(14)).unwrap();
        roster.awake(true, at(15));
        let there: Vec<_> = roster.seen.values().flat_map(BTreeMap::keys).collect();
        assert_eq!(there, ["7"], "the silent are forgotten");
        roster.join(&expert("more", "x"), at(16)).unwrap();
        roster.awake(true, at(40));
        assert!(roster.seen.is_empty());
    }
}
