//! Attacks inside an innocent process: the demo's evidence with records added or changed. No attack may be dismissed.
//! Harmless changes must stay dismissible, so that the rule is not merely "never".

use std::path::{Path, PathBuf};

use casebook_protocol::{Report, Verdict};
use serde_json::Value;

use crate::{Result, run};

const ATTACKS: &str = include_str!("../deceive/attacks.txt");
const BENIGN: &str = include_str!("../deceive/benign.txt");
const ELSEWHERE: &str = include_str!("../deceive/cases.txt");
const SENSOR: &str = "endpoint_process.ndjson";

pub struct Variant {
    pub name: &'static str,
    lines: Vec<&'static str>,
}

pub fn attacks() -> Vec<Variant> {
    read(ATTACKS)
}

pub fn benign() -> Vec<Variant> {
    read(BENIGN)
}

/// Attacks beside the records of other cases, whose name is before the colon.
pub fn elsewhere() -> Vec<Variant> {
    read(ELSEWHERE)
}

fn read(text: &'static str) -> Vec<Variant> {
    let variant = |text: &'static str| {
        let mut lines = text.lines();
        Variant { name: lines.next().unwrap_or_default(), lines: lines.filter(|line| !line.is_empty()).collect() }
    };
    text.split("\n=== ").skip(1).map(variant).collect()
}

impl Variant {
    /// Writes the case at `case` with the changes of the variant to `folder`.
    ///
    /// # Errors
    /// A line of the variant cannot be read, or a file cannot be read or written.
    pub fn write(&self, case: &Path, folder: &Path) -> Result<()> {
        copy(case, folder)?;
        for line in &self.lines {
            let (rest, kind) = (line.get(1..).unwrap_or_default(), line.chars().next());
            match kind {
                Some('+') => add(folder, rest)?,
                Some('!') => replace(folder, rest)?,
                Some('*') => clone(folder, rest)?,
                _ => return Err(format!("{}: expected `+`, `!` or `*` before {line:?}", self.name).into()),
            }
        }
        Ok(())
    }

    /// Investigates the case at `case` with the changes of the variant.
    ///
    /// # Errors
    /// Those of [`Variant::write`], or the investigation fails.
    pub fn investigate(&self, case: &Path) -> Result<Report> {
        let folder = tempfile::tempdir()?;
        self.write(case, folder.path())?;
        run::investigate_case(folder.path())
    }

    /// The case that the name names.
    pub fn case(&self, cases: &Path) -> PathBuf {
        cases.join(self.name.split(':').next().unwrap_or_default())
    }
}

pub(crate) fn copy(case: &Path, folder: &Path) -> Result<()> {
    std::fs::create_dir_all(folder.join("evidence"))?;
    std::fs::create_dir_all(folder.join("team"))?;
    std::fs::copy(case.join("alert.json"), folder.join("alert.json"))?;
    for entry in std::fs::read_dir(case.join("evidence"))?.flatten() {
        let (bytes, file) = (std::fs::read(entry.path())?, folder.join("evidence").join(entry.file_name()));
        std::fs::write(file, bytes)?;
    }
    let sources = folder.join("team/sources.toml");
    match std::fs::read_to_string(case.join("team/sources.toml")) {
        Ok(text) => std::fs::write(sources, text)?,
        // Every log is an independent sensor: the rules about sensors stop nothing.
        Err(_) => {
            let mut text = String::new();
            for entry in std::fs::read_dir(case.join("evidence"))?.flatten() {
                let name = entry.file_name().to_string_lossy().into_owned();
                text.push_str(&format!(
                    "[[source]]\nfiles = \"{name}\"\nsensor = \"{name}\"\non_alerted_host = false\nconfirmed = true\n\n"
                ));
            }
            std::fs::write(sources, text)?;
        }
    }
    Ok(())
}

