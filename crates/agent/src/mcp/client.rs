//! One connection to an MCP server. Only this module speaks the protocol as a client.

use std::collections::HashMap;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use casebook_protocol::one_line;
use reqwest::header::{HeaderName, HeaderValue};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ClientCapabilities, ClientConfig, ClientRequest, ContentBlock,
    Implementation, ListToolsRequest, PaginatedRequestParams, ServerResult, Tool,
};
use rmcp::service::{NotificationContext, RunningService, ServiceError};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{ClientHandler, RoleClient, ServiceExt};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value};
use tokio::process::Child;

use super::outcome::Answered;
use super::{Listed, Listing};

mod child;
mod secret;

use child::{collect, spawned};
use secret::{secrets, without};

/// The longest accepted message, in bytes. A longer one is dropped, so its call gets no answer.
pub const MESSAGE: usize = 64 * 1024 * 1024;
/// The limits of a server's list of tools: their number, and their bytes.
const TOOLS: usize = 1000;
const LISTED: usize = 16 * 1024 * 1024;
/// How long a child may take to end after its input is closed, and again after SIGTERM.
const FAREWELL: Duration = Duration::from_secs(1);

#[derive(Clone)]
pub enum Reach {
    Child { program: String, args: Vec<String>, env: Vec<(String, SecretString)>, cwd: Option<PathBuf> },
    Http { url: String, headers: Vec<(String, SecretString)> },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallError {
    /// The server refused or reported a failure, which is a result for the caller.
    Refused(String),
    Late,
    Lost(String),
}

pub struct Client {
    running: Option<RunningService<RoleClient, Handler>>,
    child: Option<Child>,
    /// The process group that the child leads.
    group: Option<rustix::process::Pid>,
    errors: Arc<Mutex<Vec<u8>>>,
    secrets: Vec<SecretString>,
    changed: Arc<AtomicBool>,
    pub since: Instant,
}

struct Handler {
    changed: Arc<AtomicBool>,
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        ClientConfig::new(ClientCapabilities::default(), Implementation::new("casebook", env!("CARGO_PKG_VERSION")))
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changed.store(true, Ordering::Release);
    }
}

impl Client {
    /// Connects within `patience`. The error contains no secrets.
    pub async fn connect(reach: &Reach, patience: Duration) -> Result<Self, String> {
        let changed = Arc::new(AtomicBool::new(false));
        let handler = Handler { changed: Arc::clone(&changed) };
        let mut client = Self {
            running: None,
            child: None,
            group: None,
            errors: Arc::default(),
            secrets: secrets(reach),
            changed,
            since: Instant::now(),
        };
        let begun = tokio::time::timeout(patience, client.begin(reach, handler)).await;
        match begun {
            Ok(Ok(())) => Ok(client),
            Ok(Err(why)) => Err(client.explained(&why).await),
            Err(_) => Err(client.explained(&format!("did not begin within {} s", patience.as_secs_f32())).await),
        }
    }

    async fn begin(&mut self, reach: &Reach, handler: Handler) -> Result<(), String> {
        let running = match reach {
            Reach::Child { program, args, env, cwd } => {
                let mut child = spawned(program, args, env, cwd.as_deref())?;
                let (output, input) = (child.stdout.take(), child.stdin.take());
                if let Some(errors) = child.stderr.take() {
                    tokio::spawn(collect(errors, Arc::clone(&self.errors)));
                }
                self.group = child.id().and_then(|id| i32::try_from(id).ok()).and_then(rustix::process::Pid::from_raw);
                self.child = Some(child);
                let (Some(output), Some(input)) = (output, input) else { return Err("has no pipes".into()) };
                let transport = AsyncRwTransport::<RoleClient, _, _>::new(output, input).with_max_line_length(MESSAGE);
                handler.serve(transport).await.map_err(|e| e.to_string())
            }
            Reach::Http { url, headers } => {
                casebook_runtime::tls::install();
                let config = StreamableHttpClientTransportConfig::with_uri(url.as_str())
                    .custom_headers(parsed(headers)?)
                    .max_sse_event_size(MESSAGE);
                // A redirect could send the headers to another server.
                let http = reqwest::Client::builder()
                    .redirect(reqwest::redirect::Policy::none())
                    .connect_timeout(Duration::from_secs(10))
                    .build()
                    .map_err(|e| format!("cannot speak HTTP: {e}"))?;
                let transport = StreamableHttpClientTransport::with_client(http, config);
                handler.serve(transport).await.map_err(|e| e.to_string())
            }
        };
        self.running = Some(running?);
        Ok(())
    }

