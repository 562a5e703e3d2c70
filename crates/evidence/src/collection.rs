//! Triage collections: what a tool copied from one host. Their layout names the host of records that name none.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use regex::Regex;

use crate::fields::json;
use crate::prepare::Prepared;
use crate::source::{Format, Skipped};
use crate::text::head;

mod cylr;
mod kape;

/// Files with one reason that are named, before they are counted.
const NAMED: usize = 10;
const HEAD: u64 = 64 << 10;
/// Bytes in the name of a host.
const HOST_MAX: usize = 63;

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
    extent: Extent,
}

/// Which files of a folder belong to a collection. The folder may also have other logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Extent {
    All,
    /// Its drives, and tables that were made of them.
    Drives,
}

/// A folder with the copy of a disk, before its host is known.
#[derive(Debug, Default)]
struct Tree<'a> {
    tool: &'static str,
    extent: Option<Extent>,
    /// The names of the host, by the tool that made the copy.
    stated: BTreeSet<String>,
    /// By the events of Windows in it.
    named: BTreeSet<&'a str>,
    /// What its clock showed less UTC, in nanoseconds.
    clock: Option<i64>,
}

impl Tree<'_> {
    /// Events of other hosts may be among those of the host, and a host may have had other names. The name that the tool
    /// states decides among them.
    fn host(&self) -> Option<String> {
        let short = |host: &str| host.split('.').next().unwrap_or(host).to_ascii_lowercase();
        let is_stated = |named: &&&str| self.stated.iter().any(|stated| short(stated) == short(named));
        let mut both = self.named.iter().filter(is_stated);
        match (both.next(), self.named.len(), self.stated.len()) {
            (Some(both), ..) => Some((*both).to_owned()),
            (None, 1, _) => self.named.first().map(|host| (*host).to_owned()),
            (None, 0, 1) => self.stated.first().cloned(),
            _ => None,
        }
    }
}

impl Collection {
    fn has(&self, prepared: &Prepared) -> bool {
        let Some(rest) = prepared.found.file.strip_prefix(&self.prefix) else { return false };
        // KAPE may put what it copies into an archive beside its logs.
        let archive = rest.split_once("!/").filter(|(archive, _)| !archive.contains('/'));
        let rest = archive.map_or(rest, |(_, inside)| inside);
        self.extent == Extent::All || prepared.belongs.time.is_some() || drive(rest).is_some()
    }
}

/// Gives the host of its collection to each source whose records name no host.
pub(crate) fn name_hosts(all: &mut [Prepared]) {
    let (found, clocks) = find(all);
    for prepared in all.iter_mut() {
        if cylr::is_log(&prepared.found.file, || start(prepared)) {
            prepared.read_as_utc();
        }
        let within = found.iter().filter(|one| one.has(prepared));
        let Some(Collection { prefix, tool, host, .. }) = within.max_by_key(|one| one.prefix.len()) else { continue };
        if let Some(clock) = clocks.get(prefix) {
            prepared.suggest(*clock, host);
        }
        if prepared.hosts.is_empty() {
            prepared.notes.push(format!("its records name no host: {host} is the host of the {tool}"));
            prepared.hosts = vec![host.clone()];
        }
    }
}

/// The collections, and by their prefix what the clock of the host showed less UTC.
fn find(all: &[Prepared]) -> (BTreeSet<Collection>, BTreeMap<String, i64>) {
    let mut found = BTreeSet::new();
    let mut trees: BTreeMap<&str, Tree<'_>> = BTreeMap::new();
    for prepared in all {
        let file = prepared.found.file.as_str();
        found.extend(of_uac(file));
        if let Some(prefix) = file.strip_suffix("client_info.json")
            && all.iter().any(|other| other.found.file == format!("{prefix}collection_context.json"))
            && let Some(host) = velociraptor(prepared)
        {
            let (prefix, tool) = (prefix.to_owned(), "Velociraptor collection");
            found.insert(Collection { prefix, tool, host, extent: Extent::All });
        }
        let prefix = file.get(..file.rfind('/').map_or(0, |at| at + 1)).unwrap_or_default();
        if let Some(log) = kape::read(prepared) {
            let tree = trees.entry(prefix).or_default();
            tree.tool = "KAPE collection";
            tree.extent = Some(Extent::Drives);
            tree.stated.extend(log.host);
            tree.clock = tree.clock.or(log.clock);
        }
        if cylr::is_log(file, || start(prepared)) {
            let tree = trees.entry(prefix).or_default();
            tree.tool = "CyLR collection";
            tree.extent = Some(if prefix.ends_with("!/") { Extent::All } else { Extent::Drives });
            let windows =
                all.iter().filter_map(|other| other.found.file.strip_prefix(prefix)).any(|r| drive(r).is_some());
            tree.stated.extend(cylr::host(&start(prepared), windows));
        }
    }
    let disks: BTreeSet<&str> =
        all.iter().filter(|one| of_events(one)).filter_map(|one| of_disk(&one.found.file)).collect();
    for prefix in disks {
        if !trees.keys().any(|tree| prefix.starts_with(tree)) {
            let tool = "copy of a Windows disk, by its event logs";
            trees.insert(prefix, Tree { tool, extent: Some(Extent::Drives), ..Tree::default() });
        }
    }
    let mut clocks = BTreeMap::new();
    for (prefix, mut tree) in trees {
        let inside = all.iter().filter(|one| of_events(one) && one.found.file.starts_with(prefix));
        tree.named = inside.flat_map(|one| &one.hosts).map(String::as_str).collect();
        if let (Some(host), Some(extent)) = (tree.host(), tree.extent) {
            clocks.extend(tree.clock.map(|clock| (prefix.to_owned(), clock)));
            found.insert(Collection { prefix: prefix.to_owned(), tool: tree.tool, host, extent });
        }
    }
    (found, clocks)
}

