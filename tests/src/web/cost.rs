//! What an open page costs an investigation: the time it takes and the CPU of its server, without and with the page in
//! a real browser. One browser takes no cores from the server, as on another machine; the other shares them.

use std::time::Duration;

use casebook_protocol::{Timestamp, between};
use serde_json::{Value, json};

use super::Server;
use crate::browser::Browser;
use crate::lab::{FORMS, Lab};
use crate::load::measure;
use crate::model::brain::Brain;
use crate::model::server::Options;
use crate::{Result, run};

/// In percent of the time.
const MOST: f64 = 3.0;
/// Of the scripted model.
const LATENCY: Duration = Duration::from_millis(200);

#[derive(Debug, Clone, Copy)]
struct Run {
    seconds: f64,
    cpu: f64,
}

/// # Errors
/// The goal is missed.
pub async fn check(browser: &Browser, runs: usize) -> Result<String> {
    let script = Brain::named("benchmark").ok_or("no such script")?;
    let lab = Lab::start_with(script, FORMS[0], "", Options { latency: LATENCY, keep: false, ..Options::default() })?;
    let folder = tempfile::tempdir()?;
    let models = folder.path().join("models.toml");
    std::fs::write(&models, &lab.file)?;
    let models = models.to_str().ok_or("the path is not text")?;
    let (mut lines, mut missed) = (Vec::new(), Vec::new());
    let idle = Browser::start_idle().await?.ok_or("this check needs a browser")?;
    let by = [
        ("a model that answers after 200 ms", vec!["--models", models], browser),
        ("the built-in analyst, the browser takes no cores from it", Vec::new(), &idle),
        ("the built-in analyst, the browser shares the cores", Vec::new(), browser),
    ];
    for (name, arguments, browser) in by {
        let (without, with) = pairs(browser, &arguments, runs).await?;
        let more = |of: fn(&Run) -> f64| (of(&with) / of(&without).max(1e-9) - 1.0) * 100.0;
        let (time, cpu) = (more(|run| run.seconds), more(|run| run.cpu));
        lines.push(format!(
            "{name}: {:.2} s without a page, {:.2} s with one ({time:+.1} %); CPU of the server {:.2} and {:.2} s ({cpu:+.1} %)",
            without.seconds, with.seconds, without.cpu, with.cpu
        ));
        if time > MOST {
            missed.push(format!("{name}: {time:+.1} %, the goal is {MOST} %"));
        }
    }
    let figures = format!("medians of {runs} runs each\n{}", lines.join("\n"));
    if missed.is_empty() { Ok(figures) } else { Err(format!("{figures}\nmissed:\n{}", missed.join("\n")).into()) }
}

/// Without and with an open page, in turn, after one run that warms up.
async fn pairs(browser: &Browser, arguments: &[&str], runs: usize) -> Result<(Run, Run)> {
    let data = tempfile::tempdir()?;
    let evidence = run::demo().join("evidence");
    let evidence = ["--evidence", evidence.to_str().ok_or("the path is not text")?];
    let server = Server::serve(data.path(), &[&evidence, arguments].concat())?;
    one(browser, &server, false).await?;
    let (mut without, mut with) = (Vec::new(), Vec::new());
    for _ in 0..runs {
        without.push(one(browser, &server, false).await?);
        with.push(one(browser, &server, true).await?);
    }
    Ok((median(without), median(with)))
}

fn median(runs: Vec<Run>) -> Run {
    let of = |what: fn(&Run) -> f64| {
        let mut all: Vec<f64> = runs.iter().map(what).collect();
        all.sort_by(f64::total_cmp);
        all.get(all.len() / 2).copied().unwrap_or(0.0)
    };
    Run { seconds: of(|run| run.seconds), cpu: of(|run| run.cpu) }
}

async fn one(browser: &Browser, server: &Server, open: bool) -> Result<Run> {
    browser.open(&if open { format!("{}/?k={}", server.base, server.key) } else { "about:blank".to_owned() }).await?;
    let before = measure::cpu_of(server.pid());
    let alert: Value = serde_json::from_slice(&std::fs::read(run::demo().join("alert.json"))?)?;
    let launch = server.client.post(format!("{}/api/v1/investigations", server.base)).bearer_auth(&server.key);
    let body = json!({"alert": alert, "again": true}).to_string();
    let answer = launch.header("content-type", "application/json").body(body).send().await?.error_for_status()?;
    let launched: Value = serde_json::from_slice(&answer.bytes().await?)?;
    let id = launched.get("investigation").and_then(Value::as_str).ok_or("the alert was not accepted")?;
    if open {
        browser.open(&format!("{}/i/{id}", server.base)).await?;
    }
    loop {
        tokio::time::sleep(Duration::from_millis(200)).await;
        let now: Value = serde_json::from_str(&server.text(&format!("/api/v1/investigations/{id}")).await?)?;
        let time = |name: &str| now.get(name).and_then(Value::as_str).and_then(|at| at.parse::<Timestamp>().ok());
        if let (Some(opened), Some(closed)) = (time("opened"), time("closed")) {
            let cpu = (measure::cpu_of(server.pid()) - before) as f64 / 1e6;
            return Ok(Run { seconds: between(opened, closed).as_secs_f64(), cpu });
        }
    }
}
