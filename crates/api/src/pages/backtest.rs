//! A repeated investigation beside the one that it repeats.

use maud::{Markup, html};

use super::compare::{Side, both};
use super::frame::{Frame, Live};
use super::icon::Icon;
use super::parts;
use crate::team::{Backtest, Outcome};

#[must_use]
pub fn page(frame: &Frame, one: &Backtest, then: &Side<'_>) -> String {
    let repeat = &one.repeat;
    let body = html! {
        div {
            h1 { "Backtest " (one.n) }
            p.soft {
                "Repeats " a href={ "/i/" (repeat.investigation) } { (then.report.alert.title) }
                " from round " (repeat.from_round) ", played by " (repeat.model.as_deref().unwrap_or("what this server uses"))
            }
        }
        div.stack.wide #backtest data-part { (outcome(frame, one, then)) }
    };
    let running = matches!(one.outcome, Outcome::Running);
    let live = if running { Live::One(repeat.investigation.as_str()) } else { Live::Still };
    frame.page(&format!("Backtest {}", one.n), "/compare", live, &body)
}

fn outcome(frame: &Frame, one: &Backtest, then: &Side<'_>) -> Markup {
    match &one.outcome {
        Outcome::Running => html! {
            section.card.pad.row data-soon {
                span.badge.calm.run { (Icon::Spinner.show()) "Running" @if one.round > 0 { " · round " (one.round) } }
                span { (one.events) " events" }
                a.btn href=(frame.here) { "Look again" }
            }
        },
        Outcome::Failed(why) => parts::note("bad", Icon::Alert, &html! { span.strong { "It failed. " } (why) }),
        Outcome::Done(report) => html! {
            p.soft { "First is the recorded case, second the backtest. The backtest is not recorded: a restart of the server forgets it. " a href={ "/api/v1/backtests/" (one.n) } { "Both reports as JSON" } }
            (both(frame, then, &Side { row: None, report }))
        },
    }
}
