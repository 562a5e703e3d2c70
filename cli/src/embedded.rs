//! Runs an investigation in one process: the store, the bus, the Hub, the Director, the Critic, and one Expert
//! for each domain of the evidence.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use casebook_agent::mcp::toolbox::Toolbox;
use casebook_evidence::{Catalog, Hint};
use casebook_expert::analyst;
use casebook_expert::team::{self, Team};
use casebook_hub::archive::{self, Past};
use casebook_hub::intake::{Refused, Settings, Source};
use casebook_hub::{HubError, HubHandle, Intake, State};
use casebook_protocol::{Alert, Budget, InvestigationId, Member, Recorded, Report};
use casebook_runtime::Env;
use casebook_runtime::bus::memory::MemoryBus;
use casebook_runtime::bus::{Bus, Subscription};
use casebook_runtime::clock::SystemClock;
use casebook_runtime::store::Store;

use crate::failure::Failure;
use crate::home::Home;
use crate::loading::{Loading, load, whole_path};
use crate::reasoners::Reasoners;
use crate::roster::{self, TeamMember};
use crate::stop::Stop;

mod given;
pub mod service;

pub(crate) use given::team_failure;
pub use given::{Sources, TEAM_ENV, given, team, team_folder};

/// How often the Hub checks for missed notifications.
const SWEEP: Duration = Duration::from_secs(5);
/// Investigations that run at once; further alerts wait in order of severity.
const AT_ONCE: usize = 16;
const WAITING: usize = 1000;
/// How long running tasks may take to be recorded after a request to stop.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// All investigations: an id is not known before the investigation is opened.
const EVENTS: &str = "casebook.events.>";

#[derive(Clone)]
pub struct Options {
    pub alert: Alert,
    pub sources: Sources,
    pub data: PathBuf,
    pub budget: Budget,
    pub reasoners: Reasoners,
}

/// Prefix of the recorded evidence name if an MCP server has the evidence.
const SERVED: &str = "mcp:";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Begun {
    Fresh,
    Continued,
}

pub trait Observer: Send {
    fn loading(&mut self, _: &Loading) {}
    fn loaded(&mut self, _: &Catalog) {}
    /// The team is complete; its notices are worth showing.
    fn gathered(&mut self, _: &Team) {}
    fn begun(&mut self, _: &InvestigationId, _: Begun) {}
    /// Models played this investigation so far, but none are given now: the built-in analyst continues.
    fn without_models(&mut self, _: &BTreeSet<String>) {}
    /// Called once for each event that was recorded before this process began, in order.
    fn earlier(&mut self, _: &Recorded) {}
    /// Called once for each further event, in order.
    fn recorded(&mut self, _: &Recorded) {}
}

#[derive(Debug, Clone, Copy, Default)]
pub struct NoObserver;

impl Observer for NoObserver {}

/// Investigates to the end, or continues an unfinished investigation of the same alert and evidence. Call it on
/// an actix system, such as the one of [`casebook_runtime::process::run`]. Fails with `Exit::Unfinished` on a
/// request to stop.
pub async fn investigate(options: Options, observer: &mut dyn Observer, stop: &mut Stop) -> Result<Report, Failure> {
    let home = Home::open(&options.data)?;
    investigate_in(&home, options, observer, stop).await
}

/// Like [`investigate`], with an open data folder.
pub async fn investigate_in(
    home: &Home,
    options: Options,
    observer: &mut dyn Observer,
    stop: &mut Stop,
) -> Result<Report, Failure> {
    let hint = analyst::when(&options.alert);
    let (team, recorded_as) = gathered(&options.sources, home, hint, &options.reasoners, observer, stop).await?;
    let team = Engine::start(home, team, recorded_as, options.budget, &options.reasoners).await?;
    let known = team.intake.known(&options.alert.id, Source::Command).await?;
    if let Some(state) = &known.state {
        same_evidence(&known.investigation, state, &team.roster)?;
        report_models(state, &options.reasoners, observer);
    }
    let events = team.bus.subscribe(EVENTS).await.map_err(Failure::defect)?;
    let accepted = team.intake.accept(options.alert.body.as_bytes(), Source::Command).await.map_err(refused)?;
    observer.begun(&accepted.investigation, if accepted.fresh { Begun::Fresh } else { Begun::Continued });
    let working = team.intake.clone();
    tokio::spawn(async move { working.work().await });
    let ended = async { accepted.ended.await.unwrap_or(Err(HubError::Suspended)) };
    team.finish(&accepted.investigation, events, ended, observer, stop).await
}

