//! All metrics, with names, units and attributes. Those of model and tool calls follow OpenTelemetry's conventions for
//! generative AI; ours begin with `casebook.`. Without a
//! collector and Prometheus, measuring costs one pointer check.

use std::sync::OnceLock;

use casebook_protocol::Timestamp;
use opentelemetry::KeyValue;
use opentelemetry::metrics::{Counter, Gauge, Histogram, Meter};

use super::{MODEL_CALL, TOOL_CALL};

pub const VERDICT: &str = "casebook.verdict";

const SEVERITY: &str = "casebook.severity";
const QUEUE: &str = "casebook.queue";
const AGENT: &str = "gen_ai.agent.name";
const ERROR: &str = "error.type";
const OPERATION: &str = "gen_ai.operation.name";

/// Bounds from OpenTelemetry's conventions for model calls.
const SECONDS: [f64; 14] = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];
const TOKENS: [f64; 14] = [
    1.0,
    4.0,
    16.0,
    64.0,
    256.0,
    1_024.0,
    4_096.0,
    16_384.0,
    65_536.0,
    262_144.0,
    1_048_576.0,
    4_194_304.0,
    16_777_216.0,
    67_108_864.0,
];
const LONG: [f64; 12] = [0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 180.0, 600.0, 1_800.0, 3_600.0, 10_800.0, 43_200.0];
/// The bands of the rubric, and halves of them.
const BANDS: [f64; 9] = [0.1, 0.2, 0.29, 0.4, 0.499, 0.6, 0.699, 0.8, 0.899];

static METERS: OnceLock<Meters> = OnceLock::new();

struct Meters {
    model_seconds: Histogram<f64>,
    model_tokens: Histogram<u64>,
    model_cost: Counter<f64>,
    tool_seconds: Histogram<f64>,
    task_seconds: Histogram<f64>,
    dead_letters: Counter<u64>,
    opened: Counter<u64>,
    investigation_seconds: Histogram<f64>,
    scores: Histogram<f64>,
    ruled: Counter<u64>,
    alert_wait: Histogram<f64>,
    live: Gauge<u64>,
    workers: Gauge<u64>,
    waiting: Gauge<u64>,
    held: Gauge<u64>,
    append_seconds: Histogram<f64>,
    conflicts: Counter<u64>,
    leases_lost: Counter<u64>,
}

pub(super) fn open(meter: &Meter) {
    let histogram = |name, unit, bounds: &[f64], what| {
        let made = meter.f64_histogram(name).with_unit(unit).with_boundaries(bounds.to_vec());
        made.with_description(what).build()
    };
    let seconds = |name, bounds: &[f64], what| histogram(name, "s", bounds, what);
    let counter = |name, unit, what| meter.u64_counter(name).with_unit(unit).with_description(what).build();
    let gauge = |name, unit, what| meter.u64_gauge(name).with_unit(unit).with_description(what).build();
    let tokens = meter.u64_histogram("gen_ai.client.token.usage").with_unit("{token}").with_boundaries(TOKENS.to_vec());
    let cost = meter.f64_counter("casebook.model.cost");
    let _ = METERS.set(Meters {
        model_seconds: seconds(
            "gen_ai.client.operation.duration",
            &SECONDS,
            "Calls of language models with everything tried",
        ),
        model_tokens: tokens.with_description("Tokens of model calls").build(),
        model_cost: cost.with_description("What models cost, in the currency of the models file").build(),
        tool_seconds: seconds("gen_ai.execute_tool.duration", &SECONDS, "Calls of tools"),
        task_seconds: seconds("casebook.task.duration", &LONG, "Tasks, from delivery to recorded outcome"),
        dead_letters: counter("casebook.dead_letters", "{message}", "Messages and tasks that were given up"),
        opened: counter("casebook.investigations.opened", "{investigation}", "Investigations that were opened"),
        investigation_seconds: seconds("casebook.investigation.duration", &LONG, "Investigations that are over"),
        scores: histogram("casebook.finding.score", "1", &BANDS, "Scores of findings that count, after the rules"),
        ruled: counter("casebook.rules.applied", "{proposal}", "Proposals that a rule capped, dropped or changed"),
        alert_wait: seconds("casebook.alert.wait", &LONG, "Alerts, from acceptance to the begin of the investigation"),
        live: gauge("casebook.investigations.live", "{investigation}", "Investigations that run in this Hub"),
        workers: gauge("casebook.workers.present", "{process}", "Running processes of a queue, as this Hub sees them"),
        waiting: gauge("casebook.queue.waiting", "{job}", "Jobs that wait in a queue of the NATS server"),
        held: gauge("casebook.queue.held", "{job}", "Jobs of a queue that a process holds"),
        append_seconds: seconds("casebook.store.append.duration", &SECONDS, "Appends to the log of an investigation"),
        conflicts: counter("casebook.append.conflicts", "{append}", "Appends that another Hub forestalled"),
        leases_lost: counter("casebook.leases.lost", "{lease}", "Leases that could not be extended"),
    });
}

/// True if this process measures.
pub fn on() -> bool {
    METERS.get().is_some()
}

