//! Hosts far away. A kernel without `netem` cannot delay packets, so a program stands between the hosts and the bridge.

use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::{BRIDGE, Hosts, ip, link};
use crate::Result;

const PROGRAM: &str = include_str!("slow.py");
/// The namespace of the program. It has no address, so that it answers nothing.
const BETWEEN: &str = "slow";

/// Hosts whose frames are delayed.
pub struct Slow {
    program: Child,
    hosts: Vec<String>,
}

impl Slow {
    /// Frames from and to each of these hosts take `delay` longer, and up to a fifth more, in order. One set at a time,
    /// and none of them can be cut off meanwhile.
    pub fn start(hosts: &[&str], delay: Duration) -> Result<Self> {
        ip(&["netns", "add", BETWEEN])?;
        let mut program = Command::new("ip");
        let (seconds, jitter) = (delay.as_secs_f64().to_string(), (delay.as_secs_f64() / 5.0).to_string());
        program.args(["netns", "exec", BETWEEN, "python3", "-c", PROGRAM, &seconds, &jitter]);
        for host in hosts {
            let (own, near, far) = (link(host), format!("a-{host}"), format!("b-{host}"));
            ip(&["link", "add", &far, "type", "veth", "peer", "name", &near, "netns", BETWEEN])?;
            ip(&["link", "set", &far, "master", BRIDGE, "up"])?;
            ip(&["link", "set", &own, "netns", BETWEEN])?;
            ip(&["-n", BETWEEN, "link", "set", &near, "up"])?;
            ip(&["-n", BETWEEN, "link", "set", &own, "up"])?;
            program.args([&own, &near]);
        }
        let mut program = program.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
        let mut line = String::new();
        program.stdout.take().map(|out| BufReader::new(out).read_line(&mut line)).transpose()?;
        let hosts = hosts.iter().map(ToString::to_string).collect();
        // From here on the program is killed on an error.
        let slow = Self { program, hosts };
        if line.trim() == "ready" { Ok(slow) } else { Err("the program that delays frames did not start".into()) }
    }

    /// Puts the hosts back.
    pub fn end(mut self) -> Result<()> {
        self.program.kill()?;
        self.program.wait()?;
        for host in &self.hosts {
            // The process that made the hosts is the first of its sandbox.
            ip(&["-n", BETWEEN, "link", "set", &link(host), "netns", "1"])?;
            ip(&["link", "set", &link(host), "master", BRIDGE, "up"])?;
        }
        ip(&["netns", "delete", BETWEEN])
    }
}

impl Drop for Slow {
    fn drop(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

impl Hosts {
    /// How long a new connection from the driver to a port of a host takes, which is once there and back.
    pub fn round_trip(&self, host: &str, port: u16) -> Result<Duration> {
        let begun = Instant::now();
        TcpStream::connect((self.address(host), port))?;
        Ok(begun.elapsed())
    }
}
