use std::collections::BTreeMap;

use casebook_protocol::CallId;

use super::*;
use crate::analyst::facet::Facets;

#[track_caller]
fn check(fields: &[(&str, &str)], expect: &str) {
    let raw = fields.iter().map(|(name, value)| format!("{name}={value} ")).collect::<String>();
    let fields: BTreeMap<String, String> =
        fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let facets = Facets::read(&fields, &raw);
    let mut rec = Rec::of(CallId::new("r1.investigate.endpoint.t1.0").unwrap(), fields, facets);
    rec.raw = raw;
    assert_eq!(super::super::claim(&rec, &[], None, false, &|_| true), expect);
}

#[test]
fn each_program_of_a_task_has_its_own_arguments() {
    let made = [
        ("EventID", "4698"),
        ("SubjectUserName", "mara"),
        ("TaskContent.Actions.Exec.0.Command", "a.exe"),
        ("TaskContent.Actions.Exec.1.Arguments", "-x"),
        ("TaskContent.Actions.Exec.1.Command", "b.exe"),
    ];
    check(&made, "Scheduled task created that runs `a.exe` and more by `mara` (event `4698`)");
    check(
        &[&made[..2], &[made[3], made[4]]].concat(),
        "Scheduled task created that runs `b.exe` with `-x` by `mara` (event `4698`)",
    );
}

#[test]
fn the_number_of_an_event_is_told_in_words() {
    check(
        &[
            ("EventID", "4663"),
            ("SubjectUserName", "mara"),
            ("ObjectName", r"C:\Secret\plan.docx"),
            ("ProcessName", r"C:\Tools\copy.exe"),
            ("AccessMask", "0x1"),
            ("Hostname", "FS1"),
            ("Message", "An attempt was made to access an object."),
            ("Keywords", "Audit Success"),
        ],
        r"Object accessed: `C:\Secret\plan.docx` with the right `0x1` by `mara` with `C:\Tools\copy.exe` on `FS1` (event `4663`)",
    );
    check(
        &[
            ("EventID", "4624"),
            ("LogonType", "3"),
            ("TargetUserName", "mara"),
            ("IpAddress", "::ffff:192.0.2.7"),
            ("Computer", "FS1"),
            ("Status", "0x0"),
        ],
        "Sign-in over the network of `mara` from `192.0.2.7` on `FS1` (event `4624`)",
    );
    check(
        &[("EventID", "4720"), ("TargetUserName", "helper"), ("SubjectUserName", "mara"), ("Computer", "DC1")],
        "Account created of `helper` by `mara` on `DC1` (event `4720`)",
    );
}

#[test]
fn what_a_sensor_of_processes_saw_is_told() {
    check(
        &[
            ("Channel", "Microsoft-Windows-Sysmon/Operational"),
            ("EventID", "10"),
            ("SourceImage", r"C:\Tools\t.exe"),
            ("TargetImage", r"C:\Windows\System32\spoolsv.exe"),
            ("GrantedAccess", "0x1400"),
            ("Computer", "PC1"),
        ],
        r"`C:\Tools\t.exe` opened `C:\Windows\System32\spoolsv.exe` with the right `0x1400` on `PC1`",
    );
}

#[test]
fn a_subscription_and_its_consumer_are_told() {
    check(
        &[
            ("Channel", "Microsoft-Windows-Sysmon/Operational"),
            ("EventID", "20"),
            ("Operation", "Created"),
            ("Name", " \"Keeper\""),
            ("Type", "Script"),
            ("Destination", " \"run()\""),
            ("User", "CORP\\mara"),
        ],
        "WMI event consumer `Created`: `Keeper` of the type `Script` that runs `run()` as `CORP\\mara`",
    );
}

/// A small number means something else in each log.
#[test]
fn a_small_number_of_another_log_is_not_a_remote_desktop() {
    check(
        &[("EventID", "25"), ("Channel", "Application"), ("Message", "Index rebuilt."), ("Computer", "PC1")],
        "Recorded on `PC1`: `Index rebuilt.`",
    );
}

#[test]
fn what_providers_of_small_numbers_tell_is_told_in_words() {
    check(
        &[
            ("Provider.Name", "Microsoft-Windows-Windows Defender"),
            ("EventID", "1116"),
            ("Threat Name", "HackTool:Win64/A!b"),
            ("Path", r"file:_C:\a.sys"),
            ("Detection User", r"CORP\mara"),
            ("Computer", "PC1"),
        ],
        r"Malware found by the protection of Windows: `HackTool:Win64/A!b` in `file:_C:\a.sys` by `CORP\mara` on `PC1` (event `1116`)",
    );
    check(
        &[
            ("EventID", "5136"),
            ("ObjectDN", "CN=PC1,DC=corp"),
            ("AttributeLDAPDisplayName", "nTSecurityDescriptor"),
            ("SubjectUserName", "mara"),
        ],
        "Directory object changed: `CN=PC1,DC=corp` in `nTSecurityDescriptor` by `mara` (event `5136`)",
    );
    check(
        &[
            ("Provider.Name", "PowerShell"),
            ("EventID", "800"),
            ("Data.CommandLine", "Get-Process lsass"),
            ("Computer", "PC1"),
        ],
        "PowerShell ran `Get-Process lsass` on `PC1`",
    );
}
