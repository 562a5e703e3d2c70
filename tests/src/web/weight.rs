//! What a first visit of each page transfers, counted by the browser.

use serde_json::json;

use super::stage::{Stage, verdict};
use crate::Result;
use crate::browser::Browser;

/// Bytes of a first visit: everything, compressed.
const VISIT: u64 = 150_000;
/// Bytes of a script or a style, compressed.
const FILE: u64 = 15_000;
/// Bytes of a page as it is read.
const PAGE: u64 = 300_000;
const COUNT: &str = "
const all = [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')];
return all.filter((one) => !one.name.includes('/api/')).map((one) => [new URL(one.name).pathname, one.transferSize, one.decodedBodySize])";

/// # Errors
/// A page whose first visit is too heavy.
pub async fn check(browser: &Browser, stage: &Stage, id: &str) -> Result<String> {
    let (mut wrong, mut lines) = (Vec::new(), Vec::new());
    browser.open(&stage.at("/problems/host")).await?;
    for page in stage.pages(id).await? {
        browser.devtools("Network.clearBrowserCache", json!({})).await?;
        // Signed in by now: without a redirect.
        browser.open(&format!("{}{page}", stage.server.base)).await?;
        browser.until("document.readyState === 'complete'").await?;
        let parts: Vec<(String, u64, u64)> = serde_json::from_value(browser.run(COUNT).await?)?;
        let sum: u64 = parts.iter().map(|part| part.1).sum();
        let raw = parts.first().map_or(0, |part| part.2);
        lines.push(format!("{:>7} B  {raw:>7} B as read  {page}", sum));
        if sum > VISIT || raw > PAGE || parts.len() < 3 {
            wrong.push(format!("{page}: {sum} bytes, {raw} as read, {} parts", parts.len()));
        }
        let heavy = parts.iter().filter(|part| part.0.starts_with("/static/") && part.1 > FILE);
        wrong.extend(heavy.map(|part| format!("{page}: {} has {} bytes", part.0, part.1)));
        wrong.extend(
            parts.iter().filter(|part| part.1 == 0).map(|part| format!("{page}: {} was not transferred", part.0)),
        );
    }
    verdict(&wrong, lines.join("\n"))
}
