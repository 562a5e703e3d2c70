//! Hides a case in noise: copies of its records with the names of other hosts, users and addresses. The events that
//! matter must stay on the Timeline.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use casebook_evidence::Catalog;
use casebook_evidence::facet::{Facet, Facets};
use casebook_protocol::Report;
use regex::{Captures, Regex};

use crate::score::{self, Score};
use crate::{Result, deceive, run};

/// Hosts and users of other names that the copies are about.
const OTHERS: usize = 500;
/// Accounts that every host has.
const SYSTEM: [&str; 3] = ["root", "system", "nt authority\\system"];

struct Names {
    /// Finds the names of hosts, users and addresses, the longest first.
    known: Regex,
    /// Finds numbers of processes, and ids.
    numbers: Regex,
}

impl Names {
    fn of(catalog: &Catalog) -> Result<Self> {
        let mut names = BTreeSet::new();
        for source in catalog.sources() {
            for line in 1..=source.records {
                let Ok(record) = catalog.record(&source.file, line) else { continue };
                let facets = Facets::read(&record.fields().into_iter().collect::<BTreeMap<_, _>>(), &record.text());
                for facet in [Facet::Host, Facet::User, Facet::SrcIp, Facet::DstIp] {
                    let own = |name: &&str| name.len() > 2 && !SYSTEM.contains(&name.to_lowercase().as_str());
                    names.extend(facets.get(facet).filter(own).map(str::to_owned));
                }
            }
        }
        let mut names: Vec<String> = names.iter().map(|name| regex::escape(name)).collect();
        names.sort_by_key(|name| std::cmp::Reverse(name.len()));
        Ok(Self {
            known: Regex::new(&format!(r"(?i)\b(?:{})\b", names.join("|")))?,
            numbers: Regex::new(
                r#"(?i)(\w*p(?:roc(?:ess)?_?)?id\w*"?\s*[:=\[]\s*"?|\[)(\d{1,7})\b|[0-9a-f]{8}-[0-9a-f-]{27}"#,
            )?,
        })
    }

    /// The record as one about something else.
    fn renamed(&self, line: &str, other: usize) -> String {
        let named = self.known.replace_all(line, |found: &Captures<'_>| {
            let name = &found[0];
            let mark = name.bytes().fold(other, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
            match name.parse::<std::net::Ipv4Addr>() {
                Ok(_) => format!("10.{}.{}.{}", 100 + mark % 100, mark / 100 % 250, 1 + mark / 25_000 % 250),
                Err(_) => format!("n{:x}", mark % 0xff_ffff),
            }
        });
        let changed = self.numbers.replace_all(&named, |found: &Captures<'_>| match (found.get(1), found.get(2)) {
            (Some(before), Some(number)) => {
                let number: usize = number.as_str().parse().unwrap_or(0);
                format!("{}{}", before.as_str(), number + 100_000 + other * 7)
            }
            _ => format!("{other:08x}{}", &found[0][8..]),
        });
        changed.into_owned()
    }
}

/// Writes the case at `case` to `folder`, with at least `records` records of noise at the ends of its files.
///
/// # Errors
/// A file cannot be read or written.
pub fn write(case: &Path, folder: &Path, records: usize) -> Result<()> {
    deceive::copy(case, folder)?;
    let index = tempfile::tempdir()?;
    let catalog = Catalog::open_in(&case.join("evidence"), index.path(), None, &mut |_| {})?;
    let names = Names::of(&catalog)?;
    let mut files: Vec<(String, Vec<String>)> = Vec::new();
    for source in catalog.sources() {
        let file = folder.join("evidence").join(&source.file);
        let text = std::fs::read_to_string(&file)?;
        files.push((source.file.clone(), text.lines().map(str::to_owned).collect()));
    }
    let all: usize = files.iter().map(|(_, lines)| lines.len()).sum();
    let copies = records.div_ceil(all.max(1));
    for (name, lines) in files {
        let mut text = lines.join("\n") + "\n";
        for copy in 0..copies {
            for (place, line) in lines.iter().enumerate() {
                // A copy of all records with one name would be a second case.
                let about = names.renamed(line, (copy * 31 + place) % OTHERS);
                if about != *line {
                    text.push_str(&about);
                    text.push('\n');
                }
            }
        }
        std::fs::write(folder.join("evidence").join(name), text)?;
    }
    Ok(())
}

/// Investigates the case at `case` among `records` records of noise.
///
/// # Errors
/// Those of [`write`], or the investigation fails.
pub fn investigate(case: &Path, records: usize) -> Result<(Report, Score)> {
    let folder = tempfile::tempdir()?;
    write(case, folder.path(), records)?;
    let report = run::investigate_case(folder.path())?;
    std::fs::copy(case.join("truth.json"), folder.path().join("truth.json"))?;
    let score = score::score(folder.path(), &report)?;
    Ok((report, score))
}
