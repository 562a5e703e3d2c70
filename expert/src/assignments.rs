//! Turns profiles into assignments: loads the evidence, and gives each domain a queue with its tools.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use casebook_agent::mcp::toolbox::Toolbox;
use casebook_agent::reasoner::Reasoner;

use casebook_protocol::subject::Queue;
use casebook_protocol::{Domain, Role};
use casebook_runtime::files;
use casebook_runtime::service::work::Assignment;
use casebook_runtime::service::{Failure, Service};
use tokio::sync::oneshot;

use crate::actor::{AT_ONCE, worker};
use crate::definition::Definition;
use crate::profile::Profile;
use crate::reasoner;
use crate::roster::{TeamMember, members};
use crate::rules;
use crate::settings::Options;
use crate::team::{Team, TeamError, TeamFolder, gather};
use casebook_evidence::{Catalog, LoadError};

/// Loads the evidence of the profiles on another thread, so that health checks and signals work meanwhile. Connects to
/// the MCP servers. None after a request to stop.
pub async fn assignments(
    service: &Service,
    options: &Options,
) -> Result<Option<(Vec<Assignment>, Vec<Toolbox>)>, Failure> {
    let read = options.profile.iter().map(|file| Read::of(file)).collect::<Result<Vec<_>, _>>()?;
    let experts = || read.iter().flat_map(Read::experts);
    let models = casebook_agent::service::models(&options.role, Role::Expert, |config| {
        reasoner::with_expert_models(config, experts())
    })?;
    if let (None, Some(expert)) = (&models, reasoner::wants_model(experts())) {
        let (file, name) = (expert.file.display(), &expert.name);
        return Err(Failure::usage(format!("{file}: Expert {name} needs a model; give --models FILE")));
    }
    let mut stop = service.stop.clone();
    let teams = tokio::select! {
        biased;
        () = stop.wait() => return Ok(None),
        teams = teams(service, &read) => teams?,
    };
    let at_once = options.role.at_once.unwrap_or(AT_ONCE);
    let mut boxes = Vec::new();
    let mut assignments = Vec::new();
    for team in teams {
        if let Some(notice) = reasoner::unused(models.as_ref().map(|models| models.config.as_ref()), &team.members) {
            tracing::warn!(notice, "no model plays");
        }
        boxes.push(team.toolbox);
        for team_member in team.members {
            let reasoner =
                reasoner::of(team_member.definition.as_ref(), Some(team_member.member.clone()), models.as_ref(), None);
            let mut team_member = team_member;
            team_member.member.one_call = reasoner.one_call(&team_member.member);
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

struct Read {
    profile: Profile,
    team_folder: Option<TeamFolder>,
}

impl Read {
    fn of(file: &Path) -> Result<Self, Failure> {
        let text = files::text(file, "the profile").map_err(Failure::usage)?;
        let profile = Profile::parse(file, &text).map_err(Failure::usage)?;
        let team_folder = profile.team.as_deref().map(TeamFolder::read).transpose();
        let team_folder = team_folder.map_err(|error| of_team(file, &error))?;
        Ok(Self { profile, team_folder })
    }

    fn experts(&self) -> impl Iterator<Item = &Definition> {
        let all = self.team_folder.as_ref().and_then(|team_folder| team_folder.experts.as_ref()).into_iter().flatten();
        all.filter(|e| self.profile.domains.is_empty() || self.profile.domains.contains(&e.name))
    }
}

/// The team of each profile. A domain must not be in two profiles.
async fn teams(service: &Service, read: &[Read]) -> Result<Vec<Team>, Failure> {
    let mut teams: Vec<Team> = Vec::new();
    for Read { profile, team_folder } in read {
        let catalog = match &profile.evidence {
            Some((evidence, index)) => {
                service.health.preparing(Some(&format!("loading the evidence in {}", evidence.display())));
                Some(loaded(profile, evidence, index, team_folder.as_ref()).await?)
            }
            None => None,
        };
        if team_folder.is_some() {
            service.health.preparing(Some("connecting to MCP servers"));
        }
        let team = gather(team_folder.as_ref(), catalog.as_ref(), &profile.domains).await;
        let team = team.map_err(|error| of_team(&profile.file, &error))?;
        team.notices.iter().for_each(|notice| tracing::warn!(notice, "check the Experts and their servers"));
        checked(profile, &team, &teams, || offered(team_folder.as_ref(), catalog.as_ref()))?;
        teams.push(team);
    }
    Ok(teams)
}

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

fn checked(profile: &Profile, team: &Team, others: &[Team], offered: impl FnOnce() -> String) -> Result<(), Failure> {
    let known: BTreeSet<&Domain> = team.members.iter().map(|team_member| &team_member.member.domain).collect();
    let file = profile.file.display();
    if let Some(domain) = profile.domains.iter().find(|domain| !known.contains(domain)) {
        let known = offered();
        let what = format!("{file}: the evidence has no sources of domain {domain}; it has {known}");
        return Err(Failure::usage(what));
    }
    let mut taken = others.iter().flat_map(|team| &team.members).map(|team_member| &team_member.member.domain);
    match taken.find(|domain| known.contains(domain)) {
        Some(domain) => Err(Failure::usage(format!("{file}: domain {domain} is in two profiles; remove it from one"))),
        None => Ok(()),
    }
}

/// A team error as a failure: of the server if it does not answer, else of the settings.
fn of_team(file: &Path, error: &TeamError) -> Failure {
    let what = format!("{}: {error}", file.display());
    if matches!(error, TeamError::Unread { .. }) { Failure::failed(what) } else { Failure::usage(what) }
}

async fn loaded(
    profile: &Profile,
    evidence: &Path,
    index: &Path,
    team_folder: Option<&TeamFolder>,
) -> Result<Arc<Catalog>, Failure> {
    let declared = team_folder.map(|team_folder| team_folder.declared.clone()).unwrap_or_else(rules::declared);
    let (finish, finished) = oneshot::channel();
    let (evidence, index) = (evidence.to_path_buf(), index.to_path_buf());
    // A separate thread, since the runtime would wait for its blocking work at the end.
    let started = std::thread::Builder::new().name("evidence".into()).spawn(move || {
        // An error means that the process was asked to stop.
        let _ = finish.send(Catalog::declared_in(&evidence, &index, None, &declared, &mut |_| {}));
    });
    let what = |why: &dyn std::fmt::Display| format!("{}: {why}", profile.file.display());
    match (started, finished.await) {
        (Ok(_), Ok(Ok(catalog))) => Ok(Arc::new(catalog)),
        (Ok(_), Ok(Err(error @ (LoadError::Read { .. } | LoadError::Write { .. })))) => {
            Err(Failure::failed(what(&error)))
        }
        (Ok(_), Ok(Err(error))) => Err(Failure::usage(what(&error))),
        _ => Err(Failure::failed(what(&"loading the evidence stopped without a reason"))),
    }
}
