//! Line formats: a pattern with named groups. Those of users come from `formats.toml` of the team folder, and a few
//! of well-known programs are built in.

use std::sync::LazyLock;

use jiff::fmt::strtime::{BrokenDownTime, parse};
use regex::{Regex, RegexBuilder};
use serde::{Deserialize, Serialize};

use crate::FilePattern;
use crate::classify::Belongs;

/// Bytes of a pattern, and of its compiled form. Matching takes linear time.
const PATTERN_MAX: usize = 2_000;
const COMPILED_MAX: usize = 1 << 20;
const GROUPS_MAX: usize = 40;
/// The group with the time of a record.
const TIME: &str = "time";

/// A regular expression of bounded size.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Pattern(Regex);

impl Pattern {
    /// # Errors
    /// Why it cannot be used, and what to write instead.
    pub fn new(text: &str) -> Result<Self, String> {
        if text.is_empty() || text.len() > PATTERN_MAX {
            return Err(format!("expected a pattern of 1 to {PATTERN_MAX} bytes, got {}", text.len()));
        }
        let built =
            RegexBuilder::new(text).size_limit(COMPILED_MAX).dfa_size_limit(COMPILED_MAX).nest_limit(50).build();
        match built {
            Ok(regex) if regex.captures_len() <= GROUPS_MAX => Ok(Self(regex)),
            Ok(regex) => Err(format!("expected at most {GROUPS_MAX} groups, got {}", regex.captures_len() - 1)),
            Err(regex::Error::CompiledTooBig(_)) => {
                Err("the pattern is too large; repeat fewer times, as in .* instead of .{1,1000}".to_owned())
            }
            Err(error) => {
                let whole = error.to_string();
                let why = whole.lines().last().unwrap_or_default().trim_start_matches("error: ");
                Err(format!("the pattern is not valid: {why}; the syntax is that of docs.rs/regex"))
            }
        }
    }

    /// The names of its groups.
    pub fn names(&self) -> Vec<&str> {
        self.0.capture_names().flatten().collect()
    }

    fn is_match(&self, text: &str) -> bool {
        self.0.is_match(text)
    }

    pub(crate) fn is_in(&self, line: &[u8]) -> bool {
        self.is_match(&String::from_utf8_lossy(line))
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_str() == other.0.as_str()
    }
}

impl Eq for Pattern {}

impl TryFrom<String> for Pattern {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::new(&text)
    }
}

impl From<Pattern> for String {
    fn from(pattern: Pattern) -> Self {
        pattern.0.as_str().to_owned()
    }
}

/// How to read a record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reader {
    pub name: String,
    pub pattern: Pattern,
    /// The format of the group `time`, as in strptime. None: the time is recognised.
    pub time: Option<String>,
}

impl Reader {
    /// The fields of a record: one for each group that took part. The time is `timestamp`.
    ///
    /// # Errors
    /// The pattern does not match, or the time does not have its format.
    pub fn read(&self, text: &str) -> Result<Vec<(String, String)>, String> {
        let found = self.pattern.0.captures(text).ok_or("the pattern does not match")?;
        let mut fields = Vec::new();
        for name in self.pattern.0.capture_names().flatten() {
            let Some(value) = found.name(name).map(|group| group.as_str()) else { continue };
            if name != TIME {
                fields.push((name.to_owned(), value.to_owned()));
                continue;
            }
            let moment = match &self.time {
                Some(format) => moment(format, value)
                    .ok_or_else(|| format!("the time {value:?} does not have the format {format:?}"))?,
                None => value.to_owned(),
            };
            fields.push(("timestamp".to_owned(), moment));
        }
        Ok(fields)
    }
}

/// The time in a form that is read everywhere.
fn moment(format: &str, text: &str) -> Option<String> {
    let mut time = parse(format, text).ok()?;
    if let Ok(stamp) = time.to_timestamp() {
        return Some(stamp.to_string());
    }
    if time.year().is_some() {
        let day_only = time.hour().is_none();
        let day = time.to_date().map(|date| date.to_string());
        return if day_only { day.ok() } else { time.to_datetime().map(|t| t.to_string()).ok() };
    }
    // A leap year has every day.
    time.set_year(Some(2000)).ok()?;
    Some(time.to_datetime().ok()?.strftime("%b %d %H:%M:%S%.f").to_string())
}

