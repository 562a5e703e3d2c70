//! Decides by fields and values which Expert gets a source, and what wrote it.

mod facts;
mod kinds;
mod rules;
mod sensors;

pub(crate) use facts::{Facts, hosts, plain};
pub use sensors::known_fields;

use casebook_protocol::Domain;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Belongs {
    pub(crate) domain: &'static str,
    pub(crate) reason: String,
    /// The program or device that wrote it, without the host.
    pub(crate) sensor: String,
    /// True if an ordinary process on the described host wrote the records.
    pub(crate) on_host: bool,
    /// The field with the time, if the source is a table of a tool that writes times in UTC.
    pub(crate) time: Option<&'static str>,
}

impl Belongs {
    pub(crate) fn of(facts: &Facts<'_>) -> Self {
        rules::special(facts).or_else(|| kinds::by_fields(facts)).or_else(|| kinds::by_text(facts)).unwrap_or_else(
            || Self {
                domain: "application",
                reason: "nothing in it points to another domain".into(),
                sensor: facts.format.words().replace(' ', "-").to_lowercase(),
                on_host: true,
                time: None,
            },
        )
    }

    pub(crate) fn domain(&self) -> Option<Domain> {
        Domain::new(self.domain).ok()
    }
}

#[cfg(test)]
mod tests;
