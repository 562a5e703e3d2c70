//! Log lines: one event a line, as text or JSON, with the process, investigation and task that it belongs to. Spans
//! have no lines of their own.

use std::fmt;
use std::sync::OnceLock;

use casebook_protocol::Timestamp;
use opentelemetry::trace::TraceContextExt as _;
use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id};
use tracing::{Event, Level, Subscriber, dispatcher};
use tracing_subscriber::Layer;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

use super::LogFormat;

/// Fields of spans, and the names that lines give them.
const IDS: [(&str, &str); 2] = [("gen_ai.conversation.id", "investigation"), ("casebook.task", "task")];

static INSTANCE: OnceLock<String> = OnceLock::new();

/// Sets the name of this process in lines. It can be set once.
pub fn instance(name: &str) {
    let _ = INSTANCE.set(name.to_owned());
}

/// Keeps the ids of a span for the lines in it.
pub(super) struct Keep;

struct Kept(Map<String, Value>);

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Keep {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        let named = IDS.iter().filter_map(|(from, to)| Some(((*to).to_owned(), fields.0.remove(*from)?)));
        let ids: Map<String, Value> = named.collect();
        if let Some(span) = context.span(id).filter(|_| !ids.is_empty()) {
            span.extensions_mut().insert(Kept(ids));
        }
    }
}

/// The fields of an event or a span.
#[derive(Default)]
struct Fields(Map<String, Value>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}").into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().to_owned(), value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.0.insert(field.name().to_owned(), value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.0.insert(field.name().to_owned(), value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.0.insert(field.name().to_owned(), value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.0.insert(field.name().to_owned(), value.into());
    }
}

pub(super) struct Lines {
    pub(super) format: LogFormat,
    /// Such as `casebook-hub`.
    pub(super) service: &'static str,
}

impl<S, N> FormatEvent<S, N> for Lines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, context: &FmtContext<'_, S, N>, writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let (message, fields): (Map<_, _>, Map<_, _>) = fields.0.into_iter().partition(|(name, _)| name == "message");
        let message = message.get("message").and_then(Value::as_str).unwrap_or_default();
        let mut ids = Map::new();
        for span in context.event_scope().into_iter().flatten() {
            if let Some(Kept(kept)) = span.extensions().get::<Kept>() {
                ids.extend(kept.clone());
            }
        }
        if let Some(span) = context.lookup_current() {
            ids.extend(traced(&span.id()));
        }
        ids.retain(|name, _| !fields.contains_key(name));
        let line = Line {
            time: Timestamp::now(),
            level: *event.metadata().level(),
            target: event.metadata().target(),
            service: self.service,
            message,
            ids: &ids,
            fields: &fields,
        };
        match self.format {
            LogFormat::Text => line.text(writer),
            LogFormat::Json => line.json(writer),
        }
    }
}

/// The ids of the trace, if a collector gets it.
fn traced(span: &Id) -> Map<String, Value> {
    let context = dispatcher::get_default(|all| tracing_opentelemetry::get_otel_context(span, all));
    let span = context.as_ref().map(|context| context.span().span_context().clone());
    let ids = |of: opentelemetry::trace::SpanContext| {
        [("trace_id", of.trace_id().to_string()), ("span_id", of.span_id().to_string())]
    };
    let ids = span.filter(opentelemetry::trace::SpanContext::is_valid).map(ids).into_iter().flatten();
    ids.map(|(name, id)| (name.to_owned(), id.into())).collect()
}

struct Line<'a> {
    time: Timestamp,
    level: Level,
    target: &'a str,
    service: &'static str,
    message: &'a str,
    ids: &'a Map<String, Value>,
    fields: &'a Map<String, Value>,
}

