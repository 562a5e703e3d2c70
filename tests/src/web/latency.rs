//! How long after it was recorded an event is visible in several tabs of a browser.

use std::time::Duration;

use casebook_protocol::{InvestigationId, Recorded};
use serde_json::Value;

use super::live::Growing;
use crate::Result;
use crate::browser::Browser;

/// Events that are there when the tabs open, and those that come while they are open.
const BEFORE: usize = 60;
const EVENTS: usize = 150;
/// Remembers when each event came into the page.
const WATCH: &str = "
window.seen = {};
const look = (at) => document.querySelectorAll('li[id^=s-]').forEach((one) => { if (!(one.id in seen)) seen[one.id] = at; });
look(0);
new MutationObserver(() => look(Date.now())).observe(document.body, { subtree: true, childList: true });
return document.getElementById('live').dataset.state";

/// # Errors
/// An event that is not shown in a tab.
pub async fn check(browser: &Browser, tabs: usize) -> Result<String> {
    let growing = Growing::new().await?;
    let (base, key, _server) = growing.apart()?;
    let apart = measured(browser, &growing, (&base, &key), "apart", tabs).await?;
    let (base, key) = growing.here().await?;
    let here = measured(browser, &growing, (&base, &key), "here", tabs).await?;
    Ok(format!("recorded by another process: {apart}\nrecorded by the process that serves: {here}"))
}

async fn measured(
    browser: &Browser,
    growing: &Growing,
    (base, key): (&str, &str),
    name: &str,
    tabs: usize,
) -> Result<String> {
    let id = InvestigationId::new(format!("{name}-0000-4000-8000-000000000000"))?;
    let mut log = growing.begin(&id, BEFORE).await?;
    let mut open = Vec::new();
    for _ in 0..tabs {
        open.push(browser.tab().await?);
        browser.open(&format!("{base}/i/{id}?tab=events&k={key}")).await?;
        browser.until("document.getElementById('live').dataset.state === 'live'").await?;
        browser.run(WATCH).await?;
    }
    // A pause from 40 to 440 ms, so that events come alone and in groups.
    let pause = |n: usize| Duration::from_millis(40 + (n as u64 * 7_919) % 401);
    growing.go_on(&mut log, BEFORE + EVENTS, pause).await?;
    let new: Vec<&Recorded> = log.iter().skip(BEFORE).collect();
    let last = log.last().ok_or("no event")?.seq;
    let mut late = Vec::new();
    let mut hidden = Vec::new();
    for (n, tab) in open.iter().enumerate() {
        browser.switch(tab).await?;
        browser
            .until(&format!("'s-{last}' in seen"))
            .await
            .map_err(|_| format!("tab {n} does not show event {last}"))?;
        hidden.push(browser.run("return document.hidden").await? == Value::Bool(true));
        let seen = browser.run("return seen").await?;
        for entry in &new {
            let at = seen.get(format!("s-{}", entry.seq)).and_then(Value::as_i64);
            let at = at.ok_or_else(|| format!("tab {n} never showed event {}", entry.seq))?;
            late.push(at - entry.at.as_millisecond());
        }
    }
    late.sort_unstable();
    let part = |share: usize| late.get(late.len() * share / 100).copied().unwrap_or(0);
    Ok(format!(
        "{EVENTS} events in {tabs} tabs: p50 {} ms, p95 {} ms, p99 {} ms, at most {} ms",
        part(50),
        part(95),
        part(99),
        late.last().unwrap_or(&0)
    ))
}
