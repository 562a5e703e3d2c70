//! What ran when: tasks of an investigation, or calls of a task.

use casebook_protocol::{Timestamp, between};
use maud::{Markup, html};

use super::{part, px};
use crate::pages::parts::length;

pub struct Line {
    pub name: String,
    pub from: Timestamp,
    pub to: Timestamp,
    pub class: &'static str,
    pub label: String,
    pub href: String,
    /// The name of the group that begins here.
    pub heading: Option<String>,
}

const WIDTH: f64 = 1000.0;
const LEFT: f64 = 190.0;
const ROW: f64 = 20.0;

#[must_use]
pub fn waterfall(title: &str, lines: &[Line]) -> Markup {
    let from = lines.iter().map(|line| line.from).min().unwrap_or_default();
    let to = lines.iter().map(|line| line.to).max().unwrap_or_default();
    // At least a millisecond from tick to tick.
    let whole = between(from, to).as_secs_f64().max(0.004);
    let x = |at: Timestamp| LEFT + part(between(from, at).as_secs_f64(), whole, WIDTH - LEFT - 64.0);
    let headings = lines.iter().filter(|line| line.heading.is_some()).count();
    let height = 24.0 + ROW * (lines.len() + headings) as f64 + 6.0;
    let mut y = 24.0;
    let placed: Vec<(f64, &Line)> = lines
        .iter()
        .map(|line| {
            if line.heading.is_some() {
                y += ROW;
            }
            let at = y;
            y += ROW;
            (at, line)
        })
        .collect();
    html! {
        div.chart-wrap {
        svg.chart viewBox={ "0 0 " (WIDTH) " " (px(height)) } role="group" aria-label=(title) {
            @for n in 0..=4_u32 {
                @let share = f64::from(n) / 4.0;
                @let at = LEFT + share * (WIDTH - LEFT - 64.0);
                line.grid x1=(px(at)) x2=(px(at)) y1="18" y2=(px(height)) {}
                text x=(px(at)) y="11" text-anchor=(if n == 0 { "start" } else { "middle" }) { (length(std::time::Duration::from_secs_f64(whole * share))) }
            }
            @for (y, line) in &placed {
                @if let Some(heading) = &line.heading { text.big x="0" y=(px(y - 6.0)) { (heading) } }
                a href=(line.href) class=(line.class) {
                    title { (line.label) }
                    rect x="0" y=(px(*y)) width=(WIDTH) height=(ROW) opacity="0" {}
                    text x="10" y=(px(y + 14.0)) { (line.name) }
                    rect.fill x=(px(x(line.from))) y=(px(y + 4.0)) width=(px((x(line.to) - x(line.from)).max(3.0))) height="12" rx="3" {}
                    text x=(px(x(line.to).max(x(line.from) + 3.0) + 6.0)) y=(px(y + 14.0)) { (length(between(line.from, line.to))) }
                }
            }
        }
        }
    }
}
