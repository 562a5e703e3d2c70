//! Which Expert a source belongs to, and what wrote it: by the fields and values it holds.

mod facts;
mod kinds;
mod rules;

pub(crate) use facts::{Facts, hosts};

use casebook_protocol::Domain;

/// Where a source belongs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Belongs {
    pub(crate) domain: &'static str,
    pub(crate) reason: String,
    /// What wrote it, without the host.
    pub(crate) sensor: String,
    /// An ordinary process on the host that the records describe wrote them.
    pub(crate) on_host: bool,
}

impl Belongs {
    /// Sorts a source.
    pub(crate) fn of(facts: &Facts<'_>) -> Self {
        rules::special(facts).or_else(|| kinds::by_fields(facts)).or_else(|| kinds::by_text(facts)).unwrap_or_else(
            || Self {
                domain: "application",
                reason: "nothing in it points to another domain".into(),
                sensor: facts.format.words().replace(' ', "-").to_lowercase(),
                on_host: true,
            },
        )
    }

    /// The domain as the protocol spells it; none never happens for the names above.
    pub(crate) fn domain(&self) -> Option<Domain> {
        Domain::new(self.domain).ok()
    }
}

#[cfg(test)]
mod tests;
