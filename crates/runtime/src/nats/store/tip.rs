//! The ends of logs, and the messages in them that no Hub wrote.

use std::collections::HashMap;
use std::sync::{MutexGuard, PoisonError};

use async_nats::jetstream::message::StreamMessage;
use casebook_protocol::{InvestigationId, subject};

use super::{HASH, LAST, NatsStore};
use crate::nats::streams;
use crate::store::{Foreign, StoreError};

/// The end of a log. `at` is the position of the last message on its subject in the stream, also if no Hub wrote it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Tip {
    pub(super) seq: u64,
    pub(super) at: u64,
    pub(super) hash: String,
}

impl NatsStore {
    pub(super) fn tips(&self) -> MutexGuard<'_, HashMap<InvestigationId, Tip>> {
        self.tips.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) async fn tip(&self, investigation: &InvestigationId) -> Result<Tip, StoreError> {
        let subject = subject::log(investigation);
        match self.read(streams::LOG, &subject, None).await? {
            None => return Ok(Tip::default()),
            Some(message) if self.foreign_reason(&subject, &message).is_none() => return tip_of(&subject, &message),
            Some(_) => {}
        }
        // The log ends before messages that no Hub wrote.
        let mut tip = self.tips().get(investigation).cloned().unwrap_or_default();
        while let Some(message) = self.read(streams::LOG, &subject, Some(tip.at + 1)).await? {
            tip = match self.foreign_reason(&subject, &message) {
                None => tip_of(&subject, &message)?,
                Some(_) => Tip { at: message.sequence, ..tip },
            };
        }
        Ok(tip)
    }

    pub(super) fn skipped(&self) -> MutexGuard<'_, HashMap<InvestigationId, Vec<Foreign>>> {
        self.foreign.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps what was skipped, and warns of each message once.
    pub(super) fn keep_foreign(&self, investigation: &InvestigationId, found: Vec<Foreign>) {
        let mut all = self.skipped();
        let known = all.get(investigation).and_then(|known| known.last()).map_or(0, |last| last.sequence);
        for Foreign { sequence, reason } in found.iter().filter(|foreign| foreign.sequence > known) {
            tracing::warn!(%investigation, sequence, reason, "skipped a message in the log that no Hub wrote");
        }
        if found.is_empty() {
            all.remove(investigation);
        } else {
            all.insert(investigation.clone(), found);
        }
    }

    pub(super) fn keep_tip(&self, investigation: &InvestigationId, tip: Tip, over: bool) {
        let mut tips = self.tips();
        if over {
            tips.remove(investigation);
        } else {
            tips.insert(investigation.clone(), tip);
        }
    }
}

pub(super) fn tip_of(subject: &str, message: &StreamMessage) -> Result<Tip, StoreError> {
    let header = |name: &str| message.headers.get(name).map(|value| value.as_str().to_owned());
    let seq = header(LAST).and_then(|text| text.parse().ok());
    match (seq, header(HASH)) {
        (Some(seq), Some(hash)) => Ok(Tip { seq, at: message.sequence, hash }),
        _ => Err(StoreError::Corrupt {
            what: format!("message {} on {subject}", message.sequence),
            reason: format!("its headers {LAST} and {HASH} are missing: no Hub wrote it"),
        }),
    }
}
