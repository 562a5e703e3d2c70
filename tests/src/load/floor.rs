//! A bare client that makes the calls of an investigation and stores nothing. It sends the bodies of [`Calls`],
//! parses the replies as JSON, and makes their tool calls on the same evidence. It omits tool calls of Critic
//! and Director that use the record.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use casebook_agent::tools::Tools;
use casebook_cli::roster;
use casebook_runtime::process;
use serde_json::Value;

use super::calls::{Calls, Part};
use super::measure::Meter;
use super::{Setting, Taken};
use crate::Result;

struct Client {
    http: reqwest::Client,
    url: String,
    tools: BTreeMap<String, Arc<dyn Tools>>,
    calls: Calls,
    model_calls: AtomicU64,
    tool_calls: AtomicU64,
}

pub fn run(setting: &Setting) -> Result<Taken> {
    casebook_runtime::tls::install();
    let members = roster::members(&Arc::new(setting.catalog()?));
    let client = Arc::new(Client {
        http: reqwest::Client::builder().no_gzip().build()?,
        url: format!("{}/v1/messages", setting.url),
        tools: members
            .into_iter()
            .map(|team_member| (team_member.member.domain.to_string(), team_member.tools))
            .collect(),
        calls: serde_json::from_slice(&std::fs::read(setting.calls())?)?,
        model_calls: AtomicU64::new(0),
        tool_calls: AtomicU64::new(0),
    });
    process::run(async {
        // One unmeasured investigation first, as in the other modes, to open connections and fill caches.
        Arc::clone(&client).play().await?;
        let counts = [&client.model_calls, &client.tool_calls];
        counts.iter().for_each(|count| count.store(0, Ordering::Relaxed));
        let meter = Meter::start();
        let mut failed = 0;
        let done = |played: Result<()>| {
            if let Err(error) = played {
                eprintln!("load: a bare client stopped: {error}");
                failed += 1;
            }
        };
        setting.in_waves(|_| Arc::clone(&client).play(), done).await;
        let [model_calls, tool_calls] = counts.map(|count| count.load(Ordering::Relaxed));
        Ok(meter.stop(Taken { model_calls, tool_calls, failed, ..Taken::default() }))
    })?
}

impl Client {
    async fn play(self: Arc<Self>) -> Result<()> {
        for (stage, parts) in self.calls.stages.iter().enumerate() {
            if parts.len() == 1 {
                self.part(stage, 0).await?;
                continue;
            }
            let one = |part| {
                let client = Arc::clone(&self);
                tokio::spawn(async move { client.part(stage, part).await })
            };
            for part in (0..parts.len()).map(one).collect::<Vec<_>>() {
                part.await??;
            }
        }
        Ok(())
    }

    async fn part(&self, stage: usize, part: usize) -> Result<()> {
        let Some(Part { domain, bodies, again }) = self.calls.stages.get(stage).and_then(|s| s.get(part)) else {
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

    async fn ask(&self, body: &str) -> Result<Value> {
        self.model_calls.fetch_add(1, Ordering::Relaxed);
        let request = self
            .http
            .post(&self.url)
            .header("content-type", "application/json")
            .header("anthropic-version", "2023-06-01")
            .header("x-api-key", "none")
            .body(body.to_owned());
        let response = request.send().await?;
        let status = response.status();
        let bytes = response.bytes().await?;
        if !status.is_success() {
            return Err(format!("HTTP {status}: {}", String::from_utf8_lossy(&bytes)).into());
        }
        Ok(serde_json::from_slice(&bytes)?)
    }

    async fn call(&self, tools: Option<&Arc<dyn Tools>>, asked: Vec<(String, String)>) -> Result<()> {
        let Some(tools) = tools else { return Ok(()) };
        self.tool_calls.fetch_add(asked.len() as u64, Ordering::Relaxed);
        let one = |(tool, arguments): (String, String)| {
            let tools = Arc::clone(tools);
            tokio::spawn(async move { tools.call(&tool, &arguments).await })
        };
        for call in asked.into_iter().map(one).collect::<Vec<_>>() {
            call.await??;
        }
        Ok(())
    }
}
