//! Writing to and reading from a stream, and the meaning of the server's errors.

use async_nats::jetstream::context::{PublishError, PublishErrorKind};
use async_nats::jetstream::message::{PublishMessage, StreamMessage};
use async_nats::jetstream::publish::PublishAck;
use async_nats::jetstream::response::Response;
use async_nats::jetstream::stream::{RawMessageBuilder, RawMessageErrorKind, WithHeaders};
use async_nats::jetstream::{Error as JetStreamError, ErrorCode};

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

    /// Asks the leader of a stream to step down. A leader that lost a write still counts it as in progress and refuses
    /// every later write to the subject; the next leader does not. Needs the permissions of a Hub.
    pub async fn step_down(&self, stream: &str) {
        tracing::warn!(
            stream,
            "the leader of this stream reports a write in progress that does not end; another is elected"
        );
        let subject = format!("STREAM.LEADER.STEPDOWN.{stream}");
        let answer: Result<Response<serde_json::Value>, _> = self.jetstream.request(subject, &()).await;
        if let Err(reason) = answer.map_err(|e| reason(&e)).and_then(|answer| match answer {
            Response::Ok(_) => Ok(()),
            Response::Err { error } => Err(error.to_string()),
        }) {
            tracing::warn!(stream, reason, "the leader of this stream did not step down");
        }
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

/// The answer of the server in an error.
fn answered(error: &PublishError) -> Option<&JetStreamError> {
    std::error::Error::source(error)?.downcast_ref()
}

/// Another message was written there before.
pub(super) fn taken(error: &PublishError) -> bool {
    matches!(error.kind(), PublishErrorKind::WrongLastSequence)
}

/// Another write to the subject, or of the same message id, is in progress. For an expected sequence of 0 some versions of
/// the server also give this answer if another message was written there before.
pub(super) fn pending(error: &PublishError) -> bool {
    let codes = [ErrorCode::STREAM_WRONG_LAST_SEQUENCE_CONSTANT, ErrorCode::STREAM_DUPLICATE_MESSAGE_CONFLICT];
    answered(error).is_some_and(|error| codes.contains(&error.error_code()))
}

/// Waiting may help: the server is away, its store is full, a cluster has no leader, or another write to the subject is
/// in progress. Servers name many reasons why they cannot store; all but a few have the status 503.
pub(super) fn waits(error: &PublishError) -> bool {
    const UNAVAILABLE: usize = 503;
    const PASSING: [ErrorCode; 7] = [
        ErrorCode::ACCOUNT_RESOURCES_EXCEEDED,
        ErrorCode::MEMORY_RESOURCES_EXCEEDED,
        ErrorCode::RAFT_GENERAL,
        ErrorCode::STORAGE_RESOURCES_EXCEEDED,
        ErrorCode::STREAM_EXPECTED_LAST_SEQ_PER_SUBJECT_NOT_READY,
        ErrorCode::STREAM_STORE_FAILED,
        ErrorCode::STREAM_TOO_MANY_REQUESTS,
    ];
    match error.kind() {
        PublishErrorKind::StreamNotFound
        | PublishErrorKind::TimedOut
        | PublishErrorKind::BrokenPipe
        | PublishErrorKind::MaxAckPending => true,
        PublishErrorKind::Other => answered(error).is_some_and(|error| {
            let passing = error.code() == UNAVAILABLE || PASSING.contains(&error.error_code());
            passing && !there_already_error(error)
        }),
        _ => false,
    }
}

/// The subject is full. In a work queue this means that the same job waits there.
pub(super) fn there_already(error: &PublishError) -> bool {
    answered(error).is_some_and(there_already_error)
}

fn there_already_error(error: &JetStreamError) -> bool {
    error.error_code() == ErrorCode::STREAM_STORE_FAILED && error.to_string().contains("per subject")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(status: usize, code: u64, words: &str) -> PublishError {
        let json = serde_json::json!({ "code": status, "err_code": code, "description": words });
        let error: JetStreamError = serde_json::from_value(json).unwrap();
        PublishError::with_source(PublishErrorKind::Other, error)
    }

    #[test]
    fn a_full_store_is_waited_for_and_a_job_that_is_there_is_not() {
        for (status, code, words, wait) in [
            (503, 10023, "insufficient resources", true),
            (500, 10047, "insufficient storage resources available", true),
            (500, 10028, "insufficient memory resources available", true),
            (400, 10002, "resource limits exceeded for account", true),
            (503, 10077, "maximum bytes exceeded", true),
            (503, 10077, "maximum messages exceeded", true),
            (503, 10077, "write x/2.blk: no space left on device", true),
            (503, 10077, "no message cache", true),
            (503, 10077, "maximum messages per subject exceeded", false),
            (400, 10054, "message size exceeds maximum allowed", false),
            (400, 10109, "invalid operation on sealed stream", false),
        ] {
            assert_eq!(waits(&error(status, code, words)), wait, "{words}");
        }
        assert!(there_already(&error(503, 10077, "maximum messages per subject exceeded")));
        assert!(!there_already(&error(503, 10077, "maximum messages exceeded")));
    }
}
