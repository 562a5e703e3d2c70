//! What the tests of every program that serves need.

use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use casebook_runtime::service::child::last_lines;

/// How long anything may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Runs `program` in `folder` to its end, with this environment alone.
pub(crate) fn run(program: &str, folder: &Path, arguments: &[&str], environment: &[(&str, &str)]) -> Output {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder).env_clear().envs(environment.iter().copied());
    command.output().unwrap()
}

/// What a program said that ended because a setting is wrong.
pub(crate) fn refused(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// What is found in time; a failure shows the end of `log`.
pub(crate) fn until<T>(what: &str, log: &Path, mut found: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(Instant::now() < end, "{what}: not in time; {}", last_lines(log, 5));
        std::thread::sleep(Duration::from_millis(20));
    }
}
