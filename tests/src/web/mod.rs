//! `casebook serve` as a process, and checks of its pages and API.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::{Result, run};

pub mod access;
pub mod contract;
pub mod evidence;
pub mod first;
pub mod latency;
pub mod live;
pub mod noscript;
pub mod questions;
pub mod resume;
pub mod stage;
pub mod weight;

/// A server that ends with the value.
pub struct Server {
    process: Child,
    pub base: String,
    pub key: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Server {
    /// `casebook serve`, once it has printed its address.
    pub fn serve(data: &Path, arguments: &[&str]) -> Result<Self> {
        Self::start(data, &[&["serve"], arguments].concat())
    }

    /// `casebook demo --serve`.
    pub fn demo(data: &Path) -> Result<Self> {
        Self::start(data, &["demo", "--serve"])
    }

    fn start(data: &Path, arguments: &[&str]) -> Result<Self> {
        casebook_runtime::tls::install();
        let mut command = Command::new(run::program("casebook"));
        command.args(arguments).args(["--port", "0", "--data"]).arg(data);
        for name in ["CASEBOOK_MODELS", "CASEBOOK_NATS", "CASEBOOK_TEAM"] {
            command.env_remove(name);
        }
        let mut process = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
        let output = process.stdout.take().ok_or("no output")?;
        let mut server = Self { process, base: String::new(), key: String::new() };
        let mut lines = BufReader::new(output).lines().map_while(std::result::Result::ok);
        let (base, key) = lines.find_map(|line| address(&line)).ok_or("the server printed no address")?;
        // What follows is read, so that the server never waits for us.
        std::thread::spawn(move || lines.for_each(drop));
        (server.base, server.key) = (base, key);
        Ok(server)
    }

    pub fn kill(&mut self) {
        // An error means that it has ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The address in a printed line, without and with its key.
pub fn address(line: &str) -> Option<(String, String)> {
    let (base, key) = line.split_once("http://")?.1.split_once("/?k=")?;
    Some((format!("http://{base}"), key.trim().to_owned()))
}
