//! Waits for what comes in its own time.

use std::time::{Duration, Instant};

/// How long anything may take on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(120);
/// The longest pause between two looks; the first ones are shorter.
const PAUSE: Duration = Duration::from_millis(200);

fn pauses(patience: Duration) -> impl Iterator<Item = Duration> {
    let end = Instant::now() + patience;
    (0..).map_while(move |n| (Instant::now() < end).then(|| PAUSE.min(Duration::from_millis(5 << n.min(8)))))
}

/// What `look` finds within `patience`. Blocks.
pub fn found<T>(patience: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    for pause in pauses(patience) {
        if let Some(found) = look() {
            return Some(found);
        }
        std::thread::sleep(pause);
    }
    look()
}

/// Whether `look` is true within `patience`. Blocks.
pub fn holds(patience: Duration, mut look: impl FnMut() -> bool) -> bool {
    found(patience, || look().then_some(())).is_some()
}

/// Like [`found`], without blocking.
pub async fn soon<T>(patience: Duration, mut look: impl AsyncFnMut() -> Option<T>) -> Option<T> {
    for pause in pauses(patience) {
        if let Some(found) = look().await {
            return Some(found);
        }
        tokio::time::sleep(pause).await;
    }
    look().await
}
