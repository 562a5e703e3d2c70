//! One model call: the request as it was sent, and the reply.

use casebook_agent::model::{Ask, Message, Part, Reply};
use casebook_protocol::{ModelCall, TaskId, between};
use casebook_report::words;
use maud::{Markup, html};

use super::case::Case;
use super::frame::Live;
use super::icon::Icon;
use super::parts;

/// In characters. A request may have megabytes of tool results, which the pages of the tool calls have whole.
const LONG: usize = 20_000;

#[must_use]
pub fn page(
    case: &Case<'_>,
    task: &TaskId,
    call: &ModelCall,
    ask: Result<&Ask, &str>,
    reply: Result<&Reply, &str>,
) -> String {
    let used = &call.usage;
    let body = html! {
        div {
            p.crumb { a href="/" { "Investigations" } " / " a href={ "/i/" (case.id) } { (case.row.title) } " / " a href={ "/i/" (case.id) "/t/" (task) } { (task) } }
            h1 { (Icon::Brain.show()) " " (call.model) }
            p.facts {
                @if call.failed.is_some() { span.badge.bad { (Icon::Ban.show()) "Failed" } } @else { span.badge.good { (Icon::Check.show()) "Replied" } }
                span { b { (call.version) } } span { "prompt " b { (call.prompt) } }
                span { "took " b { (parts::length(between(call.started, call.ended))) } } span { (words::count(u64::from(call.attempts), "attempt")) }
                span { b { (words::thousands(used.input_tokens)) } " tokens in, " (words::thousands(used.cached_tokens)) " cached, " b { (words::thousands(used.output_tokens)) } " out" }
                span { "cost " b { (words::money(used.cost_micros)) } }
            }
        }
        @if let Some(why) = &call.failed { (parts::note("bad", Icon::Ban, &html! { (why) })) }
        section.card aria-labelledby="reply" { header { h2 #reply { "Reply" } } div.pad.stack {
            @match reply { Ok(reply) => (replied(reply)), Err(why) => p.soft { (why) } }
        } }
        @match ask {
            Err(why) => (parts::note("open", Icon::Info, &html! { (why) })),
            Ok(ask) => {
                section.card aria-labelledby="sent" { header { h2 #sent { "Messages" } span.count { (ask.messages.len()) } } div.pad.stack.wide { @for message in &ask.messages { (said(message)) } } }
                section.card aria-labelledby="system" { header { h2 #system { "System prompt" } span.soft.small { (words::count(ask.tools.len() as u64, "tool")) " offered" } } div.pad.stack {
                    details { summary { "Show" } (texts(&ask.system)) }
                    @if !ask.tools.is_empty() { p.small { @for tool in &ask.tools { code title=(tool.description) { (tool.name) } " " } } }
                } }
            }
        }
    };
    case.frame.page(&format!("{} in {}", call.model, case.row.title), "/", Live::Still, &body)
}

fn shown(text: &str) -> Markup {
    let (shown, more) = words::cut(text, LONG);
    html! { pre tabindex="0" { (shown) @if more > 0 { span.soft { " … " (words::thousands(more as u64)) " more characters" } } } }
}

fn texts(parts: &[Part]) -> Markup {
    html! { @for part in parts { (shown(&part.text)) } }
}

fn said(message: &Message) -> Markup {
    html! {
        @match message {
            Message::User(parts) => div.stack { p.label { "Casebook" } (texts(parts)) },
            Message::Assistant(reply) => div.stack { p.label { "Model" } (replied(reply)) },
            Message::Results(answers) => {
                @for answer in answers { div.stack { p.label { "Tool " (answer.tool) @if answer.failed { " failed" } } (shown(&answer.text)) } }
            }
        }
    }
}

fn replied(reply: &Reply) -> Markup {
    html! {
        @if !reply.text.is_empty() { (shown(&reply.text)) }
        @for call in &reply.calls { div { p.small { (Icon::Tool.show()) " " span.strong { (call.tool) } } (shown(&call.arguments)) } }
        @if reply.text.is_empty() && reply.calls.is_empty() { p.soft { "An empty reply." } }
    }
}
