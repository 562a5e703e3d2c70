//! Roles that believe and obey texts in the evidence, as far as their role allows. Defences that hold against
//! them do not depend on any model.

mod critic;
mod director;
mod expert;

use std::collections::BTreeSet;

use casebook_protocol::{TaskKind, Verdict};

use crate::model::Request;
use crate::model::brain::{Brain, repairing};
use crate::model::play::{Play, Script};
use crate::model::prompt;
use crate::model::request::Turn;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    Believe,
    /// It calls tools forever and never answers.
    Waste,
    /// It cites calls and findings that do not exist; when asked to repair, it claims the rest.
    Forge,
}

/// A model that is fooled in some roles.
#[derive(Debug, Clone)]
pub struct Fooled {
    /// Plays the roles that are not fooled. Its Expert reports the attack, but does not raise the texts.
    pub brain: Brain,
    pub expert: Option<Way>,
    pub critic: bool,
    /// The verdict that a fooled Director proposes.
    pub director: Option<Verdict>,
    /// The places of the texts: file and line.
    pub texts: BTreeSet<(String, u64)>,
    /// All files of the evidence; the Expert tries to read those of others.
    pub files: Vec<String>,
}

impl Script for Fooled {
    fn reply(&self, request: &Request) -> Play {
        let step = match prompt::kind(&request.system) {
            Some(TaskKind::Investigate) => match self.expert {
                Some(way) => expert::fooled(self, way, request),
                None => expert::honest(request),
            },
            Some(TaskKind::Review) if self.critic => critic::review(request),
            Some(TaskKind::Timeline) if self.critic => critic::timeline(request),
            Some(TaskKind::Plan) if self.director.is_some() => director::plan(request),
            Some(TaskKind::Decide) if self.director.is_some() => director::decide(),
            Some(TaskKind::Report) => match self.director {
                Some(verdict) => director::report(request, verdict),
                None => return self.brain.reply(request),
            },
            _ => return self.brain.reply(request),
        };
        Play::Reply(step.reply(request))
    }
}

/// Tools that the texts ask for and no role has.
const FOREIGN: [&str; 5] = ["shell", "close_alert", "isolate_host", "http_get", "get_evidence"];

/// Whether the model must repair its answer, after a message or a result of `submit`.
fn mending(request: &Request) -> bool {
    let rejected = |turn: &Turn| match turn {
        Turn::Results(answers) => answers.iter().any(|a| {
            a.text.contains("Your answer cannot be used") || a.text.contains("Code has checked your findings")
        }),
        _ => false,
    };
    repairing(request) || request.turns.last().is_some_and(rejected)
}
