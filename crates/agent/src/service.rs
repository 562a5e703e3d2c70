//! The models of a process that plays a role.

use std::path::PathBuf;
use std::sync::Arc;

use casebook_protocol::Role;
use casebook_runtime::service::Failure;
use casebook_runtime::service::common::number;
use clap::Args;

use crate::model::brief::Brief;
use crate::model::config::{Config, NoModel};
use crate::model::open::{MODELS_ENV, Models};
use crate::model::reasoner::assign;
use crate::reasoner::{Analyst, Reasoner};

#[derive(Debug, Clone, Args)]
pub struct RoleOptions {
    /// Models file; without it the built-in analyst plays
    #[arg(long, value_name = "FILE", env = MODELS_ENV)]
    pub models: Option<PathBuf>,
    /// Most tasks at once; the default depends on the role
    #[arg(long, value_name = "N", value_parser = number::<usize>(1, 1024))]
    pub at_once: Option<usize>,
}

/// The reasoner of `role`: its models in the models file, or `analyst`.
pub fn reasoner(
    options: &RoleOptions,
    role: Role,
    brief: Arc<dyn Brief>,
    analyst: Analyst,
) -> Result<Arc<dyn Reasoner>, Failure> {
    Ok(assign(models(options, role, Ok)?.as_ref(), None, "", brief, analyst))
}

/// The models that the models file assigns to `role` after `adjust`; none without a file.
pub fn models(
    options: &RoleOptions,
    role: Role,
    adjust: impl FnOnce(Config) -> Result<Config, NoModel>,
) -> Result<Option<Models>, Failure> {
    let opened = options.models.as_deref().map(|file| Models::of_role(file, role, adjust)).transpose();
    opened.map_err(Failure::usage)
}
