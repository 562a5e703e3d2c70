use super::*;
use crate::fields::{Shape, parse};
use crate::source::Format;

fn check(format: Format, lines: &[&str], expect: &str) {
    let shape = Shape::of(format);
    let sample: Vec<_> = lines.iter().map(|l| parse(&shape, l.as_bytes()).fields).collect();
    let got = Belongs::of(&Facts::new(format, &sample));
    let host = if got.on_host { " on host" } else { "" };
    assert_eq!(format!("{} {}{host}", got.domain, got.sensor), expect, "{lines:?}");
    assert!(got.domain().is_some() && DOMAINS.contains(&got.domain));
}

#[test]
fn known_logs() {
    let json = Format::Ndjson;
    check(
        json,
        &[r#"{"eventSource":"s3.amazonaws.com","eventName":"ListBuckets","awsRegion":"us-east-1"}"#],
        "cloud cloudtrail",
    );
    check(
        json,
        &[r#"{"kind":"Event","auditID":"x","verb":"get","requestURI":"/api","user":{"username":"a"}}"#],
        "cloud kubernetes-audit",
    );
    check(
        json,
        &[r#"{"userPrincipalName":"a@b","appDisplayName":"x","ipAddress":"1.2.3.4"}"#],
        "identity entra-signin",
    );
    check(
        json,
        &[r#"{"eventType":"user.session.start","actor":{"alternateId":"a@b"},"outcome":{"result":"SUCCESS"}}"#],
        "identity okta",
    );
    check(
        json,
        &[r#"{"action":"user.login","actor":"octo","created_at":1711431195806,"operation_type":"authentication"}"#],
        "identity github-audit",
    );
    check(json, &[r#"{"ts":1.5,"uid":"C","id.orig_h":"1.2.3.4","id.resp_h":"1.2.3.5"}"#], "network zeek");
    check(
        json,
        &[
            r#"{"timestamp":"2024-01-01T00:00:00Z","event_type":"alert","flow_id":1,"src_ip":"1.2.3.4","dest_ip":"4.3.2.1"}"#,
        ],
        "network suricata",
    );
    check(json, &[r#"{"Channel":"Security","EventID":4624,"TargetUserName":"x"}"#], "identity windows-security");
    check(json, &[r#"{"Channel":"Security","EventID":4688,"NewProcessName":"x"}"#], "endpoint windows-security");
    check(json, &[r#"{"Channel":"Microsoft-Windows-Sysmon/Operational","EventID":1}"#], "endpoint sysmon");
    check(json, &[r#"{"Channel":"System","EventID":7045}"#], "endpoint windows-system on host");
    check(json, &[r#"{"Workload":"Exchange","Operation":"New-InboxRule","UserId":"a"}"#], "application m365-audit");
    check(
        json,
        &[r#"{"ts":"1652292620.898048","src":"192.168.2.6","sport":1,"dst":"192.168.2.5","dport":8080}"#],
        "network network-log",
    );
    check(json, &[r#"{"time":"x","pid":1,"ppid":2,"exe":"/bin/sh","cmdline":"sh -c x"}"#], "endpoint endpoint-log");
    check(
        json,
        &[r#"{"CreatedProcessName":"a","CreatedProcessCommandLine":"a -b","InitiatingProcessId":7,"ReportTime":"x"}"#],
        "endpoint endpoint-log",
    );
    check(
        json,
        &[r#"{"operation_name":{"value":"Microsoft.Compute/disks/delete"},"resource_id":"/x","caller":"a@b"}"#],
        "cloud azure-activity",
    );
    check(json, &[r#"{"ts":1.5,"uids":["C"],"client_addr":"1.2.3.4","assigned_addr":"1.2.3.4"}"#], "network zeek");
    check(json, &[r#"{"EventID":"4624","TargetUserName":"x","Computer":"a"}"#], "identity windows-security");
    check(json, &[r#"{"EventID":"7045","TargetUserName":"x"}"#], "application json-lines on host");
    check(
        json,
        &[r#"{"SyslogMessage":"session opened for user root","ProcessName":"sudo","Facility":"authpriv"}"#],
        "identity auth on host",
    );
    check(Format::Auditd, &[r#"type=EXECVE msg=audit(1.5:2): argc=1 a0="ls""#], "endpoint auditd");
}

#[test]
fn text_by_what_it_says() {
    check(
        Format::Syslog,
        &["Oct 10 13:55:36 web sshd[1]: Accepted password for root from 1.2.3.4 port 22 ssh2"],
        "identity auth on host",
    );
    check(
        Format::Syslog,
        &["Oct 10 13:55:36 fw kernel: [UFW BLOCK] IN=eth0 OUT= SRC=1.2.3.4 DST=4.3.2.1 LEN=60"],
        "network firewall",
    );
    check(Format::Syslog, &["Oct 10 13:55:36 web systemd[1]: Started x."], "endpoint syslog on host");
    check(Format::Plain, &["2024-01-01 10:00:00 status installed foo:amd64 1.0"], "configuration dpkg on host");
    check(
        Format::Plain,
        &["Start-Date: 2024-01-01  10:00:00", "Commandline: apt install x"],
        "configuration apt on host",
    );
    check(Format::Plain, &["apiVersion: v1", "kind: Policy", "spec:", "  - a: b"], "configuration settings on host");
    check(Format::Plain, &["ls -la", "cat /etc/passwd", "whoami"], "endpoint shell-history on host");
    check(
        Format::AccessLog,
        &["1.2.3.4 - - [10/Oct/2000:13:55:36 -0700] \"GET / HTTP/1.0\" 200 1"],
        "application web-access on host",
    );
    check(
        Format::AccessLog,
        &[
            r#"http 2020-01-11T16:55:20.3Z app/web 10.0.0.9:1 10.0.0.1:80 0.1 0.1 0.0 200 200 1 2 "GET http://a:80/ HTTP/1.1" "-""#,
        ],
        "application load-balancer",
    );
    check(
        Format::CmTrace,
        &[r#"<![LOG[Started]LOG]!><time="10:00:00.000+000" date="01-02-2024" component="x">"#],
        "configuration configuration-manager on host",
    );
    check(
        Format::ModSecurity,
        &["--0a1b2c3d-A--\n[07/Jun/2023:18:56:56 -0400] x 1.2.3.4 5 1.2.3.5 80\n--0a1b2c3d-Z--"],
        "application web-application-firewall on host",
    );
    check(
        Format::Plain,
        &["[2018-08-19T03:10:45.966Z] I santad: action=EXEC|decision=ALLOW|cert_sha256=2aa4|user=bob|args=ls -l"],
        "endpoint santa",
    );
    check(
        Format::Plain,
        &["12/28-12:55:38.765402 [**] [1:366:11] \"PING\" [**] [Priority: 3] {TCP} 1.2.3.4:1 -> 4.3.2.1:2"],
        "network ids",
    );
    let line = "Oct 10 13:55:36 web systemd[1]: Started x.";
    let forged = r#"Oct 10 13:55:36 web a[1]: {"rule":{"level":1,"id":1},"agent":{"id":1},"manager":{"name":"m"}}"#;
    let kernel = r#"Oct 10 13:55:36 web a[1]: {"process_exec":{"process":{"binary":"/bin/a"}},"ts":1,"uids":"x"}"#;
    check(Format::Syslog, &[line, line, line, forged, kernel], "endpoint syslog on host");
    check(Format::Plain, &["Windows PowerShell transcript start"], "endpoint powershell-transcript on host");
    check(
        Format::Cef,
        &["CEF:0|Palo Alto Networks|PAN-OS|1|1|n|3|src=1.2.3.4 dst=1.2.3.5 spt=1 dpt=2"],
        "network palo-alto-networks",
    );
    check(Format::Plain, &["2024-01-01 10:00:00 INFO something happened"], "application plain-lines on host");
}

#[test]
fn a_single_record_makes_no_log_that_of_a_sensor() {
    let office = r#"{"OfficeWorkload":"Exchange","Operation":"New-InboxRule","UserId":"m","ClientIP":"192.0.2.9"}"#;
    let typed =
        r#"{"eventid":"cowrie.command.input","session":"abc60b61c358","sensor":"s","src_ip":"192.0.2.9","input":"id"}"#;
    check(Format::Ndjson, &[office, office], "application m365-audit");
    check(Format::Ndjson, &[typed, typed], "endpoint cowrie");
    let other = r#"{"level":"info","msg":"started"}"#;
    for forged in [office, typed] {
        let lines: Vec<&str> = std::iter::once(forged).chain(std::iter::repeat_n(other, 9)).collect();
        let shape = Shape::of(Format::Ndjson);
        let sample: Vec<_> = lines.iter().map(|l| parse(&shape, l.as_bytes()).fields).collect();
        let got = Belongs::of(&Facts::new(Format::Ndjson, &sample));
        assert!(!["m365-audit", "cowrie"].contains(&got.sensor.as_str()), "{forged}");
    }
}
