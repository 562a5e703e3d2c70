//! The evidence: a folder of log files, and the tools over it.
//!
//! [`Catalog::open`] walks the folder once, finds out what each file is by its content, and writes an
//! index: where each record stands and when it happened. The bytes stay in the files, and every answer is
//! checked against them, so that a hit is never an artefact of the index. [`EvidenceTools`] is what an
//! Expert may ask of the sources it is allowed to see.
//!
//! Nothing is skipped in silence: a file that holds no records is listed with the reason, a line that
//! does not follow its format is kept, marked and counted.

mod catalog;
mod classify;
mod detect;
mod error;
mod fields;
mod hint;
mod index;
mod load;
mod prepare;
mod profile;
mod query;
mod readings;
mod record;
mod source;
mod split;
mod text;
mod time;
mod tools;
mod walk;

pub use casebook_protocol::DOMAINS;
pub use catalog::{Catalog, index_name};
pub use error::{LoadError, ReadError};
pub use fields::payload::is_message;
pub use hint::pointed;
pub use hint::{Hint, PointedRecord};
pub use record::Record;
pub use source::{FieldProfile, Format, Place, Progress, Skipped, Source, TimeField, TimeRole, ValueCount};
pub use tools::EvidenceTools;
pub use tools::spec::about as about_logs;

#[cfg(test)]
mod tests;
