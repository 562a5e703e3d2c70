//! Stacked bars, one for each round or day.

use maud::{Markup, html};

use super::{part, px, round_up};

pub struct Bar {
    pub name: String,
    /// One value for each series.
    pub values: Vec<f64>,
    pub label: String,
    pub href: Option<String>,
}

/// Beside another chart, and over the whole page.
pub const HALF: f64 = 640.0;
pub const WHOLE: f64 = 1200.0;
const HEIGHT: f64 = 150.0;
const LEFT: f64 = 44.0;
const FLOOR: f64 = HEIGHT - 24.0;

/// `classes` colours the series, the lowest first.
#[must_use]
pub fn bars(title: &str, width: f64, bars: &[Bar], classes: &[&str], unit: &dyn Fn(f64) -> String) -> Markup {
    let top = round_up(bars.iter().map(|bar| bar.values.iter().sum::<f64>()).fold(0.0, f64::max));
    let slot = (width - LEFT) / bars.len().max(1) as f64;
    let thick = (slot * 0.62).min(46.0);
    html! {
        svg.chart viewBox={ "0 0 " (width) " " (HEIGHT) } role="group" aria-label=(title) {
            @for share in [0.0, 0.5, 1.0] {
                @let y = FLOOR - share * (FLOOR - 12.0);
                line.grid x1=(LEFT) x2=(width) y1=(px(y)) y2=(px(y)) {}
                text x=(LEFT - 6.0) y=(px(y + 4.0)) text-anchor="end" { (unit(top * share)) }
            }
            @for (n, bar) in bars.iter().enumerate() {
                @let x = LEFT + slot * n as f64 + (slot - thick) / 2.0;
                @let body = column(bar, x, thick, top, classes);
                @if let Some(href) = &bar.href { a href=(href) { title { (bar.label) } (body) } } @else { g { title { (bar.label) } (body) } }
                text x=(px(x + thick / 2.0)) y=(HEIGHT - 7.0) text-anchor="middle" { (bar.name) }
            }
        }
    }
}

fn column(bar: &Bar, x: f64, thick: f64, top: f64, classes: &[&str]) -> Markup {
    let mut y = FLOOR;
    let parts: Vec<(f64, f64, &str)> = bar
        .values
        .iter()
        .zip(classes)
        .filter(|(value, _)| **value > 0.0)
        .map(|(value, class)| {
            let height = part(*value, top, FLOOR - 12.0).max(1.5);
            y -= height;
            (y, height, *class)
        })
        .collect();
    html! {
        rect x=(px(x)) y="12" width=(px(thick)) height=(px(FLOOR - 12.0)) opacity="0" {}
        @for (y, height, class) in parts { rect.fill.(class) x=(px(x)) y=(px(y)) width=(px(thick)) height=(px((height - 1.0).max(1.0))) rx="2" {} }
    }
}

/// One bar for each name, from left to right, with its number as text.
#[must_use]
pub fn lines(rows: &[(String, f64, String)], class: &str) -> Markup {
    let top = rows.iter().map(|row| row.1).fold(0.0, f64::max);
    html! {
        div.stack { @for (name, value, shown) in rows {
            div {
                div.row.apart.small { span { (name) } span.num.strong { (shown) } }
                svg.chart viewBox="0 0 400 7" preserveAspectRatio="none" height="7" aria-hidden="true" {
                    rect.track width="400" height="7" rx="3" {}
                    rect.fill.(class) width=(px(part(*value, top, 400.0))) height="7" rx="3" {}
                }
            }
        } }
    }
}
