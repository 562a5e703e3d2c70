//! Logs and spans. The names of all spans and fields are here and nowhere else; those of model and
//! tool calls follow OpenTelemetry's conventions for generative AI.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::FmtSpan;

/// Span: one task, from delivery to recorded outcome.
pub const TASK: &str = "invoke_agent";
/// Span: one call of a language model.
pub const MODEL_CALL: &str = "chat";
/// Span: one call of a tool.
pub const TOOL_CALL: &str = "execute_tool";

/// How log lines are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// Opens the span of a task.
#[macro_export]
macro_rules! task_span {
    ($task:expr) => {
        tracing::info_span!(
            $crate::telemetry::TASK,
            gen_ai.operation.name = $crate::telemetry::TASK,
            gen_ai.conversation.id = %$task.investigation,
            casebook.task = %$task.id,
            casebook.phase = $task.phase.name(),
            casebook.round = $task.round,
        )
    };
}

/// Opens the span of a tool call.
#[macro_export]
macro_rules! tool_span {
    ($id:expr, $tool:expr) => {
        tracing::info_span!(
            $crate::telemetry::TOOL_CALL,
            gen_ai.operation.name = $crate::telemetry::TOOL_CALL,
            gen_ai.tool.name = $tool,
            gen_ai.tool.call.id = %$id,
        )
    };
}

/// Opens the span of a model call: names and counts, never a prompt or a reply. What is `Empty` is
/// recorded when the reply is there.
#[macro_export]
macro_rules! model_span {
    ($ask:expr, $provider:expr, $model:expr) => {
        tracing::info_span!(
            $crate::telemetry::MODEL_CALL,
            otel.name = %format_args!("{} {}", $crate::telemetry::MODEL_CALL, $model),
            gen_ai.operation.name = $crate::telemetry::MODEL_CALL,
            gen_ai.provider.name = $provider,
            gen_ai.request.model = $model,
            gen_ai.request.max_tokens = $ask.max_output,
            gen_ai.response.model = tracing::field::Empty,
            gen_ai.usage.input_tokens = tracing::field::Empty,
            gen_ai.usage.output_tokens = tracing::field::Empty,
            gen_ai.usage.cache_read.input_tokens = tracing::field::Empty,
            error.type = tracing::field::Empty,
            casebook.model_call = %$ask.id,
            casebook.model = $ask.model,
            casebook.prompt = $ask.prompt,
            casebook.attempts = tracing::field::Empty,
        )
    };
}

/// What `directives` let through, but for what would show a reply: the model library logs whole
/// bodies at its lowest level.
#[must_use]
pub fn filter(directives: &str) -> EnvFilter {
    let filter = EnvFilter::try_new(directives).unwrap_or_else(|_| EnvFilter::new("warn"));
    // The library behind MCP logs addresses, which may hold a key.
    ["genai=off", "rmcp=off"].iter().filter_map(|silent| silent.parse().ok()).fold(filter, EnvFilter::add_directive)
}

/// Sends log lines to standard error. `CASEBOOK_LOG` filters them, in the syntax of `tracing`
/// (`info`, `casebook_hub=debug`, …); without it only warnings show. A second call changes nothing.
pub fn start(format: LogFormat) {
    let filter = filter(&std::env::var("CASEBOOK_LOG").unwrap_or_else(|_| "warn".into()));
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none())
        .with_span_events(FmtSpan::CLOSE);
    // An error says that a subscriber is there already, as in tests.
    let _ = match format {
        LogFormat::Text => lines.try_init(),
        LogFormat::Json => lines.json().try_init(),
    };
}
