//! Triage collections, in the layouts of their tools.

use super::*;

fn source<'c>(catalog: &'c Catalog, file: &str) -> &'c Source {
    catalog.sources().iter().find(|source| source.file == file).unwrap_or_else(|| panic!("{file}"))
}

#[test]
fn velociraptor_collection_names_the_host_of_its_results() {
    let info = br#"{"client_id":"C.1352adc54e292a23","agent_information":{"version":"0.73.1","name":"velociraptor"},"os_info":{"system":"windows","hostname":"WS7","release":"Microsoft Windows 10","machine":"amd64","fqdn":"WS7.corp.example"}}"#;
    let context =
        br#"{"client_id":"C.1352adc54e292a23","session_id":"F.X","request":{"artifacts":["Windows.System.Pslist"]}}"#;
    let process = r#"{"Pid":904,"Ppid":1,"Name":"a.exe","CommandLine":"a.exe -x","Exe":"C:\\a.exe","Username":"WS7\\mara","CreateTime":"2026-01-02T03:04:05Z"}"#;
    let pslist = format!("{process}\n").repeat(3);
    let folder = Folder::new(&[
        ("Collection-WS7/client_info.json", info),
        ("Collection-WS7/collection_context.json", context),
        ("Collection-WS7/results/Windows.System.Pslist.json", pslist.as_bytes()),
        ("other/results/Windows.System.Pslist.json", pslist.as_bytes()),
    ]);
    let catalog = folder.open();
    let results = source(&catalog, "Collection-WS7/results/Windows.System.Pslist.json");
    let time = results.time_field.as_deref();
    assert_eq!((results.hosts.as_slice(), time), (&["WS7".to_owned()][..], Some("CreateTime")));
    assert_eq!(results.domain.as_str(), "endpoint");
    assert!(results.notes.iter().any(|note| note.contains("WS7 is the host of the Velociraptor collection")));
    assert!(source(&catalog, "other/results/Windows.System.Pslist.json").hosts.is_empty());
}

#[test]
fn uac_collection_names_the_host_of_its_logs() {
    let history = b"ls -la\nsudo su\ncat /etc/passwd\n";
    let auth = b"Jan  2 03:04:05 db2 sshd[811]: Accepted password for eve from 192.0.2.7 port 4022 ssh2\n";
    let folder = Folder::new(&[
        ("uac-web-1-linux-20260102030405/[root]/home/mara/.bash_history", history),
        ("uac-web-1-linux-20260102030405/[root]/var/log/auth.log", auth),
    ]);
    let catalog = folder.open();
    let history = source(&catalog, "uac-web-1-linux-20260102030405/[root]/home/mara/.bash_history");
    assert_eq!((history.hosts.as_slice(), history.sensor.as_str()), (&["web-1".to_owned()][..], "shell-history@web-1"));
    let auth = source(&catalog, "uac-web-1-linux-20260102030405/[root]/var/log/auth.log");
    assert_eq!(auth.hosts, ["db2"], "a host that the records name is kept");
}

#[test]
fn event_logs_of_a_copied_disk_name_its_host() {
    let log = evtx::Log::new().logon(1, 1_709_528_760, "mara").logon(2, 1_709_528_761, "mara").bytes();
    let setup = b"2024-03-04 05:06:01, Info CBS Starting TrustedInstaller\n2024-03-04 05:06:02, Info CBS Loaded\n";
    let folder = Folder::new(&[
        ("kape/C/Windows/System32/winevt/Logs/Security.evtx", &log),
        ("kape/C/Windows/Logs/CBS/CBS.log", setup),
        ("C/Windows/Logs/CBS/CBS.log", setup),
    ]);
    let catalog = folder.open();
    assert_eq!(source(&catalog, "kape/C/Windows/Logs/CBS/CBS.log").hosts, ["FS01.corp.example"]);
    assert!(source(&catalog, "C/Windows/Logs/CBS/CBS.log").hosts.is_empty());
}

