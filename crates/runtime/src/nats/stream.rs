//! Writing to and reading from a stream, and the meaning of the server's errors.

use async_nats::jetstream::ErrorCode;
use async_nats::jetstream::context::{PublishError, PublishErrorKind};
use async_nats::jetstream::message::{PublishMessage, StreamMessage};
use async_nats::jetstream::publish::PublishAck;
use async_nats::jetstream::stream::{RawMessageBuilder, RawMessageErrorKind, WithHeaders};

use super::{Connection, reason};

impl Connection {
    pub(super) async fn published(&self, subject: &str, message: PublishMessage) -> Result<PublishAck, PublishError> {
        self.jetstream.send_publish(subject.to_owned(), message).await?.await
    }

    /// Why a publish failed. A missing permission is only visible in the refusals.
    pub(super) fn why(&self, subject: &str, error: &PublishError) -> String {
        self.refused.of(subject).unwrap_or_else(|| reason(error))
    }

    /// The last message of `subject`, read from the leader of the stream.
    pub(super) async fn last_of(&self, stream: &str, subject: &str) -> Result<Option<StreamMessage>, String> {
        let stream = self.jetstream.get_stream_no_info(stream).await.map_err(|e| reason(&e))?;
        one(stream.raw_message_builder().last_by_subject(subject)).await.map_err(|e| reason(&e))
    }
}

pub(super) async fn one(
    asked: RawMessageBuilder<WithHeaders>,
) -> Result<Option<StreamMessage>, async_nats::jetstream::stream::RawMessageError> {
    match asked.send().await {
        Ok(message) => Ok(Some(message)),
        Err(error) if matches!(error.kind(), RawMessageErrorKind::NoMessageFound) => Ok(None),
        Err(error) => Err(error),
    }
}

fn code(error: &PublishError) -> Option<ErrorCode> {
    let source = std::error::Error::source(error)?;
    source.downcast_ref::<async_nats::jetstream::Error>().map(async_nats::jetstream::Error::error_code)
}

/// Another message was written there before. Servers since 2.12 use another code for an expected sequence of 0.
pub(super) fn taken(error: &PublishError) -> bool {
    matches!(error.kind(), PublishErrorKind::WrongLastSequence)
        || code(error) == Some(ErrorCode::STREAM_WRONG_LAST_SEQUENCE_CONSTANT)
}

/// A retry may help: the server is away, a cluster has no leader, or another write to the subject is in progress.
pub(super) fn passing(error: &PublishError) -> bool {
    const PASSING: [ErrorCode; 6] = [
        ErrorCode::CLUSTER_INCOMPLETE,
        ErrorCode::CLUSTER_NOT_AVAILABLE,
        ErrorCode::CLUSTER_NOT_LEADER,
        ErrorCode::RAFT_GENERAL,
        ErrorCode::STREAM_EXPECTED_LAST_SEQ_PER_SUBJECT_NOT_READY,
        ErrorCode::STREAM_TOO_MANY_REQUESTS,
    ];
    match error.kind() {
        PublishErrorKind::StreamNotFound
        | PublishErrorKind::TimedOut
        | PublishErrorKind::BrokenPipe
        | PublishErrorKind::MaxAckPending => true,
        PublishErrorKind::Other => code(error).is_some_and(|code| PASSING.contains(&code)),
        _ => false,
    }
}

/// The subject is full. In a work queue this means that the same job waits there.
pub(super) fn there_already(error: &PublishError) -> bool {
    full(error) && reason(error).contains("per subject")
}

pub(super) fn full(error: &PublishError) -> bool {
    code(error) == Some(ErrorCode::STREAM_STORE_FAILED) && reason(error).contains("maximum")
}