/// Adds a record by time: `56:11.004 process_start 30001<13072 {…}`.
fn add(folder: &Path, line: &str) -> Result<()> {
    let mut words = line.splitn(4, ' ');
    let mut word = || words.next().ok_or_else(|| format!("expected time, event, process and fields, got {line:?}"));
    let (time, event, process, fields) = (word()?, word()?, word()?, word()?);
    let (pid, ppid) = process.split_once('<').unwrap_or((process, "13072"));
    let rest = fields.trim_start_matches('{');
    let record = format!(
        r#"{{"time":"2026-11-21T23:{time}Z","event":"{event}","host":"devbox-mara","pid":{pid},"ppid":{ppid},"uid":0,"user":"root",{rest}"#
    );
    let mut record: Value = serde_json::from_str(&record.replace(r#""pid":0,"ppid":0,"#, ""))?;
    // The sensor also names what started a process.
    if let (Value::Object(fields), "13072") = (&mut record, ppid) {
        fields.insert("parent_exe".to_owned(), "/usr/bin/dash".into());
        fields.insert("parent_command_line".to_owned(), "/bin/sh -e /usr/share/initramfs-tools/hooks/kmod".into());
    }
    let record = record.to_string();
    insert(folder, SENSOR, &record, |other| other.get(..36) > record.get(..36))
}

/// Inserts a line before the first for which `later` is true, and moves the line that the alert points to.
fn insert(folder: &Path, name: &str, line: &str, later: impl Fn(&str) -> bool) -> Result<()> {
    let (file, alert) = (folder.join("evidence").join(name), folder.join("alert.json"));
    let text = std::fs::read_to_string(&file)?;
    let mut lines: Vec<&str> = text.lines().collect();
    let place = lines.iter().position(|other| later(other)).unwrap_or(lines.len());
    lines.insert(place, line);
    std::fs::write(&file, lines.join("\n") + "\n")?;
    let mut value: Value = serde_json::from_slice(&std::fs::read(&alert)?)?;
    if let Some(pointed) =
        value.pointer_mut("/event_ref").filter(|p| p["file"].as_str().is_some_and(|f| f.ends_with(name)))
        && let Some(number) = pointed["line"].as_u64().filter(|number| *number > place as u64)
    {
        pointed["line"] = (number + 1).into();
    }
    Ok(std::fs::write(&alert, serde_json::to_vec_pretty(&value)?)?)
}

/// Replaces a text: `file from to`. `*` is every file, and the alert.
fn replace(folder: &Path, line: &str) -> Result<()> {
    let mut words = line.splitn(3, ' ');
    let mut word = || words.next().ok_or_else(|| format!("expected a file and two texts, got {line:?}"));
    let (name, from, to) = (word()?, word()?, word()?);
    let mut found = false;
    let logs = std::fs::read_dir(folder.join("evidence"))?.flatten().map(|entry| entry.path());
    for file in logs.chain([folder.join("alert.json"), folder.join("team/sources.toml")]) {
        let text = String::from_utf8_lossy(&std::fs::read(&file)?).into_owned();
        if (name == "*" || file.ends_with(name)) && text.contains(from) {
            std::fs::write(&file, text.replace(from, to))?;
            found = true;
        }
    }
    if found { Ok(()) } else { Err(format!("no {name} has {from:?}").into()) }
}

/// Repeats a record after itself with another text in it: `file:line from to`.
fn clone(folder: &Path, line: &str) -> Result<()> {
    let mut words = line.splitn(3, ' ');
    let mut word = || words.next().ok_or_else(|| format!("expected a record and two texts, got {line:?}"));
    let (place, from, to) = (word()?, word()?, word()?);
    let (name, number) = place.split_once(':').ok_or("expected file:line")?;
    let text = std::fs::read_to_string(folder.join("evidence").join(name))?;
    let record = text.lines().nth(number.parse::<usize>()?.saturating_sub(1)).ok_or("the file is shorter")?;
    if !record.contains(from) {
        return Err(format!("{place} has no {from:?}").into());
    }
    let mut passed = 0;
    let after = std::cell::RefCell::new(&mut passed);
    let wanted = number.parse::<usize>()?;
    insert(folder, name, &record.replace(from, to), |_| {
        let mut passed = after.borrow_mut();
        **passed += 1;
        **passed > wanted
    })
}

/// Investigates all variants, two at a time: each with its verdict.
///
/// # Errors
/// A variant cannot be investigated.
pub fn verdicts(variants: &[Variant], case: impl Fn(&Variant) -> PathBuf + Sync) -> Result<Vec<(&str, Report)>> {
    let half = variants.len().div_ceil(2).max(1);
    let work = &|part: &[Variant]| -> std::result::Result<Vec<Report>, String> {
        part.iter().map(|v| v.investigate(&case(v)).map_err(|e| format!("{}: {e}", v.name))).collect()
    };
    std::thread::scope(|scope| {
        let parts: Vec<_> = variants.chunks(half).map(|part| scope.spawn(move || work(part))).collect();
        let mut all = Vec::new();
        for (part, handle) in variants.chunks(half).zip(parts) {
            let reports = handle.join().map_err(|_| "an investigation panicked")??;
            all.extend(part.iter().map(|v| v.name).zip(reports));
        }
        Ok(all)
    })
}

pub fn dismissed(report: &Report) -> bool {
    matches!(report.verdict, Verdict::BenignPositive | Verdict::FalsePositive)
}
