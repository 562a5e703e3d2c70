//! Behaviours in small Windows records.

use std::collections::{BTreeMap, BTreeSet};

use super::*;
use casebook_evidence::facet::Facets;

pub(super) fn shown(fields: &[(&str, &str)]) -> BTreeSet<&'static str> {
    let raw = fields.iter().map(|(name, value)| format!("{name}: {value}\n")).collect::<String>();
    let fields: BTreeMap<String, String> =
        fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let facets = Facets::read(&fields, &raw);
    let lower = facets.get(Facet::Text).unwrap_or_default().to_lowercase();
    all().iter().filter(|b| b.matches(&facets, &lower)).map(|b| b.id.as_str()).collect()
}

#[track_caller]
pub(super) fn check(fields: &[(&str, &str)], id: &str, expect: bool) {
    let shown = shown(fields);
    assert_eq!(shown.contains(id), expect, "{shown:?}");
}

pub(super) const SYSMON: (&str, &str) = ("Channel", "Microsoft-Windows-Sysmon/Operational");

#[test]
fn only_a_share_is_an_administrative_share() {
    let id = "smb-executable-to-share";
    let handle = [
        ("EventID", "4656"),
        ("SubjectUserName", "SRVDC$"),
        ("ObjectName", r"\REGISTRY\MACHINE\SYSTEM\CurrentControlSet\Control\Lsa"),
        ("ProcessName", r"C:\Windows\System32\lsass.exe"),
        ("Accesses", "WRITE_DAC"),
    ];
    check(&handle, id, false);
    let share = [
        ("EventID", "5145"),
        ("ShareName", r"\\*\C$"),
        ("RelativeTargetName", r"Windows\Temp\run.exe"),
        ("AccessList", "%%4417 %%4418"),
    ];
    check(&share, id, true);
    check(&[share[0], share[1], share[2], ("AccessList", "%%4416")], id, false);
}

#[test]
fn a_dump_of_the_logon_process_is_told_from_a_crash_report() {
    let id = "win-lsass-dump-file-by-program";
    let dump = |image, file| [SYSMON, ("EventID", "11"), ("Image", image), ("TargetFilename", file)];
    check(&dump(r"C:\Windows\System32\Taskmgr.exe", r"C:\Users\mara\AppData\Local\Temp\lsass (2).DMP"), id, true);
    check(&dump(r"C:\Windows\System32\WerFault.exe", r"C:\CrashDumps\lsass.exe.712.dmp"), id, false);
    check(&dump(r"C:\Tools\x.exe", r"C:\Temp\notlsass.dmp"), id, false);
}

#[test]
fn every_right_on_the_logon_process_weighs_by_who_asks() {
    let id = "win-lsass-full-access-by-person";
    let handle = |sid, right| {
        [
            ("EventID", "4656"),
            ("ObjectName", r"\Device\HarddiskVolume3\Windows\System32\lsass.exe"),
            ("ProcessName", r"C:\Users\mara\x.exe"),
            ("SubjectUserSid", sid),
            ("AccessMask", right),
        ]
    };
    check(&handle("S-1-5-21-1-2-3-1001", "0x1fffff"), id, true);
    check(&handle("S-1-5-18", "0x1fffff"), id, false);
    check(&handle("S-1-5-21-1-2-3-1001", "0x1400"), id, false);
}

#[test]
fn a_consumer_that_runs_something_is_no_part_of_windows() {
    let consumer = |name, kind| {
        [
            SYSMON,
            ("EventID", "20"),
            ("EventType", "WmiConsumerEvent"),
            ("Operation", "Created"),
            ("Name", name),
            ("Type", kind),
        ]
    };
    check(&consumer("Keeper", "Command Line"), "wmi-event-subscription", true);
    check(&consumer("SCM Event Log Consumer", "NT Event Log"), "wmi-event-subscription", false);
    let host = r"C:\Windows\System32\wbem\scrcons.exe";
    let connects =
        [SYSMON, ("EventID", "3"), ("Image", host), ("DestinationIp", "192.0.2.9"), ("DestinationPort", "80")];
    check(&connects, "wmi-script-host-connects", true);
}

#[test]
fn what_a_web_server_is_made_to_do_is_known() {
    let start = |command| {
        [
            SYSMON,
            ("EventID", "1"),
            ("ParentImage", r"C:\Windows\System32\inetsrv\w3wp.exe"),
            ("Image", r"C:\Windows\System32\cmd.exe"),
            ("CommandLine", command),
        ]
    };
    check(&start("cmd.exe /c whoami /all"), "web-server-asks-who-it-is", true);
    check(&start("cmd.exe /c convert in.png out.jpg"), "web-server-asks-who-it-is", false);
    let written =
        |image| [SYSMON, ("EventID", "11"), ("Image", image), ("TargetFilename", r"C:\inetpub\wwwroot\shop\up.aspx")];
    check(&written(r"C:\Windows\Temp\a.exe"), "web-script-file-written-windows", true);
    check(&written(r"C:\Windows\System32\msiexec.exe"), "web-script-file-written-windows", false);
    let cmdlet = |url| [("EventID", "1"), ("Message", url)];
    let id = "exchange-url-holds-script";
    check(
        &cmdlet("Cmdlet Set-OwaVirtualDirectory, parameters -InternalUrl http://x/<script>eval(1)</script>"),
        id,
        true,
    );
    check(&cmdlet("Cmdlet Set-OwaVirtualDirectory, parameters -ExternalUrl https://mail.corp.example/owa"), id, false);
}