/// Continues a stopped investigation. `moved` replaces the recorded folder of evidence and gives the team
/// folder. If it is finished, returns its report.
pub async fn resume(
    home: &Home,
    id: &InvestigationId,
    moved: &Sources,
    reasoners: &Reasoners,
    observer: &mut dyn Observer,
    stop: &mut Stop,
) -> Result<Report, Failure> {
    let Past { state, report, .. } = archive::read(home.store.as_ref(), id).await?;
    if state.closed.is_some() {
        return closed(home.store.as_ref(), report).await;
    }
    let recorded = state.case.as_ref().map(|case| case.evidence.clone()).unwrap_or_default();
    let mut sources = moved.clone();
    if sources.evidence.is_none() && !recorded.is_empty() && !recorded.starts_with(SERVED) {
        sources.evidence = Some(PathBuf::from(recorded));
    }
    let hint = state.case.as_ref().and_then(|case| analyst::when(&case.alert));
    let budget = state.case.as_ref().map(|case| case.budget).unwrap_or_default();
    let (team, evidence) = gathered(&sources, home, hint, reasoners, observer, stop).await?;
    let team = Engine::start(home, team, evidence, budget, reasoners).await?;
    let resumed = async {
        same_evidence(id, &state, &team.roster)?;
        let events = team.bus.subscribe(EVENTS).await.map_err(Failure::defect)?;
        team.hub.resume(id).await?;
        Ok(events)
    };
    let events = match resumed.await {
        Ok(events) => events,
        Err(failure) => {
            team.close().await;
            return Err(failure);
        }
    };
    observer.begun(id, Begun::Continued);
    report_models(&state, reasoners, observer);
    let hub = team.hub.clone();
    team.finish(id, events, hub.wait(id), observer, stop).await
}

/// The report, which is recorded now if a process ended between the last event and its report.
async fn closed(store: &dyn Store, report: Report) -> Result<Report, Failure> {
    archive::keep(store, &report).await?;
    Ok(report)
}

fn refused(error: Refused) -> Failure {
    match error {
        Refused::Hub(error) => error.into(),
        Refused::Alert(_) | Refused::Full { .. } => Failure::usage(error, "give one JSON object: the alert"),
    }
}

fn report_models(state: &State, reasoners: &Reasoners, observer: &mut dyn Observer) {
    let played: BTreeSet<String> = state.asked.values().map(|made| made.call.model.clone()).collect();
    if !played.is_empty() && !reasoners.has_models() {
        observer.without_models(&played);
    }
}

/// The team, and the recorded name of its evidence.
async fn gathered(
    sources: &Sources,
    home: &Home,
    hint: Option<Hint>,
    reasoners: &Reasoners,
    observer: &mut dyn Observer,
    stop: &mut Stop,
) -> Result<(Team, String), Failure> {
    let team = sources.team.as_deref();
    let evidence = sources.evidence.as_deref().map(whole_path).transpose()?;
    let declared = sources.declared();
    let catalog = match &evidence {
        None => None,
        Some(evidence) => {
            let show = &mut |loading: &Loading| observer.loading(loading);
            let catalog = load(evidence, &home.folder, hint, &declared, stop, show).await?;
            observer.loaded(&catalog);
            Some(catalog)
        }
    };
    if team.is_none() && catalog.is_none() {
        return Err(nothing());
    }
    let everyone = std::collections::BTreeSet::new();
    let mut team = tokio::select! {
        biased;
        () = stop.wait() => return Err(crate::loading::stopped()),
        team = team::gather(team, catalog.as_ref(), &everyone) => team.map_err(|e| team_failure(&e))?,
    };
    team.notices.extend(reasoners.unused(&team));
    observer.gathered(&team);
    let recorded_as = match (&evidence, &team.evidence_server) {
        (Some(folder), _) => folder.display().to_string(),
        (None, Some(server)) => format!("{SERVED}{server}"),
        (None, None) => String::new(),
    };
    Ok((team, recorded_as))
}

pub(crate) fn nothing() -> Failure {
    Failure::usage(
        "no evidence given",
        "name a folder of logs with --evidence DIR, a team folder with --team DIR, or both",
    )
}

fn same_evidence(id: &InvestigationId, state: &State, roster: &[Member]) -> Result<(), Failure> {
    match roster::difference(state.roster(), roster) {
        None => Ok(()),
        Some(why) => Err(Failure::failed(
            format!("the evidence changed since investigation {id} began: {why}"),
            "restore the original files, or investigate a copy of them in another folder as a new investigation",
        )),
    }
}

struct Engine {
    hub: HubHandle,
    bus: MemoryBus,
    store: Arc<dyn Store>,
    intake: Intake,
    roster: Vec<Member>,
    data: PathBuf,
    toolbox: Toolbox,
}

