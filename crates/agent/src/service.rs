//! A process that plays a role: the settings of its models, and what thinks in it.

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

/// The settings of a process that plays a role.
#[derive(Debug, Clone, Args)]
pub struct RoleOptions {
    /// The models file; without it the built-in analyst plays
    #[arg(long, value_name = "FILE", env = MODELS_ENV)]
    pub models: Option<PathBuf>,
    /// Tasks at once; unless set, what is usual for the role
    #[arg(long, value_name = "N", value_parser = number::<usize>(1, 1024))]
    pub at_once: Option<usize>,
}

/// Who plays `role`: its models in the models file, and `analyst` if it has none
/// or there is no file.
///
/// # Errors
/// The models file cannot be used, or a key is missing.
pub fn reasoner(
    options: &RoleOptions,
    role: Role,
    brief: Arc<dyn Brief>,
    analyst: Analyst,
) -> Result<Arc<dyn Reasoner>, Failure> {
    Ok(assign(models(options, role, Ok)?.as_ref(), None, "", brief, analyst))
}

/// The models that the models file assigns to `role`, after `adjust` changed the choice; none without
/// a file.
///
/// # Errors
/// The models file cannot be used, or a key is missing.
pub fn models(
    options: &RoleOptions,
    role: Role,
    adjust: impl FnOnce(Config) -> Result<Config, NoModel>,
) -> Result<Option<Models>, Failure> {
    let opened = options.models.as_deref().map(|file| Models::of_role(file, role, adjust)).transpose();
    opened.map_err(Failure::usage)
}
