//! Hosts as network namespaces of one machine, joined by a bridge. All of them are in a sandbox with a network of its own
//! ([`enter`]), which disappears with its processes. The driver of a test is on the bridge.

use std::net::Ipv4Addr;
use std::path::Path;
use std::process::{Command, ExitStatus};

use rustix::process::{Pid, Signal, kill_process};

use crate::Result;
use crate::podman::said;

mod slow;
pub use slow::Slow;

const BRIDGE: &str = "lan";
const INSIDE: &str = "CASEBOOK_HOSTS_INSIDE";

/// Runs this program with the same arguments in the sandbox and returns how it ended; `None` if this process is in it.
pub fn enter() -> Result<Option<ExitStatus>> {
    if std::env::var_os(INSIDE).is_some() {
        return Ok(None);
    }
    let mut sandbox = Command::new("unshare");
    sandbox.args(["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]);
    sandbox.arg(std::env::current_exe()?).args(std::env::args_os().skip(1)).env(INSIDE, "1");
    Ok(Some(sandbox.status().map_err(|e| format!("cannot run unshare: {e}"))?))
}

/// True if `CASEBOOK_HOSTS` is not 1, or this machine cannot make hosts. Then the test is skipped, with a message; if
/// `CASEBOOK_CONTAINERS` is set and not `0`, that is an error.
///
/// # Panics
/// If hosts are required and cannot be made.
pub fn skipped() -> bool {
    // They take minutes, and their limits of time do not fit other tests beside them.
    if std::env::var_os("CASEBOOK_HOSTS").is_none_or(|wanted| wanted != "1") {
        eprintln!("skipped: set CASEBOOK_HOSTS=1 for the tests across hosts");
        return true;
    }
    let Some(why) = missing() else { return false };
    assert!(std::env::var_os("CASEBOOK_CONTAINERS").is_none_or(|wanted| wanted == "0"), "{why}");
    eprintln!("skipped: {why}");
    true
}

/// Why this machine cannot make hosts. If `CASEBOOK_CONTAINERS` is `0`, nothing is tried.
fn missing() -> Option<String> {
    if std::env::var_os("CASEBOOK_CONTAINERS").is_some_and(|wanted| wanted == "0") {
        return Some("CASEBOOK_CONTAINERS is 0: tests of hosts are off".into());
    }
    if !cfg!(target_os = "linux") || !rustix::process::geteuid().is_root() {
        return Some("tests of hosts need Linux and root".into());
    }
    let tried =
        "mkdir -p /run/netns && mount -t tmpfs none /run/netns && ip link add lan type bridge && ip netns add one";
    let probe = ["--net", "--mount", "--pid", "--fork", "sh", "-c", tried];
    said(Command::new("unshare").args(probe))
        .err()
        .map(|why| format!("this machine makes no network namespaces: {why}"))
}

/// The hosts, whose addresses follow their order.
pub struct Hosts(Vec<String>);

impl Hosts {
    /// Makes the bridge and the hosts. Only in the sandbox.
    pub fn new(names: &[&str]) -> Result<Self> {
        if std::env::var_os(INSIDE).is_none() {
            return Err("hosts are made only in a sandbox".into());
        }
        std::fs::create_dir_all("/run/netns")?;
        said(Command::new("mount").args(["-t", "tmpfs", "none", "/run/netns"]))?;
        ip(&["link", "set", "lo", "up"])?;
        ip(&["link", "add", BRIDGE, "type", "bridge"])?;
        ip(&["addr", "add", &format!("{}/24", Self::driver()), "dev", BRIDGE])?;
        ip(&["link", "set", BRIDGE, "up"])?;
        let hosts = Self(names.iter().map(ToString::to_string).collect());
        for name in names {
            ip(&["netns", "add", name])?;
            ip(&["link", "add", &link(name), "type", "veth", "peer", "name", "eth0", "netns", name])?;
            ip(&["link", "set", &link(name), "master", BRIDGE, "up"])?;
            let address = format!("{}/24", hosts.address(name));
            ip(&["-n", name, "addr", "add", &address, "dev", "eth0"])?;
            ip(&["-n", name, "link", "set", "eth0", "up"])?;
            ip(&["-n", name, "link", "set", "lo", "up"])?;
        }
        Ok(hosts)
    }

    /// The address of the process that made the hosts.
    pub const fn driver() -> Ipv4Addr {
        Ipv4Addr::new(10, 77, 0, 254)
    }

    pub fn address(&self, host: &str) -> Ipv4Addr {
        let place = self.0.iter().position(|name| name == host).and_then(|n| u8::try_from(n + 1).ok());
        Ipv4Addr::new(10, 77, 0, place.unwrap_or_default())
    }

    /// A command that runs a program on a host.
    pub fn command(&self, host: &str, program: &Path) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", host]).arg(program);
        command
    }

    /// Cuts the host off. Its processes go on.
    pub fn cut(&self, host: &str) -> Result<()> {
        ip(&["link", "set", &link(host), "down"])
    }

    /// Ends [`Hosts::cut`].
    pub fn heal(&self, host: &str) -> Result<()> {
        ip(&["link", "set", &link(host), "up"])
    }

    /// Sends a signal to each process of the host: `KILL`, `STOP` (the host stands still), `CONT`.
    pub fn signal(&self, host: &str, signal: Signal) -> Result<()> {
        let pids = said(Command::new("ip").args(["netns", "pids", host]))?;
        for pid in pids.lines().filter_map(|line| Pid::from_raw(line.trim().parse().ok()?)) {
            // An error means that it has ended.
            let _ = kill_process(pid, signal);
        }
        Ok(())
    }
}

fn link(host: &str) -> String {
    format!("v-{host}")
}

fn ip(arguments: &[&str]) -> Result<()> {
    said(Command::new("ip").args(arguments)).map(drop)
}
