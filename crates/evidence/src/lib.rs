//! The evidence: a folder of log files, and tools to search it.
//!
//! [`Catalog::open`] reads the folder once, detects the format of each file, and writes an index with the place
//! and time of each record. The bytes stay in the files, and every answer is checked against them.
//! [`EvidenceTools`] are the tools of an Expert for the sources that it may see.
//!
//! Every file is accounted for: a file without records is listed with the reason. A line that does not follow
//! the format is kept, marked and counted.

mod acts;
mod answers;
mod catalog;
mod classify;
mod collection;
mod coverage;
mod declared;
mod detect;
mod encoded;
mod error;
pub mod facet;
mod fields;
pub mod formats;
mod hint;
mod index;
pub mod kept;
mod load;
mod meet;
mod prepare;
mod private;
mod profile;
pub mod programs;
mod query;
mod readings;
mod record;
pub mod rules;
mod source;
mod split;
mod text;
mod time;
mod tools;
mod walk;

pub use casebook_protocol::DOMAINS;
pub use catalog::Catalog;
pub use classify::known_fields;
pub use declared::{Declared, FilePattern, Origin, SourceRule, Zone, counted};
pub use encoded::decodings;
pub use error::{LoadError, ReadError};
pub use fields::payload::is_message;
pub use hint::pointed;
pub use hint::{Hint, PointedRecord};
pub use record::Record;
pub use source::{FieldProfile, Format, Place, Progress, Skipped, Source, TimeField, TimeRole, ValueCount};
pub use tools::EvidenceTools;
pub use tools::spec::about as about_logs;

/// The first call of a program that reads evidence. Parquet files are read by another process of the same program; if this
/// process is one, it has done its work, and the program must end with the code.
pub fn serve_reader() -> Option<std::process::ExitCode> {
    #[cfg(feature = "parquet")]
    return text::parquet::serve();
    #[cfg(not(feature = "parquet"))]
    None
}

#[cfg(test)]
mod tests;
