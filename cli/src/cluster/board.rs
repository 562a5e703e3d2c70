//! How the processes of a team are, for a person: a table that follows them on a terminal, and lines for
//! what changed elsewhere. On standard error, so that standard output holds what was asked for alone.

use std::io::{self, IsTerminal, Write};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::keeper::{Row, State};
use crate::screen::{BOLD, DIM, GREEN, RED, YELLOW, paint, safe};

/// The widest reason in the table.
const REASON: usize = 90;

/// Shows how the processes are.
pub struct Board {
    drawn: Option<ProgressBar>,
    told: Vec<String>,
}

impl Board {
    /// For standard error as it is; `alone` says that nothing else is shown meanwhile.
    #[must_use]
    pub fn stderr(alone: bool) -> Self {
        let drawn = (alone && io::stderr().is_terminal()).then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(4));
            if let Ok(style) = ProgressStyle::with_template("{msg}") {
                bar.set_style(style);
            }
            bar
        });
        Self { drawn, told: Vec::new() }
    }

    /// Shows `rows`: as the table where it follows them, else what became ready.
    pub fn show(&mut self, rows: &[Row]) {
        if let Some(bar) = &self.drawn {
            bar.set_message(table(rows).join("\n"));
            return;
        }
        for row in rows.iter().filter(|row| row.state == State::Ready) {
            if !self.told.contains(&row.name) {
                self.told.push(row.name.clone());
                self.say(&paint(DIM, format_args!("{} is ready", row.name)));
            }
        }
    }

    /// Shows the whole table once more where it does not follow them.
    pub fn whole(&mut self, rows: &[Row]) {
        if self.drawn.is_none() {
            table(rows).iter().for_each(|line| self.say(line));
        }
    }

    /// Says something besides.
    pub fn say(&self, text: &str) {
        self.beside(|| {
            // There is nobody to tell when that fails.
            let _ = writeln!(anstream::AutoStream::auto(io::stderr()), "{text}");
        });
    }

    /// Lets something else be written to the terminal, above the table.
    pub fn beside<T>(&self, write: impl FnOnce() -> T) -> T {
        match &self.drawn {
            Some(bar) => bar.suspend(write),
            None => write(),
        }
    }

    /// Says who is waited for where no table shows it.
    pub fn waits(&self, rows: &[Row]) {
        if self.drawn.is_some() {
            return;
        }
        for row in rows {
            if let State::NotReady(why) = &row.state {
                self.say(&paint(YELLOW, format_args!("{} is not ready: {}", row.name, safe(why, 300))));
            }
        }
    }

    /// Leaves the table as it is.
    pub fn end(&self) {
        if let Some(bar) = &self.drawn {
            bar.abandon();
        }
    }
}

/// The table.
#[must_use]
pub fn table(rows: &[Row]) -> Vec<String> {
    let width = rows.iter().map(|row| row.name.len()).max().unwrap_or(0).max("process".len());
    let head = format!("{:width$}  {:>7}  {:>9}  {:>8}  state", "process", "pid", "under way", "restarts");
    let line = |row: &Row| {
        let pid = row.pid.map_or_else(|| "-".to_owned(), |pid| pid.to_string());
        let state = match &row.state {
            State::Ready => paint(GREEN, "ready"),
            State::NotReady(why) => paint(YELLOW, format_args!("not ready: {}", safe(why, REASON))),
            State::Down => paint(RED, "down, is started again"),
            State::Stopping => paint(YELLOW, "finishes what is under way"),
            State::Stopped => paint(DIM, "stopped"),
        };
        format!("{:width$}  {pid:>7}  {:>9}  {:>8}  {state}", row.name, row.under_way, row.restarts)
    };
    std::iter::once(paint(BOLD, head)).chain(rows.iter().map(line)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_reads_as_here() {
        let row = |name: &str, pid, state, under_way| Row { name: name.into(), pid, state, under_way, restarts: 1 };
        let rows = [
            row("hub", Some(42), State::Ready, 1),
            row("expert-cloud", None, State::Down, 0),
            row("critic", Some(43), State::NotReady("no Hub\u{1b}[2J".into()), 0),
        ];
        let text = anstream::adapter::strip_str(&table(&rows).join("\n")).to_string();
        assert_eq!(
            text,
            "process           pid  under way  restarts  state\n\
             hub                42          1         1  ready\n\
             expert-cloud        -          0         1  down, is started again\n\
             critic             43          0         1  not ready: no Hub⟨U+001B⟩[2J"
        );
    }
}
