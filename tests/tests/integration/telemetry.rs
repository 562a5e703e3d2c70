//! Traces and measurements of real processes, as they arrive at a collector on loopback.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use casebook_protocol::{Citation, Report};
use casebook_tests::lab::{KEY, Lab, models_file};
use casebook_tests::model::brain::Brain;
use casebook_tests::model::server::Options;
use casebook_tests::run;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::{Span, span::SpanKind, status::StatusCode};

use collector::{Collector, attribute, points};

mod collector;

/// A scripted model that plays two rounds, and the models file that leads to it.
fn lab(folder: &Path) -> (Lab, PathBuf) {
    let price = "price = { input = 3.0, cached = 0.3, output = 15.0 }\n";
    let brain = Brain { rounds: 2, ..Brain::default() };
    let lab = Lab::start_with(brain, ("anthropic", "native"), price, Options::default()).unwrap();
    let file = folder.join("models.toml");
    std::fs::write(&file, &lab.file).unwrap();
    (lab, file)
}

fn casebook(folder: &Path, how: &[&str]) -> Command {
    with(Command::new(run::program("casebook")), folder, how)
}

fn with(mut command: Command, folder: &Path, how: &[&str]) -> Command {
    command.args(how).arg(run::demo().join("alert.json"));
    run::with_evidence(&mut command, &run::demo());
    command.arg("--data").arg(folder.join("data")).arg("--out").arg(folder.join("report")).stdin(Stdio::null());
    for other in
        ["CASEBOOK_MODELS", "CASEBOOK_NATS", "CASEBOOK_TEAM", "CASEBOOK_LOG", "CASEBOOK_OTLP", "OTEL_SERVICE_NAME"]
    {
        command.env_remove(other);
    }
    command
}

fn said(output: &Output) -> String {
    [&output.stdout, &output.stderr].map(|b| String::from_utf8_lossy(b).into_owned()).concat()
}

fn report(folder: &Path) -> Report {
    serde_json::from_slice(&std::fs::read(folder.join("report/report.json")).unwrap()).unwrap()
}

fn called<'a>(spans: &'a [(String, Span)], operation: &str) -> Vec<&'a Span> {
    let all = spans.iter().map(|(_, span)| span);
    all.filter(|span| attribute(&span.attributes, "gen_ai.operation.name") == operation).collect()
}

