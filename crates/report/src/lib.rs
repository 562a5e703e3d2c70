//! A finished case in the forms that people read: [`markdown`] and [`html`]. Pure functions of the
//! [`Report`]: the same report gives the same text, byte for byte. [`compare`] shows how two reports differ, and
//! [`save`] writes them.
//!
//! Both are templates in `templates/`, each with a struct as its typed input. Evidence is hostile (rule 3.7): a
//! template escapes every text for the syntax of its form, and every finished text passes [`visible`] as a whole, so
//! that no part of it can forget to.

pub mod compare;
pub mod html;
pub mod markdown;
pub mod save;
pub mod words;

use std::fmt::Write;

use casebook_protocol::{Report, alert};

/// The forms in which a report can be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// The report itself: all there is, for programs.
    Json,
    /// Markdown, for reading anywhere.
    Md,
    /// One self-contained page.
    Html,
}

impl Form {
    /// All of them, in the order in which they are written.
    pub const ALL: [Self; 3] = [Self::Json, Self::Md, Self::Html];

    /// The name on a command line, which is also the extension of the file.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Md => "md",
            Self::Html => "html",
        }
    }

    /// The name of the file that holds this form.
    #[must_use]
    pub const fn file_name(self) -> &'static str {
        match self {
            Self::Json => "report.json",
            Self::Md => "report.md",
            Self::Html => "report.html",
        }
    }

    /// The report in this form, with a line end at its end.
    ///
    /// # Errors
    /// The report cannot be written as JSON, which is a defect.
    pub fn render(self, report: &Report) -> Result<String, serde_json::Error> {
        match self {
            Self::Json => serde_json::to_string_pretty(report).map(|json| json + "\n"),
            Self::Md => Ok(markdown::render(report)),
            Self::Html => Ok(html::render(report)),
        }
    }
}

/// The text of a template as a file: nothing in it is hidden, and it ends with one line end.
fn finished(text: &str) -> String {
    visible(text.trim_end()) + "\n"
}

/// `text` with every character that shows nothing, or changes how others are shown, written out as
/// `⟨U+202E⟩`. Line ends and tabs stay.
#[must_use]
pub fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c != '\n' && c != '\t' && deceives(c) {
            // Writing to a String cannot fail.
            let _ = write!(out, "⟨U+{:04X}⟩", u32::from(c));
        } else {
            out.push(c);
        }
    }
    out
}

/// What [`alert::hidden`] names, and besides: line separators, fillers that look like nothing, and
/// variation selectors, in which whole messages can be hidden.
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
