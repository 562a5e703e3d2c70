//! Who investigates. The program that serves the pages implements it over the roles that it runs.

use std::sync::Arc;

use async_trait::async_trait;
use casebook_protocol::{Budget, InvestigationId, Report};
use serde::Serialize;
use serde_json::Value;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Body {
    /// The name by which an alert chooses it.
    pub name: String,
    pub about: String,
    /// An upload that no alert was investigated over.
    pub removable: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Launched {
    pub investigation: InvestigationId,
    /// False if the same alert over the same evidence was there already.
    pub fresh: bool,
}

/// How an alert is to be investigated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// The name of the evidence.
    pub body: String,
    /// Also if the same alert over the same evidence was investigated, and that investigation has closed.
    pub again: bool,
    /// None: that of the server.
    pub budget: Option<Budget>,
}

/// How a finished investigation is to be repeated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repeat {
    pub investigation: InvestigationId,
    /// Rounds before this one stay as they were.
    pub from_round: u32,
    /// A model of the models file, or `analyst`, for every role; none: those that the server uses.
    pub model: Option<String>,
}

/// A repeated investigation. It is not recorded, and is forgotten when the server stops.
#[derive(Debug, Clone)]
pub struct Backtest {
    /// From 1.
    pub n: u64,
    pub repeat: Repeat,
    pub round: u32,
    /// Events so far, with those of earlier rounds.
    pub events: u64,
    pub outcome: Outcome,
}

/// Why a backtest does not begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refused {
    TooMany,
    /// The model cannot be used, and why.
    Unusable(String),
    Stopping,
}

#[derive(Debug, Clone)]
pub enum Outcome {
    Running,
    Done(Arc<Report>),
    /// What to tell the person.
    Failed(String),
}

#[async_trait]
pub trait Team: Send + Sync + 'static {
    /// The evidence that an alert can be investigated with.
    fn bodies(&self) -> Vec<Body>;

    /// Errors are messages for the person.
    async fn open(&self, alert: &[u8], wanted: Wanted) -> Result<Launched, String>;

    /// Begins a backtest, and gives its number.
    async fn repeat(&self, repeat: Repeat) -> Result<u64, Refused>;

    /// The backtests since the start of this server, without the oldest of many.
    fn backtests(&self) -> Vec<Backtest>;

    /// The models by which an investigation can be repeated.
    fn models(&self) -> Vec<String>;

    /// The most that an investigation may use.
    fn budget(&self) -> Budget;

    /// True if an alert was investigated over this upload, so that nothing can be added or removed.
    fn looked_at(&self, upload: &str) -> bool;

    /// The folder for uploads; none if this server only reads.
    fn uploads(&self) -> Option<std::path::PathBuf>;

    /// Calls a read-only evidence tool on the evidence that an investigation names.
    async fn look(&self, evidence: &str, tool: &str, arguments: &Value) -> Result<Value, String>;

    /// Settings with their values, for the page of settings. Secrets are `set` or `not set`.
    fn settings(&self) -> Vec<(String, String)>;
}
