//! Accessibility: rules that axe-core checks, and every action with the keyboard alone.

use std::time::Duration;

use serde_json::{Value, json};

use super::stage::{Stage, verdict};
use crate::browser::Browser;
use crate::{Result, run, thirdparty};

/// Counts what the policy refused, from the first script on.
pub const WATCH: &str = "window.refused = []; addEventListener('securitypolicyviolation', (e) => refused.push(e.violatedDirective + ' ' + e.sourceFile + ':' + e.lineNumber));";
const TAB: &str = "\u{E004}";
const ENTER: &str = "\u{E007}";
const SPACE: &str = " ";
const BACKSPACE: &str = "\u{E003}";
const DELETE: &str = "\u{E017}";
const LEFT: &str = "\u{E012}";

/// # Errors
/// What breaks a rule, with the page, theme and width.
pub async fn axe(browser: &Browser, stage: &Stage, id: &str) -> Result<String> {
    let programs = thirdparty::npm(&["axe-core@4.11.0"], 18).ok_or("axe-core needs npm")?;
    let axe = std::fs::read_to_string(programs.with_file_name("axe-core").join("axe.min.js"))?;
    let pages = stage.pages(id).await?;
    browser.devtools("Page.addScriptToEvaluateOnNewDocument", json!({"source": WATCH})).await?;
    let mut wrong = Vec::new();
    for page in &pages {
        for (theme, width) in [("light", 1280), ("dark", 1280), ("light", 320), ("dark", 320)] {
            browser.width(width).await?;
            browser.open(&stage.at(page)).await?;
            let set = format!(
                "document.documentElement.dataset.theme = '{theme}'; return document.documentElement.scrollWidth"
            );
            let wide = browser.run(&set).await?.as_u64().unwrap_or(u64::MAX);
            if wide > u64::from(width) {
                wrong.push(format!("{page} at {width}: {wide} wide"));
            }
            browser.run(&format!("{axe}; window.axe = axe;")).await?;
            let check = "return axe.run({runOnly: ['wcag2a', 'wcag2aa', 'wcag21aa', 'wcag22aa', 'best-practice']}).then((r) => r.violations.map((v) => v.id + ': ' + v.nodes.slice(0, 3).map((n) => n.html.slice(0, 160)).join(' | ')))";
            for (what, found) in
                [("axe", browser.run(check).await?), ("policy", browser.run("return window.refused").await?)]
            {
                let found = found.as_array().cloned().unwrap_or_else(|| vec![json!("no answer")]);
                wrong.extend(found.iter().map(|one| format!("{page} {theme} {width}: {what}: {one}")));
            }
        }
    }
    browser.devtools("Emulation.clearDeviceMetricsOverride", json!({})).await?;
    verdict(&wrong, format!("{} pages in 2 themes and 2 widths", pages.len()))
}

/// What a person can act on, in the order of the page. Of a group of radio buttons one is in the order.
const STOPS: &str = "
const all = [...document.querySelectorAll('a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex=\"0\"]')];
// By name, since a live page replaces its parts.
window.named = (one) => [one.tagName, one.id, one.getAttribute('href'), one.name, one.value, one.textContent.slice(0, 40)].join(' ');
window.stops = all.filter((one) => one.checkVisibility() && !one.disabled && (one.type !== 'radio' || one.checked)).map(named);
window.visited = new Set();
window.unseen = [];
addEventListener('focusin', (event) => {
  visited.add(named(event.target));
  const style = getComputedStyle(event.target);
  const shown = style.outlineStyle !== 'none' || style.boxShadow !== 'none';
  if (!event.target.matches(':focus-visible') || !shown) unseen.push(event.target.outerHTML.slice(0, 120));
});
document.activeElement.blur();
return stops.length";

/// Walks through a page with the tabulator; what cannot be reached, and what does not show that it is reached.
async fn walk(browser: &Browser, page: &str) -> Result<(u64, Vec<String>)> {
    let stops = browser.run(STOPS).await?.as_u64().unwrap_or(0);
    let mut left = stops + 2;
    while left > 0 {
        let now = left.min(100);
        browser.keys(&vec![TAB; usize::try_from(now)?]).await?;
        left -= now;
    }
    let missed = browser.run("return [...stops.filter((one) => !visited.has(one)).map((one) => 'not reached: ' + one), ...unseen.map((one) => 'focus not shown: ' + one)]").await?;
    let missed = missed.as_array().cloned().unwrap_or_default();
    Ok((stops, missed.iter().map(|one| format!("{page}: {one}")).collect()))
}

/// What is pressed on a page after the focus is where `focus` says, and what is true then.
struct Act {
    page: String,
    focus: &'static str,
    keys: Vec<String>,
    then: String,
}

