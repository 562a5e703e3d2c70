//! Who is there: a pure fold over what workers say of themselves. A domain's Expert may run as many
//! instances, which all see the same.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use casebook_protocol::subject::Queue;
use casebook_protocol::{Domain, Join, Member, Role, Timestamp};

/// After this long without a word an instance is gone.
pub const GONE_AFTER: Duration = Duration::from_secs(15);

/// A Hub listens this long before it says who is there: everyone has spoken by then.
pub const SETTLE: Duration = Duration::from_secs(4);

#[derive(Debug, Clone)]
struct Instance {
    since: Timestamp,
    seen: Timestamp,
    member: Option<Member>,
}

/// Who is there.
#[derive(Debug, Clone)]
pub struct Roster {
    protocol: u16,
    listening: Timestamp,
    seen: BTreeMap<(Role, Option<Domain>), BTreeMap<String, Instance>>,
}

/// Why a worker is not let in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// In words.
    pub reason: String,
    /// Trying again is no use.
    pub for_good: bool,
}

fn since(then: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(now.duration_since(then)).unwrap_or(Duration::ZERO)
}

impl Roster {
    /// Nobody is known yet; the Hub listens from `now` on, and speaks `protocol`.
    #[must_use]
    pub const fn new(protocol: u16, now: Timestamp) -> Self {
        Self { protocol, listening: now, seen: BTreeMap::new() }
    }

    /// Lets a worker in, or says why not.
    ///
    /// # Errors
    /// [`Refusal`] when it speaks another version, is no whole Expert, or sees something else than the
    /// instances of its domain that are there.
    pub fn join(&mut self, join: &Join, now: Timestamp) -> Result<(), Refusal> {
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
        let whole = match (&join.domain, &join.member) {
            (Some(domain), Some(member)) => join.role == Role::Expert && member.domain == *domain,
            (None, None) => join.role != Role::Expert,
            _ => false,
        };
        if !whole {
            let reason = "an Expert names its domain and what it sees, and nobody else does".to_owned();
            return Err(Refusal { reason, for_good: true });
        }
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
        self.see(join, now);
        Ok(())
    }

    /// Takes in that a worker is there, or goes. One of another version is not counted.
    pub fn see(&mut self, join: &Join, now: Timestamp) {
        if join.protocol != self.protocol {
            return;
        }
        let instances = self.seen.entry((join.role, join.domain.clone())).or_default();
        if join.leaves {
            instances.remove(&join.instance);
            return;
        }
        let fresh = Instance { since: now, seen: now, member: None };
        let instance = instances.entry(join.instance.clone()).or_insert(fresh);
        instance.seen = now;
        instance.member.clone_from(&join.member);
    }

    /// What the instance of a queue that has been there longest sees, other than `besides`.
    fn standing(&self, queue: &Queue, besides: &str, now: Timestamp) -> Option<(&String, &Member)> {
        let there = self.there(queue, now).filter(|(name, _)| *name != besides);
        let (name, longest) = there.min_by_key(|(_, instance)| instance.since)?;
        Some((name, longest.member.as_ref()?))
    }

    fn there(&self, queue: &Queue, now: Timestamp) -> impl Iterator<Item = (&String, &Instance)> {
        let instances = self.seen.get(&(queue.role, queue.domain.clone())).into_iter().flatten();
        instances.filter(move |(_, instance)| since(instance.seen, now) < GONE_AFTER)
    }

    /// How many instances of a queue are there.
    #[must_use]
    pub fn instances(&self, queue: &Queue, now: Timestamp) -> usize {
        self.there(queue, now).count()
    }

    /// The Experts that can be asked, in order of domain. None while the Hub has not listened long
    /// enough to know.
    #[must_use]
    pub fn members(&self, now: Timestamp) -> Option<Vec<Member>> {
        if since(self.listening, now) < SETTLE {
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
    #[must_use]
    pub fn present(&self, now: Timestamp) -> Option<BTreeSet<Domain>> {
        if since(self.listening, now) < GONE_AFTER {
            return None;
        }
        let domains = self.seen.keys().filter_map(|(_, domain)| domain.clone());
        Some(domains.filter(|d| self.instances(&Queue::new(Role::Expert, Some(d)), now) > 0).collect())
    }

    /// Every queue with how many instances of it are there.
    #[must_use]
    pub fn counts(&self, now: Timestamp) -> BTreeMap<String, usize> {
        let queues = self.seen.keys().map(|(role, domain)| Queue::new(*role, domain.as_ref()));
        queues.map(|queue| (queue.name(), self.instances(&queue, now))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::{domain, member};

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
        roster.see(&Join { protocol: 2, ..expert("a", "x") }, at(0));
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
        roster.see(&Join { leaves: true, ..expert("a", "x") }, at(3));
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
        roster.see(&expert("a", "x"), at(116));
        assert!(roster.present(at(130)).unwrap().contains(&network));
        assert_eq!(roster.present(at(131)).unwrap().len(), 0);
        roster.see(&expert("a", "x"), at(140));
        assert_eq!(roster.present(at(141)).unwrap().len(), 1);
    }

    #[test]
    fn a_half_expert_is_refused() {
        let mut roster = Roster::new(3, at(0));
        assert!(roster.join(&Join { member: None, ..expert("a", "x") }, at(0)).unwrap_err().for_good);
        assert!(roster.join(&Join { role: Role::Critic, ..expert("a", "x") }, at(0)).unwrap_err().for_good);
    }
}
