//! What is measured, each thing once with its name, unit and attributes. Those of model and tool calls are
//! OpenTelemetry's for generative AI; ours begin with `casebook.`. Where no collector is named, measuring is
//! looking at one pointer.

use std::sync::OnceLock;

use casebook_protocol::Timestamp;
use opentelemetry::KeyValue;
use opentelemetry::metrics::{Counter, Histogram, Meter};

use super::{MODEL_CALL, TOOL_CALL};

/// Histogram, in seconds: one call of a language model, with everything that was tried for it.
pub const MODEL_SECONDS: &str = "gen_ai.client.operation.duration";
/// Histogram: tokens of a model call, by their sort.
pub const MODEL_TOKENS: &str = "gen_ai.client.token.usage";
/// Histogram, in seconds: one call of a tool.
pub const TOOL_SECONDS: &str = "gen_ai.execute_tool.duration";
/// Counter: what models cost, in the currency that prices are given in.
pub const MODEL_COST: &str = "casebook.model.cost";
/// Histogram, in seconds: one task, from its delivery to its recorded outcome.
pub const TASK_SECONDS: &str = "casebook.task.duration";
/// Counter: messages and tasks that were given up.
pub const DEAD_LETTERS: &str = "casebook.dead_letters";
/// Counter: investigations that were opened.
pub const OPENED: &str = "casebook.investigations.opened";
/// Histogram, in seconds: investigations that are over, from their opening on; by verdict.
pub const INVESTIGATION_SECONDS: &str = "casebook.investigation.duration";
/// Histogram: the scores of findings that count, after the rules.
pub const SCORES: &str = "casebook.finding.score";
/// Counter: proposals that a rule capped, dropped or changed.
pub const RULED: &str = "casebook.rules.applied";

/// Attribute: which agent it was, as its queue is called.
pub const AGENT: &str = "gen_ai.agent.name";
/// Attribute: the sort of failure; not there where nothing failed.
pub const ERROR: &str = "error.type";
/// Attribute: a verdict.
pub const VERDICT: &str = "casebook.verdict";

const OPERATION: &str = "gen_ai.operation.name";
const PROVIDER: &str = "gen_ai.provider.name";
const MODEL: &str = "gen_ai.request.model";
const TOKEN_TYPE: &str = "gen_ai.token.type";
const TOOL: &str = "gen_ai.tool.name";
const KIND: &str = "casebook.task.kind";
const LABEL: &str = "casebook.finding.label";
const RULE: &str = "casebook.rule";
const LETTER: &str = "messaging.destination.name";

/// As OpenTelemetry's conventions advise for calls of models.
const SECONDS: [f64; 14] = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];
/// The same for tokens.
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
/// Investigations and tasks may last for hours.
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
}

/// Measures with `meter` from now on.
pub(super) fn open(meter: &Meter) {
    let histogram = |name, unit, bounds: &[f64], what| {
        let made = meter.f64_histogram(name).with_unit(unit).with_boundaries(bounds.to_vec());
        made.with_description(what).build()
    };
    let counter = |name, unit, what| meter.u64_counter(name).with_unit(unit).with_description(what).build();
    // An error says that it was opened before.
    let _ = METERS.set(Meters {
        model_seconds: histogram(MODEL_SECONDS, "s", &SECONDS, "Calls of language models"),
        model_tokens: meter
            .u64_histogram(MODEL_TOKENS)
            .with_unit("{token}")
            .with_boundaries(TOKENS.to_vec())
            .with_description("Tokens of model calls")
            .build(),
        model_cost: meter
            .f64_counter(MODEL_COST)
            .with_description("What models cost, in the currency of the models file")
            .build(),
        tool_seconds: histogram(TOOL_SECONDS, "s", &SECONDS, "Calls of tools"),
        task_seconds: histogram(TASK_SECONDS, "s", &LONG, "Tasks, from delivery to recorded outcome"),
        dead_letters: counter(DEAD_LETTERS, "{message}", "Messages and tasks that were given up"),
        opened: counter(OPENED, "{investigation}", "Investigations that were opened"),
        investigation_seconds: histogram(INVESTIGATION_SECONDS, "s", &LONG, "Investigations that are over"),
        scores: histogram(SCORES, "1", &BANDS, "Scores of findings that count, after the rules"),
        ruled: counter(RULED, "{proposal}", "Proposals that a rule capped, dropped or changed"),
    });
}

