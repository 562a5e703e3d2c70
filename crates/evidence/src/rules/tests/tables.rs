//! Rules over the tables that other programs make of event logs.

use super::*;
use crate::tests::collections::{EVTXECMD, SECURITY, SYSMON, row};

fn rule(title: &str, logsource: &str, selection: &str) -> RuleFile {
    user(&format!(
        "title: {title}\nlogsource: {logsource}\ndetection:\n  selection:\n    {selection}\n  condition: selection\nlevel: high\n"
    ))
}

#[test]
fn rows_of_evtxecmd_meet_rules_of_their_channel_only() {
    let started = [("NewProcessName", r"C:\tool.exe"), ("CommandLine", "tool.exe -x"), ("SubjectUserName", "mara")];
    let created = [("Image", r"C:\tool.exe"), ("CommandLine", "tool.exe -y")];
    let service = [("ServiceName", "tool"), ("ImagePath", r"C:\tool.exe")];
    let installed = ("Service Control Manager", "System", "7045");
    // Most rows are of the Security log.
    let rows: String = (1..=30).map(|n| row(n, SECURITY, &started)).collect();
    let rows = format!("{EVTXECMD}{rows}{}{}", row(31, SYSMON, &created), row(32, installed, &service));
    let all = [
        rule("Started", "{category: process_creation, product: windows}", r"Image|endswith: '\tool.exe'"),
        rule("Of the Security log", "{product: windows, service: security}", "EventID: 4688"),
        rule("By the Security log", "{product: windows}", "Provider_Name: Microsoft-Windows-Security-Auditing"),
        rule("Of Sysmon", "{product: windows, service: sysmon}", "CommandLine|contains: tool"),
        rule("Installed", "{product: windows, service: system}", "EventID: 7045\n    ServiceName: tool"),
        rule("Of PowerShell", "{product: windows, service: powershell}", "CommandLine|contains: tool"),
        rule("Of Linux", "{category: process_creation, product: linux}", "CommandLine|contains: tool"),
        rule("From a host", "{product: windows}", "Computer: WS7.corp.example"),
        rule("By a column", "{product: windows}", "PayloadData2: LogonType 3"),
    ];
    let rules = Arc::new(RuleSet::read(&all).unwrap());
    let mut hits = Loaded::new(&[("EventLogs/EvtxECmd_Output.csv", rows)]).hits(&rules);
    hits.sort();
    let expected = [
        "By a column x32",
        "By the Security log x30",
        "From a host x32",
        "Installed x1",
        "Of Sysmon x1",
        "Of the Security log x30",
        "Started x31",
    ];
    assert_eq!(hits, expected);
}
