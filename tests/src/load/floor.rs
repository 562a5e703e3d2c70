//! The floor: a bare client that makes the calls of an investigation and keeps nothing. It sends the
//! bodies of a [`Score`], reads the replies as JSON, and makes the tool calls that they ask for on the
//! same evidence. Whatever the Critic's and the Director's tools look at or add to is the record, which
//! it does not have: those calls it leaves out.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use casebook_agent::tools::Tools;
use casebook_cli::roster;
use casebook_evidence::Catalog;
use casebook_runtime::process;
use serde_json::Value;

use super::score::{Part, Score};
use super::{Setting, Taken, measure};

struct Client {
    http: reqwest::Client,
    url: String,
    tools: BTreeMap<String, Arc<dyn Tools>>,
    score: Score,
    model_calls: AtomicU64,
    tool_calls: AtomicU64,
}

/// Makes the calls of so many investigations at once.
///
/// # Errors
/// What went wrong, in words.
pub fn run(setting: &Setting) -> Result<Taken, String> {
    casebook_runtime::tls::install();
    let say = |e: &dyn std::fmt::Display| e.to_string();
    let catalog = Catalog::open(&setting.evidence, &setting.index, &mut |_| {}).map_err(|e| say(&e))?;
    let seats = roster::seats(&Arc::new(catalog));
    let score = std::fs::read(&setting.score).map_err(|e| say(&e))?;
    let client = Arc::new(Client {
        http: reqwest::Client::builder().no_gzip().build().map_err(|e| say(&e))?,
        url: format!("{}/v1/messages", setting.url),
        tools: seats.into_iter().map(|seat| (seat.member.domain.to_string(), seat.tools)).collect(),
        score: serde_json::from_slice(&score).map_err(|e| say(&e))?,
        model_calls: AtomicU64::new(0),
        tool_calls: AtomicU64::new(0),
    });
    process::run(async {
        // One before what is measured, as in the other modes: connections are open, everything is made.
        Arc::clone(&client).play().await?;
        client.model_calls.store(0, Ordering::Relaxed);
        client.tool_calls.store(0, Ordering::Relaxed);
        let (before_kib, cpu, begun) = (measure::peak_kib(), measure::cpu(), Instant::now());
        let mut failed = 0;
        for _ in 0..setting.waves {
            let all: Vec<_> = (0..setting.at).map(|_| tokio::spawn(Arc::clone(&client).play())).collect();
            for one in all {
                if let Err(error) = one.await.map_err(|e| e.to_string()).and_then(|done| done) {
                    eprintln!("load: a bare client stopped: {error}");
                    failed += 1;
                }
            }
        }
        Ok(Taken {
            cpu_micros: micros(measure::cpu() - cpu),
            wall_micros: micros(begun.elapsed()),
            peak_kib: measure::peak_kib(),
            before_kib,
            model_calls: client.model_calls.load(Ordering::Relaxed),
            tool_calls: client.tool_calls.load(Ordering::Relaxed),
            failed,
            ..Taken::default()
        })
    })
    .map_err(|e| e.to_string())?
}

pub(super) fn micros(took: std::time::Duration) -> u64 {
    u64::try_from(took.as_micros()).unwrap_or(u64::MAX)
}

impl Client {
    async fn play(self: Arc<Self>) -> Result<(), String> {
        for stage in 0..self.score.stages.len() {
            let parts = self.score.stages.get(stage).map_or(0, Vec::len);
            if parts == 1 {
                self.part(stage, 0).await?;
                continue;
            }
            let one = |part| {
                let client = Arc::clone(&self);
                tokio::spawn(async move { client.part(stage, part).await })
            };
            let all: Vec<_> = (0..parts).map(one).collect();
            for part in all {
                part.await.map_err(|e| e.to_string())??;
            }
        }
        Ok(())
    }

    async fn part(&self, stage: usize, part: usize) -> Result<(), String> {
        let Some(Part { domain, bodies, again }) = self.score.stages.get(stage).and_then(|s| s.get(part)) else {
            return Ok(());
        };
        let tools = domain.as_ref().and_then(|domain| self.tools.get(domain));
        for body in bodies {
            let reply = self.ask(body).await?;
            let asked = reply.get("content").and_then(Value::as_array).into_iter().flatten();
            let asked = asked.filter(|block| block.get("type").and_then(Value::as_str) == Some("tool_use"));
            let asked = asked
                .filter_map(|block| Some((block.get("name")?.as_str()?.to_owned(), block.get("input")?.to_string())));
            self.call(tools, asked.collect()).await?;
        }
        self.call(tools, again.clone()).await
    }

    async fn ask(&self, body: &str) -> Result<Value, String> {
        self.model_calls.fetch_add(1, Ordering::Relaxed);
        let request = self
            .http
            .post(&self.url)
            .header("content-type", "application/json")
            .header("anthropic-version", "2023-06-01")
            .header("x-api-key", "none")
            .body(body.to_owned());
        let response = request.send().await.map_err(|e| e.to_string())?;
        let status = response.status();
        let bytes = response.bytes().await.map_err(|e| e.to_string())?;
        if !status.is_success() {
            return Err(format!("HTTP {status}: {}", String::from_utf8_lossy(&bytes)));
        }
        serde_json::from_slice(&bytes).map_err(|e| e.to_string())
    }

    async fn call(&self, tools: Option<&Arc<dyn Tools>>, asked: Vec<(String, String)>) -> Result<(), String> {
        let Some(tools) = tools else { return Ok(()) };
        self.tool_calls.fetch_add(asked.len() as u64, Ordering::Relaxed);
        let one = |(tool, arguments): (String, String)| {
            let tools = Arc::clone(tools);
            tokio::spawn(async move { tools.call(&tool, &arguments).await })
        };
        let all: Vec<_> = asked.into_iter().map(one).collect();
        for call in all {
            call.await.map_err(|e| e.to_string())??;
        }
        Ok(())
    }
}
