//! One line for each agent at the foot of a terminal, which changes in place.

use std::io::{self, IsTerminal};
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::summary::Agent;

/// Redraws per second.
const HZ: u8 = 10;
/// How often the mark of a busy agent moves.
const TICK: Duration = Duration::from_millis(120);

pub struct AgentLines {
    all: MultiProgress,
    bars: Vec<ProgressBar>,
}

impl AgentLines {
    /// On standard output; none if that is not a terminal.
    pub fn stdout() -> Option<Self> {
        let all = MultiProgress::with_draw_target(ProgressDrawTarget::stdout_with_hz(HZ));
        io::stdout().is_terminal().then(|| Self { all, bars: Vec::new() })
    }

    pub fn show(&mut self, agents: &[Agent]) {
        for (at, agent) in agents.iter().enumerate() {
            if self.bars.len() <= at {
                self.bars.push(self.all.add(ProgressBar::new_spinner()));
            }
            let Some(bar) = self.bars.get(at) else { continue };
            let template = if agent.busy {
                "{spinner:.cyan} {prefix:13.cyan} {wide_msg}"
            } else {
                "  {prefix:13.dim} {wide_msg:.dim}"
            };
            if bar.prefix().is_empty() || bar.message() != agent.doing {
                if let Ok(style) = ProgressStyle::with_template(template) {
                    bar.set_style(style.tick_chars("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏ "));
                }
                bar.set_prefix(agent.name.clone());
                bar.set_message(agent.doing.clone());
            }
            if agent.busy {
                bar.enable_steady_tick(TICK);
            } else {
                bar.disable_steady_tick();
            }
        }
    }

    /// Runs `write`, which writes to standard output, above the lines.
    pub fn above(&self, write: impl FnOnce()) {
        self.all.suspend(write);
    }

    /// Removes the lines.
    pub fn end(&mut self) {
        self.bars.iter().for_each(ProgressBar::disable_steady_tick);
        self.bars.clear();
        // An error is a terminal that is gone: nothing is left to remove.
        let _ = self.all.clear();
    }
}
