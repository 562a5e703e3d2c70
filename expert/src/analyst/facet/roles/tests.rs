use super::super::{Class, Facet, Facets};

/// `expect` holds what is read, as `facet=value`.
#[track_caller]
fn check(fields: &[(&str, &str)], class: Class, expect: &[(Facet, Option<&str>)]) {
    let facets = Facets::read(&fields.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect(), "");
    assert_eq!(facets.class, Some(class), "{fields:?}");
    for (facet, value) in expect {
        assert_eq!(facets.get(*facet), *value, "{facet:?} of {fields:?}");
    }
}

#[test]
fn the_acting_program_is_the_parent_of_what_it_starts_and_the_program_of_what_else_it_does() {
    let started = [
        ("ActionType", "ProcessCreated"),
        ("FileName", "mshta.exe"),
        ("ProcessCommandLine", "mshta https://a.example"),
        ("InitiatingProcessFileName", "winword.exe"),
        ("InitiatingProcessCommandLine", "winword a.docx"),
        ("AccountName", "mara"),
        ("DeviceName", "pc1"),
    ];
    check(
        &started,
        Class::ProcessStart,
        &[
            (Facet::Process, Some("mshta.exe")),
            (Facet::Command, Some("mshta https://a.example")),
            (Facet::Parent, Some("winword.exe")),
            (Facet::ParentCommand, Some("winword a.docx")),
            (Facet::User, Some("mara")),
        ],
    );
    let wrote = [
        ("ActionType", "FileCreated"),
        ("FileName", "a.ps1"),
        ("InitiatingProcessFileName", "winword.exe"),
        ("InitiatingProcessCommandLine", "winword a.docx"),
    ];
    check(
        &wrote,
        Class::FileCreate,
        &[
            (Facet::Process, Some("winword.exe")),
            (Facet::Command, Some("winword a.docx")),
            (Facet::Object, Some("a.ps1")),
            (Facet::Parent, None),
        ],
    );
    let raw = [
        ("CreatedProcessName", "rundll32.exe"),
        ("CreatedProcessCommandLine", "rundll32 a.dat,#1"),
        ("InitiatingProcessName", "powershell.exe"),
        ("Process_CommandLine", "powershell -w hidden"),
    ];
    check(
        &raw,
        Class::ProcessStart,
        &[
            (Facet::Process, Some("rundll32.exe")),
            (Facet::Command, Some("rundll32 a.dat,#1")),
            (Facet::Parent, Some("powershell.exe")),
        ],
    );
    let normalised = [
        ("EventType", "ProcessCreated"),
        ("TargetProcessName", "/bin/sh"),
        ("TargetProcessCommandLine", "sh -c id"),
        ("ActingProcessName", "/usr/sbin/nginx"),
        ("DvcHostname", "web1"),
    ];
    check(
        &normalised,
        Class::ProcessStart,
        &[(Facet::Process, Some("/bin/sh")), (Facet::Parent, Some("/usr/sbin/nginx")), (Facet::Host, Some("web1"))],
    );
}

#[test]
fn what_surrounds_a_record_says_what_it_is() {
    check(
        &[("process_exec.process.binary", "/bin/a"), ("process_exec.parent.binary", "/bin/b")],
        Class::ProcessStart,
        &[(Facet::Process, Some("/bin/a")), (Facet::Parent, Some("/bin/b"))],
    );
    check(&[("process_connect.process.binary", "/bin/a")], Class::NetworkConnection, &[]);
    check(
        &[("columns.cmdline", "shred -u -"), ("columns.pcmdline", "logrotate a"), ("columns.parent", "7")],
        Class::ProcessStart,
        &[(Facet::ParentCommand, Some("logrotate a")), (Facet::Parent, None)],
    );
    let alert = [("AlertName", "Spray"), ("AlertSeverity", "High"), ("CommandLine", "x"), ("ParentImage", "y")];
    check(&alert, Class::Alert, &[(Facet::Action, Some("Spray"))]);
    let notice = [("note", "SSH::Interesting_Hostname_Login"), ("suppress_for", "3600"), ("src", "192.0.2.5")];
    check(&notice, Class::Alert, &[(Facet::Action, Some("SSH::Interesting_Hostname_Login"))]);
    check(&[("cipher", "rc4-hmac"), ("request_type", "TGS")], Class::Authentication, &[]);
}

