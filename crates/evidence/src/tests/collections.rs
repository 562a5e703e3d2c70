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