/// How a model call went.
#[derive(Debug, Clone, Copy)]
pub struct ModelCalled<'a> {
    /// The provider.
    pub provider: &'static str,
    /// The model, as the provider calls it.
    pub model: &'a str,
    /// How long it took, with everything that was tried.
    pub seconds: f64,
    /// What was used and what it cost in millionths, or the sort of failure.
    pub result: Result<(&'a casebook_protocol::Tokens, u64), &'static str>,
}

/// A model was called.
pub fn model_called(called: &ModelCalled<'_>) {
    let Some(meters) = METERS.get() else { return };
    let of = || {
        vec![
            KeyValue::new(OPERATION, MODEL_CALL),
            KeyValue::new(PROVIDER, called.provider),
            KeyValue::new(MODEL, called.model.to_owned()),
        ]
    };
    let mut attributes = of();
    attributes.extend(called.result.err().map(|sort| KeyValue::new(ERROR, sort)));
    meters.model_seconds.record(called.seconds, &attributes);
    let Ok((tokens, cost)) = called.result else { return };
    for (sort, count) in [("input", tokens.input), ("output", tokens.output)] {
        let mut attributes = of();
        attributes.push(KeyValue::new(TOKEN_TYPE, sort));
        meters.model_tokens.record(count, &attributes);
    }
    #[expect(clippy::cast_precision_loss, reason = "a measurement: 2^53 millionths are nine thousand millions")]
    meters.model_cost.add(cost as f64 / 1e6, &of());
}

/// A tool of this name was run.
pub fn tool_ran(agent: &str, tool: &str, seconds: f64, failed: bool) {
    let Some(meters) = METERS.get() else { return };
    let mut attributes = vec![
        KeyValue::new(OPERATION, TOOL_CALL),
        KeyValue::new(AGENT, agent.to_owned()),
        KeyValue::new(TOOL, tool.to_owned()),
    ];
    attributes.extend(failed.then(|| KeyValue::new(ERROR, TOOL_FAILED)));
    meters.tool_seconds.record(seconds, &attributes);
}

/// The sort of failure of a tool that ran.
pub const TOOL_FAILED: &str = "tool_failed";
/// The sort of failure of a task without an answer.
pub const TASK_FAILED: &str = "task_failed";

/// A task of this kind ended here.
pub fn task_ended(agent: &str, kind: &'static str, seconds: f64, failed: bool) {
    let Some(meters) = METERS.get() else { return };
    let mut attributes = vec![KeyValue::new(AGENT, agent.to_owned()), KeyValue::new(KIND, kind)];
    attributes.extend(failed.then(|| KeyValue::new(ERROR, TASK_FAILED)));
    meters.task_seconds.record(seconds, &attributes);
}

/// A message was given up, and the letter that says so went out under this subject, which says whose it was.
pub fn given_up(subject: &str) {
    let Some(meters) = METERS.get() else { return };
    meters.dead_letters.add(1, &[KeyValue::new(LETTER, subject.to_owned())]);
}

/// An investigation was opened.
pub fn opened() {
    let Some(meters) = METERS.get() else { return };
    meters.opened.add(1, &[]);
}

/// An investigation with this verdict is over.
pub fn closed(verdict: &'static str, opened: Timestamp, closed: Timestamp) {
    let Some(meters) = METERS.get() else { return };
    meters.investigation_seconds.record(seconds(opened, closed), &[KeyValue::new(VERDICT, verdict)]);
}

/// A finding was scored.
pub fn scored(score: f64, label: &'static str) {
    let Some(meters) = METERS.get() else { return };
    meters.scores.record(score, &[KeyValue::new(LABEL, label)]);
}

/// A rule was applied to a proposal.
pub fn ruled(rule: impl FnOnce() -> String) {
    let Some(meters) = METERS.get() else { return };
    meters.ruled.add(1, &[KeyValue::new(RULE, rule())]);
}

/// Seconds from one time to another; none where the clock went back.
#[must_use]
pub fn seconds(from: Timestamp, to: Timestamp) -> f64 {
    to.duration_since(from).as_secs_f64().max(0.0)
}
