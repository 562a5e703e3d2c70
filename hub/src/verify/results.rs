//! Compares the recorded results of calls and tasks with the events that they became.

use casebook_protocol::hash::sha256_hex;
use casebook_protocol::key::{call_key, model_key, outcome_key};
use casebook_protocol::{Event, InvestigationId, ModelCall, Recorded, ToolCall};
use casebook_runtime::store::Store;
use casebook_runtime::stored;

use super::Verification;
use crate::error::HubError;

impl Verification {
    pub(super) async fn results(
        &mut self,
        store: &dyn Store,
        investigation: &InvestigationId,
        log: &[Recorded],
    ) -> Result<(), HubError> {
        for entry in log {
            let key = match &entry.event {
                Event::CallRecorded { call, .. } => call_key(&call.id),
                Event::ModelCalled { call, .. } => model_key(&call.id),
                Event::TaskAnswered { task, outcome: Some(_), .. }
                | Event::TaskFailed { task, outcome: Some(_), .. } => outcome_key(task),
                // A failure without a player was decided by the Hub, and has no outcome.
                Event::TaskAnswered { outcome: None, .. }
                | Event::TaskFailed { player: Some(_), outcome: None, .. } => {
                    self.unhashed += 1;
                    continue;
                }
                _ => continue,
            };
            let before = self.problems.len();
            let row = self.row(store, investigation, Some(entry.seq), &key).await?;
            match row {
                Some(row) if became(&row, &entry.event) => self.results += 1,
                Some(_) => self.problem(Some(entry.seq), format!("{key} is not what was recorded in the log")),
                None if self.problems.len() == before => {
                    self.problem(Some(entry.seq), format!("{key} is named in the log and not in the store"));
                }
                None => {}
            }
        }
        Ok(())
    }
}

fn became(row: &[u8], event: &Event) -> bool {
    match event {
        Event::CallRecorded { call, .. } => stored::read::<ToolCall>(row).is_ok_and(|row| row == *call),
        Event::ModelCalled { call, .. } => stored::read::<ModelCall>(row).is_ok_and(|row| row == *call),
        Event::TaskAnswered { outcome, .. } | Event::TaskFailed { outcome, .. } => {
            outcome.as_ref().is_some_and(|outcome| sha256_hex(row) == *outcome)
        }
        _ => true,
    }
}
