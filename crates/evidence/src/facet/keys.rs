//! Keys of processes, by which records of one process and its children are found.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::Regex;

use super::{Class, Facet, Facets, last};

/// The keys of the process that acts in a record, and those of its parent. Two records with a common key are of one
/// process, unless the system gave its number to another process between them.
pub fn process_keys(fields: &BTreeMap<String, String>, facets: &Facets) -> (Vec<String>, Vec<String>) {
    let host = facets.get(Facet::Host).unwrap_or("").to_ascii_lowercase();
    let mut own = Vec::new();
    let mut parent = Vec::new();
    // In a process start of the Security log, `ProcessId` is the parent.
    let started = fields.iter().any(|(path, value)| last(path, 1) == "newprocessid" && !value.is_empty());
    let starts = facets.class == Some(Class::ProcessStart);
    for (path, value) in fields {
        let value = value.trim();
        // In the tables of EvtxECmd it is the process that wrote the event.
        let of_table = path == "ProcessId" && fields.contains_key("ChunkNumber");
        if value.is_empty() || value == "0" || value == "0x0" || value == "-" || of_table || by_the_writer(path) {
            continue;
        }
        let (one, two) = (last(path, 1), last(path, 2));
        // The Security log writes process ids in hexadecimal, other sensors in decimal.
        let id = || number(value).map_or_else(|| value.to_owned(), |n| n.to_string());
        match one.as_str() {
            "processid" if started => parent.push(format!("{host}#{}", id())),
            "processguid" | "sourceprocessguid" => own.push(value.to_ascii_lowercase()),
            "parentprocessguid" => parent.push(value.to_ascii_lowercase()),
            "execid" if two != "parent.execid" => own.push(value.to_owned()),
            "parentexecid" if two != "parent.parentexecid" => parent.push(value.to_owned()),
            // In other records, the target existed before.
            "targetprocessid" | "tgtprocpid" if starts => own.push(format!("{host}#{}", id())),
            // The acting program, for sensors that name it beside the affected one.
            "initiatingprocessid" | "actingprocessid" | "srcprocpid" if starts => {
                parent.push(format!("{host}#{}", id()))
            }
            "pid"
            | "processid"
            | "newprocessid"
            | "createdprocessid"
            | "initiatingprocessid"
            | "actingprocessid"
            | "srcprocpid"
                if !matches!(two.as_str(), "parent.pid" | "container.pid") =>
            {
                own.push(format!("{host}#{}", id()))
            }
            "ppid" | "parentprocessid" | "parentpid" | "creatorprocessid" | "createdprocessparentid" => {
                parent.push(format!("{host}#{}", id()))
            }
            // The process table of osquery.
            "parent" if two == "columns.parent" => parent.push(format!("{host}#{}", id())),
            _ => {}
        }
    }
    (own, parent)
}

/// Windows adds to each record the process that wrote it, which is the logging service.
fn by_the_writer(path: &str) -> bool {
    let path = path.to_ascii_lowercase();
    path.contains("execution") || path.contains("winlog.process")
}

/// A decimal or hexadecimal number.
pub fn number(text: &str) -> Option<u64> {
    let text = text.trim();
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// Time and number of the Linux audit event of which the record is a line.
pub fn audit_event(fields: &BTreeMap<String, String>) -> Option<String> {
    Some(format!("{}:{}", fields.get("audit.time")?, fields.get("audit.serial")?))
}

/// Ids of jobs, runs, scans and tickets that the record names. Other systems know the activity by them.
pub fn job_ids(fields: &BTreeMap<String, String>, facets: &Facets, text: &str) -> Vec<String> {
    const NAMES: &str =
        "job jobid buildid pipelineid runid taskid scanid changeid ticket revision commit correlationid";
    /// A record with so few fields is a line of text.
    const PLAIN: usize = 8;
    let commands = [Facet::Command, Facet::ParentCommand].into_iter().filter_map(|facet| facets.get(facet));
    let texts = commands.chain(Some(text).filter(|_| fields.len() <= PLAIN));
    let named = fields.iter().filter(|(path, _)| NAMES.split(' ').any(|name| name == last(path, 1)));
    let named = named.map(|(_, value)| value.as_str());
    let named = named.filter(|v| (5..=64).contains(&v.len()) && v.contains(|c: char| c.is_ascii_digit()));
    texts.flat_map(|text| UUID.find_iter(text)).map(|id| id.as_str()).chain(named).map(str::to_owned).collect()
}

#[allow(clippy::expect_used, reason = "the pattern is a constant that the tests compile")]
static UUID: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?i)\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b").expect("a UUID is a regular expression")
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_jobs_are_those_by_which_other_systems_know_the_activity() {
        let of = |fields: &[(&str, &str)], text: &str| {
            let fields = fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            job_ids(&fields, &Facets::read(&fields, text), text)
        };
        let id = "5d3be0a1-8d5b-4f7e-a9a1-1c2b1a6f0d11";
        assert_eq!(of(&[("CommandLine", &format!("backup.exe -session {id}"))], ""), [id]);
        assert_eq!(of(&[("message", "x")], &format!("[Session {id}] removed")), [id]);
        assert_eq!(of(&[("job", "918233"), ("pid", "918234"), ("ProcessGuid", id)], ""), ["918233"]);
        assert!(of(&[("job", "cron"), ("build_id", "7")], "").is_empty());
    }
}
