//! Triage collections: what a tool copied from one host. Their layout names the host of records that name none.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use regex::Regex;

use crate::fields::json;
use crate::prepare::Prepared;
use crate::source::{Format, Skipped};
use crate::text::head;

/// Files with one reason that are named, before they are counted.
const NAMED: usize = 10;
const HEAD: u64 = 64 << 10;

#[allow(clippy::expect_used, reason = "the pattern is a constant that the tests compile")]
static UAC: LazyLock<Regex> = LazyLock::new(|| {
    let systems = "aix|esxi|freebsd|linux|macos|netbsd|netscaler|openbsd|solaris";
    Regex::new(&format!(r"^uac-(.+)-(?:{systems})-\d{{14}}(?:\.tar\.gz|\.tar|\.zip)?!?$")).expect("valid")
});

/// A folder or archive, with the host that it was made of.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Collection {
    prefix: String,
    tool: &'static str,
    host: String,
}

/// Gives the host of its collection to each source whose records name no host.
pub(crate) fn name_hosts(all: &mut [Prepared]) {
    let found = find(all);
    for prepared in all.iter_mut().filter(|prepared| prepared.hosts.is_empty()) {
        let within = found.iter().filter(|one| prepared.found.file.starts_with(&one.prefix));
        let Some(Collection { tool, host, .. }) = within.max_by_key(|one| one.prefix.len()) else { continue };
        prepared.notes.push(format!("its records name no host: {host} is the host of the {tool}"));
        prepared.hosts = vec![host.clone()];
    }
}

fn find(all: &[Prepared]) -> BTreeSet<Collection> {
    let mut found = BTreeSet::new();
    let mut disks: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for prepared in all {
        let file = prepared.found.file.as_str();
        found.extend(of_uac(file));
        if let Some(prefix) = file.strip_suffix("client_info.json")
            && all.iter().any(|other| other.found.file == format!("{prefix}collection_context.json"))
            && let Some(host) = velociraptor(prepared)
        {
            found.insert(Collection { prefix: prefix.to_owned(), tool: "Velociraptor collection", host });
        }
        if let Some(prefix) = of_disk(file).filter(|_| prepared.detected.shape.format == Format::Evtx) {
            disks.entry(prefix).or_default().extend(prepared.hosts.iter().map(String::as_str));
        }
    }
    for (prefix, hosts) in disks {
        // Forwarded events are of other hosts, and then it is unclear which is the host of the disk.
        if let [host] = hosts.into_iter().collect::<Vec<_>>()[..] {
            let (prefix, host) = (prefix.to_owned(), host.to_owned());
            found.insert(Collection { prefix, tool: "copy of a Windows disk, by its event logs", host });
        }
    }
    found
}

/// UAC names the archive, and the folder in it, after the host.
fn of_uac(file: &str) -> Option<Collection> {
    let mut end = 0;
    for part in file.split_inclusive('/') {
        end += part.len();
        if let Some(name) = UAC.captures(part.trim_end_matches('/')) {
            let host = name.get(1)?.as_str().to_owned();
            return Some(Collection { prefix: file.get(..end)?.to_owned(), tool: "UAC collection", host });
        }
    }
    None
}

/// The name of the host in `client_info.json`.
fn velociraptor(info: &Prepared) -> Option<String> {
    let text = head(&info.body.path, HEAD).ok()?;
    let mut host = None;
    let _ = json::flatten(&String::from_utf8_lossy(&text), "", &mut |path, value| {
        let name = path.rsplit('.').next().unwrap_or_default();
        if host.is_none() && name.eq_ignore_ascii_case("hostname") && !value.is_empty() {
            host = Some(value.into_owned());
        }
    });
    host
}

/// What comes before the drive, as KAPE, CyLR and Velociraptor copy it.
fn of_disk(file: &str) -> Option<&str> {
    let lower = file.to_ascii_lowercase();
    let at = lower.find("windows/system32/winevt/")?;
    let above = lower.get(..at)?.strip_suffix('/')?;
    let drive = above.rsplit('/').next()?;
    let is_drive = matches!(drive.trim_end_matches(':').trim_end_matches("%3a"), "c" | "d" | "e");
    is_drive.then(|| file.get(..at - 1 - drive.len())).flatten()
}

/// Counts files that are skipped for one reason, if they are many. Members of archives are counted already.
pub(crate) fn counted(skipped: Vec<Skipped>) -> Vec<Skipped> {
    let mut by_reason: BTreeMap<String, Vec<Skipped>> = BTreeMap::new();
    let (whole, mut out): (Vec<Skipped>, Vec<Skipped>) = skipped.into_iter().partition(|s| !s.in_part);
    for one in whole {
        by_reason.entry(one.reason.clone()).or_default().push(one);
    }
    for (reason, mut files) in by_reason {
        files.sort_by(|a, b| a.file.cmp(&b.file));
        let more = files.len().saturating_sub(1);
        if files.len() <= NAMED {
            out.append(&mut files);
        } else if let Some(first) = files.first() {
            out.push(Skipped::new(&first.file, format!("{reason}; so are {more} other files")));
        }
    }
    out.sort_by(|a, b| a.file.cmp(&b.file));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_uac_give_the_host() {
        for (file, host, prefix) in [
            ("uac-web-1-linux-20240101120000/live_response/a.txt", "web-1", "uac-web-1-linux-20240101120000/"),
            (
                "x/uac-db.tar-linux-20240101120000.tar.gz!/uac.log",
                "db.tar",
                "x/uac-db.tar-linux-20240101120000.tar.gz!/",
            ),
        ] {
            let found = of_uac(file).unwrap();
            assert_eq!((found.host.as_str(), found.prefix.as_str()), (host, prefix));
        }
        assert_eq!(of_uac("uac-web-1-linux-2024/live_response/a.txt"), None);
    }

    #[test]
    fn drive_of_a_copied_disk_is_found() {
        for (file, prefix) in [
            ("WS1/C/Windows/System32/winevt/Logs/Security.evtx", "WS1/"),
            ("x.zip!/uploads/auto/C%3A/Windows/System32/winevt/Logs/a.evtx", "x.zip!/uploads/auto/"),
            ("C/windows/system32/winevt/logs/a.evtx", ""),
        ] {
            assert_eq!(of_disk(file), Some(prefix), "{file}");
        }
        assert_eq!(of_disk("abc/Windows/System32/winevt/Logs/a.evtx"), None);
    }
}
