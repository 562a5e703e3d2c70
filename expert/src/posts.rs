//! From profiles to what an Expert process works on: the evidence is loaded, and each domain becomes a
//! queue with its tools.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use casebook_agent::mind::{Analyst, Mind};
use casebook_agent::model::open::{self, ReadError};
use casebook_agent::service::work::Post;
use casebook_agent::service::{Failure, Service};
use casebook_protocol::subject::Queue;
use casebook_protocol::{Domain, Role};
use tokio::sync::oneshot;

use crate::actor::{AT_ONCE, worker};
use crate::analyst;
use crate::bound::Bound;
use crate::brief::ExpertBrief;
use crate::evidence::{Catalog, LoadError};
use crate::profile::{Profile, ProfileError};
use crate::roster::{Seat, seats};

/// Why an Expert has nothing to work on.
#[derive(Debug, thiserror::Error)]
pub enum PostsError {
    /// A profile is not read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A profile does not hold.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// Two profiles name the same domain.
    #[error("{}: domain {domain} is in another profile, too: each domain has one body of evidence", file.display())]
    Twice {
        /// The second profile.
        file: PathBuf,
        /// The domain.
        domain: Domain,
    },
    /// The evidence has no such domain.
    #[error("{}: the evidence has no sources of domain {domain}; it has {known}", file.display())]
    NoDomain {
        /// The profile.
        file: PathBuf,
        /// The domain.
        domain: Domain,
        /// What it has.
        known: String,
    },
    /// The evidence cannot be loaded.
    #[error("{}: {source}", file.display())]
    Load {
        /// The profile.
        file: PathBuf,
        /// Why.
        source: LoadError,
    },
}

impl PostsError {
    /// Whether the profile is wrong, and not the machine.
    const fn usage(&self) -> bool {
        !matches!(self, Self::Load { source: LoadError::Read { .. } | LoadError::Write { .. }, .. })
    }
}

/// Loads the evidence of `profiles` beside the event loop, so that health is answered and a signal is
/// heard meanwhile. None when the process was asked to stop.
///
/// # Errors
/// A profile or its evidence cannot be used, or a model has no key.
pub async fn posts(service: &Service, profiles: &[PathBuf]) -> Result<Option<Vec<Post>>, Failure> {
    let mind = service.mind(Role::Expert, Arc::new(ExpertBrief), Analyst(analyst::think))?;
    let (finish, finished) = oneshot::channel();
    let (profiles, health) = (profiles.to_vec(), service.health.clone());
    // A thread of its own: the runtime would wait for blocking work when it ends.
    let started = std::thread::Builder::new().name("evidence".into()).spawn(move || {
        let mut say = |what: &str| health.preparing(Some(what));
        // Nobody waits any more when the process was asked to stop.
        let _ = finish.send(all_seats(&profiles, &mut say));
    });
    started.map_err(|e| Failure::failed(format!("cannot start a thread: {e}")))?;
    let mut stop = service.stop.clone();
    let loaded = tokio::select! {
        biased;
        () = stop.wait() => return Ok(None),
        loaded = finished => loaded.map_err(|_| Failure::failed("loading the evidence stopped without a reason"))?,
    };
    let seats = loaded.map_err(|e| if e.usage() { Failure::usage(e) } else { Failure::failed(e) })?;
    let at_once = service.at_once(AT_ONCE);
    Ok(Some(seats.into_iter().map(|seat| post(seat, at_once, Arc::clone(&mind))).collect()))
}

fn post(seat: Seat, at_once: usize, mind: Arc<dyn Mind>) -> Post {
    let Seat { member, tools } = seat;
    let mind: Arc<dyn Mind> = Arc::new(Bound { member: member.clone(), mind });
    Post {
        queue: Queue::new(Role::Expert, Some(&member.domain)),
        member: Some(member),
        at_once,
        worker: Box::new(move |env| worker(env, tools, mind)),
    }
}

fn all_seats(profiles: &[PathBuf], say: &mut dyn FnMut(&str)) -> Result<Vec<Seat>, PostsError> {
    let mut all: Vec<Seat> = Vec::new();
    for file in profiles {
        let profile = Profile::parse(file, &open::text(file, "the profile")?)?;
        say(&format!("loads the evidence in {}", profile.evidence.display()));
        for seat in of_profile(&profile)? {
            if all.iter().any(|other| other.member.domain == seat.member.domain) {
                return Err(PostsError::Twice { file: file.clone(), domain: seat.member.domain });
            }
            all.push(seat);
        }
    }
    Ok(all)
}

fn of_profile(profile: &Profile) -> Result<Vec<Seat>, PostsError> {
    let file = || profile.file.clone();
    let seats = seats(&Arc::new(load(profile)?));
    let known: BTreeSet<&Domain> = seats.iter().map(|seat| &seat.member.domain).collect();
    if let Some(domain) = profile.domains.iter().find(|domain| !known.contains(domain)) {
        let known = known.iter().map(|domain| domain.as_str()).collect::<Vec<_>>().join(", ");
        return Err(PostsError::NoDomain { file: file(), domain: domain.clone(), known });
    }
    let asked = |seat: &Seat| profile.domains.is_empty() || profile.domains.contains(&seat.member.domain);
    Ok(seats.into_iter().filter(asked).collect())
}

fn load(profile: &Profile) -> Result<Catalog, PostsError> {
    let broken = |source| PostsError::Load { file: profile.file.clone(), source };
    Catalog::open_in(&profile.evidence, &profile.index, &mut |_| {}).map_err(broken)
}
