//! Metrics of a team: a real Prometheus scrapes it, and each query of the rules and of the dashboard is asked.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use casebook_runtime::process;
use casebook_runtime::service::healthy;
use casebook_tests::run;
use casebook_tests::wait::{self, PATIENCE};
use serde_json::{Value, json};

use super::{Case, Team, text};

fn deploy(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("deploy").join(file)
}

/// Panels that a finished run without a fault gives no data.
const EMPTY: [&str; 7] = [
    "Cost",
    "Dead letters",
    "Leases lost",
    "Model calls",
    "Proposals that a rule changed",
    "Tokens",
    "Tool calls that fail",
];

/// Runs `promtool` in the folder of the rules.
fn promtool(arguments: &[&str]) {
    let output = Command::new("promtool").args(arguments).current_dir(deploy("prometheus")).output();
    let output = output.unwrap();
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success(), "{said}");
}

#[test]
fn each_alert_has_a_test_that_passes_and_an_entry_in_the_runbook() {
    if run::has("promtool", "prometheus") {
        promtool(&["check", "config", "prometheus.yml"]);
        promtool(&["test", "rules", "rules-test.yml"]);
    }
    let rules = text(&deploy("prometheus/rules.yml"));
    let tests = text(&deploy("prometheus/rules-test.yml"));
    let runbook = text(&deploy("../docs/operations.md"));
    let alerts: Vec<&str> = rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")).collect();
    assert!(alerts.len() >= 9, "{alerts:?}");
    for alert in alerts {
        assert!(tests.contains(&format!("alertname: {alert}\n")), "{alert} has no test that lets it fire");
        assert!(runbook.contains(&format!("| `{alert}` |")), "{alert} is not in docs/operations.md");
    }
}

/// A Prometheus that scrapes `targets`, each a job and an address.
struct Prometheus {
    child: Child,
    base: String,
    folder: tempfile::TempDir,
}

impl Prometheus {
    fn start(targets: &[(String, SocketAddr)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut jobs: BTreeMap<&str, Vec<SocketAddr>> = BTreeMap::new();
        targets.iter().for_each(|(job, at)| jobs.entry(job).or_default().push(*at));
        let job = |(job, at)| json!({"job_name": job, "static_configs": [{"targets": at}]});
        let config = json!({
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [deploy("prometheus/rules.yml")],
            "scrape_configs": jobs.into_iter().map(job).collect::<Vec<_>>(),
        });
        // JSON is YAML.
        std::fs::write(folder.path().join("prometheus.yml"), config.to_string()).unwrap();
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let mut command = Command::new("prometheus");
        command.args(["--config.file=prometheus.yml", "--storage.tsdb.path=data"]);
        command.arg(format!("--web.listen-address={port}")).current_dir(folder.path());
        let log = std::fs::File::create(folder.path().join("log")).unwrap();
        let child = command.stdout(Stdio::null()).stderr(log).spawn();
        Self { child: child.unwrap(), base: format!("http://{port}"), folder }
    }

    fn get(&self, path: &str) -> Option<Value> {
        let request = reqwest::Client::new().get(format!("{}{path}", self.base));
        process::run(async { request.send().await.ok()?.json().await.ok() }).unwrap()
    }

    /// The number of series that a query gives.
    fn series(&self, query: &str) -> usize {
        let answer = self.get(&format!("/api/v1/query?query={}", encoded(query))).unwrap_or_default();
        assert_ne!(answer["status"], "error", "{query}: {answer}");
        let values = answer["data"]["result"].as_array().into_iter().flatten();
        values.filter(|one| one["value"][1] != "NaN").count()
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// For the query of an address.
fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

/// Where the processes of a team answer, by program.
fn targets(case: &Case) -> Vec<(String, SocketAddr)> {
    let address = |text: &str| text.split_once(" health http://")?.1.trim().parse().ok();
    let of = |text: String| Some((text.split(' ').next()?.to_owned(), address(text.lines().next()?)?));
    case.logs(".out").iter().filter_map(|path| of(text(path))).collect()
}

#[test]
fn prometheus_reads_what_dashboard_and_rules_ask_for() {
    if !run::has("prometheus", "prometheus") {
        return;
    }
    casebook_runtime::tls::install();
    let case = Case::new();
    let mut team = Team::start(&case);
    let targets = targets(&case);
    assert_eq!(targets.len(), 6, "every process of ours: {targets:?}");
    let prometheus = Prometheus::start(&targets);
    let scrapes = wait::holds(PATIENCE, || prometheus.series("up == 1") == targets.len());
    assert!(scrapes, "Prometheus does not scrape: {}", text(&prometheus.folder.path().join("log")));
    // A rate needs a change after the first scrape of a series.
    for n in 1..=2 {
        let mut alert: Value = serde_json::from_str(&text(&case.at("alert.json"))).unwrap();
        alert["id"] = json!(format!("metrics-{n}"));
        std::fs::write(case.at("alert.json"), alert.to_string()).unwrap();
        let sent = case.alert();
        assert!(sent.status.success(), "{sent:?}");
        let ended = format!("sum(casebook_investigation_duration_seconds_count) == {n}");
        let ends = wait::holds(PATIENCE, || prometheus.series(&ended) > 0);
        assert!(ends, "{}", healthy::get(targets[0].1, "/metrics").unwrap());
        std::thread::sleep(Duration::from_secs(2));
    }
    let dashboard: Value = serde_json::from_str(&text(&deploy("grafana/casebook.json"))).unwrap();
    let panels = dashboard["panels"].as_array().unwrap().iter().filter(|panel| panel["type"] != "row");
    let asked = panels.map(|panel| (panel["title"].as_str().unwrap(), panel["targets"][0]["expr"].as_str().unwrap()));
    let asked: BTreeMap<&str, String> =
        asked.map(|(title, query)| (title, query.replace("$__rate_interval", "1m"))).collect();
    assert!(asked.len() >= 22 && EMPTY.iter().all(|title| asked.contains_key(title)), "{asked:?}");
    let empty = |(title, query): (&&str, &String)| !EMPTY.contains(title) && prometheus.series(query) == 0;
    let empty: Vec<_> = asked.iter().filter(|one| empty(*one)).collect();
    assert!(empty.is_empty(), "these panels have no data: {empty:?}");
    let rules = prometheus.get("/api/v1/rules").unwrap();
    for rule in rules["data"]["groups"][0]["rules"].as_array().unwrap() {
        assert_eq!((&rule["health"], &rule["state"]), (&json!("ok"), &json!("inactive")), "{rule}");
    }
    let metrics = healthy::get(targets[0].1, "/metrics").unwrap();
    assert!(!metrics.contains("r1.plan") && !metrics.contains("r1.investigate"), "no task is a label");
    team.signal("-TERM", "cluster itself");
    let (code, said) = team.end();
    assert_eq!(code, Some(0), "{said}");
}
