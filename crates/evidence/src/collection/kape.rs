//! KAPE writes its logs beside what it copied: `2025-08-25T20_20_59_5246365_ConsoleLog.txt`. The name has the start in UTC,
//! the lines have the clock of the machine that ran it.

use std::sync::LazyLock;

use regex::Regex;

use super::{is_host, start};
use crate::prepare::Prepared;
use crate::time::clock::QUARTER;
use crate::time::roles::SECOND;
use crate::time::text::{Reading, prefix};

/// In nanoseconds, between the name and the first line.
const APART: i64 = 60 * SECOND;
const ZONE_MAX: i64 = 14 * 3600 * SECOND;

#[allow(clippy::expect_used, reason = "the pattern is a constant that the tests compile")]
static NAME: LazyLock<Regex> = LazyLock::new(|| {
    let time = r"(\d{4}-\d\d-\d\dT\d\d)_?(\d\d)_?(\d\d)(?:_\d{1,7})?";
    Regex::new(&format!(r"(?i)(?:^|/){time}(?:_[^/]+)?_(ConsoleLog\.txt|CopyLog\.csv)$")).expect("valid")
});

#[allow(clippy::expect_used, reason = "the pattern is a constant that the tests compile")]
static SYSTEM_DRIVE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r#"(?i)--tsource\s+"?c:?[\\/]?"?(?:\s|$)"#).expect("valid"));

/// What a log of KAPE says about the host.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Log {
    pub(super) host: Option<String>,
    /// What its clock showed less UTC, in nanoseconds.
    pub(super) clock: Option<i64>,
}

/// None if it is not a log of KAPE.
pub(super) fn read(prepared: &Prepared) -> Option<Log> {
    let name = NAME.captures(&prepared.found.file)?;
    if prepared.belongs.sensor == "kape" {
        return Some(Log::default());
    }
    let part = |n: usize| name.get(n).map_or("", |part| part.as_str());
    of_console(&format!("{}:{}:{}", part(1), part(2), part(3)), &start(prepared))
}

fn of_console(named: &str, text: &str) -> Option<Log> {
    let after = |label: &str| text.split_once(label).and_then(|(_, rest)| rest.lines().next());
    after("KAPE directory:")?;
    // KAPE also reads images, on the machine of the analyst. An image is mounted as another drive than the system's own.
    let live = after("Command line:").is_some_and(|line| SYSTEM_DRIVE.is_match(line));
    if !live {
        return Some(Log::default());
    }
    let machine = after("System info: Machine name:").and_then(|rest| rest.split(',').next());
    let host = machine.map(|name| name.trim().to_owned()).filter(|name| is_host(name));
    Some(Log { host, clock: clock(named, text) })
}

fn clock(named: &str, text: &str) -> Option<i64> {
    let read = |text: &str| prefix(text, Reading::default()).map(|(moment, _)| moment.ns);
    let shown = read(text.lines().next()?.trim_start_matches('['))?;
    let less = shown - read(named)?;
    let zone = (less + QUARTER / 2).div_euclid(QUARTER) * QUARTER;
    ((less - zone).abs() <= APART && zone.abs() <= ZONE_MAX).then_some(zone)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONSOLE: &str = "[2025-08-25 13:20:59.6012345 | INF] KAPE directory: C:\\Tools\\KAPE\r\n\
        [2025-08-25 13:20:59.6023456 | INF] Command line:   --tsource C: --tdest E:\\out --target KapeTriage\r\n\
        [2025-08-25 13:20:59.6034567 | INF] System info: Machine name: FS03, 64-bit: true, User: admin OS: \"Windows10\"\r\n";

    #[test]
    fn console_log_of_a_live_machine_gives_host_and_clock() {
        let read = |text: &str| of_console("2025-08-25T20:20:59", text).map(|log| (log.host, log.clock));
        let hour = 3600 * SECOND;
        assert_eq!(read(CONSOLE), Some((Some("FS03".to_owned()), Some(-7 * hour))));
        for live in ["--tsource C:\\ --tdest", "--tsource \"C:\" --tdest", "--tsource c --tdest"] {
            assert!(read(&CONSOLE.replace("--tsource C: --tdest", live)).unwrap().0.is_some(), "{live}");
        }
        for image in ["--tsource F: --tdest", "--msource C:\\cases --mdest", "--tsource C:\\mounted --tdest"] {
            assert_eq!(read(&CONSOLE.replace("--tsource C: --tdest", image)), Some((None, None)), "{image}");
        }
        assert_eq!(read(&CONSOLE.replace("13:20", "13:27")).unwrap().1, None, "no zone is seven minutes off");
        assert_eq!(read(&CONSOLE.replace("FS03", "a b")).unwrap().0, None);
        assert_eq!(read(&CONSOLE.replace("KAPE directory", "Directory")), None);
    }

    #[test]
    fn names_of_its_logs() {
        for name in [
            "2025-08-25T20_20_59_5246365_ConsoleLog.txt",
            "x/2022-05-28T024344_ConsoleLog.txt",
            "2018-09-03T14_51_21_7565737_EvidenceOfExecution_copylog.csv",
        ] {
            assert!(NAME.is_match(name), "{name}");
        }
        for name in [
            "ConsoleLog.txt",
            "DFIRBatch_RECmdConsoleLog.txt",
            "2025-08-25_ConsoleLog.txt",
            "2022-05-28T024344_ConsoleLog.txt/a",
        ] {
            assert!(!NAME.is_match(name), "{name}");
        }
    }
}