impl Engine {
    async fn start(
        home: &Home,
        team: Team,
        evidence: String,
        budget: Budget,
        reasoners: &Reasoners,
    ) -> Result<Self, Failure> {
        let mut roster: Vec<Member> = Vec::new();
        let bus = MemoryBus::default();
        let env = Env { bus: Arc::new(bus.clone()), store: Arc::clone(&home.store), clock: Arc::new(SystemClock) };
        reasoners.ready().await;
        casebook_director::actor::start_with(env.clone(), reasoners.director());
        casebook_critic::actor::start_with(env.clone(), reasoners.critic());
        for team_member in team.members {
            let TeamMember { mut member, tools, definition } = team_member;
            let domain = member.domain.clone();
            // A continued investigation may have begun with other tools or another scope.
            let reasoner = reasoners.expert_of(definition.as_ref(), Some(member.clone()));
            member.one_call = reasoner.one_call(&member);
            roster.push(member);
            casebook_expert::actor::start_with(env.clone(), &domain, tools, reasoner);
        }
        let hub = HubHandle::start(env.clone(), SWEEP);
        let settings = Settings { budget, at_once: AT_ONCE, waiting: Some(WAITING), evidence, record_first: true };
        let members = roster.clone();
        let intake = Intake::new(env, hub.clone(), settings, Arc::new(move || Some(members.clone())));
        let (store, data) = (Arc::clone(&home.store), home.folder.clone());
        Ok(Self { hub, bus, store, intake, roster, data, toolbox: team.toolbox })
    }

    /// Hands out no more tasks. Returns false if running tasks were not recorded in time.
    async fn drained(&self) -> bool {
        matches!(tokio::time::timeout(LAST_WORDS, self.intake.drain()).await, Ok(Ok(())))
    }

    /// Ends the actors and the servers of the team.
    async fn close(&self) {
        self.bus.close();
        self.toolbox.close().await;
    }

    /// Shows events until the report is complete or the user stops, and closes the team.
    async fn finish(
        self,
        id: &InvestigationId,
        events: Box<dyn Subscription>,
        ending: impl Future<Output = Result<Report, HubError>>,
        observer: &mut dyn Observer,
        stop: &mut Stop,
    ) -> Result<Report, Failure> {
        let report = self.followed(id, events, ending, observer, stop).await;
        self.close().await;
        report
    }

    async fn followed(
        &self,
        id: &InvestigationId,
        mut events: Box<dyn Subscription>,
        ending: impl Future<Output = Result<Report, HubError>>,
        observer: &mut dyn Observer,
        stop: &mut Stop,
    ) -> Result<Report, Failure> {
        tokio::pin!(ending);
        let mut next = None;
        let report = loop {
            tokio::select! {
                biased;
                () = stop.wait() => return self.suspend(id).await,
                Some(message) = events.next() => {
                    if let Ok(entry) = serde_json::from_slice::<Recorded>(&message.bytes)
                        && entry.investigation == *id
                    {
                        self.show(id, entry, &mut next, observer).await?;
                    }
                }
                report = &mut ending => break report,
                // A task whose result cannot be recorded would be tried again and again.
                error = self.store.failed() => return Err(error.into()),
            }
        };
        if matches!(report, Ok(_) | Err(HubError::NotInvestigated { .. })) {
            for entry in self.store.log(id, next.unwrap_or(u64::MAX)).await? {
                observer.recorded(&entry);
            }
        }
        report.map_err(|error| match error {
            HubError::NotInvestigated { .. } => Failure::not_investigated(error, self.again(id)),
            error => error.into(),
        })
    }

    /// Shows `entry`, and first what came before it in the log: events of an earlier process, or those that the bus lost.
    async fn show(
        &self,
        id: &InvestigationId,
        entry: Recorded,
        next: &mut Option<u64>,
        observer: &mut dyn Observer,
    ) -> Result<(), Failure> {
        let expected = next.unwrap_or(1);
        if entry.seq < expected {
            return Ok(());
        }
        if entry.seq > expected {
            let before = self.store.log(id, expected).await?;
            let before = before.iter().filter(|e| e.seq < entry.seq);
            before.for_each(|e| if next.is_none() { observer.earlier(e) } else { observer.recorded(e) });
        }
        observer.recorded(&entry);
        *next = Some(entry.seq + 1);
        Ok(())
    }

    /// Hands out no more tasks and waits a moment for running ones. Returns the report if that finished the
    /// investigation.
    async fn suspend(&self, id: &InvestigationId) -> Result<Report, Failure> {
        if !self.drained().await {
            tracing::warn!("some running tasks were not recorded; a resume repeats them");
        }
        self.bus.close();
        let past = archive::read(self.store.as_ref(), id).await?;
        if past.state.closed.is_some() {
            return closed(self.store.as_ref(), past.report).await;
        }
        let advice = format!("continue with: {}", self.again(id));
        Err(Failure::unfinished(format!("stopped; recorded results of investigation {id} are safe"), advice))
    }

    /// The command that goes on.
    fn again(&self, id: &InvestigationId) -> String {
        format!("casebook resume {id}{}", crate::commands::investigate::data_option(&self.data))
    }
}