/// What holds of the spans of a whole team: one trace for each task, with its calls below it, linked to the
/// span of the investigation, and that one once.
fn hangs_together(spans: &[(String, Span)], report: &Report) {
    let id = report.investigation.as_str();
    let over: Vec<_> = spans.iter().filter(|(_, span)| span.name == "investigation").collect();
    let [(_, over)] = over.as_slice() else { panic!("an investigation ends once: {}", over.len()) };
    assert_eq!(attribute(&over.attributes, "gen_ai.conversation.id"), id);
    assert_eq!(attribute(&over.attributes, "casebook.verdict"), report.verdict.name());
    assert_eq!(hex(&over.trace_id), id.replace('-', ""), "the trace id is the id of the investigation");
    assert!(over.parent_span_id.is_empty());

    let tasks = called(spans, "invoke_agent");
    let done: BTreeSet<String> = report.usage.tasks.iter().map(|t| t.task.to_string()).collect();
    let told: Vec<String> = tasks.iter().map(|span| attribute(&span.attributes, "casebook.task")).collect();
    assert_eq!(told.iter().cloned().collect::<BTreeSet<_>>(), done, "every task has a span");
    assert_eq!(told.len(), done.len(), "and each one");
    let mut below = BTreeMap::new();
    for task in &tasks {
        assert!(task.parent_span_id.is_empty(), "{}", task.name);
        assert_eq!(attribute(&task.attributes, "gen_ai.conversation.id"), id);
        let round = task.attributes.iter().find(|pair| pair.key == "casebook.round").unwrap();
        assert!(matches!(round.value.clone().unwrap().value, Some(Value::IntValue(1..=9))), "{round:?}");
        let [link] = task.links.as_slice() else { panic!("{} is linked once", task.name) };
        assert_eq!((&link.trace_id, &link.span_id), (&over.trace_id, &over.span_id));
        assert!(task.start_time_unix_nano >= over.start_time_unix_nano);
        assert!(below.insert(&task.trace_id, &task.span_id).is_none(), "one trace a task");
    }
    for operation in ["chat", "execute_tool"] {
        for call in called(spans, operation) {
            assert_eq!(below.get(&call.trace_id), Some(&&call.parent_span_id), "{}", call.name);
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// How often each was measured, over all processes and attributes, and what it sums to.
fn measured(collector: &Collector) -> BTreeMap<String, (u64, f64)> {
    let mut all = BTreeMap::new();
    for (_, metric) in collector.metrics() {
        let entry: &mut (u64, f64) = all.entry(metric.name.clone()).or_default();
        for (_, count, sum) in points(&metric) {
            *entry = (entry.0 + count, entry.1 + sum);
        }
    }
    all
}

#[test]
fn collector_gets_traces_and_measurements_but_no_text() {
    let (folder, collector) = (tempfile::tempdir().unwrap(), Collector::start());
    let (lab, models) = lab(folder.path());
    let mut command = casebook(folder.path(), &["investigate", "--models", models.to_str().unwrap()]);
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url());
    command.env("OTEL_EXPORTER_OTLP_HEADERS", "x-collector-key=k-17");
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let report = report(folder.path());
    let spans = collector.spans();
    assert!(spans.iter().all(|(service, _)| service == "casebook"));
    hangs_together(&spans, &report);
    assert!(collector.keys().iter().all(|key| key.as_deref() == Some("k-17")), "the collector's own key goes along");

    let chats = called(&spans, "chat");
    assert_eq!(chats.len() as u64, report.usage.total.model_calls);
    for chat in &chats {
        assert_eq!((chat.name.as_str(), chat.kind()), ("chat scripted-1", SpanKind::Client));
        assert_eq!(attribute(&chat.attributes, "gen_ai.provider.name"), "anthropic");
        assert_eq!(attribute(&chat.attributes, "casebook.attempts"), "1");
        assert!(chat.end_time_unix_nano > chat.start_time_unix_nano);
    }
    let tokens =
        |which: &str| -> u64 { chats.iter().map(|c| attribute(&c.attributes, which).parse::<u64>().unwrap()).sum() };
    assert_eq!(report.usage.total.input_tokens, tokens("gen_ai.usage.input_tokens"));
    assert_eq!(report.usage.total.output_tokens, tokens("gen_ai.usage.output_tokens"));

    let all = measured(&collector);
    let of = |name: &str| *all.get(name).unwrap_or_else(|| panic!("{name} was not measured: {all:?}"));
    assert_eq!(of("gen_ai.client.operation.duration").0, report.usage.total.model_calls);
    let tokens = report.usage.total.input_tokens + report.usage.total.output_tokens;
    assert_eq!(of("gen_ai.client.token.usage").1, tokens as f64);
    assert!((of("casebook.model.cost").1 * 1e6 - report.usage.total.cost_micros as f64).abs() < 0.5);
    assert_eq!(of("gen_ai.execute_tool.duration").0, called(&spans, "execute_tool").len() as u64);
    assert_eq!(of("casebook.task.duration").0, report.usage.tasks.len() as u64);
    assert_eq!(of("casebook.investigations.opened").1, 1.0);
    assert_eq!(of("casebook.investigation.duration").0, 1);
    assert!(of("casebook.finding.score").0 >= report.findings.len() as u64);
    assert!(!all.contains_key("casebook.dead_letters"), "nothing was given up");

    // Names, counts, times and ids alone: neither the model's key nor a prompt, a reply, or a line of a log.
    let bytes = collector.bytes();
    let holds = |text: &str| bytes.windows(text.len()).any(|window| window == text.as_bytes());
    assert!(holds("casebook.verdict") && !holds(KEY));
    let telling = report.findings.iter().flat_map(|f| &f.citations).filter_map(|c| match &c.citation {
        Citation::Literal { quote, .. } if quote.len() >= 12 => Some(quote.as_str()),
        _ => None,
    });
    let quotes: Vec<&str> = telling.collect();
    assert!(!quotes.is_empty() && !quotes.iter().any(|quote| holds(quote)));
    assert!(!report.findings.iter().any(|f| holds(&f.finding.draft.claim)) && !holds(&report.summary));
    assert_eq!(lab.violations(), [""; 0], "nothing of it is in a request to the model");
}

#[test]
fn each_process_of_a_team_sends_its_own_spans() {
    let (folder, collector) = (tempfile::tempdir().unwrap(), Collector::start());
    let (_lab, models) = lab(folder.path());
    let mut command = with(run::cluster().unwrap(), folder.path(), &["--models", models.to_str().unwrap()]);
    let output = command.args(["--otlp", &collector.url()]).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let (report, spans) = (report(folder.path()), collector.spans());
    hangs_together(&spans, &report);
    let by: BTreeMap<&str, BTreeSet<&str>> = spans.iter().fold(BTreeMap::new(), |mut by, (service, span)| {
        by.entry(service.as_str()).or_insert_with(BTreeSet::new).insert(span.name.split(' ').next().unwrap());
        by
    });
    let worker = BTreeSet::from(["invoke_agent", "chat", "execute_tool"]);
    assert_eq!(by.get("casebook-hub"), Some(&BTreeSet::from(["investigation"])), "{by:?}");
    for service in ["casebook-director", "casebook-critic", "casebook-expert"] {
        assert_eq!(by.get(service), Some(&worker), "{by:?}");
    }
    let all = measured(&collector);
    assert_eq!(all["casebook.task.duration"].0, report.usage.tasks.len() as u64);
    assert_eq!(all["gen_ai.client.operation.duration"].0, report.usage.total.model_calls);
    assert_eq!(all["casebook.investigation.duration"].0, 1);
}

#[test]
fn failed_call_is_traced_by_its_error_type_only() {
    let (folder, collector) = (tempfile::tempdir().unwrap(), Collector::start());
    let (lab, models) = lab(folder.path());
    // Every call of a model fails, so nothing is investigated.
    let key = folder.path().join("key");
    std::fs::write(&key, "sk-not-the-one-that-is-taken").unwrap();
    std::fs::write(&models, models_file(&lab.server.url(), ("anthropic", "native"), &key, "")).unwrap();
    let mut command = casebook(folder.path(), &["investigate", "--models", models.to_str().unwrap()]);
    let output = command.args(["--otlp", &collector.url()]).output().unwrap();
    assert_eq!(output.status.code(), Some(7), "{}", said(&output));
    let spans = collector.spans();
    let chats = called(&spans, "chat");
    assert!(chats.iter().any(|chat| attribute(&chat.attributes, "casebook.attempts") == "1"));
    for chat in &chats {
        let (attempts, sort) =
            (attribute(&chat.attributes, "casebook.attempts"), attribute(&chat.attributes, "error.type"));
        // A call that comes after the provider has refused several others is not sent.
        assert_eq!(sort, if attempts == "0" { "unavailable" } else { "rejected" });
        let status = chat.status.as_ref().unwrap();
        assert_eq!((status.code(), status.message.as_str()), (StatusCode::Error, ""));
    }
    let failed = called(&spans, "invoke_agent");
    assert!(failed.iter().any(|task| attribute(&task.attributes, "error.type") == "task_failed"));
}

#[test]
fn missing_collector_stops_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let output = casebook(folder.path(), &["investigate"]).args(["--otlp", "http://127.0.0.1:9"]).output().unwrap();
    let told = said(&output);
    assert!(output.status.success(), "{told}");
    assert!(told.contains("could not send the last traces and metrics"), "{told}");
    assert!(!report(folder.path()).timeline.events.is_empty());
}

#[test]
fn wrong_setting_is_refused_standard_variable_is_only_warned() {
    let folder = tempfile::tempdir().unwrap();
    let list = |flag: &[&str], variables: &[(&str, &str)]| {
        let mut command = Command::new(run::program("casebook"));
        command.args(["list", "--data"]).arg(folder.path()).args(flag).env_remove("CASEBOOK_LOG");
        command.envs(variables.iter().copied()).stdin(Stdio::null());
        let output = command.output().unwrap();
        (output.status.code(), said(&output))
    };
    for (flag, variables) in [
        (["--otlp", "http://me:hunter2@c:4318"].as_slice(), [].as_slice()),
        (&[], &[("CASEBOOK_OTLP", "http://c:4318/?key=hunter2")]),
    ] {
        let (code, told) = list(flag, variables);
        assert!(code == Some(2) && told.contains("OTEL_EXPORTER_OTLP_HEADERS") && !told.contains("hunter2"), "{told}");
    }
    let standard = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9");
    let (code, told) = list(&[], &[standard, ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")]);
    assert!(code == Some(0) && told.contains("to be http/protobuf"), "{told}");
    for quiet in
        [[standard, ("OTEL_SDK_DISABLED", "true")], [("OTEL_EXPORTER_OTLP_ENDPOINT", ""), ("CASEBOOK_OTLP", "")]]
    {
        let (code, told) = list(&[], &quiet);
        assert!(code == Some(0) && !told.contains("WARN"), "{told}");
    }
}
