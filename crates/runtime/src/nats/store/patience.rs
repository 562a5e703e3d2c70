//! How long to wait for a server that does not answer a read.

use std::time::Duration;

use tokio::time::Instant;

const LIMIT: Duration = Duration::from_secs(600);
const PAUSE: Duration = Duration::from_secs(1);

pub(super) struct Patience {
    end: Instant,
    pause: Duration,
}

impl Patience {
    pub(super) fn new() -> Self {
        Self { end: Instant::now() + LIMIT, pause: Duration::from_millis(50) }
    }

    /// False if the limit is reached.
    pub(super) async fn wait(&mut self) -> bool {
        if Instant::now() >= self.end {
            return false;
        }
        tokio::time::sleep(self.pause).await;
        self.pause = (self.pause * 2).min(PAUSE);
        true
    }
}
