//! Investigates for the pages: one team for each body of evidence, started at its first alert.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use casebook_api::team::{Backtest, Body, Launched, Refused, Repeat, Team, Wanted};
use casebook_evidence::{Catalog, EvidenceTools};
use casebook_hub::archive;
use casebook_hub::intake::{Source, Wish};
use casebook_protocol::Budget;
use casebook_runtime::process::blocking;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use crate::embedded::Sources;
use crate::embedded::service::{Options, Service};
use crate::failure::Failure;
use crate::home::Home;
use crate::loading::{index_folder, whole_path};
use crate::reasoners::Reasoners;
use crate::stop::Stop;
use backtests::Backtests;

mod backtests;

/// Requests that wait for the thread of the actors.
const WAITING: usize = 64;
/// The name of the evidence that the command names.
const GIVEN: &str = "evidence";
const UPLOADS: &str = "uploads";
const ENDED: &str = "the server is stopping";

pub struct Setup {
    pub sources: Sources,
    pub models: Reasoners,
    pub budget: Budget,
}

enum Request {
    Open {
        alert: Vec<u8>,
        wanted: Wanted,
        reply: oneshot::Sender<Result<Launched, String>>,
    },
    /// Runs the backtest with this number.
    Repeat {
        n: u64,
        repeat: Repeat,
        reasoners: Reasoners,
    },
}

/// What pages ask. The work itself is done by [`Work`].
pub struct Desk {
    data: PathBuf,
    given: Sources,
    budget: Budget,
    reasoners: Reasoners,
    requests: mpsc::Sender<Request>,
    /// Evidence that was looked at, by folder.
    open: Mutex<BTreeMap<PathBuf, Arc<Catalog>>>,
    used: Used,
    backtests: Arc<Backtests>,
}

/// The bodies of evidence over which an alert was investigated.
type Used = Arc<Mutex<BTreeSet<String>>>;

pub struct Work {
    used: Used,
    backtests: Arc<Backtests>,
    home: Home,
    setup: Setup,
    requests: mpsc::Receiver<Request>,
    teams: BTreeMap<String, Service>,
}

impl Desk {
    #[must_use]
    pub fn new(home: Home, setup: Setup) -> (Arc<Self>, Work) {
        let (requests, received) = mpsc::channel(WAITING);
        let desk = Self {
            data: home.folder.clone(),
            given: setup.sources.clone(),
            budget: setup.budget,
            reasoners: setup.models.clone(),
            requests,
            open: Mutex::default(),
            used: Used::default(),
            backtests: Arc::default(),
        };
        let (used, backtests) = (Arc::clone(&desk.used), Arc::clone(&desk.backtests));
        (Arc::new(desk), Work { used, backtests, home, setup, requests: received, teams: BTreeMap::new() })
    }

    fn opened(&self) -> MutexGuard<'_, BTreeMap<PathBuf, Arc<Catalog>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn ask(&self, request: Request) -> Result<(), String> {
        self.requests.send(request).await.map_err(|_| ENDED.to_owned())
    }

    fn has_team(&self) -> bool {
        self.given.evidence.is_some() || self.given.team.is_some()
    }

    async fn catalog(&self, folder: &Path) -> Result<Arc<Catalog>, String> {
        let known = self.opened().get(folder).cloned();
        if let Some(known) = known {
            let renewed = blocking(move || known.renewed()).await;
            let catalog = renewed.map_err(|e| e.to_string())?.map_err(|e| e.to_string())?;
            self.opened().insert(folder.to_path_buf(), Arc::clone(&catalog));
            return Ok(catalog);
        }
        let (folder, index, declared) = (folder.to_path_buf(), index_folder(&self.data), self.given.declared());
        let place = folder.clone();
        let loaded = blocking(move || Catalog::declared_in(&folder, &index, None, &declared, &mut |_| {})).await;
        let loaded = loaded.map_err(|e| e.to_string())?.map_err(|e| e.to_string())?;
        let catalog = Arc::new(loaded);
        self.opened().insert(place, Arc::clone(&catalog));
        Ok(catalog)
    }
}