    async fn explained(&mut self, why: &str) -> String {
        if let Some(child) = &mut self.child {
            // Its last output may still be on its way.
            let _ = tokio::time::timeout(Duration::from_millis(200), child.wait()).await;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        self.with_output(why)
    }

    fn with_output(&self, why: &str) -> String {
        let errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        // Secrets are removed before texts are cut, since a part of a secret is also secret.
        let without = |text: &str| without(text, &self.secrets);
        let (why, text) = (without(why), without(&String::from_utf8_lossy(&errors)));
        let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let last = lines.get(lines.len().saturating_sub(3)..).unwrap_or_default().join(" / ");
        let mut message = one_line(&why, 300);
        if !last.is_empty() {
            message.push_str(&format!("; its last output: {}", one_line(&last, 400)));
        }
        message
    }

    /// False if the connection is known to be closed.
    pub fn alive(&self) -> bool {
        self.running.as_ref().is_some_and(|running| !running.is_closed() && !running.is_transport_closed())
    }

    pub fn why_gone(&mut self) -> String {
        let ended = self.child.as_mut().and_then(|child| child.try_wait().ok().flatten());
        match ended {
            Some(status) => self.with_output(&format!("it ended: {status}")),
            None => self.with_output("it closed the connection"),
        }
    }

    /// True if the server reported a change of its tools after they were listed.
    pub fn tools_changed(&self) -> bool {
        self.changed.load(Ordering::Acquire)
    }

    pub async fn list(&self, patience: Duration) -> Result<Listing, String> {
        let running = self.running.as_ref().ok_or("is not connected")?;
        // A change that is reported during the listing counts for the next time.
        let changed = self.changed.swap(false, Ordering::AcqRel);
        let listing = self.asked(running, patience).await;
        if listing.is_err() && changed {
            self.changed.store(true, Ordering::Release);
        }
        listing
    }

    async fn asked(
        &self,
        running: &RunningService<RoleClient, Handler>,
        patience: Duration,
    ) -> Result<Listing, String> {
        let tools = if running.peer_info().is_some_and(|info| info.capabilities.tools.is_some()) {
            tokio::time::timeout(patience, all_tools(running))
                .await
                .map_err(|_| self.with_output(&format!("did not list its tools within {} s", patience.as_secs_f32())))?
                .map_err(|e| self.with_output(&format!("cannot list its tools: {e}")))?
        } else {
            Vec::new()
        };
        let (server, protocol) = running.peer_info().map_or_else(Default::default, |info| {
            let server = info.server_info.as_ref().map(|is| format!("{} {}", is.name, is.version)).unwrap_or_default();
            (one_line(&server, 80), info.protocol_version.to_string())
        });
        Ok(Listing { server, protocol, tools: tools.into_iter().map(listed).collect() })
    }

    pub async fn call(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
        patience: Duration,
    ) -> Result<String, CallError> {
        let running = self.running.as_ref().ok_or_else(|| CallError::Lost("is not connected".into()))?;
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        // A request whose caller stops waiting is cancelled at the server.
        let answer = tokio::time::timeout(patience, running.call_tool_once(params)).await;
        match answer {
            Err(_) => Err(CallError::Late),
            Ok(Ok(CallToolResponse::Complete(result))) => {
                let content = result.content.iter().filter_map(|block: &ContentBlock| serde_json::to_value(block).ok());
                let answered = Answered {
                    content: content.collect(),
                    structured: result.structured_content,
                    failed: result.is_error == Some(true),
                };
                answered.text().map_err(CallError::Refused)
            }
            Ok(Ok(_)) => Err(CallError::Refused("the server asks for input, which casebook does not support".into())),
            Ok(Err(ServiceError::McpError(error))) => {
                Err(CallError::Refused(self.with_output(&format!("the server refuses: {}", error.message))))
            }
            Ok(Err(error @ (ServiceError::TransportClosed | ServiceError::TransportSend(_)))) => {
                Err(CallError::Lost(self.with_output(&error.to_string())))
            }
            Ok(Err(error)) => Err(CallError::Refused(self.with_output(&error.to_string()))),
        }
    }

    /// Ends the connection. A child gets time to end by itself, and is then terminated and killed.
    pub async fn close(mut self) {
        if let Some(running) = self.running.take() {
            // An error means that it has already ended.
            let _ = tokio::time::timeout(FAREWELL, running.cancel()).await;
        }
        if let Some(mut child) = self.child.take()
            && tokio::time::timeout(FAREWELL, child.wait()).await.is_err()
        {
            self.signal(rustix::process::Signal::TERM);
            let _ = tokio::time::timeout(FAREWELL, child.wait()).await;
        }
    }

    pub fn kill(&self) {
        self.signal(rustix::process::Signal::KILL);
    }

    /// The child leads a process group, so the signal reaches all processes that it started.
    fn signal(&self, signal: rustix::process::Signal) {
        if let Some(group) = self.group {
            let _ = rustix::process::kill_process_group(group, signal);
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.kill();
    }
}

/// All pages of a server's tools, always requested anew.
async fn all_tools(running: &RunningService<RoleClient, Handler>) -> Result<Vec<Tool>, String> {
    let (mut all, mut bytes, mut cursor) = (Vec::new(), 0, None);
    loop {
        let params = PaginatedRequestParams::default().with_cursor(cursor.clone());
        let request = ListToolsRequest::with_param(params);
        let answer = running.send_request(ClientRequest::ListToolsRequest(request)).await;
        let ServerResult::ListToolsResult(page) = answer.map_err(|e| e.to_string())? else {
            return Err("unexpected answer".to_owned());
        };
        for tool in page.tools {
            bytes += serde_json::to_string(&tool).map_or(0, |text| text.len());
            all.push(tool);
        }
        if all.len() > TOOLS || bytes > LISTED {
            return Err(format!("more than {TOOLS} tools, or more than {LISTED} bytes"));
        }
        match page.next_cursor {
            Some(next) if cursor.as_ref() != Some(&next) => cursor = Some(next),
            _ => return Ok(all),
        }
    }
}

fn parsed(headers: &[(String, SecretString)]) -> Result<HashMap<HeaderName, HeaderValue>, String> {
    let one = |(name, value): &(String, SecretString)| {
        let header = HeaderName::from_str(name).map_err(|_| format!("expected the name of a header, got {name:?}"))?;
        let mut value = HeaderValue::from_str(value.expose_secret())
            .map_err(|_| format!("the value of header {name} has characters that no header may have"))?;
        value.set_sensitive(true);
        Ok((header, value))
    };
    headers.iter().map(one).collect()
}

fn listed(tool: Tool) -> Listed {
    Listed {
        name: tool.name.into_owned(),
        description: tool.description.map(std::borrow::Cow::into_owned).unwrap_or_default(),
        schema: Value::Object(tool.input_schema.as_ref().clone()),
        read_only: tool.annotations.and_then(|hints| hints.read_only_hint),
    }
}
