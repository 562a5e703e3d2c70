//! How long after it was recorded an event leaves the server, and is visible in windows of a browser.

use std::time::Duration;

use casebook_protocol::{InvestigationId, Recorded};
use casebook_report::words;
use futures_util::StreamExt;
use reqwest::Client;
use serde_json::Value;

use super::live::{Growing, now};
use crate::Result;
use crate::browser::Browser;

/// Events that are there when the windows open, and those that come while they are open.
const BEFORE: usize = 60;
const EVENTS: usize = 150;
/// From recording an event to seeing it, in milliseconds, for 95 of 100 events.
const APART: i64 = 300;
const HERE: i64 = 100;
/// Remembers when each event came into the page.
const WATCH: &str = "
window.seen = {};
const look = (at) => document.querySelectorAll('li[id^=s-]').forEach((one) => { if (!(one.id in seen)) seen[one.id] = at; });
look(0);
new MutationObserver(() => look(Date.now())).observe(document.body, { subtree: true, childList: true });
return document.getElementById('live').dataset.state";

#[derive(Clone, Copy)]
struct Place<'a> {
    base: &'a str,
    key: &'a str,
    name: &'a str,
    goal: i64,
}

/// # Errors
/// An event that is not shown in a window, or a goal that is missed.
pub async fn check(browser: &Browser, windows: usize) -> Result<String> {
    let growing = Growing::new().await?;
    let (base, key, _server) = growing.apart()?;
    let apart = Place { base: &base, key: &key, name: "another process", goal: APART };
    let (mut lines, mut missed) = measured(browser, &growing, apart, windows).await?;
    let (base, key) = growing.here().await?;
    let here = Place { base: &base, key: &key, name: "the serving process", goal: HERE };
    let (more, also) = measured(browser, &growing, here, windows).await?;
    lines.extend(more);
    missed.extend(also);
    let figures = lines.join("\n");
    if missed.is_empty() { Ok(figures) } else { Err(format!("{figures}\nmissed:\n{}", missed.join("\n")).into()) }
}

/// Late by so many milliseconds, sorted.
struct Late(Vec<i64>);

impl Late {
    fn of(mut all: Vec<i64>) -> Self {
        all.sort_unstable();
        Self(all)
    }

    fn part(&self, share: usize) -> i64 {
        self.0.get(self.0.len() * share / 100).or(self.0.last()).copied().unwrap_or(0)
    }

    fn say(&self) -> String {
        let [half, most, last] = [50, 95, 100].map(|share| self.part(share));
        format!("p50 {half} ms, p95 {most} ms, at most {last} ms")
    }
}

async fn measured(
    browser: &Browser,
    growing: &Growing,
    place: Place<'_>,
    windows: usize,
) -> Result<(Vec<String>, Vec<String>)> {
    let (mut lines, mut missed) = (vec![format!("{EVENTS} events, recorded by {}", place.name)], Vec::new());
    for windows in [0, 1, windows] {
        let (served, seen) = visible(browser, growing, place, windows).await?;
        let beside = if windows == 0 { "no browser".to_owned() } else { words::count(windows as u64, "window") };
        lines.push(format!("  {beside}: on the stream {}", served.say()));
        if windows > 0 {
            lines.push(format!("  {beside}: visible {}", seen.say()));
        }
        if seen.part(95) > place.goal {
            missed.push(format!("{beside}, {}: {} ms, the goal is {}", place.name, seen.part(95), place.goal));
        }
    }
    Ok((lines, missed))
}

/// How late events are on the stream, and in so many windows.
async fn visible(browser: &Browser, growing: &Growing, place: Place<'_>, windows: usize) -> Result<(Late, Late)> {
    let Place { base, key, name, .. } = place;
    let id = InvestigationId::new(format!("{}-{windows}-4000-8000-000000000000", name.replace(' ', "-")))?;
    let mut log = growing.begin(&id, BEFORE).await?;
    let mut open = Vec::new();
    for _ in 0..windows {
        open.push(browser.window().await?);
        browser.open(&format!("{base}/i/{id}?tab=events&k={key}")).await?;
        browser.until("document.getElementById('live').dataset.state === 'live'").await?;
        browser.run(WATCH).await?;
    }
    let stream = tokio::spawn(arrivals(base.to_owned(), key.to_owned(), id.clone()));
    // A pause from 40 to 440 ms, so that events come alone and in groups.
    let pause = |n: usize| Duration::from_millis(40 + (n as u64 * 7_919) % 401);
    growing.go_on(&mut log, BEFORE + EVENTS, pause).await?;
    let new: Vec<&Recorded> = log.iter().skip(BEFORE).collect();
    let last = log.last().ok_or("no event")?.seq;
    let mut late = Vec::new();
    for (n, window) in open.iter().enumerate() {
        browser.switch(window).await?;
        let shown = browser.until(&format!("'s-{last}' in seen")).await;
        shown.map_err(|_| format!("window {n} does not show event {last}"))?;
        if browser.run("return document.hidden").await? == Value::Bool(true) {
            return Err(format!("window {n} is hidden and cannot be seen").into());
        }
        let seen = browser.run("return seen").await?;
        for entry in &new {
            let at = seen.get(format!("s-{}", entry.seq)).and_then(Value::as_i64);
            let at = at.ok_or_else(|| format!("window {n} never showed event {}", entry.seq))?;
            late.push(at - entry.at.as_millisecond());
        }
        // Its stream and its requests would disturb what is measured next.
        browser.open("about:blank").await?;
    }
    Ok((Late::of(stream.await??), Late::of(late)))
}

/// How late each new event comes on the stream of the investigation.
async fn arrivals(base: String, key: String, id: InvestigationId) -> Result<Vec<i64>> {
    let ask = Client::new().get(format!("{base}/api/v1/investigations/{id}/events?from={}", BEFORE + 1));
    let answer = ask.bearer_auth(key).header("accept", "text/event-stream").send().await?.error_for_status()?;
    let (mut chunks, mut text, mut late) = (answer.bytes_stream(), String::new(), Vec::new());
    while late.len() < EVENTS {
        let chunk = chunks.next().await.ok_or("the stream ended")??;
        let now = now()?.as_millisecond();
        text.push_str(&String::from_utf8_lossy(&chunk));
        while let Some((event, rest)) = text.split_once("\n\n") {
            if let Some(json) = event.lines().find_map(|line| line.strip_prefix("data: ")) {
                let entry: Recorded = serde_json::from_str(json)?;
                late.push(now - entry.at.as_millisecond());
            }
            text = rest.to_owned();
        }
    }
    Ok(late)
}
