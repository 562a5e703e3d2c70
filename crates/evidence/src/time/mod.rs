//! When a record happened: which fields are times, what each tells, and whose clock was off.

pub(crate) mod aggregate;
pub(crate) mod clock;
pub(crate) mod epoch;
mod names;
pub(crate) mod plan;
pub(crate) mod roles;
pub(crate) mod text;
pub(crate) mod year;

pub(crate) use names::Class;
