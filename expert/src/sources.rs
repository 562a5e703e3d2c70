//! The file `sources.toml` of a team folder: what wrote the evidence, and which package sources are trusted.

use std::path::Path;

use casebook_evidence::{Declared, FilePattern, SourceRule, Zone};
use casebook_protocol::closed::Closed;
use casebook_protocol::{ActKind, Domain};
use casebook_runtime::config::{self, Check, ConfigFaults, Form, Source};
use casebook_trust::package::PackageSource;
use schemars::JsonSchema;
use serde::Deserialize;

pub const FILE: &str = "sources.toml";

/// What wrote the evidence, and which package sources are trusted.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(title = "sources.toml")]
struct Written {
    /// A list of entries [[source]]. The first entry that matches a file counts.
    source: Vec<Entry>,
    /// Other systems that are trusted.
    trusted: Trusted,
}

/// An entry such as [[source]] with files, sensor and on_alerted_host.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Entry {
    /// The path of the files, relative to the evidence folder: `*` is any part of a name, `**/` any folders.
    #[schemars(length(min = 1, max = 400))]
    files: String,
    /// A name for the system that wrote the files. Entries with the same sensor are one sensor.
    #[schemars(length(min = 1, max = 80))]
    sensor: String,
    /// True if a process on the described host could have written these records, even as root.
    on_alerted_host: bool,
    /// The kinds of acts on these hosts that the sensor records in full, such as ["process", "connection"].
    #[serde(default)]
    #[schemars(with = "Vec<String>", extend("items" = {"type": "string", "enum": kinds()}))]
    records: Vec<ActKind>,
    /// The hosts that the sensor watches; default: those that its records name.
    #[serde(default)]
    hosts: Vec<String>,
    /// The domain whose Expert reads the files; default: by their content.
    #[schemars(with = "Option<String>", regex(pattern = "^[a-z0-9-]{1,32}$"))]
    domain: Option<Domain>,
    /// The zone of times that have none: "UTC", "+02:00" or "Europe/Berlin"; default: by the evidence and the alert.
    #[schemars(length(min = 1, max = 64))]
    zone: Option<String>,
    /// The year of the first record, if times have no year; default: by the evidence and the alert.
    #[schemars(range(min = 1970, max = 2200))]
    year: Option<i16>,
    /// The field that has the time of a record, as `casebook sources` shows it; default: by names and values.
    #[schemars(length(min = 1, max = 200))]
    time_field: Option<String>,
    /// True after a person has checked the entry. Until then it counts as a guess.
    #[serde(default)]
    confirmed: bool,
}

/// A table such as [trusted] with package_sources.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct Trusted {
    /// A list of addresses whose packages are trusted, such as ["http://deb.example.org/debian/"].
    package_sources: Vec<String>,
}

fn kinds() -> Vec<&'static str> {
    ActKind::VALUES.iter().map(|kind| kind.name()).collect()
}

/// What `text`, the content of `file`, declares.
pub fn parse(file: &Path, text: &str) -> Result<Declared, ConfigFaults> {
    let source = Source::new(Form::Toml, file, text);
    let written: Written = source.read()?;
    let mut check = Check::default();
    let mut declared = Declared { file: Some(file.to_path_buf()), ..Declared::default() };
    for (n, entry) in written.source.into_iter().enumerate() {
        check.at(&["source", &n.to_string()], |check| declared.rules.extend(rule(entry, check)));
    }
    for (n, url) in written.trusted.package_sources.iter().enumerate() {
        match PackageSource::new(url) {
            Ok(trusted) => declared.package_sources.push(trusted.prefix()),
            Err(what) => check.wrong(&["trusted", "package_sources", &n.to_string()], what),
        }
    }
    source.holds(check)?;
    Ok(declared)
}

