use std::sync::Arc;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation, JsonObject, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool, ToolAnnotations,
};
use rmcp::service::{RequestContext, RoleServer};
use rmcp::{ErrorData, ServerHandler};
use serde_json::Value;
use tokio::sync::Semaphore;

use super::{Hints, Served};

/// The most concurrent calls of all clients. More are refused, so that waiting calls cannot pile up.
const CALLS: usize = 64;

#[derive(Clone)]
pub(super) struct Handler {
    served: Arc<Served>,
    calls: Arc<Semaphore>,
}

impl Handler {
    pub(super) fn new(served: Served) -> Self {
        Self { served: Arc::new(served), calls: Arc::new(Semaphore::new(CALLS)) }
    }

    fn tools(&self) -> Vec<Tool> {
        let tool = |spec: casebook_protocol::ToolSpec| {
            // Our own schemas are objects, so the default is never used.
            let schema: JsonObject = serde_json::from_str(&spec.input_schema).unwrap_or_default();
            let annotations = annotations((self.served.hints)(&spec.name));
            Tool::new(spec.name, spec.description, schema).with_annotations(annotations)
        };
        self.served.tools.toolset().tools.into_iter().map(tool).collect()
    }

    async fn answer(&self, request: CallToolRequestParams) -> CallToolResult {
        let Ok(_permit) = self.calls.try_acquire() else {
            return failed(format!("{CALLS} calls are running, which is the limit; call again later"));
        };
        let arguments = Value::Object(request.arguments.unwrap_or_default()).to_string();
        match self.served.tools.call(&request.name, &arguments).await {
            Ok(text) => answered(text),
            Err(message) => failed(message),
        }
    }
}

fn annotations(hints: Hints) -> ToolAnnotations {
    ToolAnnotations::new()
        .read_only(hints.read_only)
        .destructive(false)
        .idempotent(hints.idempotent)
        .open_world(hints.open_world)
}

/// The text unchanged; a JSON object also becomes structured content.
fn answered(text: String) -> CallToolResult {
    let structured = serde_json::from_str::<JsonObject>(&text).ok().map(Value::Object);
    let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
    result.structured_content = structured;
    result
}

fn failed(message: String) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(message)])
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new(self.served.name, env!("CARGO_PKG_VERSION")))
            .with_instructions(self.served.instructions.clone())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.tools()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        tokio::select! {
            result = self.answer(request) => Ok(result.into()),
            () = context.ct.cancelled() => Err(ErrorData::internal_error("the client cancelled the call", None)),
        }
    }
}
