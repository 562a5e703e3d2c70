//! Windows settings, files and tools that are rarely used legitimately, and similar legitimate ones.

use super::all;
use super::windows::{SYSMON, check, shown};
use casebook_evidence::facet::Facets;

/// A start of a program, as Sysmon records it.
#[track_caller]
fn started(process: &str, parent: &str, command: &str, id: &str, expect: bool) {
    let fields = [
        SYSMON,
        ("EventID", "1"),
        ("Image", process),
        ("ParentImage", parent),
        ("CommandLine", command),
        ("User", r"CORP\mara"),
    ];
    check(&fields, id, expect);
}

/// A value of the registry that was set, as Sysmon records it.
#[track_caller]
fn set(process: &str, object: &str, value: &str, id: &str, expect: bool) {
    check(&[SYSMON, ("EventID", "13"), ("Image", process), ("TargetObject", object), ("Details", value)], id, expect);
}

/// A file that was written, as Sysmon records it.
#[track_caller]
fn wrote(process: &str, object: &str, id: &str, expect: bool) {
    check(&[SYSMON, ("EventID", "11"), ("Image", process), ("TargetFilename", object)], id, expect);
}

const CMD: &str = r"C:\Windows\System32\cmd.exe";
const REG: &str = r"C:\Windows\System32\reg.exe";

#[test]
fn settings_that_blind_or_open_a_host_are_known_by_their_value() {
    let debugger = r"HKLM\SOFTWARE\Microsoft\Windows NT\CurrentVersion\Image File Execution Options\";
    set(REG, &format!(r"{debugger}sethc.exe\Debugger"), CMD, "accessibility-debugger", true);
    set(REG, &format!(r"{debugger}notepad.exe\Debugger"), CMD, "accessibility-debugger", false);
    set(REG, r"HKLM\System\CurrentControlSet\Control\MiniNt", "", "win-logging-minint", true);
    let lsa = r"HKLM\System\CurrentControlSet\Control\Lsa\LmCompatibilityLevel";
    set(r"C:\Tools\a.exe", lsa, "DWORD (0x00000001)", "netntlm-downgraded", true);
    set(r"C:\Tools\a.exe", lsa, "DWORD (0x00000005)", "netntlm-downgraded", false);
    set(r"C:\Windows\System32\svchost.exe", lsa, "DWORD (0x00000001)", "netntlm-downgraded", false);
    let dll = r"HKLM\System\CurrentControlSet\Services\TermService\Parameters\ServiceDll";
    set(r"C:\Users\mara\a.exe", dll, r"C:\a.dll", "service-library-changed", true);
    set(r"C:\Windows\System32\msiexec.exe", dll, r"C:\a.dll", "service-library-changed", false);
    let sip = r"HKLM\SOFTWARE\Microsoft\Cryptography\OID\EncodingType 0\CryptSIPDllVerifyIndirectData\{A}\Dll";
    set(REG, sip, r"C:\Users\mara\a.dll", "trust-provider-registered", true);
    set(REG, sip, r"C:\Windows\System32\wintrust.dll", "trust-provider-registered", false);
}

#[test]
fn copies_of_databases_of_passwords_are_told_from_the_databases() {
    let id = "hive-copied-by-database-tool";
    let copy = r"esentutl.exe /y /vss C:\windows/system32/config/SAM /d C:\ProgramData\SAM";
    started(r"C:\Windows\System32\esentutl.exe", CMD, copy, id, true);
    started(r"C:\Windows\System32\esentutl.exe", CMD, "esentutl.exe /p mail.edb", id, false);
    wrote(CMD, r"C:\ProgramData\SAM", "hive-copy-written", true);
    wrote(CMD, r"C:\Windows\NTDS\ntds.dit", "hive-copy-written", false);
    wrote(CMD, r"C:\Users\mara\Uncle Sam.txt", "hive-copy-written", false);
    let shared = |path: &'static str| {
        [("EventID", "5145"), ("ShareName", r"\\*\ADMIN$"), ("RelativeTargetName", path), ("SubjectUserName", "mara")]
    };
    check(&shared(r"SYSTEM32\BTeHLZkJ.tmp"), "secrets-dumped-over-share", true);
    check(&shared(r"SYSTEM32\log2024.tmp"), "secrets-dumped-over-share", false);
    let profile = [
        ("EventID", "5145"),
        ("ShareName", r"\\*\C$"),
        ("RelativeTargetName", r"Users\mara\AppData\Roaming\Microsoft\Protect\S-1-5-21-1\a"),
    ];
    check(&profile, "user-secrets-read-over-share", true);
}

