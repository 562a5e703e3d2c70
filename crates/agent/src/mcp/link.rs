//! Keeps a server reachable: connects on demand, restarts with growing pauses, and limits concurrent calls. Failures
//! become messages for the caller.

use std::sync::Arc;
use std::time::{Duration, Instant};

use casebook_protocol::one_line;
use secrecy::SecretString;
use serde_json::{Map, Value};
use tokio::sync::{Mutex, Semaphore};

use super::client::{CallError, Client, Reach};
use super::pins::fingerprint;
use super::policy::{SecretSource, ServerPolicy};
use super::servers::Way;
use super::{Listed, Listing};

/// The pause before the first restart, and the longest pause.
const PAUSE: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(60));
/// How long a call waits for a restart before it fails.
const PATIENCE: Duration = Duration::from_secs(5);
/// A connection that lasted this long was good: a failure after it counts as the first.
const GOOD: Duration = Duration::from_secs(60);
/// After this many unanswered calls in a row the server is restarted.
const STUCK: u32 = 2;

pub struct Link {
    name: String,
    way: Way,
    policy: ServerPolicy,
    gate: Semaphore,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    client: Option<Arc<Client>>,
    listing: Arc<Listing>,
    failures: u32,
    failed: Option<(Instant, String)>,
    late: u32,
}

fn pause(failures: u32) -> Duration {
    match failures.checked_sub(1) {
        None => Duration::ZERO,
        Some(doublings) => PAUSE.0.saturating_mul(1 << doublings.min(16)).min(PAUSE.1),
    }
}

impl Link {
    /// The server `name`. It is not connected before it is needed.
    #[must_use]
    pub fn new(name: &str, way: Way, policy: ServerPolicy) -> Self {
        let gate = Semaphore::new(policy.concurrency.max(1));
        Self { name: name.to_owned(), way, policy, gate, state: Mutex::default() }
    }

    pub async fn listing(&self) -> Result<Arc<Listing>, String> {
        self.connected().await.map(|(_, listing)| listing)
    }

    /// Calls `tool` if it still has the fingerprint `known`.
    pub async fn call(&self, tool: &str, known: &str, arguments: Map<String, Value>) -> Result<String, String> {
        // The semaphore is never closed.
        let _turn = self.gate.acquire().await;
        let (client, listing) = self.connected().await?;
        self.unchanged(&listing.tools, tool, known)?;
        match client.call(tool, arguments, self.policy.timeout).await {
            Ok(text) => {
                self.state.lock().await.late = 0;
                Ok(text)
            }
            Err(CallError::Refused(why)) => {
                self.state.lock().await.late = 0;
                Err(why)
            }
            Err(CallError::Late) => {
                let within = self.policy.timeout.as_secs_f32();
                self.late(&client).await;
                Err(format!(
                    "server {} gave no answer within {within} s; malformed answers and those over {} MiB are dropped",
                    self.name,
                    super::client::MESSAGE >> 20
                ))
            }
            Err(CallError::Lost(why)) => {
                let why = self.lost(client, Some(why)).await;
                Err(format!("server {} was lost during the call, which may have had effects: {why}", self.name))
            }
        }
    }

    fn unchanged(&self, tools: &[Listed], tool: &str, known: &str) -> Result<(), String> {
        let name = &self.name;
        match tools.iter().find(|listed| listed.name == tool) {
            None => Err(format!("server {name} has no tool {tool:?} any more")),
            Some(listed) if fingerprint(listed) != known => Err(format!(
                "held back: server {name} has changed its tool {tool:?} after this Expert started; a person \
                 must confirm it with `casebook tools --confirm {name}/{tool}`"
            )),
            Some(_) => Ok(()),
        }
    }

    async fn connected(&self) -> Result<(Arc<Client>, Arc<Listing>), String> {
        let mut state = self.state.lock().await;
        if let Some(client) = state.client.clone() {
            if client.alive() {
                if client.tools_changed() {
                    state.listing = Arc::new(client.list(self.policy.start_timeout).await?);
                }
                return Ok((client, Arc::clone(&state.listing)));
            }
            drop(client);
            self.fail(&mut state, None);
        }
        if let Some((when, why)) = &state.failed {
            let left = pause(state.failures).saturating_sub(when.elapsed());
            if left > PATIENCE {
                return Err(format!(
                    "server {} is not available: {why}; next attempt in {} s",
                    self.name,
                    left.as_secs().max(1)
                ));
            }
            tokio::time::sleep(left).await;
        }
        match self.connect().await {
            Ok((client, listing)) => {
                let (client, listing) = (Arc::new(client), Arc::new(listing));
                state.client = Some(Arc::clone(&client));
                state.listing = Arc::clone(&listing);
                state.late = 0;
                Ok((client, listing))
            }
            Err(why) => {
                state.failures = state.failures.saturating_add(1);
                tracing::info!(server = self.name, why, failures = state.failures, "cannot reach an MCP server");
                state.failed = Some((Instant::now(), why.clone()));
                Err(format!("server {} cannot be reached: {why}", self.name))
            }
        }
    }