/// Columns as MFTECmd, PECmd and AmcacheParser write them.
#[test]
fn tables_of_ez_tools_have_their_kind_and_time() {
    let file = |n: u32| {
        format!(
            "{n},1,True,5,5,.\\\\Users,a{n}.exe,.exe,10,1,,False,False,False,False,False,False,Archive,Windows,\
             2026-01-02 03:04:{n:02}.1234567,,2026-01-03 03:04:{n:02}.1234567,,2026-01-03 05:04:{n:02}.1234567,,\
             2026-01-04 03:04:{n:02}.1234567,,1,2,3,,,\n"
        )
    };
    let mft = "EntryNumber,SequenceNumber,InUse,ParentEntryNumber,ParentSequenceNumber,ParentPath,FileName,Extension,\
               FileSize,ReferenceCount,ReparseTarget,IsDirectory,HasAds,IsAds,SI<FN,uSecZeros,Copied,SiFlags,NameType,\
               Created0x10,Created0x30,LastModified0x10,LastModified0x30,LastRecordChange0x10,LastRecordChange0x30,\
               LastAccess0x10,LastAccess0x30,UpdateSequenceNumber,LogfileSequenceNumber,SecurityId,ObjectIdFileDroid,\
               LoggedUtilStream,ZoneIdContents\n"
        .to_owned()
        + &(10..40).map(file).collect::<String>();
    let run = |n: u32| {
        format!(
            ",C:\\\\Windows\\\\Prefetch\\\\A.EXE-{n}.pf,2026-01-01 00:00:{n:02},2026-01-02 00:00:{n:02},2026-01-02 00:00:{n:02},\
             A{n}.EXE,ABCD{n},100,Windows 10,{n},2026-01-02 03:04:{n:02},,C,1234,2020-01-01 00:00:00,1,dirs,files,False\n"
        )
    };
    let prefetch = "Note,SourceFilename,SourceCreated,SourceModified,SourceAccessed,ExecutableName,Hash,Size,Version,\
                    RunCount,LastRun,PreviousRun0,Volume0Name,Volume0Serial,Volume0Created,Directories,DirectoriesList,\
                    FilesLoaded,ParsingError\n"
        .to_owned()
        + &(10..40).map(run).collect::<String>();
    let app = |n: u32| {
        format!(
            "Unassociated,0006abc{n},2026-01-02 03:04:{n:02},da39a3{n},False,c:\\\\a{n}.exe,a{n}.exe,.exe,2019-05-06 07:08:{n:02},\
             A,10,1.0,1.0,a|1,pe64_amd64,True,1.0,1.0,,1033,\n"
        )
    };
    let amcache = "ApplicationName,ProgramId,FileKeyLastWriteTimestamp,SHA1,IsOsComponent,FullPath,Name,FileExtension,\
                   LinkDate,ProductName,Size,Version,ProductVersion,LongPathHash,BinaryType,IsPeFile,BinFileVersion,\
                   BinProductVersion,Usn,Language,Description\n"
        .to_owned()
        + &(10..40).map(app).collect::<String>();
    let files = [("m.csv", mft.as_bytes()), ("p.csv", prefetch.as_bytes()), ("a.csv", amcache.as_bytes())];
    let folder = Folder::new(&files);
    let catalog = folder.open();
    let time = |s: &Source| s.time_field.clone().unwrap_or_default();
    let shown = |s: &Source| format!("{} {} {} {}", s.file, s.sensor, time(s), s.malformed);
    let expected = ["a.csv amcache FileKeyLastWriteTimestamp 0", "m.csv mft Created0x10 0", "p.csv prefetch LastRun 0"];
    assert_eq!(catalog.sources().iter().map(shown).collect::<Vec<_>>(), expected);
}

