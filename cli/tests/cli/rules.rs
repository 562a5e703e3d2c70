//! The path of docs/rules.md: write a rule, check it, test it on a folder, ask why, see it in a report.

use crate::commands::Place;

const RULE: &str = "title: Curl to an address without a name
logsource:
    product: linux
    category: process_creation
detection:
    selection:
        CommandLine|contains: curl
        CommandLine|re: 'https?://\\d+\\.\\d+\\.\\d+\\.\\d+'
    condition: selection
level: high
";

const ALERT: &str =
    r#"{"id":"a-1","title":"Download","time":"2026-03-01T10:00:04Z","host":"web1","dst_ip":"192.0.2.9"}"#;

fn audit() -> String {
    let line = |n: u32, command: &str| {
        let arguments: Vec<String> = command.split(' ').enumerate().map(|(n, a)| format!("a{n}=\"{a}\"")).collect();
        let time = 1_772_359_200 + n;
        format!("node=web1 type=EXECVE msg=audit({time}.123:{n}): argc={} {}\n", arguments.len(), arguments.join(" "))
    };
    let commands =
        ["ls", "ls", "wget http://192.0.2.9/x", "curl http://192.0.2.9/x", "ls", "ls", "ls", "ls", "ls", "ls"];
    commands.iter().zip(1..).map(|(command, n)| line(n, command)).collect()
}

fn shown(place: &Place, arguments: &str) -> String {
    let output = place.run(&arguments.split(' ').collect::<Vec<_>>());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments}: {said}{}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_rule_is_written_checked_tested_explained_and_reported() {
    let place = Place::new();
    place.file("logs/audit.log", audit());
    place.file("own/curl.yml", RULE);
    place.file("alert.json", ALERT);
    assert_eq!(shown(&place, "rules check own"), "1 file: no faults\n");
    let listed = shown(&place, "rules list --rules own --level high");
    assert!(
        listed.contains(
            "high  Curl to an address without a name\n    linux/process_creation; points to an attack; own/curl.yml"
        ),
        "{listed}"
    );
    let found = shown(&place, "rules test --rules own --evidence logs");
    assert!(
        found
            .starts_with("high  Curl to an address without a name: 1 hit\n    2026-03-01T10:00:04.123Z  audit.log:4\n"),
        "{found}"
    );
    assert!(found.ends_with("1 rule with hits in 10 records\n"), "{found}");
    let told = shown(&place, "rules explain audit.log:3 --evidence logs --rules own");
    let why = "- CommandLine: contains \"curl\"; the record has \"wget http://192.0.2.9/x\"";
    assert!(told.contains(why) && told.contains("rules for other logs"), "{told}");
    shown(&place, "investigate alert.json --evidence logs --rules own --out one");
    let report = std::fs::read_to_string(place.path().join("one/report.md")).unwrap();
    assert!(report.contains(": curl to an address without a name"), "{report}");

    // The rules of a team folder count without an option.
    place.file("team/rules/curl.yml", RULE.replace("Curl to an address", "Download from an address"));
    assert!(shown(&place, "check team").contains("1 file is valid"));
    shown(&place, "--data other investigate alert.json --evidence logs --team team --out two");
    let report = std::fs::read_to_string(place.path().join("two/report.md")).unwrap();
    assert!(report.contains(": download from an address without a name"), "{report}");
    shown(&place, "--data third investigate alert.json --evidence logs --out three");
    let report = std::fs::read_to_string(place.path().join("three/report.md")).unwrap();
    assert!(!report.contains("address without a name"), "no rule, no finding");
}

#[test]
fn a_rule_that_no_log_meets_gets_a_notice() {
    let place = Place::new();
    place.file("own/a.yml", RULE.replace("category: process_creation", "service: toaster"));
    let said = shown(&place, "rules check own");
    assert!(said.contains("own/a.yml:1: logsource: no log that Casebook reads is linux/toaster"), "{said}");
    assert!(said.ends_with("1 file: no faults\n"), "{said}");
}
