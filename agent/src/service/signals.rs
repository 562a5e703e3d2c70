//! SIGTERM and Ctrl-C: the first asks to drain, the second ends the process at once.

use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// Asks to stop.
#[derive(Debug, Clone)]
pub struct Stopper(watch::Sender<bool>);

impl Stopper {
    /// Asks to stop.
    pub fn stop(&self) {
        // Nobody waits any more: what was to be stopped is at its end.
        let _ = self.0.send(true);
    }
}

/// Whether this process was asked to stop. Clones wait for the same.
#[derive(Debug, Clone)]
pub struct Stop(watch::Receiver<bool>);

impl Stop {
    /// For callers that decide themselves. Nobody asks once the other half is gone.
    #[must_use]
    pub fn by_hand() -> (Stopper, Self) {
        let (tell, told) = watch::channel(false);
        (Stopper(tell), Self(told))
    }

    /// Listens for SIGTERM and SIGINT from now on; the second one ends the process with `code`.
    ///
    /// # Errors
    /// The system does not let us listen.
    pub fn listen(code: i32) -> std::io::Result<Self> {
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let (tell, stop) = Self::by_hand();
        tokio::spawn(async move {
            for again in [false, true] {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                }
                if again {
                    std::process::exit(code);
                }
                tell.stop();
            }
        });
        Ok(stop)
    }

    /// Whether someone asked.
    #[must_use]
    pub fn asked(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until someone asks.
    pub async fn wait(&mut self) {
        if self.0.wait_for(|asked| *asked).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Waits for `time`, or until someone asks; true when someone did.
    pub async fn within(&mut self, time: Duration) -> bool {
        tokio::time::timeout(time, self.wait()).await.is_ok()
    }
}