/// Headers as the tools write them, with the time of a row.
#[test]
fn each_table_of_a_disk_has_its_kind_and_time() {
    let usn = "Name,Extension,EntryNumber,SequenceNumber,ParentEntryNumber,ParentSequenceNumber,ParentPath,\
               UpdateSequenceNumber,UpdateTimestamp,UpdateReasons,FileAttributes,OffsetToData,SourceFile";
    let link = "SourceFile,SourceCreated,SourceModified,SourceAccessed,TargetCreated,TargetModified,TargetAccessed,FileSize,\
                RelativePath,WorkingDirectory,FileAttributes,HeaderFlags,DriveType,VolumeSerialNumber,VolumeLabel,LocalPath,\
                NetworkPath,CommonPath,Arguments,TargetIDAbsolutePath,TargetMFTEntryNumber,TargetMFTSequenceNumber,MachineID,\
                MachineMACAddress,MACVendor,TrackerCreatedOn,ExtraBlocksPresent";
    let jump = "SourceFile,SourceCreated,SourceModified,SourceAccessed,AppId,AppIdDescription,DestListVersion,\
                LastUsedEntryNumber,MRU,EntryNumber,CreationTime,LastModified,Hostname,MacAddress,Path";
    let bags = "BagPath,Slot,NodeSlot,MRUPosition,AbsolutePath,ShellType,Value,ChildBags,CreatedOn,ModifiedOn,AccessedOn,\
                LastWriteTime,MFTEntry,MFTSequenceNumber,ExtensionBlockCount,FirstInteracted,LastInteracted,HasExplored,\
                Miscellaneous";
    let cases = [
        (usn, "usn-journal", "UpdateTimestamp"),
        (link, "shortcuts", "SourceModified"),
        (jump, "jump-lists", "LastModified"),
        (bags, "shellbags", "LastWriteTime"),
        ("RunTime,ExecutableName", "prefetch", "RunTime"),
        ("SourceName,FileType,FileName,FileSize,DeletedOn", "recycle-bin", "DeletedOn"),
        (
            "ControlSet,CacheEntryPosition,Path,LastModifiedTimeUTC,Executed,Duplicate,SourceFile",
            "shimcache",
            "LastModifiedTimeUTC",
        ),
        ("KeyName,LnkName,KeyLastWriteTimestamp", "amcache", "KeyLastWriteTimestamp"),
        // Tables of other programs.
        ("ControlSet,Path,LastModifiedTimeUTC,Executed", "csv", "LastModifiedTimeUTC"),
        ("RunTime,Program", "csv", "RunTime"),
        ("SourceName,FileName,DeletedOn", "csv", "DeletedOn"),
    ];
    let filled = |header: &str| {
        let times = ["time", "timestamp", "created", "modified", "accessed", "deletedon"];
        let row = |n: u32| {
            let cell = |column: &str| {
                let lower = column.to_ascii_lowercase();
                let is_time = times.iter().any(|time| lower.contains(time));
                if is_time { format!("2026-01-02 03:04:{n:02}") } else { format!("a{n}") }
            };
            header.split(',').map(cell).collect::<Vec<_>>().join(",") + "\n"
        };
        format!("{header}\n{}", (10..40).map(row).collect::<String>())
    };
    for (header, sensor, time) in cases {
        let catalog = Folder::of("a.csv", &filled(header)).open();
        let table = &catalog.sources()[0];
        assert_eq!((table.sensor.as_str(), table.time_field.as_deref()), (sensor, Some(time)), "{header}");
        let asked = table.notes.iter().any(|note| note.contains("no zone"));
        assert_eq!(asked, sensor == "csv", "{header}: {:?}", table.notes);
    }
    // A program may write JSON with the fields of a small table.
    let built = "{\"RunTime\":\"2026-01-02 03:04:05\",\"ExecutableName\":\"a\"}\n".repeat(5);
    assert_ne!(Folder::of("a.json", &built).open().sources()[0].sensor, "prefetch");
}

#[test]
fn many_files_of_one_unread_kind_are_one_sentence() {
    let names: Vec<String> = (0..40).map(|n| format!("C/Windows/Prefetch/A{n:02}.pf")).collect();
    let mut files: Vec<(&str, &[u8])> = names.iter().map(|name| (name.as_str(), &b"MAM\x04\x01\x02"[..])).collect();
    files.push(("C/Windows/System32/config/SYSTEM", b"regf\x01\x02"));
    files.push(("a.log", b"2026-01-02T03:04:05Z started\n"));
    let catalog = Folder::new(&files).open();
    let skipped: Vec<String> = catalog.skipped().iter().map(|s| format!("{}: {}", s.file, s.reason)).collect();
    let expected = [
        "C/Windows/Prefetch/A00.pf: prefetch file: export it as CSV, for example with PECmd; so are 39 other files",
        "C/Windows/System32/config/SYSTEM: registry hive: export it as CSV, for example with RECmd",
    ];
    assert_eq!(skipped, expected);
}

