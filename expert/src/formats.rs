//! The file `formats.toml` of a team folder: line formats of the user's own.

use std::path::{Path, PathBuf};

use casebook_evidence::FilePattern;
use casebook_evidence::formats::{LineFormat, Pattern, Reader, check_time};
use casebook_runtime::config::{self, Check, ConfigFaults, Form, Source};
use schemars::JsonSchema;
use serde::Deserialize;

pub const FILE: &str = "formats.toml";

/// Line formats of your own.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(title = "formats.toml")]
struct Written {
    /// A list of entries [[format]]. The first entry that matches a file counts.
    format: Vec<Entry>,
}

/// An entry such as [[format]] with name, files, pattern and examples.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Entry {
    /// A name for the format.
    #[schemars(regex(pattern = "^[a-z0-9-]{1,32}$"))]
    name: String,
    /// The path of the files, relative to the evidence folder: `*` is any part of a name, `**/` any folders.
    #[schemars(length(min = 1, max = 400))]
    files: String,
    /// A regular expression with a named group for each field: (?<user>[a-z]+). The group time is the time.
    #[schemars(length(min = 1, max = 2000))]
    pattern: String,
    /// How the group time is written, as in strptime: "%d.%m.%Y %H:%M:%S". Default: it is recognised.
    #[schemars(length(min = 1, max = 100))]
    time: Option<String>,
    /// For records of several lines: a regular expression that matches the first line of a record.
    #[schemars(length(min = 1, max = 2000))]
    begins: Option<String>,
    /// For records of several lines: a regular expression that matches the last line of a record.
    #[schemars(length(min = 1, max = 2000))]
    ends: Option<String>,
    /// Records that the pattern must match.
    #[schemars(length(min = 1, max = 20))]
    examples: Vec<String>,
}

/// The line formats in `text`, the content of `file`.
///
/// # Errors
/// The entries with faults, by line and key.
pub fn parse(file: &Path, text: &str) -> Result<(Option<PathBuf>, Vec<LineFormat>), ConfigFaults> {
    let source = Source::new(Form::Toml, file, text);
    let written: Written = source.read()?;
    let mut check = Check::default();
    let mut formats: Vec<LineFormat> = Vec::new();
    for (n, entry) in written.format.into_iter().enumerate() {
        let known = formats.iter().any(|format| format.reader.name == entry.name);
        check.at(&["format", &n.to_string()], |check| {
            if known {
                check.wrong(&["name"], format!("{:?} is the name of an earlier format; write another", entry.name));
            }
            formats.extend(format(entry, check));
        });
    }
    source.holds(check)?;
    Ok((Some(file.to_path_buf()), formats))
}

fn format(entry: Entry, check: &mut Check) -> Option<LineFormat> {
    let mut compiled = |key: &str, text: &str| Pattern::new(text).map_err(|what| check.wrong(&[key], what)).ok();
    let begins = entry.begins.as_ref().map(|text| compiled("begins", text));
    let ends = entry.ends.as_ref().map(|text| compiled("ends", text));
    let pattern = compiled("pattern", &entry.pattern);
    let names = pattern.as_ref().map(Pattern::names).unwrap_or_default();
    if pattern.is_some() && names.is_empty() {
        check.wrong(&["pattern"], "it has no named group; write one for each field, such as (?<user>[a-z]+)");
    }
    if let Some(time) = &entry.time {
        if let Err(what) = check_time(time) {
            check.wrong(&["time"], format!("{what}; write directives of strptime, such as %Y-%m-%d %H:%M:%S"));
        } else if pattern.is_some() && !names.contains(&"time") {
            check.wrong(&["time"], "the pattern has no group (?<time>…); add it, or remove this key");
        }
    }
    if ends.is_some() && begins.is_none() {
        check.wrong(&["ends"], "it needs the key begins, which matches the first line of a record");
    }
    let files = FilePattern::new(&entry.files).map_err(|what| check.wrong(&["files"], what)).ok();
    if entry.examples.is_empty() {
        check.wrong(&["examples"], "is empty; copy a line of the log, so that the pattern can be tried");
    }
    let reader = Reader { name: entry.name, pattern: pattern?, time: entry.time };
    for (n, example) in entry.examples.iter().enumerate() {
        let advice = match reader.read(example.trim_end_matches('\n')) {
            Ok(_) => continue,
            Err(what) if what.starts_with("the pattern") => {
                format!("{what}; correct the pattern, or copy a line of the log")
            }
            Err(what) => format!("{what}; correct the key time"),
        };
        check.wrong(&["examples", &n.to_string()], advice);
    }
    Some(LineFormat { files: Some(files?), reader, begins: unwrap(begins)?, ends: unwrap(ends)? })
}

