//! Speed of the pages: of the list with many investigations, and of one investigation with many events.

use std::time::{Duration, Instant};

use reqwest::Client;

use super::Server;
use crate::Result;

pub mod case;
pub mod list;

/// Answers in this share of all cases are within the goal.
const SHARE: usize = 95;

/// Times of answers.
#[derive(Debug, Default)]
pub struct Times(Vec<Duration>);

impl Times {
    fn add(&mut self, time: Duration) {
        self.0.push(time);
    }

    /// In milliseconds.
    fn share(&self, share: usize) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let place = (sorted.len() * share / 100).min(sorted.len().saturating_sub(1));
        sorted.get(place).map_or(0.0, |time| time.as_secs_f64() * 1e3)
    }
}

/// Figures, and the goals that they miss.
#[derive(Debug, Default)]
pub struct Figures {
    lines: Vec<String>,
    missed: Vec<String>,
}

impl Figures {
    /// `goal` in milliseconds, for 95 of 100 answers.
    fn times(&mut self, name: &str, times: &Times, goal: f64) {
        let all = [50, SHARE, 100].map(|share| times.share(share));
        self.say(format!("{name:<34} {:>7.1} {:>7.1} {:>7.1} ms, {} answers", all[0], all[1], all[2], times.0.len()));
        self.judge(name, all[1], goal, "ms");
    }

    fn say(&mut self, line: String) {
        self.lines.push(line);
    }

    fn judge(&mut self, name: &str, found: f64, goal: f64, unit: &str) {
        if found > goal {
            self.missed.push(format!("{name}: {found:.1} {unit}, the goal is {goal:.0}"));
        }
    }

    fn done(self) -> Result<String> {
        let figures = self.lines.join("\n");
        if self.missed.is_empty() {
            return Ok(figures);
        }
        Err(format!("{figures}\nmissed:\n{}", self.missed.join("\n")).into())
    }
}

/// Asks as a browser does: answers come packed.
struct Asker {
    client: Client,
    base: String,
    key: String,
}

impl Asker {
    fn of(server: &Server) -> Result<Self> {
        let client = Client::builder().timeout(Duration::from_secs(600)).build()?;
        Ok(Self { client, base: server.base.clone(), key: server.key.clone() })
    }

    fn request(&self, path: &str) -> reqwest::RequestBuilder {
        self.client.get(format!("{}{path}", self.base)).bearer_auth(&self.key)
    }

    /// How long the whole answer took.
    async fn timed(&self, path: &str) -> Result<Duration> {
        let begun = Instant::now();
        let answer = self.request(path).header("accept-encoding", "gzip").send().await?;
        let status = answer.status();
        answer.bytes().await?;
        let took = begun.elapsed();
        if status.is_success() { Ok(took) } else { Err(format!("{path}: status {status}").into()) }
    }
}
