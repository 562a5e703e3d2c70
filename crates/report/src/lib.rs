//! Renders a finished investigation for people: [`markdown`] and [`html`]. The same report gives the same bytes.
//! [`compare`] compares two reports, [`save`] writes them, and [`sign`] signs them.
//!
//! A [`Backing`] has what is not in the report itself: the cited records and the searches.
//!
//! Both forms are templates in `templates/` with a struct as typed input. Evidence is hostile: templates escape
//! every text for their syntax, and every finished text passes [`visible`] as a whole.

pub mod compare;
pub mod html;
pub mod markdown;
pub mod record;
pub mod save;
pub mod sign;
pub mod words;

use std::fmt::Write;

use casebook_protocol::{Report, alert};
use casebook_trust::Backing;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Json,
    Md,
    Html,
}

impl Form {
    pub const ALL: [Self; 3] = [Self::Json, Self::Md, Self::Html];

    /// The name on the command line and the file extension.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Md => "md",
            Self::Html => "html",
        }
    }

    #[must_use]
    pub const fn file_name(self) -> &'static str {
        match self {
            Self::Json => "report.json",
            Self::Md => "report.md",
            Self::Html => "report.html",
        }
    }

    /// What this form shows beyond the report, without results.
    #[must_use]
    pub fn backing(self, report: &Report) -> Backing {
        match self {
            Self::Json => Backing::default(),
            Self::Md | Self::Html => Backing::of(report),
        }
    }

    /// Ends with a line break.
    ///
    /// Errors: The report cannot be written as JSON, which is a bug.
    pub fn render(self, report: &Report, backing: &Backing) -> Result<String, serde_json::Error> {
        match self {
            Self::Json => serde_json::to_string_pretty(report).map(|json| json + "\n"),
            Self::Md => Ok(markdown::render(report, backing)),
            Self::Html => Ok(html::render(report, backing)),
        }
    }
}

/// Makes hidden characters visible and ends the text with one line break.
fn finished(text: &str) -> String {
    visible(text.trim_end()) + "\n"
}

/// Writes characters that are invisible, or change how others appear, as `⟨U+202E⟩`. Line breaks and tabs stay.
pub fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = 0;
    let plain = |c: char| matches!(c, ' '..='~' | '\n' | '\t') || !deceives(c);
    for (at, c) in text.char_indices().filter(|(_, c)| !plain(*c)) {
        out.push_str(text.get(rest..at).unwrap_or_default());
        // Writing to a String cannot fail.
        let _ = write!(out, "⟨U+{:04X}⟩", u32::from(c));
        rest = at + c.len_utf8();
    }
    out.push_str(text.get(rest..).unwrap_or_default());
    out
}

/// What [`alert::hidden`] lists, and also line separators, blank fillers and variation selectors, which can hide
/// whole messages.
fn deceives(c: char) -> bool {
    alert::hidden(c)
        || matches!(c, '\u{2028}' | '\u{2029}' | '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_stays_hidden() {
        assert_eq!(
            visible("a\u{202e}b\u{1b}[31m\u{200b}\u{e0041}\u{fe0f}\r\n\tc"),
            "a⟨U+202E⟩b⟨U+001B⟩[31m⟨U+200B⟩⟨U+E0041⟩⟨U+FE0F⟩⟨U+000D⟩\n\tc"
        );
    }
}
