//! A process that plays a role: the settings of its models, and what thinks in it.

use std::sync::Arc;

use casebook_protocol::Role;
use casebook_runtime::service::common::{AT_ONCE, CA, CERT, CREDENTIALS, DRAIN, HEALTH, LOG, NATS, OTLP, TLS_KEY};
use casebook_runtime::service::key::{Key, Kind};
use casebook_runtime::service::{Failure, Service};

use crate::model::brief::Brief;
use crate::model::config::{Config, NoModel};
use crate::model::open::{MODELS_ENV, Models};
use crate::model::reasoner::assign;
use crate::reasoner::{Analyst, Reasoner};

/// The models file.
pub static MODELS: Key = Key {
    name: "models",
    env: MODELS_ENV,
    kind: Kind::Path,
    usual: None,
    value: "FILE",
    help: "the models file; without it the built-in analyst plays",
};
/// The settings of a process that plays a role.
pub static KEYS: [&Key; 11] =
    [&NATS, &CREDENTIALS, &CA, &CERT, &TLS_KEY, &HEALTH, &DRAIN, &LOG, &OTLP, &MODELS, &AT_ONCE];

/// Who plays `role`: its models in the models file, and `analyst` if it has none
/// or there is no file.
///
/// # Errors
/// The models file cannot be used, or a key is missing.
pub fn reasoner(
    service: &Service,
    role: Role,
    brief: Arc<dyn Brief>,
    analyst: Analyst,
) -> Result<Arc<dyn Reasoner>, Failure> {
    Ok(assign(models(service, role, Ok)?.as_ref(), None, "", brief, analyst))
}

/// The models that the models file assigns to `role`, after `adjust` changed the choice; none without
/// a file.
///
/// # Errors
/// The models file cannot be used, or a key is missing.
pub fn models(
    service: &Service,
    role: Role,
    adjust: impl FnOnce(Config) -> Result<Config, NoModel>,
) -> Result<Option<Models>, Failure> {
    let opened = service.settings.path(&MODELS).map(|file| Models::of_role(file, role, adjust)).transpose();
    opened.map_err(Failure::usage)
}