#[test]
fn the_remote_end_is_where_a_connection_goes_to_or_comes_from() {
    let fields = |action| {
        [
            ("ActionType", action),
            ("InitiatingProcessFileName", "a.exe"),
            ("LocalIP", "10.0.0.5"),
            ("LocalPort", "22"),
            ("RemoteIP", "192.0.2.9"),
            ("RemotePort", "443"),
        ]
    };
    check(
        &fields("ConnectionSuccess"),
        Class::NetworkConnection,
        &[
            (Facet::SrcIp, Some("10.0.0.5")),
            (Facet::DstIp, Some("192.0.2.9")),
            (Facet::DstPort, Some("443")),
            (Facet::Process, Some("a.exe")),
        ],
    );
    let socket = [
        ("action", "added"),
        ("columns.action", "accept"),
        ("columns.local_address", "10.0.0.5"),
        ("columns.local_port", "22"),
        ("columns.remote_address", "203.0.113.9"),
        ("columns.remote_port", "51234"),
    ];
    check(
        &socket,
        Class::NetworkConnection,
        &[(Facet::SrcIp, Some("203.0.113.9")), (Facet::DstIp, Some("10.0.0.5")), (Facet::DstPort, Some("22"))],
    );
    check(
        &[("ActionType", "ConnectionFailed"), ("RemoteIP", "192.0.2.9"), ("RemotePort", "443"), ("LocalIP", "")],
        Class::NetworkConnection,
        &[(Facet::SrcIp, None), (Facet::DstIp, Some("192.0.2.9")), (Facet::DstPort, Some("443"))],
    );
    check(
        &fields("InboundConnectionAccepted"),
        Class::NetworkConnection,
        &[(Facet::SrcIp, Some("192.0.2.9")), (Facet::DstPort, Some("22"))],
    );
}

#[test]
fn what_was_done_says_whether_a_program_was_started() {
    let acting = [("InitiatingProcessFileName", "a.exe"), ("InitiatingProcessCommandLine", "a -b")];
    let opened = [("ActionType", "OpenProcessApiCall"), ("FileName", "lsass.exe"), ("ProcessCommandLine", "lsass.exe")];
    check(
        &[&acting[..], &opened].concat(),
        Class::ProcessAccess,
        &[
            (Facet::Process, Some("a.exe")),
            (Facet::Command, Some("a -b")),
            (Facet::Object, Some("lsass.exe")),
            (Facet::Parent, None),
        ],
    );
    let empty = [("ActionType", "ProcessCreated"), ("FileName", "b.exe"), ("ProcessCommandLine", "")];
    check(
        &[&acting[..], &empty].concat(),
        Class::ProcessStart,
        &[(Facet::Process, Some("b.exe")), (Facet::Command, None), (Facet::Parent, Some("a.exe"))],
    );
    let ended = [("EventType", "ProcessTerminated"), ("TargetProcessName", "b.exe"), ("ActingProcessName", "a.exe")];
    check(&ended, Class::ProcessEnd, &[(Facet::Parent, None)]);
}