pub(crate) const EVTXECMD: &str = "RecordNumber,EventRecordId,TimeCreated,EventId,Level,Provider,Channel,ProcessId,ThreadId,Computer,\
    ChunkNumber,UserId,MapDescription,UserName,RemoteHost,PayloadData1,PayloadData2,PayloadData3,PayloadData4,PayloadData5,\
    PayloadData6,ExecutableInfo,HiddenRecord,SourceFile,Keywords,ExtraDataOffset,Payload\n";

/// A row as EvtxECmd writes it. `data` are the names and values of the event.
pub(crate) fn row(n: u64, (provider, channel, event): (&str, &str, &str), data: &[(&str, &str)]) -> String {
    let data: Vec<Value> = data
        .iter()
        .map(|(name, value)| match *value {
            "" => serde_json::json!({"@Name": name}),
            value => serde_json::json!({"@Name": name, "#text": value}),
        })
        .collect();
    let payload = serde_json::json!({"EventData": {"Data": data}}).to_string().replace('"', "\"\"");
    format!(
        "{n},{n},2026-01-02 03:04:{:02}.1234567,{event},LogAlways,{provider},{channel},572,1244,WS7.corp.example,2,,\
         A description,CORP\\mara,- (192.0.2.7),Target: CORP\\mara,LogonType 3,,,,,,False,C:\\{channel}.evtx,Audit,0,\
         \"{payload}\"\n",
        n % 60
    )
}

pub(crate) const SECURITY: (&str, &str, &str) = ("Microsoft-Windows-Security-Auditing", "Security", "4688");
pub(crate) const SYSMON: (&str, &str, &str) = ("Microsoft-Windows-Sysmon", "Microsoft-Windows-Sysmon/Operational", "1");

