//! Investigate an alert: paste it, choose the evidence.

use casebook_protocol::Budget;
use casebook_report::words;
use maud::{Markup, html};

use super::frame::{Frame, Live};
use super::icon::Icon;
use super::parts;
use crate::team::Body;

#[derive(Debug, Default)]
pub struct Draft<'a> {
    pub alert: &'a str,
    pub body: &'a str,
    pub cost: &'a str,
    pub minutes: &'a str,
    pub again: bool,
    /// What is wrong with it.
    pub wrong: Option<&'a str>,
}

#[must_use]
pub fn page(frame: &Frame, bodies: &[Body], most: &Budget, draft: &Draft<'_>) -> String {
    let chosen = |n: usize, body: &Body| if draft.body.is_empty() { n == 0 } else { body.name == draft.body };
    let body = html! {
        div { h1 { "Investigate an alert" } p.facts { "One JSON object, as the detection sent it" } }
        @if bodies.is_empty() {
            div.card { (parts::empty(Icon::Launch, "This server only reads", "Start it with `casebook serve --evidence DIR` to investigate alerts here.")) }
        } @else {
            @if let Some(wrong) = draft.wrong { (parts::note("bad", Icon::Alert, &html! { span.strong { "Not accepted. " } (wrong) })) }
            form.stack.wide method="post" action="/launch" {
                section.card aria-labelledby="one" { header { h2 #one { "1. The alert" } } div.pad.stack #drop {
                    label for="alert" { "Paste it" span.js { ", or drop a file here" } }
                    textarea #alert name="alert" required spellcheck="false" placeholder="{\"id\": \"…\", \"title\": \"…\", \"severity\": \"high\", …}" { (draft.alert) }
                    div.row.js { label.soft for="alert-file" { "or choose a file" } input #alert-file type="file" accept=".json,application/json"; }
                } }
                section.card aria-labelledby="two" { header { h2 #two { "2. The evidence" } } div.pad {
                    fieldset.stack { legend.sr { "Evidence" }
                        @for (n, body) in bodies.iter().enumerate() {
                            label.row { input type="radio" name="body" value=(body.name) checked[chosen(n, body)]; span { span.strong { (body.name) } " " span.soft { (body.about) } } }
                        }
                    }
                } }
                section.card aria-labelledby="three" { header { h2 #three { "3. Limits" } } div.pad { (limits(most, draft)) } }
                div.row { button.main { (Icon::Launch.show()) "Investigate" } span.soft { "The same alert over the same evidence is one investigation." } }
            }
            (uploads(bodies))
            form.card #upload hidden { header { h2 { "Other evidence: upload files" } } div.pad.stack {
                label for="files" { "Log files, as text or gzip" }
                input #files type="file" multiple;
                div.row { button { "Upload" } span.soft #upload-state role="status" { "At most 256 MiB a file, 2 GiB and 10,000 files in all" } }
            } }
            noscript { p.soft { "Uploads need JavaScript. Without it, start the server with --evidence DIR." } }
        }
    };
    frame.page("Investigate an alert", "/launch", Live::Still, &body)
}

fn limits(most: &Budget, draft: &Draft<'_>) -> Markup {
    html! {
        div.row {
            label for="cost" { "Cost" }
            input #cost name="cost" inputmode="decimal" size="8" value=(draft.cost) placeholder=(words::money(most.cost_micros));
            label for="minutes" { "Working time in minutes" }
            input #minutes name="minutes" inputmode="numeric" size="6" value=(draft.minutes) placeholder=(most.seconds / 60);
            label.row { input type="checkbox" name="again" checked[draft.again]; "Investigate again if this alert was investigated before" }
        }
        p.soft { "An empty field means the limit of the server. At a limit, the investigation ends with a report of what is known." }
    }
}

/// Uploads that can be removed.
fn uploads(bodies: &[Body]) -> Markup {
    let mut removable = bodies.iter().filter(|body| body.removable).peekable();
    html! {
        @if removable.peek().is_some() {
            section.card aria-labelledby="unused" { header { h2 #unused { "Unused uploads" } } div.pad.stack {
                @for body in removable {
                    form.row method="post" action="/launch/remove" {
                        span { (body.name) }
                        button name="upload" value=(body.name) { "Remove" }
                    }
                }
            } }
        }
    }
}
