//! How long after it was recorded an event leaves the server, and is visible in windows and tabs of a browser.

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
/// A new tab asks the one with the stream for its state. Without an answer it waits up to ten seconds for the next beat.
const ASKED: Duration = Duration::from_secs(5);
/// Remembers when each event came into the page, and when the page came to the front.
const WATCH: &str = "
window.seen = {};
document.addEventListener('visibilitychange', () => { if (!document.hidden) window.front = Date.now(); });
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

#[derive(Clone, Copy)]
enum Shown {
    /// No browser: only the stream.
    Nowhere,
    /// So many windows, all of them visible.
    Windows(usize),
    /// So many tabs, of which the last is visible.
    Tabs(usize),
}

impl Shown {
    fn say(self) -> String {
        match self {
            Self::Nowhere => "no browser".to_owned(),
            Self::Windows(many) => words::count(many as u64, "window"),
            Self::Tabs(many) => words::count(many as u64, "tab"),
        }
    }
}

/// # Errors
/// An event that is not shown in a window, or a goal that is missed.
pub async fn check(browser: &Browser, tabs: usize) -> Result<String> {
    let growing = Growing::new().await?;
    let (base, key, _server) = growing.apart()?;
    let apart = Place { base: &base, key: &key, name: "another process", goal: APART };
    let (mut lines, mut missed) = measured(browser, &growing, apart, tabs).await?;
    let (base, key) = growing.here().await?;
    let here = Place { base: &base, key: &key, name: "the serving process", goal: HERE };
    let (more, also) = measured(browser, &growing, here, tabs).await?;
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
    tabs: usize,
) -> Result<(Vec<String>, Vec<String>)> {
    let (mut lines, mut missed) = (vec![format!("{EVENTS} events, recorded by {}", place.name)], Vec::new());
    for shown in [Shown::Nowhere, Shown::Windows(1), Shown::Tabs(tabs), Shown::Windows(tabs)] {
        let beside = shown.say();
        let late = visible(browser, growing, place, shown).await?;
        lines.push(format!("  {beside}: on the stream {}", late.served.say()));
        for (what, late) in [("visible", late.seen), ("brought to the front", late.behind)] {
            let Some(late) = late else { continue };
            lines.push(format!("  {beside}: {what} {}", late.say()));
            if late.part(95) > place.goal {
                missed.push(format!(
                    "{beside}, {}: {what} {} ms, the goal is {}",
                    place.name,
                    late.part(95),
                    place.goal
                ));
            }
        }
    }
    Ok((lines, missed))
}

struct Lates {
    /// From recording an event to its place on the stream.
    served: Late,
    /// From recording an event to seeing it in a visible window.
    seen: Option<Late>,
    /// From bringing a hidden tab to the front to seeing the last event in it.
    behind: Option<Late>,
}

async fn visible(browser: &Browser, growing: &Growing, place: Place<'_>, shown: Shown) -> Result<Lates> {
    let Place { base, key, name, .. } = place;
    let id = InvestigationId::new(format!("{name} {}", shown.say()).replace(' ', "-"))?;
    let mut log = growing.begin(&id, BEFORE).await?;
    let mut open = Vec::new();
    let many = match shown {
        Shown::Nowhere => 0,
        Shown::Windows(many) | Shown::Tabs(many) => many,
    };
    let hidden = |n: usize| matches!(shown, Shown::Tabs(_)) && n + 1 < many;
    for n in 0..many {
        open.push(browser.window().await?);
        browser.open(&format!("{base}/i/{id}?tab=events&k={key}")).await?;
        browser.within(ASKED, "document.getElementById('live').dataset.state === 'live'").await?;
        browser.run(WATCH).await?;
        if hidden(n) {
            browser.hide().await?;
        }
    }
    let stream = tokio::spawn(arrivals(base.to_owned(), key.to_owned(), id.clone()));
    // A pause from 40 to 440 ms, so that events come alone and in groups.
    let pause = |n: usize| Duration::from_millis(40 + (n as u64 * 7_919) % 401);
    growing.go_on(&mut log, BEFORE + EVENTS, pause).await?;
    let new: Vec<&Recorded> = log.iter().skip(BEFORE).collect();
    let last = log.last().ok_or("no event")?.seq;
    let (mut seen, mut behind) = (Vec::new(), Vec::new());
    // The last tab is in front.
    for (n, window) in open.iter().enumerate().rev() {
        browser.switch(window).await?;
        let hidden = hidden(n);
        if browser.run("return document.hidden").await? != Value::Bool(hidden) {
            return Err(
                format!("{}: number {n} should{} be hidden", shown.say(), if hidden { "" } else { " not" }).into()
            );
        }
        if hidden {
            browser.show().await?;
        }
        let came = browser.until(&format!("'s-{last}' in seen")).await;
        came.map_err(|_| format!("{}: number {n} does not show event {last}", shown.say()))?;
        let times = browser.run("return { ...seen, front: window.front }").await?;
        let at = |name: &str| times.get(name).and_then(Value::as_i64);
        if hidden {
            let (came, front) = (at(&format!("s-{last}")), at("front"));
            behind.push(came.zip(front).map(|(came, front)| came - front).ok_or("the tab never came to the front")?);
        } else {
            for entry in &new {
                let at = at(&format!("s-{}", entry.seq));
                let at = at.ok_or_else(|| format!("{}: number {n} never showed event {}", shown.say(), entry.seq))?;
                seen.push(at - entry.at.as_millisecond());
            }
        }
        // Its stream and its requests would disturb what is measured next.
        browser.open("about:blank").await?;
    }
    let late = |all: Vec<i64>| (!all.is_empty()).then(|| Late::of(all));
    Ok(Lates { served: Late::of(stream.await??), seen: late(seen), behind: late(behind) })
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
