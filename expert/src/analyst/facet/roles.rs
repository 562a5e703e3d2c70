//! Whose program, whose address: what a field means where that depends on the fields beside it.

use std::collections::BTreeMap;

use super::{Facet, usable};

type Values = BTreeMap<Facet, String>;
/// The last part of a path, its last two parts, and what stands there.
type Named<'a> = (String, String, &'a str);

/// The program that did it: the parent where a program is started, the program itself in anything else.
const ACTING: [(Facet, Facet, &[&str]); 2] = [
    (
        Facet::Process,
        Facet::Parent,
        &[
            "initiatingprocessfilename",
            "initiatingprocessname",
            "actingprocessname",
            "srcprocimagepath",
            "srcprocname",
            "contextbasefilename",
        ],
    ),
    (
        Facet::Command,
        Facet::ParentCommand,
        &["initiatingprocesscommandline", "actingprocesscommandline", "srcproccmdline"],
    ),
];

fn first<'a>(names: &[Named<'a>], wanted: &[&str]) -> Option<&'a str> {
    wanted.iter().find_map(|w| {
        names.iter().find(|(one, _, value)| one == w && usable(value.trim())).map(|(.., value)| value.trim())
    })
}

/// Sensors that name an acting program beside another: Defender, the normalised tables of Sentinel, SentinelOne.
pub(super) fn acting(values: &mut Values, names: &[Named<'_>]) {
    let Some(program) = ACTING.iter().find_map(|(.., wanted)| first(names, wanted)) else { return };
    let starts = values.contains_key(&Facet::Command) || values.get(&Facet::Process).is_some_and(|p| *p != program);
    // `FileName` is the program that was started, or the file that one wrote.
    let file = first(names, &["filename"]).filter(|_| !values.contains_key(&Facet::Command));
    let made = first(names, &["createdprocessname", "targetprocessname", "tgtprocname", "tgtprocimagepath"]);
    let starts = starts && (file.is_none() || made.is_some());
    if let (Some(file), false) = (file, starts) {
        values.insert(Facet::Object, file.to_owned());
    }
    for (own, parent, wanted) in ACTING {
        let Some(value) = first(names, wanted) else { continue };
        if starts {
            values.entry(parent).or_insert_with(|| value.to_owned());
        } else {
            values.insert(own, value.to_owned());
        }
    }
}

/// What watches one host calls the ends of a connection its own and the other.
pub(super) fn ends(values: &mut Values, names: &[Named<'_>]) {
    let (Some(local), Some(remote)) =
        (first(names, &["localip", "localaddress"]), first(names, &["remoteip", "remoteaddress"]))
    else {
        return;
    };
    let action = values.get(&Facet::Action).map(|a| a.to_ascii_lowercase()).unwrap_or_default();
    let inward = ["inbound", "logon", "accept", "listen"].iter().any(|word| action.contains(word));
    let (from, to) = if inward { (remote, local) } else { (local, remote) };
    values.insert(Facet::SrcIp, from.to_owned());
    values.insert(Facet::DstIp, to.to_owned());
    let port: &[&str] = if inward { &["localport"] } else { &["remoteport"] };
    if let Some(port) = first(names, port) {
        values.insert(Facet::DstPort, port.to_owned());
    }
}

/// A record of the kernel's audit system: what was done is its `op`, `hostname` is where somebody came
/// from, and who did it is the account that signed in, whatever it became since.
pub(super) fn audited(values: &mut Values, names: &[Named<'_>]) {
    if !names.iter().any(|(_, two, _)| two == "audit.serial") {
        return;
    }
    // The number of nobody: 2³² − 1, also written as −1.
    let known = |value: &&str| !matches!(*value, "4294967295" | "-1" | "unset" | "?" | "(unknown)");
    let of = |wanted: &[&str]| first(names, wanted).filter(known).map(str::to_owned);
    let mut put = |facet, value: Option<String>| match value {
        Some(value) => drop(values.insert(facet, value)),
        None => drop(values.remove(&facet)),
    };
    put(Facet::Host, of(&["node", "computer"]));
    put(Facet::SrcIp, of(&["addr"]));
    put(Facet::User, of(&["acct"]).or_else(|| of(&["auid"])).or_else(|| of(&["uid"])));
    put(Facet::Object, of(&["unit", "key", "name", "grp"]));
    put(Facet::Action, of(&["op"]).or_else(|| of(&["type"])));
    let ended = match first(names, &["res", "success"]) {
        Some("1" | "success" | "yes") => Some("success"),
        Some("0" | "failed" | "no") => Some("failure"),
        _ => None,
    };
    put(Facet::Outcome, ended.map(str::to_owned));
}

#[cfg(test)]
mod tests {
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
        check(
            &fields("InboundConnectionAccepted"),
            Class::NetworkConnection,
            &[(Facet::SrcIp, Some("192.0.2.9")), (Facet::DstPort, Some("22"))],
        );
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
        let call =
            [&audit[..], &[("type", "SYSCALL"), ("syscall", "59"), ("exe", "/usr/bin/id"), ("key", "(null")]].concat();
        check(&call, Class::ProcessStart, &[(Facet::Process, Some("/usr/bin/id")), (Facet::Object, None)]);
        let command = [&audit[..], &[("type", "USER_CMD"), ("cmd", "auditctl -l"), ("exe", "/usr/bin/sudo")]].concat();
        check(&command, Class::ProcessStart, &[(Facet::Command, Some("auditctl -l"))]);
    }
}
