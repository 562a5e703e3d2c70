//! A server as a child process.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};

use secrecy::{ExposeSecret, SecretString};
use tokio::io::AsyncReadExt;
use tokio::process::{Child, ChildStderr, Command};

/// The bytes of a child's standard error that are kept, from its end.
const TAIL: usize = 4096;

pub(super) fn spawned(
    program: &str,
    args: &[String],
    env: &[(String, SecretString)],
    cwd: Option<&Path>,
) -> Result<Child, String> {
    let path = env.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value.expose_secret().into());
    let file = found(program, path.or_else(|| std::env::var_os("PATH")))
        .ok_or_else(|| format!("cannot find the program {program:?} in the PATH; give its full path as `command`"))?;
    let mut command = Command::new(&file);
    command.args(args).env_clear().envs(env.iter().map(|(name, value)| (name, value.expose_secret())));
    if let Some(cwd) = cwd {
        command.current_dir(cwd);
    }
    // A separate process group: Ctrl-C does not reach it, and all processes that it starts end with it.
    command.process_group(0).kill_on_drop(true);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().map_err(|e| format!("cannot start {}: {e}", file.display()))
}

fn found(program: &str, path: Option<std::ffi::OsString>) -> Option<PathBuf> {
    if program.contains('/') {
        return Some(PathBuf::from(program));
    }
    std::env::split_paths(&path?).map(|folder| folder.join(program)).find(|file| file.is_file())
}

/// Keeps the last output of a child. It is read to the end, since a full pipe would block the child.
pub(super) async fn collect(mut errors: ChildStderr, kept: Arc<Mutex<Vec<u8>>>) {
    let mut piece = vec![0; 4096];
    while let Ok(read) = errors.read(&mut piece).await {
        let Some(new) = piece.get(..read).filter(|new| !new.is_empty()) else { return };
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend_from_slice(new);
        let over = kept.len().saturating_sub(TAIL);
        kept.drain(..over);
    }
}
