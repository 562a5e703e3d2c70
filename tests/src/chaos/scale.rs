//! How work scales with Experts: the same queue of alerts for teams with more and more Experts of one domain, with a slow
//! model. The checks of the chaos runs find what is lost or done twice.

use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, Instant};

use casebook_protocol::{InvestigationId, Report, Severity, TaskKind, subject};

use super::Order;
use super::run::{Rig, Survived};
use crate::Result;
use crate::team::{Part, key};

/// The only domain with Experts.
pub const DOMAIN: &str = "network";

/// What a team with so many Experts did.
#[derive(Debug)]
pub struct Scaled {
    pub experts: usize,
    /// Seconds from the first alert to each report, in order.
    pub reports: Vec<(Severity, f64)>,
    /// Model calls of each Expert.
    pub calls: Vec<usize>,
    /// Model and tool calls, and those that were made more than once.
    pub made: [usize; 2],
    pub lost: usize,
    pub faults: Vec<String>,
}

/// Runs a team with so many Experts. The number of Experts in `order` does not matter.
pub fn run(order: &Order, experts: usize) -> Result<Scaled> {
    let mut order = order.clone();
    order.shape.parts = vec![(Part::Hub, 1), (Part::Director, 1), (Part::Critic, 1), (Part::Expert, experts)];
    order.shape.domain = Some(DOMAIN.into());
    order.shape.at_once = Some(order.investigations.max(64));
    let mut rig = Rig::start(&order)?;
    let alerts = (0..order.investigations).map(|n| rig.alert(n)).collect::<Result<Vec<_>>>()?;
    let reports = rig.runtime.block_on(investigate(&rig, alerts, order.patience))?;
    let mut survived = Survived::default();
    let open = rig.settle(order.patience, Duration::from_secs(1));
    survived.faults.extend(open);
    survived.faults.extend(rig.team.ended());
    rig.check(&mut survived)?;
    Ok(Scaled {
        experts,
        lost: order.investigations.saturating_sub(reports.len()),
        reports,
        calls: calls(&rig),
        made: [survived.models.finished + survived.tools.finished, survived.models.again + survived.tools.again],
        faults: survived.faults,
    })
}

async fn investigate(rig: &Rig, alerts: Vec<Vec<u8>>, patience: Duration) -> Result<Vec<(Severity, f64)>> {
    let mut reports = rig.connection.env().bus.subscribe(subject::REPORTS).await?;
    let (all, begun) = (alerts.len(), Instant::now());
    for alert in alerts {
        rig.publisher.store(subject::ALERTS, alert).await?;
    }
    let mut seen: BTreeMap<InvestigationId, (Severity, f64)> = BTreeMap::new();
    while seen.len() < all {
        let left = patience.saturating_sub(begun.elapsed());
        let Ok(Some(message)) = tokio::time::timeout(left, reports.next()).await else { break };
        let report: Report = serde_json::from_slice(&message.bytes)?;
        // A report is published at least once.
        let at = begun.elapsed().as_secs_f64();
        seen.entry(report.investigation).or_insert((report.alert.severity, at));
    }
    let mut reports: Vec<(Severity, f64)> = seen.into_values().collect();
    reports.sort_by(|a, b| a.1.total_cmp(&b.1));
    Ok(reports)
}

fn calls(rig: &Rig) -> Vec<usize> {
    let entries = rig.team.model.log().ledger();
    let experts = rig.team.members.iter().filter(|member| member.part == Part::Expert);
    let of = |name: &str| {
        let key = key(name);
        entries.iter().filter(|entry| entry.kind == Some(TaskKind::Investigate) && entry.key == key).count()
    };
    experts.map(|member| of(&member.name)).collect()
}

pub const HEAD: &str = "| Experts | all reports after | reports a minute | first report | median, critical | median, low | calls of each Expert | calls | made again | lost |\n|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|";

impl Scaled {
    /// The median of the seconds to a report.
    fn median(&self, severity: Severity) -> f64 {
        let of: Vec<f64> = self.reports.iter().filter(|(other, _)| *other == severity).map(|(_, at)| *at).collect();
        of.get(of.len() / 2).copied().unwrap_or(f64::NAN)
    }
}

impl fmt::Display for Scaled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let last = self.reports.last().map_or(f64::NAN, |(_, at)| *at);
        let first = self.reports.first().map_or(f64::NAN, |(_, at)| *at);
        let a_minute = self.reports.len() as f64 / last * 60.0;
        let (least, most) = (self.calls.iter().min().unwrap_or(&0), self.calls.iter().max().unwrap_or(&0));
        let (critical, low) = (self.median(Severity::Critical), self.median(Severity::Low));
        let [made, again] = self.made;
        write!(
            f,
            "| {} | {last:.0} s | {a_minute:.1} | {first:.0} s | {critical:.0} s | {low:.0} s | {least} to {most} | {made} | {again} | {} |",
            self.experts, self.lost
        )
    }
}
