//! SIGTERM and Ctrl-C: the first asks to drain, the second ends the process at once.

use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

#[derive(Debug, Clone)]
pub struct Stopper(watch::Sender<bool>);

impl Stopper {
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
    pub fn by_hand() -> (Stopper, Self) {
        let (tell, told) = watch::channel(false);
        (Stopper(tell), Self(told))
    }

    /// Listens for SIGTERM and SIGINT from now on; the second one ends the process with `code`.
    pub fn listen(code: i32) -> std::io::Result<Self> {
        Self::listen_with(code, false)
    }

    /// The same; with `until_eof` the end of standard input asks, too.
    ///
    /// # Errors
    /// As [`Stop::listen`], and when no thread can be started.
    pub fn listen_with(code: i32, until_eof: bool) -> std::io::Result<Self> {
        let (tell, stop) = Self::by_hand();
        if until_eof {
            let tell = tell.clone();
            // A thread of its own: standard input cannot be read without blocking one.
            std::thread::Builder::new().name("stdin".into()).spawn(move || {
                let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
                tell.stop();
            })?;
        }
        signalled(move || tell.stop(), move || std::process::exit(code))?;
        Ok(stop)
    }

    /// Listens for SIGTERM and SIGINT from now on: the first one asks the first, the second one the second.
    pub fn listen_twice() -> std::io::Result<(Self, Self)> {
        let ((first, stop), (second, at_once)) = (Self::by_hand(), Self::by_hand());
        signalled(move || first.stop(), move || second.stop())?;
        Ok((stop, at_once))
    }

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

/// Calls `first` at the first signal to stop, and `second` at the second.
fn signalled(first: impl FnOnce() + Send + 'static, second: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut next = async move || {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    };
    tokio::spawn(async move {
        next().await;
        first();
        next().await;
        second();
    });
    Ok(())
}
