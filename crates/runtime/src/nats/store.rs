//! The [`Store`] over JetStream. A log is one subject: each message is a batch of events, appended under the expected
//! last sequence. A result is a subject that is written once. An artifact is a series of messages under its hash.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use async_nats::HeaderMap;
use async_nats::jetstream::message::{PublishMessage, StreamMessage};
use async_nats::jetstream::stream::DirectGetErrorKind;
use async_trait::async_trait;
use casebook_protocol::{ArtifactId, Event, InvestigationId, Recorded, subject};
use futures_util::StreamExt;
use futures_util::future::try_join_all;

use super::mac::{EXPECTED, signed};
use super::stream::{one, pending, taken};
use super::{Connection, INLINE, REFERENCE, reason, streams};
use crate::store::{Feed, Foreign, News, Once, Store, StoreError, follows, intact, read_events};

mod once;
pub(super) mod packing;
pub(super) mod patience;
mod tip;

use patience::Patience;
use tip::{Tip, tip_of};

/// Bytes of an artifact in one message. This must never change, since parts of two sizes do not fit together.
const PART: usize = 512 * 1024;
pub(super) const LAST: &str = "Casebook-Last";
pub(super) const HASH: &str = "Casebook-Hash";
/// Header: the number of parts of an artifact, in its first part.
const PARTS: &str = "Casebook-Parts";
/// How often to write again after a message of another writer got in between.
const TRIES: usize = 100;
/// How long to wait for a write that the server reports to be in progress.
pub(super) const PENDING: Duration = Duration::from_secs(5);
/// How long to look for an artifact.
const BEHIND: Duration = Duration::from_secs(2);
/// The most messages of one log that are listed as foreign.
const LISTED: usize = 1_000;

enum Written {
    At(u64),
    /// The subject does not end where it was expected to.
    Taken,
    /// Another write to the subject is in progress, or the subject is [`Written::Taken`]: some versions of the server give
    /// the same answer for both.
    Pending,
}

pub struct NatsStore {
    pub(super) nats: Connection,
    tips: Mutex<HashMap<InvestigationId, Tip>>,
    foreign: Mutex<HashMap<InvestigationId, Vec<Foreign>>>,
}

impl NatsStore {
    #[must_use]
    pub fn new(nats: Connection) -> Self {
        Self { nats, tips: Mutex::default(), foreign: Mutex::default() }
    }

    /// Writes a message if the last message of its subject has the sequence `expected`, or in any case if that is `None`.
    /// Waits for a server that is away or does not store. A repeated write gives [`Written::Taken`].
    async fn write(
        &self,
        subject: &str,
        mut headers: HeaderMap,
        bytes: &[u8],
        expected: Option<u64>,
    ) -> Result<Written, StoreError> {
        if let Some(expected) = expected {
            headers.insert(EXPECTED, expected.to_string().as_str());
        }
        if let Some(key) = self.nats.mac.as_ref().filter(|_| signed(subject)) {
            key.sign(subject, &mut headers, bytes);
        }
        let message = PublishMessage::build().payload(bytes::Bytes::copy_from_slice(bytes)).headers(headers);
        match self.nats.written(subject, message).await {
            Ok(ack) => Ok(Written::At(ack.sequence)),
            Err(error) if taken(&error) => Ok(Written::Taken),
            Err(error) if pending(&error) => Ok(Written::Pending),
            Err(error) => {
                let reason = self.nats.why(subject, &error);
                Err(StoreError::Unavailable { doing: format!("write to {subject}"), reason })
            }
        }
    }

