use super::*;

fn check(line: &str, expect: &str) {
    let mut out = Vec::new();
    if let Some(header) = header(line) {
        fields(&header, &mut out);
    }
    let got: Vec<_> = out.iter().map(|(k, v)| format!("{k}={v}")).collect();
    assert_eq!(got.join(" | "), expect, "{line}");
}

#[test]
fn all_patterns_compile() {
    assert_eq!(PATTERNS.len(), KNOWN.len());
}

#[test]
fn lines_of_each_kind() {
    check(
        "Oct 10 13:55:36 web sshd[812]: Failed password for invalid user admin from 10.0.0.9 port 4022 ssh2",
        "timestamp=Oct 10 13:55:36 | host=web | program=sshd | pid=812 | message=Failed password for invalid user admin from 10.0.0.9 port 4022 ssh2 | outcome=Failed | method=password | user=admin | src_ip=10.0.0.9 | src_port=4022",
    );
    check(
        "2024-01-01T10:00:00.123456+00:00 web sudo:      bob : TTY=pts/0 ; PWD=/home/bob ; USER=root ; COMMAND=/bin/cat /etc/shadow",
        "timestamp=2024-01-01T10:00:00.123456+00:00 | host=web | program=sudo | message=bob : TTY=pts/0 ; PWD=/home/bob ; USER=root ; COMMAND=/bin/cat /etc/shadow | user=bob | tty=pts/0 | cwd=/home/bob | target_user=root | command=/bin/cat /etc/shadow",
    );
    check(
        "<165>1 2003-10-11T22:14:15.003Z mymachine evntslog 77 ID47 [exampleSDID@32473 iut=\"3\"] An event",
        "timestamp=2003-10-11T22:14:15.003Z | pri=165 | host=mymachine | program=evntslog | pid=77 | message=An event | sd.iut=3",
    );
    check(
        "Oct 10 13:55:36 web CRON[1]: pam_unix(cron:session): session opened for user root(uid=0) by (uid=0)",
        "timestamp=Oct 10 13:55:36 | host=web | program=CRON | pid=1 | message=pam_unix(cron:session): session opened for user root(uid=0) by (uid=0) | service=cron | outcome=opened | user=root | uid=0 | by_user=",
    );
    check("just a line", "");
}

#[test]
fn what_a_collector_put_into_a_field_is_read_without_its_program() {
    let of = |message: &str| {
        let found = collected(message).unwrap_or_default();
        found.iter().map(|(k, v)| format!("{k}={v}")).collect::<Vec<_>>().join(" | ")
    };
    // Some exports lose the separators.
    for sudo in [
        "mara : TTY=pts/0 ; PWD=/home/mara ; USER=root ; COMMAND=/bin/bash",
        "mara : TTY=pts/0   PWD=/home/mara   USER=root   COMMAND=/bin/bash",
    ] {
        assert_eq!(of(sudo), "user=mara | tty=pts/0 | cwd=/home/mara | target_user=root | command=/bin/bash");
    }
    assert_eq!(
        of("Accepted publickey for mara from 192.0.2.7 port 5022 ssh2"),
        "outcome=Accepted | method=publickey | user=mara | src_ip=192.0.2.7 | src_port=5022"
    );
    assert_eq!(
        of("pam_unix(sudo:session): session opened for user root by mara(uid=0)"),
        "service=sudo | outcome=opened | user=root | by_user=mara"
    );
    // The command is all that follows, whatever it holds; where a folder or a command looks like the parts between, nothing
    // says which are meant.
    let command = |message: &str| {
        let found = collected(message).unwrap_or_default();
        let of = |name: &str| found.iter().find(|(n, _)| n == name).map(|(_, v)| v.clone()).unwrap_or_default();
        format!("{} as {}", of("command"), of("target_user"))
    };
    for (sudo, expect) in [
        (
            "eve : TTY=pts/0 ; PWD=/root ; USER=root ; COMMAND=/bin/evil --x COMMAND=/usr/bin/id",
            "/bin/evil --x COMMAND=/usr/bin/id as root",
        ),
        (
            "eve : TTY=pts/0 ; PWD=/root ; USER=root ; COMMAND=/bin/evil ; COMMAND=/usr/bin/id",
            "/bin/evil ; COMMAND=/usr/bin/id as root",
        ),
        ("eve : TTY=pts/0 ; PWD=/tmp/a USER=daemon COMMAND=x ; USER=root ; COMMAND=/bin/evil", "/bin/evil as root"),
        ("eve : TTY=pts/0 ; PWD=/tmp/x ; USER=nobody ; COMMAND=/bin/ls ; USER=root ; COMMAND=/bin/sh", " as "),
        ("eve : HOST=a ; TTY=pts/0 ; CHROOT=/c ; PWD=/ ; USER=root ; COMMAND=/bin/id", "/bin/id as root"),
        (
            "eve : TTY=pts/0   PWD=/root   USER=root   COMMAND=/bin/evil   COMMAND=/bin/id",
            "/bin/evil   COMMAND=/bin/id as root",
        ),
    ] {
        assert_eq!(command(sudo), expect, "{sudo}");
    }
    assert_eq!(of("[sshd  pid: 7] Failed password for mara from 192.0.2.7 port 5022 ssh2").split(" | ").count(), 5);
    assert_eq!(of("GET /pam_unix(sudo:session): session opened for user root by boss"), "");
    assert_eq!(of("Accepted the terms"), "");
    assert_eq!(of("a=1 b=2"), "");
}
