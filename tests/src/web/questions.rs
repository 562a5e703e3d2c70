//! The questions that a page answers at a glance: the answer stands in the first 800 pixels of its page, and is found
//! by role and name as a screen reader finds it.

use std::time::{Duration, SystemTime};

use casebook_hub::SqliteStore;
use casebook_protocol::{Event, InvestigationId, Recorded, Timestamp};
use casebook_runtime::store::Store;
use serde_json::{Value, json};

use super::stage::{Stage, renamed, verdict};
use crate::Result;
use crate::browser::Browser;

/// The height of the part of a page that is seen without scrolling.
const FOLD: f64 = 800.0;
/// How often a page is looked at again.
const LOOKS: usize = 4;

/// A question, the page that answers it, and the parts of the answer: a role and a part of the name each.
struct Question {
    asks: &'static str,
    page: String,
    answer: &'static [(&'static str, &'static str)],
}

/// About the closed case of the demo.
fn closed(id: &str, citation: &str) -> Vec<Question> {
    vec![
        Question {
            asks: "4 what does it say, how sure, and why",
            page: format!("/i/{id}"),
            answer: &[
                ("region", "Answer"),
                ("StaticText", "False positive"),
                ("StaticText", "Coherence of the story"),
                ("StaticText", "Rests on"),
            ],
        },
        Question {
            asks: "5 what do I do first",
            page: format!("/i/{id}"),
            answer: &[("heading", "Do first"), ("listitem", "")],
        },
        Question {
            asks: "6 what is missing",
            page: format!("/i/{id}"),
            answer: &[("StaticText", "Gaps"), ("StaticText", "Blind spots"), ("StaticText", "Rules changed")],
        },
        Question {
            asks: "8 which log line says so, and does the quote hold",
            page: citation.to_owned(),
            answer: &[("region", "Citation"), ("StaticText", "Quote holds"), ("region", "In the log"), ("mark", "")],
        },
        Question {
            asks: "9 what did the team know at that moment, and what changed since",
            page: format!("/i/{id}?at=300"),
            answer: &[
                ("StaticText", "You are viewing the past"),
                ("region", "Changed since"),
                ("region", "Journal"),
                ("region", "Review"),
                ("region", "Timeline"),
            ],
        },
        Question {
            asks: "10 who is wrong how often",
            page: "/insights".to_owned(),
            answer: &[("heading", "Credibility of findings"), ("heading", "Rules that changed proposals")],
        },
    ]
}

/// The page of what the verdict rests on first.
async fn cited(stage: &Stage, id: &str) -> Result<String> {
    let report = stage.api(&format!("/investigations/{id}/report.json")).await?;
    let finding = report.pointer("/rests_on/0").and_then(Value::as_str).ok_or("the verdict rests on nothing")?;
    let mut findings = report.get("findings").and_then(Value::as_array).into_iter().flatten();
    let found = findings.find(|one| one.pointer("/finding/id").and_then(Value::as_str) == Some(finding));
    let call = found.and_then(|one| one.pointer("/citations/0/citation/literal/call")?.as_str()).ok_or("no quote")?;
    Ok(format!("/i/{id}/c/{call}?cite={finding}.1"))
}

/// About open and older cases.
fn open(id: &str) -> Vec<Question> {
    vec![
        Question {
            asks: "1 what needs me now",
            page: "/".to_owned(),
            answer: &[("link", "1 Inconclusive: needs a person"), ("link", "True positive")],
        },
        Question {
            asks: "2 what is stuck, and since when",
            page: "/".to_owned(),
            answer: &[("link", "1 Stuck or not intact"), ("StaticText", "No event for ")],
        },
        Question {
            asks: "3 what did the night bring",
            page: "/".to_owned(),
            answer: &[("link", "2 Benign or false"), ("region", "Cases by day"), ("StaticText", "By severity")],
        },
        Question {
            asks: "7 what is it doing at this moment, and what did it cost",
            page: format!("/i/{id}"),
            answer: &[("region", "Now"), ("link", "Investigate"), ("StaticText", "tool calls")],
        },
    ]
}

struct Tree(Vec<Value>);

impl Tree {
    async fn of(browser: &Browser) -> Result<Self> {
        browser.devtools("Accessibility.enable", json!({})).await?;
        let mut tree = browser.devtools("Accessibility.getFullAXTree", json!({})).await?;
        Ok(Self(serde_json::from_value(tree.get_mut("nodes").map(Value::take).unwrap_or_default())?))
    }

