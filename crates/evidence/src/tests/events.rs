//! Events that the audit log writes in several lines.

use std::sync::Arc;

use serde_json::Value;

use super::{Folder, call};
use crate::facet::{Facet, Facets};
use crate::rules::{Origin, RuleFile, RuleSet};
use crate::{Catalog, Declared, EvidenceTools};

/// As `auditd` writes them. The lines of two events are interleaved, and a third belongs to another event.
const LOG: &str = r#"type=SYSCALL msg=audit(1700000000.101:501): arch=c000003e syscall=59 success=yes exit=0 a0=55d0c8 a1=55d0d8 a2=55d0e8 a3=0 items=2 ppid=900 pid=901 auid=1000 uid=0 gid=0 euid=0 suid=0 fsuid=0 egid=0 sgid=0 fsgid=0 tty=pts0 ses=3 comm="useradd" exe="/usr/sbin/useradd" subj=unconfined key="accounts"
type=EXECVE msg=audit(1700000000.101:501): argc=4 a0="useradd" a1="-o" a2="-u" a3="0"
type=SYSCALL msg=audit(1700000000.102:502): arch=c000003e syscall=42 success=yes exit=0 a0=3 a1=7ffd10 a2=10 a3=0 items=0 ppid=1 pid=77 auid=4294967295 uid=33 gid=33 euid=33 suid=33 fsuid=33 egid=33 sgid=33 fsgid=33 tty=(none) ses=4294967295 comm="php" exe="/usr/bin/php" key="net"
type=CWD msg=audit(1700000000.101:501): cwd="/root"
type=PATH msg=audit(1700000000.101:501): item=0 name="/usr/sbin/useradd" inode=1 dev=fd:00 mode=0100755 ouid=0 ogid=0 rdev=00:00 nametype=NORMAL
type=SOCKADDR msg=audit(1700000000.102:502): saddr=020001BBC63364070000000000000000
type=PATH msg=audit(1700000000.101:501): item=1 name="/lib64/ld-linux-x86-64.so.2" inode=2 dev=fd:00 mode=0100755 ouid=0 ogid=0 rdev=00:00 nametype=NORMAL
type=PROCTITLE msg=audit(1700000000.101:501): proctitle=75736572616464002D6F002D750030
type=EOE msg=audit(1700000000.101:501):
type=PROCTITLE msg=audit(1700000000.102:502): proctitle="php"
type=EOE msg=audit(1700000000.102:502):
type=USER_LOGIN msg=audit(1700000001.500:503): pid=1200 uid=0 auid=4294967295 ses=4294967295 msg='op=login acct="mara" exe="/usr/sbin/sshd" hostname=? addr=192.0.2.9 terminal=ssh res=failed'
"#;

const RULES: &str = r#"
title: An account with the rights of another was created by a user
id: 11111111-1111-4111-8111-111111111111
status: test
logsource: { product: linux, service: auditd }
detection:
  selection:
    auid: 1000
    cmdline|contains: 'useradd -o'
    SYSCALL: execve
    type: PATH
    a2: '-u'
  condition: selection
level: high
---
title: A web application connects to another network
id: 22222222-2222-4222-8222-222222222222
status: test
logsource: { product: linux, service: auditd }
detection:
  selection:
    exe: /usr/bin/php
    DestinationIp: 198.51.100.7
    DestinationPort: 443
  condition: selection
level: medium
"#;

fn opened(folder: &Folder) -> Arc<Catalog> {
    let file = RuleFile { origin: Origin::User, path: "mine.yml".into(), text: RULES.into() };
    let declared = Declared { rule_set: Some(Arc::new(RuleSet::read(&[file]).unwrap())), ..Declared::default() };
    let index = folder.dir.path().join("indexes");
    Arc::new(Catalog::declared_in(&folder.evidence(), &index, None, &declared, &mut |_| {}).unwrap())
}

#[test]
fn each_line_shows_what_the_event_knows() {
    let folder = Folder::of("audit.log", LOG);
    let catalog = folder.open();
    assert_eq!(catalog.sources()[0].records, 12);
    for line in [1, 2, 4, 8] {
        let record = catalog.record("audit.log", line).unwrap();
        let fields: std::collections::BTreeMap<String, String> = record.fields().into_iter().rev().collect();
        let get = |name: &str| fields.get(name).map(String::as_str);
        assert_eq!(get("cmdline"), Some("useradd -o -u 0"), "{line}");
        assert_eq!((get("auid"), get("UID"), get("SYSCALL")), (Some("1000"), Some("root"), Some("execve")), "{line}");
        assert_eq!((get("cwd"), get("proctitle")), (Some("/root"), Some("useradd -o -u 0")), "{line}");
        assert_eq!(get("path.1.name"), Some("/lib64/ld-linux-x86-64.so.2"), "{line}");
        let facets = Facets::read(&fields, &record.text());
        assert_eq!(facets.get(Facet::Command), Some("useradd -o -u 0"), "{line}");
        assert_eq!(facets.get(Facet::User), Some("1000"), "{line}");
        assert_eq!(facets.get(Facet::Process), Some("/usr/sbin/useradd"), "{line}");
    }
    let connect = catalog.record("audit.log", 6).unwrap().fields().into_iter().collect();
    let facets = Facets::read(&connect, "");
    assert_eq!((facets.get(Facet::DstIp), facets.get(Facet::DstPort)), (Some("198.51.100.7"), Some("443")));
    let login = catalog.record("audit.log", 12).unwrap().fields();
    assert!(!login.iter().any(|(name, value)| name == "cmdline" || name == "user" || value == "execve"));
}

#[test]
fn rule_over_several_lines_fires_once_for_an_event() {
    let folder = Folder::of("audit.log", LOG);
    let catalog = opened(&folder);
    let ids: Vec<String> = catalog.sources().iter().map(|s| s.id.clone()).collect();
    let tools = EvidenceTools::new(Arc::clone(&catalog), &ids);
    let found = call(&tools, "rule_hits", r#"{"rule":"11111111-1111-4111-8111-111111111111"}"#);
    let places = |found: &Value| {
        let records = found["records"].as_array().unwrap();
        records.iter().map(|record| record["line"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(places(&found), [1], "{found}");
    let found = call(&tools, "rule_hits", r#"{"rule":"22222222-2222-4222-8222-222222222222"}"#);
    assert_eq!(places(&found), [3], "{found}");
    let shown = call(&tools, "get_record", r#"{"file":"audit.log","line":5}"#);
    assert!(shown.to_string().contains("11111111-1111-4111-8111-111111111111"), "{shown}");
}
