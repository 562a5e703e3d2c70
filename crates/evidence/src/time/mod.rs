//! Finds the time of records: which fields are times, what each means, and which clocks were wrong.

pub(crate) mod aggregate;
pub(crate) mod clock;
pub(crate) mod epoch;
pub(crate) mod names;
pub(crate) mod plan;
pub(crate) mod roles;
pub(crate) mod text;
pub(crate) mod year;
pub(crate) mod zone;

pub(crate) use names::Class;
