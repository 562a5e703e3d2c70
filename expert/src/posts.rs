//! From profiles to what an Expert process works on: the evidence is loaded, and each domain becomes a
//! queue with its tools.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use casebook_agent::mcp::toolbox::Toolbox;
use casebook_agent::mind::Mind;

use casebook_protocol::subject::Queue;
use casebook_protocol::{Domain, Role};
use casebook_runtime::files::{self, ReadError};
use casebook_runtime::service::work::Post;
use casebook_runtime::service::{Failure, Service};
use tokio::sync::oneshot;

use crate::actor::{AT_ONCE, worker};
use crate::crew::{Crew, CrewError, Team, gather};
use crate::definition::Definition;
use crate::mind;
use crate::profile::{Profile, ProfileError};
use crate::roster::{Seat, seats};
use casebook_evidence::{Catalog, LoadError};

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
    /// The Experts of a team folder, or its servers, cannot be had.
    #[error("{}: {source}", file.display())]
    Crew {
        /// The profile.
        file: PathBuf,
        /// Why.
        source: CrewError,
    },
    /// There is no thread to load evidence in.
    #[error("{}: loading the evidence stopped without a reason", file.display())]
    Stopped {
        /// The profile.
        file: PathBuf,
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
        !matches!(
            self,
            Self::Stopped { .. }
                | Self::Crew { source: CrewError::Unread { .. }, .. }
                | Self::Load { source: LoadError::Read { .. } | LoadError::Write { .. }, .. }
        )
    }
}

/// Loads the evidence of `profiles` beside the event loop, so that health is answered and a signal is
/// heard meanwhile, and reaches for their servers. None when the process was asked to stop.
///
/// # Errors
/// A profile, its team folder or its evidence cannot be used, or a model has no key.
pub async fn posts(service: &Service, profiles: &[PathBuf]) -> Result<Option<(Vec<Post>, Vec<Toolbox>)>, Failure> {
    let failure = |e: PostsError| if e.usage() { Failure::usage(e) } else { Failure::failed(e) };
    let read = profiles.iter().map(|file| Read::of(file)).collect::<Result<Vec<_>, _>>().map_err(failure)?;
    let experts = || read.iter().flat_map(Read::experts);
    let models = casebook_agent::service::models(service, Role::Expert, |config| mind::seated(config, experts()))?;
    if let (None, Some(expert)) = (&models, mind::wants_model(experts())) {
        let (file, name) = (expert.file.display(), &expert.name);
        return Err(Failure::usage(format!("{file}: Expert {name} is played by a model: give --models FILE")));
    }
    let mut stop = service.stop.clone();
    let crews = tokio::select! {
        biased;
        () = stop.wait() => return Ok(None),
        crews = crews(service, &read) => crews.map_err(failure)?,
    };
    let at_once = service.at_once(AT_ONCE);
    let mut boxes = Vec::new();
    let mut posts = Vec::new();
    for crew in crews {
        boxes.push(crew.toolbox);
        for seat in crew.seats {
            let mind = mind::of(seat.definition.as_ref(), Some(seat.member.clone()), models.as_ref(), None);
            posts.push(post(seat, at_once, mind));
        }
    }
    Ok(Some((posts, boxes)))
}

fn post(seat: Seat, at_once: usize, mind: Arc<dyn Mind>) -> Post {
    let Seat { member, tools, .. } = seat;
    Post {
        queue: Queue::new(Role::Expert, Some(&member.domain)),
        member: Some(member),
        at_once,
        worker: Box::new(move |env| Arc::new(worker(env, tools, mind))),
    }
}

/// A profile with its team folder.
struct Read {
    profile: Profile,
    team: Option<Team>,
}

impl Read {
    fn of(file: &Path) -> Result<Self, PostsError> {
        let profile = Profile::parse(file, &files::text(file, "the profile")?)?;
        let team = profile.team.as_deref().map(Team::read).transpose();
        let team = team.map_err(|source| PostsError::Crew { file: file.to_path_buf(), source })?;
        Ok(Self { profile, team })
    }

