//! When to start a server again that ended by itself.

use std::time::{Duration, Instant};

/// A server that ran for this long had no trouble to start.
const STEADY: Duration = Duration::from_secs(60);
/// The first and the longest pause; before the first, it starts at once.
const PAUSE: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(5));
/// Ends in a row after which to give up.
const TRIES: u32 = 8;

#[derive(Debug, Default)]
pub(crate) struct Again {
    tries: u32,
    last: Option<Instant>,
}

impl Again {
    /// How long to wait before the next start; `None` to give up.
    pub(crate) fn after(&mut self, now: Instant) -> Option<Duration> {
        if self.last.is_some_and(|last| now.saturating_duration_since(last) >= STEADY) {
            self.tries = 0;
        }
        self.last = Some(now);
        self.tries += 1;
        match self.tries {
            1 => Some(Duration::ZERO),
            tries if tries <= TRIES => Some((PAUSE.0 * 2_u32.pow(tries - 2)).min(PAUSE.1)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_starts_at_once_then_later_and_gives_up_in_the_end() {
        let (mut again, start) = (Again::default(), Instant::now());
        let mut pauses = Vec::new();
        while let Some(pause) = again.after(start) {
            pauses.push(pause.as_millis());
        }
        assert_eq!(pauses, [0, 250, 500, 1000, 2000, 4000, 5000, 5000]);
        assert_eq!(again.after(start + STEADY), Some(Duration::ZERO), "it ran well in between");
    }
}
