//! The field names of many products for each facet (`facets.toml`).

use std::sync::LazyLock;

use serde::Deserialize;

use super::{Facet, last};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table<'t> {
    #[serde(borrow)]
    facet: Vec<Names<'t>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Names<'t> {
    facet: Facet,
    names: &'t str,
}

#[allow(clippy::expect_used, reason = "the table is a constant that the tests read")]
static ALL: LazyLock<Vec<(Facet, Vec<&'static str>)>> = LazyLock::new(|| {
    let table: Table<'static> = toml::from_str(include_str!("../../facets.toml")).expect("facets.toml is valid");
    table.facet.into_iter().map(|known| (known.facet, known.names.split_whitespace().collect())).collect()
});

/// For each facet the field names, best first. A name is the last part of a path or the last two parts, in lower
/// case, with only letters, digits and the dot.
pub(super) fn all() -> &'static [(Facet, Vec<&'static str>)] {
    &ALL
}

pub(crate) fn of(wanted: Facet) -> &'static [&'static str] {
    all().iter().find(|(facet, _)| *facet == wanted).map_or(&[], |(_, names)| names)
}

/// The facet of a field, by the last `parts` parts of its path.
pub fn facet_of(path: &str, parts: usize) -> Option<Facet> {
    let name = last(path, parts);
    all().iter().find(|(_, names)| names.contains(&name.as_str())).map(|(facet, _)| *facet)
}