    /// The first message of `subject` from `from` on, or the last one, read from the leader.
    pub(super) async fn read(
        &self,
        stream: &str,
        subject: &str,
        from: Option<u64>,
    ) -> Result<Option<StreamMessage>, StoreError> {
        let failed = |reason: String| StoreError::Unavailable { doing: format!("read {subject}"), reason };
        let api = self.nats.api(&format!("STREAM.MSG.GET.{stream}"));
        let stream = self.nats.jetstream.get_stream_no_info(stream).await.map_err(|e| failed(reason(&e)))?;
        let mut patience = Patience::new();
        loop {
            let ask = stream.raw_message_builder();
            let ask = match from {
                Some(from) => ask.sequence(from).next_by_subject(subject),
                None => ask.last_by_subject(subject),
            };
            let error = match one(ask).await {
                Ok(found) => return Ok(found),
                Err(error) => error,
            };
            if let Some(refused) = self.nats.refused.of(&api) {
                return Err(failed(refused));
            }
            if !patience.wait().await {
                return Err(failed(reason(&error)));
            }
        }
    }

    /// Stores a body that is too large for a message as an artifact, which the message names.
    async fn inline(&self, bytes: &[u8]) -> Result<(HeaderMap, Vec<u8>), StoreError> {
        let mut headers = HeaderMap::new();
        if bytes.len() <= INLINE {
            return Ok((headers, bytes.to_vec()));
        }
        headers.insert(REFERENCE, self.put(bytes).await?.as_str());
        Ok((headers, Vec::new()))
    }

    pub(super) async fn outlined(&self, subject: &str, message: &StreamMessage) -> Result<Vec<u8>, StoreError> {
        match message.headers.get(REFERENCE) {
            None => packing::unpack(&message.payload, &message.headers)
                .map_err(|reason| StoreError::Corrupt { what: format!("a message on {subject}"), reason }),
            Some(id) => self.referred(subject, id.as_str()).await,
        }
    }

    pub(super) async fn referred(&self, subject: &str, id: &str) -> Result<Vec<u8>, StoreError> {
        let corrupt = |reason: String| StoreError::Corrupt { what: format!("a message on {subject}"), reason };
        let id = ArtifactId::new(id).map_err(|e| corrupt(e.to_string()))?;
        self.get(&id).await?.ok_or_else(|| corrupt(format!("it names artifact {id}, which is not in the store")))
    }

    /// Why a message on a subject of the Hubs is not from a Hub.
    pub(super) fn foreign_reason(&self, subject: &str, message: &StreamMessage) -> Option<&'static str> {
        match &self.nats.mac {
            Some(key) => key.check(subject, &message.headers, &message.payload).err(),
            None if !subject.starts_with("casebook.log.") => None,
            None => {
                let complete = [LAST, HASH].iter().all(|name| message.headers.get(*name).is_some());
                (!complete).then_some("it has no Casebook-Last or Casebook-Hash")
            }
        }
    }

    /// The first message from a Hub on a subject of results, and the position of the last message before its end.
    async fn first_of_hub(&self, stream: &str, subject: &str) -> Result<(Option<StreamMessage>, u64), StoreError> {
        let mut at = 0;
        while let Some(message) = self.read(stream, subject, Some(at + 1)).await? {
            at = message.sequence;
            match self.foreign_reason(subject, &message) {
                None => return Ok((Some(message), at)),
                Some(reason) => tracing::warn!(subject, sequence = at, reason, "skipped a result that no Hub wrote"),
            }
        }
        Ok((None, at))
    }
}

