//! Writes to the scripts and programs that explain the activity.

use std::collections::BTreeSet;

use casebook_protocol::{ActKind, ActPart};

use super::kind::{is_interpreter, script};
use super::{AROUND, Lister, Row};
use crate::ReadError;
use crate::facet::{Class, Facet, last};
use crate::programs::program_name;

/// Programs that write nothing to the files they name.
const READERS: &str = "cat head tail less more stat ls file grep egrep fgrep test [ md5sum sha1sum sha256sum sha512sum cksum diff \
    cmp wc readlink realpath basename dirname dpkg-query run-parts strings ldd modinfo lsmod which getent getopt";
/// Programs that write to the last path they name.
const COPIERS: [&str; 4] = ["cp", "install", "ln", "link"];
const SHELLS: [&str; 6] = ["sh", "bash", "dash", "zsh", "ksh", "ash"];
/// Programs that write to the folders they name.
const WRITERS: [&str; 20] = [
    "cp", "mv", "install", "ln", "tee", "tar", "unzip", "cpio", "rsync", "scp", "curl", "wget", "dd", "git", "chmod",
    "chown", "sed", "patch", "touch", "rm",
];
/// Too many records name these folders.
const BUSY: [&str; 8] = ["/usr/bin", "/bin", "/usr/sbin", "/sbin", "/usr/lib", "/lib", "/", ""];

struct Path {
    whole: String,
    folder: String,
    name: String,
}

impl Path {
    fn of(whole: String) -> Option<Self> {
        let at = whole.rfind(['/', '\\'])?;
        let (folder, name) = (whole.get(..at)?.to_owned(), whole.get(at + 1..)?.to_owned());
        (name.len() >= 2).then_some(Self { whole, folder, name })
    }
}

impl Lister<'_> {
    /// Lists the writes to what the processes in `started` ran, up to the end of the activity.
    pub(super) fn origins(&mut self, started: &[&Row], window: Option<(i64, i64)>) -> Result<(), ReadError> {
        let ran: BTreeSet<String> =
            started.iter().flat_map(|row| row.script().into_iter().chain(row.program()).map(str::to_owned)).collect();
        let paths: Vec<Path> = ran.into_iter().filter_map(Path::of).collect();
        let mut terms: BTreeSet<String> = paths.iter().map(|path| path.whole.clone()).collect();
        // A move of the folder above replaces the script.
        let folders = paths.iter().flat_map(|path| [path.folder.as_str(), above(&path.folder)]);
        terms.extend(folders.filter(|folder| !BUSY.contains(folder) && deep(folder)).map(str::to_owned));
        let terms: Vec<String> = terms.into_iter().collect();
        let rows = self.rows(&terms, None, window.map(|(_, end)| end + AROUND))?;
        let known: BTreeSet<_> = started.iter().map(|row| row.record.clone()).collect();
        for row in rows.iter().filter(|row| !known.contains(&row.record)) {
            if paths.iter().any(|path| writes(row, path)) {
                self.add(ActPart::Origin, ActKind::FileWrite, row);
            }
        }
        Ok(())
    }
}

fn above(folder: &str) -> &str {
    folder.rfind(['/', '\\']).and_then(|at| folder.get(..at)).unwrap_or_default()
}

fn deep(folder: &str) -> bool {
    folder.matches(['/', '\\']).count() >= 2
}

/// True if the record is a write to the path, or may be one.
fn writes(row: &Row, path: &Path) -> bool {
    const TARGETS: [&str; 8] =
        ["targetfilename", "filename", "filepath", "path", "name", "targetpath", "newname", "destination"];
    match row.class() {
        Class::FileCreate | Class::FileDelete => {
            let named = row.fields.iter().filter(|(field, _)| TARGETS.contains(&last(field, 1).as_str()));
            let object = row.facets.get(Facet::Object).into_iter();
            object.chain(named.map(|(_, value)| value.as_str())).any(|value| value.trim_matches('"') == path.whole)
        }
        Class::ProcessStart => row.command().is_some_and(|command| command_writes(row, command, path)),
        _ => false,
    }
}

fn command_writes(row: &Row, command: &str, path: &Path) -> bool {
    let words: Vec<&str> = command.split_whitespace().map(|word| word.trim_matches(['"', '\''])).collect();
    let Some((called, rest)) = words.split_first() else { return false };
    let cwd = row.field(&["cwd", "currentdirectory"]).unwrap_or_default().trim_end_matches(['/', '\\']);
    let here = |word: &str| cwd == path.folder && word.trim_start_matches("./") == path.name;
    let is_file = |word: &str| names(word, &path.whole) || here(word);
    let is_folder = |word: &str| {
        let word = word.trim_end_matches(['/', '\\']);
        word == path.folder || deep(word) && word == above(&path.folder)
    };
    let (file, folder) = (rest.iter().any(|word| is_file(word)), rest.iter().any(|word| is_folder(word)));
    if !file && !folder {
        return false;
    }
    let program = row.facets.get(Facet::Process).unwrap_or(called);
    let by = |list: &[&str]| [program, *called].iter().all(|name| list.contains(&program_name(name).as_str()));
    let plain = !command.contains(['>', '|', ';', '&', '`', '$']);
    if plain && (by(&READERS.split(' ').collect::<Vec<_>>()) || finds(called, rest) || asks(called, rest)) {
        return false;
    }
    if plain && by(&COPIERS) && !rest.iter().any(|word| word.starts_with("-t") || word.starts_with("--target")) {
        return rest.last().is_some_and(|word| is_file(word) || is_folder(word));
    }
    // A program that a shell starts has a record of its own.
    if by(&SHELLS) && !command.contains('>') || plain && script(program, command) == Some(path.whole.as_str()) {
        return false;
    }
    file || WRITERS.contains(&program_name(called).as_str()) || is_interpreter(program)
}

/// True if the text has the path itself, not as a part of a longer one.
fn names(text: &str, path: &str) -> bool {
    let part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '/' | '.');
    text.match_indices(path).any(|(at, _)| {
        let before = text.get(..at).and_then(|begin| begin.chars().next_back());
        let after = text.get(at + path.len()..).and_then(|rest| rest.chars().next());
        !before.is_some_and(part) && !after.is_some_and(part)
    })
}

/// A query of the package database.
fn asks(called: &str, rest: &[&str]) -> bool {
    const QUERIES: [&str; 10] = ["-S", "-s", "-l", "-L", "-V", "-q", "-qf", "--search", "--status", "--listfiles"];
    matches!(program_name(called).as_str(), "dpkg" | "rpm") && rest.first().is_some_and(|word| QUERIES.contains(word))
}

/// A search that changes nothing.
fn finds(called: &str, rest: &[&str]) -> bool {
    const ACTS: [&str; 8] = ["-exec", "-execdir", "-ok", "-okdir", "-delete", "-fprint", "-fprintf", "-fls"];
    program_name(called) == "find" && !rest.iter().any(|word| ACTS.contains(word))
}