#[test]
fn a_program_of_a_user_at_a_management_port_is_told_from_an_installed_one() {
    let id = "user-folder-program-reaches-management-port";
    let connects = |image, port| {
        [SYSMON, ("EventID", "3"), ("Image", image), ("DestinationIp", "192.0.2.9"), ("DestinationPort", port)]
    };
    check(&connects(r"C:\Users\mara\Downloads\t.exe", "445"), id, true);
    check(&connects(r"C:\Users\mara\Downloads\t.exe", "443"), id, false);
    check(&connects(r"C:\Users\mara\AppData\Local\Microsoft\OneDrive\OneDrive.exe", "445"), id, false);
    check(&connects(r"C:\Program Files\Tool\t.exe", "445"), id, false);
}

#[test]
fn a_check_of_credentials_that_succeeded_is_no_failed_sign_in() {
    let id = "win-logon-failure";
    let checked = |keywords, status| {
        [("EventID", "4776"), ("Keywords", keywords), ("Status", status), ("Message", "Failure Code: none")]
    };
    check(&checked("Audit Success", "0x0"), id, false);
    check(&checked("Audit Failure", "0xc000006a"), id, true);
}

#[test]
fn the_database_and_the_key_of_the_federation_service_are_its_own() {
    let pipe = |image| {
        [
            SYSMON,
            ("EventID", "18"),
            ("Image", image),
            ("PipeName", r"\MICROSOFT##WID\tsql\query"),
            ("User", "CORP\\mara"),
        ]
    };
    let shell = r"C:\Windows\System32\WindowsPowerShell\v1.0\powershell.exe";
    check(&pipe(shell), "adfs-database-read", true);
    check(&pipe(r"C:\Windows\ADFS\Microsoft.IdentityServer.Servicehost.exe"), "adfs-database-read", false);
    let key = |user| {
        [
            ("EventID", "4662"),
            ("SubjectUserName", user),
            ("Properties", "%%7684 {8d3bca50-1d7e-11d0-a081-00aa006c33ed} {5cb41ed0-0e4c-11d0-a286-00aa003049e2}"),
        ]
    };
    check(&key("mara"), "adfs-key-read", true);
    check(&key("ADFS01$"), "adfs-key-read", false);
}

#[test]
fn an_alert_weighs_by_its_severity_and_never_by_its_words() {
    let alert =
        |severity| [("AlertName", "'Mimikatz' HackTool:Win32/Mimikatz was prevented"), ("AlertSeverity", severity)];
    for (severity, id) in [("High", "alert-of-high-severity"), ("Medium", "alert-of-medium-severity")] {
        assert_eq!(shown(&alert(severity)), BTreeSet::from([id]));
    }
    assert_eq!(shown(&alert("Informational")), BTreeSet::new());
}

#[test]
fn a_task_among_those_of_windows_is_put_there_by_windows() {
    let id = "win-task-among-those-of-windows";
    let made = |name, user| [("EventID", "4698"), ("TaskName", name), ("SubjectUserName", user)];
    check(&made(r"\Microsoft\Windows\Defrag\CacheManager", "mara"), id, true);
    check(&made(r"\Microsoft\Windows\Defrag\CacheManager", "WEB01$"), id, false);
    check(&made(r"\Backup\Nightly", "mara"), id, false);
    let command = r"schtasks /create /F /tn \Microsoft\Windows\Defrag\CacheManager /tr cmd.exe";
    check(&[("EventID", "4688"), ("CommandLine", command), ("SubjectUserName", "mara")], id, true);
}

#[test]
fn the_client_of_windows_update_runs_libraries_of_windows() {
    let started = |command: &str| {
        let parent = ("ParentCommandLine", command.to_owned());
        [
            ("Channel", SYSMON.1.to_owned()),
            ("EventID", "1".to_owned()),
            ("Image", r"C:\Windows\System32\wuauclt.exe".to_owned()),
            ("CommandLine", command.to_owned()),
            parent,
        ]
    };
    let shows = |command: &str| {
        let fields = started(command);
        let fields: Vec<(&str, &str)> = fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let shown = shown(&fields);
        (shown.contains("update-client-runs-library"), shown.contains("win-update-lineage"))
    };
    let run = |library: &str| format!("wuauclt.exe /UpdateDeploymentProvider {library} /RunHandlerComServer");
    assert_eq!(shows(&run(r"C:\ProgramData\Side.dll")), (true, false));
    assert_eq!(shows(&run(r"\\10.0.0.9\share\Side.dll")), (true, false));
    assert_eq!(shows(&run(r"C:\Windows\UUS\amd64\UpdateDeployment.dll")), (false, true));
    assert_eq!(shows(&run("UpdateDeploymentProvider.dll /ClassId 1")), (false, true));
}

#[test]
fn an_editor_connects_to_nobody() {
    let id = "offline-program-connects";
    let to = |image, ip, port| {
        [SYSMON, ("EventID", "3"), ("Image", image), ("DestinationIp", ip), ("DestinationPort", port)]
    };
    check(&to(r"C:\Windows\System32\notepad.exe", "198.51.100.7", "80"), id, true);
    check(&to(r"C:\Windows\System32\notepad.exe", "10.0.0.9", "9100"), id, false);
    check(&to(r"C:\Program Files\Notepad++\notepad.exe", "198.51.100.7", "443"), id, false);
}
