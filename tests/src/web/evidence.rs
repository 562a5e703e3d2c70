//! From the verdict to the log line: each citation of the demo is reached by clicks, as a person would.

use serde_json::Value;

use super::stage::{Stage, verdict};
use crate::Result;
use crate::browser::Browser;

/// What the page of a citation shows.
const SEEN: &str = "
const rows = [...document.querySelectorAll('.rows > li')];
const marked = rows.filter((row) => row.querySelector('mark'));
const log = [...document.querySelectorAll('section[aria-labelledby=context] .rows > li')];
return {
  marks: [...document.querySelectorAll('mark')].map((one) => one.textContent),
  places: marked.map((row) => row.querySelector('.at').textContent.trim()),
  hit: document.getElementById('hit')?.textContent ?? '',
  around: log.filter((row) => !row.querySelector('mark')).length,
  said: document.querySelector('section[aria-label=Citation]')?.textContent ?? '',
}";

struct Seen(Value);

impl Seen {
    fn texts(&self, name: &str) -> Vec<&str> {
        self.0.get(name).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
    }

    fn text(&self, name: &str) -> &str {
        self.0.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    /// What is wrong with it. `alone` has the sources with one record.
    fn faults(&self, cited: &Value, alone: &[&str]) -> Vec<String> {
        let mut wrong = Vec::new();
        let kind = cited.get("citation").and_then(Value::as_object).and_then(|kind| kind.iter().next());
        let Some((kind, citation)) = kind else { return vec!["no citation".to_owned()] };
        if cited.get("holds") == Some(&Value::Bool(true)) && !self.text("said").contains("olds") {
            wrong.push(format!("it does not say that the {kind} holds"));
        }
        let record = cited.pointer("/records/0");
        let of = |name: &str| record.and_then(|one| one.get(name)).cloned().unwrap_or_default();
        let (file, line) = (of("file"), of("line"));
        match citation.get("quote").and_then(Value::as_str) {
            Some(quote) => {
                let plain = |text: &str| text.split_whitespace().collect::<String>();
                if !self.texts("marks").iter().any(|mark| plain(mark) == plain(quote)) {
                    wrong.push(format!("the quote {quote:?} is not marked"));
                }
                let place = format!("{}:{line}", file.as_str().unwrap_or_default());
                if record.is_some() && !self.texts("places").iter().any(|one| one.ends_with(&place)) {
                    wrong.push(format!("the mark is not in {place}, but in {:?}", self.texts("places")));
                }
                let others = record.is_some() && of("source").as_str().is_none_or(|source| !alone.contains(&source));
                if others && self.0.get("around").and_then(Value::as_u64).is_none_or(|rows| rows < 2) {
                    wrong.push("no rows around it".to_owned());
                }
            }
            None if self.text("hit").is_empty() => wrong.push(format!("the {kind} is not marked in the result")),
            None => {}
        }
        wrong
    }
}

/// Clicks what a person sees; the error names what is not there.
async fn click(browser: &Browser, what: &str) -> Result<()> {
    let clicked = format!("const one = {what}; if (!one?.checkVisibility()) return false; one.click(); return true");
    if browser.run(&clicked).await? == Value::Bool(true) {
        Ok(())
    } else {
        Err(format!("not to be seen: {what}").into())
    }
}

/// # Errors
/// A citation that does not lead to its log line.
pub async fn check(browser: &Browser, stage: &Stage, id: &str) -> Result<String> {
    let report = stage.api(&format!("/investigations/{id}/report.json")).await?;
    let (mut wrong, mut reached, mut quotes) = (Vec::new(), 0, 0);
    let records = |source: &Value| {
        let hosts = source.get("hosts").and_then(Value::as_array).into_iter().flatten();
        hosts.filter_map(|host| host.get("records")?.as_u64()).sum::<u64>()
    };
    let sources = report.get("coverage").and_then(Value::as_array).into_iter().flatten();
    let alone: Vec<&str> =
        sources.filter(|source| records(source) == 1).filter_map(|source| source.get("source")?.as_str()).collect();
    for found in report.get("findings").and_then(Value::as_array).into_iter().flatten() {
        let name = found.pointer("/finding/id").and_then(Value::as_str).unwrap_or_default();
        for (n, cited) in (1..).zip(found.get("citations").and_then(Value::as_array).into_iter().flatten()) {
            browser.open(&stage.at(&format!("/i/{id}"))).await?;
            let steps = [
                (
                    "[...document.querySelectorAll('.tabs a')].find((one) => one.textContent.startsWith('Findings'))"
                        .to_owned(),
                    "document.querySelector('.tabs [aria-current]')?.textContent.startsWith('Findings')",
                ),
                (
                    format!("document.querySelector('a[href*=\"?cite={name}.{n}#\"]')"),
                    "document.querySelector('section[aria-label=Citation]')",
                ),
            ];
            for (what, there) in &steps {
                click(browser, what).await?;
                browser.until(&format!("document.readyState === 'complete' && {there}")).await?;
            }
            let seen = Seen(browser.run(SEEN).await?);
            wrong.extend(seen.faults(cited, &alone).into_iter().map(|fault| format!("{name}.{n}: {fault}")));
            reached += 1;
            quotes += usize::from(cited.pointer("/citation/literal").is_some());
        }
    }
    if reached == 0 {
        wrong.push("the case has no citation".to_owned());
    }
    verdict(
        &wrong,
        format!("{reached} citations, {quotes} of them quotes, each reached from the verdict with 2 clicks"),
    )
}