#[test]
fn rows_of_evtxecmd_are_the_events_of_their_channel() {
    let started = [
        ("SubjectUserName", "mara"),
        ("NewProcessId", "0x1a2b"),
        ("NewProcessName", r"C:\tool.exe"),
        ("ProcessId", "0x2c4"),
        ("CommandLine", r#"tool.exe -x "a b""#),
        ("TargetLinkedLogonId", ""),
    ];
    let created = [("Image", r"C:\tool.exe"), ("CommandLine", "tool.exe -y"), ("ProcessGuid", "{a}")];
    let rows: String =
        (1..40).map(|n| row(n, SECURITY, &started)).chain((40..60).map(|n| row(n, SYSMON, &created))).collect();
    let folder = Folder::of("20260103_EvtxECmd_Output.csv", &format!("\u{feff}{EVTXECMD}{rows}"));
    let catalog = folder.open();
    let table = &catalog.sources()[0];
    assert_eq!(
        (table.sensor.as_str(), table.hosts.as_slice()),
        ("windows-events@WS7.corp.example", &["WS7.corp.example".to_owned()][..])
    );
    assert_eq!((table.time_field.as_deref(), table.malformed, table.untimed), (Some("TimeCreated"), 0, 0));
    assert!(!table.notes.iter().any(|note| note.contains("zone")), "the times are in UTC: {:?}", table.notes);
    let record = catalog.record("20260103_EvtxECmd_Output.csv", 2).unwrap();
    assert_eq!(record.time.unwrap().to_string(), "2026-01-02T03:04:01.1234567Z");
    let fields = record.fields();
    let value = |path: &str| fields.iter().find(|(name, _)| name == path).map(|(_, value)| value.as_str());
    assert_eq!(value("Payload.EventData.CommandLine"), Some(r#"tool.exe -x "a b""#));
    assert_eq!(value("PayloadData2"), Some("LogonType 3"));
    assert_eq!(value("Payload.EventData.TargetLinkedLogonId"), None);
    assert!(!fields.iter().any(|(path, _)| path.contains("@Name") || path.contains("#text")), "{fields:?}");
    let map = fields.iter().cloned().collect();
    let facets = facet::Facets::read(&map, &String::from_utf8_lossy(&record.bytes));
    assert_eq!(facets.class, Some(facet::Class::ProcessStart));
    let (own, parent) = facet::process_keys(&map, &facets);
    let key = |pid: u32| vec![format!("ws7.corp.example#{pid}")];
    assert_eq!((own, parent), (key(0x1a2b), key(0x2c4)), "the process that wrote the event is neither");
    let tools = folder.tools();
    let found = call(&tools, "search", r#"{"where":[{"field":"CommandLine","value":"tool.exe -y"}]}"#);
    assert_eq!(found["total"], 20, "{found}");
}

const CONSOLE: &str = "[2026-01-02 06:04:05.6012345 | INF] KAPE directory: C:\\KAPE\r\n\
    [2026-01-02 06:04:05.6023456 | INF] Command line:   --tsource C: --tdest E:\\out --target KapeTriage --mdest E:\\out\r\n\
    [2026-01-02 06:04:05.6034567 | INF] System info: Machine name: WS7, 64-bit: true, User: mara OS: \"Windows10\" (10.0.19045)\r\n\
    [2026-01-02 06:04:09.9776063 | INF] Total execution time: 4.0001 seconds\r\n";
const COPIED: &str = "\u{feff}CopiedTimestamp,SourceFile,DestinationFile,FileSize,SourceFileSha1,DeferredCopy,CreatedOnUtc,\
    ModifiedOnUtc,LastAccessedOnUtc,CopyDuration\r\n\
    2026-01-02 03:04:07.9776063,C:\\a,E:\\out\\C\\a,1,DA39,False,2025-01-02 03:04:07.1,2025-01-02 03:04:07.1,2025-01-02 03:04:07.1,00:00:00.01\r\n\
    2026-01-02 03:04:08.9776063,C:\\b,E:\\out\\C\\b,1,DA39,False,2025-01-02 03:04:07.1,2025-01-02 03:04:07.1,2025-01-02 03:04:07.1,00:00:00.01\r\n";
const SETUP: &[u8] = b"2026-01-01 05:06:01, Info CBS Starting TrustedInstaller\n2026-01-01 05:06:02, Info CBS Loaded\n";
const RUN: &str = "2026-01-02T03_04_05_5246365";
const REGISTRY: &str = "HivePath,HiveType,Description,Category,KeyPath,ValueName,ValueType,ValueData,ValueData2,ValueData3,Comment,\
    Recursive,Deleted,LastWriteTimestamp,PluginDetailFile\n\
    C:\\SOFTWARE,Software,Run,Autoruns,ROOT\\Run,a,RegSz,C:\\a.exe,,,,False,False,2026-01-01 07:08:09.1234567,\n\
    C:\\SOFTWARE,Software,Run,Autoruns,ROOT\\Run,b,RegSz,C:\\b.exe,,,,False,False,2026-01-01 07:08:10.1234567,\n";

#[test]
fn kape_collection_names_host_and_clock() {
    let (console, copied) = (format!("case/{RUN}_ConsoleLog.txt"), format!("case/{RUN}_CopyLog.csv"));
    let folder = Folder::new(&[
        (console.as_str(), CONSOLE.as_bytes()),
        (copied.as_str(), COPIED.as_bytes()),
        ("case/C/Windows/Logs/CBS/CBS.log", SETUP),
        ("case/Registry/20260102_RECmd_Batch_Kroll_Batch_Output.csv", REGISTRY.as_bytes()),
        ("case/notes/CBS.log", SETUP),
        ("case/a.zip", &archives::zip(&[archives::stored("C/Windows/Logs/CBS/CBS.log", SETUP)])),
        ("case/notes/a.zip", &archives::zip(&[archives::stored("C/Windows/Logs/CBS/CBS.log", SETUP)])),
    ]);
    let catalog = folder.open();
    let hosts = |file: &str| source(&catalog, file).hosts.clone();
    let setup = source(&catalog, "case/C/Windows/Logs/CBS/CBS.log");
    assert_eq!(setup.hosts, ["WS7"]);
    assert!(
        setup.notes.iter().any(|note| note.contains("WS7 is the host of the KAPE collection")),
        "{:?}",
        setup.notes
    );
    assert!(setup.notes.iter().any(|note| note.contains("set zone = \"+03:00\"")), "{:?}", setup.notes);
    assert_eq!(setup.first_time.unwrap().to_string(), "2026-01-01T05:06:01Z", "the clock is only a suggestion");
    let registry = source(&catalog, "case/Registry/20260102_RECmd_Batch_Kroll_Batch_Output.csv");
    assert_eq!(
        (registry.sensor.as_str(), registry.time_field.as_deref()),
        ("registry@WS7", Some("LastWriteTimestamp"))
    );
    assert!(!registry.notes.iter().any(|note| note.contains("zone")), "{:?}", registry.notes);
    let log = source(&catalog, &copied);
    assert_eq!((log.sensor.as_str(), log.time_field.as_deref()), ("kape@WS7", Some("CopiedTimestamp")));
    assert_eq!(hosts("case/a.zip!/C/Windows/Logs/CBS/CBS.log"), ["WS7"]);
    for other in ["case/notes/CBS.log", "case/notes/a.zip!/C/Windows/Logs/CBS/CBS.log"] {
        assert!(hosts(other).is_empty(), "{other} beside the drives is of an unknown host");
    }
}

#[test]
fn folder_that_resembles_a_kape_collection_names_no_host() {
    let image = CONSOLE.replace("--tsource C:", "--tsource F:");
    let other = CONSOLE.replace("KAPE", "COPY");
    for (console, named) in [(CONSOLE, true), (image.as_str(), false), (other.as_str(), false)] {
        let name = format!("{RUN}_ConsoleLog.txt");
        let catalog = Folder::new(&[(name.as_str(), console.as_bytes()), ("C/Windows/Logs/CBS/CBS.log", SETUP)]).open();
        assert_eq!(source(&catalog, "C/Windows/Logs/CBS/CBS.log").hosts.len(), usize::from(named), "{console}");
    }
    // An image is read on another machine, and its events name the host.
    let log = evtx::Log::new().logon(1, 1_709_528_760, "mara").logon(2, 1_709_528_761, "mara").bytes();
    let name = format!("{RUN}_ConsoleLog.txt");
    let files = [
        (name.as_str(), image.as_bytes()),
        ("F/Windows/System32/winevt/Logs/Security.evtx", &log),
        ("F/Windows/Logs/CBS.log", SETUP),
    ];
    let catalog = Folder::new(&files).open();
    let setup = source(&catalog, "F/Windows/Logs/CBS.log");
    assert_eq!(setup.hosts, ["FS01.corp.example"]);
    assert!(setup.notes.iter().any(|note| note.contains("KAPE collection")), "{:?}", setup.notes);
    assert!(!setup.notes.iter().any(|note| note.contains("set zone")), "the clock is that of another machine");
}

#[test]
fn cylr_archive_names_the_host() {
    let log = |name: &str| {
        format!(
            "2026-01-02T03:04:05 [debug] Argument OutputFileName is set to {name}\n\
             2026-01-02T03:04:05 [info] Gathering paths to collect\n2026-01-02T03:04:06 [info] 2 paths identified for collection\n"
        )
    };
    let member = "CyLR_Collection_Log_2026-01-02_03-04-07.log";
    for (name, expected) in [("WS7.zip", &["WS7"][..]), ("case-42.zip", &[])] {
        let text = log(name);
        let zip = archives::zip(&[
            archives::deflated("C/Windows/Logs/CBS/CBS.log", SETUP),
            archives::stored(member, text.as_bytes()),
        ]);
        let catalog = Folder::new(&[("in/a.zip", &zip), ("in/CBS.log", SETUP)]).open();
        assert_eq!(source(&catalog, "in/a.zip!/C/Windows/Logs/CBS/CBS.log").hosts, expected, "{name}");
        assert!(source(&catalog, "in/CBS.log").hosts.is_empty());
        let own = source(&catalog, &format!("in/a.zip!/{member}"));
        assert!(!own.notes.iter().any(|note| note.contains("zone")), "its log is in UTC: {:?}", own.notes);
    }
    let history = b"ls -la\nsudo su\ncat /etc/passwd\n";
    let text = log("web-1.zip");
    let folder = Folder::new(&[
        ("web/home/mara/.bash_history", history),
        (
            "web-1.zip",
            &archives::zip(&[
                archives::stored("home/mara/.bash_history", history),
                archives::stored(member, text.as_bytes()),
            ]),
        ),
        ("like/CyLR_Collection_Log_2026-01-02_03-04-07.log", b"2026-01-02T03:04:05 started\n"),
        ("like/C/.bash_history", history),
    ]);
    let catalog = folder.open();
    assert_eq!(source(&catalog, "web-1.zip!/home/mara/.bash_history").hosts, ["web-1"]);
    assert!(source(&catalog, "web/home/mara/.bash_history").hosts.is_empty());
    assert!(source(&catalog, "like/C/.bash_history").hosts.is_empty(), "another program wrote this log");
}
