use std::future::Future;
use std::time::Duration;

use backon::{ExponentialBuilder, Retryable};
use jiff::Timestamp;
use tokio::time::Instant;

use crate::model::Fault;

#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// The wait before the second attempt. It doubles each time, and a random part adds up to the same again.
    pub first: Duration,
    /// The longest wait, unless the provider asks for a longer one.
    pub longest: Duration,
    pub attempts: u32,
    /// How long calls wait for a provider that fails, before they fail at once.
    pub outage: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        let [longest, outage] = [Duration::from_secs(20); 2];
        Self { first: Duration::from_millis(500), longest, attempts: 6, outage }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failed {
    pub fault: Fault,
    pub passing: bool,
    /// The same would happen to every request: the provider does not work for us.
    pub general: bool,
    pub wait: Option<Duration>,
    /// What happened, without key and prompt.
    pub message: String,
}

impl Failed {
    /// A failure that a retry would repeat.
    pub fn final_(fault: Fault, message: impl Into<String>) -> Self {
        Self { fault, passing: false, general: false, wait: None, message: message.into() }
    }

    /// The same, for a failure that every request would have.
    #[must_use]
    pub fn general(self) -> Self {
        Self { general: true, ..self }
    }

    /// A failure that a retry may solve.
    pub fn passing(fault: Fault, message: impl Into<String>) -> Self {
        Self { fault, passing: true, general: true, wait: None, message: message.into() }
    }
}

/// True if a retry may solve this HTTP status: timeouts, conflicts, rate limits and server errors, Anthropic's 529
/// (overloaded) included.
pub const fn passes(status: u16) -> bool {
    matches!(status, 408 | 409 | 429 | 500..=599)
}

/// The wait of a `retry-after` header: seconds, or a date.
pub fn retry_after(value: &str, now: Timestamp) -> Option<Duration> {
    let value = value.trim();
    if let Ok(seconds) = value.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let at = jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(value).ok()?;
    Some(casebook_protocol::between(now, at))
}

/// Calls `attempt` until it succeeds, fails for good, or no other attempt fits before `deadline`. Waits that the
/// provider asks for are respected.
pub async fn attempts<T, A>(pace: Pace, deadline: Instant, attempt: impl FnMut() -> A) -> Result<T, Failed>
where
    A: Future<Output = Result<T, Failed>>,
{
    let backoff = ExponentialBuilder::new()
        .with_min_delay(pace.first)
        .with_max_delay(pace.longest)
        .with_max_times(usize::try_from(pace.attempts.saturating_sub(1)).unwrap_or(usize::MAX))
        .with_jitter();
    attempt
        .retry(backoff)
        .when(|failed: &Failed| failed.passing)
        .adjust(|failed, ours| {
            let wait = ours?.max(failed.wait.unwrap_or_default());
            // None stops, since a wait past the deadline would hide the failure.
            (wait < deadline.saturating_duration_since(Instant::now())).then_some(wait)
        })
        .await
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[test]
    fn what_may_pass_is_tried_again_and_nothing_else() {
        for status in [408, 409, 429, 500, 502, 503, 504, 529] {
            assert!(passes(status), "{status}");
        }
        for status in [301, 400, 401, 403, 404, 413, 422, 451] {
            assert!(!passes(status), "{status}");
        }
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let now: Timestamp = "2015-10-21T07:27:30Z".parse().unwrap();
        let wait = |text| retry_after(text, now);
        assert_eq!(wait("7"), Some(Duration::from_secs(7)));
        assert_eq!(wait("0.5"), Some(Duration::from_millis(500)));
        assert_eq!(wait("Wed, 21 Oct 2015 07:28:00 GMT"), Some(Duration::from_secs(30)));
        assert_eq!(wait("Wed, 21 Oct 2015 07:00:00 GMT"), Some(Duration::ZERO), "a past date means now");
        for nonsense in ["", "soon", "-3", "1e400", "inf"] {
            assert_eq!(wait(nonsense), None, "{nonsense}");
        }
    }

    fn pace() -> Pace {
        Pace { first: Duration::from_millis(1), longest: Duration::from_millis(4), attempts: 4, ..Pace::default() }
    }

    async fn run(failed: Failed, time: Duration, succeed_at: u32) -> (Result<u32, Failed>, u32) {
        let made = AtomicU32::new(0);
        let result = attempts(pace(), Instant::now() + time, || {
            let (n, failed) = (made.fetch_add(1, Ordering::Relaxed) + 1, failed.clone());
            async move { if n >= succeed_at { Ok(n) } else { Err(failed) } }
        })
        .await;
        (result, made.into_inner())
    }

    #[tokio::test]
    async fn attempts_are_counted_and_end() {
        let hour = Duration::from_secs(3600);
        let passing = Failed::passing(Fault::Unavailable, "overloaded");
        assert_eq!(run(passing.clone(), hour, 3).await, (Ok(3), 3));
        assert_eq!(run(passing.clone(), hour, 99).await, (Err(passing), 4));
        let refused = Failed::final_(Fault::Rejected, "no");
        assert_eq!(run(refused.clone(), hour, 99).await, (Err(refused), 1));
    }

    #[tokio::test]
    async fn a_wait_past_the_deadline_is_not_begun() {
        let failed = Failed { wait: Some(Duration::from_secs(600)), ..Failed::passing(Fault::Unavailable, "later") };
        assert_eq!(run(failed.clone(), Duration::from_secs(60), 99).await, (Err(failed), 1));
    }
}
