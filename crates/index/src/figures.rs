//! Numbers of an investigation that can be added up over many.

use std::collections::BTreeMap;

use casebook_protocol::{CallStatus, ModelCall, Role, ToolCall, Usage, between};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// How many findings have each label, by Expert.
    pub labels: BTreeMap<String, BTreeMap<String, u64>>,
    /// How often each rule changed a proposal.
    pub rules: BTreeMap<String, u64>,
    pub tools: BTreeMap<String, ToolFigures>,
    /// Submitted findings, and findings that a verdict rests on, by Expert.
    pub findings: BTreeMap<String, u64>,
    pub cited: BTreeMap<String, u64>,
    /// What the finished tasks of each role used.
    pub roles: BTreeMap<String, Usage>,
    /// Finished tasks by model or analyst.
    pub players: BTreeMap<String, u64>,
    /// By role, then by the name of the model.
    pub models: BTreeMap<String, BTreeMap<String, ModelFigures>>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolFigures {
    pub calls: u64,
    pub failed: u64,
    pub millis: u64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelFigures {
    pub calls: u64,
    pub failed: u64,
    pub millis: u64,
    pub usage: Usage,
}

impl Figures {
    pub(crate) fn tool_called(&mut self, call: &ToolCall) {
        let tool = self.tools.entry(call.tool.clone()).or_default();
        tool.calls += 1;
        tool.failed += u64::from(call.status == CallStatus::Failed);
        tool.millis += millis(between(call.started, call.ended));
    }

    pub(crate) fn model_called(&mut self, role: Role, call: &ModelCall) {
        let models = self.models.entry(role.name().to_owned()).or_default();
        let model = models.entry(call.model.clone()).or_default();
        model.calls += 1;
        model.failed += u64::from(call.failed.is_some());
        model.millis += millis(between(call.started, call.ended));
        model.usage += call.usage;
    }

    /// Adds the numbers of another investigation.
    pub fn add(&mut self, other: &Self) {
        for (expert, labels) in &other.labels {
            add_counts(self.labels.entry(expert.clone()).or_default(), labels);
        }
        add_counts(&mut self.rules, &other.rules);
        add_counts(&mut self.findings, &other.findings);
        add_counts(&mut self.cited, &other.cited);
        add_counts(&mut self.players, &other.players);
        for (role, usage) in &other.roles {
            *self.roles.entry(role.clone()).or_default() += *usage;
        }
        for (tool, figures) in &other.tools {
            let ours = self.tools.entry(tool.clone()).or_default();
            ours.calls += figures.calls;
            ours.failed += figures.failed;
            ours.millis += figures.millis;
        }
        for (role, models) in &other.models {
            let ours = self.models.entry(role.clone()).or_default();
            for (model, figures) in models {
                let ours = ours.entry(model.clone()).or_default();
                ours.calls += figures.calls;
                ours.failed += figures.failed;
                ours.millis += figures.millis;
                ours.usage += figures.usage;
            }
        }
    }
}

fn add_counts(ours: &mut BTreeMap<String, u64>, other: &BTreeMap<String, u64>) {
    for (name, count) in other {
        *ours.entry(name.clone()).or_default() += count;
    }
}

fn millis(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