#[test]
fn commands_are_known_in_their_short_forms_and_with_quotation_marks() {
    let netsh = r"C:\Windows\System32\netsh.exe";
    started(
        netsh,
        CMD,
        "netsh I p a v l=8001 listena=0.0.0.0 connectp=3389 c=1.1.1.1",
        "port-forwarded-by-netsh",
        true,
    );
    started(netsh, CMD, "netsh interface portproxy show all", "port-forwarded-by-netsh", false);
    started(netsh, CMD, "netsh interface ip add address x 10.0.0.1", "port-forwarded-by-netsh", false);
    let share = r#""C:\Windows\System32\cmd.exe" /Q /c cd \ 1> \\127.0.0.1\ADMIN$\__1556656511.61 2>&1"#;
    started(CMD, r"C:\Windows\System32\mmc.exe", share, "remote-exec-output-share", true);
    started(r"C:\Windows\System32\tscon.exe", CMD, "tscon 2 /dest:rdp-tcp#5", "session-taken-over", true);
    started(r"C:\Windows\System32\tscon.exe", CMD, "tscon 1 /dest:console", "session-taken-over", false);
    let hidden = r#"powershell.exe -nop -C "& ($pshome[4]+$pshome[30]+'x')(1)""#;
    started(r"C:\Windows\System32\WindowsPowerShell\v1.0\powershell.exe", CMD, hidden, "powershell-hidden-word", true);
    let tunnel = "plink.exe 10.0.2.18 -P 80 -C -R 127.0.0.3:4444:127.0.0.2:3389 -l test";
    started(r"C:\Users\mara\plink.exe", CMD, tunnel, "reverse-tunnel-to-remote-desktop", true);
    started(
        r"C:\Windows\System32\inetsrv\appcmd.exe",
        CMD,
        r#""C:\Windows\System32\inetsrv\appcmd.exe" list apppool x /text:processmodel.password"#,
        "iis-passwords-listed",
        true,
    );
    let service = [
        ("EventID", "7045"),
        ("ImagePath", r"c:\windows\system32\cmd.exe /c powershell -command x"),
        ("ServiceName", "a"),
    ];
    check(&service, "win-service-suspicious", true);
}

#[test]
fn where_a_program_lies_says_whose_it_is() {
    let services = r"C:\Windows\System32\services.exe";
    started(r"C:\Users\mara\Desktop\jjs.exe", services, "jjs.exe", "service-runs-program-of-user", true);
    started(r"C:\Program Files\A\a.exe", services, "a.exe", "service-runs-program-of-user", false);
    started(r"C:\Windows \System32\a.exe", CMD, "a.exe", "elevation-by-mock-folder", true);
    started(r"C:\Windows\System32\a.exe", CMD, "a.exe", "elevation-by-mock-folder", false);
    started(r"C:\Users\Public\x.tmp", CMD, "x.tmp", "program-with-ending-of-other-file", true);
    started(r"C:\Users\mara\AppData\Local\Temp\is-A1.tmp\a.tmp", CMD, "a", "program-with-ending-of-other-file", false);
    wrote(r"C:\Users\mara\a.exe", r"C:\Windows\System32\drivers\v.sys", "driver-put-by-program-of-user", true);
    wrote(
        r"C:\Windows\System32\drvinst.exe",
        r"C:\Windows\System32\drivers\v.sys",
        "driver-put-by-program-of-user",
        false,
    );
    let policy = r"C:\Users\mara\AppData\Local\Temp\__PSScriptPolicyTest_a.ps1";
    wrote(r"C:\Users\mara\Desktop\g.exe", policy, "powershell-in-foreign-program", true);
    wrote(r"C:\Windows\System32\WindowsPowerShell\v1.0\powershell.exe", policy, "powershell-in-foreign-program", false);
    let thread = |from: &'static str| {
        [SYSMON, ("EventID", "8"), ("SourceImage", from), ("TargetImage", r"C:\a\b.exe"), ("StartAddress", "0x1")]
    };
    check(&thread(r"C:\Users\Public\k.exe"), "thread-from-program-of-user", true);
    check(&thread(r"C:\Users\mara\AppData\Local\Programs\ide\i.exe"), "thread-from-program-of-user", false);
    check(&thread(r"C:\Program Files\a\k.exe"), "thread-from-program-of-user", false);
}