/// None if there is a pattern with a fault.
fn unwrap(pattern: Option<Option<Pattern>>) -> Option<Option<Pattern>> {
    match pattern {
        Some(None) => None,
        Some(some) => Some(some),
        None => Some(None),
    }
}

/// Where an entry of the file begins, for messages about it.
pub fn place(file: &Path, text: &str, entry: usize, what: &str) -> config::ConfigFault {
    Source::new(Form::Toml, file, text).fault(&["format", &entry.to_string()], what)
}

pub fn schema() -> serde_json::Value {
    config::schema::<Written>()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTRY: &str = "[[format]]\nname = \"shop\"\nfiles = \"shop/*.log\"\n\
        pattern = '^(?<time>\\S+ \\S+) (?<user>\\S+) (?<message>.*)$'\ntime = \"%d.%m.%Y %H:%M:%S\"\n\
        examples = [\"24.12.2025 18:30:00 mara order 7 is paid\"]\n";

    fn read(text: &str) -> Result<Vec<LineFormat>, String> {
        parse(Path::new("team/formats.toml"), text).map(|(_, all)| all).map_err(|faults| faults.to_string())
    }

    #[test]
    fn format_reads_its_examples() {
        let [format] = &read(ENTRY).unwrap()[..] else { panic!() };
        let fields = format.reader.read("24.12.2025 18:30:00 mara order 7 is paid").unwrap();
        let shown: Vec<String> = fields.iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(shown, ["timestamp=2025-12-24T18:30:00", "user=mara", "message=order 7 is paid"]);
        assert!(read("").unwrap().is_empty());
    }

    #[test]
    fn fault_names_its_line_key_and_what_to_write() {
        for (text, want) in [
            (ENTRY.replace("(?<user>", "(?<user>("), "4: format.0.pattern: the pattern is not valid: unclosed group"),
            (ENTRY.replace("(?<user>", "(?=x)(?<user>"), "4: format.0.pattern: the pattern is not valid: look-around"),
            (
                ENTRY.replace("(?<user>\\S+)", "(?:\\w{1000}){1000}"),
                "4: format.0.pattern: the pattern is too large; repeat",
            ),
            (
                ENTRY.replace("?<time>", "").replace("?<user>", "").replace("?<message>", ""),
                "4: format.0.pattern: it has no named",
            ),
            (ENTRY.replace("?<time>", "?<at>"), "5: format.0.time: the pattern has no group (?<time>"),
            (ENTRY.replace("%d.", "%!."), "5: format.0.time: "),
            (ENTRY.replace("%d.%m", "%m.%d"), "6: format.0.examples.0: the time \"24.12.2025 18:30:00\" does not have"),
            (ENTRY.replace(" mara order 7 is paid", ""), "6: format.0.examples.0: the pattern does not match; correct"),
            (ENTRY.replace("shop/*", "../*"), "3: format.0.files: expected a path below the evidence folder"),
            (
                ENTRY.replace("name = \"shop\"\n", "name = \"shop\"\nends = 'x'\n"),
                "3: format.0.ends: it needs the key begins",
            ),
            (ENTRY.replace("name = \"shop\"\n", "nam = \"shop\"\n"), "2: format.0.nam: unknown key"),
            (format!("{ENTRY}{ENTRY}"), "8: format.1.name: \"shop\" is the name of an earlier format"),
        ] {
            let got = read(&text).unwrap_err();
            assert!(got.lines().any(|line| line.starts_with(&format!("team/formats.toml:{want}"))), "{want}\n{got}");
        }
    }
}