fn act(page: &str, focus: &'static str, keys: &[&str], then: &str) -> Act {
    let keys = keys.iter().map(|key| (*key).to_owned()).collect();
    Act { page: page.to_owned(), focus, keys, then: then.to_owned() }
}

fn letters(text: &str) -> Vec<String> {
    text.chars().map(|c| c.to_string()).collect()
}

fn acts(id: &str, alert: &str) -> Vec<Act> {
    let case = format!("/i/{id}");
    let past = format!("{case}?at=300");
    let mut launch = act("/launch", "#alert", &[], "location.pathname.startsWith('/i/')");
    // The text, the file, the evidence, the button.
    launch.keys = [letters(alert), vec![TAB.to_owned(); 3], vec![ENTER.to_owned()]].concat();
    let mut zone =
        act("/settings", "#zone-name", &[], "document.querySelector('.foot').textContent.includes('Asia/Tokyo')");
    let cleared = [BACKSPACE, DELETE].map(|key| vec![key.to_owned(); 20]).concat();
    zone.keys = [cleared, letters("Asia/Tokyo"), vec![ENTER.to_owned()]].concat();
    vec![
        act("/", "", &[TAB, ENTER], "location.hash === '#main'"),
        act("/", "", &["j", ENTER], "location.pathname.startsWith('/i/')"),
        act(&case, "", &["u"], "location.pathname === '/'"),
        act("/", "", &["/", "a", "b", "s", ENTER], "location.search.includes('q=abs')"),
        act("/", "select[name=status]", &["C"], "document.querySelector('select[name=status]').value === 'closed'"),
        act("/", ".foot button[value=dark]", &[ENTER], "document.documentElement.dataset.theme === 'dark'"),
        act("/", ".foot button[value=system]", &[SPACE], "document.documentElement.dataset.theme === 'system'"),
        act("/", "", &["g", "h"], "location.pathname === '/insights'"),
        act(&case, "", &["2"], "document.querySelector('.tabs [aria-current]').textContent.startsWith('Findings')"),
        act(&past, "", &["["], "location.search.includes('at=299')"),
        act(&past, "", &["]"], "location.search.includes('at=301')"),
        act(&past, "", &["{"], "!location.search.includes('at=300') && location.search.includes('at=')"),
        act(&past, "#slide", &[LEFT], "location.search.includes('at=299')"),
        act(
            &past,
            "",
            &[SPACE],
            "!location.search.includes('at=300') && document.getElementById('play').textContent.includes('Stop')",
        ),
        act(
            &format!("{case}?at=1"),
            "#play",
            &[ENTER],
            "location.search !== '?at=1' && document.getElementById('play').textContent.includes('Stop')",
        ),
        act(&case, "main details > summary", &[ENTER], "document.querySelector('main details').open"),
        act(&format!("{case}?tab=findings"), ".cite a", &[ENTER], "location.pathname.includes('/c/')"),
        zone,
        launch,
    ]
}

/// Does an act. The inner error says what did not come true.
async fn press(browser: &Browser, stage: &Stage, one: &Act) -> Result<std::result::Result<(), String>> {
    browser.open(&stage.at(&one.page)).await?;
    if !one.focus.is_empty() {
        browser.run(&format!("document.querySelector({:?}).focus()", one.focus)).await?;
    }
    let keys: Vec<&str> = one.keys.iter().map(String::as_str).collect();
    browser.keys(&keys).await?;
    let Err(error) = browser.within(Duration::from_secs(20), &one.then).await else { return Ok(Ok(())) };
    let here = browser.run("return [location.pathname + location.search, document.activeElement.outerHTML.slice(0, 80), document.hasFocus(), document.readyState]").await?;
    let first: Vec<_> = keys.iter().take(6).collect();
    Ok(Err(format!("{} {} {first:?}: {error}, at {here}", one.page, one.focus)))
}

/// # Errors
/// What cannot be done with the keyboard alone.
pub async fn keyboard(browser: &Browser, stage: &Stage, id: &str) -> Result<String> {
    let pages = stage.pages(id).await?;
    let (mut wrong, mut stops) = (Vec::new(), 0);
    for page in &pages {
        browser.open(&stage.at(page)).await?;
        let (there, missed) = walk(browser, page).await?;
        stops += there;
        wrong.extend(missed);
    }
    let alert = std::fs::read_to_string(run::demo().join("alert.json"))?;
    let alert: Value = serde_json::from_str(&alert)?;
    let acts = acts(id, &alert.to_string());
    for one in &acts {
        wrong.extend(press(browser, stage, one).await?.err());
        browser.run("sessionStorage.clear()").await?;
    }
    verdict(&wrong, format!("{stops} stops on {} pages, {} actions", pages.len(), acts.len()))
}