    /// The distances from the top of the page of what has this role and name.
    async fn tops(&self, browser: &Browser, role: &str, name: &str) -> Result<Vec<f64>> {
        let is =
            |node: &&Value, field: &str| node.pointer(field).and_then(Value::as_str).unwrap_or_default().to_owned();
        let wanted = self.0.iter().filter(|node| is(node, "/role/value") == role);
        let plain = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let wanted = wanted.filter(|node| plain(is(node, "/name/value")).contains(name.trim()));
        let mut tops = Vec::new();
        for node in wanted.take(50) {
            let place =
                browser.devtools("DOM.getBoxModel", json!({"backendNodeId": node.get("backendDOMNodeId")})).await;
            // A part that is folded has no place.
            tops.extend(place.ok().and_then(|place| place.pointer("/model/border/1").and_then(Value::as_f64)));
        }
        Ok(tops)
    }
}

async fn asked(browser: &Browser, stage: &Stage, one: &Question, wrong: &mut Vec<String>) -> Result<f64> {
    browser.open(&stage.at(&one.page)).await?;
    browser.run("scrollTo(0, 0)").await?;
    let mut seen = looked(browser, one).await?;
    for _ in 0..LOOKS {
        // A page that is live replaced its parts between two requests to the browser.
        if seen.1.is_empty() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
        seen = looked(browser, one).await?;
    }
    wrong.extend(seen.1);
    Ok(seen.0)
}

/// How far down the answer is, and what of it is missing.
async fn looked(browser: &Browser, one: &Question) -> Result<(f64, Vec<String>)> {
    browser.devtools("DOM.getDocument", json!({})).await?;
    let tree = Tree::of(browser).await?;
    let (mut lowest, mut wrong) = (0.0_f64, Vec::new());
    for (role, name) in one.answer {
        let tops = tree.tops(browser, role, name).await?;
        match tops.iter().copied().filter(|top| (0.0..FOLD).contains(top)).reduce(f64::min) {
            Some(top) => lowest = lowest.max(top),
            None => wrong.push(format!(
                "{}: {}: no {role} {name:?} in the first {FOLD} px, but at {tops:?}",
                one.asks, one.page
            )),
        }
    }
    Ok((lowest, wrong))
}

/// Cases of a night beside the closed one: one that runs, one that is silent, one that needs a person.
async fn night(stage: &Stage, id: &str) -> Result<String> {
    let log = stage.log(id).await?;
    let store = SqliteStore::open(stage.data.path())?;
    let now: Timestamp = SystemTime::now().try_into()?;
    let ago = |hours: u64| now.checked_sub(Duration::from_secs(hours * 3600));
    let working =
        log.iter().position(|entry| matches!(entry.event, Event::CallRecorded { .. })).map_or(1, |at| at + 40);
    let mut unclear: Vec<Recorded> = log.clone();
    for entry in &mut unclear {
        if let Event::Concluded { ruling, .. } = &mut entry.event {
            ruling.verdict = casebook_protocol::Verdict::Inconclusive;
        }
    }
    let names = ["running", "silent", "unclear", "yesterday"].map(|name| format!("{name}-0000-4000-8000-000000000000"));
    let [running, silent, unclear_id, yesterday] = names;
    let cases = [
        (&running, log.get(..working), now),
        (&silent, log.get(..working), ago(3)?),
        (&unclear_id, Some(&unclear[..]), ago(1)?),
        (&yesterday, Some(&log[..]), ago(26)?),
    ];
    for (name, part, at) in cases {
        let id = InvestigationId::new(name)?;
        let log = renamed(part.ok_or("the log of the demo is too short")?, &id, |_| at);
        store.append(&id, 0, &log).await?;
    }
    Ok(running)
}

/// # Errors
/// A question whose answer is not where a person looks first.
pub async fn check(browser: &Browser) -> Result<String> {
    let (stage, id) = Stage::closed().await?;
    let devtools = json!({"width": 1280, "height": 800, "deviceScaleFactor": 1, "mobile": false});
    browser.devtools("Emulation.setDeviceMetricsOverride", devtools).await?;
    let (mut wrong, mut figures) = (Vec::new(), Vec::new());
    let all = closed(&id, &cited(&stage, &id).await?);
    for one in &all {
        figures.push((one.asks, asked(browser, &stage, one, &mut wrong).await?));
    }
    let Stage { server, data, .. } = stage;
    drop(server);
    let stage = Stage::reading(data)?;
    let running = night(&stage, &id).await?;
    for one in &open(&running) {
        figures.push((one.asks, asked(browser, &stage, one, &mut wrong).await?));
    }
    let lines: Vec<String> = figures.iter().map(|(asks, at)| format!("{asks}: {at:.0} px")).collect();
    let left =
        "left out, as parts of supervision: approvals that wait (1), verdicts of people (4, 10), health of a team (10)";
    verdict(&wrong, format!("{}\n{left}", lines.join("\n")))
}
