//! The distribution of scores: one dot for each finding over the five bands.

use casebook_protocol::Credibility;
use maud::{Markup, html};

use super::px;

pub struct Dot {
    pub score: f64,
    pub label: String,
    pub href: String,
}

const WIDTH: f64 = 1000.0;
const EDGES: [f64; 6] = [0.0, 0.3, 0.5, 0.7, 0.9, 1.0];
const RADIUS: f64 = 6.0;
const STEP: f64 = 14.0;
/// Dots on top of each other.
const HIGH: usize = 7;

#[must_use]
pub fn scores(dots: &[Dot]) -> Markup {
    let mut piles: std::collections::BTreeMap<u32, usize> = std::collections::BTreeMap::new();
    let column = |score: f64| (score * 50.0).round().clamp(0.0, 50.0) as u32;
    let mut levels = Vec::new();
    for dot in dots {
        let pile = piles.entry(column(dot.score)).or_default();
        levels.push(*pile);
        *pile += 1;
    }
    let rows = piles.values().copied().max().unwrap_or(1).clamp(2, HIGH) as f64;
    let floor = 30.0 + STEP * rows;
    let height = floor + 40.0;
    let placed: Vec<(f64, f64, &Dot)> = dots
        .iter()
        .zip(&levels)
        .map(|(dot, level)| {
            // A full pile goes on beside itself: left, right, left.
            let (beside, row) = (level / HIGH, level % HIGH);
            let side = beside.div_ceil(2) as f64 * STEP * if beside % 2 == 0 { 1.0 } else { -1.0 };
            let x = 14.0 + f64::from(column(dot.score)) / 50.0 * (WIDTH - 28.0) + side;
            (x, floor - RADIUS - 3.0 - STEP * row as f64, dot)
        })
        .collect();
    let x = |score: f64| 14.0 + score * (WIDTH - 28.0);
    html! {
        div.chart-wrap {
        svg.chart viewBox={ "0 0 " (WIDTH) " " (px(height)) } role="group" aria-label={ "Scores of " (dots.len()) " findings" } {
            @for (n, (from, to)) in EDGES.iter().zip(EDGES.iter().skip(1)).enumerate() {
                @let inside = dots.iter().filter(|dot| step(dot.score) == n).count();
                g class={ "s" (n) } {
                    rect.wash x=(px(x(*from) + 1.0)) y="22" width=(px(x(*to) - x(*from) - 2.0)) height=(px(floor - 22.0)) rx="4" {}
                    rect.fill x=(px(x(*from) + 1.0)) y=(px(floor)) width=(px(x(*to) - x(*from) - 2.0)) height="3" rx="1.5" {}
                }
                text.big x=(px(f64::midpoint(x(*from), x(*to)))) y="14" text-anchor="middle" { (inside) }
                text x=(px(f64::midpoint(x(*from), x(*to)))) y=(px(floor + 18.0)) text-anchor="middle" {
                    (Credibility::BANDS.get(n).map_or("", |band| band.name()))
                }
            }
            @for edge in EDGES {
                text x=(px(x(edge))) y=(px(floor + 34.0)) text-anchor="middle" { (format!("{edge:.1}")) }
            }
            @for (cx, cy, dot) in &placed {
                a href=(dot.href) class={ "s" (step(dot.score)) } {
                    title { (dot.label) }
                    circle.fill.ring cx=(px(*cx)) cy=(px(*cy)) r=(RADIUS) {}
                }
            }
        }
        }
    }
}

fn step(score: f64) -> usize {
    EDGES.iter().skip(1).take(4).filter(|edge| score >= **edge).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_dot_is_counted_in_its_band() {
        let dots: Vec<Dot> =
            [0.1, 0.3, 0.69, 0.7, 1.0].map(|score| Dot { score, label: String::new(), href: String::new() }).into();
        let svg = scores(&dots).into_string();
        let counts: Vec<&str> =
            svg.split("y=\"14\" text-anchor=\"middle\">").skip(1).filter_map(|rest| rest.split('<').next()).collect();
        assert_eq!(counts, ["1", "1", "1", "1", "1"]);
    }
}
