//! How long to wait for a server that does not answer a read.

use std::time::Duration;

use tokio::time::Instant;

const LIMIT: Duration = Duration::from_secs(600);
const PAUSE: Duration = Duration::from_secs(1);

pub(in crate::nats) struct Patience {
    end: Instant,
    pause: Duration,
}

impl Patience {
    pub(super) fn new() -> Self {
        Self::until(LIMIT)
    }

    pub(in crate::nats) fn until(limit: Duration) -> Self {
        Self { end: Instant::now() + limit, pause: Duration::from_millis(50) }
    }

    /// False if the limit is reached.
    pub(in crate::nats) async fn wait(&mut self) -> bool {
        if Instant::now() >= self.end {
            return false;
        }
        tokio::time::sleep(self.pause).await;
        self.pause = (self.pause * 2).min(PAUSE);
        true
    }
}