/// The folder of an uploaded body of evidence.
#[must_use]
pub fn upload_folder(data: &Path, name: &str) -> PathBuf {
    data.join(UPLOADS).join(name)
}

#[async_trait]
impl Team for Desk {
    fn bodies(&self) -> Vec<Body> {
        if !self.has_team() {
            return Vec::new();
        }
        let about = self.given.evidence.as_ref().map_or_else(
            || "the servers of the team folder".to_owned(),
            |folder| {
                folder
                    .file_name()
                    .map_or_else(|| "the given folder".into(), |name| format!("the folder {}", name.to_string_lossy()))
            },
        );
        let mut all = vec![Body { name: GIVEN.to_owned(), about, removable: false }];
        let uploads = std::fs::read_dir(self.data.join(UPLOADS)).into_iter().flatten().flatten();
        let folders = uploads.filter(|entry| entry.path().is_dir());
        let mut names: Vec<String> = folders.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.retain(|name| !name.starts_with('.'));
        names.sort();
        all.extend(names.into_iter().map(|name| {
            let removable = !self.looked_at(&name);
            Body { about: "uploaded files".into(), name, removable }
        }));
        all
    }

    async fn open(&self, alert: &[u8], wanted: Wanted) -> Result<Launched, String> {
        let (reply, answer) = oneshot::channel();
        self.ask(Request::Open { alert: alert.to_vec(), wanted, reply }).await?;
        answer.await.map_err(|_| ENDED)?
    }

    async fn repeat(&self, repeat: Repeat) -> Result<u64, Refused> {
        let reasoners = match &repeat.model {
            None => self.reasoners.clone(),
            Some(name) => {
                let chosen = self.reasoners.with_model(name, self.given.team.as_deref());
                chosen.map_err(|f| Refused::Unusable(f.what))?
            }
        };
        // With a place in the queue, nothing waits between the beginning and the work.
        let place = self.requests.reserve().await.map_err(|_| Refused::Stopping)?;
        let n = self.backtests.begin(repeat.clone()).ok_or(Refused::TooMany)?;
        place.send(Request::Repeat { n, repeat, reasoners });
        Ok(n)
    }

    fn backtests(&self) -> Vec<Backtest> {
        self.backtests.all()
    }

    fn models(&self) -> Vec<String> {
        self.reasoners.names()
    }

    fn budget(&self) -> Budget {
        self.budget
    }

    fn looked_at(&self, upload: &str) -> bool {
        self.used.lock().unwrap_or_else(PoisonError::into_inner).contains(upload)
    }

    fn uploads(&self) -> Option<PathBuf> {
        self.has_team().then(|| self.data.join(UPLOADS))
    }

    async fn look(&self, evidence: &str, tool: &str, arguments: &Value) -> Result<Value, String> {
        let recorded = PathBuf::from(evidence);
        if !recorded.is_dir() {
            return Err("the evidence is not in a folder of this machine".to_owned());
        }
        let catalog = self.catalog(&recorded).await?;
        let sources: Vec<String> = catalog.sources().iter().map(|source| source.id.clone()).collect();
        let (tools, tool, arguments) = (EvidenceTools::new(catalog, &sources), tool.to_owned(), arguments.to_string());
        let answer = blocking(move || tools.call(&tool, &arguments)).await.map_err(|e| e.to_string())??;
        serde_json::from_str(&answer).map_err(|e| e.to_string())
    }

    fn settings(&self) -> Vec<(String, String)> {
        let budget = &self.budget;
        let row = |name: &str, value: String| (name.to_owned(), value);
        vec![
            row(
                "Who thinks",
                if self.reasoners.has_models() {
                    "models of the models file".into()
                } else {
                    "the built-in analyst".into()
                },
            ),
            row("Investigates", if self.has_team() { "yes".into() } else { "no: this server only reads".into() }),
            row("Model calls", budget.model_calls.to_string()),
            row("Tool calls", budget.tool_calls.to_string()),
            row("Tokens", budget.tokens.to_string()),
            row("Cost", casebook_report::words::money(budget.cost_micros)),
            row("Rounds", budget.rounds.to_string()),
            row("Working time", format!("{} min", budget.seconds / 60)),
        ]
    }
}

