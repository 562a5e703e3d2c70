//! Numbers over all investigations.

use std::collections::BTreeMap;

use casebook_index::figures::{Figures, ToolFigures};
use casebook_protocol::{Credibility, Timestamp, Usage};
use serde::Serialize;

use crate::model::row::Row;

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Expert {
    pub findings: u64,
    /// Of reviewed findings.
    pub bands: [u64; 5],
    pub cited: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Insights {
    pub investigations: u64,
    pub closed: u64,
    pub verdicts: BTreeMap<String, u64>,
    /// Findings by credibility, the worst first.
    pub bands: [u64; 5],
    pub rules: BTreeMap<String, u64>,
    pub tools: BTreeMap<String, ToolFigures>,
    pub experts: BTreeMap<String, Expert>,
    pub roles: BTreeMap<String, Usage>,
    pub players: BTreeMap<String, u64>,
    /// Coherence of the newest closed investigations, by time.
    pub coherence: Vec<(Timestamp, String, f64)>,
}

impl Insights {
    /// `newest` are the newest investigations.
    #[must_use]
    pub fn of(figures: Figures, verdicts: BTreeMap<String, u64>, investigations: u64, newest: &[Row]) -> Self {
        let mut bands = [0; 5];
        let mut experts: BTreeMap<String, Expert> = BTreeMap::new();
        for (name, findings) in figures.findings {
            experts.entry(name).or_default().findings = findings;
        }
        for (name, cited) in figures.cited {
            experts.entry(name).or_default().cited = cited;
        }
        for (name, labels) in figures.labels {
            let expert = experts.entry(name).or_default();
            for (place, band) in Credibility::BANDS.iter().enumerate() {
                let count = labels.get(band.name()).copied().unwrap_or(0);
                for counts in [&mut expert.bands, &mut bands] {
                    counts.get_mut(place).into_iter().for_each(|sum| *sum += count);
                }
            }
        }
        let closed = newest.iter().filter_map(|row| {
            let score = row.score.map_or(0.0, |score| score.get());
            row.final_verdict().and(row.closed).map(|at| (at, row.id.to_string(), score))
        });
        let mut coherence: Vec<_> = closed.collect();
        coherence.sort_by_key(|one| one.0);
        Self {
            investigations,
            closed: verdicts.values().sum(),
            verdicts,
            bands,
            rules: figures.rules,
            tools: figures.tools,
            experts,
            roles: figures.roles,
            players: figures.players,
            coherence,
        }
    }
}
