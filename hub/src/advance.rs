//! One pass, a pure function: commands become events, then the flow advances until it waits for an outcome. The
//! caller stores views first, then events, then enqueues tasks.

use casebook_protocol::{
    ArtifactId, Domain, Event, InvestigationId, Recorded, Task, TaskId, TaskKind, Timestamp, View,
};

use crate::decide::{Command, Rejection, decide};
use crate::flow::{self, Next};
use crate::state::State;
use crate::view;

#[derive(Debug)]
pub struct Advanced {
    pub state: State,
    pub recorded: Vec<Recorded>,
    /// Store these as artifacts before `recorded`.
    pub views: Vec<(ArtifactId, Vec<u8>)>,
    /// Enqueue these after `recorded` is stored.
    pub tasks: Vec<Task>,
    /// One for each command.
    pub answers: Vec<Result<(), Rejection>>,
    /// The flow requested something that the state does not allow: a bug.
    pub defect: Option<String>,
}

/// Applies `commands` in order. If `onward` is set, advances the flow afterwards.
pub fn advance(
    state: State,
    investigation: &InvestigationId,
    commands: &[Command],
    now: Timestamp,
    onward: bool,
) -> Advanced {
    let mut pass = Pass {
        investigation,
        now,
        out: Advanced { state, recorded: vec![], views: vec![], tasks: vec![], answers: vec![], defect: None },
    };
    for command in commands {
        let answer = pass.take(command);
        pass.out.answers.push(answer);
    }
    while onward && pass.out.defect.is_none() {
        let steps = flow::next(&pass.out.state);
        if steps.is_empty() {
            break;
        }
        pass.request(steps);
    }
    pass.out
}

struct Pass<'a> {
    investigation: &'a InvestigationId,
    now: Timestamp,
    out: Advanced,
}

impl Pass<'_> {
    fn take(&mut self, command: &Command) -> Result<(), Rejection> {
        for event in decide(&self.out.state, command)? {
            self.record(event);
        }
        Ok(())
    }

    fn record(&mut self, event: Event) {
        let last = self.out.state.last.as_ref().map(|(seq, hash)| (*seq, hash.as_str()));
        let entry = Recorded::after(self.investigation, last, self.now, event);
        self.out.state.apply(&entry);
        self.out.recorded.push(entry);
    }

    /// Requests the steps of the flow. Tasks are built after all requests, because they share the rest of the
    /// budget.
    fn request(&mut self, steps: Vec<Next>) {
        let mut requested = Vec::new();
        for step in steps {
            let done = match &step {
                Next::StartRound { phase, round } => {
                    self.take(&Command::StartRound { phase: *phase, round: *round }).map_err(|r| r.to_string())
                }
                Next::ReviewNothing => self.take(&Command::ReviewNothing).map_err(|r| r.to_string()),
                Next::Pause => self.take(&Command::Pause).map_err(|r| r.to_string()),
                Next::Close => self.take(&Command::Close).map_err(|r| r.to_string()),
                Next::Request { kind, domain } => self.view(*kind, domain.as_ref()).map(|task| requested.push(task)),
            };
            if let Err(why) = done {
                self.out.defect = Some(format!("the flow requested {step:?}, but {why}"));
                return;
            }
        }
        let tasks = requested.into_iter().filter_map(|(id, view)| view::task(&self.out.state, &id, view));
        self.out.tasks.extend(tasks);
    }

    fn view(&mut self, kind: TaskKind, domain: Option<&Domain>) -> Result<(TaskId, View), String> {
        let view = view::build(&self.out.state, kind, domain).ok_or("there is nothing to show")?;
        let bytes = serde_json::to_vec(&view).map_err(|e| e.to_string())?;
        let id = ArtifactId::of(&bytes);
        self.take(&Command::RequestTask { kind, domain: domain.cloned(), view: id.clone() })
            .map_err(|r| r.to_string())?;
        self.out.views.push((id, bytes));
        Ok((TaskId::of(self.out.state.round, kind, domain), view))
    }
}
