//! Reads Parquet files in a separate process. A hostile file can make the library panic or take all memory, which would end
//! the whole program.

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Read, Write};
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::sync::OnceLock;

use rustix::process::{Resource, Rlimit, setrlimit};

use super::decode::copy;
use super::room::Sink;

mod rows;
mod value;

/// The first argument of a process that only reads a file.
const READER: &str = "read-parquet";
/// Of the reader, in bytes.
const MEMORY_MAX: u64 = 2 << 30;
/// In seconds, and for each MiB of the file.
const CPU_MAX: (u64, u64) = (60, 2);
/// Bytes of what the reader says.
const SAID_MAX: u64 = 64 << 10;

/// The program that can be started as a reader.
static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Decoded {
    pub(super) notes: Vec<String>,
    /// Why reading ended before the end of the file.
    pub(super) failed: Option<String>,
    /// A write failed, so that later rows are missing.
    pub(super) cut: bool,
}

/// If this process is a reader, reads the Parquet file at its standard input. Otherwise remembers the program.
pub(crate) fn serve() -> Option<ExitCode> {
    if std::env::args_os().nth(1).is_some_and(|first| first == READER) {
        return Some(read_input());
    }
    if let Ok(program) = std::env::current_exe() {
        let _ = PROGRAM.set(program);
    }
    None
}

fn read_input() -> ExitCode {
    use std::os::fd::AsFd;
    let Ok(file) = std::io::stdin().as_fd().try_clone_to_owned().map(File::from) else { return ExitCode::FAILURE };
    let size = file.metadata().map_or(0, |meta| meta.len());
    let most = |limit: u64| Rlimit { current: Some(limit), maximum: Some(limit) };
    let seconds = CPU_MAX.0.saturating_add((size >> 20).saturating_mul(CPU_MAX.1));
    for (resource, limit) in [(Resource::As, MEMORY_MAX), (Resource::Cpu, seconds), (Resource::Core, 0)] {
        // Some systems do not have every limit.
        let _ = setrlimit(resource, most(limit));
    }
    let mut out = BufWriter::with_capacity(256 << 10, std::io::stdout().lock());
    let read = rows::write(file, &mut out);
    let written = out.flush();
    let mut said = std::io::stderr().lock();
    let notes = read.notes.iter().map(|note| format!("note {note}\n"));
    let failed = read.failed.iter().map(|why| format!("failed {why}\n"));
    let told = notes.chain(failed).try_for_each(|line| said.write_all(line.as_bytes()));
    if written.is_ok() && told.is_ok() && !read.cut { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Writes each row to `out`: its number from 1, a tab, and the row as JSON.
pub(super) fn decode(file: File, out: &mut Sink<'_>) -> Decoded {
    match PROGRAM.get() {
        Some(program) => {
            apart(program, file, out).unwrap_or_else(|error| failed(format!("its reader cannot be started: {error}")))
        }
        None => here(file, out),
    }
}

fn failed(why: String) -> Decoded {
    Decoded { failed: Some(why), ..Decoded::default() }
}

fn apart(program: &PathBuf, file: File, out: &mut Sink<'_>) -> std::io::Result<Decoded> {
    let mut reader = Command::new(program)
        .arg(READER)
        .env_clear()
        .stdin(file)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let (Some(mut rows), Some(said)) = (reader.stdout.take(), reader.stderr.take()) else {
        return Err(std::io::ErrorKind::BrokenPipe.into());
    };
    // While its rows are read, so that a full pipe does not stop it.
    let said = std::thread::spawn(move || lines(said));
    let cut = copy(&mut rows, out).is_err();
    drop(rows);
    if cut {
        let _ = reader.kill();
    }
    let mut decoded = Decoded { cut, ..Decoded::default() };
    for line in said.join().unwrap_or_default() {
        match line.split_once(' ') {
            Some(("note", note)) => decoded.notes.push(note.to_owned()),
            Some(("failed", why)) => decoded.failed = Some(why.to_owned()),
            _ => {}
        }
    }
    let ended = reader.wait()?;
    if !ended.success() && !cut {
        decoded.failed.get_or_insert(format!("its reader ended with {ended}: it is damaged, or made to harm"));
    }
    Ok(decoded)
}

fn lines(said: impl Read) -> Vec<String> {
    BufReader::new(said.take(SAID_MAX)).lines().map_while(Result::ok).collect()
}

/// For tests and for programs that did not call [`serve`].
fn here(file: File, out: &mut Sink<'_>) -> Decoded {
    let read = std::panic::AssertUnwindSafe(|| rows::write(file, out));
    std::panic::catch_unwind(read)
        .unwrap_or_else(|_| failed("its reader panicked: it is damaged, or made to harm".into()))
}
