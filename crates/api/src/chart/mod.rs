//! Charts as inline SVG: pure functions of their data. Colours are classes, so that both themes work. Each chart has a
//! title for screen readers, and the page has the same numbers as text.

pub mod axis;
pub mod bars;
pub mod scores;
pub mod strip;
pub mod waterfall;

/// A coordinate with one decimal.
fn px(value: f64) -> String {
    format!("{value:.1}")
}

/// A part of `width` for `part` of `whole`.
fn part(value: f64, whole: f64, width: f64) -> f64 {
    if whole <= 0.0 { 0.0 } else { (value / whole).clamp(0.0, 1.0) * width }
}

/// The next round number: 1, 2 or 5 times a power of ten.
fn round_up(value: f64) -> f64 {
    if value <= 0.0 {
        return 1.0;
    }
    let power = 10_f64.powf(value.log10().floor());
    let step = [1.0, 2.0, 5.0].into_iter().find(|step| step * power >= value).unwrap_or(10.0);
    step * power
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_end_at_round_numbers() {
        let ends: Vec<f64> = [0.0, 0.3, 7.0, 10.0, 41.0].into_iter().map(round_up).collect();
        assert_eq!(ends, [1.0, 0.5, 10.0, 10.0, 50.0]);
        assert!((part(3.0, 2.0, 10.0) - 10.0).abs() < 1e-9 && part(1.0, 0.0, 10.0).abs() < 1e-9);
    }
}
