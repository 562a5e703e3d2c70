//! `casebook serve` as a process, and checks of its pages and API.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use reqwest::Client;

use crate::{Result, run};

pub mod access;
pub mod bench;
pub mod contract;
pub mod cost;
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
    client: Client,
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
        let client = Client::builder().timeout(Duration::from_secs(30)).build()?;
        let mut server = Self { process, base: String::new(), key: String::new(), client };
        let mut lines = BufReader::new(output).lines().map_while(std::result::Result::ok);
        let (base, key) = lines.find_map(|line| address(&line)).ok_or("the server printed no address")?;
        // What follows is read, so that the server never waits for us.
        std::thread::spawn(move || lines.for_each(drop));
        (server.base, server.key) = (base, key);
        Ok(server)
    }

    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Status and body of an address, asked with the key.
    pub async fn get(&self, path: &str) -> Result<(u16, Vec<u8>)> {
        let answer = self.client.get(format!("{}{path}", self.base)).bearer_auth(&self.key).send().await?;
        Ok((answer.status().as_u16(), answer.bytes().await?.to_vec()))
    }

    /// The text of a page, or what is wrong.
    pub async fn text(&self, path: &str) -> Result<String> {
        let (status, body) = self.get(path).await?;
        let body = String::from_utf8(body)?;
        if status == 200 { Ok(body) } else { Err(format!("{path}: status {status}: {body}").into()) }
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

/// What a page says, without marks, spaces and quotes of names: equal texts stay equal whatever is emphasised in them.
pub fn said(html: &str) -> String {
    let mut text = String::new();
    for part in html.split('<') {
        text.push_str(part.split_once('>').map_or(part, |(_, text)| text));
    }
    let text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&");
    bare(&text)
}

/// A text as [`said`] gives it.
pub fn bare(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace() && *c != '`').collect()
}
