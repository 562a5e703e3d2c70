//! Tables of cases in text files: what goes in, and what comes out. A test gives a function from the
//! one to the other. `UPDATE_EXPECT=1 cargo test` writes the answers anew: look at what changed.

use expect_test::ExpectFile;
pub use expect_test::{Expect, expect, expect_file};

/// Begins a line with the title of a case.
const CASE: &str = "\n=== ";
/// Stands between the input of a case and its answer.
const ANSWER: &str = "--->";

/// Cases of many lines: `=== title`, the input, `--->`, the answer. What comes before the first case is
/// a comment. The title and the input, without the end of its last line, are given to `answer`.
///
/// # Panics
/// An answer is not the one on file, or the file has no case.
#[track_caller]
pub fn blocks(table: &ExpectFile, answer: impl Fn(&str, &str) -> String) {
    let text = table.data();
    let mut parts = text.split(CASE).peekable();
    let mut out = parts.next().unwrap_or_default().trim_end().to_owned();
    assert!(parts.peek().is_some(), "no line of {} begins with {CASE:?} after its first", table.path.display());
    for case in parts {
        let (title, rest) = case.split_once('\n').unwrap_or((case, ""));
        let input = rest.split_once(&format!("{ANSWER}\n")).map_or(rest.trim_end(), |(input, _)| input);
        let input = input.strip_suffix('\n').unwrap_or(input);
        out += &format!("\n{CASE}{title}\n{input}\n{ANSWER}\n{}", answer(title, input).trim_end());
    }
    table.assert_eq(&(out + "\n"));
}

/// Cases of one line each: `input => answer`. Lines that begin with `#` are comments.
///
/// # Panics
/// An answer is not the one on file, or the file has no case.
#[track_caller]
pub fn lines(table: &ExpectFile, answer: impl Fn(&str) -> String) {
    let (mut out, mut cases) = (String::new(), 0);
    for line in table.data().lines() {
        if line.is_empty() || line.starts_with('#') {
            out += &format!("{line}\n");
            continue;
        }
        cases += 1;
        let input = line.rsplit_once(" => ").map_or(line, |(input, _)| input);
        out += &format!("{input} => {}\n", answer(input));
    }
    assert!(cases > 0, "there is no case in {}", table.path.display());
    table.assert_eq(&out);
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn table(text: &str) -> (tempfile::TempDir, ExpectFile) {
        let folder = tempfile::tempdir().unwrap();
        let path: PathBuf = folder.path().join("table.txt");
        std::fs::write(&path, text).unwrap();
        (folder, ExpectFile { path, position: file!() })
    }

    #[test]
    fn tables_with_the_right_answers_hold() {
        let (_folder, file) = table("About.\n\n=== one\na\n\nb\n--->\nA\n\nB\n\n=== two\nc\n--->\nC\n");
        blocks(&file, |_, input| input.to_uppercase());
        let (_folder, file) = table("# About.\na => A\n\nb => c => B => C\n");
        lines(&file, |input| if input == "a" { "A".into() } else { "C".into() });
    }

    #[test]
    #[should_panic(expected = "there is no case")]
    fn a_table_without_a_case_is_refused() {
        lines(&table("# a => A\n").1, str::to_owned);
    }
}
