//! What stands behind the story: doubts, the Journal, every tool call, the cost, the alert.

use casebook_protocol::report::TaskUsage;
use casebook_protocol::{CallId, CallStatus, JournalEntry, Report, ToolCall, Usage};
use maud::{Markup, html};

use super::parts::{findings, quoted, sentence};
use super::words::{self, thousands};

pub(super) fn has_doubts(report: &Report) -> bool {
    !(report.disagreements.is_empty() && report.blind_spots.is_empty() && report.guards.is_empty())
}

pub(super) fn doubts(report: &Report) -> Markup {
    html! {
        @if has_doubts(report) {
            section #doubts {
                h2 { "Doubts" }
                @if !report.disagreements.is_empty() {
                    h3 { "Where Experts and Critic differ" }
                    ul { @for difference in &report.disagreements { li { (findings(report, &difference.findings)) ": " (sentence(report, &difference.about)) } } }
                }
                @if !report.blind_spots.is_empty() {
                    h3 { "What no Expert could see" }
                    ul { @for spot in &report.blind_spots { li { (sentence(report, spot)) } } }
                }
                @if !report.guards.is_empty() {
                    h3 { "What the rules changed" }
                    ul { @for guard in &report.guards { li { code { (guard.rule.name()) } " on " code { (guard.subject) } ": " (sentence(report, &guard.effect)) } } }
                }
            }
        }
    }
}

pub(super) fn journal(report: &Report) -> Markup {
    html! {
        section #journal {
            h2 { "Journal of the Director" }
            @if report.journal.is_empty() { p.none { "Nothing was written." } }
            ol.journal { @for entry in &report.journal { (journal_entry(report, entry)) } }
        }
    }
}

fn journal_entry(report: &Report, entry: &JournalEntry) -> Markup {
    let draft = &entry.entry;
    html! {
        li id=(format!("j-{}", entry.seq)) {
            p.sub {
                b { "#" (entry.seq) " " (words::capital(draft.kind.name())) }
                " " (words::phase(entry.phase)) ", round " (entry.round)
                @if let Some(priority) = draft.priority { ", " (format!("{priority:?}").to_lowercase()) " priority" }
                @if let Some(old) = draft.supersedes {
                    ", corrects "
                    @if report.journal.iter().any(|e| e.seq == old) { a href=(format!("#j-{old}")) { "#" (old) } } @else { "#" (old) }
                }
            }
            p { (sentence(report, &draft.text)) @if !draft.citations.is_empty() { " (" (findings(report, &draft.citations)) ")" } }
            @if !draft.follow_ups.is_empty() { ul { @for follow in &draft.follow_ups { li { (sentence(report, follow)) } } } }
        }
    }
}

pub(super) fn call_anchor(id: &CallId) -> String {
    format!("call-{id}")
}

pub(super) fn calls(report: &Report) -> Markup {
    html! {
        section #calls {
            h2 { "Tool calls" }
            p.sub { "Every result is kept whole under the hash that is its address." }
            @if report.calls.is_empty() { p.none { "No tool was called." } }
            @for made in &report.calls { (call(made)) }
        }
    }
}

fn call(call: &ToolCall) -> Markup {
    html! {
        details {
            summary {
                code { (call.tool) } " " span.args { (casebook_protocol::one_line(&call.arguments, 110)) }
                @if call.status == CallStatus::Failed { " " span.no { "failed" } }
            }
            div id=(call_anchor(&call.id)) {
                (quoted(&pretty(&call.arguments)))
                p.from {
                    "Call " code { (call.id) }
                    @if let Some(domain) = &call.domain { ", Expert " (domain) }
                    ", " (words::second(call.started)) ", " (thousands(call.bytes)) " bytes, artifact " code.hash { (call.result) }
                }
            }
        }
    }
}

/// JSON over several lines; as it is when it is none.
fn pretty(json: &str) -> String {
    let value: Option<serde_json::Value> = serde_json::from_str(json).ok();
    value.and_then(|v| serde_json::to_string_pretty(&v).ok()).unwrap_or_else(|| json.to_owned())
}

pub(super) fn cost(report: &Report) -> Markup {
    html! {
        section #cost {
            h2 { "Cost" }
            div.scroll {
                table {
                    thead { tr { th { "Task" } th { "By" } th { "Tool calls" } th { "Model calls" } th { "Tokens in" } th { "cached" } th { "Tokens out" } th { "Cost" } } }
                    tbody { @for task in &report.usage.tasks { (task_row(report, task)) } }
                    tfoot { tr { th { "All" } th { (report.usage.rounds) " rounds, " (words::took(report)) } (numbers(&report.usage.total)) } }
                }
            }
        }
    }
}

fn task_row(report: &Report, task: &TaskUsage) -> Markup {
    html! {
        tr {
            td { code { (task.task) } }
            td {
                (words::role(task))
                @if let Some(player) = &task.player { ", " (player.name) " " (player.version) }
                @if let Some(why) = &task.failed { " " span.no { "failed" } ": " (sentence(report, why)) }
            }
            (numbers(&task.usage))
        }
    }
}

fn numbers(used: &Usage) -> Markup {
    html! {
        @for n in [used.tool_calls, used.model_calls, used.input_tokens, used.cached_tokens, used.output_tokens] { td { (thousands(n)) } }
        td { (words::money(used.cost_micros)) }
    }
}

pub(super) fn alert(report: &Report) -> Markup {
    html! {
        section #alert {
            h2 { "The alert as it came" }
            (quoted(&pretty(&report.alert.body)))
        }
    }
}