/// The log holds events of this host. Forwarded events are of others.
fn of_events(prepared: &Prepared) -> bool {
    let file = prepared.found.file.to_ascii_lowercase();
    let events = prepared.detected.shape.format == Format::Evtx || prepared.belongs.time == Some("TimeCreated");
    events && !file.ends_with("/forwardedevents.evtx")
}

fn start(prepared: &Prepared) -> String {
    head(&prepared.body.path, HEAD).map(|text| String::from_utf8_lossy(&text).into_owned()).unwrap_or_default()
}

fn is_host(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    (1..=HOST_MAX).contains(&name.len()) && name.chars().all(fits)
}

/// UAC names the archive, and the folder in it, after the host.
fn of_uac(file: &str) -> Option<Collection> {
    let mut end = 0;
    for part in file.split_inclusive('/') {
        end += part.len();
        if let Some(name) = UAC.captures(part.trim_end_matches('/')) {
            let host = name.get(1)?.as_str().to_owned();
            let prefix = file.get(..end)?.to_owned();
            return Some(Collection { prefix, tool: "UAC collection", host, extent: Extent::All });
        }
    }
    None
}

/// The name of the host in `client_info.json`.
fn velociraptor(info: &Prepared) -> Option<String> {
    let mut host = None;
    let _ = json::flatten(&start(info), "", &mut |path, value| {
        let name = path.rsplit('.').next().unwrap_or_default();
        if host.is_none() && name.eq_ignore_ascii_case("hostname") && !value.is_empty() {
            host = Some(value.into_owned());
        }
    });
    host
}

/// What comes before the drive, as KAPE, CyLR and Velociraptor copy it.
fn of_disk(file: &str) -> Option<&str> {
    let at = file.to_ascii_lowercase().find("windows/system32/winevt/")?;
    let above = file.get(..at)?.strip_suffix('/')?;
    let from = above.rfind('/').map_or(0, |at| at + 1);
    drive(file.get(from..)?).and(file.get(..from))
}

/// The first folder, if it is named like a drive or a shadow copy: `C`, `C:`, `C%3A`, `VSS1`.
fn drive(file: &str) -> Option<&str> {
    let (folder, _) = file.split_once('/')?;
    let lower = folder.to_ascii_lowercase();
    let letter = lower.trim_end_matches(':').trim_end_matches("%3a");
    let is_letter = letter.len() == 1 && letter.bytes().all(|b| b.is_ascii_lowercase());
    let shadow = lower.strip_prefix("vss").is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()));
    (is_letter || shadow).then_some(folder)
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
        for (file, expected) in
            [("VSS12/Users/a", Some("VSS12")), ("VSS/a", None), ("cc/a", None), ("1/a", None), ("c", None)]
        {
            assert_eq!(drive(file), expected, "{file}");
        }
    }

    #[test]
    fn stated_name_decides_among_those_of_the_events() {
        for (stated, named, expected) in [
            (&[][..], &["WS7.corp"][..], Some("WS7.corp")),
            (&[], &["OLD-NAME", "WS7.corp"], None),
            (&["ws7"], &["OLD-NAME", "WS7.corp"], Some("WS7.corp")),
            (&["LAB"], &["WS7.corp"], Some("WS7.corp")),
            (&["LAB"], &["OLD-NAME", "WS7.corp"], None),
            (&["WS7"], &[], Some("WS7")),
            (&["WS7", "WS8"], &[], None),
        ] {
            let stated = stated.iter().map(|host: &&str| (*host).to_owned()).collect();
            let tree = Tree { stated, named: named.iter().copied().collect(), ..Tree::default() };
            assert_eq!(tree.host().as_deref(), expected, "{tree:?}");
        }
    }
}