#[async_trait]
impl Store for NatsStore {
    async fn append(
        &self,
        investigation: &InvestigationId,
        after: u64,
        entries: &[Recorded],
    ) -> Result<(), StoreError> {
        follows(investigation, after, after, entries)?;
        let Some(last) = entries.last() else { return Ok(()) };
        let known = self.tips().get(investigation).filter(|tip| tip.seq == after).cloned();
        let tip = match known {
            Some(tip) => tip,
            None => self.tip(investigation).await?,
        };
        let conflict =
            |found: u64| StoreError::Conflict { investigation: investigation.clone(), expected: after, found };
        if tip.seq != after {
            return Err(conflict(tip.seq));
        }
        let unwritable = |e: serde_json::Error| StoreError::Unavailable {
            doing: format!("append to the log of {investigation}"),
            reason: e.to_string(),
        };
        let (mut headers, body) = self.inline(&serde_json::to_vec(entries).map_err(unwritable)?).await?;
        headers.insert(LAST, last.seq.to_string().as_str());
        headers.insert(HASH, last.hash.as_str());
        let over = matches!(last.event, Event::Closed {});
        let mut at = tip.at;
        let (mut tries, mut patience) = (0, Patience::until(PENDING));
        while tries < TRIES {
            let written = self.write(&subject::log(investigation), headers.clone(), &body, Some(at)).await?;
            if let Written::At(at) = written {
                self.keep_tip(investigation, Tip { seq: last.seq, at, hash: last.hash.clone() }, over);
                return Ok(());
            }
            let found = self.tip(investigation).await?;
            self.keep_tip(investigation, found.clone(), over);
            if found.hash == last.hash {
                // Our earlier write succeeded, but its answer was lost.
                return Ok(());
            }
            if found.seq != after {
                return Err(conflict(found.seq));
            }
            if found.at != at {
                // No Hub wrote what came in between.
                at = found.at;
                tries += 1;
            } else if !matches!(written, Written::Pending) {
                return Err(conflict(found.seq));
            } else if !patience.wait().await {
                self.nats.step_down(streams::LOG).await;
                patience = Patience::until(PENDING);
            }
        }
        Err(StoreError::Unavailable {
            doing: format!("append to the log of {investigation}"),
            reason: "other writers than Hubs write to it all the time; find out who, and check the permissions".into(),
        })
    }

    async fn append_with(
        &self,
        investigation: &InvestigationId,
        after: u64,
        entries: &[Recorded],
        artifacts: &[(&ArtifactId, &[u8])],
    ) -> Result<(), StoreError> {
        try_join_all(artifacts.iter().map(|(_, bytes)| self.put(bytes))).await?;
        self.append(investigation, after, entries).await
    }

    async fn log(&self, investigation: &InvestigationId, from: u64) -> Result<Vec<Recorded>, StoreError> {
        let subject = subject::log(investigation);
        let mut log: Vec<Recorded> = Vec::new();
        let (mut end, mut foreign) = (Tip::default(), Vec::new());
        while let Some(message) = self.read(streams::LOG, &subject, Some(end.at + 1)).await? {
            if let Some(reason) = self.foreign_reason(&subject, &message) {
                end.at = message.sequence;
                if foreign.len() < LISTED {
                    foreign.push(Foreign { sequence: message.sequence, reason: reason.to_owned() });
                }
                continue;
            }
            end = tip_of(&subject, &message)?;
            if end.seq >= from {
                let bytes = self.outlined(&subject, &message).await?;
                let what = || format!("message {} on {subject}", message.sequence);
                let batch: Vec<Recorded> = read_events(what, &bytes)?;
                log.extend(batch.into_iter().filter(|entry| entry.seq >= from));
            }
        }
        let over = log.last().is_some_and(|entry| matches!(entry.event, Event::Closed {}));
        if end.at > 0 {
            self.keep_tip(investigation, end, over);
        }
        self.keep_foreign(investigation, foreign);
        Ok(log)
    }

    fn foreign(&self, investigation: &InvestigationId) -> Vec<Foreign> {
        self.skipped().get(investigation).cloned().unwrap_or_default()
    }

    async fn investigations(&self) -> Result<Vec<InvestigationId>, StoreError> {
        let failed = |reason: String| {
            // The server does not answer a user without permission.
            let refused = self.nats.refused.of(&self.nats.api(&format!("STREAM.INFO.{}", streams::LOG)));
            StoreError::Unavailable { doing: "list the investigations".into(), reason: refused.unwrap_or(reason) }
        };
        let stream = self.nats.jetstream.get_stream_no_info(streams::LOG).await.map_err(|e| failed(reason(&e)))?;
        let mut subjects = stream.info_with_subjects("casebook.log.*").await.map_err(|e| failed(reason(&e)))?;
        let mut all = Vec::new();
        while let Some(subject) = subjects.next().await {
            let (subject, _) = subject.map_err(|e| failed(reason(&e)))?;
            all.extend(subject::investigation_of_log(&subject));
        }
        all.sort();
        Ok(all)
    }

