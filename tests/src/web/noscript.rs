//! Every page reads, and every form sends, in a browser that runs no script.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};

use super::stage::{Stage, verdict};
use crate::browser::Browser;
use crate::{Result, run};

/// Links of a page, and controls that a person sees and that do nothing without a script.
const READ: &str = "
const seen = (one) => one.checkVisibility();
const links = [...document.querySelectorAll('a[href]')].filter(seen).map((one) => one.getAttribute('href'));
const controls = [...document.querySelectorAll('button, input:not([type=hidden]), select, textarea')].filter(seen);
const dead = controls.filter((one) => !one.form || one.type === 'button' || (!one.name && one.type !== 'submit'));
return {
  links, dead: dead.map((one) => one.outerHTML.slice(0, 120)), forms: document.forms.length,
  title: document.querySelectorAll('h1').length, text: document.querySelector('main')?.innerText.length ?? 0,
  mute: [...document.forms].filter((form) => seen(form) && ![...form.elements].some((one) => one.type === 'submit' && seen(one))).map((form) => form.outerHTML.slice(0, 120)),
}";

async fn scripts(browser: &Browser, on: bool) -> Result<()> {
    browser.devtools("Emulation.setScriptExecutionDisabled", json!({"value": !on})).await?;
    Ok(())
}

async fn read(browser: &Browser, url: &str) -> Result<Value> {
    browser.open(url).await?;
    Ok(browser.run(READ).await?)
}

fn texts(of: &Value, name: &str) -> BTreeSet<String> {
    of.get(name).and_then(Value::as_array).into_iter().flatten().map(ToString::to_string).collect()
}

/// A form, found by its address and a field, with what is filled in.
struct Sent {
    page: String,
    form: &'static str,
    fields: Vec<(&'static str, String)>,
    /// The button, if the form has several.
    button: &'static str,
    /// True on the page that it leads to.
    then: String,
}

fn sent(page: &str, form: &'static str, fields: &[(&'static str, &str)], button: &'static str, then: &str) -> Sent {
    let fields = fields.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
    Sent { page: page.to_owned(), form, fields, button, then: then.to_owned() }
}

fn forms(id: &str, alert: &str) -> Vec<Sent> {
    let [theme, zone] =
        ["form[action='/preferences']:has([name=theme])", "form[action='/preferences']:has([name=zone])"];
    let past = format!("/i/{id}");
    vec![
        sent("/", theme, &[], "[value=dark]", "document.documentElement.dataset.theme === 'dark'"),
        sent("/settings", theme, &[], "[value=light]", "document.documentElement.dataset.theme === 'light'"),
        sent(
            "/settings",
            zone,
            &[("zone", "Asia/Tokyo")],
            "button",
            "document.querySelector('.foot').textContent.includes('Asia/Tokyo')",
        ),
        sent(
            "/settings",
            zone,
            &[("zone", "UTC")],
            "button",
            "document.querySelector('.foot').textContent.includes('UTC')",
        ),
        sent("/settings", "form:has([name=keys])", &[], "button", "document.body.dataset.keys === 'off'"),
        sent(
            "/",
            "form.filter",
            &[("q", "absent-name")],
            "button",
            "location.search.includes('q=absent-name') && document.querySelector('.empty')",
        ),
        sent("/", "form.filter", &[("status", "closed")], "button", "document.querySelector('.case')"),
        sent(
            &past,
            ".player form",
            &[("at", "300")],
            "button",
            "location.search.includes('at=300') && document.querySelector('#ch-journal')",
        ),
        sent(
            &format!("/evidence?id={id}"),
            "main form",
            &[("q", "sudo")],
            "button.main",
            "document.querySelector('.rows mark')",
        ),
        sent(
            "/launch",
            "main form",
            &[("alert", "{\"id\":")],
            "button.main",
            "document.querySelector('.note.bad') && document.querySelector('textarea').value === '{\"id\":'",
        ),
        sent("/launch", "main form", &[("alert", alert)], "button.main", "location.pathname.startsWith('/i/')"),
        sent(
            "/compare",
            "main form",
            &[],
            "button.main",
            "document.querySelectorAll('main section[aria-label]').length >= 2",
        ),
    ]
}

async fn send(browser: &Browser, stage: &Stage, one: &Sent) -> Result<()> {
    browser.open(&stage.at(&one.page)).await?;
    let fields = serde_json::to_string(&one.fields)?;
    let script = format!(
        "const form = document.querySelector({form:?});
        for (const [name, value] of {fields}) {{ form.elements[name].value = value; }}
        const button = form.querySelector({button:?}); if (!button.checkVisibility()) return false;
        button.click(); return true",
        form = one.form,
        button = one.button,
    );
    if browser.run(&script).await? != Value::Bool(true) {
        return Err("its button is not to be seen".into());
    }
    Ok(browser.within(Duration::from_secs(20), &format!("document.readyState === 'complete' && {}", one.then)).await?)
}

/// # Errors
/// A page that says less without scripts, or a form that does not send.
pub async fn check(browser: &Browser, stage: &Stage, id: &str) -> Result<String> {
    let pages = stage.pages(id).await?;
    let (mut wrong, mut links) = (Vec::new(), 0);
    for page in &pages {
        scripts(browser, true).await?;
        let with = read(browser, &stage.at(page)).await?;
        scripts(browser, false).await?;
        let without = read(browser, &stage.at(page)).await?;
        let lost: Vec<String> = texts(&with, "links").difference(&texts(&without, "links")).cloned().collect();
        if !lost.is_empty() {
            wrong.push(format!("{page}: links that only a script makes: {}", lost.join(" ")));
        }
        for name in ["dead", "mute"] {
            wrong
                .extend(texts(&without, name).into_iter().map(|one| format!("{page}: {name} without a script: {one}")));
        }
        if without.get("title") != Some(&json!(1)) || without.get("text").and_then(Value::as_u64).is_none_or(|n| n < 80)
        {
            wrong.push(format!("{page}: says little: {without}"));
        }
        links += texts(&without, "links").len();
    }
    let mut alert: Value = serde_json::from_slice(&std::fs::read(run::demo().join("alert.json"))?)?;
    if let Some(name) = alert.get_mut("id") {
        *name = json!("a-second-alert");
    }
    let forms = forms(id, &alert.to_string());
    for one in &forms {
        if let Err(error) = send(browser, stage, one).await {
            wrong.push(format!("{} {}: {error}", one.page, one.form));
        }
    }
    // An upload needs a script, and the page says so.
    browser.open(&stage.at("/launch")).await?;
    let said = browser.run("return document.querySelector('main').innerText.includes('Uploads need JavaScript') && !document.getElementById('upload').checkVisibility()").await?;
    if said != Value::Bool(true) {
        wrong.push("/launch does not say that uploads need a script".to_owned());
    }
    scripts(browser, true).await?;
    verdict(&wrong, format!("{} pages with {links} links, {} forms sent", pages.len(), forms.len()))
}
