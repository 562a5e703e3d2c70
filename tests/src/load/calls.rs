//! The calls of one investigation for a bare client: the request bodies of an embedded investigation in the
//! order of its flow, and the tool calls that code made in addition.

use std::collections::HashMap;

use casebook_protocol::{Report, TaskKind, ToolCall};
use serde::{Deserialize, Serialize};

use crate::model::capture::Captured;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// The Expert whose tools it uses; `None` for tools that read the record, which a bare client does not
    /// have.
    pub domain: Option<String>,
    pub bodies: Vec<String>,
    /// Calls that code repeats before the answer counts: tool and arguments.
    pub again: Vec<(String, String)>,
}

/// Stages follow one another; the parts of a stage run at once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Calls {
    pub stages: Vec<Vec<Part>>,
}

/// A part with its task, once a request names it.
type Named = (Part, Option<String>);

impl Calls {
    /// The calls of an investigation, from the model's requests and the report.
    pub fn of(captured: &[Captured], report: &Report) -> Self {
        let mut places: HashMap<u64, (usize, usize)> = HashMap::new();
        let mut stages: Vec<(Option<TaskKind>, Vec<Named>)> = Vec::new();
        for request in captured {
            let (stage, part) = *places.entry(request.place.0).or_insert_with(|| {
                let beside = request.kind == Some(TaskKind::Investigate)
                    && stages.last().is_some_and(|(kind, _)| *kind == request.kind);
                if !beside {
                    stages.push((request.kind, Vec::new()));
                }
                (stages.len() - 1, stages.last().map_or(0, |(_, parts)| parts.len()))
            });
            let Some((_, parts)) = stages.get_mut(stage) else { continue };
            parts.resize(parts.len().max(part + 1), Named::default());
            if let Some((part, task)) = parts.get_mut(part) {
                part.bodies.push(String::from_utf8_lossy(&request.request.bytes).into_owned());
                *task = task.take().or_else(|| request.task.clone());
            }
        }
        let finish = |(mut part, task): Named| {
            let calls = report.calls.iter().filter(|call| task.as_deref() == Some(task_of(call)));
            for call in calls {
                part.domain = part.domain.or_else(|| call.domain.as_ref().map(ToString::to_string));
                if is_again(call) {
                    part.again.push((call.tool.clone(), call.arguments.clone()));
                }
            }
            part
        };
        Self { stages: stages.into_iter().map(|(_, parts)| parts.into_iter().map(finish).collect()).collect() }
    }

    /// Model calls that must follow one another: the minimum for any client.
    pub fn depth(&self) -> u64 {
        self.stages.iter().map(|parts| parts.iter().map(|p| p.bodies.len() as u64).max().unwrap_or(0)).sum()
    }

    pub fn model_calls(&self) -> u64 {
        self.stages.iter().flatten().map(|part| part.bodies.len() as u64).sum()
    }
}

fn task_of(call: &ToolCall) -> &str {
    call.id.as_str().rsplitn(3, '.').nth(2).unwrap_or_default()
}

/// Whether code made the call to check a citation: its turn is higher than those of the model.
fn is_again(call: &ToolCall) -> bool {
    let turn = call.id.as_str().rsplit('.').nth(1).and_then(|turn| turn.strip_prefix('t'));
    turn.and_then(|turn| turn.parse::<u32>().ok()).is_some_and(|turn| turn > 1000)
}