    async fn record_once(&self, investigation: &InvestigationId, key: &str, bytes: &[u8]) -> Result<Once, StoreError> {
        self.record_first(investigation, key, bytes).await
    }

    async fn record_once_with(
        &self,
        investigation: &InvestigationId,
        key: &str,
        bytes: &[u8],
        artifacts: &[(&ArtifactId, &[u8])],
    ) -> Result<Once, StoreError> {
        try_join_all(artifacts.iter().map(|(_, bytes)| self.put(bytes))).await?;
        self.record_once(investigation, key, bytes).await
    }

    async fn recorded(&self, investigation: &InvestigationId, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let subject = subject::result(investigation, key);
        let stream = streams::results(subject::writer(key).as_ref());
        let found = if self.nats.signs() && signed(&subject) {
            self.first_of_hub(&stream, &subject).await?.0
        } else {
            self.read(&stream, &subject, Some(1)).await?
        };
        match found {
            None => Ok(None),
            Some(message) => self.outlined(&subject, &message).await.map(Some),
        }
    }

    async fn put(&self, bytes: &[u8]) -> Result<ArtifactId, StoreError> {
        let id = ArtifactId::of(bytes);
        let parts: Vec<&[u8]> = if bytes.is_empty() { vec![bytes] } else { bytes.chunks(PART).collect() };
        let count = parts.len().to_string();
        // The first part is written last, so that it exists only with all others.
        for (n, part) in parts.into_iter().enumerate().rev() {
            let n = u32::try_from(n).unwrap_or(u32::MAX);
            let mut headers = HeaderMap::new();
            if n == 0 {
                headers.insert(PARTS, count.as_str());
            }
            let packed = packing::pack(part, &mut headers);
            self.write_part(&id, n, headers, packed.as_deref().unwrap_or(part)).await?;
        }
        Ok(id)
    }

    async fn get(&self, id: &ArtifactId) -> Result<Option<Vec<u8>>, StoreError> {
        // A replica that is behind may answer.
        let mut patience = Patience::until(BEHIND);
        let first = loop {
            match self.part(id, 0).await? {
                Some(first) => break first,
                None if patience.wait().await => {}
                None => return Ok(None),
            }
        };
        let corrupt = |reason: String| StoreError::Corrupt { what: format!("artifact {id}"), reason };
        let parts = first.headers.get(PARTS).and_then(|n| n.as_str().parse::<u32>().ok());
        let parts = parts.ok_or_else(|| corrupt("its first part does not give the number of parts".into()))?;
        let unpacked = |part: &StreamMessage| packing::unpack(&part.payload, &part.headers).map_err(corrupt);
        let mut bytes = unpacked(&first)?;
        for n in 1..parts {
            let part = self.part(id, n).await?.ok_or_else(|| corrupt(format!("part {n} of {parts} is missing")))?;
            bytes.extend_from_slice(&unpacked(&part)?);
        }
        intact(id, bytes).map(Some)
    }

    async fn feed(&self, after: u64) -> Result<Feed, StoreError> {
        self.page(after).await
    }

    async fn end(&self) -> Result<u64, StoreError> {
        self.last_of_all().await
    }

    async fn news(&self) -> Result<Box<dyn News>, StoreError> {
        self.listen().await
    }
}

impl NatsStore {
    async fn part(&self, id: &ArtifactId, n: u32) -> Result<Option<StreamMessage>, StoreError> {
        let failed = |reason: String| StoreError::Unavailable { doing: format!("read artifact {id}"), reason };
        let stream =
            self.nats.jetstream.get_stream_no_info(streams::ARTIFACTS).await.map_err(|e| failed(reason(&e)))?;
        let subject = subject::artifact(id, n);
        let mut patience = Patience::new();
        loop {
            let error = match stream.direct_get_builder().last_by_subject(&subject).send().await {
                Ok(message) => return Ok(Some(message)),
                Err(error) => error,
            };
            if matches!(error.kind(), DirectGetErrorKind::NotFound) {
                return Ok(None);
            }
            if !patience.wait().await {
                return Err(failed(reason(&error)));
            }
        }
    }
}
