//! Investigations in which no model answers: they have no verdict, and go on once one does.

use std::path::Path;
use std::process::Command;

use casebook_protocol::{Budget, Event, Recorded};
use casebook_tests::lab::{FORMS, Lab, models_file};
use casebook_tests::model::Server;
use casebook_tests::model::brain::Brain;
use casebook_tests::model::faults::{Fault, Switched};
use casebook_tests::model::server::Options;
use casebook_tests::run;
use serde_json::{Value, json};

use super::mcp::script::{AUTO, Client, demo, program, text};

fn brain() -> Brain {
    Brain { rounds: 2, ..Brain::default() }
}

/// Runs `casebook` in `folder`: its exit code and what it printed.
fn casebook(folder: &Path, arguments: &[&str]) -> (i32, String) {
    let output = Command::new(program()).args(arguments).current_dir(folder).output().unwrap();
    let printed = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    (output.status.code().unwrap(), printed)
}

/// A client of `casebook mcp` with the models file of `folder`, and with `more`.
fn mcp(folder: &Path, more: &[&str]) -> Client {
    let (program, evidence) = (program(), demo("evidence"));
    let (models, data) = (folder.join("models.toml"), folder.join("data"));
    let command = [&program, "mcp", "--evidence", text(&evidence), "--models", text(&models), "--data", text(&data)];
    Client::stdio(&[&command[..], more].concat(), AUTO)
}

fn has(printed: &str, needed: &[&str]) {
    for needed in needed {
        assert!(printed.contains(needed), "{needed:?} is not in\n{printed}");
    }
}

/// Investigates while no model answers, and goes on after `mend`.
fn without_and_with(file: &str, reason: &str, mend: impl FnOnce()) {
    let folder = tempfile::tempdir().unwrap();
    let here = |arguments: &[&str]| casebook(folder.path(), arguments);
    std::fs::write(folder.path().join("models.toml"), file).unwrap();
    let (alert, evidence, team) = (demo("alert.json"), demo("evidence"), demo("team"));
    let given = ["--evidence", text(&evidence), "--team", text(&team), "--models", "models.toml"];
    let (code, printed) = here(&[&["investigate", text(&alert), "--out", "report"], &given[..]].concat());
    assert_eq!(code, 7, "{printed}");
    has(&printed, &["is not investigated: ", reason, "no log was read", "casebook resume ", "--models models.toml"]);
    assert!(!printed.contains("Inconclusive") && !folder.path().join("report").exists(), "{printed}");
    // Calls at the same time count as one, so that the third refusal of a key may not come.
    let told = printed.matches("a model provider fails").count();
    assert!(told == 1 || told == 0 && reason.contains("401"), "it is reported once:\n{printed}");
    let list: Value = serde_json::from_str(&here(&["list", "--json"]).1).unwrap();
    let (row, id) = (&list["items"][0], list["items"][0]["investigation"].as_str().unwrap());
    assert!(row["not_investigated"].as_str().unwrap().contains(reason) && row["verdict"].is_null(), "{row}");
    has(&here(&["list"]).1, &["not investigated", reason]);
    has(&here(&["show", id]).1, &["not investigated: ", reason]);
    assert_eq!(here(&["export", id]).0, 3, "there is no report");
    mend();
    let (code, printed) = here(&[&["resume", id, "--out", "report"], &given[..]].concat());
    assert_eq!(code, 0, "{printed}");
    has(&printed, &["True positive"]);
    let report = std::fs::read_to_string(folder.path().join("report/report.json")).unwrap();
    assert!(!report.contains("its Expert failed"), "the round without a model counts as a blind spot");
    has(&here(&["verify", id]).1, &["no difference was found"]);
}

#[test]
fn no_verdict_without_an_answer_and_resume_goes_on_once_there_is_one() {
    let faults = [(Fault::Status(401), "HTTP 401"), (Fault::Broken, "HTTP 500"), (Fault::NoJsonBody, "not JSON")];
    std::thread::scope(|threads| {
        for ((fault, reason), form) in faults.into_iter().zip([FORMS[0], FORMS[3], FORMS[4]]) {
            threads.spawn(move || {
                let script = Switched::new(brain(), fault);
                let lab = Lab::start(script.clone(), form).unwrap();
                without_and_with(&lab.file, reason, || script.mend());
            });
        }
        threads.spawn(|| {
            let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
            let folder = tempfile::tempdir().unwrap();
            let key = folder.path().join("key");
            std::fs::write(&key, "k").unwrap();
            let file = models_file(&format!("http://127.0.0.1:{port}"), FORMS[7], &key, "");
            let mut server = None;
            without_and_with(&file, "no connection to the server", || {
                server = Some(Server::start(brain(), Options { port, ..Options::default() }).unwrap());
            });
        });
    });
}

#[test]
fn over_mcp_the_same_alert_goes_on_once_a_model_answers() {
    let script = Switched::new(brain(), Fault::Status(401));
    let lab = Lab::start(script.clone(), FORMS[2]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("models.toml"), &lab.file).unwrap();
    let mut client = mcp(folder.path(), &["--team", text(&demo("team"))]);
    let alert: Value = serde_json::from_slice(&std::fs::read(demo("alert.json")).unwrap()).unwrap();
    let opened = client.json("open_investigation", &json!({"alert": alert}));
    let id = opened["id"].as_str().unwrap();
    let paused = client.until(id, |standing| !standing["not_investigated"].is_null());
    assert!(paused["not_investigated"].as_str().unwrap().contains("HTTP 401"), "{paused}");
    assert!(paused["verdict"].is_null() && paused["closed"].is_null(), "{paused}");
    let report = client.json("get_report", &json!({"id": id}));
    assert!(report["markdown"].as_str().unwrap().contains("Not investigated"), "{report}");
    script.mend();
    let again = client.json("open_investigation", &json!({"alert": alert}));
    assert_eq!((&again["id"], &again["new"]), (&opened["id"], &json!(false)));
    let closed = client.closed(id);
    assert_eq!((&closed["verdict"], &closed["not_investigated"]), (&json!("true_positive"), &Value::Null));
}

