//! SIGTERM and Ctrl-C: the first asks to drain, the second ends the process at once. SIGHUP asks to read files again.

use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

#[derive(Debug, Clone)]
pub struct Stopper(watch::Sender<bool>);

impl Stopper {
    pub fn stop(&self) {
        // An error means that all receivers are gone.
        let _ = self.0.send(true);
    }
}

/// Requests to read files again. A clone gets each request.
#[derive(Debug, Clone)]
pub struct Hangups(watch::Receiver<u64>);

impl Hangups {
    /// Listens for SIGHUP, which no longer ends the process.
    pub fn listen() -> std::io::Result<Self> {
        let mut hangup = signal(SignalKind::hangup())?;
        let (sender, receiver) = watch::channel(0);
        tokio::spawn(async move {
            while hangup.recv().await.is_some() {
                sender.send_modify(|count| *count += 1);
            }
        });
        Ok(Self(receiver))
    }

    /// False if there will be no more.
    pub async fn next(&mut self) -> bool {
        self.0.changed().await.is_ok()
    }
}

/// Whether this process was asked to stop. Clones share it.
#[derive(Debug, Clone)]
pub struct Stop(watch::Receiver<bool>);

impl Stop {
    /// For callers that decide themselves. Dropping the [`Stopper`] does not stop.
    pub fn by_hand() -> (Stopper, Self) {
        let (sender, receiver) = watch::channel(false);
        (Stopper(sender), Self(receiver))
    }

    /// Listens for SIGTERM and SIGINT. The second one ends the process with `code`.
    pub fn listen(code: i32) -> std::io::Result<Self> {
        Self::listen_with(code, false)
    }

    /// Like [`Stop::listen`]. With `until_eof` the end of standard input is also a request to stop.
    pub fn listen_with(code: i32, until_eof: bool) -> std::io::Result<Self> {
        let (stopper, stop) = Self::by_hand();
        if until_eof {
            let stopper = stopper.clone();
            // Reading standard input blocks, so it needs its own thread.
            std::thread::Builder::new().name("stdin".into()).spawn(move || {
                let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
                stopper.stop();
            })?;
        }
        signalled(move || stopper.stop(), move || std::process::exit(code))?;
        Ok(stop)
    }

    pub fn listen_twice() -> std::io::Result<(Self, Self)> {
        let ((first, stop), (second, at_once)) = (Self::by_hand(), Self::by_hand());
        signalled(move || first.stop(), move || second.stop())?;
        Ok((stop, at_once))
    }

    pub fn asked(&self) -> bool {
        *self.0.borrow()
    }

    pub async fn wait(&mut self) {
        if self.0.wait_for(|asked| *asked).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Waits for `time` or a request to stop; true for a request.
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
