//! The Timeline on a time axis. Quiet stretches are cut, drawn as breaks with their length.

use std::time::Duration;

use casebook_protocol::{Timestamp, between};
use maud::{Markup, html};

use super::{part, px};
use crate::model::zone::{Zone, age};

pub struct Point {
    pub at: Timestamp,
    /// The end of a period.
    pub until: Option<Timestamp>,
    /// 0 (worst) to 4 (best) credibility.
    pub step: usize,
    pub label: String,
    pub href: String,
}

const WIDTH: f64 = 1000.0;
const LANE: f64 = 16.0;
const TOP: f64 = 26.0;
/// The width of a letter in a label.
const LETTER: f64 = 6.6;
/// The width of a break.
const BREAK: f64 = 56.0;
/// A pause is a break if it is longer than this many times the rest of its neighbours.
const MANY: u32 = 12;

/// Moments that lie close together.
struct Stretch {
    from: Timestamp,
    to: Timestamp,
}

impl Stretch {
    fn length(&self) -> f64 {
        between(self.from, self.to).as_secs_f64().max(0.5)
    }
}

/// Groups moments at pauses that are much longer than the usual one.
fn stretches(times: &[Timestamp]) -> Vec<Stretch> {
    let mut pauses: Vec<Duration> = times.iter().zip(times.iter().skip(1)).map(|(a, b)| between(*a, *b)).collect();
    pauses.sort_unstable();
    let usual = pauses.get(pauses.len() * 3 / 4).copied().unwrap_or_default().max(Duration::from_millis(200));
    let mut out: Vec<Stretch> = Vec::new();
    for at in times {
        match out.last_mut() {
            Some(last) if between(last.to, *at) <= usual * MANY => last.to = *at,
            _ => out.push(Stretch { from: *at, to: *at }),
        }
    }
    out
}

struct Scale {
    /// Each with its left edge and width.
    parts: Vec<(Stretch, f64, f64)>,
}

impl Scale {
    fn of(times: &[Timestamp]) -> Self {
        let parts = stretches(times);
        let room = WIDTH - 24.0 - BREAK * parts.len().saturating_sub(1) as f64;
        // A stretch is as wide as its time and its events need: the square root keeps short ones readable.
        let whole: f64 = parts.iter().map(|part| part.length().sqrt()).sum();
        let mut left = 12.0;
        let placed = parts.into_iter().map(|one| {
            let width = part(one.length().sqrt(), whole, room.max(200.0));
            let at = left;
            left += width + BREAK;
            (one, at, width)
        });
        Self { parts: placed.collect() }
    }

    fn x(&self, at: Timestamp) -> f64 {
        let found = self.parts.iter().find(|(one, ..)| at <= one.to).or(self.parts.last());
        found.map_or(0.0, |(one, left, width)| left + part(between(one.from, at).as_secs_f64(), one.length(), *width))
    }
}

#[must_use]
pub fn axis(zone: &Zone, points: &[Point], marker: Option<(Timestamp, &str)>) -> Markup {
    let mut times: Vec<Timestamp> = points.iter().flat_map(|point| [Some(point.at), point.until]).flatten().collect();
    times.extend(marker.map(|(at, _)| at));
    times.sort_unstable();
    let scale = Scale::of(&times);
    let mut lanes: Vec<f64> = Vec::new();
    let placed: Vec<(f64, usize, &Point)> = points
        .iter()
        .map(|point| {
            let x = scale.x(point.at);
            let free = lanes.iter().position(|end| *end + 13.0 < x);
            let lane = free.unwrap_or_else(|| {
                lanes.push(f64::MIN);
                lanes.len() - 1
            });
            if let Some(end) = lanes.get_mut(lane) {
                *end = point.until.map_or(x, |until| scale.x(until));
            }
            (x, lane, point)
        })
        .collect();
    let bottom = TOP + LANE * lanes.len().max(2) as f64 + 10.0;
    let height = bottom + 30.0;
    let ticks: Vec<Tick> = scale.parts.iter().flat_map(|(one, left, width)| ticks(zone, one, *left, *width)).collect();
    let y = |lane: usize| bottom - 12.0 - LANE * lane as f64;
    html! {
        div.chart-wrap {
        svg.chart viewBox={ "0 0 " (WIDTH) " " (px(height)) } role="group" aria-label={ "Time axis with " (points.len()) " events" } {
            @for (n, (one, left, width)) in scale.parts.iter().enumerate() {
                @let right = left + width;
                line.axis x1=(px(left - 6.0)) x2=(px(right + 6.0)) y1=(px(bottom)) y2=(px(bottom)) {}
                @if let Some((next, at, _)) = scale.parts.get(n + 1) {
                    line.dash x1=(px(right + 6.0)) x2=(px(at - 6.0)) y1=(px(bottom)) y2=(px(bottom)) {}
                    text.big x=(px(f64::midpoint(right, *at))) y=(px(bottom - 7.0)) text-anchor="middle" { (age(between(one.to, next.from))) }
                }
            }
            @for tick in &ticks {
                line.axis x1=(px(tick.x)) x2=(px(tick.x)) y1=(px(bottom)) y2=(px(bottom + 5.0)) {}
            }
            @for tick in labelled(&ticks) {
                text x=(px(tick.x)) y=(px(bottom + 19.0)) text-anchor=(tick.anchor) { (tick.label) }
            }
            @if let Some((at, label)) = marker {
                @let x = scale.x(at);
                g.tb {
                    line.line x1=(px(x)) x2=(px(x)) y1="16" y2=(px(bottom)) stroke-width="1.5" {}
                    text.big x=(px(x)) y="10" text-anchor=(if x > WIDTH - 80.0 { "end" } else if x < 80.0 { "start" } else { "middle" }) { (label) }
                }
            }
            @for (x, lane, point) in &placed {
                a href=(point.href) class={ "s" (point.step) } {
                    title { (point.label) }
                    @if let Some(until) = point.until {
                        rect.hatch x=(px(*x)) y=(px(y(*lane) - 3.0)) width=(px((scale.x(until) - x).max(2.0))) height="6" rx="3" {}
                    }
                    circle.fill.ring cx=(px(*x)) cy=(px(y(*lane))) r="6.5" {}
                }
            }
        }
        }
    }
}

