//! From profiles to what an Expert process works on: the evidence is loaded, and each domain becomes a
//! queue with its tools.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use casebook_agent::mcp::toolbox::Toolbox;
use casebook_agent::reasoner::Reasoner;

use casebook_protocol::subject::Queue;
use casebook_protocol::{Domain, Role};
use casebook_runtime::files::{self, ReadError};
use casebook_runtime::service::work::Assignment;
use casebook_runtime::service::{Failure, Service};
use tokio::sync::oneshot;

use crate::actor::{AT_ONCE, worker};
use crate::definition::Definition;
use crate::profile::{Profile, ProfileError};
use crate::reasoner;
use crate::roster::{TeamMember, members};
use crate::team::{Team, TeamError, TeamFolder, gather};
use casebook_evidence::{Catalog, LoadError};

/// Why an Expert has nothing to work on.
#[derive(Debug, thiserror::Error)]
pub enum AssignmentsError {
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
    Team {
        /// The profile.
        file: PathBuf,
        /// Why.
        source: TeamError,
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

impl AssignmentsError {
    const fn usage(&self) -> bool {
        !matches!(
            self,
            Self::Stopped { .. }
                | Self::Team { source: TeamError::Unread { .. }, .. }
                | Self::Load { source: LoadError::Read { .. } | LoadError::Write { .. }, .. }
        )
    }
}

/// Loads the evidence of `profiles` beside the event loop, so that health is answered and a signal is
/// heard meanwhile, and reaches for their servers. None when the process was asked to stop.
///
/// # Errors
/// A profile, its team folder or its evidence cannot be used, or a model has no key.
pub async fn assignments(
    service: &Service,
    profiles: &[PathBuf],
) -> Result<Option<(Vec<Assignment>, Vec<Toolbox>)>, Failure> {
    let failure = |e: AssignmentsError| if e.usage() { Failure::usage(e) } else { Failure::failed(e) };
    let read = profiles.iter().map(|file| Read::of(file)).collect::<Result<Vec<_>, _>>().map_err(failure)?;
    let experts = || read.iter().flat_map(Read::experts);
    let models = casebook_agent::service::models(service, Role::Expert, |config| {
        reasoner::with_expert_models(config, experts())
    })?;
    if let (None, Some(expert)) = (&models, reasoner::wants_model(experts())) {
        let (file, name) = (expert.file.display(), &expert.name);
        return Err(Failure::usage(format!("{file}: Expert {name} is played by a model: give --models FILE")));
    }
    let mut stop = service.stop.clone();
    let teams = tokio::select! {
        biased;
        () = stop.wait() => return Ok(None),
        teams = teams(service, &read) => teams.map_err(failure)?,
    };
    let at_once = service.at_once(AT_ONCE);
    let mut boxes = Vec::new();
    let mut assignments = Vec::new();
    for team in teams {
        boxes.push(team.toolbox);
        for team_member in team.members {
            let reasoner =
                reasoner::of(team_member.definition.as_ref(), Some(team_member.member.clone()), models.as_ref(), None);
            assignments.push(assignment(team_member, at_once, reasoner));
        }
    }
    Ok(Some((assignments, boxes)))
}

fn assignment(team_member: TeamMember, at_once: usize, reasoner: Arc<dyn Reasoner>) -> Assignment {
    let TeamMember { member, tools, .. } = team_member;
    Assignment {
        queue: Queue::new(Role::Expert, Some(&member.domain)),
        member: Some(member),
        at_once,
        worker: Box::new(move |env| Arc::new(worker(env, tools, reasoner))),
    }
}

/// A profile with its team folder.
struct Read {
    profile: Profile,
    team_folder: Option<TeamFolder>,
}

impl Read {
    fn of(file: &Path) -> Result<Self, AssignmentsError> {
        let profile = Profile::parse(file, &files::text(file, "the profile")?)?;
        let team_folder = profile.team.as_deref().map(TeamFolder::read).transpose();
        let team_folder = team_folder.map_err(|source| AssignmentsError::Team { file: file.to_path_buf(), source })?;
        Ok(Self { profile, team_folder })
    }

    fn experts(&self) -> impl Iterator<Item = &Definition> {
        let all = self.team_folder.as_ref().and_then(|team_folder| team_folder.experts.as_ref()).into_iter().flatten();
        all.filter(|e| self.profile.domains.is_empty() || self.profile.domains.contains(&e.name))
    }
}

/// Who there is for each profile, and no domain in two.
async fn teams(service: &Service, read: &[Read]) -> Result<Vec<Team>, AssignmentsError> {
    let mut teams: Vec<Team> = Vec::new();
    for Read { profile, team_folder } in read {
        let catalog = match &profile.evidence {
            Some((evidence, index)) => {
                service.health.preparing(Some(&format!("loads the evidence in {}", evidence.display())));
                Some(loaded(profile, evidence, index).await?)
            }
            None => None,
        };
        if team_folder.is_some() {
            service.health.preparing(Some("reaches for its MCP servers"));
        }
        let team = gather(team_folder.as_ref(), catalog.as_ref(), &profile.domains).await;
        let team = team.map_err(|source| AssignmentsError::Team { file: profile.file.clone(), source })?;
        team.notices.iter().for_each(|notice| tracing::warn!(notice, "of the Experts and their servers"));
        checked(profile, &team, &teams, || offered(team_folder.as_ref(), catalog.as_ref()))?;
        teams.push(team);
    }
    Ok(teams)
}

/// The domains that a profile could have, in words.
fn offered(team_folder: Option<&TeamFolder>, catalog: Option<&Arc<Catalog>>) -> String {
    let named = team_folder
        .and_then(|team_folder| team_folder.experts.as_ref())
        .map(|all| all.iter().map(|e| e.name.clone()).collect());
    let domains =
        || catalog.map(members).unwrap_or_default().into_iter().map(|team_member| team_member.member.domain).collect();
    let all: BTreeSet<Domain> = named.unwrap_or_else(domains);
    if all.is_empty() {
        return "none".into();
    }
    all.iter().map(Domain::as_str).collect::<Vec<_>>().join(", ")
}

/// The profile's domains are there, and in no other profile.
fn checked(
    profile: &Profile,
    team: &Team,
    others: &[Team],
    offered: impl FnOnce() -> String,
) -> Result<(), AssignmentsError> {
    let known: BTreeSet<&Domain> = team.members.iter().map(|team_member| &team_member.member.domain).collect();
    let file = profile.file.clone();
    if let Some(domain) = profile.domains.iter().find(|domain| !known.contains(domain)) {
        return Err(AssignmentsError::NoDomain { file, domain: domain.clone(), known: offered() });
    }
    let mut taken = others.iter().flat_map(|team| &team.members).map(|team_member| &team_member.member.domain);
    match taken.find(|domain| known.contains(domain)) {
        Some(domain) => Err(AssignmentsError::Twice { file, domain: domain.clone() }),
        None => Ok(()),
    }
}

async fn loaded(profile: &Profile, evidence: &Path, index: &Path) -> Result<Arc<Catalog>, AssignmentsError> {
    let (finish, finished) = oneshot::channel();
    let (file, evidence, index) = (profile.file.clone(), evidence.to_path_buf(), index.to_path_buf());
    let stopped = AssignmentsError::Stopped { file: file.clone() };
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

fn load(file: &Path, evidence: &Path, index: &Path) -> Result<Catalog, AssignmentsError> {
    let broken = |source| AssignmentsError::Load { file: file.to_path_buf(), source };
    Catalog::open_in(evidence, index, None, &mut |_| {}).map_err(broken)
}
