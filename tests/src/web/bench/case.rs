//! One investigation with many events: its page cold and warm, any moment of it, and how soon it answers a key while
//! it grows.

use std::path::Path;
use std::time::Duration;

use casebook_api::pages::case::TABS;
use casebook_protocol::{Budget, InvestigationId};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::Value;

use super::{Asker, Figures, Times};
use crate::browser::Browser;
use crate::lab::{FORMS, Lab};
use crate::model::brain::Brain;
use crate::model::server::Options;
use crate::web::Server;
use crate::web::live::Growing;
use crate::{Result, run};

/// In milliseconds.
const COLD: f64 = 100.0;
const WARM: f64 = 50.0;
const MOMENT: f64 = 50.0;
/// From a key to the next paint.
const KEY: f64 = 200.0;
/// In the page at once, for each tab.
const ROWS: f64 = 200.0;
/// Starts of the server for each tab.
const STARTS: usize = 3;
const TIMES: usize = 20;
const MOMENTS: usize = 1_000;
/// Runs of the keys on each tab; the median counts.
const RUNS: usize = 5;
/// Events that are left when the pages are opened in the browser, so that they change under the keys.
const LEFT: usize = 2_000;
const PAUSE: Duration = Duration::from_millis(100);
/// Remembers how long each key took until the next paint.
const WATCH: &str = "
window.took = [0];
new PerformanceObserver((list) => list.getEntries().forEach((one) => { if (one.interactionId) took.push(one.duration); }))
  .observe({ type: 'event', durationThreshold: 16 });";
const ROWS_OF: &str = "return [document.querySelectorAll('#tab :is(tbody > tr, ol > li, ul.list > li, article)').length, document.querySelectorAll('*').length]";

/// # Errors
/// A goal that is missed.
pub async fn check(browser: &Browser, events: usize) -> Result<String> {
    let (growing, id) = recorded(events).await?;
    let mut figures = Figures::default();
    let (log, data) = (growing.log.len(), growing.data.path());
    figures.say(format!("{log} events; cold is the first page of a server that has just started"));
    figures.say(format!("{:<34} {:>7} {:>7} {:>7}", "", "p50", "p95", "most"));
    cold(&mut figures, data, &id).await?;
    let server = Server::serve(data, &[])?;
    warm(&mut figures, &Asker::of(&server)?, &id, log).await?;
    drop(server);
    keys(&mut figures, browser, &growing).await?;
    figures.done()
}

/// An investigation with a scripted model, of at least so many events.
async fn recorded(events: usize) -> Result<(Growing, String)> {
    let data = tempfile::tempdir()?;
    let folder = data.path().to_path_buf();
    let report = tokio::task::spawn_blocking(move || {
        let rounds = u32::try_from(events.div_ceil(235)).unwrap_or(u32::MAX).max(2);
        let brain = Brain { rounds, expert_calls: 30, ..Brain::default() };
        let lab = Lab::start_with(brain, FORMS[0], "", Options { keep: false, ..Options::default() })?;
        let most = u64::MAX / 4;
        let budget = Budget {
            model_calls: most,
            tool_calls: most,
            tokens: most,
            cost_micros: most,
            rounds: rounds + 2,
            ..Budget::default()
        };
        let (alert, evidence) = (run::demo().join("alert.json"), run::demo().join("evidence"));
        run::investigate_with(&alert, &evidence, &folder, budget, lab.reasoners()?)
    });
    let id = report.await??.investigation;
    let growing = Growing::of(data, &id).await?;
    if growing.log.len() < events {
        return Err(format!("the investigation has only {} events", growing.log.len()).into());
    }
    Ok((growing, id.to_string()))
}

fn tabs() -> impl Iterator<Item = &'static str> {
    TABS.iter().map(|(name, _)| *name)
}

async fn cold(figures: &mut Figures, data: &Path, id: &str) -> Result<()> {
    for tab in tabs() {
        let mut times = Times::default();
        for _ in 0..STARTS {
            let server = Server::serve(data, &[])?;
            let asker = Asker::of(&server)?;
            asker.timed("/problems/host").await?;
            times.add(asker.timed(&format!("/i/{id}?tab={tab}")).await?);
        }
        figures.times(&format!("{tab}, cold"), &times, COLD);
    }
    Ok(())
}

async fn warm(figures: &mut Figures, asker: &Asker, id: &str, last: usize) -> Result<()> {
    for tab in tabs() {
        let (mut times, path) = (Times::default(), format!("/i/{id}?tab={tab}"));
        asker.timed(&path).await?;
        for _ in 0..TIMES {
            times.add(asker.timed(&path).await?);
        }
        figures.times(&format!("{tab}, warm"), &times, WARM);
    }
    let mut dice = ChaCha8Rng::seed_from_u64(6);
    let (mut pages, mut journals) = (Times::default(), Times::default());
    for _ in 0..MOMENTS {
        let at = dice.random_range(1..last);
        pages.add(asker.timed(&format!("/i/{id}?at={at}")).await?);
        journals.add(asker.timed(&format!("/api/v1/investigations/{id}/journal?at={at}")).await?);
    }
    figures.times("any moment, page", &pages, MOMENT);
    figures.times("any moment, Journal of the API", &journals, MOMENT);
    Ok(())
}

/// Presses keys on each tab while the investigation grows.
async fn keys(figures: &mut Figures, browser: &Browser, growing: &Growing) -> Result<()> {
    let id = InvestigationId::new("growing-0000-4000-8000-000000000000")?;
    let mut log = growing.begin(&id, growing.log.len().saturating_sub(LEFT)).await?;
    let (base, key, _server) = growing.apart()?;
    let page = format!("{base}/i/{id}?k={key}&tab=");
    let going = growing.go_on(&mut log, usize::MAX, |_| PAUSE);
    tokio::select! {
        ended = going => { ended?; Err("the investigation ended before the keys".into()) }
        pressed = pressed(figures, browser, &page) => pressed,
    }
}

async fn pressed(figures: &mut Figures, browser: &Browser, page: &str) -> Result<()> {
    for tab in tabs() {
        let mut worst = Vec::new();
        let mut rows = (0.0, 0.0);
        for _ in 0..RUNS {
            browser.open(&format!("{page}{tab}")).await?;
            browser.until("document.getElementById('live').dataset.state === 'live'").await?;
            rows = serde_json::from_value(browser.run(ROWS_OF).await?)?;
            browser.run(WATCH).await?;
            for key in ["j", "j", "j", "k", "j", "\u{e004}", "\u{e004}", "j", "k", "\u{e004}", "j", "j"] {
                browser.press(key).await?;
                tokio::time::sleep(Duration::from_millis(60)).await;
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
            worst.push(browser.run("return Math.max(...took)").await?.as_f64().unwrap_or(f64::MAX));
        }
        worst.sort_by(f64::total_cmp);
        let median = worst.get(RUNS / 2).copied().unwrap_or(f64::MAX);
        figures.say(format!(
            "{:<34} {median:>7.0} ms from a key to the paint; {} rows, {} elements",
            format!("{tab}, while it grows"),
            rows.0,
            rows.1
        ));
        figures.judge(&format!("{tab}, from a key to the paint"), median, KEY, "ms");
        figures.judge(&format!("{tab}, rows"), rows.0, ROWS, "rows");
    }
    let hidden = browser.run("return document.hidden").await?;
    if hidden == Value::Bool(true) {
        return Err("the page was hidden: keys are not measured".into());
    }
    Ok(())
}