#[test]
fn names_that_whoever_is_recorded_may_choose_play_no_role() {
    let pod = [
        ("auditID", "1"),
        ("verb", "create"),
        ("user.username", "mara"),
        ("requestObject.metadata.labels.severity", "low"),
        ("requestObject.metadata.labels.alertid", "1"),
        ("requestObject.metadata.labels.audit.serial", "1"),
        ("requestObject.metadata.labels.audit.time", "1"),
        ("requestObject.metadata.labels.acct", "alice"),
        ("requestObject.metadata.labels.initiatingprocessname", "x"),
    ];
    check(&pod, Class::ApiCall, &[(Facet::User, Some("mara")), (Facet::Action, Some("create"))]);
    let asked = [("auditID", "1"), ("sourceIPs.0", "8.8.8.8"), ("sourceIPs.1", "192.0.2.7")];
    check(&asked, Class::ApiCall, &[(Facet::SrcIp, Some("192.0.2.7"))]);
}

/// What a browser says of itself is no record of the kernel's, whatever it holds.
#[test]
fn a_collected_record_stands_in_a_field_of_messages() {
    let in_field = |field: &str| {
        let audit = [("audit.serial", "7"), ("audit.time", "1.5"), ("type", "CONFIG_CHANGE"), ("op", "add_rule")];
        let fields = audit.map(|(name, value)| (format!("{field}.{name}"), value.to_owned()));
        Facets::read(&fields.into_iter().collect(), "").class
    };
    assert_eq!(in_field("SyslogMessage"), Some(Class::ConfigChange));
    assert_eq!(in_field("event.original"), Some(Class::ConfigChange));
    assert_eq!(in_field("user_agent.original"), Some(Class::Other));
}

#[test]
fn an_audit_record_says_who_signed_in_and_what_was_done() {
    let audit = [("audit.serial", "7"), ("audit.time", "1551487421.353"), ("auid", "1000"), ("ses", "237")];
    let rule =
        [&audit[..], &[("type", "CONFIG_CHANGE"), ("op", "add_rule"), ("key", "tampering"), ("res", "1")]].concat();
    check(
        &rule,
        Class::ConfigChange,
        &[
            (Facet::Action, Some("add_rule")),
            (Facet::Object, Some("tampering")),
            (Facet::User, Some("1000")),
            (Facet::Host, None),
            (Facet::Outcome, Some("success")),
        ],
    );
    let login = [
        ("audit.serial", "7"),
        ("audit.time", "1551487421.353"),
        ("type", "USER_LOGIN"),
        ("auid", "4294967295"),
        ("acct", "root"),
        ("hostname", "192.0.2.9"),
        ("addr", "192.0.2.9"),
        ("res", "failed"),
        ("op", "login"),
    ];
    check(
        &login,
        Class::LogonFailure,
        &[
            (Facet::User, Some("root")),
            (Facet::SrcIp, Some("192.0.2.9")),
            (Facet::Host, None),
            (Facet::Outcome, Some("failure")),
        ],
    );
    let call = [
        &audit[..],
        &[("type", "SYSCALL"), ("arch", "c000003e"), ("syscall", "59"), ("exe", "/usr/bin/id"), ("key", "(null")],
    ]
    .concat();
    check(&call, Class::ProcessStart, &[(Facet::Process, Some("/usr/bin/id")), (Facet::Object, None)]);
    let made = [&audit[..], &[("type", "ADD_USER"), ("acct", "eve"), ("op", "adding user"), ("res", "1")]].concat();
    check(&made, Class::AccountChange, &[(Facet::User, Some("1000")), (Facet::Object, Some("eve"))]);
    let guess = [&login[..3], &[("acct", "(invalid user)"), ("uid", "0"), ("res", "failed")]].concat();
    check(&guess, Class::LogonFailure, &[(Facet::User, None)]);
    let title = [&audit[..], &[("type", "PROCTITLE"), ("proctitle", "sshd: root")]].concat();
    check(&title, Class::Other, &[]);
    let command = [&audit[..], &[("type", "USER_CMD"), ("cmd", "auditctl -l"), ("exe", "/usr/bin/sudo")]].concat();
    check(&command, Class::ProcessStart, &[(Facet::Command, Some("auditctl -l"))]);
}