impl Work {
    /// Continues what was stopped, and opens investigations until the user stops. Then records what runs.
    pub async fn run(mut self, stop: &mut Stop) {
        if let Err(failure) = self.go_on(stop).await {
            tracing::warn!(why = failure.what, "stopped investigations are not continued");
        }
        loop {
            tokio::select! {
                biased;
                () = stop.wait() => break,
                Some(request) = self.requests.recv() => match request {
                    Request::Open { alert, wanted, reply } => {
                        let opened = self.open(&alert, &wanted, stop).await;
                        // The page that asked may be gone; the investigation goes on.
                        let _ = reply.send(opened);
                    }
                    Request::Repeat { n, repeat, reasoners } => {
                        let home = Home::with(&self.home.folder, Arc::clone(&self.home.store));
                        // The evidence is that of the investigation.
                        let sources = Sources { evidence: None, ..self.setup.sources.clone() };
                        let (backtests, stop) = (Arc::clone(&self.backtests), stop.clone());
                        tokio::task::spawn_local(async move {
                            backtests.run(n, &repeat, &home, &sources, &reasoners, stop).await;
                        });
                    }
                }
            }
        }
        for team in self.teams.values() {
            team.suspend().await;
        }
    }

    /// Starts the teams whose evidence has open investigations; they continue them.
    async fn go_on(&mut self, stop: &mut Stop) -> Result<(), Failure> {
        let given = self.setup.sources.evidence.as_deref().map(whole_path).transpose()?;
        if given.is_none() && self.setup.sources.team.is_none() {
            return Ok(());
        }
        let uploads = whole_path(&self.home.folder)?.join(UPLOADS);
        let all = archive::summaries(self.home.store.as_ref()).await?;
        for one in all {
            let place = Path::new(&one.evidence);
            let upload = place.strip_prefix(&uploads).ok().and_then(Path::to_str).filter(|name| !name.contains('/'));
            let body = match upload {
                Some(name) => name,
                None if given.as_deref() == Some(place) => GIVEN,
                None => continue,
            };
            self.used.lock().unwrap_or_else(PoisonError::into_inner).insert(body.to_owned());
            if one.closed.is_none()
                && one.trouble.is_none()
                && let Err(why) = self.team(body, stop).await
            {
                tracing::warn!(why, body, "stopped investigations are not continued");
            }
        }
        Ok(())
    }

    fn sources(&self, body: &str) -> Result<Sources, String> {
        if body == GIVEN {
            return Ok(self.setup.sources.clone());
        }
        let folder = upload_folder(&self.home.folder, body);
        let plain = body.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
        if !plain || !folder.is_dir() {
            return Err(format!("no evidence is named {body:?}; choose one from the list"));
        }
        Ok(Sources { evidence: Some(folder), ..self.setup.sources.clone() })
    }

    /// The team for a body of evidence, which is started if it is not.
    async fn team(&mut self, body: &str, stop: &mut Stop) -> Result<&Service, String> {
        if !self.teams.contains_key(body) {
            let sources = self.sources(body)?;
            let options = Options { sources, budget: self.setup.budget, reasoners: self.setup.models.clone() };
            let started = Service::start(&self.home, options, stop).await;
            self.teams.insert(body.to_owned(), started.map_err(|f| format!("{}; {}", f.what, f.advice))?);
        }
        Ok(self.teams.get(body).ok_or("the team has ended")?)
    }

    async fn open(&mut self, alert: &[u8], wanted: &Wanted, stop: &mut Stop) -> Result<Launched, String> {
        // From here on, nothing can be added to the evidence.
        self.used.lock().unwrap_or_else(PoisonError::into_inner).insert(wanted.body.clone());
        let team = self.team(&wanted.body, stop).await?;
        let wish = Wish { again: wanted.again, budget: wanted.budget };
        let accepted = team.intake.accept(alert, Source::Http(wish)).await.map_err(|e| e.to_string())?;
        Ok(Launched { investigation: accepted.investigation, fresh: accepted.fresh })
    }
}
