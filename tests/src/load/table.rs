//! Prints the figures of all runs as a table.

use serde::Serialize;

use super::{Mode, Setting, Taken};

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Run {
    #[serde(flatten)]
    pub setting: Setting,
    pub taken: Taken,
    pub model_cpu_micros: u64,
    pub requests: u64,
    pub answered_again: u64,
    /// Model calls of an investigation that must follow one another.
    pub depth: u64,
}

impl Run {
    fn each(&self, sum: u64) -> f64 {
        sum as f64 / self.setting.all().max(1) as f64
    }

    pub fn cpu_ms(&self) -> f64 {
        self.each(self.taken.cpu_micros) / 1e3
    }

    /// The share by which the run took longer than the model alone; `None` if the model takes no time.
    pub fn over_ideal(&self) -> Option<f64> {
        let ideal = self.depth * self.setting.latency * 1000 * self.setting.waves as u64;
        (ideal > 0).then(|| self.taken.wall_micros as f64 / ideal as f64 - 1.0)
    }

    /// Whether this is the run of the bare client under the same load.
    pub fn is_floor_of(&self, other: &Setting) -> bool {
        let Setting { mode, at, latency, .. } = self.setting;
        mode == Mode::Floor && other.mode != Mode::Floor && (at, latency) == (other.at, other.latency)
    }
}

pub const HEAD: &str = "mode      latency     at   CPU ms/inv  x floor  model CPU ms/inv   inv/s   wall s  over ideal  peak MB  kB/live  stored kB/inv  msgs/inv  model  tools  failed  broker CPU ms/inv";

/// A line of the table; `floor` is the matching run of the bare client.
pub fn line(run: &Run, floor: Option<&Run>) -> String {
    let Run { setting, taken, .. } = run;
    let ratio = floor.map_or_else(|| "-".into(), |floor| format!("{:.2}", run.cpu_ms() / floor.cpu_ms()));
    let over = run.over_ideal().map_or_else(|| "-".into(), |over| format!("{:.1} %", over * 100.0));
    let seconds = taken.wall_micros as f64 / 1e6;
    format!(
        "{:<9} {:>7} {:>6} {:>12.1} {:>8} {:>17.1} {:>7.1} {:>8.2} {:>11} {:>8.0} {:>8.0} {:>14.0} {:>9.0} {:>6.0} {:>6.0} {:>7} {:>18.1}",
        setting.mode.name(),
        setting.latency,
        setting.at,
        run.cpu_ms(),
        ratio,
        run.each(run.model_cpu_micros) / 1e3,
        setting.all() as f64 / seconds,
        seconds,
        over,
        taken.peak_kib as f64 * 1.024 / 1e3,
        taken.peak_kib.saturating_sub(taken.before_kib) as f64 * 1.024 / setting.at.max(1) as f64,
        run.each(taken.stored) / 1e3,
        run.each(taken.messages),
        run.each(taken.model_calls),
        run.each(taken.tool_calls),
        taken.failed,
        run.each(taken.broker_cpu_micros) / 1e3,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_how_it_stands_to_floor_and_ideal() {
        let run = |mode, cpu_micros| Run {
            setting: Setting {
                mode,
                at: 1,
                waves: 2,
                latency: 200,
                rounds: 5,
                url: String::new(),
                folder: "load".into(),
            },
            taken: Taken { cpu_micros, wall_micros: 8_800_000, ..Taken::default() },
            model_cpu_micros: 0,
            requests: 0,
            answered_again: 0,
            depth: 20,
        };
        let (floor, ours) = (run(Mode::Floor, 10_000), run(Mode::Embedded, 25_000));
        assert_eq!(ours.cpu_ms(), 12.5);
        assert!((ours.over_ideal().unwrap() - 0.1).abs() < 1e-9);
        let line = line(&ours, Some(&floor));
        assert!(line.contains(" 2.50 ") && line.contains("10.0 %"), "{line}");
        assert!(floor.is_floor_of(&ours.setting) && !floor.is_floor_of(&floor.setting));
        let at_once = Setting { latency: 0, ..ours.setting.clone() };
        assert_eq!(Run { setting: at_once, ..ours }.over_ideal(), None);
    }
}