/// Whether a time can be written in this format.
///
/// # Errors
/// Why not.
pub fn check_time(format: &str) -> Result<(), String> {
    let sample = BrokenDownTime::from(jiff::civil::date(2025, 12, 24).at(18, 30, 0, 0));
    let zoned = jiff::Timestamp::UNIX_EPOCH.to_zoned(jiff::tz::TimeZone::UTC);
    let written = sample.to_string(format).or_else(|_| BrokenDownTime::from(&zoned).to_string(format));
    written.map(|_| ()).map_err(|error| error.to_string())
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineFormat {
    /// None: any file whose records fit.
    pub files: Option<FilePattern>,
    pub reader: Reader,
    /// Matches the first line of a record. Other lines belong to the record before.
    pub begins: Option<Pattern>,
    /// Matches the last line of a record.
    pub ends: Option<Pattern>,
}

/// The Expert that reads a source, what wrote it, and why.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct About {
    domain: String,
    sensor: String,
    what: String,
}

/// What a built-in format is.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct BuiltIn {
    #[serde(flatten)]
    reader: Reader,
    begins: Option<Pattern>,
    ends: Option<Pattern>,
    /// None: by the content.
    #[serde(default)]
    belongs: Option<About>,
}

#[derive(Debug, Deserialize)]
struct Table {
    format: Vec<BuiltIn>,
}

#[allow(clippy::expect_used, reason = "the table is a constant that the tests read")]
static BUILT_IN: LazyLock<Vec<(LineFormat, BuiltIn)>> = LazyLock::new(|| {
    let table: Table = toml::from_str(include_str!("../formats.toml")).expect("formats.toml is valid");
    let format = |one: BuiltIn| {
        let (reader, begins, ends) = (one.reader.clone(), one.begins.clone(), one.ends.clone());
        (LineFormat { files: None, reader, begins, ends }, one)
    };
    table.format.into_iter().map(format).collect()
});

/// The built-in format of these first lines of a file.
pub(crate) fn of_lines(lines: &[&str]) -> Option<&'static LineFormat> {
    BUILT_IN.iter().map(|(format, _)| format).find(|format| format.fits(lines))
}

/// What a source of a built-in format is. The names of users' formats have no blanks.
pub(crate) fn belongs(name: &str) -> Option<Belongs> {
    let (_, found) = BUILT_IN.iter().find(|(format, _)| format.reader.name == name)?;
    let About { domain, sensor, what } = found.belongs.as_ref()?;
    Some(Belongs { domain, reason: what.clone(), sensor: sensor.clone(), on_host: true, time: None })
}

impl LineFormat {
    /// True if nearly all records follow the format. The last may be cut off.
    fn fits(&self, lines: &[&str]) -> bool {
        let mut records: Vec<String> = Vec::new();
        for line in lines {
            match (&self.begins, records.last_mut()) {
                (Some(begins), Some(last)) if !begins.is_match(line) => {
                    last.push('\n');
                    last.push_str(line);
                }
                _ => records.push((*line).to_owned()),
            }
        }
        let fit = records.iter().filter(|record| self.reader.read(record).is_ok()).count();
        fit > 0 && fit * 10 >= records.len() * 7
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_table_is_valid() {
        assert!(BUILT_IN.len() >= 3);
        BUILT_IN
            .iter()
            .for_each(|(format, _)| assert!(format.reader.time.as_ref().is_none_or(|t| check_time(t).is_ok())));
    }

    #[test]
    fn times_are_read_by_their_format() {
        for (format, text, read) in [
            ("%d.%m.%Y %H:%M:%S%.f", "24.12.2025 18:30:00.250", "2025-12-24T18:30:00.25"),
            ("%Y-%m-%d %H:%M:%S %z", "2025-12-24 18:30:00 +0100", "2025-12-24T17:30:00Z"),
            ("%b %d %H:%M:%S", "Dec 24 18:30:00", "Dec 24 18:30:00"),
            ("%s", "1766597400", "2025-12-24T17:30:00Z"),
            ("%Y%m%d", "20251224", "2025-12-24"),
        ] {
            assert_eq!(moment(format, text).as_deref(), Some(read), "{format}");
            assert_eq!(check_time(format), Ok(()), "{format}");
        }
        assert_eq!(moment("%d.%m.%Y", "12/24/2025"), None);
        assert!(check_time("%Q-%!").is_err());
    }

    #[test]
    fn hostile_patterns_are_bounded() {
        let large = "x".repeat(PATTERN_MAX + 1);
        let nested = "(".repeat(60) + &")".repeat(60);
        let groups = "(a)".repeat(GROUPS_MAX + 1);
        for text in ["", &large, &nested, &groups, r"\w{1000}{1000}", "(?=a)b", r"(a)\1", "(?<a>.)(?<a>.)", "[", "a**{"]
        {
            assert!(Pattern::new(text).is_err(), "{text}");
        }
        let slow = Pattern::new("^(a+)+$").unwrap();
        assert!(!slow.is_match(&("a".repeat(1 << 20) + "b")), "an engine that backtracks does not end");
    }
}
