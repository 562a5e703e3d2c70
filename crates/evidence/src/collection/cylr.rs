//! CyLR adds its log, in UTC, to the archive that it makes: `CyLR_Collection_Log_2020-05-01_12-34-56.log`.

use std::sync::LazyLock;

use regex::Regex;

use super::is_host;

/// Longer names of Windows machines do not exist.
const WINDOWS_MAX: usize = 15;

#[allow(clippy::expect_used, reason = "the pattern is a constant that the tests compile")]
static NAME: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(?:^|/)CyLR_Collection_Log_\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d\.log$").expect("valid"));

const OUTPUT: &str = "Argument OutputFileName is set to ";

/// `text` gives the start of the file.
pub(super) fn is_log(file: &str, text: impl FnOnce() -> String) -> bool {
    NAME.is_match(file) && text().contains("Gathering paths to collect")
}

/// The name of the archive, which is that of the machine unless the person who ran CyLR gave another. Windows gives the
/// name of a machine in capitals.
pub(super) fn host(log: &str, windows: bool) -> Option<String> {
    let (_, rest) = log.split_once(OUTPUT)?;
    let name = rest.lines().next()?.trim().strip_suffix(".zip")?;
    let of_windows =
        name.len() <= WINDOWS_MAX && !name.contains(['.', '_']) && !name.chars().any(|c| c.is_ascii_lowercase());
    (is_host(name) && (of_windows || !windows)).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn archive_named_after_its_machine_gives_the_host() {
        let log = |name: &str| format!("2020-05-01T12:34:55 [debug] {OUTPUT}{name}\n2020-05-01T12:34:55 [debug] x\n");
        for (name, windows, expected) in [
            ("WS7.zip", true, Some("WS7")),
            ("case42.zip", true, None),
            ("WS7_TRIAGE.zip", true, None),
            ("A-VERY-LONG-NAME.zip", true, None),
            ("web-1.zip", false, Some("web-1")),
            ("web 1.zip", false, None),
            ("WS7", true, None),
        ] {
            assert_eq!(host(&log(name), windows).as_deref(), expected, "{name}");
        }
        assert_eq!(host("", true), None);
    }

    #[test]
    fn log_is_known_by_name_and_text() {
        let text = "2020-05-01T12:34:55 [info] Gathering paths to collect\n";
        for (file, text, expected) in [
            ("WS7.zip!/CyLR_Collection_Log_2020-05-01_12-34-56.log", text, true),
            ("CyLR_Collection_Log_2020-05-01_12-34-56.log", "2020-05-01T12:34:55 [info] started\n", false),
            ("CyLR_Collection_Log.log", text, false),
            ("CyLR_Collection_Log_2020-05-01_12-34-56.log/a.log", text, false),
        ] {
            assert_eq!(is_log(file, || text.to_owned()), expected, "{file}");
        }
    }
}
