//! Escapes text for Markdown, so that it stays text on GitHub, in a chat and in a ticket system. It cannot
//! become a link, an image, HTML, a mention or a heading.

use std::fmt::{self, Write};

use askama::filters::Escaper;

use crate::words::{Piece, cut, pieces};

/// In characters. Longer texts are cut, with a note; the JSON report has them whole.
const MOST: usize = 2_000;

/// Escapes every text of a template with [`sentence`].
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Sentence;

impl Escaper for Sentence {
    fn write_escaped_str<W: Write>(&self, mut dest: W, text: &str) -> fmt::Result {
        dest.write_str(&sentence(text))
    }
}

/// A text on one line. Names in backquotes become code, and so does text that programs may turn into links or
/// mentions.
fn sentence(text: &str) -> String {
    let text = whole_or_cut(text);
    let mut out = String::new();
    for piece in pieces(&text) {
        match piece {
            Piece::Name(name) => out.push_str(&code(name)),
            Piece::Plain(plain) | Piece::Finding(plain) => plain_text(plain, &mut out),
        }
    }
    out
}

pub(super) fn code(text: &str) -> String {
    let text = flat(&whole_or_cut(text));
    if text.is_empty() {
        return "(empty)".to_owned();
    }
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    let edge = |c: Option<char>| matches!(c, Some('`' | ' '));
    let pad = if edge(text.chars().next()) || edge(text.chars().last()) { " " } else { "" };
    format!("{fence}{pad}{text}{pad}{fence}")
}

/// Escapes a text for a table cell, which a bar would end even inside code.
pub(super) fn cell(text: &str) -> String {
    sentence(&text.replace('|', "¦"))
}

fn whole_or_cut(text: &str) -> String {
    match cut(text, MOST) {
        (text, 0) => text.to_owned(),
        (text, more) => format!("{text}… ({more} more characters)"),
    }
}

/// Replaces line breaks, which would end a list item, code or a table row.
fn flat(text: &str) -> String {
    text.chars().map(|c| if matches!(c, '\n' | '\r' | '\t') { ' ' } else { c }).collect()
}

fn plain_text(text: &str, out: &mut String) {
    for word in flat(text).split_inclusive(' ') {
        let bare = word.trim_end_matches(' ');
        if may_link(bare) {
            let start = bare.len() - bare.trim_start_matches(['(', '"', '\'']).len();
            let end = bare.trim_end_matches(['.', ',', ';', ':', '!', '?', ')', '"', '\'']).len().max(start);
            escaped(bare.get(..start).unwrap_or_default(), out);
            out.push_str(&code(bare.get(start..end).unwrap_or_default()));
            escaped(bare.get(end..).unwrap_or_default(), out);
        } else {
            escaped(bare, out);
        }
        out.push_str(word.get(bare.len()..).unwrap_or_default());
    }
}

/// Many programs turn these into links.
fn may_link(word: &str) -> bool {
    let lower = word.to_lowercase();
    word.contains('@')
        || word.contains("://")
        || lower.contains("www.")
        || lower.contains("mailto:")
        || lower.contains("xmpp:")
}

fn escaped(word: &str, out: &mut String) {
    let counts = word.trim_end_matches(['.', ')']);
    let list_number = counts.len() < word.len() && !counts.is_empty() && counts.bytes().all(|b| b.is_ascii_digit());
    for (i, c) in word.chars().enumerate() {
        let opens_block = i == 0 && matches!(c, '-' | '+' | '=' | '#');
        let closes_number = list_number && matches!(c, '.' | ')');
        if opens_block
            || closes_number
            || matches!(c, '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '|' | '~' | '&' | '$' | '#')
        {
            out.push('\\');
        }
        out.push(c);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_others_stays_text() {
        let check = |input: &str, expect: &str| assert_eq!(sentence(input), expect);
        check("[click](javascript:x) ![i](y)", r"\[click\](javascript:x) !\[i\](y)");
        check("<img src=x onerror=y> &lt;", r"\<img src=x onerror=y\> \&lt;");
        check("see https://evil.example/a_b now", "see `https://evil.example/a_b` now");
        check("@admin or (www.evil.example).", "`@admin` or (`www.evil.example`).");
        check("# no heading\n- no item\n1. none", r"\# no heading \- no item 1\. none");
        check("`cmd.exe` ran **it**", r"`cmd.exe` ran \*\*it\*\*");
        check("odd ` <b>", r"odd \` \<b\>");
    }

    #[test]
    fn code_holds_whatever_is_in_it() {
        assert_eq!(code("a``b"), "```a``b```");
        assert_eq!(code("`x"), "`` `x ``");
        assert_eq!(code("a\n# b"), "`a # b`");
        assert_eq!(code(""), "(empty)");
        assert!(code(&"x".repeat(3000)).ends_with("… (1000 more characters)`"));
    }
}