    fn experts(&self) -> impl Iterator<Item = &Definition> {
        let all = self.team.as_ref().and_then(|team| team.experts.as_ref()).into_iter().flatten();
        all.filter(|e| self.profile.domains.is_empty() || self.profile.domains.contains(&e.name))
    }
}

/// Who there is for each profile, and no domain in two.
async fn crews(service: &Service, read: &[Read]) -> Result<Vec<Crew>, PostsError> {
    let mut crews: Vec<Crew> = Vec::new();
    for Read { profile, team } in read {
        let catalog = match &profile.evidence {
            Some((evidence, index)) => {
                service.health.preparing(Some(&format!("loads the evidence in {}", evidence.display())));
                Some(loaded(profile, evidence, index).await?)
            }
            None => None,
        };
        if team.is_some() {
            service.health.preparing(Some("reaches for its MCP servers"));
        }
        let crew = gather(team.as_ref(), catalog.as_ref(), &profile.domains).await;
        let crew = crew.map_err(|source| PostsError::Crew { file: profile.file.clone(), source })?;
        crew.notices.iter().for_each(|notice| tracing::warn!(notice, "of the Experts and their servers"));
        checked(profile, &crew, &crews, || offered(team.as_ref(), catalog.as_ref()))?;
        crews.push(crew);
    }
    Ok(crews)
}

/// The domains that a profile could have, in words.
fn offered(team: Option<&Team>, catalog: Option<&Arc<Catalog>>) -> String {
    let named = team.and_then(|team| team.experts.as_ref()).map(|all| all.iter().map(|e| e.name.clone()).collect());
    let seated = || catalog.map(seats).unwrap_or_default().into_iter().map(|seat| seat.member.domain).collect();
    let all: BTreeSet<Domain> = named.unwrap_or_else(seated);
    if all.is_empty() {
        return "none".into();
    }
    all.iter().map(Domain::as_str).collect::<Vec<_>>().join(", ")
}

/// The profile's domains are there, and in no other profile.
fn checked(
    profile: &Profile,
    crew: &Crew,
    others: &[Crew],
    offered: impl FnOnce() -> String,
) -> Result<(), PostsError> {
    let known: BTreeSet<&Domain> = crew.seats.iter().map(|seat| &seat.member.domain).collect();
    let file = profile.file.clone();
    if let Some(domain) = profile.domains.iter().find(|domain| !known.contains(domain)) {
        return Err(PostsError::NoDomain { file, domain: domain.clone(), known: offered() });
    }
    let mut taken = others.iter().flat_map(|crew| &crew.seats).map(|seat| &seat.member.domain);
    match taken.find(|domain| known.contains(domain)) {
        Some(domain) => Err(PostsError::Twice { file, domain: domain.clone() }),
        None => Ok(()),
    }
}

async fn loaded(profile: &Profile, evidence: &Path, index: &Path) -> Result<Arc<Catalog>, PostsError> {
    let (finish, finished) = oneshot::channel();
    let (file, evidence, index) = (profile.file.clone(), evidence.to_path_buf(), index.to_path_buf());
    let stopped = PostsError::Stopped { file: file.clone() };
    // A thread of its own: the runtime would wait for blocking work when it ends.
    let started = std::thread::Builder::new().name("evidence".into()).spawn(move || {
        // Nobody waits any more when the process was asked to stop.
        let _ = finish.send(load(&file, &evidence, &index));
    });
    match (started, finished.await) {
        (Ok(_), Ok(catalog)) => catalog.map(Arc::new),
        _ => Err(stopped),
    }
}

fn load(file: &Path, evidence: &Path, index: &Path) -> Result<Catalog, PostsError> {
    let broken = |source| PostsError::Load { file: file.to_path_buf(), source };
    Catalog::open_in(evidence, index, None, &mut |_| {}).map_err(broken)
}
