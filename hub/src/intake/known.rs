//! Finds the investigation that an alert belongs to, from where the alert came and what was asked for with it.

use casebook_protocol::{AlertId, Budget, InvestigationId};
use uuid::Uuid;

use super::Intake;
use crate::archive;
use crate::error::HubError;
use crate::state::State;

/// The namespace of investigation ids.
const NAMESPACE: Uuid = Uuid::from_u128(0x6361_7365_626f_5f6b_8000_0000_0000_0001);

/// The id of the `n`th investigation of an alert, from 1. Every process computes the same id.
pub fn investigation_id(alert: &AlertId, n: u32) -> InvestigationId {
    // An alert id contains no line break.
    let id = Uuid::new_v5(&NAMESPACE, format!("{alert}\n{n}").as_bytes()).hyphenated().to_string();
    InvestigationId::new(id).unwrap_or_else(|_| unreachable!("a UUID in lower case is an investigation id"))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    Command,
    Http(Wish),
    Mcp,
    Nats,
}

/// What a person asks for beside the alert.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Wish {
    /// Investigate an alert again whose investigation has closed.
    pub again: bool,
    /// Limits of this investigation, in place of those of [`Settings`](super::Settings).
    pub budget: Option<Budget>,
}

impl Source {
    /// The limits that a person asked for.
    #[must_use]
    pub fn budget(self) -> Option<Budget> {
        match self {
            Self::Http(wish) => wish.budget,
            Self::Command | Self::Mcp | Self::Nats => None,
        }
    }
}

#[derive(Debug)]
pub struct Known {
    pub investigation: InvestigationId,
    pub state: Option<State>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Earlier {
    /// It used other evidence.
    Elsewhere,
    Open,
    Closed,
}

/// The position of the earlier investigation that an alert belongs to, or `None` for a new one. The same alert
/// with the same evidence is the same investigation. Only a person starts a new one after the last has closed: at
/// the command line, or in a page.
pub fn duplicate(earlier: &[Earlier], source: Source) -> Option<usize> {
    let open = earlier.iter().position(|one| *one == Earlier::Open);
    let ended = || earlier.iter().rposition(|one| *one == Earlier::Closed);
    match source {
        Source::Command | Source::Http(Wish { again: true, .. }) => open,
        Source::Http(_) | Source::Mcp | Source::Nats => open.or_else(ended),
    }
}

impl Intake {
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
