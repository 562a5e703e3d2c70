//! Tables that tools of forensics make of a Windows disk. The tools of Eric Zimmerman and KAPE write times in UTC, without
//! a zone.

use super::rules::{Known, known};
use super::{Belongs, Facts};
use crate::source::Format;

/// The sensor of events from several channels.
pub(super) const EVENTS: &str = "windows-events";

const fn table(
    all: &'static [&'static str],
    any: &'static [&'static str],
    time: &'static str,
    sensor: &'static str,
    what: &'static str,
) -> Known {
    Known { time: Some(time), ..known(all, any, "endpoint", sensor, what) }
}

/// Columns that nearly every row fills, and the column with the time of a row. The first that fits counts.
pub(super) const TABLES: &[Known] = &[
    // It has the events of all channels of a folder one after the other, so that a sample shows only some of them.
    table(
        &["recordnumber", "eventrecordid", "chunknumber", "sourcefile"],
        &["payload", "channel"],
        "TimeCreated",
        EVENTS,
        "Windows events of several channels, by EvtxECmd",
    ),
    table(
        &["entrynumber", "parententrynumber", "created0x10"],
        &["lastmodified0x10", "lastrecordchange0x10"],
        "Created0x10",
        "mft",
        "files of a disk with their times, by MFTECmd",
    ),
    table(
        &["updatesequencenumber", "updatetimestamp", "updatereasons"],
        &[],
        "UpdateTimestamp",
        "usn-journal",
        "changes of files on a disk, by MFTECmd",
    ),
    table(
        &["executablename", "runcount", "lastrun"],
        &["sourcefilename", "hash"],
        "LastRun",
        "prefetch",
        "programs that ran, by PECmd",
    ),
    table(&["runtime", "executablename"], &[], "RunTime", "prefetch", "programs that ran, by PECmd"),
    table(
        &["programid", "filekeylastwritetimestamp", "fullpath"],
        &["sha1", "binarytype"],
        "FileKeyLastWriteTimestamp",
        "amcache",
        "programs that a host knew, by AmcacheParser",
    ),
    table(
        &["keylastwritetimestamp"],
        &["programid", "drivername", "friendlyname", "classguid", "lnkname", "hwids"],
        "KeyLastWriteTimestamp",
        "amcache",
        "programs and devices that a host knew, by AmcacheParser",
    ),
    table(
        &["hivepath", "hivetype", "keypath"],
        &["lastwritetimestamp"],
        "LastWriteTimestamp",
        "registry",
        "keys of the registry, by RECmd",
    ),
    table(
        &["controlset", "cacheentryposition", "path"],
        &[],
        "LastModifiedTimeUTC",
        "shimcache",
        "programs that a host knew, by AppCompatCacheParser",
    ),
    table(
        &["sourcefile", "sourcemodified", "appid", "destlistversion"],
        &[],
        "LastModified",
        "jump-lists",
        "files that were opened, by JLECmd",
    ),
    table(
        &["sourcefile", "sourcemodified", "appid"],
        &["entryname", "appiddescription"],
        "SourceModified",
        "jump-lists",
        "files that were opened, by JLECmd",
    ),
    table(
        &["sourcefile", "sourcecreated", "sourcemodified"],
        &["targetidabsolutepath", "localpath", "headerflags"],
        "SourceModified",
        "shortcuts",
        "files that were opened, by LECmd",
    ),
    table(
        &["sourcename", "filetype", "filename", "deletedon"],
        &[],
        "DeletedOn",
        "recycle-bin",
        "files that were deleted, by RBCmd",
    ),
    table(
        &["bagpath", "absolutepath", "shelltype"],
        &[],
        "LastWriteTime",
        "shellbags",
        "folders that were opened, by SBECmd",
    ),
    table(
        &["activitytype", "executable", "lastmodifiedonclient"],
        &[],
        "StartTime",
        "activities",
        "programs and files that were used, by WxTCmd",
    ),
    table(
        &["copiedtimestamp", "sourcefile", "destinationfile"],
        &["sourcefilesha1", "deferredcopy"],
        "CopiedTimestamp",
        "kape",
        "files that KAPE copied",
    ),
];

pub(super) fn of(facts: &Facts<'_>) -> Option<Belongs> {
    let csv = matches!(facts.format, Format::Csv | Format::Tsv);
    // Other programs may write JSON with one or two of these fields.
    let fits = |known: &&Known| (csv || known.all.len() > 2) && facts.mostly(known.all, known.any);
    TABLES.iter().find(fits).map(|known| known.belongs(facts))
}