/// An investigation begins so many seconds after its alert was accepted.
pub fn begun(severity: &'static str, seconds: f64) {
    let Some(meters) = METERS.get() else { return };
    meters.alert_wait.record(seconds, &[KeyValue::new(SEVERITY, severity)]);
}

pub fn live(investigations: u64) {
    let Some(meters) = METERS.get() else { return };
    meters.live.record(investigations, &[]);
}

pub fn present(queue: &str, processes: u64) {
    let Some(meters) = METERS.get() else { return };
    meters.workers.record(processes, &[KeyValue::new(QUEUE, queue.to_owned())]);
}

pub fn queue(queue: &str, waiting: u64, held: u64) {
    let Some(meters) = METERS.get() else { return };
    let of = [KeyValue::new(QUEUE, queue.to_owned())];
    meters.waiting.record(waiting, &of);
    meters.held.record(held, &of);
}

/// An append ended after so many seconds; `error` is the kind of failure.
pub fn appended(seconds: f64, error: Option<&'static str>) {
    let Some(meters) = METERS.get() else { return };
    let failed: Vec<KeyValue> = error.map(|kind| KeyValue::new(ERROR, kind)).into_iter().collect();
    meters.append_seconds.record(seconds, &failed);
    if error == Some(CONFLICT) {
        meters.conflicts.add(1, &[]);
    }
}

pub const CONFLICT: &str = "conflict";
pub const UNAVAILABLE: &str = "unavailable";

pub fn lease_lost() {
    let Some(meters) = METERS.get() else { return };
    meters.leases_lost.add(1, &[]);
}

#[derive(Debug, Clone, Copy)]
pub struct ModelCalled<'a> {
    pub provider: &'static str,
    /// The model as the provider names it.
    pub model: &'a str,
    /// Includes retries.
    pub seconds: f64,
    pub result: Result<(&'a casebook_protocol::Tokens, u64), &'static str>,
}

pub fn model_called(called: &ModelCalled<'_>) {
    let Some(meters) = METERS.get() else { return };
    let of = || {
        vec![
            KeyValue::new(OPERATION, MODEL_CALL),
            KeyValue::new("gen_ai.provider.name", called.provider),
            KeyValue::new("gen_ai.request.model", called.model.to_owned()),
        ]
    };
    let mut attributes = of();
    attributes.extend(called.result.err().map(|sort| KeyValue::new(ERROR, sort)));
    meters.model_seconds.record(called.seconds, &attributes);
    let Ok((tokens, cost)) = called.result else { return };
    for (sort, count) in [("input", tokens.input), ("output", tokens.output)] {
        let mut attributes = of();
        attributes.push(KeyValue::new("gen_ai.token.type", sort));
        meters.model_tokens.record(count, &attributes);
    }
    #[expect(clippy::cast_precision_loss, reason = "a measurement: 2^53 millionths are nine thousand millions")]
    meters.model_cost.add(cost as f64 / 1e6, &of());
}

pub fn tool_ran(agent: &str, tool: &str, seconds: f64, failed: bool) {
    let Some(meters) = METERS.get() else { return };
    let mut attributes = vec![
        KeyValue::new(OPERATION, TOOL_CALL),
        KeyValue::new(AGENT, agent.to_owned()),
        KeyValue::new("gen_ai.tool.name", tool.to_owned()),
    ];
    attributes.extend(failed.then(|| KeyValue::new(ERROR, TOOL_FAILED)));
    meters.tool_seconds.record(seconds, &attributes);
}

pub const TOOL_FAILED: &str = "tool_failed";
pub const TASK_FAILED: &str = "task_failed";

pub fn task_ended(agent: &str, kind: &'static str, seconds: f64, failed: bool) {
    let Some(meters) = METERS.get() else { return };
    let mut attributes = vec![KeyValue::new(AGENT, agent.to_owned()), KeyValue::new("casebook.task.kind", kind)];
    attributes.extend(failed.then(|| KeyValue::new(ERROR, TASK_FAILED)));
    meters.task_seconds.record(seconds, &attributes);
}

/// A message was given up, and its dead letter was published to `subject`.
pub fn given_up(subject: &str) {
    let Some(meters) = METERS.get() else { return };
    meters.dead_letters.add(1, &[KeyValue::new("messaging.destination.name", subject.to_owned())]);
}

pub fn opened() {
    let Some(meters) = METERS.get() else { return };
    meters.opened.add(1, &[]);
}

pub fn closed(verdict: &'static str, opened: Timestamp, closed: Timestamp) {
    let Some(meters) = METERS.get() else { return };
    meters.investigation_seconds.record(seconds(opened, closed), &[KeyValue::new(VERDICT, verdict)]);
}

pub fn scored(score: f64, label: &'static str) {
    let Some(meters) = METERS.get() else { return };
    meters.scores.record(score, &[KeyValue::new("casebook.finding.label", label)]);
}

pub fn ruled(rule: &'static str) {
    let Some(meters) = METERS.get() else { return };
    meters.ruled.add(1, &[KeyValue::new("casebook.rule", rule)]);
}

/// Seconds from one time to another; zero if the clock went back.
pub fn seconds(from: Timestamp, to: Timestamp) -> f64 {
    to.duration_since(from).as_secs_f64().max(0.0)
}
