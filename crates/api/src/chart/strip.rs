//! The whole log as a strip: how many events of which group, over the numbers of the events, with its rounds.

use maud::{Markup, html};

use super::{part, px};

pub struct Segment {
    pub name: String,
    pub from: u64,
    pub to: u64,
    pub class: &'static str,
}

pub struct Mark {
    pub seq: u64,
    pub class: &'static str,
    pub label: String,
    pub href: String,
}

const WIDTH: f64 = 1000.0;

#[must_use]
pub fn strip(last: u64, at: u64, segments: &[Segment], marks: &[Mark]) -> Markup {
    let x = |seq: u64| 4.0 + part(seq.saturating_sub(1) as f64, last.max(2) as f64 - 1.0, WIDTH - 8.0);
    html! {
        div.chart-wrap {
        svg.chart viewBox={ "0 0 " (WIDTH) " 44" } role="group" aria-label={ "Event " (at) " of " (last) } {
            @for one in segments {
                @let (from, to) = (x(one.from), x(one.to));
                g class=(one.class) {
                    title { (one.name) }
                    rect.wash x=(px(from)) y="16" width=(px((to - from - 2.0).max(1.0))) height="20" rx="4" {}
                }
                @if to - from > 46.0 { text x=(px(from + 2.0)) y="11" { (one.name) } }
            }
            @for mark in marks {
                a href=(mark.href) class=(mark.class) {
                    title { (mark.label) }
                    rect.fill x=(px(x(mark.seq) - 1.5)) y="16" width="3" height="20" rx="1.5" {}
                }
            }
            @let now = x(at);
            path.big d={ "M" (px(now - 6.0)) " 44h12l-6 -7z" } {}
        }
        }
    }
}
