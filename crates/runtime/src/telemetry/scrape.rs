//! The metrics as Prometheus reads them, with those of the process: memory, CPU, open files.

use std::sync::OnceLock;

use opentelemetry_prometheus::PrometheusExporter;
use prometheus::process_collector::ProcessCollector;
use prometheus::{Registry, TextEncoder};

/// The form of [`text`].
pub const CONTENT: &str = prometheus::TEXT_FORMAT;

static REGISTRY: OnceLock<Registry> = OnceLock::new();

/// The reader of all metrics. None if this process has one, or if the library refuses it.
pub(super) fn reader() -> Option<PrometheusExporter> {
    let registry = Registry::new();
    let exporter =
        opentelemetry_prometheus::exporter().with_registry(registry.clone()).scope_info_enabled(false).build();
    let process = registry.register(Box::new(ProcessCollector::for_self()));
    match exporter.map_err(|e| e.to_string()).and_then(|reader| process.map(|()| reader).map_err(|e| e.to_string())) {
        Ok(reader) => REGISTRY.set(registry).is_ok().then_some(reader),
        Err(why) => {
            tracing::warn!(why, "not serving metrics");
            None
        }
    }
}

/// All metrics. None if this process does not measure.
pub fn text() -> Option<String> {
    TextEncoder::new().encode_to_string(&REGISTRY.get()?.gather()).ok()
}