impl Line<'_> {
    fn text(&self, mut writer: Writer<'_>) -> fmt::Result {
        let (dim, end) = if writer.has_ansi_escapes() { ("\x1b[2m", "\x1b[0m") } else { ("", "") };
        let color = match (writer.has_ansi_escapes(), self.level) {
            (false, _) => "",
            (true, Level::ERROR) => "\x1b[31m",
            (true, Level::WARN) => "\x1b[33m",
            (true, _) => "\x1b[32m",
        };
        let (time, level) = (self.time, self.level);
        write!(writer, "{dim}{time:.3}{end} {color}{level:>5}{end} {dim}{}:{end} {}", self.target, self.message)?;
        for (name, value) in self.fields.iter().chain(self.ids) {
            match value {
                Value::String(text)
                    if text.is_empty()
                        || text.contains(|c: char| c.is_whitespace() || c.is_control() || matches!(c, '"' | '=')) =>
                {
                    write!(writer, " {dim}{name}={end}{text:?}")?
                }
                Value::String(text) => write!(writer, " {dim}{name}={end}{text}")?,
                other => write!(writer, " {dim}{name}={end}{other}")?,
            }
        }
        writeln!(writer)
    }

    fn json(&self, mut writer: Writer<'_>) -> fmt::Result {
        let mut line = Map::new();
        line.insert("timestamp".into(), format!("{:.6}", self.time).into());
        line.insert("level".into(), self.level.as_str().into());
        line.insert("message".into(), self.message.into());
        line.insert("service".into(), self.service.into());
        line.extend(INSTANCE.get().map(|name| ("instance".to_owned(), name.as_str().into())));
        line.insert("target".into(), self.target.into());
        for (name, value) in self.ids.iter().chain(self.fields) {
            line.entry(name.as_str()).or_insert_with(|| value.clone());
        }
        writeln!(writer, "{}", Value::Object(line))
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;

    #[derive(Clone, Default)]
    struct Buffer(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Buffer {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// What is logged inside and outside a task.
    fn logged(format: LogFormat) -> String {
        let (buffer, lines) = (Buffer::default(), Lines { format, service: "casebook-expert" });
        let writer = buffer.clone();
        let layer = tracing_subscriber::fmt::layer().with_writer(move || writer.clone()).with_ansi(false);
        let subscriber = tracing_subscriber::registry().with(Keep).with(layer.event_format(lines));
        tracing::subscriber::with_default(subscriber, || {
            let task =
                tracing::info_span!("task", gen_ai.conversation.id = "i-1", casebook.task = "r1.plan", other = 1);
            task.in_scope(|| {
                let _tool = tracing::info_span!("tool").entered();
                tracing::warn!(error = "no \"answer\"\nat all", seconds = 3, "model failed");
            });
            tracing::info!(investigation = "i-2", "begun");
        });
        String::from_utf8(buffer.0.lock().unwrap().clone()).unwrap()
    }

    #[test]
    fn each_line_names_process_investigation_and_task() {
        let lines: Vec<Value> =
            logged(LogFormat::Json).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let expect = serde_json::json!({
            "level": "WARN", "message": "model failed", "service": "casebook-expert", "investigation": "i-1",
            "task": "r1.plan", "error": "no \"answer\"\nat all", "seconds": 3,
            "target": "casebook_runtime::telemetry::lines::tests", "timestamp": lines[0]["timestamp"],
        });
        assert_eq!((&lines[0], lines.len()), (&expect, 2), "a span has no line");
        assert_eq!((&lines[1]["investigation"], &lines[1]["task"]), (&"i-2".into(), &Value::Null));
    }

    #[test]
    fn an_event_is_one_line_of_text() {
        let text = logged(LogFormat::Text);
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.splitn(3, ' ').collect()).collect();
        assert_eq!(lines.len(), 2, "{text}");
        let expect = r#"WARN casebook_runtime::telemetry::lines::tests: model failed error="no \"answer\"\nat all" seconds=3 investigation=i-1 task=r1.plan"#;
        assert!(text.lines().next().unwrap().ends_with(expect), "{text}");
    }
}
