//! Names from the evidence within a sentence.

/// Plain text, or a name from the evidence, which was in backquotes.
#[derive(Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    Plain(&'a str),
    Name(&'a str),
    /// Used only for pages that know the findings of the report.
    Finding(&'a str),
}

/// Splits a sentence. A backquote without a partner is plain text.
pub fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut out = Vec::new();
    let mut rest = text;
    while let Some((before, name, after)) = next_name(rest) {
        if !before.is_empty() {
            out.push(Piece::Plain(before));
        }
        out.push(Piece::Name(name));
        rest = after;
    }
    if !rest.is_empty() {
        out.push(Piece::Plain(rest));
    }
    out
}

fn next_name(text: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = text.split_once('`')?;
    let (name, after) = rest.split_once('`')?;
    (!name.is_empty()).then_some((before, name, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stand_out_of_a_sentence() {
        assert_eq!(
            pieces("ran `a b` on `c`."),
            [Piece::Plain("ran "), Piece::Name("a b"), Piece::Plain(" on "), Piece::Name("c"), Piece::Plain(".")]
        );
        assert_eq!(pieces("odd ` one"), [Piece::Plain("odd ` one")]);
    }
}
