//! Investigate an alert: paste it, choose the evidence.

use maud::html;

use super::frame::{Frame, Live};
use super::icon::Icon;
use super::parts;
use crate::team::Body;

#[derive(Debug, Default)]
pub struct Draft<'a> {
    pub alert: &'a str,
    pub body: &'a str,
    /// What is wrong with it.
    pub wrong: Option<&'a str>,
}

#[must_use]
pub fn page(frame: &Frame, bodies: &[Body], draft: &Draft<'_>) -> String {
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
                div.row { button.main { (Icon::Launch.show()) "Investigate" } span.soft { "The same alert over the same evidence is one investigation." } }
            }
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