#[test]
fn budgets_hold_with_a_provider_that_reports_no_usage() {
    let priced = "price = { input = 3.0, output = 15.0 }\n";
    for form in [FORMS[0], FORMS[2], FORMS[5]] {
        let options = Options { unmetered: true, ..Options::default() };
        let lab = Lab::start_with(Brain { rounds: 30, ..Brain::default() }, form, priced, options).unwrap();
        let budget = Budget { tokens: 600_000, ..Budget::default() };
        let report = lab.investigate(&run::demo(), budget).unwrap();
        let total = report.usage.total;
        assert!(report.stop_reason.as_ref().unwrap().contains("tokens"), "{form:?}: {:?}", report.stop_reason);
        assert!(
            total.input_tokens + total.output_tokens <= budget.tokens && total.cost_micros > 0,
            "{form:?}: {total:?}"
        );
        let data = lab.data();
        let log: Vec<Recorded> = tokio::runtime::Runtime::new().unwrap().block_on(async {
            let store = casebook_hub::SqliteStore::open(data).unwrap();
            casebook_hub::archive::log(&store, &report.investigation).await.unwrap()
        });
        let mut calls = log.iter().filter_map(|e| match &e.event {
            Event::ModelCalled { call, .. } => Some(call),
            _ => None,
        });
        assert!(calls.all(|call| call.estimated && call.usage.input_tokens > 0), "{form:?}");
    }
}

#[test]
fn a_budget_too_small_for_a_call_is_refused_with_its_figures() {
    let lab = Lab::start(brain(), FORMS[3]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("models.toml"), &lab.file).unwrap();
    let (alert, evidence, team) = (demo("alert.json"), demo("evidence"), demo("team"));
    let given = ["--evidence", text(&evidence), "--team", text(&team), "--models", "models.toml"];
    for (option, limit, what) in [("--budget-tokens", "3", "tokens"), ("--budget-model-calls", "2", "model calls")] {
        let limited = [&["investigate", text(&alert), option, limit], &given[..]].concat();
        let (code, printed) = casebook(folder.path(), &limited);
        assert_eq!(code, 2, "{printed}");
        has(&printed, &["the budget is too small: one call of the Expert for ", what, "is enough", "raise --budget"]);
    }
    assert_eq!(lab.server.log().counts().requests, 0);
    has(&casebook(folder.path(), &["list"]).1, &["no investigations"]);
    let mut client = mcp(folder.path(), &["--budget-tokens", "3"]);
    let refused = client.call("open_investigation", &json!({"alert": {"id": "x"}})).unwrap_err();
    assert!(refused.contains("the budget is too small: one call of the Expert for "), "{refused}");
}

#[test]
fn an_expert_at_its_limit_is_seen_by_critic_director_and_reader() {
    let mut lab = Lab::start(brain(), FORMS[0]).unwrap();
    lab.file = lab.file.replace("[roles.expert]\n", "[roles.expert]\nlimits = { tool_calls = 2 }\n");
    let report = lab.investigate(&run::demo(), Budget::default()).unwrap();
    let spots: Vec<_> = report.blind_spots.iter().filter(|spot| spot.contains("reached a limit")).collect();
    assert!(spots.iter().any(|s| *s == "endpoint: its Expert reached a limit in round 1: 2 tool calls"), "{spots:?}");
    let asked = |needed: &str, kind| {
        let captured = lab.server.log().captured();
        let mut of_kind = captured.iter().filter(|c| c.kind == Some(kind));
        of_kind.any(|c| String::from_utf8_lossy(&c.request.bytes).contains(needed))
    };
    assert!(asked("endpoint: 2 tool calls", casebook_protocol::TaskKind::Review));
    assert!(asked(r#"\"limit\":\"2 tool calls\""#, casebook_protocol::TaskKind::Decide));
}

#[test]
fn own_domains_are_reported_in_their_own_terms_and_the_analyst_says_what_it_ignores() {
    let folder = tempfile::tempdir().unwrap();
    let experts = folder.path().join("team/experts");
    std::fs::create_dir_all(&experts).unwrap();
    let file = "name: kubernetes\ndescription: Knows the nodes.\ninstructions: Look at the tags.\ntools: [evidence/*]\nsources: [endpoint, network]\n";
    std::fs::write(experts.join("kubernetes.yaml"), file).unwrap();
    let (alert, evidence) = (demo("alert.json"), demo("evidence"));
    let given = ["--evidence", text(&evidence), "--team", "team", "--out", "report"];
    let (code, printed) = casebook(folder.path(), &[&["investigate", text(&alert)], &given[..]].concat());
    assert_eq!(code, 0, "{printed}");
    has(&printed, &["the built-in analyst plays kubernetes: it does not use the instructions in their files"]);
    let report = std::fs::read(folder.path().join("report/report.json")).unwrap();
    let report: casebook_protocol::Report = serde_json::from_slice(&report).unwrap();
    let missing: Vec<_> = report.blind_spots.iter().filter(|s| s.ends_with("no source of evidence")).collect();
    assert!(missing.iter().all(|s| !s.starts_with("endpoint") && !s.starts_with("network")), "{missing:?}");
    assert!(missing.iter().any(|s| s.starts_with("cloud")), "what is not covered is still a blind spot: {missing:?}");
}
