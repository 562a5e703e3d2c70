//! Which investigation an alert belongs to: the rule for duplicates.

use casebook_protocol::{AlertId, InvestigationId};
use uuid::Uuid;

use super::{Intake, Source};
use crate::archive;
use crate::error::HubError;
use crate::state::State;

/// Names are made under this one, so that an id is the same wherever it is made.
const NAMESPACE: Uuid = Uuid::from_u128(0x6361_7365_626f_5f6b_8000_0000_0000_0001);

/// The id of the `n`th investigation of an alert, from 1: the same wherever it is made.
pub fn investigation_id(alert: &AlertId, n: u32) -> InvestigationId {
    // No alert id holds a line break.
    let id = Uuid::new_v5(&NAMESPACE, format!("{alert}\n{n}").as_bytes()).hyphenated().to_string();
    InvestigationId::new(id).unwrap_or_else(|_| unreachable!("a UUID in lower case is an investigation id"))
}

#[derive(Debug)]
pub struct Known {
    pub investigation: InvestigationId,
    /// Its state; none if it is new.
    pub state: Option<State>,
}

/// What is known of an earlier investigation of the same alert.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Earlier {
    /// It was over other evidence.
    Elsewhere,
    Open,
    Closed,
}

/// The rule for duplicates. The same alert over the same evidence is the same investigation, ended or not. Only a
/// person who runs the command again asks for a new one once the last has ended.
///
/// Gives the position of the earlier investigation that is meant, or none for a new one.
pub fn duplicate(earlier: &[Earlier], source: Source) -> Option<usize> {
    let open = earlier.iter().position(|one| *one == Earlier::Open);
    let ended = || earlier.iter().rposition(|one| *one == Earlier::Closed);
    match source {
        Source::Command => open,
        Source::Mcp | Source::Nats => open.or_else(ended),
    }
}

impl Intake {
    /// The investigation that this alert belongs to.
    pub async fn known(&self, alert: &AlertId, source: Source) -> Result<Known, HubError> {
        let (mut earlier, mut states) = (Vec::new(), Vec::new());
        for n in 1.. {
            let state = archive::replay(self.env.store.as_ref(), &investigation_id(alert, n)).await?;
            let Some(case) = &state.case else { break };
            earlier.push(match state.closed {
                _ if case.evidence != self.settings.evidence => Earlier::Elsewhere,
                None => Earlier::Open,
                Some(_) => Earlier::Closed,
            });
            states.push(state);
        }
        let at = duplicate(&earlier, source);
        let n = u32::try_from(at.unwrap_or(states.len())).unwrap_or(u32::MAX).saturating_add(1);
        let state = at.map(|at| states.swap_remove(at));
        Ok(Known { investigation: investigation_id(alert, n), state })
    }
}