struct Tick {
    x: f64,
    anchor: &'static str,
    label: String,
}

impl Tick {
    /// Where its label begins and ends.
    fn span(&self) -> (f64, f64) {
        let width = LETTER * self.label.chars().count() as f64;
        let left = match self.anchor {
            "start" => self.x,
            "end" => self.x - width,
            _ => self.x - width / 2.0,
        };
        (left, left + width)
    }
}

/// The start of a stretch, its end, and what fits between.
fn ticks(zone: &Zone, one: &Stretch, left: f64, width: f64) -> Vec<Tick> {
    let length = between(one.from, one.to);
    // Labels have seconds: two ticks in one second would have the same.
    let seconds = length.as_secs();
    let number = ((width / 130.0).floor() as u32).clamp(1, 7).min(u32::try_from(seconds.max(1)).unwrap_or(u32::MAX));
    let last = if width < 60.0 || seconds == 0 { 0 } else { number };
    let tick = |n: u32| {
        let share = f64::from(n) / f64::from(number);
        let x = left + width * share;
        let at = one.from + jiff::SignedDuration::try_from(length.mul_f64(share)).unwrap_or_default();
        let label = if length > Duration::from_secs(86_400) { zone.minute(at) } else { zone.clock(at) };
        let at_edge = if x > WIDTH - 40.0 { "end" } else { "middle" };
        Tick { x, anchor: if n == 0 && left < 20.0 { "start" } else { at_edge }, label: label.to_string() }
    };
    (0..=last).map(tick).collect()
}

/// The ticks whose labels do not cover each other. The first and the last one stay.
fn labelled(ticks: &[Tick]) -> Vec<&Tick> {
    let covers = |a: &Tick, b: &Tick| b.span().0 < a.span().1 + 4.0;
    let mut kept: Vec<&Tick> = Vec::new();
    for (n, tick) in ticks.iter().enumerate() {
        if n + 1 == ticks.len() {
            while kept.len() > 1 && kept.last().is_some_and(|before| covers(before, tick)) {
                let _ = kept.pop();
            }
        }
        if kept.last().is_none_or(|before| !covers(before, tick)) {
            kept.push(tick);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn a_long_pause_is_a_break_and_order_stays() {
        let times: Vec<Timestamp> = [0, 1, 2, 3, 5, 5_000, 5_001].map(at).to_vec();
        let found = stretches(&times);
        assert_eq!(found.iter().map(|s| (s.from, s.to)).collect::<Vec<_>>(), [(at(0), at(5)), (at(5_000), at(5_001))]);
        let scale = Scale::of(&times);
        let places: Vec<f64> = times.iter().map(|t| scale.x(*t)).collect();
        assert!(places.iter().zip(places.iter().skip(1)).all(|(a, b)| a < b), "{places:?}");
        assert!(places.iter().all(|x| (0.0..=WIDTH).contains(x)), "{places:?}");
    }

    #[test]
    fn labels_do_not_cover_each_other() {
        // The last stretch is one moment at the right edge, a break away from the one before.
        let seconds: Vec<i64> = (0..40).chain(600..660).chain([5_000]).collect();
        // Labels with a date are wider than a break.
        let hours: Vec<i64> = (0..60).chain(2_000..2_060).map(|hour| hour * 3_600).collect();
        for times in [seconds, hours] {
            let times: Vec<Timestamp> = times.into_iter().map(at).collect();
            let (scale, zone) = (Scale::of(&times), Zone::default());
            let ticks: Vec<Tick> =
                scale.parts.iter().flat_map(|(one, left, width)| ticks(&zone, one, *left, *width)).collect();
            let shown = labelled(&ticks);
            let spans: Vec<(f64, f64)> = shown.iter().map(|tick| tick.span()).collect();
            assert!(spans.iter().zip(spans.iter().skip(1)).all(|(a, b)| a.1 < b.0), "{spans:?}");
            assert!(shown.len() < ticks.len(), "{spans:?}");
            assert_eq!(shown.last().map(|tick| &tick.label), ticks.last().map(|tick| &tick.label));
        }
    }

    #[test]
    fn equal_moments_do_not_cover_each_other() {
        let point = |n: usize| Point { at: at(7), until: None, step: 4, label: format!("e{n}"), href: "#".into() };
        let points: Vec<Point> = (0..3).map(point).collect();
        let svg = axis(&Zone::default(), &points, None).into_string();
        let heights: std::collections::BTreeSet<&str> =
            svg.split("cy=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
        assert_eq!(heights.len(), 3, "{svg}");
    }
}
