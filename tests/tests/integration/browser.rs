//! The pages in a real Chromium. Without `chromedriver` these tests fail, unless `CASEBOOK_NO_BROWSER=1`.

use std::path::Path;

use casebook_tests::browser::Browser;
use casebook_tests::web::stage::Stage;
use casebook_tests::web::{access, evidence, noscript, questions};

#[tokio::test(flavor = "multi_thread")]
async fn a_case_is_seen_live_and_leads_to_the_log_line() {
    let Some(browser) = Browser::start().await.unwrap() else { return };
    let stage = Stage::demo().unwrap();
    browser
        .devtools("Page.addScriptToEvaluateOnNewDocument", serde_json::json!({"source": access::WATCH}))
        .await
        .unwrap();
    browser.open(&stage.at("/")).await.unwrap();
    let id = stage.case(false).await.unwrap();
    browser.until("document.querySelector('#cases .case')").await.unwrap();
    browser.open(&stage.at(&format!("/i/{id}"))).await.unwrap();
    // The mark is lost if the page is loaded again.
    browser.run("window.same = true").await.unwrap();
    let first = browser.run("return document.querySelector('#hero .verdict').textContent").await.unwrap();
    assert_eq!(first, "No verdict yet", "the demo ended before the page was there");
    browser.until("document.getElementById('live').dataset.state === 'live'").await.unwrap();
    browser.until("document.querySelector('#hero .verdict').textContent === 'False positive'").await.unwrap();
    assert_eq!(browser.run("return window.same === true").await.unwrap(), true, "the page was loaded again");
    browser.until("document.getElementById('live').textContent === 'complete'").await.unwrap();
    let events = browser.run("return document.querySelectorAll('#tab .events .what').length").await.unwrap();
    let report = stage.api(&format!("/investigations/{id}/report.json")).await.unwrap();
    assert_eq!(events, report["timeline"]["events"].as_array().unwrap().len());
    // One click from the verdict to the record.
    browser.run("document.querySelector('#tab .events .why a.mono').click()").await.unwrap();
    browser.until("document.querySelector('.rows mark')").await.unwrap();
    let quote = browser.run("return document.querySelector('.rows mark').textContent").await.unwrap();
    assert!(in_the_evidence(stage.data.path(), quote.as_str().unwrap()), "{quote} is in no log");
    let holds = browser.run("return document.body.textContent.includes('Quote holds')").await.unwrap();
    assert_eq!(holds, true);
    assert_eq!(browser.run("return window.refused").await.unwrap(), serde_json::json!([]));
}

fn in_the_evidence(data: &Path, quote: &str) -> bool {
    let files = std::fs::read_dir(data.join("demo/evidence")).unwrap();
    files.map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap()).any(|text| text.contains(quote))
}

#[tokio::test(flavor = "multi_thread")]
async fn every_citation_leads_to_its_log_line() {
    let Some(browser) = Browser::start().await.unwrap() else { return };
    let (stage, id) = Stage::closed().await.unwrap();
    println!("{}", evidence::check(&browser, &stage, &id).await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_read_and_forms_send_without_a_script() {
    let Some(browser) = Browser::start().await.unwrap() else { return };
    let (stage, id) = Stage::closed().await.unwrap();
    println!("{}", noscript::check(&browser, &stage, &id).await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn no_page_breaks_a_rule_of_accessibility() {
    let Some(browser) = Browser::start().await.unwrap() else { return };
    let (stage, id) = Stage::closed().await.unwrap();
    println!("{}", access::axe(&browser, &stage, &id).await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_can_be_done_with_the_keyboard() {
    let Some(browser) = Browser::start().await.unwrap() else { return };
    let (stage, id) = Stage::closed().await.unwrap();
    println!("{}", access::keyboard(&browser, &stage, &id).await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_answer_to_each_question_is_seen_without_scrolling() {
    let Some(browser) = Browser::start().await.unwrap() else { return };
    println!("{}", questions::check(&browser).await.unwrap());
}