    async fn connect(&self) -> Result<(Client, Listing), String> {
        let reach = self.reach()?;
        let client = Client::connect(&reach, self.policy.start_timeout).await?;
        let listing = client.list(self.policy.start_timeout).await?;
        tracing::info!(
            server = self.name,
            is = listing.server,
            tools = listing.tools.len(),
            "connected to an MCP server"
        );
        Ok((client, listing))
    }

    fn fail(&self, state: &mut State, why: Option<String>) -> String {
        let Some(client) = state.client.take() else {
            return state.failed.as_ref().map_or_else(String::new, |(_, why)| why.clone());
        };
        let lasted = client.since.elapsed();
        let why = match Arc::try_unwrap(client) {
            Ok(mut client) => why.unwrap_or_else(|| client.why_gone()),
            // Another call holds the connection and reports the details.
            Err(_) => why.unwrap_or_else(|| "it closed the connection".to_owned()),
        };
        state.failures = if lasted >= GOOD { 1 } else { state.failures.saturating_add(1) };
        state.failed = Some((Instant::now(), why.clone()));
        tracing::warn!(server = self.name, why, failures = state.failures, "lost an MCP server");
        why
    }

    async fn lost(&self, client: Arc<Client>, why: Option<String>) -> String {
        let mut state = self.state.lock().await;
        let current = state.client.as_ref().is_some_and(|now| Arc::ptr_eq(now, &client));
        drop(client);
        if !current {
            return why.unwrap_or_default();
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
        let reason = self.fail(&mut state, None);
        match why {
            Some(why) if reason.is_empty() || reason.contains(&why) => why,
            Some(why) => format!("{}; {reason}", one_line(&why, 200)),
            None => reason,
        }
    }

    async fn late(&self, client: &Arc<Client>) {
        let mut state = self.state.lock().await;
        let current = state.client.as_ref().is_some_and(|now| Arc::ptr_eq(now, client));
        if !current {
            return;
        }
        state.late += 1;
        if state.late >= STUCK {
            let why = format!("{} calls in a row were not answered", state.late);
            self.fail(&mut state, Some(why));
        }
    }

    fn reach(&self) -> Result<Reach, String> {
        let with = |named: &std::collections::BTreeMap<String, SecretString>,
                    secrets: &std::collections::BTreeMap<String, SecretSource>| {
            let mut all: Vec<(String, SecretString)> = named.iter().map(|(k, v)| (k.clone(), v.clone())).collect();
            for (name, source) in secrets {
                all.retain(|(other, _)| !other.eq_ignore_ascii_case(name));
                all.push((name.clone(), secret(name, source)?));
            }
            Ok::<_, String>(all)
        };
        match &self.way {
            Way::Child { command, args, env, cwd } => {
                let mut env = with(env, &self.policy.secrets)?;
                for name in &self.policy.environment {
                    if let Ok(value) = std::env::var(name)
                        && !env.iter().any(|(other, _)| other == name)
                    {
                        env.push((name.clone(), value.into()));
                    }
                }
                Ok(Reach::Child { program: command.clone(), args: args.clone(), env, cwd: cwd.clone() })
            }
            Way::Http { url, headers } => {
                Ok(Reach::Http { url: url.clone(), headers: with(headers, &self.policy.headers)? })
            }
        }
    }

    pub async fn close(&self) {
        let client = self.state.lock().await.client.take();
        match client.map(Arc::try_unwrap) {
            None => {}
            Some(Ok(client)) => client.close().await,
            // A cancelled call is still running.
            Some(Err(client)) => client.kill(),
        }
    }
}

fn secret(name: &str, source: &SecretSource) -> Result<SecretString, String> {
    let value = match source {
        SecretSource::Env(variable) => std::env::var(variable)
            .map_err(|_| format!("its secret {name} is in the variable {variable}, which is not set"))?,
        SecretSource::File(file) => std::fs::read_to_string(file)
            .map_err(|e| format!("its secret {name} is in {}, which cannot be read: {e}", file.display()))?,
    };
    Ok(value.trim_end_matches(['\r', '\n']).to_owned().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_limit() {
        let all: Vec<u64> = (0..10).map(|n| u64::try_from(pause(n).as_millis()).unwrap()).collect();
        assert_eq!(all, [0, 500, 1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000]);
        assert_eq!(pause(u32::MAX), PAUSE.1);
    }
}
