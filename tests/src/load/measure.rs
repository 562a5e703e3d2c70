//! Measures processes with data of the operating system.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use super::Taken;

/// Measures what this process uses from now on.
pub struct Meter {
    before_kib: u64,
    cpu: Duration,
    begun: Instant,
}

impl Meter {
    pub fn start() -> Self {
        Self { before_kib: peak_kib(std::process::id()), cpu: cpu(), begun: Instant::now() }
    }

    /// Adds what was used since the start to `taken`.
    pub fn stop(self, taken: Taken) -> Taken {
        Taken {
            cpu_micros: micros(cpu() - self.cpu),
            wall_micros: micros(self.begun.elapsed()),
            peak_kib: peak_kib(std::process::id()),
            before_kib: self.before_kib,
            ..taken
        }
    }
}

pub(super) fn micros(took: Duration) -> u64 {
    u64::try_from(took.as_micros()).unwrap_or(u64::MAX)
}

fn cpu() -> Duration {
    let used = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(u64::try_from(used.tv_sec).unwrap_or(0), u32::try_from(used.tv_nsec).unwrap_or(0))
}

/// Peak resident memory of a process in KiB; 0 if unknown.
pub fn peak_kib(process: u32) -> u64 {
    status_kib(&std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default(), "VmHWM:")
}

fn status_kib(status: &str, name: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|rest| rest.trim().trim_end_matches("kB").trim().parse().ok()).unwrap_or(0)
}

/// CPU that another process used, in microseconds (resolution 10 ms); 0 if unknown.
pub fn cpu_of(process: u32) -> u64 {
    std::fs::read_to_string(format!("/proc/{process}/stat")).ok().and_then(|stat| ticks(&stat)).unwrap_or(0) * 10_000
}

/// User and system time in a line of `/proc/PID/stat`, in hundredths of a second. The program's name may
/// contain anything; it ends at the last bracket.
fn ticks(stat: &str) -> Option<u64> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let user: u64 = fields.nth(11)?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(user + system)
}

pub fn bytes_under(folder: &std::path::Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let size = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(meta) if meta.is_dir() => bytes_under(&entry.path()),
        Ok(meta) => meta.len(),
        Err(_) => 0,
    };
    entries.map(size).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_of_the_system_are_found() {
        let stat = "42 (a) b (c)) S 1 42 42 0 -1 4194560 1 0 0 0 117 23 0 0 20 0 3 0 9 1 1";
        assert_eq!(ticks(stat), Some(140));
        assert_eq!(status_kib("Name:\tx\nVmHWM:\t  123 kB\nVmRSS:\t 7 kB\n", "VmHWM:"), 123);
    }

    #[test]
    fn this_process_uses_something() {
        let meter = Meter::start();
        let mut sum = 0_u64;
        while cpu() == meter.cpu {
            sum = std::hint::black_box(sum.wrapping_add(1));
        }
        let taken = meter.stop(Taken::default());
        assert!(taken.cpu_micros > 0 && taken.peak_kib > 0, "{taken:?}");
    }
}
