//! Programs and devices that are known by the fields of their logs (`sensors.toml`).

use std::sync::LazyLock;

use serde::Deserialize;

use super::rules::belongs;
use super::{Belongs, Facts};
use crate::source::Format;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Sensors<'t> {
    #[serde(borrow)]
    table: Vec<Known<'t>>,
    pub(super) product: Vec<Known<'t>>,
    pub(super) speaker: Vec<Speaker<'t>>,
}

/// Most records of a known log have all of `all`, and one of `any` unless `any` is empty.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Known<'t> {
    #[serde(borrow)]
    pub(super) all: Vec<&'t str>,
    #[serde(borrow, default)]
    pub(super) any: Vec<&'t str>,
    domain: Option<&'t str>,
    pub(super) sensor: &'t str,
    what: &'t str,
    #[serde(default)]
    on_host: bool,
    time: Option<&'t str>,
}

/// Programs that write to syslog.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Speaker<'t> {
    pub(super) programs: &'t str,
    pub(super) domain: &'t str,
    pub(super) sensor: &'t str,
    pub(super) what: &'t str,
    /// Has no default: a log of the subject's host must not count for a dismissal by a forgotten line.
    pub(super) on_host: bool,
}

#[allow(clippy::expect_used, reason = "the table is a constant that the tests read")]
pub(super) static SENSORS: LazyLock<Sensors<'static>> =
    LazyLock::new(|| toml::from_str(include_str!("../../sensors.toml")).expect("sensors.toml is valid"));

/// The sensor and the fields of each known log. Tests make forged logs of them.
pub fn known_fields() -> impl Iterator<Item = (&'static str, Vec<&'static str>)> {
    let all = SENSORS.product.iter().chain(&SENSORS.table);
    all.map(|known| (known.sensor, known.all.iter().chain(&known.any).copied().collect()))
}

impl Known<'static> {
    fn belongs(&self, facts: &Facts<'_>) -> Belongs {
        let fields = self.all.iter().copied().chain(facts.first(&self.any)).collect::<Vec<_>>().join(", ");
        let reason = format!("{}: it has {fields}", self.what);
        Belongs { time: self.time, ..belongs(self.domain.unwrap_or("endpoint"), self.sensor, self.on_host, reason) }
    }
}

pub(super) fn of_table(facts: &Facts<'_>) -> Option<Belongs> {
    let csv = matches!(facts.format, Format::Csv | Format::Tsv);
    // Other programs may write JSON with one or two of these fields.
    let fits = |known: &&Known<'_>| (csv || known.all.len() > 2) && facts.mostly(&known.all, &known.any);
    SENSORS.table.iter().find(fits).map(|known| known.belongs(facts))
}

pub(super) fn of_product(facts: &Facts<'_>) -> Option<Belongs> {
    let fits = |known: &&Known<'_>| facts.mostly(&known.all, &known.any);
    SENSORS.product.iter().find(fits).map(|known| known.belongs(facts))
}
