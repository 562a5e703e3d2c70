//! Tries a language model on the six tasks with the prompts, schemas and tools of an investigation. The
//! built-in analyst investigates a small log first, and the model gets the same tasks.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use casebook_agent::model::config::Config;
use casebook_agent::model::{Answered, Ask, AskError, Model, Observed};
use casebook_agent::tools::Tools;
use casebook_evidence::Declared;
use casebook_hub::{State, archive};
use casebook_protocol::{Alert, Allowance, Budget, Domain, Outcome, Role, Task, TaskId, TaskKind};
use casebook_runtime::Env;
use casebook_runtime::bus::memory::MemoryBus;
use casebook_runtime::clock::SystemClock;
use casebook_runtime::store::Store;
use tempfile::TempDir;

use crate::embedded::{self, NoObserver, Options};
use crate::failure::Failure;
use crate::home::Home;
use crate::loading::load;
use crate::reasoners::Reasoners;
use crate::roster;
use crate::stop::Stop;

pub mod advice;

const ALERT: &str = include_str!("doctor/alert.json");
const PROCESSES: &str = include_str!("doctor/endpoint_process.ndjson");
const LOGINS: &str = include_str!("doctor/auth.log");

/// Enough for a small log, and low enough to limit the cost of a model that does not stop.
const ALLOWANCE: Allowance = Allowance {
    turns: 12,
    tool_calls: 40,
    result_bytes: 1024 * 1024,
    model_calls: 16,
    tokens: 400_000,
    cost_micros: 2_000_000,
    seconds: 600,
};

#[derive(Debug, Clone)]
pub struct Heard {
    pub ask: Ask,
    pub result: Result<Answered, AskError>,
    /// Includes repeated attempts.
    pub took: Duration,
}

#[derive(Debug, Clone)]
pub struct Trial {
    pub kind: TaskKind,
    pub outcome: Outcome,
    pub heard: Vec<Heard>,
}

pub struct Bench {
    store: Arc<dyn Store>,
    tools: BTreeMap<Domain, Arc<dyn Tools>>,
    tasks: BTreeMap<TaskKind, Task>,
    _folder: TempDir,
}

impl Bench {
    /// Lets the built-in analyst investigate the small log, and keeps the first task of each kind.
    pub async fn prepare(stop: &mut Stop) -> Result<Self, Failure> {
        let folder = tempfile::tempdir().map_err(|e| Failure::write(Path::new("the temporary folder"), &e))?;
        let evidence = folder.path().join("evidence");
        std::fs::create_dir(&evidence).map_err(|e| Failure::write(&evidence, &e))?;
        for (name, text) in [("endpoint_process.ndjson", PROCESSES), ("auth.log", LOGINS)] {
            let path = evidence.join(name);
            std::fs::write(&path, text).map_err(|e| Failure::write(&path, &e))?;
        }
        let home = Home::in_memory(&folder.path().join("data"));
        let store = Arc::clone(&home.store);
        let options = Options {
            alert: Alert::parse(ALERT.as_bytes()).map_err(Failure::defect)?,
            sources: evidence.clone().into(),
            data: home.folder.clone(),
            budget: Budget { rounds: 4, ..Budget::default() },
            reasoners: Reasoners::analyst(),
        };
        let report = embedded::investigate_in(&home, options, &mut NoObserver, stop).await?;
        let state = archive::state(store.as_ref(), &report.investigation).await?;
        let catalog = load(&evidence, &home.folder, None, &Declared::default(), stop, &mut |_| {}).await?;
        let tools = roster::members(&catalog)
            .into_iter()
            .map(|team_member| (team_member.member.domain, team_member.tools))
            .collect();
        let mut tasks = BTreeMap::new();
        for kind in TaskKind::ALL {
            tasks.insert(kind, task(store.as_ref(), &state, kind, &report.investigation).await?);
        }
        Ok(Self { store, tools, tasks, _folder: folder })
    }

    /// Gives a model one task. `trial` makes the task's id unique, so that a recorded answer of another trial
    /// is not used.
    pub async fn try_on(
        &self,
        config: &Arc<Config>,
        models: &Arc<dyn Model>,
        kind: TaskKind,
        trial: u32,
    ) -> Result<Trial, Failure> {
        let task = self.tasks.get(&kind).ok_or_else(|| Failure::defect("the bench lacks a task"))?;
        let task = Task { id: TaskId::of(1_000 + trial, kind, task.domain.as_ref()), ..task.clone() };
        let heard: Arc<Mutex<Vec<Heard>>> = Arc::default();
        let noted = Arc::clone(&heard);
        let observe = move |ask: &Ask, result: &Result<Answered, AskError>, took| {
            let exchange = Heard { ask: ask.clone(), result: result.clone(), took };
            noted.lock().unwrap_or_else(PoisonError::into_inner).push(exchange);
        };
        let reasoners = Reasoners::of(Arc::clone(config), Arc::new(Observed { model: Arc::clone(models), observe }));
        let env =
            Env { bus: Arc::new(MemoryBus::default()), store: Arc::clone(&self.store), clock: Arc::new(SystemClock) };
        let worker = match kind.role() {
            Role::Director => casebook_director::actor::worker(env, reasoners.director()),
            Role::Critic => casebook_critic::actor::worker(env, reasoners.critic()),
            Role::Expert => {
                let tools = task.domain.as_ref().and_then(|domain| self.tools.get(domain));
                let tools = tools.ok_or_else(|| Failure::defect("the bench lacks tools"))?;
                casebook_expert::actor::worker(env, Arc::clone(tools), reasoners.expert())
            }
        };
        let outcome = worker.perform(&Arc::new(task)).await.map_err(Failure::defect)?;
        let heard = std::mem::take(&mut *heard.lock().unwrap_or_else(PoisonError::into_inner));
        Ok(Trial { kind, outcome, heard })
    }
}

async fn task(
    store: &dyn Store,
    state: &State,
    kind: TaskKind,
    investigation: &casebook_protocol::InvestigationId,
) -> Result<Task, Failure> {
    let lacking = || Failure::defect(format!("the built-in analyst had no {} task", kind.name()));
    let found = state.tasks_in_order().into_iter().find(|(_, task)| task.kind == kind);
    let (id, requested) = found.ok_or_else(lacking)?;
    let bytes = store.get(&requested.view).await?.ok_or_else(lacking)?;
    Ok(Task {
        id: id.clone(),
        investigation: investigation.clone(),
        domain: requested.domain.clone(),
        phase: requested.phase,
        round: requested.round,
        view: serde_json::from_slice(&bytes).map_err(Failure::defect)?,
        allowance: ALLOWANCE,
    })
}

#[cfg(test)]
mod tests;
