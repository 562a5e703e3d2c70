//! Logs, spans and measurements. The names of all spans and fields are here, those of what is measured in
//! [`meter`], and nowhere else; those of model and tool calls follow OpenTelemetry's conventions for
//! generative AI. [`export`] sends both to a collector, where one is named.

use std::io::IsTerminal;

use tracing_subscriber::fmt::format::FmtSpan;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _};

pub mod export;
pub mod meter;

/// Span: one task, from delivery to recorded outcome.
pub const TASK: &str = "invoke_agent";
/// Span: one call of a language model.
pub const MODEL_CALL: &str = "chat";
/// Span: one call of a tool.
pub const TOOL_CALL: &str = "execute_tool";
/// Span: an investigation from its first event to its last, told when it is over.
pub const INVESTIGATION: &str = "investigation";

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum LogFormat {
    #[default]
    Text,
    Json,
}

/// Opens the span of a task of the agent of this name. A trace of its own, which [`export::link`] ties to the
/// investigation: one trace of all tasks would last as long as it does.
#[macro_export]
macro_rules! task_span {
    ($task:expr, $agent:expr) => {
        tracing::info_span!(
            parent: None,
            $crate::telemetry::TASK,
            otel.name = %format_args!("{} {}", $crate::telemetry::TASK, $agent),
            otel.status_code = tracing::field::Empty,
            gen_ai.operation.name = $crate::telemetry::TASK,
            gen_ai.agent.name = $agent,
            gen_ai.conversation.id = %$task.investigation,
            error.type = tracing::field::Empty,
            casebook.task = %$task.id,
            casebook.task.kind = $task.view.kind().name(),
            casebook.phase = $task.phase.name(),
            casebook.round = $crate::telemetry::count($task.round),
        )
    };
}

/// Opens the span of a tool call.
#[macro_export]
macro_rules! tool_span {
    ($id:expr, $tool:expr) => {
        tracing::info_span!(
            $crate::telemetry::TOOL_CALL,
            otel.name = %format_args!("{} {}", $crate::telemetry::TOOL_CALL, $tool),
            otel.status_code = tracing::field::Empty,
            gen_ai.operation.name = $crate::telemetry::TOOL_CALL,
            gen_ai.tool.name = $tool,
            gen_ai.tool.call.id = %$id,
            error.type = tracing::field::Empty,
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
            otel.kind = "client",
            otel.status_code = tracing::field::Empty,
            gen_ai.operation.name = $crate::telemetry::MODEL_CALL,
            gen_ai.provider.name = $provider,
            gen_ai.request.model = $model,
            gen_ai.request.max_tokens = $crate::telemetry::count($ask.max_output),
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

/// What `directives` let through, except what could show a secret.
pub fn filter(directives: &str) -> EnvFilter {
    let filter = EnvFilter::try_new(directives).unwrap_or_else(|_| EnvFilter::new("warn"));
    // The library behind MCP logs addresses, which may hold a key.
    "rmcp=off".parse().into_iter().fold(filter, EnvFilter::add_directive)
}

/// A number of a span: what is not signed would reach a collector as text.
pub fn count(number: impl TryInto<i64>) -> i64 {
    number.try_into().unwrap_or(i64::MAX)
}

/// Marks `span` as failed, by the sort of failure alone: what a model or a tool said is not for a collector.
pub fn failed(span: &tracing::Span, sort: impl std::fmt::Display) {
    span.record("otel.status_code", "ERROR");
    span.record("error.type", tracing::field::display(sort));
}

/// Sends log lines to standard error. `CASEBOOK_LOG` filters them, in the syntax of `tracing`
/// (`info`, `casebook_hub=debug`, …); without it only warnings show. Where a `collector` is named, or the
/// variables that every program with OpenTelemetry reads name one, the spans and measurements of this process go
/// there, as those of `service`, until [`export::end`]. A second call changes nothing.
///
/// # Errors
/// The collector that was named for us cannot be sent to: what is wrong with it. Lines are written all the same. What
/// is wrong with variables that others set is a warning.
pub fn start(format: LogFormat, service: &'static str, collector: Option<&str>) -> Result<(), String> {
    let filter = filter(&std::env::var("CASEBOOK_LOG").unwrap_or_else(|_| "warn".into()));
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none())
        .with_span_events(FmtSpan::CLOSE);
    let lines = match format {
        LogFormat::Text => lines.with_filter(filter).boxed(),
        LogFormat::Json => lines.json().with_filter(filter).boxed(),
    };
    let (tracer, opened) = match export::open(collector, service) {
        Ok(tracer) => (tracer, Ok(())),
        Err(why) => (None, Err(why)),
    };
    // An error says that a subscriber is there already, as in tests.
    let _ = tracing_subscriber::registry().with(tracer.map(export::layer)).with(lines).try_init();
    match opened {
        Err(why) if collector.is_none() => {
            tracing::warn!(why, "no traces and measurements are sent");
            Ok(())
        }
        opened => opened,
    }
}
