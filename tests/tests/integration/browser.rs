//! The pages in a real Chromium. Without `chromedriver` these tests fail, unless `CASEBOOK_NO_BROWSER=1`.

use std::path::Path;
use std::time::Duration;

use casebook_tests::browser::Browser;
use casebook_tests::thirdparty;
use casebook_tests::web::Server;
use serde_json::Value;

struct Demo {
    server: Server,
    data: tempfile::TempDir,
}

fn demo() -> Demo {
    let data = tempfile::tempdir().unwrap();
    Demo { server: Server::demo(data.path()).unwrap(), data }
}

impl Demo {
    fn at(&self, path: &str) -> String {
        format!("{}{path}{}k={}", self.server.base, if path.contains('?') { '&' } else { '?' }, self.server.key)
    }

    async fn api(&self, path: &str) -> Value {
        let client = reqwest::Client::builder().timeout(Duration::from_secs(30)).build().unwrap();
        let request = client.get(format!("{}/api/v1{path}", self.server.base)).bearer_auth(&self.server.key);
        let answer = request.send().await.unwrap();
        serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap()
    }

    /// The id of the demo's investigation, when it is opened, or when it is closed.
    async fn case(&self, closed: bool) -> String {
        for _ in 0..1_800 {
            let list = self.api("/investigations").await;
            let first = &list["items"][0];
            if first["id"].is_string() && (!closed || first["closed"].is_string()) {
                return first["id"].as_str().unwrap().to_owned();
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("the demo does not end");
    }
}

/// Counts what the policy refused, from the first script on.
const WATCH: &str = "window.refused = []; addEventListener('securitypolicyviolation', (e) => refused.push(e.violatedDirective + ' ' + e.sourceFile + ':' + e.lineNumber));";

#[tokio::test(flavor = "multi_thread")]
async fn a_case_is_seen_live_and_leads_to_the_log_line() {
    let Some(browser) = Browser::start().await.unwrap() else { return };
    let server = demo();
    browser.devtools("Page.addScriptToEvaluateOnNewDocument", serde_json::json!({"source": WATCH})).await.unwrap();
    browser.open(&server.at("/")).await.unwrap();
    let id = server.case(false).await;
    browser.until("document.querySelector('#cases .case')").await.unwrap();
    browser.open(&server.at(&format!("/i/{id}"))).await.unwrap();
    // The mark is lost if the page is loaded again.
    browser.run("window.same = true").await.unwrap();
    let first = browser.run("return document.querySelector('#hero .verdict').textContent").await.unwrap();
    assert_eq!(first, "No verdict yet", "the demo ended before the page was there");
    browser.until("document.getElementById('live').dataset.state === 'live'").await.unwrap();
    browser.until("document.querySelector('#hero .verdict').textContent === 'False positive'").await.unwrap();
    assert_eq!(browser.run("return window.same === true").await.unwrap(), true, "the page was loaded again");
    browser.until("document.getElementById('live').textContent === 'complete'").await.unwrap();
    let events = browser.run("return document.querySelectorAll('#tab .events .what').length").await.unwrap();
    let report = server.api(&format!("/investigations/{id}/report.json")).await;
    assert_eq!(events, report["timeline"]["events"].as_array().unwrap().len());
    // One click from the verdict to the record.
    browser.run("document.querySelector('#tab .events .why a.mono').click()").await.unwrap();
    browser.until("document.querySelector('.rows mark')").await.unwrap();
    let quote = browser.run("return document.querySelector('.rows mark').textContent").await.unwrap();
    assert!(in_the_evidence(server.data.path(), quote.as_str().unwrap()), "{quote} is in no log");
    let holds = browser.run("return document.body.textContent.includes('Quote holds')").await.unwrap();
    assert_eq!(holds, true);
    assert_eq!(browser.run("return window.refused").await.unwrap(), serde_json::json!([]));
}

fn in_the_evidence(data: &Path, quote: &str) -> bool {
    let files = std::fs::read_dir(data.join("demo/evidence")).unwrap();
    files.map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap()).any(|text| text.contains(quote))
}

#[tokio::test(flavor = "multi_thread")]
async fn no_page_breaks_a_rule_of_accessibility() {
    let Some(browser) = Browser::start().await.unwrap() else { return };
    let server = demo();
    let Some(programs) = thirdparty::npm(&["axe-core@4.11.0"], 18) else { panic!("axe-core needs npm") };
    let axe = std::fs::read_to_string(programs.parent().unwrap().join("axe-core/axe.min.js")).unwrap();
    let id = server.case(true).await;
    let call = server.api(&format!("/investigations/{id}/findings?limit=1")).await;
    let found = call["items"][0]["finding"]["id"].as_str().unwrap().to_owned();
    let kind = call["items"][0]["citations"][0]["citation"].as_object().unwrap().values().next().unwrap();
    let call = kind["call"].as_str().unwrap();
    let mut pages: Vec<String> =
        ["/", "/launch", "/compare", "/insights", "/settings", "/problems/host"].map(str::to_owned).into();
    for tab in [
        "timeline",
        "findings",
        "journal",
        "review",
        "rounds",
        "tasks",
        "events&group=review",
        "evidence",
        "channels&at=300",
    ] {
        pages.push(format!("/i/{id}?tab={tab}"));
    }
    pages.push(format!("/i/{id}/t/r1.investigate.network"));
    pages.push(format!("/i/{id}/c/{call}?cite={found}.1"));
    pages.push(format!("/evidence?id={id}&q=sudo"));
    browser.devtools("Page.addScriptToEvaluateOnNewDocument", serde_json::json!({"source": WATCH})).await.unwrap();
    let mut wrong = Vec::new();
    for page in &pages {
        for (theme, width) in [("light", 1280), ("dark", 1280), ("light", 320), ("dark", 320)] {
            browser.width(width).await.unwrap();
            browser.open(&server.at(page)).await.unwrap();
            let set = format!(
                "document.documentElement.dataset.theme = '{theme}'; return document.documentElement.scrollWidth"
            );
            let wide = browser.run(&set).await.unwrap().as_u64().unwrap();
            if wide > u64::from(width) {
                wrong.push(format!("{page} at {width}: {wide} wide"));
            }
            browser.run(&format!("{axe}; window.axe = axe;")).await.unwrap();
            let check = "return axe.run({runOnly: ['wcag2a', 'wcag2aa', 'wcag21aa', 'wcag22aa', 'best-practice']}).then((r) => r.violations.map((v) => v.id + ': ' + v.nodes.slice(0, 3).map((n) => n.html.slice(0, 160)).join(' | ')))";
            for violation in browser.run(check).await.unwrap().as_array().unwrap() {
                wrong.push(format!("{page} {theme} {width}: {violation}"));
            }
            for refused in browser.run("return window.refused").await.unwrap().as_array().unwrap() {
                wrong.push(format!("{page}: the policy refused {refused}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_and_replay_work_in_the_page() {
    let Some(browser) = Browser::start().await.unwrap() else { return };
    let server = demo();
    let id = server.case(true).await;
    browser.open(&server.at("/")).await.unwrap();
    browser.press("j").await.unwrap();
    browser.until("document.activeElement.classList.contains('case')").await.unwrap();
    browser.press("/").await.unwrap();
    browser.until("document.activeElement.name === 'q'").await.unwrap();
    browser.open(&server.at(&format!("/i/{id}?at=300"))).await.unwrap();
    browser.press("[").await.unwrap();
    browser.until("location.search === '?at=299'").await.unwrap();
    browser.press("2").await.unwrap();
    browser.until("document.querySelector('.tabs [aria-current]').textContent.startsWith('Timeline')").await.unwrap();
    // The theme is a form, and stays.
    browser.run("document.querySelector('button[value=dark]').click()").await.unwrap();
    browser.until("document.documentElement.dataset.theme === 'dark'").await.unwrap();
    let state = browser.run("return document.getElementById('scrub').dataset.last").await.unwrap();
    let log = server.api(&format!("/investigations/{id}")).await;
    assert_eq!(state, log["seq"].to_string());
}
