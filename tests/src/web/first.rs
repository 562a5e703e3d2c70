//! One command opens the dashboard: an alert is pasted into the page, and its verdict is shown.

use std::time::Instant;

use serde_json::Value;

use super::Server;
use crate::browser::Browser;
use crate::{Result, run};

/// # Errors
/// No verdict is shown.
pub async fn check(browser: &Browser) -> Result<String> {
    let data = tempfile::tempdir()?;
    let evidence = run::demo().join("evidence");
    let alert = std::fs::read_to_string(run::demo().join("alert.json"))?;
    let begun = Instant::now();
    let server = Server::serve(data.path(), &["--evidence", evidence.to_str().ok_or("the path is not text")?])?;
    let served = begun.elapsed();
    browser.open(&format!("{}/?k={}", server.base, server.key)).await?;
    browser.until("document.querySelector('.empty')").await?;
    browser.open(&format!("{}/launch", server.base)).await?;
    let sent = format!(
        "document.getElementById('alert').value = {}; document.querySelector('main form button.main').click()",
        Value::from(alert)
    );
    browser.run(&sent).await?;
    browser.until("document.querySelector('#hero .verdict')").await?;
    let shown = begun.elapsed();
    let verdict = "document.querySelector('#hero .verdict')?.textContent";
    browser
        .until(&format!("{verdict} !== 'No verdict yet' && document.getElementById('live').textContent === 'complete'"))
        .await?;
    let said = browser.run(&format!("return {verdict}")).await?;
    let seconds = |time: std::time::Duration| format!("{:.1} s", time.as_secs_f64());
    Ok(format!(
        "{} after {}; the server listened after {}, the case was seen after {}",
        said.as_str().unwrap_or_default(),
        seconds(begun.elapsed()),
        seconds(served),
        seconds(shown),
    ))
}
