//! Ctrl-C and SIGTERM: the first asks to stop, the second ends the process at once.

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::failure::{Exit, Failure};

/// Asks to stop.
#[derive(Debug)]
pub struct Stopper(watch::Sender<bool>);

impl Stopper {
    /// Asks to stop.
    pub fn stop(&self) {
        // Nobody waits any more: what was to be stopped is at its end.
        let _ = self.0.send(true);
    }
}

/// Whether someone asked to stop. Clones wait for the same signal.
#[derive(Debug, Clone)]
pub struct Stop(watch::Receiver<bool>);

impl Stop {
    /// Listens from now on.
    ///
    /// # Errors
    /// The system does not let us listen.
    pub fn listen() -> Result<Self, Failure> {
        let failed = |error: std::io::Error| Failure::failed(format!("cannot listen for signals: {error}"), "");
        let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
        let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
        let (tell, stop) = Self::by_hand();
        tokio::spawn(async move {
            for again in [false, true] {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                }
                if again {
                    std::process::exit(Exit::Unfinished.code().into());
                }
                tell.stop();
            }
        });
        Ok(stop)
    }

    /// For callers that decide themselves. Nobody asks once the other half is gone.
    #[must_use]
    pub fn by_hand() -> (Stopper, Self) {
        let (tell, told) = watch::channel(false);
        (Stopper(tell), Self(told))
    }

    /// Waits until someone asks.
    pub async fn wait(&mut self) {
        if self.0.wait_for(|asked| *asked).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
