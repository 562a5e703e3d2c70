//! The settings of the process `casebook-expert`.

use casebook_runtime::service::common;
use casebook_runtime::service::key::{Key, Kind};

/// The profiles: what the process reads.
pub static PROFILE: Key = Key {
    name: "profile",
    env: "CASEBOOK_PROFILE",
    kind: Kind::Paths,
    usual: None,
    value: "FILE",
    help: "what it reads: a file with evidence and index, team, domains; may be given several times",
};

/// All of them.
pub static KEYS: [&Key; 12] = [
    &PROFILE,
    &common::NATS,
    &common::CREDENTIALS,
    &common::CA,
    &common::CERT,
    &common::TLS_KEY,
    &common::HEALTH,
    &common::DRAIN,
    &common::LOG,
    &common::OTLP,
    &casebook_agent::service::MODELS,
    &common::AT_ONCE,
];
