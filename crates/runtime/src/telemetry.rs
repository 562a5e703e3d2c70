//! Logs, spans and metrics. This file names all spans and their fields, and [`meter`] all metrics. Names for model and
//! tool calls follow OpenTelemetry's conventions for generative AI. [`export`] sends both to a collector, and [`scrape`]
//! shows the metrics to Prometheus.

use std::io::IsTerminal;

use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _};

use lines::{Keep, Lines};

pub mod export;
pub mod lines;
pub mod meter;
pub mod scrape;

pub const TASK: &str = "invoke_agent";
pub const MODEL_CALL: &str = "chat";
pub const TOOL_CALL: &str = "execute_tool";
/// Span: a whole investigation, exported when it is closed.
pub const INVESTIGATION: &str = "investigation";

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum LogFormat {
    #[default]
    Text,
    Json,
}

/// Opens the span of a task. Each task is a separate trace, linked to the investigation by [`export::link`], since a
/// trace of all tasks would last too long.
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

/// Opens the span of a model call, without prompt and reply. `Empty` fields are recorded with the reply.
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

/// A filter from `directives` that also blocks what could show a secret.
pub fn filter(directives: &str) -> EnvFilter {
    let filter = EnvFilter::try_new(directives).unwrap_or_else(|_| EnvFilter::new("warn"));
    // The MCP library logs addresses, which may contain a key.
    ["rmcp=off", crate::nats::LIBRARY_LOG]
        .iter()
        .filter_map(|blocked| blocked.parse().ok())
        .fold(filter, EnvFilter::add_directive)
}

/// Span fields must be signed: collectors would get other integers as text.
pub fn count(number: impl TryInto<i64>) -> i64 {
    number.try_into().unwrap_or(i64::MAX)
}

/// Marks `span` as failed with the kind of failure. Texts of models and tools must not reach a collector.
pub fn failed(span: &tracing::Span, sort: impl std::fmt::Display) {
    span.record("otel.status_code", "ERROR");
    span.record("error.type", tracing::field::display(sort));
}

/// Logs to standard error, filtered by `CASEBOOK_LOG` in the syntax of `tracing` (`info`, `casebook_hub=debug`, …);
/// default: warnings. Spans and metrics go to `collector`, or to the one that OpenTelemetry's standard variables name,
/// until [`export::end`]. If it is `scraped`, Prometheus reads the metrics ([`scrape::text`]). A second call changes
/// nothing.
///
/// # Errors
/// `collector` cannot be used. Logging works nevertheless. Faults in the standard variables only cause a warning.
pub fn start(format: LogFormat, service: &'static str, collector: Option<&str>, scraped: bool) -> Result<(), String> {
    let filter = filter(&std::env::var("CASEBOOK_LOG").unwrap_or_else(|_| "warn".into()));
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none())
        .event_format(Lines { format, service })
        .with_filter(filter);
    let (tracer, opened) = match export::open(collector, service, scraped) {
        Ok(tracer) => (tracer, Ok(())),
        Err(why) => (None, Err(why)),
    };
    // An error means that a subscriber exists, as in tests.
    let _ = tracing_subscriber::registry().with(tracer.map(export::layer)).with(Keep).with(lines).try_init();
    match opened {
        Err(why) if collector.is_none() => {
            tracing::warn!(why, "not sending traces and metrics");
            Ok(())
        }
        opened => opened,
    }
}
