//! Results and parts of artifacts, which are written once. The first message of a subject counts.
//!
//! The server compares the expected sequence, which keeps later messages out. It can also refuse a first message: after a
//! change of leader, NATS 2.15.1 may drop a write and then count it as in progress for as long as that leader stays.
//! Such a message is written without an expected sequence. Then two messages may stand on one subject, in an order that is
//! the same for every reader.

use async_nats::HeaderMap;
use casebook_protocol::{ArtifactId, InvestigationId, subject};

use super::patience::Patience;
use super::{NatsStore, PENDING, TRIES, Written, packing};
use crate::nats::mac::signed;
use crate::nats::{INLINE, streams};
use crate::store::{Once, Store, StoreError};

impl NatsStore {
    pub(super) async fn record_first(
        &self,
        investigation: &InvestigationId,
        key: &str,
        bytes: &[u8],
    ) -> Result<Once, StoreError> {
        let mut headers = HeaderMap::new();
        let (headers, body) = match packing::pack(bytes, &mut headers).filter(|packed| packed.len() <= INLINE) {
            Some(packed) => (headers, packed),
            None => self.inline(bytes).await?,
        };
        let subject = subject::result(investigation, key);
        let unreadable = |reason: &str| StoreError::Unavailable {
            doing: format!("record {key} of {investigation}"),
            reason: reason.into(),
        };
        let mut expected = Some(0);
        let mut patience = Patience::until(PENDING);
        for _ in 0..TRIES {
            let written = self.write(&subject, headers.clone(), &body, expected).await?;
            if let (Written::At(_), Some(_)) = (&written, expected) {
                return Ok(Once::Recorded);
            }
            match (self.recorded(investigation, key).await?, written) {
                (Some(stands), _) if stands == bytes => return Ok(Once::Recorded),
                (Some(stands), _) => return Ok(Once::Stands(stands)),
                (None, Written::Pending) => {
                    if !patience.wait().await {
                        expected = None;
                    }
                }
                (None, _) if self.nats.signs() && signed(&subject) => {
                    // No Hub wrote what is there.
                    let stream = streams::results(subject::writer(key).as_ref());
                    expected = Some(self.first_of_hub(&stream, &subject).await?.1);
                }
                (None, _) => return Err(unreadable("the server reports that it is recorded, but does not return it")),
            }
        }
        Err(unreadable("other writers than Hubs write to it all the time; find out who, and check the permissions"))
    }

    /// The content decides the subject, so it does not matter which of two messages counts.
    pub(super) async fn write_part(
        &self,
        id: &ArtifactId,
        n: u32,
        headers: HeaderMap,
        part: &[u8],
    ) -> Result<(), StoreError> {
        let subject = subject::artifact(id, n);
        let mut expected = Some(0);
        let mut patience = Patience::until(PENDING);
        while let Written::Pending = self.write(&subject, headers.clone(), part, expected).await? {
            if self.part(id, n).await?.is_some() {
                return Ok(());
            }
            if !patience.wait().await {
                expected = None;
            }
        }
        Ok(())
    }
}