#[test]
fn what_the_directory_lets_whom_do_is_named_by_the_attribute() {
    let id = "directory-delegation-changed";
    let changed = |attribute: &'static str, value: &'static str| {
        [
            ("EventID", "5136"),
            ("Channel", "Security"),
            ("ObjectDN", "CN=TARGET,DC=corp"),
            ("AttributeLDAPDisplayName", attribute),
            ("AttributeValue", value),
            ("SubjectUserName", "mara"),
        ]
    };
    check(&changed("msDS-AllowedToActOnBehalfOfOtherIdentity", "O:BA"), id, true);
    let grant = "D:(OA;;CR;1131f6ad-9c07-11d1-f79f-00c04fc2dcd2;;S-1-5-21-1-2-3-1105)";
    check(&changed("nTSecurityDescriptor", grant), "directory-replication-granted", true);
    let usual = "D:(OA;;CR;1131f6ad-9c07-11d1-f79f-00c04fc2dcd2;;S-1-5-21-1-2-3-516)(OA;;CR;1131f6ad-9c07-11d1-f79f-00c04fc2dcd2;;BA)";
    check(&changed("nTSecurityDescriptor", usual), "directory-replication-granted", false);
    check(&changed("nTSecurityDescriptor", "D:(A;;RP;;;AU)"), id, false);
    check(&changed("description", "x"), id, false);
}

#[test]
fn a_number_of_an_event_inside_an_address_locks_no_account() {
    let member = [("EventID", "4964"), ("TargetUserName", "mara"), ("SidList", "S-1-5-21-4740-27425-1613")];
    assert!(!shown(&member).contains("win-account-lockout"));
    check(&[("EventID", "4740"), ("TargetUserName", "mara")], "win-account-lockout", true);
}

#[test]
fn what_a_service_or_a_tool_of_the_sign_in_screen_starts_is_known() {
    let services = r"C:\Windows\System32\services.exe";
    let shell = r"C:\Windows\System32\WindowsPowerShell\v1.0\powershell.exe";
    started(shell, services, "powershell.exe -noexit -c x", "service-runs-interpreter", true);
    started(r"C:\Windows\System32\svchost.exe", services, "svchost.exe -k a", "service-runs-interpreter", false);
    started(CMD, r"C:\Windows\System32\osk.exe", "cmd", "accessibility-tool-starts-program", true);
    started(CMD, r"C:\Windows\explorer.exe", "cmd", "accessibility-tool-starts-program", false);
    let variable = "powershell -NoP -NonI -W Hidden -enc $x";
    started(shell, CMD, variable, "powershell-encoded-hidden", true);
    started(shell, CMD, "powershell -NoP -W Hidden -File a.ps1", "powershell-encoded-hidden", false);
    wrote(shell, r"C:\Windows\System32\ntds_capi_0_a0feda20.keyx.rsa.pvk", "stolen-key-or-ticket-written", true);
    wrote(r"C:\Users\mara\Desktop\a.exe", r"C:\Users\mara\Desktop\a.dmp", "dump-written-by-program-of-user", true);
    wrote(r"C:\Windows\System32\WerFault.exe", r"C:\Users\mara\a.dmp", "dump-written-by-program-of-user", false);
}

#[test]
fn a_name_ends_where_its_field_ends() {
    let renamed = |old: &str, new: &str| {
        let raw = format!(
            r#"{{"EventID":4781,"OldTargetUserName":"{old}","NewTargetUserName":"{new}","SubjectUserName":"PC1$"}}"#
        );
        let fields = [("EventID", "4781"), ("OldTargetUserName", old), ("NewTargetUserName", new)];
        let fields = fields.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        let facets = Facets::read(&fields, &raw);
        all().iter().any(|b| b.id == "win-computer-account-rename" && b.matches(&facets, &raw.to_lowercase()))
    };
    assert!(renamed("PC1$", "DC1"));
    assert!(!renamed("PC1$", "PC2$"));
    assert!(!renamed("Administrators", "Administrators"), "the account of the machine that did it stands behind");
}
