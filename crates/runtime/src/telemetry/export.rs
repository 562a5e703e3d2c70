//! Exports spans and metrics to an OpenTelemetry collector: OTLP over HTTP, in batches on separate threads, so that no
//! investigation waits for a collector. The SDK reads the standard variables (docs/telemetry.md lists them), but an
//! address from our settings takes precedence. Prometheus reads the same metrics ([`super::scrape`]).
//!
//! Only names, counts, durations and ids are exported; never a prompt, reply, argument, result or text of evidence.

use std::cell::Cell;
use std::sync::{OnceLock, mpsc};
use std::time::{Duration, SystemTime};

use casebook_protocol::{InvestigationId, Timestamp, Usage};
use opentelemetry::metrics::MeterProvider as _;
use opentelemetry::trace::{
    Span as _, SpanBuilder, SpanContext, SpanId, TraceFlags, TraceId, TraceState, Tracer as _, TracerProvider as _,
};
use opentelemetry::{Context, KeyValue};
use opentelemetry_otlp::{MetricExporter, Protocol, SpanExporter, WithExportConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::metrics::SdkMeterProvider;
use opentelemetry_sdk::trace::{IdGenerator, RandomIdGenerator, SdkTracer, SdkTracerProvider};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::{Layer, Registry};
use uuid::Uuid;

use super::{INVESTIGATION, meter, scrape};

/// The time limit for the last batches at the end of a process.
const LAST: Duration = Duration::from_secs(3);
const SCOPE: &str = "casebook";

/// OpenTelemetry's standard variables for the address of a collector.
const COLLECTOR_ENV: [&str; 3] =
    ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"];
const PROTOCOL_ENV: &str = "OTEL_EXPORTER_OTLP_PROTOCOL";
const DISABLED_ENV: &str = "OTEL_SDK_DISABLED";

static EXPORTING: OnceLock<Exporting> = OnceLock::new();

struct Exporting {
    /// None without a collector, because no spans would be read.
    traces: Option<(SdkTracerProvider, SdkTracer)>,
    metrics: SdkMeterProvider,
}

/// Starts to measure if a collector or Prometheus reads it. Gives the tracer of the collector, if there is one.
pub(super) fn open(named: Option<&str>, service: &'static str, scraped: bool) -> Result<Option<SdkTracer>, String> {
    let (exporters, opened) = match exporters(named) {
        Ok(exporters) => (exporters, Ok(())),
        Err(why) => (None, Err(why)),
    };
    let resource = resource(service);
    let (spans, measured) = exporters.unzip();
    let mut metrics = SdkMeterProvider::builder().with_resource(resource.clone());
    if let Some(reader) = scraped.then(scrape::reader).flatten() {
        metrics = metrics.with_reader(reader);
    }
    if let Some(measured) = measured {
        metrics = metrics.with_periodic_exporter(measured);
    } else if !scraped {
        return opened.map(|()| None);
    }
    let metrics = metrics.build();
    let traces = spans.map(|spans| {
        let traces = SdkTracerProvider::builder()
            .with_id_generator(Ids::default())
            .with_resource(resource)
            .with_batch_exporter(spans)
            .build();
        let tracer = traces.tracer(SCOPE);
        (traces, tracer)
    });
    meter::open(&metrics.meter(SCOPE));
    let tracer = traces.as_ref().map(|(_, tracer)| tracer.clone());
    let _ = EXPORTING.set(Exporting { traces, metrics });
    opened.map(|()| tracer)
}

/// The exporters to `named`, or to the collector of the standard variables; none if neither is set. `OTEL_SERVICE_NAME`
/// takes precedence over `service`. The collector need not be running yet.
fn exporters(named: Option<&str>) -> Result<Option<(SpanExporter, MetricExporter)>, String> {
    let why = |error: opentelemetry_otlp::ExporterBuildError| format!("cannot send to the collector: {error}");
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    if named.is_none() {
        if !COLLECTOR_ENV.iter().any(|name| set(name).is_some()) || set(DISABLED_ENV).as_deref() == Some("true") {
            return Ok(None);
        }
        if let Some(other) = set(PROTOCOL_ENV).filter(|protocol| protocol != "http/protobuf") {
            return Err(format!(
                "expected {PROTOCOL_ENV} to be http/protobuf, got {other:?}; set the collector's address for it with \
                 --otlp (often port 4318)"
            ));
        }
    }
    crate::tls::install();
    let signal = |path: &str| named.map(|url| format!("{}/v1/{path}", url.trim_end_matches('/')));
    let spans = SpanExporter::builder().with_http().with_protocol(Protocol::HttpBinary);
    let spans = match signal("traces") {
        Some(url) => spans.with_endpoint(url),
        None => spans,
    };
    let measured = MetricExporter::builder().with_http().with_protocol(Protocol::HttpBinary);
    let measured = match signal("metrics") {
        Some(url) => measured.with_endpoint(url),
        None => measured,
    };
    Ok(Some((spans.build().map_err(why)?, measured.build().map_err(why)?)))
}

fn resource(service: &'static str) -> Resource {
    let mut of_process = Resource::builder()
        .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
        .with_attribute(KeyValue::new("service.instance.id", Uuid::now_v7().hyphenated().to_string()));
    if std::env::var_os("OTEL_SERVICE_NAME").is_none_or(|name| name.is_empty()) {
        of_process = of_process.with_service_name(service);
    }
    of_process.build()
}

/// The spans of our own crates. Events appear only in the log lines.
pub(super) fn layer(tracer: SdkTracer) -> impl Layer<Registry> + Send + Sync {
    let layer = tracing_opentelemetry::layer().with_tracer(tracer).with_location(false).with_threads(false);
    let layer = layer.with_tracked_inactivity(false).with_target(false);
    layer.with_filter(filter_fn(|meta| meta.is_span() && meta.target().starts_with(SCOPE)))
}

pub fn end() {
    let Some(exporting) = EXPORTING.get() else { return };
    let (sent, done) = mpsc::channel();
    // The SDK limits only the time for spans.
    let sending = std::thread::Builder::new().name("last telemetry".into()).spawn(move || {
        let traces = exporting.traces.as_ref().map_or(Ok(()), |(traces, _)| traces.shutdown_with_timeout(LAST));
        let _ = sent.send([traces, exporting.metrics.shutdown_with_timeout(LAST)]);
    });
    let ended = sending.map(|_| done.recv_timeout(LAST));
    if !matches!(ended, Ok(Ok([Ok(()), Ok(())]))) {
        tracing::warn!("could not send the last traces and metrics");
    }
}

fn tracer() -> Option<&'static SdkTracer> {
    EXPORTING.get()?.traces.as_ref().map(|(_, tracer)| tracer)
}

