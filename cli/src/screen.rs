//! What a person reads on the terminal. Colours only where they are wanted (a terminal, no
//! `NO_COLOR`); text of others comes through [`safe`] and can never carry an escape sequence.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};

use anstyle::{AnsiColor, Style};
use casebook_protocol::{Score, Timestamp, Verdict, one_line};
use jiff::tz::TimeZone;

use crate::failure::Failure;
use casebook_report::visible;

pub const PLAIN: Style = Style::new();
/// For headings.
pub const BOLD: Style = Style::new().bold();
/// For what matters less.
pub const DIM: Style = Style::new().dimmed();
/// For what went wrong.
pub const RED: Style = AnsiColor::Red.on_default();
/// For what is sure.
pub const GREEN: Style = AnsiColor::Green.on_default();
/// For what is open.
pub const YELLOW: Style = AnsiColor::Yellow.on_default();
/// For who speaks.
pub const CYAN: Style = AnsiColor::Cyan.on_default();

/// Text of others on one line of at most `max` characters; what would change the terminal, or hide
/// something from its reader, is written out.
pub fn safe(text: &str, max: usize) -> String {
    one_line(&visible(text), max)
}

pub fn paint(style: Style, text: impl Display) -> String {
    format!("{style}{text}{style:#}")
}

pub fn of_score(score: Score) -> Style {
    match score.get() {
        0.7.. => GREEN,
        0.5.. => YELLOW,
        _ => RED,
    }
}

pub const fn of_verdict(verdict: Verdict) -> Style {
    match verdict {
        Verdict::TruePositive => RED.bold(),
        Verdict::BenignPositive | Verdict::FalsePositive => GREEN.bold(),
        Verdict::Inconclusive => YELLOW.bold(),
    }
}

/// Standard output. If its reader is gone, further output is dropped without an error, and nothing
/// else changes.
pub struct Screen {
    out: Box<dyn Write + Send>,
    gone: bool,
    failed: Option<io::Error>,
    /// Columns of the terminal; none elsewhere, where lines are not wrapped.
    width: Option<usize>,
    zone: TimeZone,
}

/// Lines that are wider than this are hard to read.
const WIDEST: usize = 120;

impl Screen {
    /// Standard output, with colours where they are wanted.
    #[must_use]
    pub fn stdout(local: bool) -> Self {
        let width = console::Term::stdout().size_checked().map(|(_, columns)| usize::from(columns).min(WIDEST));
        let zone = if local { TimeZone::system() } else { TimeZone::UTC };
        let width = width.filter(|_| io::stdout().is_terminal());
        Self { width, zone, ..Self::on(Box::new(anstream::AutoStream::auto(io::stdout()))) }
    }

    /// Any other place.
    pub fn on(out: Box<dyn Write + Send>) -> Self {
        Self { out, gone: false, failed: None, width: None, zone: TimeZone::UTC }
    }

    /// A time to the second, with its zone.
    pub fn time(&self, at: Timestamp) -> String {
        let form = if self.zone == TimeZone::UTC { "%Y-%m-%d %H:%M:%S UTC" } else { "%Y-%m-%d %H:%M:%S %:z" };
        at.to_zoned(self.zone.clone()).strftime(form).to_string()
    }

    /// Writes `text` after `lead`, wrapped at words and indented by the width of `lead`.
    pub fn wrapped(&mut self, lead: &str, style: Style, text: &str) {
        let indent = console::measure_text_width(lead);
        let room = self.width.map_or(usize::MAX, |width| width.saturating_sub(indent).max(20));
        let mut lead = lead.to_owned();
        for line in textwrap::wrap(text, room) {
            self.line(format_args!("{lead}{}", paint(style, line)));
            lead = " ".repeat(indent);
        }
    }

    pub fn line(&mut self, text: impl Display) {
        self.write(format_args!("{text}\n"));
    }

    pub fn text(&mut self, text: &str) {
        self.write(format_args!("{text}"));
    }

    fn write(&mut self, text: std::fmt::Arguments<'_>) {
        if self.gone {
            return;
        }
        if let Err(error) = self.out.write_fmt(text).and_then(|()| self.out.flush()) {
            self.gone = true;
            self.failed = (error.kind() != io::ErrorKind::BrokenPipe).then_some(error);
        }
    }

    /// Everything was written, or the reader went away.
    ///
    /// # Errors
    /// Standard output could not be written, such as on a full disk.
    pub fn finish(self) -> Result<(), Failure> {
        match self.failed {
            None => Ok(()),
            Some(error) => {
                Err(Failure::failed(format!("cannot write to standard output: {error}"), "send it somewhere else"))
            }
        }
    }
}

/// Writes to standard error what is for a person and not for a script.
pub fn tell(text: impl Display) {
    let _ = writeln!(anstream::AutoStream::auto(io::stderr()), "{text}");
}

/// Reports on standard error what went wrong and what to do. A failure to write is ignored.
pub fn complain(failure: &Failure) {
    let mut stderr = anstream::AutoStream::auto(io::stderr());
    let _ = writeln!(stderr, "{}: {}", paint(RED.bold(), "casebook"), safe(&failure.what, 2_000));
    if !failure.advice.is_empty() {
        let _ = writeln!(stderr, "  {}", safe(&failure.advice, 2_000));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[test]
    fn no_escape_sequence_gets_through() {
        assert_eq!(safe("a\u{1b}]0;title\u{7}b\u{202e}c\nd", 200), "a⟨U+001B⟩]0;title⟨U+0007⟩b⟨U+202E⟩c d");
    }

    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn text_wraps_at_words_on_a_terminal_only() {
        let shown = |width: Option<usize>| {
            let written = Written::default();
            let mut screen = Screen { width, ..Screen::on(Box::new(written.clone())) };
            screen.wrapped("  1. ", PLAIN, "the first words and some that follow them");
            let bytes = written.0.lock().unwrap().clone();
            String::from_utf8(bytes).unwrap()
        };
        assert_eq!(shown(Some(30)), "  1. the first words and some\n     that follow them\n");
        assert_eq!(shown(None), "  1. the first words and some that follow them\n");
    }

    #[test]
    fn time_has_seconds_and_a_zone() {
        let at: Timestamp = "2026-01-31T23:30:00.123456Z".parse().unwrap();
        let mut screen = Screen::on(Box::new(io::sink()));
        assert_eq!(screen.time(at), "2026-01-31 23:30:00 UTC");
        screen.zone = TimeZone::fixed(jiff::tz::offset(1));
        assert_eq!(screen.time(at), "2026-02-01 00:30:00 +01:00");
    }

    #[test]
    fn closed_reader_is_not_an_error() {
        struct Gone(io::ErrorKind);
        impl Write for Gone {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(self.0.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let finish = |kind| {
            let mut screen = Screen::on(Box::new(Gone(kind)));
            screen.line("x");
            screen.line("y");
            screen.finish()
        };
        assert!(finish(io::ErrorKind::BrokenPipe).is_ok());
        assert!(finish(io::ErrorKind::StorageFull).is_err());
    }
}
