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
    /// Elsewhere: when the last line was written.
    Plain(Instant),
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
            return Self::Plain(Instant::now());
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
            Self::Plain(last) if last.elapsed() >= EVERY => {
                *last = Instant::now();
                let _ = writeln!(io::stderr(), "{}: {} of {} MB", what.trim_end(), done / 1_000_000, total / 1_000_000);
            }
            Self::Plain(_) => {}
        }
    }

    /// Takes the bar away.
    pub fn end(&self) {
        if let Self::Drawn(bar) = self {
            bar.finish_and_clear();
        }
    }
}