fn rule(entry: Entry, check: &mut Check) -> Option<SourceRule> {
    check.text("sensor", &entry.sensor, 80);
    for (n, _) in entry.hosts.iter().enumerate().filter(|(_, host)| host.trim().is_empty()) {
        check.wrong(&["hosts", &n.to_string()], "is empty; write the name of a host, or leave it out");
    }
    let files = FilePattern::new(&entry.files).map_err(|what| check.wrong(&["files"], what)).ok()?;
    let zone = entry.zone.as_ref().and_then(|name| Zone::new(name).map_err(|what| check.wrong(&["zone"], what)).ok());
    check.number("year", entry.year, 1970..=2200);
    if let Some(field) = &entry.time_field {
        check.text("time_field", field, 200);
    }
    let Entry { sensor, on_alerted_host, records, hosts, domain, year, time_field, confirmed, .. } = entry;
    Some(SourceRule { files, sensor, on_alerted_host, records, hosts, domain, zone, year, time_field, confirmed })
}

/// Where an entry of the file begins, for messages about it.
pub fn place(file: &Path, text: &str, entry: usize, what: &str) -> config::ConfigFault {
    Source::new(Form::Toml, file, text).fault(&["source", &entry.to_string()], what)
}

pub fn schema() -> serde_json::Value {
    config::schema::<Written>()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Declared, String> {
        parse(Path::new("team/sources.toml"), text).map_err(|faults| faults.to_string())
    }

    const ENTRY: &str = "[[source]]\nfiles = \"proxy.log\"\nsensor = \"proxy01\"\non_alerted_host = false\n";

    #[test]
    fn entries_and_trusted_sources_are_read() {
        let more = "records = [\"connection\"]\nhosts = [\"web1\"]\ndomain = \"network\"\nzone = \"+02:00\"\nyear = 2024\ntime_field = \"ts\"\nconfirmed = true\n";
        let trusted = "[trusted]\npackage_sources = [\"http://deb.example.org/debian/\"]\n";
        let declared = read(&format!("{ENTRY}{more}{ENTRY}{trusted}")).unwrap();
        let [first, second] = &declared.rules[..] else { panic!("{declared:?}") };
        assert_eq!((first.records.as_slice(), first.confirmed), (&[ActKind::Connection][..], true));
        assert_eq!(
            (first.hosts.as_slice(), first.domain.as_ref().unwrap().as_str()),
            (&["web1".into()][..], "network")
        );
        assert_eq!((first.zone.as_ref().unwrap().to_string().as_str(), first.year), ("+02:00", Some(2024)));
        assert_eq!(first.time_field.as_deref(), Some("ts"));
        assert!(!second.confirmed && second.records.is_empty());
        assert_eq!(declared.package_sources, ["http://deb.example.org/debian/"]);
        assert_eq!(declared.file.as_deref(), Some(Path::new("team/sources.toml")));
        assert_eq!(read("").unwrap().rules, []);
    }

    #[test]
    fn a_fault_names_its_line() {
        for (text, want) in [
            (format!("{ENTRY}on_host = true\n"), "5: source.0.on_host: unknown key"),
            (
                "[[source]]\nfiles = \"x\"\nsensor = \"s\"\n".into(),
                "1: source.0.on_alerted_host: is missing; write true if",
            ),
            (ENTRY.replace("proxy.log", "../x"), "2: source.0.files: expected a path below the evidence folder"),
            (ENTRY.replace("proxy01", " "), "3: source.0.sensor: is empty"),
            (format!("{ENTRY}records = [\"process\", \"dns\"]\n"), "5: source.0.records.1: "),
            (format!("{ENTRY}domain = \"A b\"\n"), "5: source.0.domain: "),
            (
                format!("{ENTRY}zone = \"Berlin\"\n"),
                "5: source.0.zone: \"Berlin\" is not a time zone; write UTC, an offset",
            ),
            (format!("{ENTRY}year = 24\n"), "5: source.0.year: "),
            (format!("{ENTRY}time_field = \" \"\n"), "5: source.0.time_field: is empty"),
            (format!("{ENTRY}hosts = [\"\"]\n"), "5: source.0.hosts.0: is empty"),
            ("[trusted]\npackage_sources = [\n  \"deb.example.org\"]".into(), "3: trusted.package_sources.0: expected"),
        ] {
            let got = read(&text).unwrap_err();
            assert!(got.starts_with(&format!("team/sources.toml:{want}")), "{got}");
        }
    }
}
