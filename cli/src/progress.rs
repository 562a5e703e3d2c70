//! How far loading is, for a person: a bar on a terminal, a plain line every few seconds elsewhere.
//! On standard error, so that standard output holds the investigation alone.

use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use casebook_evidence::{Catalog, Declared, Hint};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::failure::Failure;
use crate::loading::{Loading, load};
use crate::screen::safe;
use crate::stop::Stop;

const EVERY: Duration = Duration::from_secs(3);

pub enum Bar {
    Drawn(ProgressBar),
    /// Elsewhere: when the last line was written, and when loading began.
    Plain(Instant, Option<Instant>),
}

/// Loads `evidence` as [`load`] does, and shows how far that is.
pub async fn loaded(
    evidence: &Path,
    data: &Path,
    hint: Option<Hint>,
    declared: &Declared,
    stop: &mut Stop,
) -> Result<Arc<Catalog>, Failure> {
    let mut bar = Bar::stderr();
    let catalog = load(evidence, data, hint, declared, stop, &mut |loading| bar.show(loading)).await;
    bar.end();
    catalog
}

impl Bar {
    /// For standard error as it is.
    #[must_use]
    pub fn stderr() -> Self {
        if !io::stderr().is_terminal() {
            return Self::Plain(Instant::now(), None);
        }
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(10));
        let style =
            ProgressStyle::with_template("{msg}\n{bar:40} {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left");
        if let Ok(style) = style {
            bar.set_style(style.progress_chars("━╸─"));
        }
        Self::Drawn(bar)
    }

    pub fn show(&mut self, loading: &Loading) {
        let Loading { step, file, done, total } = loading;
        let what = format!("{step} {}", safe(file, 60));
        match self {
            Self::Drawn(bar) => {
                bar.set_length(*total);
                bar.set_position(*done);
                bar.set_message(what.trim_end().to_owned());
            }
            Self::Plain(last, begun) => {
                if begun.is_none() && *done > 0 {
                    *begun = Some(Instant::now());
                }
                if last.elapsed() >= EVERY {
                    *last = Instant::now();
                    let took = begun.map(|begun| begun.elapsed()).unwrap_or_default();
                    let _ = writeln!(io::stderr(), "{}: {}", what.trim_end(), far(*done, *total, took));
                }
            }
        }
    }

    /// Takes the bar away.
    pub fn end(&self) {
        if let Self::Drawn(bar) = self {
            bar.finish_and_clear();
        }
    }
}

/// How much was done in this time, how fast, and how long the rest takes.
fn far(done: u64, total: u64, took: Duration) -> String {
    let sizes = format!("{} of {} MB", done / 1_000_000, total / 1_000_000);
    let millis = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    let Some(rate) = (done / 1000).checked_div(millis).filter(|rate| *rate > 0) else { return sizes };
    format!("{sizes}, {rate} MB/s, {} s left", total.saturating_sub(done) / 1_000_000 / rate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_rate_and_time_left() {
        let line = |seconds| far(300_000_000, 1_000_000_000, Duration::from_secs(seconds));
        assert_eq!(line(3), "300 of 1000 MB, 100 MB/s, 7 s left");
        assert_eq!(line(0), "300 of 1000 MB");
    }
}