pub fn link(span: &tracing::Span, investigation: &InvestigationId) {
    if tracer().is_some() {
        let (trace, id) = ids(investigation);
        span.add_link(SpanContext::new(trace, id, TraceFlags::SAMPLED, true, TraceState::default()));
    }
}

#[derive(Debug, Clone, Copy)]
pub struct Ended<'a> {
    pub investigation: &'a InvestigationId,
    pub opened: Timestamp,
    pub closed: Timestamp,
    pub verdict: &'static str,
    /// It ended before the Director concluded.
    pub stopped: bool,
    pub rounds: u32,
    pub usage: Usage,
}

/// Exports the span of a closed investigation. Its ids follow from the investigation id, so that all processes could
/// link to it before.
pub fn ended(ended: &Ended<'_>) {
    let Some(tracer) = tracer() else { return };
    let count = |name, n: u64| KeyValue::new(name, super::count(n));
    let builder =
        SpanBuilder::from_name(INVESTIGATION).with_start_time(SystemTime::from(ended.opened)).with_attributes([
            KeyValue::new("gen_ai.conversation.id", ended.investigation.to_string()),
            KeyValue::new(meter::VERDICT, ended.verdict),
            KeyValue::new("casebook.stopped", ended.stopped),
            count("casebook.rounds", ended.rounds.into()),
            count("casebook.model_calls", ended.usage.model_calls),
            count("casebook.tool_calls", ended.usage.tool_calls),
            count("gen_ai.usage.input_tokens", ended.usage.input_tokens),
            count("gen_ai.usage.output_tokens", ended.usage.output_tokens),
            count("casebook.cost_micros", ended.usage.cost_micros),
        ]);
    let mut span = Ids::taking(ids(ended.investigation), || tracer.build_with_context(builder, &Context::new()));
    span.end_with_timestamp(SystemTime::from(ended.closed));
}

/// The trace and span ids of an investigation. A trace id has as many bits as a UUID.
fn ids(investigation: &InvestigationId) -> (TraceId, SpanId) {
    let id = Uuid::try_parse(investigation.as_str());
    let id = id.unwrap_or_else(|_| Uuid::new_v5(&Uuid::NAMESPACE_OID, investigation.as_str().as_bytes()));
    let (_, low) = id.as_u64_pair();
    (TraceId::from(id.as_u128()), SpanId::from(low))
}

/// Random ids, except for spans whose ids are known beforehand.
#[derive(Debug, Default)]
struct Ids(RandomIdGenerator);

thread_local! {
    static NEXT: Cell<Option<(TraceId, SpanId)>> = const { Cell::new(None) };
}

impl Ids {
    fn taking<T>(ids: (TraceId, SpanId), make: impl FnOnce() -> T) -> T {
        NEXT.set(Some(ids));
        let made = make();
        NEXT.set(None);
        made
    }
}

impl IdGenerator for Ids {
    fn new_trace_id(&self) -> TraceId {
        NEXT.get().map_or_else(|| self.0.new_trace_id(), |(trace, _)| trace)
    }

    fn new_span_id(&self) -> SpanId {
        NEXT.get().map_or_else(|| self.0.new_span_id(), |(_, span)| span)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ids_of_an_investigation_follow_from_its_own() {
        let id = InvestigationId::new("0192d3f0-1c2b-5a3d-8e4f-0123456789ab").unwrap();
        let (trace, span) = ids(&id);
        assert_eq!(trace.to_string(), "0192d3f01c2b5a3d8e4f0123456789ab");
        assert_eq!(span.to_string(), "8e4f0123456789ab");
    }

    #[test]
    fn ids_are_given_to_one_span_alone() {
        let generator = Ids::default();
        let known = (TraceId::from(7), SpanId::from(9));
        let taken = Ids::taking(known, || (generator.new_trace_id(), generator.new_span_id()));
        assert_eq!(taken, known);
        assert_ne!(generator.new_trace_id(), known.0);
        assert_ne!(generator.new_span_id(), known.1);
    }
}
